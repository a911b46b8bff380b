"""`python -m benchmarks speed` and `side-by-side`: what the parts of Holdfast take, and what others take.

Everything runs in one process and one run. CPU time is what a machine that others use as well can be judged
by; wall time stands beside it. Where two things are compared they take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import appending, filtering, footprint, hooks, idle, landed, projects, searching, windows
from benchmarks.machine import commit, machine
from benchmarks.measurement import (
    FULL,
    QUICK,
    Measurement,
    SpeedLab,
    SpeedPlan,
    figures,
    ratios,
    run_parts,
    table,
)
from benchmarks.peers import PEERS, SERVER, is_there
from benchmarks.report import Report, Table
from benchmarks.words import Words

MEASUREMENTS: dict[str, Callable[[SpeedLab], Iterator[Measurement]]] = {
    "append and recall": searching.added,
    "compacted": windows.compacted,
    "filters": filtering.measure,
    "import": footprint.importing,
    "memory": footprint.resident,
    "projects": projects.measure,
}
"""What is measured of Holdfast alone, by the names that `only` takes."""

SIDE_BY_SIDE: dict[str, Callable[[SpeedLab], Iterator[Measurement]]] = {
    "recall": searching.large,
    "chat": searching.in_one_chat,
    "window": windows.measure,
    "prompt": searching.prompts,
    "first question": searching.first,
    "hook": hooks.prompting,
    "append": appending.measure,
    "batch": appending.batches,
    "threads": appending.together,
    "searchable": searching.searchable,
    "postgresql": appending.on_postgresql,
    "worker": idle.rounds,
    "memory": footprint.of_users,
    "users": searching.small,
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
    url: str = "",
    kept: Path = landed.FILE,
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
        url: a server of PostgreSQL, on which a database is made and removed again; one is started when empty.
        kept: the file of the figures that these are held against.
        plan: sets everything that `full` and `sizes` set, and more.
        progress: is told what is being done.

    """
    plan = plan or (FULL if full else QUICK)
    if sizes:
        plan = replace(plan, sizes=tuple(sizes))
    with TemporaryDirectory(prefix="holdfast-bench-", dir=folder) as place:
        before = machine()
        done = run_parts(measurements, SpeedLab(plan, Words(text), Path(place), progress, url), only)
    about = {"text": str(text or "demo"), "commit": commit(), "not installed": missing()}
    numbers = {**about, **figures(done), "machine": before, "effort": plan.effort(), "ratios": ratios(done)}
    tables = [table("Speed", done)]
    if measurements is SIDE_BY_SIDE:
        held = landed.held_against(numbers, kept)
        numbers |= held
        tables.append(landed.table(held))
        if rows := tuple((name,) for name in missing()):
            tables.append(Table("Not measured: pip install '.[bench,peers]' in a checkout", ("name",), rows))
    return Report(numbers, tuple(tables))


def missing() -> list[str]:
    """Name the others that are not installed, and so not beside."""
    stores = {name: module for name, (_, module) in PEERS.items()}
    others = {"tantivy": "tantivy", "PostgreSQL": SERVER, **stores}
    return [name for name, module in others.items() if not is_there(module)]
