"""What a filter on metadata costs a recall, where few pass and many do.

Each is asked again and again; as the first one by its key in a process, which reads the metadata of all
messages; and as a new one by a key whose values were read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Self

from benchmarks.clock import Cost, cost_of, middle
from benchmarks.measurement import Measurement, SpeedLab, compared, fill, measured
from holdfast.memory import Memory
from holdfast.runtime import runtime_of

# Of the values of a key one in so many passes.
_SHARES = {"1 %": ("rare", 100), "50 %": ("half", 2)}
_ASKED_ONCE = 5  # filters that were not asked before


def measure(lab: SpeedLab) -> Iterator[Measurement]:
    """Recall with filters in the largest store up to 100,000 messages, beside recalls without."""
    size = lab.usual()
    path = lab.folder / "filters.db"
    lab.progress(f"storing {size:,} messages with metadata")
    with Memory(path, user="all", durability="normal") as memory:
        fill(memory, lab.words, size, meta=_metadata)
        memory.recall("index everything now", limit=1)
    yield from _repeated(lab, path, size)
    yield from _new(lab, path, size)


def _metadata(number: int) -> dict[str, object]:
    # Scattered, as topics are, and in no step with chats and roles.
    at = number * 7_919 // 13
    return {key: at % several for key, several in _SHARES.values()}


def _repeated(lab: SpeedLab, path: Path, size: int) -> Iterator[Measurement]:
    with Memory(path, user="all") as memory:
        for share, (key, _) in _SHARES.items():
            lab.progress(f"asking with filters that {share} pass")
            ours, without = lab.in_turns([partial(memory.recall, where={key: 1}), memory.recall])
            name = f"recall where {share} pass, {size:,} messages, p50"
            yield compared(name, middle(ours), "recall without", middle(without))


def _new(lab: SpeedLab, path: Path, size: int) -> Iterator[Measurement]:
    """Ask each filter once, and count the rows that the database returns for it."""
    for share, (key, several) in _SHARES.items():
        lab.progress(f"asking new filters that {share} pass")
        first, later = [], []
        for value in range(min(several, _ASKED_ONCE)):
            with Memory(path, user="all") as memory:
                memory.recall("everything loaded")
                first.append(_asked(memory, {key: value}))
                later.append(_asked(memory, {key: {"$in": [value, -1]}}))
        for kind, asked in (("first filter by a key", first), ("next filter by it", later)):
            title = f"{kind}, {share} pass, {size:,} messages"
            yield measured(f"{title}, p50", middle([cost for cost, _ in asked]))
            yield Measurement(
                f"{title}: rows read", sorted(rows for _, rows in asked)[len(asked) // 2], "rows"
            )


def _asked(memory: Memory, where: dict[str, object]) -> tuple[Cost, int]:
    """Return what a recall with a filter costs, and how many rows it reads."""
    with Rows(memory) as counted:
        cost = cost_of(lambda: memory.recall("which of them", where=where))
    return cost, counted.number


class Rows:
    """Counts the rows that the statements of a memory return."""

    def __init__(self, memory: Memory) -> None:
        self._database: Any = found.database if (found := runtime_of(memory)) else None
        self.number = 0

    def __enter__(self) -> Self:
        run = self._database.all

        def counting(sql: str, **values: Any) -> Any:
            rows = run(sql, **values)
            self.number += len(rows)
            return rows

        self._database.all = counting
        return self

    def __exit__(self, *_: object) -> None:
        del self._database.all
