"""What words mean, as short vectors: words of like meaning point alike. English, about 27,000 of them.

`scripts/make_vectors.py` makes the table from an open sentence encoder; `vectors.LICENSE.txt` names it.
Nothing of the encoder is needed to use the table, and nothing is looked up anywhere else.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_COMMON, _RARE = 300, 4.5  # after so many words a word begins to tell something; so fast it tells more
_LEAST = 0.25  # of the weight of a rare word is what the commonest one has


class Table(NamedTuple):
    """The words with their rows, the commonest first, and their vectors of length 1."""

    rows: dict[str, int]
    vectors: NDArray[np.float32]  # (words, dimensions)


@cache
def table() -> Table:
    """Read the table. The first call takes 20 ms."""
    with (
        resources.as_file(resources.files("holdfast.text") / "vectors.npz") as path,
        np.load(path, allow_pickle=False) as packed,
    ):
        words = packed["words"].tobytes().decode().split()
        vectors = packed["vectors"].astype(np.float32)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return Table({word: row for row, word in enumerate(words)}, vectors)


def row(word: str) -> int | None:
    """Find the row of a word in lower case, or else of the word without a plural's s; None for an unknown one."""
    rows = table().rows
    found = rows.get(word)
    return rows.get(word[:-1]) if found is None and word.endswith("s") else found


def weight(word: str) -> float:
    """Say how much a word tells, by how rare it is: 0.25 to 1; an unknown word is a rare one.

    >>> weight("the") < weight("mountain") < weight("xylophone")
    True
    """
    place = table().rows.get(word)
    return 1.0 if place is None else min(1.0, _LEAST + log(1 + place / _COMMON) / _RARE)
