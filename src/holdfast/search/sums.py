"""The sums of a query for the messages of some spaces: by the kernel in C where it was built, else by numpy.

Both give the same hits, to the last bit; `HOLDFAST_KERNEL=0` in the environment chooses numpy.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from holdfast.search import kernel
from holdfast.search.bm25 import SpaceSums
from holdfast.search.columns import Floats, Mask, Numbers
from holdfast.search.corpora import Corpora
from holdfast.search.postings import QueryTerm


def kernel_in_use() -> Literal["C", "numpy"]:
    """Return what computes the sums."""
    return "C" if kernel.BUILT and os.environ.get("HOLDFAST_KERNEL") != "0" else "numpy"


class MessageSums:
    """The sums of a query for each message of some spaces, which have terms and statistics of their own."""

    def __init__(self, corpora: Corpora, terms: Sequence[Sequence[QueryTerm]]) -> None:
        self._corpora, self.terms = corpora, terms
        make = kernel.KernelSums if kernel_in_use() == "C" else SpaceSums
        self._spaces = [make(columns, some) for columns, some in zip(corpora.columns, terms, strict=True)]
        self.ceilings = [space.ceiling for space in self._spaces]

    def of(self, docs: Numbers) -> tuple[Floats, Mask]:
        """Return sums of some messages and masks of their terms; see `SpaceSums.of`.

        The masks have as many rows as the most terms of a space.
        """
        parts = [space.of(some) for space, some in zip(self._spaces, self._corpora.split(docs), strict=True)]
        if len(parts) == 1:
            return parts[0]
        sums, masks = zip(*parts, strict=True)
        rows = max(map(len, self.terms))
        padded = [np.pad(mask, ((0, 0), (0, rows - mask.shape[1]), (0, 0))) for mask in masks]
        return np.concatenate(sums, axis=1), np.concatenate(padded, axis=2)

    def likely(self, count: int, mask: Mask | None) -> Numbers:
        """Return messages among which the best of each space are likely to be; all pass the mask."""
        masks = (None if mask is None else mask[i:j] for i, j in pairwise(self._corpora.documents))
        found = [space.likely(count, some) for space, some in zip(self._spaces, masks, strict=True)]
        return self._corpora.numbers(found)

    def reach(self, least: Sequence[float]) -> tuple[Numbers, Floats]:
        """Return the messages whose sums may reach the least of their space, each with an upper bound."""
        found = [space.reach(score) for space, score in zip(self._spaces, least, strict=True)]
        bounds = self._corpora.together(bound for _, bound in found)
        return self._corpora.numbers(docs for docs, _ in found), bounds

    def match_words(self, docs: Numbers, matched: Mask) -> list[tuple[str, ...]]:
        """Return the words of the query in each of some messages, from a mask of the terms in each."""
        return [
            tuple(dict.fromkeys(self.terms[space][row].written for row in np.flatnonzero(rows).tolist()))
            for space, rows in zip(self._corpora.spaces(docs).tolist(), matched.T, strict=True)
        ]
