"""`python -m benchmarks meaning`: what an embedder adds to recall, by how good it is.

The embedders are made: the vector of a text is random, and that of a question is a mixture of those of its
answers and of noise. At 0 it is noise alone, which must do no harm; at 1 it knows the answers; in between,
each step must pay. Everything goes through the public methods of `Memory`: what is stored is embedded by
`learning.work`.
"""

from __future__ import annotations

import math
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Corpus, Question, Unit
from benchmarks.metrics import recall_at
from benchmarks.readers import found_in
from benchmarks.recall import SESSION_DEPTH, UNLIMITED, ids_of
from benchmarks.report import Report, Table
from holdfast.errors import InvalidInput
from holdfast.learning.embed_job import text_of
from holdfast.memory import Memory
from holdfast.search.fusion import WEIGHT

QUALITIES = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0)
"""The share of the answers in the vector of a question."""
DIMENSION = 256
_KNOWN_TURNS = 3  # messages of a session that the vector of a question about sessions is made of

Found = dict[str, list[float]]  # R@10 of each question, by system


class GradedEmbedder:
    """Embed texts at random, and questions near their answers; `answers` maps a question to texts."""

    def __init__(self, quality: float) -> None:
        self.quality = quality
        self.model = f"graded {quality}"
        self.answers: dict[str, Sequence[str]] = {}

    def embed_documents(self, texts: list[str]) -> list[NDArray[np.float64]]:
        """Return the vectors of texts, the same for the same text."""
        return [_random(text) for text in texts]

    def embed_query(self, text: str) -> NDArray[np.float64]:
        """Return the vector of a question."""
        noise = _random(f"noise of {text}")
        answers = self.answers.get(text, ())
        if not answers:
            return noise
        known = _unit(np.sum([_random(answer) for answer in answers], axis=0))
        return self.quality * known + math.sqrt(1 - self.quality**2) * noise


def _random(text: str) -> NDArray[np.float64]:
    return _unit(np.random.default_rng(zlib.crc32(text.encode())).standard_normal(DIMENSION))


def _unit(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


def run(paths: Sequence[Path], *, progress: Callable[[str], None] = lambda _: None) -> Report:
    """Measure recall with embedders of each quality on the data sets that `recall` reads.

    Raises:
        InvalidInput: there is no such file, or none of them has questions with known answers.

    """
    numbers: dict[str, object] = {}
    tables = []
    for reader, files in groupby(found_in(paths, progress), key=lambda one: one.reader):
        by_system: Found = {}
        for corpus in (corpus for file in files for corpus in file.corpora()):
            progress(f"{reader.name}: {corpus.name}")
            _measure(corpus, reader.main, by_system)
        if by_system:
            means = {name: round(100 * fmean(values), 2) for name, values in by_system.items()}
            numbers[reader.name] = {"questions": len(next(iter(by_system.values()))), "R@10": means}
            rows = tuple((name, f"{value:.1f}") for name, value in means.items())
            tables.append(Table(reader.name, ("system", "R@10"), rows))
    if not tables:
        raise InvalidInput(
            "None of these files has questions with known answers.",
            "Give data sets that `python -m benchmarks recall` reads.",
        )
    return Report(numbers, tuple(tables))


@contextmanager
def _opened() -> Iterator[dict[str, tuple[Memory, GradedEmbedder]]]:
    """Open a memory for each quality."""
    with ExitStack() as opened:
        memories = {}
        for made in map(GradedEmbedder, QUALITIES):
            memory = opened.enter_context(Memory(":memory:", user="person", embed=made, learning=UNLIMITED))
            memories[f"embedder of quality {made.quality:g}"] = memory, made
        yield memories


def _measure(corpus: Corpus, main: Sequence[str], found: Found) -> None:
    # By the id of what a question's gold names: a message, or a session with several texts.
    texts = defaultdict[str, list[str]](list)
    for session in corpus.sessions:
        for message in session.messages:
            key = message.id if corpus.unit == "message" else session.id
            texts[key].append(text_of(message.role, message.name or "", message.content))
    with _opened() as memories:
        for question, new in corpus.asked():
            for memory, _ in memories.values():
                for session in new:
                    memory.chat(session.id).append(list(session.messages))
            if not question.gold or (main and question.kind not in main):
                continue
            known = [text for one in question.gold for text in texts[one]]
            if corpus.unit == "session":
                known = known[:: max(1, len(known) // _KNOWN_TURNS)][:_KNOWN_TURNS]
            for name, (memory, embedder) in memories.items():
                memory.learning.work()
                embedder.answers[question.text] = known
                if name.endswith(" 0"):
                    found.setdefault("words alone", []).append(_found(memory, question, corpus.unit, 0))
                found.setdefault(name, []).append(_found(memory, question, corpus.unit, WEIGHT))


def _found(memory: Memory, question: Question, unit: Unit, weight: float) -> float:
    hits = memory.recall(question.text, limit=SESSION_DEPTH if unit == "session" else 10, meaning=weight)
    return recall_at(ids_of(hits, unit), question.gold, 10)
