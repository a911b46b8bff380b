"""How fast recall is, with its full ranking: in one large space, in many small ones, and of new messages.

Beside it the searches that are installed, over the same texts and questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path

from benchmarks.baselines import Baseline, FullText, Tantivy, installed
from benchmarks.clock import Cost, cost_of, middle, timed
from benchmarks.footprint import compiling, start
from benchmarks.measurement import PER_BATCH, Measurement, SpeedLab, at_most, compared, spread
from holdfast.memory import Memory
from holdfast.types import Message

_ASKED = {100_000: 1.6, 1_000_000: 2.2}  # times that tantivy takes
_OPENED = {100: 2.5, 1_000: 2.0}  # ms, by the messages of a user
_SAMPLE = 50  # spaces of the many that are measured
_FREQUENT = 6  # words of a question
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
        for name, costs in zip(others, theirs, strict=True):
            limit = _ASKED.get(size) if name == "tantivy" else None
            cost = middle(ours)
            bar = at_most(cost.cpu, 0.9, "ms") if size == 10_000 and name == "FTS5" else None
            yield compared(f"recall, {size:,} messages", cost, name, middle(costs), limit=limit, bar=bar)


def in_one_chat(lab: SpeedLab) -> Iterator[Measurement]:
    """Recall in one long chat by words that many of its messages have, beside FTS5, in turns."""
    size = lab.plan.session
    path = lab.store(size, per_chat=size)
    lab.progress(f"asking a chat of {size:,} messages")
    other = _filled(lab, FullText, lab.folder / "one-chat", size)
    with Memory(path, user="all") as memory:
        asked = lab.words.frequent(lab.plan.slow_queries, _FREQUENT)
        ours, theirs = map(middle, lab.in_turns([memory.recall, _top(other)], asked=asked))
    bar = at_most(ours.cpu, 8, "ms") if size == 100_000 else None
    yield compared(f"recall, one chat of {size:,}, frequent", ours, "FTS5", theirs, bar=bar)


def _searches() -> dict[str, tuple[Callable[[Path], Baseline], str]]:
    """Return what makes each of the others at a path, and the program that asks one that is there."""
    kinds = installed().values()
    tantivy = {"tantivy": (Tantivy, _FIRST_OF_TANTIVY)} if Tantivy in kinds else {}
    return {"FTS5": (FullText, _FIRST_OF_FTS5), **tantivy}


def _filled(lab: SpeedLab, make: Callable[[Path], Baseline], path: Path, size: int) -> Baseline:
    other = make(path)
    _added(other, lab.words.messages(size))
    return other


def _top(other: Baseline) -> Callable[[str], object]:
    return lambda question: other.rank(question, 10)


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
        ours, recall = map(middle, lab.in_turns(contenders))
    bar = at_most(ours.cpu, 5, "ms") if size == 100_000 else None
    title = f"prompt of {_BUDGET:,} with recall, {size:,}"
    yield compared(title, ours, "recall", recall, bar=bar)


def first(lab: SpeedLab) -> Iterator[Measurement]:
    """Ask the first question of a new process, over the start of Python itself, in turns."""
    size = lab.usual()
    programs = {"bare Python": ("pass", lab.folder), "Holdfast": (_FIRST, lab.store(size))}
    for name, (make, program) in _searches().items():
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
    title = f"first question of a process, {size:,}"
    bar = at_most(ours.cpu, 110, "ms") if size == 100_000 else None
    for name, theirs in found.items():
        yield compared(title, ours, name, theirs - bare, bar=bar if name == "FTS5" else None)


def small(lab: SpeedLab) -> Iterator[Measurement]:
    """Recall of users with few messages, the first time in an open memory, beside opening FTS5; and again."""
    for size in lab.plan.per_space:
        path, users = lab.users(size)
        lab.progress(f"asking users of {size:,} messages")
        _filled(lab, FullText, fts5 := lab.folder / f"user-of-{size}", size)
        questions = list(islice(cycle(lab.words.questions(lab.plan.queries)), len(users[:_SAMPLE])))
        with Memory(path) as memory:
            memory.scoped(user=users[-1]).recall("load the code", limit=1)
            asks = [memory.scoped(user=user).recall for user in users[:_SAMPLE]]
            cold, warm = (
                middle([cost_of(partial(ask, text)) for ask, text in zip(asks, questions, strict=True)])
                for _ in range(2)
            )
        theirs = middle([cost_of(lambda text=text: FullText(fts5).rank(text, 10)) for text in questions])  # type: ignore[misc]  # bound at once
        bar = at_most(cold.cpu, _OPENED[size], "ms") if size in _OPENED else None
        yield compared(f"newly opened user of {size:,} messages", cold, "FTS5 opened", theirs, bar=bar)
        yield compared(f"the same user again, {size:,} messages", warm, "FTS5 opened", theirs)


def searchable(lab: SpeedLab) -> Iterator[Measurement]:
    """Store and find many messages at once, beside the others: from the texts to the first answer."""
    size = lab.plan.searchable
    lab.progress(f"storing {size:,} messages until they are found")
    texts = list(lab.words.messages(size, stream=3))
    costs: dict[str, list[Cost]] = {}
    for number in range(lab.plan.repeats):
        others = {name: make(lab.folder / f"new-{name}-{number}") for name, (make, _) in _searches().items()}
        with Memory(lab.folder / f"new-{number}.db", user="all", durability="normal") as memory:
            works = {"Holdfast": partial(_found, memory, texts)}
            works |= {name: partial(_added, other, texts) for name, other in others.items()}
            for name, work in works.items():
                costs.setdefault(name, []).append(cost_of(work) / size)
    found = {name: middle(some) for name, some in costs.items()}
    ours = found.pop("Holdfast")
    bar = at_most(1e3 * ours.cpu, 20, "µs")
    for name, theirs in found.items():
        title = f"until searchable, a message of {size:,}"
        yield compared(title, ours, name, theirs, "µs", bar=bar if name == "FTS5" else None)


def _found(memory: Memory, texts: Sequence[str]) -> None:
    for first in range(0, len(texts), PER_BATCH):
        block = [Message("user", text) for text in texts[first : first + PER_BATCH]]
        memory.chat(f"chat-{first}").append(block)
    memory.recall("index everything now", limit=1)


def _added(other: Baseline, texts: Iterable[str]) -> None:
    for number, text in enumerate(texts):
        other.add(str(number), text)
    other.rank("index everything now", 1)


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
