"""Part of `python -m benchmarks records`: a fact judged beside the nearest, and beside all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.judging import held_out, pairs
from benchmarks.measurement import Measurement, at_least
from holdfast.dedup import relate
from holdfast.memory import Memory
from holdfast.records.intake import NEAREST
from holdfast.runtime import runtime_of
from holdfast.tools.presets.observations import remember_fil
from holdfast.types import Record

_USER = "ada"


def agreeing(files: Sequence[Path]) -> Iterator[Measurement]:
    """Judge the new text of each labelled pair beside the nearest of many, and beside all of them."""
    for file in files or held_out("merge"):
        rows = pairs(file)
        counted = Counter(_judged([(row["old"], row["new"]) for row in rows]))
        for relation in ("duplicate", "update"):
            alike, other = counted[relation, True], counted[relation, False]
            share = 100 * alike / max(1, alike + other)
            yield Measurement(
                f"{relation}s that are found in {file.stem}, of those that comparing with all finds",
                share,
                "%",
                against=f"{alike + other} of {len(rows):,} texts",
                bar=at_least(share, 95, "%"),
            )


def _judged(some: Sequence[tuple[str, str]]) -> Iterator[tuple[str, bool]]:
    """Return what each new text is beside all old ones, and whether it is so beside the nearest."""
    with Memory(":memory:", user=_USER) as memory:
        olds = list(dict.fromkeys(old for old, _ in some))
        remember_fil(memory, findings=olds)
        there = memory.records(kind="finding")
        for _, new in some:
            runtime = runtime_of(memory)
            if runtime is None:
                continue
            # As `remember` does before it writes.
            found_near = runtime.search().similar(memory.scope, Record("", "finding", new), NEAREST)
            near = [record for record, _ in found_near]
            found, wanted = (relate(new, [one.text for one in texts]) for texts in (near, there))
            same = found.kind == wanted.kind and (
                found.index is None
                or wanted.index is None
                or near[found.index].text == there[wanted.index].text
            )
            yield wanted.kind, same
