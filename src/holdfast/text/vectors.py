"""Word vectors: words of similar meaning have similar ones. About 27,000 English words.

`scripts/make_vectors.py` makes the table from an open sentence encoder; `vectors.LICENSE.txt` names it.
Nothing of the encoder is needed to use the table, and nothing is looked up anywhere else.
"""

from __future__ import annotations

from functools import cache
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.text.tables import packaged_bytes, packaged_text

_COMMON, _RARE = 300, 4.5  # the number of common words, and how slowly the weight rises after them
_LEAST = 0.25  # the weight of the most common word


class VectorTable(NamedTuple):
    """The rows of the words, the most common first, and their vectors of length 1."""

    rows: dict[str, int]
    vectors: NDArray[np.float32]  # (words, dimensions)


@cache
def table() -> VectorTable:
    """Return the table. The first call takes 8 ms."""
    words = packaged_text("holdfast.text", "vectors.txt").split()
    packed = np.frombuffer(packaged_bytes("holdfast.text", "vectors.bin"), np.int8)
    vectors = packed.reshape(len(words), -1).astype(np.float32)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return VectorTable(dict(zip(words, range(len(words)), strict=True)), vectors)


def row(word: str) -> int | None:
    """Return the row of a word in lower case, or of the word without a plural's s; None if unknown."""
    rows = table().rows
    found = rows.get(word)
    return rows.get(word[:-1]) if found is None and word.endswith("s") else found


def similar(word: str, count: int, least: float) -> list[str]:
    """Return up to `count` words whose vectors are similar to that of a word, the most similar first."""
    place = row(word)
    if place is None:
        return []
    vectors = table().vectors
    # Not by BLAS, whose threads cost more than so small a product.
    similarity = np.einsum("ij,j->i", vectors, vectors[place])
    places = np.flatnonzero(similarity >= least)
    best = places[np.argsort(-similarity[places], kind="stable")][:count]
    return [_words()[number] for number in best.tolist()]


@cache
def _words() -> tuple[str, ...]:
    return tuple(table().rows)


def weight(word: str) -> float:
    """Return the weight of a word by its rarity, 0.25 to 1; an unknown word is rare.

    >>> weight("the") < weight("mountain") < weight("xylophone")
    True
    """
    place = table().rows.get(word)
    return 1.0 if place is None else min(1.0, _LEAST + log(1 + place / _COMMON) / _RARE)
