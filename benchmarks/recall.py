"""`python -m benchmarks recall`: how much of what answers a question is found, beside other searches.

Data sets of questions with known answers, told by what is in their files. Everything goes through the public
methods of `Memory`, and each system gets the text that serves it best: the baselines read `name: text` where
a speaker has a name, which raises them by about three points. Where sessions are wanted, the baselines read
each as one text, and Holdfast ranks sessions by their best turns. There is no randomness in it but the seeded
one of the intervals, so two runs differ in their times only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path

from benchmarks.baselines import BASELINES, Baseline, installed
from benchmarks.clock import timed
from benchmarks.datasets import Corpus, Question, Session, Unit
from benchmarks.machine import basis
from benchmarks.metrics import RESAMPLES, SEED, Answer
from benchmarks.readers import found_in
from benchmarks.report import Report, Table
from benchmarks.scoreboard import Scores
from holdfast.errors import InvalidInput
from holdfast.memory import Memory
from holdfast.search.fusion import WEIGHT
from holdfast.settings import Learning, Limit
from holdfast.types import Hit, Message

DEPTH = 100  # the ranks that are looked at: an answer beyond counts as not found
SESSION_DEPTH = 200  # turns that are recalled to rank sessions by
BEST = 3  # turns of a session that count

UNLIMITED = Learning(kinds=(), limits={"embed": Limit(), "recall": Limit()})

Rank = Callable[[str, int], Sequence[str]]  # a question and how many to give, best first


def run(
    paths: Sequence[Path],
    *,
    embed: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Measure recall on the data sets among some files and folders.

    Args:
        paths: files of data sets, or folders of them.
        embed: an embedder as `Memory` takes it: Holdfast finds by its meaning as well, beside words alone.
        progress: is told what is being done.

    Raises:
        InvalidInput: there is no such file, or none of them has questions with known answers.

    """
    sets: dict[str, object] = {}
    tables: list[Table] = []
    files: list[Path] = []
    for reader, found in groupby(found_in(paths, progress), key=lambda one: one.reader):
        by_unit: dict[Unit, Scores] = {}
        for corpus in (corpus for one in found for corpus in one.corpora()):
            files += corpus.files
            scores = by_unit.setdefault(corpus.unit, Scores(reader, corpus.unit))
            progress(f"{reader.name}: {len(corpus.questions)} questions about {corpus.name}")
            _measure(corpus, scores, embed)
        for unit, scores in by_unit.items():
            sets[f"{reader.name}, {unit}s"] = scores.numbers()
            tables += scores.tables()
    if not sets:
        raise InvalidInput(
            "None of these files has questions with known answers.",
            "Give files of LoCoMo or RealMem, sessions of agents with questions.jsonl, or your own; "
            "docs/benchmarks.md has the forms.",
        )
    about: dict[str, object] = {
        **basis(files),
        "intervals": f"[mean, low, high], 95 %, bootstrap of questions, {RESAMPLES} resamples, seed {SEED}",
        "not installed": [name for name in BASELINES if name not in installed()],
    }
    return Report({**about, "sets": sets}, tuple(tables))


def _measure(corpus: Corpus, scores: Scores, embed: str | None) -> None:
    """Ask every question; one sees the sessions that there are when it is asked."""
    baselines: dict[str, Baseline] = {name: make() for name, make in installed().items()}
    with Memory(":memory:", user="person", embed=embed, learning=UNLIMITED) as memory:
        words = {f"{name}, words alone": rank for name, rank in _ours(memory, corpus.unit, 0).items()}
        ours = {**_ours(memory, corpus.unit), **(words if embed else {})}
        systems = {**ours, **{name: one.rank for name, one in baselines.items()}}
        for question, new in corpus.asked():
            for session in new:
                _add(session, corpus.unit, memory, baselines.values())
            if question.gold:
                if embed:
                    memory.learning.work()
                answers = {name: _answer(rank, question) for name, rank in systems.items()}
                scores.add(question, answers)
            else:
                scores.left_out += 1


def _ours(memory: Memory, unit: Unit, meaning: float = WEIGHT) -> dict[str, Rank]:
    def rank(best: int = BEST) -> Rank:
        depth = SESSION_DEPTH if unit == "session" else 0
        return lambda question, limit: ids_of(
            memory.recall(question, limit=depth or limit, meaning=meaning), unit, best
        )[:limit]

    if unit == "message":
        return {"Holdfast": rank()}
    return {f"Holdfast, {BEST} best turns": rank(), "Holdfast, best turn": rank(1)}


def ids_of(hits: Iterable[Hit], unit: Unit, best: int = BEST) -> list[str]:
    """Return the ids of messages, or of sessions by their best turns, best first."""
    return by_best(hits, best) if unit == "session" else [hit.id for hit in hits]


def by_best(hits: Iterable[Hit], count: int) -> list[str]:
    """Rank sessions by the sum of the reciprocal ranks of their best turns; of equals, by the first turn.

    The constant of 60 is that of reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009).
    """
    shares: dict[str, list[float]] = {}
    for rank, hit in enumerate(hits, 1):
        shares.setdefault(hit.chat, []).append(1 / (60 + rank))
    return sorted(shares, key=lambda chat: -sum(shares[chat][:count]))


def _add(session: Session, unit: Unit, memory: Memory, baselines: Iterable[Baseline]) -> None:
    memory.chat(session.id).append(list(session.messages))
    texts = {message.id: _text(message) for message in session.messages}
    if unit == "session":
        texts = {session.id: "\n".join(map(_text, session.messages))}
    for baseline in baselines:
        for key, text in texts.items():
            baseline.add(key, text)


def _text(message: Message) -> str:
    return f"{message.name}: {message.content}" if message.name else message.content


def _answer(rank: Rank, question: Question) -> Answer:
    """Rank as deep as is looked at; the time is that of the few hits that a program asks for."""
    ranked = tuple(rank(question.text, DEPTH))
    with timed() as cost:
        rank(question.text, 10)
    return Answer(ranked, question.gold, cost.cpu, question.outdated)
