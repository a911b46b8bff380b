"""`python -m benchmarks meaning`: what an embedder adds to recall, by how good it is.

The embedders are made: the vector of a text is random, and that of a question is a mixture of those of its
answers and of noise. At 0 it is noise alone, which must do no harm; at 1 it knows the answers; in between,
each step must pay. Everything goes through the public methods of `Memory`: what is stored is embedded by
`learning.work`.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from benchmarks import locomo, realmem
from benchmarks.conversation_files import files_in, messages_in
from benchmarks.metrics import recall_at
from benchmarks.recall import BEST, SESSION_DEPTH, by_best, parsed
from benchmarks.report import Report, Table
from holdfast.errors import InvalidInput
from holdfast.io.import_items import ImportedMessage
from holdfast.io.sources import SourceFile
from holdfast.learning.embed_job import said
from holdfast.memory import Memory
from holdfast.search.fusion import WEIGHT
from holdfast.settings import Learning, Limit

QUALITIES = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0)
"""The share of the answers in the vector of a question."""
DIMENSION = 256
_MAIN = (1, 2, 3, 4)  # the categories of LoCoMo's main figure
_KNOWN_TURNS = 3  # turns of a session that the vector of a RealMem query is made of
_UNLIMITED = Learning(kinds=(), limits={"embed": Limit(), "recall": Limit()})

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
    """Measure recall with embedders of each quality on LoCoMo and RealMem files, or folders of them.

    Raises:
        InvalidInput: there is no such file, or none of them has questions with known answers.

    """
    found = files_in(paths, locomo.FORMAT, realmem.FORMAT)
    sets: Mapping[str, tuple[list[SourceFile], Callable[[SourceFile, Found], None]]] = {
        "LoCoMo, turns, categories 1–4": ([one for one in found if one.format is locomo.FORMAT], _locomo),
        "RealMem, earlier sessions": ([one for one in found if one.format is realmem.FORMAT], _realmem),
    }
    numbers: dict[str, object] = {}
    tables = []
    for title, (files, measure) in sets.items():
        by_system: Found = {}
        for file in files:
            progress(f"{title}: {file.file.path}")
            measure(file, by_system)
        if by_system:
            means = {name: round(100 * fmean(values), 2) for name, values in by_system.items()}
            numbers[title] = {"questions": len(next(iter(by_system.values()))), "R@10": means}
            rows = tuple((name, f"{value:.1f}") for name, value in means.items())
            tables.append(Table(title, ("system", "R@10"), rows))
    if not tables:
        raise InvalidInput(
            "None of these files has questions with known answers.",
            "Give LoCoMo or RealMem files, or a folder of them.",
        )
    return Report(numbers, tuple(tables))


@contextmanager
def _opened() -> Iterator[dict[str, tuple[Memory, GradedEmbedder]]]:
    """Open a memory for each quality."""
    made = [GradedEmbedder(quality) for quality in QUALITIES]
    memories = {
        f"embedder of quality {one.quality:g}": (
            Memory(":memory:", user="person", embed=one, learning=_UNLIMITED),
            one,
        )
        for one in made
    }
    try:
        yield memories
    finally:
        for memory, _ in memories.values():
            memory.close()


def _text(item: ImportedMessage) -> str:
    return said(item.message.role, item.message.name or "", item.message.content)


def _add(memory: Memory, items: Sequence[ImportedMessage]) -> None:
    for chat, group in groupby(items, lambda item: item.chat.id):
        memory.chat(chat).append([item.message for item in group])


def _locomo(file: SourceFile, found: Found) -> None:
    every = {place: list(items) for place, items in groupby(messages_in(file), lambda item: item.line)}
    data = parsed(file)
    for place, group in enumerate(locomo.questions(data), 1 if isinstance(data, list) else 0):
        items = every.get(place, [])
        texts = {item.message.id: _text(item) for item in items}
        asked = [question for question in group.questions if question.category in _MAIN]
        with _opened() as memories:
            for name, (memory, embedder) in memories.items():
                _add(memory, items)
                memory.learning.work()
                embedder.answers = {one.text: [texts[turn] for turn in one.evidence] for one in asked}
                for question in asked:
                    _note(found, name, memory, question.text, question.evidence, _turns)


def _realmem(file: SourceFile, found: Found) -> None:
    asked = realmem.queries(parsed(file)).queries
    sessions = {place - 1: list(items) for place, items in groupby(messages_in(file), lambda item: item.line)}
    chats = {items[0].chat.id: items for items in sessions.values() if items}
    before = 0
    with _opened() as memories:
        for query in asked:
            new = [item for place in range(before, query.session) for item in sessions.get(place, [])]
            before = query.session
            gold = [item for chat in query.gold for item in chats[chat]]
            known = [_text(item) for item in gold[:: max(1, len(gold) // _KNOWN_TURNS)][:_KNOWN_TURNS]]
            for name, (memory, embedder) in memories.items():
                _add(memory, new)
                memory.learning.work()
                embedder.answers[query.text] = known
                _note(found, name, memory, query.text, query.gold, _sessions)


def _note(
    found: Found,
    name: str,
    memory: Memory,
    text: str,
    gold: Sequence[str],
    rank: Callable[[Memory, str, float], list[str]],
) -> None:
    """Add how much is found of the answers to a question, by words alone once for all."""
    if name.endswith(" 0"):
        found.setdefault("words alone", []).append(recall_at(rank(memory, text, 0), gold, 10))
    found.setdefault(name, []).append(recall_at(rank(memory, text, WEIGHT), gold, 10))


def _turns(memory: Memory, text: str, weight: float) -> list[str]:
    return [hit.id for hit in memory.recall(text, limit=10, meaning=weight)]


def _sessions(memory: Memory, text: str, weight: float) -> list[str]:
    return by_best(memory.recall(text, limit=SESSION_DEPTH, meaning=weight), BEST)[:10]
