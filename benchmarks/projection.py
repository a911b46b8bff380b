"""The random-projection comparison of seed 004 (odek), the baseline that ours is measured beside.

Each text is the sum of one random row per known word, and the cosine decides. Its weakness is part of it: the
vocabulary is that of the stored text only, so the word that makes the difference (`Lisbon` beside `Berlin`)
is unknown, is left out, and a contradiction scores as high as a repetition. Do not improve it.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from functools import lru_cache

DIMENSIONS = 256
MERGE, ADD = 0.7, 0.3  # cosines: from the first on it is a merge, up to the second it is new
_SEED = 42
_WORD = re.compile(r"[^\W_]{2,}")


def relation(old: str, new: str) -> str:
    """Return how a new text relates to an old one, by the cosine of their random projections.

    What it calls a merge is a duplicate when the texts are equal but for case and punctuation, else an
    update: its merge has no direction.

    >>> relation("User lives in Berlin", "User lives in Lisbon")
    'update'
    """
    known, said = _words(old), _words(new)
    places = {word: place for place, word in enumerate(dict.fromkeys(known))}
    mine, theirs = (_projected([places[word] for word in words if word in places]) for words in (said, known))
    cosine = sum(a * b for a, b in zip(mine, theirs, strict=True))
    if cosine <= ADD:
        return "new"
    if cosine < MERGE:
        return "unsure"
    return "duplicate" if said == known else "update"


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _projected(places: Sequence[int]) -> list[float]:
    vector = [sum(column) for column in zip(*map(_row, places), strict=True)] or [0.0] * DIMENSIONS
    length = math.hypot(*vector) or 1.0
    return [value / length for value in vector]


@lru_cache(maxsize=4096)
def _row(place: int) -> tuple[float, ...]:
    """Return a row of the matrix of Achlioptas; the same in every process."""
    chance = random.Random(f"{_SEED}:{place}")
    size = math.sqrt(3 / DIMENSIONS)
    throws = (chance.randrange(6) for _ in range(DIMENSIONS))
    return tuple((size, -size)[throw == 0] if throw < 2 else 0.0 for throw in throws)
