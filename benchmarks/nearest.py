"""Part of `python -m benchmarks records`: a new fact is compared with the nearest of however many there are.

What that costs as they grow, and whether it is judged as it is beside all of them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.clock import Cost, high, middle, timed
from benchmarks.judging import held_out, pairs
from benchmarks.measurement import Measurement, at_least, at_most, measured
from benchmarks.sentences import Sentences
from holdfast.dedup import relate
from holdfast.kinds import table
from holdfast.memory import Memory
from holdfast.records.intake import NEAREST
from holdfast.runtime import runtime_of
from holdfast.store import record_changes
from holdfast.store.connect import open_database
from holdfast.tools.presets.observations import remember_fil
from holdfast.types import Record, Scope

SIZES = (100, 2_000, 20_000)  # facts
LIST = 68  # facts of a usual length that a prompt shows: all of so many could be compared
_USER = "ada"
_KIND = table()["fact"]


def growing(folder: Path, sentences: Sentences, sizes: Sequence[int], count: int) -> Iterator[Measurement]:
    """Remember facts beside few and beside many others, in turns."""
    new = sentences.findings(count, stream=1)
    costs: dict[int, list[Cost]] = {size: [] for size in sizes}
    with ExitStack() as open_ones:
        memories = {}
        for size in sizes:
            path = folder / f"facts-{size}.db"
            _store(path, sentences.findings(size))
            memories[size] = open_ones.enter_context(Memory(path, user=_USER))
            memories[size].recall("everything loaded", limit=1)
        for text in new:
            for size, memory in memories.items():
                with timed() as cost:
                    memory.remember(text)
                costs[size].append(cost)
    least = middle(costs[sizes[0]])
    for size in sizes:
        typical = middle(costs[size])
        ratio = typical.cpu / least.cpu
        yield measured(
            f"remember a fact beside {size:,} facts, p50",
            typical,
            against=f"beside {sizes[0]:,}",
            theirs=least,
            ratio=ratio,
            ratio_of="× the time",
            bar=at_most(ratio, 1.5, "× the time") if size != sizes[0] else None,
        )
        yield measured(f"remember a fact beside {size:,} facts, p95", high(costs[size]))


def _store(path: Path, texts: Iterable[str]) -> None:
    """Store facts in one transaction: one call for each is what is measured later."""
    database = open_database(path, "normal")
    try:
        with record_changes.writing(database, Scope(user=_USER).space, time.time_ns() // 1000) as changes:
            for text in texts:
                changes.put(Record("", _KIND.name, text, target="user"), None, by="agent", action="add")
    finally:
        database.close()


def agreeing(files: Sequence[Path]) -> Iterator[Measurement]:
    """Judge the new text of each labelled pair beside the nearest of many, and beside all of them."""
    for file in files or held_out("merge"):
        rows = pairs(file)
        lists = [rows[start : start + LIST] for start in range(0, len(rows), LIST)]
        for name, some in ((f"lists of {LIST}", lists), (f"one list of {len(rows):,}", [rows])):
            counted: Counter[tuple[str, bool]] = Counter()
            for part in some:
                counted.update(_judged([(row["old"], row["new"]) for row in part]))
            for relation in ("duplicate", "update"):
                alike, other = counted[relation, True], counted[relation, False]
                share = 100 * alike / max(1, alike + other)
                bar = at_least(share, 95, "%")
                yield Measurement(
                    f"{relation}s that are found in {name}, of those that comparing with all finds "
                    f"({file.stem})",
                    share,
                    "%",
                    against=f"{alike + other} of {sum(map(len, some))} texts",
                    bar=bar.text,
                    ok=bar.ok,
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
