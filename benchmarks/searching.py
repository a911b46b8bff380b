"""How fast recall is, with its full ranking: in one large space, in many small ones, and after an append.

Beside it the searches that are installed, over the same texts and questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path

from benchmarks.baselines import Baseline, Bm25s, FullText, Tantivy, installed
from benchmarks.clock import Cost, cost_of, high, middle, timed
from benchmarks.footprint import compiling, start
from benchmarks.measurement import Measurement, SpeedLab, at_most, compared, fill, measured, spread
from holdfast.memory import Memory

_TANTIVY = {100_000: 1.6, 1_000_000: 2.8}  # times that it takes
_SAMPLE = 50  # spaces of the many that are measured
_SLOW = 500_000  # messages from which on FTS5 takes a second for each question
_BUDGET = 8_000  # tokens of a prompt

_FIRST = """
import sys
from holdfast import Memory
with Memory(sys.argv[1], user="all") as memory:
    memory.recall(sys.argv[2])
"""
_FIRST_OF_FTS5 = """
import re, sqlite3, sys
words = " OR ".join(f'"{word}"' for word in set(re.findall(r"\\w+", sys.argv[2].lower())))
ask = "SELECT key FROM texts WHERE texts MATCH ? ORDER BY bm25(texts) LIMIT 10"
sqlite3.connect(sys.argv[1]).execute(ask, (words,)).fetchall()
"""
_FIRST_OF_TANTIVY = """
import re, sys, tantivy
index = tantivy.Index.open(sys.argv[1])
query = index.parse_query(" ".join(re.findall(r"\\w+", sys.argv[2].lower())), ["text"])
searcher = index.searcher()
[searcher.doc(address) for _, address in searcher.search(query, 10).hits]
"""


def large(lab: SpeedLab) -> Iterator[Measurement]:
    """Recall in one space of each size, and ask the others the same questions, in turns."""
    for size in lab.plan.sizes:
        lab.store(size)
        lab.progress(f"asking {size:,} messages")
        others = {
            name: _filled(lab, make, lab.folder / f"large-{size}-{number}", size)
            for number, (name, (make, _)) in enumerate(_searches().items())
        }
        with Memory(lab.store(size), user="all") as memory:
            asked = [memory.recall, *(_top(other) for other in others.values())]
            ours, *theirs = lab.in_turns(asked, 0 if size < _SLOW else lab.plan.slow_queries)
        yield from _compared(size, ours, dict(zip(others, theirs, strict=True)))


def _searches() -> dict[str, tuple[Callable[[Path], Baseline], str]]:
    """Return what makes each of the others at a path, and the program that asks one that is there.

    One that reads all texts for each question is no index, and one in memory alone has no first question.
    """
    makers: dict[type, tuple[Callable[[Path], Baseline], str]] = {
        FullText: (FullText, _FIRST_OF_FTS5),
        Tantivy: (Tantivy, _FIRST_OF_TANTIVY),
        Bm25s: (lambda _: Bm25s(), ""),
    }
    return {name: makers[kind] for name, kind in installed().items() if kind in makers}


def _filled(lab: SpeedLab, make: Callable[[Path], Baseline], path: Path, size: int) -> Baseline:
    other = make(path)
    for number, text in enumerate(lab.words.messages(size)):
        other.add(str(number), text)
    other.rank("index everything now", 1)
    return other


def _top(other: Baseline) -> Callable[[str], object]:
    return lambda question: other.rank(question, 10)


def _compared(size: int, ours: list[Cost], others: dict[str, list[Cost]]) -> Iterator[Measurement]:
    for name, theirs in others.items():
        limit = _TANTIVY.get(size) if name == "tantivy" else None
        title = f"recall in {size:,} messages, p50"
        yield compared(title, middle(ours), name, middle(theirs), limit=limit)
    yield measured(f"recall in {size:,} messages, p95", high(ours))


def prompts(lab: SpeedLab) -> Iterator[Measurement]:
    """Make a prompt with what is recalled for it, in the largest store up to 100,000 messages."""
    size = lab.usual()
    path = lab.store(size)
    lab.progress(f"prompts in {size:,} messages")
    with Memory(path, user="all") as memory:
        chat = memory.chat("chat-0")
        contenders: list[Callable[[str], object]] = [
            lambda asked: chat.prompt(_BUDGET, query=asked),
            memory.recall,
        ]
        ours, recall = lab.in_turns(contenders)
    cost = middle(ours)
    yield measured(
        f"prompt of {_BUDGET:,} tokens with recall, {size:,} messages",
        cost,
        against="recall alone",
        theirs=middle(recall),
        ratio=cost.cpu / middle(recall).cpu,
        ratio_of="× the time",
        bar=at_most(cost.cpu, 4.5, "ms") if size == 100_000 else None,
    )


def first(lab: SpeedLab) -> Iterator[Measurement]:
    """Ask the first question of a new process, over the start of Python itself, in turns."""
    size = lab.usual()
    programs = {"bare Python": ("pass", lab.folder), "Holdfast": (_FIRST, lab.store(size))}
    for name, (make, program) in _searches().items():
        if program:
            lab.progress(f"indexing {size:,} messages for {name}")
            path = lab.folder / f"first-{len(programs)}"
            _filled(lab, make, path, size)
            programs[name] = (program, path)
    lab.progress("asking in new processes")
    environment = compiling(lab)
    costs: dict[str, list[Cost]] = {name: [] for name in programs}
    for question in lab.words.questions(lab.plan.starts + 1):
        for name, (program, path) in programs.items():
            costs[name].append(start(["-c", program, str(path.resolve()), question], environment))
    # The first of each compiles.
    found = {name: middle(some[1:]) for name, some in costs.items()}
    bare = found.pop("bare Python")
    ours = found.pop("Holdfast") - bare
    title = f"first question in a new process, {size:,} messages, over bare Python"
    yield measured(title, ours, bar=at_most(ours.cpu, 90, "ms") if size == 100_000 else None)
    for name, theirs in found.items():
        yield compared(title, ours, name, theirs - bare)


def small(lab: SpeedLab) -> Iterator[Measurement]:
    """Recall in one of many small spaces: the first time ever, in a newly opened memory, and again."""
    spaces, size = lab.plan.spaces, lab.plan.per_space
    lab.progress(f"storing {size:,} messages in each of {spaces:,} spaces")
    path = lab.folder / "spaces.db"
    users = [f"user-{number}" for number in range(spaces)]
    with Memory(path, durability="normal") as memory:
        for number, user in enumerate(users):
            fill(memory.scoped(user=user), lab.words, size, stream=2 + number)
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
    size = lab.usual()
    path = lab.store(size)
    lab.progress(f"appending and asking at once, {size:,} messages")
    questions = cycle(lab.words.questions(lab.plan.queries))
    costs = []
    with Memory(path, user="all") as memory:
        memory.recall("everything loaded", limit=1)
        chat = memory.chat("new")
        for text, asked in zip(lab.words.messages(lab.plan.added, stream=1_000_000), questions, strict=False):
            with timed() as cost:
                chat.append(role="user", content=text)
                memory.recall(asked)
            costs.append(cost)
    title = f"append, then recall, in {size:,} messages"
    yield from spread(title, costs, limit=3 if size == 100_000 else None)
