"""Fusion: one order from what words find and what is near in meaning. Pure functions of scores.

Nearness adds to the score of a document, and nothing is taken away: a document without a vector keeps its
score. What counts is how far a document stands out from all others, in standard deviations, beyond what
chance gives the best of as many documents as words rank before it. So one that words find needs little, one
that no word of the query finds must stand out of the whole space, and an embedder that is noise moves hardly
anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from holdfast.search.columns import Floats, Numbers

# The weight of meaning against words, from 0 (words alone) to 1 (meaning alone), where none is given.
WEIGHT = 0.4
# How much of what chance gives must be exceeded, and by how many deviations for the full effect.
_CHANCE, _FULL = 0.8, 2.0
# What full nearness counts at least, beside words that score less: what one that says it word for word has.
_UNIT = 0.4
# What is taken for granted while there are few others to compare with: the mean of the scores of texts that
# have nothing in common, which counts as one of them, and their deviation, which counts as four.
_MEAN, _MEANS, _DEVIATION, _DEVIATIONS = 0.3, 1, 0.1, 4


class Fused(NamedTuple):
    """The places of documents in what was given, best first, their scores, and meaning's share in each."""

    order: Numbers
    scores: Floats
    meaning: Floats


class Ranked(NamedTuple):
    """A document with its score, meaning's share in it, and its place among those that words find, or -1."""

    doc: int
    score: float
    meaning: float
    place: int


@dataclass(frozen=True, slots=True)
class RankedDocuments(Sequence[Ranked]):
    """Documents, best first, in arrays: there may be many of which few are read."""

    docs: Numbers
    scores: Floats
    meaning: Floats
    places: Numbers

    def __len__(self) -> int:
        return len(self.docs)

    @overload
    def __getitem__(self, index: int) -> Ranked: ...
    @overload
    def __getitem__(self, index: slice) -> list[Ranked]: ...
    def __getitem__(self, index: int | slice) -> Ranked | list[Ranked]:
        """Return one of them, or a part."""
        if isinstance(index, slice):
            columns = (
                column[index].tolist() for column in (self.docs, self.scores, self.meaning, self.places)
            )
            return list(starmap(Ranked, zip(*columns, strict=True)))
        return self[index : index + 1][0]


def standing_out(scores: NDArray[np.floating], sample: NDArray[np.floating]) -> Floats:
    """Return by how many standard deviations each score stands out from those of the other documents.

    `sample` are scores of all documents, or of many. A score that is not known (NaN) stands out by none.
    """
    known, own = np.nan_to_num(np.asarray(scores, np.float64)), np.asarray(sample, np.float64)
    others = max(len(own) - 1, 0)
    total, squares = own.sum() - known, (own**2).sum() - known**2
    mean = (total + _MEANS * _MEAN) / (others + _MEANS)
    spread = np.maximum(squares - total**2 / max(others, 1), 0)
    deviation = np.sqrt((spread + _DEVIATIONS * _DEVIATION**2) / (others + _DEVIATIONS))
    return np.where(np.isnan(scores), 0.0, (known - mean) / deviation)


def fuse(words: Floats, standing: Floats, count: int, *, weight: float = WEIGHT) -> Fused:
    """Return the order of documents by words and meaning.

    Args:
        words: the scores, from 0 to 1, of those that words find, best first; then 0 for each other.
        standing: by how many deviations the nearness of each stands out; 0 for one without a vector.
        count: how many documents have a vector.
        weight: that of meaning, from 0 to 1.

    """
    ranks = np.where(words > 0, np.arange(1, len(words) + 1), max(count, 1))
    chance = _CHANCE * np.sqrt(2 * np.log1p(ranks))
    near = np.clip((standing - chance) / _FULL, 0, 1)
    unit = max(float(words.max(initial=0.0)), _UNIT)
    larger = max(weight, 1 - weight)
    by_words, by_meaning = words * ((1 - weight) / larger), near * (unit * weight / larger)
    total = by_words + by_meaning
    found = np.flatnonzero(total > 0)
    order = found[np.argsort(-total[found], kind="stable")]
    return Fused(order, np.minimum(total[order], 1.0), by_meaning[order] / total[order])
