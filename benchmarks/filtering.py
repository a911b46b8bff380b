"""What a filter on metadata costs a recall, where few pass and many do.

Each is asked again and again; as the first one by its key in a process, which reads the metadata of all
messages; and as a new one by a key whose values were read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.clock import Cost, cost_of, middle
from benchmarks.measurement import Measurement, SpeedLab, compared, fill, measured
from holdfast.memory import Memory

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
    """Ask each filter once, in a memory of its own, and another one by the same key."""
    for share, (key, several) in _SHARES.items():
        lab.progress(f"asking new filters that {share} pass")
        first, later = list[Cost](), list[Cost]()
        for value in range(min(several, _ASKED_ONCE)):
            with Memory(path, user="all") as memory:
                memory.recall("everything loaded")
                for costs, wanted in ((first, value), (later, {"$in": [value, -1]})):
                    ask = partial(memory.recall, "which of them", where={key: wanted})
                    costs.append(cost_of(ask))
        for kind, costs in (("first filter by a key", first), ("next filter by it", later)):
            yield measured(f"{kind}, {share} pass, {size:,} messages, p50", middle(costs))
