"""What a filter on metadata costs a recall: of a declared key and of another, where few pass and many do.

Each is asked again and again, and each new one once: what was read for a filter is kept for the next recall.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from benchmarks.clock import Cost, cost_of, each, middle
from benchmarks.measurement import PER_CHAT, Measurement, SpeedLab, measured
from holdfast.memory import Memory
from holdfast.runtime import runtime_of

# Of the values of a key one in so many passes; each key stands there twice, declared and not.
_SHARES = {"1 %": ("rare", 100), "50 %": ("half", 2)}
_DECLARED = ("rare", "half")
_ASKED_ONCE = 5  # filters that were not asked before


def measure(lab: SpeedLab) -> Iterator[Measurement]:
    """Recall with filters in the largest store up to 100,000 messages, beside recalls without."""
    size = max((size for size in lab.plan.sizes if size <= 100_000), default=min(lab.plan.sizes))
    path = lab.folder / "filters.db"
    lab.progress(f"storing {size:,} messages with metadata")
    with Memory(path, user="all", durability="normal", index_meta=_DECLARED) as memory:
        _fill(memory, lab, size)
        memory.recall("index everything now", limit=1)
        yield measured(f"noting the values of a key, {size:,} messages, once", _first(memory, "rare"))
        _first(memory, "half")
    yield from _repeated(lab, path, size)
    yield from _new(lab, path, size)


def _fill(memory: Memory, lab: SpeedLab, size: int) -> None:
    texts = list(lab.words.messages(size))
    for start in range(0, size, PER_CHAT):
        memory.chat(f"chat-{start // PER_CHAT}").append(
            [
                {"role": ("user", "assistant")[n % 2], "content": texts[n], "meta": _metadata(n)}
                for n in range(start, min(start + PER_CHAT, size))
            ]
        )


def _metadata(number: int) -> dict[str, object]:
    # Scattered, as topics are, and in no step with chats and roles.
    at = number * 7_919 // 13
    values = {key: at % several for key, several in _SHARES.values()}
    return {**values, **{f"plain_{key}": value for key, value in values.items()}}


def _first(memory: Memory, key: str) -> Cost:
    return cost_of(lambda: memory.recall("everything noted", where={key: -1}))


def _repeated(lab: SpeedLab, path: Path, size: int) -> Iterator[Measurement]:
    questions = lab.words.questions(lab.plan.queries)
    with Memory(path, user="all", index_meta=_DECLARED) as memory:
        for share, (key, _) in _SHARES.items():
            lab.progress(f"asking with filters that {share} pass")
            for kind, name in (("declared", key), ("not declared", f"plain_{key}")):
                asked: list[Any] = [
                    lambda question, name=name: memory.recall(question, where={name: 1}),
                    memory.recall,
                ]
                for ask in asked:
                    ask("everything loaded")
                ours, without = each(asked, questions, lab.plan.repeats)
                ratio = middle(ours).cpu / middle(without).cpu
                yield measured(
                    f"recall where {share} pass, {kind}, {size:,} messages, p50",
                    middle(ours),
                    against="recall without",
                    theirs=middle(without),
                    ratio=ratio,
                    ratio_of="× the time",
                )


def _new(lab: SpeedLab, path: Path, size: int) -> Iterator[Measurement]:
    """Ask each filter once, and count the rows that the database returns for it."""
    for share, (key, several) in _SHARES.items():
        for kind, name in (("declared", key), ("not declared", f"plain_{key}")):
            lab.progress(f"asking new filters that {share} pass, {kind}")
            costs, rows = [], []
            for value in range(min(several, _ASKED_ONCE)):
                cost, number = _asked_once(path, {name: value})
                costs.append(cost)
                rows.append(number)
            title = f"first recall where {share} pass, {kind}, {size:,} messages"
            yield measured(f"{title}, p50", middle(costs))
            yield Measurement(f"{title}: rows read", sorted(rows)[len(rows) // 2], "rows")


def _asked_once(path: Path, where: dict[str, object]) -> tuple[Cost, int]:
    """Return what a recall with a filter costs that was never asked, and how many rows it reads."""
    with Memory(path, user="all", index_meta=_DECLARED) as memory:
        memory.recall("everything loaded")
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
