"""`python -m benchmarks calibration`: whether the score of a hit is how likely it answers.

Everything that recall returns for the questions of the data sets, ten hits each, and for as many questions
about other conversations, to which nothing is an answer. Half of the questions, by a checksum of their words,
give the coefficients of `search/calibration.py`; the scores of the others are compared with what is right.
Records are what the authors of LoCoMo noted of its turns. Summaries are those of a compaction, and right if
they hold a sentence of an answer. Meaning is tried with the vectors of words that the package has, averaged,
and with embedders that are made (`benchmarks/meaning.py`).
"""

from __future__ import annotations

import random
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Corpus, Question
from benchmarks.machine import checksums, commit, machine
from benchmarks.meaning import UNLIMITED, GradedEmbedder
from benchmarks.readers import found_in, locomo
from benchmarks.report import Report, Table
from holdfast.errors import InvalidInput
from holdfast.learning.embed_job import said
from holdfast.memory import Memory
from holdfast.search.calibration import BY_WORDS, WITH_MEANING, Calibration
from holdfast.text import vectors
from holdfast.types import SOURCES, Hit, Message, Source

QUALITIES = (0.2, 0.3)
"""Those of the made embedders, which divide what they know of a question among all that answers it."""
DEPTH = 10
BINS = 10
_BUDGET = 300  # tokens into which a session is compacted
_LEAST = 4  # words of a sentence that tells where it is from
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n")


class WordVectors(GradedEmbedder):
    """Embed a text as the mean of the vectors of its words: a weak embedder, but a real one."""

    def __init__(self) -> None:
        super().__init__(1.0)
        self.model = "word vectors"

    def embed_documents(self, texts: list[str]) -> list[NDArray[np.float64]]:
        """Return the vectors of texts; zeros for one without a known word."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> NDArray[np.float64]:
        """Return the vector of a question, which is a text like any other."""
        table = vectors.table()
        total = np.zeros(table.vectors.shape[1])
        for word in re.findall(r"[a-z]+", text.lower()):
            row = vectors.row(word)
            if row is not None:
                total += vectors.weight(word) * table.vectors[row]
        return total


class Sample(NamedTuple):
    """A hit: its score before calibration, that of the best, and whether it is right."""

    question: str
    score: float
    best: float
    right: bool


class Reliability(NamedTuple):
    """How far probabilities hold: the share that is right, the mean error of ten bins, the area under ROC.

    `bins` are tenths of the hits by rising probability: what was predicted, and the share that was right.
    """

    hits: int
    right: float
    error: float
    area: float
    bins: tuple[tuple[float, float], ...]


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
    numbers: dict[str, object] = {"commit": commit(), "machine": machine(), "files": checksums(files)}
    rows, tenths = [], []
    made = (WordVectors(), *map(GradedEmbedder, QUALITIES))
    for how, used, embedders in (("words", BY_WORDS, (None,)), ("words and meaning", WITH_MEANING, made)):
        samples = defaultdict[Source, list[Sample]](list)
        for embedder in embedders:
            progress(f"Hits by {how}{f', {embedder.model}' if embedder else ''}")
            for source, one in _asked(corpora, facts, embedder, used):
                samples[source].append(one)
        for source, some in samples.items():
            halves = [[one for one in some if zlib.crc32(one.question.encode()) % 2 == n] for n in (0, 1)]
            if any(len(half) < BINS or len({one.right for one in half}) < 2 for half in halves):
                progress(f"Too few hits from a {source} to fit anything to")
                continue
            fitted, result = fit(halves[0], best=bool(used[source].best)), measure(halves[1], used[source])
            name = f"{source} by {how}"
            numbers[name] = {"used": used[source], "fitted": fitted, "reliability": result._asdict()}
            rows.append((name, _coefficients(used[source]), _coefficients(fitted), *_figures(result)))
            tenths.append((name, *(f"{100 * p:.0f} / {100 * right:.0f}" for p, right in result.bins[-5:])))
    about = ("hits", "used", "fitted on one half", "of the other", "right %", "error %", "AUC %")
    return Report(
        numbers,
        (
            Table("Calibration of scores: constant, score, best", about, tuple(rows)),
            Table(
                "Predicted and right, %, by tenths of the hits",
                ("hits", "6th", "7th", "8th", "9th", "10th"),
                tuple(tenths),
            ),
        ),
    )


def _coefficients(one: Calibration) -> str:
    return ", ".join(f"{value:.2f}" for value in one)


def _figures(one: Reliability) -> tuple[str, ...]:
    return (f"{one.hits:,}", *(f"{100 * value:.1f}" for value in (one.right, one.error, one.area)))


def fit(samples: Sequence[Sample], *, best: bool) -> Calibration:
    """Return the coefficients of the highest likelihood, by Newton's method."""
    logs = [np.log([one.score for one in samples])]
    if best:
        logs.append(np.log([one.best for one in samples]))
    given, right = (
        np.stack([np.ones(len(samples)), *logs], 1),
        np.array([one.right for one in samples], float),
    )
    found = np.zeros(given.shape[1])
    for _ in range(50):
        likely = 1 / (1 + np.exp(-given @ found))
        slope = given.T @ (right - likely) - 1e-3 * found
        curve = (given * (likely * (1 - likely))[:, None]).T @ given + 1e-3 * np.eye(len(found))
        found += np.linalg.solve(curve, slope)
    return Calibration(*found.tolist())


def measure(samples: Sequence[Sample], used: Calibration) -> Reliability:
    """Return how far probabilities hold."""
    right = np.array([one.right for one in samples], float)
    likely = np.array([used.probabilities(np.array([one.score]), one.best)[0] for one in samples])
    order = np.argsort(likely, kind="stable")
    bins = tuple(
        (float(likely[some].mean()), float(right[some].mean())) for some in np.array_split(order, BINS)
    )
    error = sum(abs(predicted - observed) for predicted, observed in bins) / BINS
    ranks = np.empty(len(order))
    ranks[order] = np.arange(1, len(order) + 1)
    positive = right.sum()
    area = (ranks[right == 1].sum() - positive * (positive + 1) / 2) / (positive * (len(right) - positive))
    return Reliability(len(samples), float(right.mean()), error, float(area), bins)


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
        return [*(said(one.role, one.name or "", one.content) for one in self.gold.values()), *self.facts]


def _asked(
    corpora: Sequence[Corpus],
    facts: Mapping[str, Mapping[str, frozenset[str]]],
    embedder: GradedEmbedder | None,
    used: Mapping[Source, Calibration],
) -> Iterator[tuple[Source, Sample]]:
    """Yield the hits of all questions, by source."""
    for corpus in corpora:
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
                        source == "summary" and type(embedder) is GradedEmbedder
                    ):
                        continue
                    hits = memory.recall(question.text, sources=[source], limit=DEPTH)
                    scores = scores_before([hit.score for hit in hits], used[source])
                    for score, hit in zip(scores, hits, strict=True):
                        yield source, Sample(question.text, score, scores[0], hit in right)


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


def scores_before(likely: Sequence[float], used: Calibration) -> list[float]:
    """Return what the scores of hits were before calibration; the first is the best."""
    if not likely:
        return []
    odds = np.array(likely) / (1 - np.array(likely)) / np.exp(used.constant)
    best = odds[0] ** (1 / (used.score + used.best))
    scores: list[float] = ((odds / best**used.best) ** (1 / used.score)).tolist()
    return scores
