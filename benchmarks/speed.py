"""`python -m benchmarks speed`: what the parts of Holdfast take, beside alternatives and what was asked for.

Everything runs in one process and one run. CPU time is what a machine that others use as well can be judged
by; wall time stands beside it. Where two things are compared they take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import appending, footprint, hostile, searching, windows
from benchmarks.measurement import FULL, QUICK, Measurement, SpeedLab, SpeedPlan, figures, run_parts, table
from benchmarks.report import Report
from benchmarks.words import Words

MEASUREMENTS: dict[str, Callable[[SpeedLab], Iterator[Measurement]]] = {
    "append": appending.measure,
    "recall": searching.large,
    "spaces": searching.small,
    "append and recall": searching.added,
    "window": windows.measure,
    "compacted": windows.compacted,
    "hostile": hostile.measure,
    "import": footprint.importing,
    "memory": footprint.resident,
}
"""All that can be measured, by the names that `only` takes."""


def run(
    *,
    sizes: Sequence[int] | None = None,
    full: bool = False,
    text: Path | None = None,
    folder: Path | None = None,
    only: Sequence[str] = (),
    plan: SpeedPlan | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Measure, in some minutes; with `full` also a million messages and a thousand spaces.

    Args:
        sizes: how many messages the spaces have that recall is measured in.
        full: measure all that was asked for, at full size.
        text: a LoCoMo file to draw words and questions from, in place of the demo's.
        folder: where the measured stores are made and removed again; its disk is the one that counts.
        only: names of `MEASUREMENTS`; all when empty.
        plan: sets everything that `full` and `sizes` set, and more.
        progress: is told what is being done.

    """
    plan = plan or (FULL if full else QUICK)
    if sizes:
        plan = replace(plan, sizes=tuple(sizes))
    with TemporaryDirectory(prefix="holdfast-bench-", dir=folder) as place:
        done = run_parts(MEASUREMENTS, SpeedLab(plan, Words(text), Path(place), progress), only)
    return Report({"text": str(text or "demo"), **figures(done)}, (table("Speed", done),))
