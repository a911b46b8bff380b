"""`python -m benchmarks speed` and `side-by-side`: what the parts of Holdfast take, and what others take.

Everything runs in one process and one run. CPU time is what a machine that others use as well can be judged
by; wall time stands beside it. Where two things are compared they take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import appending, filtering, footprint, projects, searching, windows
from benchmarks.baselines import BASELINES, installed
from benchmarks.machine import commit
from benchmarks.measurement import FULL, QUICK, Measurement, SpeedLab, SpeedPlan, figures, run_parts, table
from benchmarks.peers import PEERS, is_there
from benchmarks.report import Report, Table
from benchmarks.words import Words

MEASUREMENTS: dict[str, Callable[[SpeedLab], Iterator[Measurement]]] = {
    "append and recall": searching.added,
    "window": windows.measure,
    "compacted": windows.compacted,
    "filters": filtering.measure,
    "import": footprint.importing,
    "memory": footprint.resident,
    "projects": projects.measure,
}
"""What is measured of Holdfast alone, by the names that `only` takes."""

SIDE_BY_SIDE: dict[str, Callable[[SpeedLab], Iterator[Measurement]]] = {
    "recall": searching.large,
    "prompt": searching.prompts,
    "first question": searching.first,
    "spaces": searching.small,
    "append": appending.measure,
    "batch": appending.batches,
    "threads": appending.together,
}
"""What is measured beside others that are installed."""


def run(
    measurements: Mapping[str, Callable[[SpeedLab], Iterator[Measurement]]] = MEASUREMENTS,
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
        measurements: `MEASUREMENTS` or `SIDE_BY_SIDE`.
        sizes: how many messages the spaces have that recall is measured in.
        full: measure all that was asked for, at full size.
        text: a data set as of `recall` to draw words and questions from, in place of the demo's.
        folder: where the measured stores are made and removed again; its disk is the one that counts.
        only: names of them; all when empty.
        plan: sets everything that `full` and `sizes` set, and more.
        progress: is told what is being done.

    """
    plan = plan or (FULL if full else QUICK)
    if sizes:
        plan = replace(plan, sizes=tuple(sizes))
    with TemporaryDirectory(prefix="holdfast-bench-", dir=folder) as place:
        done = run_parts(measurements, SpeedLab(plan, Words(text), Path(place), progress), only)
    about = {"text": str(text or "demo"), "commit": commit(), "not installed": missing()}
    tables = [table("Speed", done)]
    if about["not installed"] and measurements is SIDE_BY_SIDE:
        rows = tuple((name,) for name in missing())
        tables.append(Table("Not measured: pip install '.[bench,peers]' in a checkout", ("name",), rows))
    return Report({**about, **figures(done)}, tuple(tables))


def missing() -> list[str]:
    """Name the others that are not installed, and so not beside."""
    stores = [name for name, (_, module) in PEERS.items() if not is_there(module)]
    return [*(name for name in BASELINES if name not in installed()), *stores]
