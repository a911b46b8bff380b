"""How fast recall is, with its full ranking, in one large space, in many small ones, and after an append."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice

from benchmarks.baselines import FullText
from benchmarks.clock import Cost, cost_of, each, high, middle, timed
from benchmarks.measurement import PER_CHAT, Bar, Measurement, SpeedLab, at_least, at_most, fill, measured
from holdfast.memory import Memory

_BARS = {100_000: 5.0, 1_000_000: 60.0}  # ms of CPU time at the median
_SAMPLE = 50  # spaces of the many that are measured
_SLOW = 500_000  # messages from which on FTS5 takes a second for each question


def large(lab: SpeedLab) -> Iterator[Measurement]:
    """Recall in one space of each size, against SQLite FTS5 over the same texts and questions."""
    for size in lab.plan.sizes:
        lab.store(size)
        lab.progress(f"asking {size:,} messages")
        yield from _compared(size, *_ask(lab, size))


def _ask(lab: SpeedLab, size: int) -> tuple[list[Cost], list[Cost]]:
    """Ask both, taking turns; where FTS5 needs a second for a question it gets but a few."""
    full_text = FullText(lab.folder / f"fts5-{size}.db")
    for number, text in enumerate(lab.words.messages(size)):
        full_text.add(str(number), text)
    questions = lab.words.questions(lab.plan.queries)
    both = questions[: lab.plan.slow_queries] if size >= _SLOW else questions
    with Memory(lab.store(size), user="all") as memory:
        memory.recall("everything loaded", limit=1)
        ours, theirs = each([memory.recall, lambda asked: full_text.rank(asked, 10)], both, lab.plan.repeats)
        if both is not questions:
            (ours,) = each([memory.recall], questions, lab.plan.repeats)
    return ours, theirs


def _compared(size: int, ours: list[Cost], theirs: list[Cost]) -> Iterator[Measurement]:
    typical, fts5 = middle(ours), middle(theirs)
    limit = _BARS.get(size)
    ratio = fts5.cpu / typical.cpu
    yield measured(
        f"recall in {size:,} messages, p50",
        typical,
        against="FTS5, any word",
        theirs=fts5,
        ratio=ratio,
        ratio_of="× as fast",
        bar=at_least(ratio, 20, "× as fast") if size == 100_000 else None,
    )
    bar = None if limit is None else at_most(typical.cpu, limit, "ms")
    yield measured(f"recall in {size:,} messages, p50", typical, bar=bar)
    yield measured(
        f"recall in {size:,} messages, p95", high(ours), against="FTS5, any word", theirs=high(theirs)
    )


def small(lab: SpeedLab) -> Iterator[Measurement]:
    """Recall in one of many small spaces: the first time ever, in a newly opened memory, and again."""
    spaces, size = lab.plan.spaces, lab.plan.per_space
    lab.progress(f"storing {size:,} messages in each of {spaces:,} spaces")
    path = lab.folder / "spaces.db"
    users = [f"user-{number}" for number in range(spaces)]
    with Memory(path, durability="normal") as memory:
        for number, user in enumerate(users):
            fill(memory.scoped(user=user), lab.words, size, PER_CHAT, stream=2 + number)
        lab.progress("asking small spaces")
        first = _ask_each(memory, users, lab)
    with Memory(path) as memory:
        memory.scoped(user=users[-1]).recall("load the code", limit=1)
        sample = users[:-1][:_SAMPLE] or users
        cold = _ask_each(memory, sample, lab)
        warm = [cost for _ in range(lab.plan.repeats) for cost in _ask_each(memory, sample, lab)]
    title = f"recall in {size:,} messages in each of {spaces:,} spaces"
    for name, costs, limit in (
        ("warm", warm, 1.5),
        ("cold: newly opened", cold, 15.0),
        ("first ever", first, None),
    ):
        bar = None if limit is None else at_most(middle(costs).cpu, limit, "ms")
        yield measured(f"{title}, {name}, p50", middle(costs), bar=bar)


def _ask_each(memory: Memory, users: list[str], lab: SpeedLab) -> list[Cost]:
    questions = islice(cycle(lab.words.questions(lab.plan.queries)), len(users))
    handles = [memory.scoped(user=user) for user in users]
    return [
        cost_of(lambda handle=handle, asked=asked: handle.recall(asked))  # type: ignore[misc]
        for handle, asked in zip(handles, questions, strict=True)
    ]


def added(lab: SpeedLab) -> Iterator[Measurement]:
    """Append and recall at once, in the largest store up to 100,000 messages, while a segment is frozen."""
    size = max((size for size in lab.plan.sizes if size <= 100_000), default=min(lab.plan.sizes))
    path = lab.store(size)
    lab.progress(f"appending and asking at once, {size:,} messages")
    questions = cycle(lab.words.questions(lab.plan.queries))
    appends, both = [], []
    with Memory(path, user="all") as memory:
        memory.recall("everything loaded", limit=1)
        chat = memory.chat("new")
        for text, asked in zip(lab.words.messages(lab.plan.added, stream=1_000_000), questions, strict=False):
            with timed() as cost:
                with timed() as append:
                    chat.append(role="user", content=text)
                memory.recall(asked)
            both.append(cost)
            appends.append(append)
    bar: Bar | None = at_most(middle(both).cpu, 3, "ms") if size == 100_000 else None
    title = f"append, then recall, in {size:,} messages"
    yield measured(f"{title}, p50", middle(both), bar=bar)
    yield measured(f"{title}, p95", high(both))
    yield measured(f"{title}: the append alone, p50", middle(appends))
