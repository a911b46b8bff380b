"""`python -m benchmarks calibration`: whether the score of a hit is how likely it answers.

Everything that recall returns for the questions of the data sets, ten hits each, and for as many questions
about other conversations, to which nothing is an answer. Half of the questions, by a checksum of their words,
give the coefficients of `search/calibration.py`; the scores of the others are compared with what is right.
Records are what the authors of LoCoMo noted of its turns. Summaries are those of a compaction; one that holds
a sentence of an answer is a quarter right, as its reader has to find it among much else. Meaning is tried
with embedders that are made (`benchmarks/meaning.py`).
"""

from __future__ import annotations

import random
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Corpus, Question
from benchmarks.machine import basis
from benchmarks.meaning import GradedEmbedder
from benchmarks.readers import found_in, locomo
from benchmarks.recall import UNLIMITED
from benchmarks.report import Report, Table
from holdfast.errors import InvalidInput
from holdfast.learning.embed_job import text_of
from holdfast.memory import Memory
from holdfast.search.calibration import BY_WORDS, WITH_MEANING, Calibration, ahead
from holdfast.types import SOURCES, Hit, Message, Source

QUALITIES = (0.2, 0.3)
"""Those of the made embedders, which divide what they know of a question among all that answers it."""
DEPTH = 10
BINS = 10
_BUDGET = 300  # tokens into which a session is compacted
_OF_SUMMARY = 0.25  # what a summary that holds an answer counts against a message that is one
_DECAYS = np.linspace(0, 10, 201)
_EACH = 500  # what all questions of a data set count together
_LEAST = 4  # words of a sentence that tells where it is from
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n")


class Answered(NamedTuple):
    """The hits of a question: their scores before calibration, best first, and how right each is, 0 to 1.

    `weight` is what the question counts in a fit.
    """

    question: str
    scores: NDArray[np.float64]
    right: NDArray[np.float64]
    weight: float = 1.0


class Reliability(NamedTuple):
    """How far probabilities hold: the share that is right, the mean error of ten bins, the area under ROC.

    `bins` are tenths of the hits by rising probability: what was predicted, and the share that was right;
    `first` is that of first hits.
    """

    hits: int
    right: float
    error: float
    area: float
    first: tuple[float, float]
    bins: tuple[tuple[float, float], ...]


_FITTED = (
    "Calibration of scores: constant, slope, decay, lead",
    ("hits", "used", "fitted on one half", "of the other", "right %", "error %", "AUC %"),
)
_TENTHS = (
    "Predicted and right, %: first hits, and tenths of all hits",
    ("hits", "first hits", "6th", "7th", "8th", "9th", "10th"),
)


def run(paths: Sequence[Path], *, progress: Callable[[str], None] = lambda _: None) -> Report:
    """Fit the calibrations anew, and measure how far those of the package hold.

    Raises:
        InvalidInput: there is no such file, or none has questions whose answers are messages.

    """
    found = found_in(paths, progress)
    corpora = [one for file in found for one in file.corpora() if one.unit == "message"]
    if not corpora:
        raise InvalidInput(
            "None of these files has questions whose answers are messages.", "Give LoCoMo's, for example."
        )
    facts = {name: some for file in found for name, some in locomo.facts(file.path).items()}
    files = [path for corpus in corpora for path in corpus.files]
    numbers = basis(files)
    rows, tenths = [], []
    made = tuple(map(GradedEmbedder, QUALITIES))
    for how, used, embedders in (("words", BY_WORDS, (None,)), ("words and meaning", WITH_MEANING, made)):
        answers = defaultdict[Source, list[Answered]](list)
        for embedder in embedders:
            progress(f"Hits by {how}{f', {embedder.model}' if embedder else ''}")
            for source, one in _asked(corpora, facts, embedder, used):
                answers[source].append(one)
        for source, some in answers.items():
            halves = [[one for one in some if zlib.crc32(one.question.encode()) % 2 == n] for n in (0, 1)]
            if not all(map(_is_enough, halves)):
                progress(f"Too few hits from a {source} to fit anything to")
                continue
            fitted, result = fit(halves[0]), measure(halves[1], used[source])
            name = f"{source} by {how}"
            numbers[name] = {"used": used[source], "fitted": fitted, "reliability": result._asdict()}
            figures = (f"{100 * value:.1f}" for value in (result.right, result.error, result.area))
            both = (", ".join(f"{value:.2f}" for value in one) for one in (used[source], fitted))
            rows.append((name, *both, f"{result.hits:,}", *figures))
            of_some = (f"{100 * one:.0f} / {100 * two:.0f}" for one, two in (result.first, *result.bins[-5:]))
            tenths.append((name, *of_some))
    return Report(numbers, (Table(*_FITTED, tuple(rows)), Table(*_TENTHS, tuple(tenths))))


def _is_enough(answers: Sequence[Answered]) -> bool:
    """Return whether there are right and wrong ones among first hits and others, and some for each bin."""
    if len(answers) < BINS:
        return False
    first = {one.right[0] for one in answers}
    return len(first) == len({right for one in answers for right in one.right[1:]}) == 2


def fit(answers: Sequence[Answered]) -> Calibration:
    """Return the coefficients of the highest likelihood: of the first hits, then of those that follow."""
    logs = np.log([one.scores[0] for one in answers])
    leads = np.log([ahead(one.scores) for one in answers])
    given, right = np.stack([np.ones(len(logs)), logs, leads], 1), np.array([one.right[0] for one in answers])
    found, weight = np.zeros(3), np.array([one.weight for one in answers])
    for _ in range(50):
        likely = 1 / (1 + np.exp(-given @ found))
        slope = given.T @ (weight * (right - likely)) - 1e-3 * found
        curve = (given * (weight * likely * (1 - likely))[:, None]).T @ given + 1e-3 * np.eye(3)
        found += np.linalg.solve(curve, slope)
    first = 1 / (1 + np.exp(-given @ found))
    others = np.concatenate(
        [[likely] * (len(one.scores) - 1) for likely, one in zip(first, answers, strict=True)]
    )
    behind = np.concatenate([np.sqrt(np.log(one.scores[0] / one.scores[1:])) for one in answers])
    right = np.concatenate([one.right[1:] for one in answers])
    losses = [_loss(others * np.exp(-decay * behind), right) for decay in _DECAYS]
    constant, rise, lead = found.tolist()
    return Calibration(constant, rise, float(_DECAYS[int(np.argmin(losses))]), lead)


def _loss(likely: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    likely = np.clip(likely, 1e-9, 1 - 1e-9)
    return float(-(right * np.log(likely) + (1 - right) * np.log(1 - likely)).mean())


def measure(answers: Sequence[Answered], used: Calibration) -> Reliability:
    """Return how far probabilities hold."""
    right = np.concatenate([one.right for one in answers])
    likely = np.concatenate([used.probabilities(one.scores) for one in answers])
    order = np.argsort(likely, kind="stable")
    bins = tuple(
        (float(likely[some].mean()), float(right[some].mean())) for some in np.array_split(order, BINS)
    )
    error = sum(abs(predicted - observed) for predicted, observed in bins) / BINS
    ranks = np.empty(len(order))
    ranks[order] = np.arange(1, len(order) + 1)
    count = np.count_nonzero(right)
    area = (ranks[right > 0].sum() - count * (count + 1) / 2) / (count * (len(right) - count))
    first = (
        fmean(float(used.probabilities(one.scores)[0]) for one in answers),
        fmean(float(one.right[0]) for one in answers),
    )
    return Reliability(len(right), float(right.mean()), error, float(area), first, bins)


class _Right:
    """What is right for a question, by source."""

    def __init__(self, gold: Mapping[str, Message], facts: Mapping[str, frozenset[str]]) -> None:
        self.gold = gold
        self.facts = [text for text, turns in facts.items() if not turns.isdisjoint(gold)]
        sentences = (one for message in gold.values() for one in _SENTENCE.split(message.content))
        self._sentences = [one for one in sentences if len(one.split()) >= _LEAST]

    def __contains__(self, hit: Hit) -> bool:
        if hit.source == "message":
            return hit.id in self.gold
        return (
            hit.text in self.facts if hit.source == "record" else any(s in hit.text for s in self._sentences)
        )

    def known(self) -> list[str]:
        """List the texts that a made embedder knows to be right."""
        return [*(text_of(one.role, one.name or "", one.content) for one in self.gold.values()), *self.facts]


def _asked(
    corpora: Sequence[Corpus],
    facts: Mapping[str, Mapping[str, frozenset[str]]],
    embedder: GradedEmbedder | None,
    used: Mapping[Source, Calibration],
) -> Iterator[tuple[Source, Answered]]:
    """Yield the hits of all questions, by source."""
    # Chats and coding sessions count alike, however many questions there are about them.
    asked = Counter(corpus.files[0] for corpus in corpora for question in corpus.questions if question.gold)
    for corpus in corpora:
        weight = _EACH / asked[corpus.files[0]]
        noted, said_there = facts.get(corpus.name, {}), {one.id: one for one in corpus.messages()}
        with Memory(":memory:", user="person", embed=embedder, learning=UNLIMITED) as memory:
            _fill(memory, corpus, noted)
            for question in _questions(corpus, corpora):
                right = _Right({one: said_there[one] for one in question.gold}, noted)
                if embedder:
                    embedder.answers[question.text] = right.known()
                for source in SOURCES:
                    # A note of the answer need not be there, and no made embedder knows a summary.
                    if (source == "record" and question.gold and not right.facts) or (
                        source == "summary" and embedder is not None
                    ):
                        continue
                    hits = memory.recall(question.text, sources=[source], limit=DEPTH)
                    if hits:
                        scores = used[source].scores(np.array([hit.score for hit in hits]))
                        worth = _OF_SUMMARY if source == "summary" else 1.0
                        are_right = np.array([worth * (hit in right) for hit in hits])
                        yield source, Answered(question.text, scores, are_right, weight)


def _fill(memory: Memory, corpus: Corpus, facts: Iterable[str]) -> None:
    for session in filter(lambda one: one.messages, corpus.sessions):
        chat = memory.chat(session.id)
        chat.append(list(session.messages))
        chat.compact(budget=_BUDGET)
    for text in facts:
        memory.remember(text)
    memory.learning.work()


def _questions(corpus: Corpus, corpora: Sequence[Corpus]) -> list[Question]:
    """List the questions about a corpus, and as many about others, which have no answer in it."""
    own = [one for one in corpus.questions if one.gold]
    others = [one for other in corpora if other is not corpus for one in other.questions if one.gold]
    foreign = random.Random(corpus.name).sample(others, min(len(own), len(others)))
    return own + [Question(one.text, "", ()) for one in foreign]
