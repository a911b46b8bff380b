"""One line of the speed report, and what all measurements share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from benchmarks.clock import Cost, each, high, middle
from benchmarks.machine import in_a_line, machine
from benchmarks.report import Table
from benchmarks.words import Words
from holdfast.memory import Memory
from holdfast.types import Message

PER_CHAT = 100  # messages of a chat in the stores that are measured
_START = datetime(2024, 1, 1, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)
_BETWEEN_CHATS = timedelta(hours=8)

COLUMNS = (
    "measured",
    "unit",
    "CPU",
    "wall",
    "beside",
    "its CPU",
    "its wall",
    "ratio",
    "asked for",
    "reached",
)


_Lab = TypeVar("_Lab")


@dataclass(frozen=True, slots=True)
class Bar:
    """What was asked for, and whether it was reached."""

    text: str
    ok: bool


def at_most(value: float, limit: float, unit: str) -> Bar:
    """Ask for no more than `limit`."""
    return Bar(f"≤ {limit:g} {unit}", value <= limit)


def at_least(value: float, limit: float, unit: str) -> Bar:
    """Ask for no less than `limit`."""
    return Bar(f"≥ {limit:g} {unit}", value >= limit)


@dataclass(frozen=True, slots=True)
class Measurement:
    """Hold what was measured, what it is held against, and what was asked for.

    `value` and `against_value` are CPU time where they are times, with the wall time beside them; what is no
    time has none. `ratio` is in `ratio_of`: "× as fast" is their time over ours, "× the time" is ours over
    theirs.
    """

    name: str
    value: float
    unit: str
    wall: float | None = None
    against: str = ""
    against_value: float | None = None
    against_wall: float | None = None
    ratio: float | None = None
    ratio_of: str = ""
    bar: Bar | None = None

    @property
    def ok(self) -> bool | None:
        """Whether what was asked for was reached; None when nothing was."""
        return self.bar.ok if self.bar else None

    def to_json(self) -> dict[str, object]:
        """Return it as JSON-compatible data."""
        return {**asdict(self), "bar": self.bar.text if self.bar else "", "ok": self.ok}

    def row(self) -> tuple[str, ...]:
        """Write it as a row of a table with the columns `COLUMNS`."""
        return (
            self.name,
            self.unit,
            _short(self.value),
            _short(self.wall),
            self.against,
            _short(self.against_value),
            _short(self.against_wall),
            f"{_short(self.ratio)} {self.ratio_of}" if self.ratio is not None else "",
            self.bar.text if self.bar else "",
            {True: "yes", False: "NO", None: ""}[self.ok],
        )


def measured(
    name: str,
    cost: Cost,
    unit: str = "ms",
    *,
    against: str = "",
    theirs: Cost | None = None,
    ratio: float | None = None,
    ratio_of: str = "",
    bar: Bar | None = None,
) -> Measurement:
    """Make a measurement of a time; costs are in milliseconds, `unit` is "ms" or "µs"."""
    scale = 1000.0 if unit == "µs" else 1.0
    return Measurement(
        name,
        cost.cpu * scale,
        unit,
        cost.wall * scale,
        against,
        None if theirs is None else theirs.cpu * scale,
        None if theirs is None else theirs.wall * scale,
        ratio,
        ratio_of,
        bar,
    )


def spread(
    title: str, costs: Sequence[Cost], *, limit: float | None = None, against: str = ""
) -> Iterator[Measurement]:
    """Make measurements of the median, with what was asked for in ms, and of the 95th percentile."""
    typical = middle(costs)
    bar = None if limit is None else at_most(typical.cpu, limit, "ms")
    yield measured(f"{title}, p50", typical, against=against, bar=bar)
    yield measured(f"{title}, p95", high(costs))


def compared(name: str, ours: Cost, against: str, theirs: Cost, *, limit: float | None = None) -> Measurement:
    """Make a measurement that is held against another; at most `limit` times its CPU time was asked for."""
    ratio = ours.cpu / theirs.cpu
    bar = None if limit is None else at_most(ratio, limit, "× the time")
    return measured(name, ours, against=against, theirs=theirs, ratio=ratio, ratio_of="× the time", bar=bar)


def _short(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def run_parts(
    parts: Mapping[str, Callable[[_Lab], Iterable[Measurement]]], lab: _Lab, only: Sequence[str]
) -> list[Measurement]:
    """Measure the parts that `only` names; all of them when it is empty."""
    return [one for name, measure in parts.items() if not only or name in only for one in measure(lab)]


def table(title: str, measurements: Iterable[Measurement]) -> Table:
    """Put measurements under each other, below what they were made on."""
    return Table(f"{title}: {in_a_line(machine())}", COLUMNS, tuple(one.row() for one in measurements))


def figures(measurements: Sequence[Measurement]) -> dict[str, object]:
    """Return measurements as JSON-compatible data, what they were made on, and which missed their bars."""
    return {
        "machine": machine(),
        "measurements": [one.to_json() for one in measurements],
        "missed": [one.name for one in measurements if one.ok is False],
    }


@dataclass(frozen=True, slots=True)
class SpeedPlan:
    """How much is measured; the numbers of messages decide which bars apply."""

    sizes: tuple[int, ...] = (10_000, 100_000)  # of one space
    spaces: int = 50  # many small ones
    per_space: int = 1_000
    session: int = 100_000  # a long session, and a short one to hold it against
    short_session: int = 1_000
    compacted: tuple[int, int] = (50_000, 5_000)  # the same for sessions that are compacted as they grow
    rounds: int = 10  # of appends, with so many in each
    block: int = 300
    batch: int = 1_000  # messages that are appended in one call
    threads: int = 8  # that append to one file
    settling: int = (
        8  # rounds before those: until its write-ahead log is full once, a new file costs more to write
    )
    queries: int = 40
    slow_queries: int = 5  # where FTS5 takes a second for each
    repeats: int = 3
    added: int = 300  # messages that are added and looked for at once
    starts: int = 10  # of a Python process


QUICK = SpeedPlan()
FULL = SpeedPlan(sizes=(10_000, 100_000, 1_000_000), spaces=1_000)


@dataclass(frozen=True, slots=True)
class SpeedLab:
    """What a measurement works with: how much, on what text, in which folder, where to report progress."""

    plan: SpeedPlan
    words: Words
    folder: Path
    progress: Callable[[str], None]

    def usual(self) -> int:
        """Return the largest size up to 100,000 messages."""
        return max((size for size in self.plan.sizes if size <= 100_000), default=min(self.plan.sizes))

    def in_turns(self, asked: Sequence[Callable[[str], object]], count: int = 0) -> list[list[Cost]]:
        """Ask each the same questions, when all is loaded; `count` is how many, by default as planned."""
        for ask in asked:
            ask("everything loaded")
        return each(asked, self.words.questions(count or self.plan.queries), self.plan.repeats)

    def store(self, size: int) -> Path:
        """Return a file with `size` messages in the space of user "all", indexed; made at the first call."""
        path = self.folder / f"store-{size}.db"
        if not path.exists():
            self.progress(f"storing and indexing {size:,} messages")
            with Memory(path, user="all", durability="normal") as memory:
                fill(memory, self.words, size)
                memory.recall("index everything now", limit=1)
        return path


def fill(
    memory: Memory,
    words: Words,
    count: int,
    per_chat: int = PER_CHAT,
    stream: int = 0,
    meta: Callable[[int], Mapping[str, object]] = lambda _: {},
) -> None:
    """Store `count` messages in chats of `per_chat`, one after another, at most a thousand a transaction."""
    pending: list[Message] = []
    for number, text in enumerate(words.messages(count, stream)):
        chat, place = divmod(number, per_chat)
        at = _START + chat * _BETWEEN_CHATS + number * _MINUTE
        pending.append(Message("assistant" if place % 2 else "user", text, at=at, meta=meta(number)))
        if len(pending) == 1_000 or place == per_chat - 1:
            memory.chat(f"chat-{chat}").append(pending)
            pending = []
    if pending:
        memory.chat(f"chat-{(count - 1) // per_chat}").append(pending)
