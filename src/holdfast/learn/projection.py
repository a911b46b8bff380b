"""The random-projection classifier of seed 004 (odek), kept as the baseline and as a strategy one may choose.

Each text is the sum of one random row per known word, and the cosine decides. Its weakness is part of it: the vocabulary
is that of the stored texts only, so the word that makes the difference (`Lisbon` beside `Berlin`) is unknown, is left
out, and a contradiction scores as high as a repetition. Do not improve it; `merge.py` is the improvement.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from holdfast.learn.merge import Verdict

DIMENSIONS = 256
MERGE, ADD = 0.7, 0.3  # cosines: from the first on it is a merge, up to the second it is new
_SEED = 42
_SHORTEST = 2  # letters of a word
_WORD = re.compile(r"[^\W_]+")

Vector = list[float]


def classify(text: str, existing: Sequence[str], *, merge: float = MERGE, add: float = ADD) -> Verdict:
    """Say how a text relates to those that exist, by the cosine of their random projections.

    What it calls a merge is reported as a duplicate when the texts are equal but for case and punctuation, else as an
    update: its merge has no direction. Thresholds that make no sense are replaced by the defaults.

    >>> classify("User lives in Lisbon", ["User lives in Berlin"]).relation
    'update'
    """
    merge, add = _thresholds(merge, add)
    vocabulary = {word: place for place, word in enumerate(dict.fromkeys(_all_words(existing)))}
    mine = _embed(text, vocabulary)
    best, nearest = 0.0, None
    for place, other in enumerate(existing):
        closeness = _cosine(mine, _embed(other, vocabulary))
        if nearest is None or closeness > best:
            best, nearest = closeness, place
    if nearest is None or best <= add:
        return Verdict("new", None, "far from all others")
    if best < merge:
        return Verdict("unsure", nearest, "neither near nor far")
    if _words(text) == _words(existing[nearest]):
        return Verdict("duplicate", nearest, "the same words")
    return Verdict("update", nearest, "near another one")


def _thresholds(merge: float, add: float) -> tuple[float, float]:
    merge = merge if merge > 0 else MERGE  # NaN included
    return merge, add if 0 < add < merge else ADD


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.lower()) if len(word) >= _SHORTEST]


def _all_words(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        yield from _words(text)


@lru_cache(maxsize=4096)
def _row(place: int) -> tuple[tuple[int, float], ...]:
    """Give a row of the matrix of Achlioptas: its entries that are not zero; the same in every process."""
    chance = random.Random(f"{_SEED}:{place}")  # noqa: S311 - reproducible, not secret
    size = math.sqrt(3 / DIMENSIONS)
    throws = [chance.randrange(6) for _ in range(DIMENSIONS)]
    return tuple((at, size if throw else -size) for at, throw in enumerate(throws) if throw < 2)


def _embed(text: str, vocabulary: dict[str, int]) -> Vector:
    vector = [0.0] * DIMENSIONS
    for word in _words(text):
        if word in vocabulary:
            for at, value in _row(vocabulary[word]):
                vector[at] += value
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length else vector


def _cosine(one: Vector, other: Vector) -> float:
    cosine = sum(a * b for a, b in zip(one, other, strict=True))
    return 0.0 if math.isnan(cosine) else cosine
