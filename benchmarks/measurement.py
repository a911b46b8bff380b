"""One line of the speed report, and what all measurements share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Literal, TypeVar

from benchmarks.clock import Cost, each, high, middle
from benchmarks.machine import in_a_line, machine
from benchmarks.report import Table
from benchmarks.words import Words
from holdfast.memory import Memory
from holdfast.types import Message

PER_CHAT = 100  # messages of a chat in the stores that are measured
PER_BATCH = 1_000  # messages that are stored at once
_START = datetime(2024, 1, 1, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)
_BETWEEN_CHATS = timedelta(hours=8)

COLUMNS = ("measured", "CPU / wall", "beside", "asked for")


_Lab = TypeVar("_Lab")


@dataclass(frozen=True, slots=True)
class Bar:
    """What was asked for, and whether it was reached."""

    text: str
    ok: bool


def at_most(value: float, limit: float, unit: str) -> Bar:
    """Ask for no more than `limit`."""
    return Bar(f"≤ {_short(limit)} {unit}", value <= limit)


def at_least(value: float, limit: float, unit: str) -> Bar:
    """Ask for no less than `limit`."""
    return Bar(f"≥ {_short(limit)} {unit}", value >= limit)


@dataclass(frozen=True, slots=True)
class Measurement:
    """Hold what was measured, what it is held against, and what was asked for.

    `value` and `against_value` are CPU time where they are times, with the wall time beside them; what is no
    time has none. `ratio` is ours over theirs: less is better.
    """

    name: str
    value: float
    unit: str
    wall: float | None = None
    against: str = ""
    against_value: float | None = None
    against_wall: float | None = None
    ratio: float | None = None
    bar: Bar | None = None

    @property
    def ok(self) -> bool | None:
        """Whether what was asked for was reached; None when nothing was."""
        return self.bar.ok if self.bar else None

    def to_json(self) -> dict[str, object]:
        """Return it as JSON-compatible data."""
        return {**asdict(self), "bar": self.bar.text if self.bar else "", "ok": self.ok}

    def itself(self) -> str:
        """Write what was measured."""
        times = [self.value] if self.wall is None else [self.value, self.wall]
        return f"{' / '.join(map(_short, times))} {self.unit}"

    def beside(self) -> str:
        """Write how many times that is what it is held against; of what has no ratio, what stands beside."""
        if self.ratio is not None:
            return f"{_short(self.ratio)} × {self.against}"
        return self.against if self.against_value is None else f"{_short(self.against_value)} {self.against}"

    def asked(self) -> str:
        """Write what was asked for, and whether it was reached."""
        return f"{self.bar.text}: {'yes' if self.bar.ok else 'NO'}" if self.bar else ""


def measured(
    name: str,
    cost: Cost,
    unit: str = "ms",
    *,
    against: str = "",
    theirs: Cost | None = None,
    ratio: float | None = None,
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


def compared(
    name: str,
    ours: Cost,
    against: str,
    theirs: Cost,
    unit: str = "ms",
    *,
    clock: Literal["cpu", "wall"] = "cpu",
    limit: float | None = None,
    bar: Bar | None = None,
) -> Measurement:
    """Make a measurement that is held against another; at most `limit` times its time, or `bar`, is asked."""
    ratio = getattr(ours, clock) / getattr(theirs, clock)
    bar = bar if limit is None else at_most(ratio, limit, "×")
    return measured(name, ours, unit, against=against, theirs=theirs, ratio=ratio, bar=bar)


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def run_parts(
    parts: Mapping[str, Callable[[_Lab], Iterable[Measurement]]], lab: _Lab, only: Sequence[str]
) -> list[Measurement]:
    """Measure the parts that `only` names; all of them when it is empty."""
    return [one for name, measure in parts.items() if not only or name in only for one in measure(lab)]


def table(title: str, measurements: Iterable[Measurement]) -> Table:
    """Put measurements under each other, those of one thing in a row, below what they were made on."""
    rows = []
    for named, same in groupby(measurements, key=lambda one: (one.name, one.itself())):
        pairs = zip(*((one.beside(), one.asked()) for one in same), strict=True)
        rows.append((*named, *("; ".join(filter(None, texts)) for texts in pairs)))
    return Table(f"{title}: {in_a_line(machine())}", COLUMNS, tuple(rows))


def figures(measurements: Sequence[Measurement]) -> dict[str, object]:
    """Return measurements as JSON-compatible data, what they were made on, and which missed their bars."""
    return {
        "machine": machine(),
        "measurements": [one.to_json() for one in measurements],
        "missed": [one.name for one in measurements if one.ok is False],
    }


def ratios(measurements: Iterable[Measurement]) -> dict[str, float]:
    """Return what can be compared with other runs: ratios by name and by what stands beside, and counts."""
    return {
        f"{one.name} × {one.against}" if one.ratio is not None else one.name: round(value, 3)
        for one in measurements
        if (value := one.ratio if one.wall is not None else one.value) is not None
    }


@dataclass(frozen=True, slots=True)
class SpeedPlan:
    """How much is measured; the numbers of messages decide which bars apply."""

    sizes: tuple[int, ...] = (10_000, 100_000)  # of one space
    spaces: int = 100  # many small ones
    per_space: tuple[int, int] = (100, 1_000)
    idle: int = 300  # spaces in which a worker finds nothing to do
    session: int = 100_000  # a long session, and a short one to hold it against
    short_session: int = 1_000
    compacted: tuple[int, int] = (50_000, 5_000)  # the same for sessions that are compacted as they grow
    rounds: int = 10  # of appends, with so many in each
    block: int = 300
    batch: int = PER_BATCH  # messages that are appended in one call
    searchable: int = 10_000  # messages that are new at once
    threads: int = 8  # that append to one file
    settling: int = (
        8  # rounds before those: until its write-ahead log is full once, a new file costs more to write
    )
    queries: int = 40
    slow_queries: int = 5  # where FTS5 takes a tenth of a second or more for each
    repeats: int = 3
    added: int = 300  # messages that are added and looked for at once
    starts: int = 10  # of a Python process

    def effort(self) -> list[int]:
        """Return how often things are measured; of how much, the names of measurements tell."""
        return [self.rounds, self.block, self.queries, self.slow_queries, self.repeats, self.starts]


QUICK = SpeedPlan()
FULL = SpeedPlan(sizes=(10_000, 100_000, 1_000_000), spaces=1_000)


@dataclass(frozen=True, slots=True)
class SpeedLab:
    """What a measurement works with: how much, on what text, in which folder, where to report progress."""

    plan: SpeedPlan
    words: Words
    folder: Path
    progress: Callable[[str], None]
    url: str = ""  # of a server of PostgreSQL; one is started where there is none

    def usual(self) -> int:
        """Return the largest size up to 100,000 messages."""
        return max((size for size in self.plan.sizes if size <= 100_000), default=min(self.plan.sizes))

    def in_turns(
        self, contenders: Sequence[Callable[[str], object]], count: int = 0, asked: Sequence[str] = ()
    ) -> list[list[Cost]]:
        """Ask each these questions, when all is loaded; else `count` of them, by default as planned."""
        for ask in contenders:
            ask("everything loaded")
        asked = asked or self.words.questions(count or self.plan.queries)
        return each(contenders, asked, self.plan.repeats)

    def store(self, size: int, per_chat: int = PER_CHAT) -> Path:
        """Return a file with `size` messages in the space of user "all", indexed; made at the first call."""
        return self._made(f"store-{size}-{per_chat}", ["all"], size, per_chat)

    def users(self, size: int) -> tuple[Path, list[str]]:
        """Return a file with `size` messages in the space of each of many users, indexed, and their names."""
        names = [f"user-{number}" for number in range(self.plan.spaces)]
        return self._made(f"users-{size}", names, size, PER_CHAT), names

    def _made(self, name: str, users: Sequence[str], size: int, per_chat: int) -> Path:
        path = self.folder / f"{name}.db"
        if not path.exists():
            self.progress(f"storing and indexing {size:,} messages of {len(users):,} users")
            with Memory(path, durability="normal") as memory:
                for number, user in enumerate(users):
                    handle = memory.scoped(user=user)
                    fill(handle, self.words, size, per_chat, stream=number)
                    handle.recall("index everything now", limit=1)
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
        if len(pending) == PER_BATCH or place == per_chat - 1:
            memory.chat(f"chat-{chat}").append(pending)
            pending = []
    if pending:
        memory.chat(f"chat-{(count - 1) // per_chat}").append(pending)
