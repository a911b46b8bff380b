"""`python -m benchmarks context`: what compaction takes, what evidence a prompt has, what a summary keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.compacting import run_compacting
from benchmarks.evidence import run_evidence
from benchmarks.keeping import run_keeping
from benchmarks.machine import machine
from benchmarks.report import Report, Table
from benchmarks.resuming import run_resuming
from holdfast.errors import InvalidInput

Part = Callable[[Sequence[Path], Callable[[str], None]], tuple[dict[str, object], list[Table]]]
PARTS: dict[str, Part] = {
    "compaction": run_compacting,
    "evidence": run_evidence,
    "keeping": run_keeping,
    "resuming": run_resuming,
}
"""All that can be measured, by the names that `only` takes."""


def run(
    paths: Sequence[Path], *, only: Sequence[str] = (), progress: Callable[[str], None] = lambda _: None
) -> Report:
    """Measure what the given files allow.

    Sessions of agents allow compaction, LoCoMo conversations evidence and keeping, the folder of the
    labelled collections resuming.

    Raises:
        InvalidInput: there is no such file, or nothing can be measured with any of them.

    """
    figures: dict[str, object] = {"machine": machine()}
    tables: list[Table] = []
    reasons: list[InvalidInput] = []
    for name, part in PARTS.items():
        if only and name not in only:
            continue
        try:
            found, shown = part(paths, progress)
        except InvalidInput as error:  # not the files for this part; perhaps for another
            reasons.append(error)
            continue
        figures[name] = found
        tables += shown
    if not tables:
        raise reasons[0]
    return Report(figures, tuple(tables))
