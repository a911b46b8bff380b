"""Fusion: one order of documents by words and by meaning. Pure functions of scores.

Nearness in meaning adds to the score of a document, and never lowers it: a document without a vector keeps
its score. It counts by the standard deviations by which it exceeds that of the other documents, less those
that chance gives the best of as many documents as words rank before it. So a document with words of the query
needs little, one without must stand out of the whole space, and a noisy embedder changes hardly anything.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.search.columns import Floats, Numbers

# The weight of meaning against words, from 0 (words alone) to 1 (meaning alone), where none is given.
WEIGHT = 0.4
# The share of the deviation by chance that must be exceeded, and the deviations beyond it for full effect.
_CHANCE, _FULL = 0.8, 2.0
# The least score of full nearness, beside words that score less: that of a text that repeats the query.
_UNIT = 0.4
# The prior while there are few others to compare with: the mean score of unrelated texts, which counts as one
# of them, and its deviation, which counts as four.
_MEAN, _MEANS, _DEVIATION, _DEVIATIONS = 0.3, 1, 0.1, 4


class Fusion(NamedTuple):
    """The places of documents in the input, best first, their scores, and meaning's share in each."""

    order: Numbers
    scores: Floats
    meaning: Floats


class Ranked(NamedTuple):
    """A document with its score, meaning's share in it, and its place among the hits by words, or -1."""

    doc: int
    score: float
    meaning: float
    place: int


class RankedDocuments(NamedTuple):
    """Documents, best first, in arrays, because only a few of many are read."""

    docs: Numbers
    scores: Floats
    meaning: Floats
    places: Numbers

    def part(self, start: int = 0, end: int | None = None) -> list[Ranked]:
        """Return the documents from one rank up to another."""
        return list(map(Ranked, *(column[start:end].tolist() for column in self)))


def standing_out(scores: NDArray[np.floating], sample: NDArray[np.floating]) -> Floats:
    """Return the standard deviations by which each score exceeds the mean of the other documents.

    `sample` are the scores of all documents, or of many. An unknown score (NaN) exceeds it by 0.
    """
    known, own = np.nan_to_num(np.asarray(scores, np.float64)), np.asarray(sample, np.float64)
    others = max(len(own) - 1, 0)
    total, squares = own.sum() - known, (own**2).sum() - known**2
    mean = (total + _MEANS * _MEAN) / (others + _MEANS)
    spread = np.maximum(squares - total**2 / max(others, 1), 0)
    deviation = np.sqrt((spread + _DEVIATIONS * _DEVIATION**2) / (others + _DEVIATIONS))
    return np.where(np.isnan(scores), 0.0, (known - mean) / deviation)


def fuse(words: Floats, deviations: Floats, count: int, *, weight: float = WEIGHT) -> Fusion:
    """Return the order of documents by words and meaning.

    Args:
        words: the scores by words, from 0 to 1, best first; then 0 for each document without words.
        deviations: those of the nearness of each document; 0 for one without a vector.
        count: the number of documents with a vector.
        weight: that of meaning, from 0 to 1.

    """
    ranks = np.where(words > 0, np.arange(1, len(words) + 1), max(count, 1))
    chance = _CHANCE * np.sqrt(2 * np.log1p(ranks))
    near = np.clip((deviations - chance) / _FULL, 0, 1)
    unit = max(float(words.max(initial=0.0)), _UNIT)
    larger = max(weight, 1 - weight)
    by_words, by_meaning = words * ((1 - weight) / larger), near * (unit * weight / larger)
    total = by_words + by_meaning
    places = np.flatnonzero(total > 0)
    order = places[np.argsort(-total[places], kind="stable")]
    return Fusion(order, np.minimum(total[order], 1.0), by_meaning[order] / total[order])
