"""BM25 of messages, of messages with their neighbours, and of their blocks of conversation.

Pure functions from postings and columns to sums, from which `rank.py` computes scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.search import weights
from holdfast.search.columns import NO_NUMBERS, Floats, Mask, MessageColumns, Numbers
from holdfast.search.postings import QueryTerm
from holdfast.search.weights import inverse_frequency


def saturate(frequency: Floats, k1: float, factor: float | Floats) -> Floats:
    """Return `factor` times BM25's saturated frequency: each occurrence adds less, up to k1 + 1."""
    saturated = frequency + k1
    np.divide(frequency, saturated, out=saturated)
    saturated *= factor * (k1 + 1)
    return saturated


def relative(frequencies: Floats, words: NDArray[np.integer[Any]], slope: float | Floats, b: float) -> Floats:
    """Return frequencies in texts with numbers of words, scaled to the average length, which is b / slope."""
    length = np.maximum(words, 1) * slope
    length += 1 - b
    shares: Floats = frequencies / length
    return shares


class SpaceSums:
    """The sums of a query for each message of a space, for its output and for its block.

    The sum of a message with its neighbours takes as long as all others. `kernel.py` has the same in C, where
    it is computed only for messages that may be among the best.
    """

    def __init__(self, columns: MessageColumns, terms: Sequence[QueryTerm]) -> None:
        w, self._columns = weights.WEIGHTS, columns
        size = columns.last + 1
        self._rarities = [term.weight * term.rarity for term in terms]
        docs, frequencies, sizes = _join([term.said[:2] for term in terms])
        # The frequency of each term in each message, scaled to the average length.
        slope = w.b * columns.last / max(columns.total_words, 1)
        scaled = relative(frequencies, columns.words.take(docs), slope, w.b)
        ends = np.cumsum(sizes[:-1])
        self._said = np.split(docs, ends)
        self._context = self._count_context(np.split(scaled, ends))
        self._words = _sums(docs, saturate(scaled, w.k1, np.repeat(self._rarities, sizes)), size)
        self._count_best_passages(terms)
        self._put_out = [term.output[0] for term in terms]
        self._output = self._count_output(terms) if columns.total_output else np.zeros(size)
        self._blocks, rarities = self._count_blocks(terms, docs, frequencies, sizes)
        # The largest sum that a message can have.
        self.ceiling = 0.0
        most = 1 + w.output if columns.total_output else 1
        for of_words, of_block in zip(self._rarities, rarities, strict=True):
            self.ceiling += most * of_words * (w.k1 + 1) + of_block * (w.session_k1 + 1)

    def _count_best_passages(self, terms: Sequence[QueryTerm]) -> None:
        """Count for a message with several passages the best of them as well."""
        w, columns = weights.WEIGHTS, self._columns
        places, frequencies, sizes = _join([term.said.passages for term in terms])
        if not len(places):
            return
        slope = w.b * columns.places / max(columns.total_words, 1)
        within = relative(frequencies, columns.passage_words.take(places), slope, w.b)
        # For few numbers faster than `np.unique`; none is 0.
        some = np.sort(places)
        some = some[np.flatnonzero(np.diff(some, prepend=0))]
        saturated = saturate(within, w.k1, np.repeat(self._rarities, sizes))
        sums = _sums(some.searchsorted(places), saturated, len(some))
        docs = columns.owner.take(some)
        first = np.flatnonzero(np.diff(docs, prepend=0))
        docs, best = docs[first], np.maximum.reduceat(sums, first)
        self._words[docs] = (1 - w.passage) * self._words.take(docs) + w.passage * best

    def _count_output(self, terms: Sequence[QueryTerm]) -> Floats:
        """Return the sum of the output of each message."""
        w, columns = weights.WEIGHTS, self._columns
        docs, frequencies, sizes = _join([term.output[:2] for term in terms])
        slope = w.b * columns.outputs / max(columns.total_output, 1)
        frequency = relative(frequencies, columns.output.take(docs), slope, w.b)
        idf = np.repeat([w.output * rarity for rarity in self._rarities], sizes)
        return _sums(docs, saturate(frequency, w.k1, idf), columns.last + 1)

    def _count_blocks(
        self, terms: Sequence[QueryTerm], docs: Numbers, frequencies: Floats, sizes: Sequence[int]
    ) -> tuple[Floats, list[float]]:
        """Return the sum of each block, and the rarity of each term among blocks."""
        w, columns = weights.WEIGHTS, self._columns
        # The blocks once for each term, one after the other.
        begins = np.arange(len(terms) + 1) * columns.blocks
        keys = columns.block.take(docs) + np.repeat(begins[:-1], sizes)
        in_blocks = _sums(keys, frequencies, int(begins[-1]))
        blocks = np.flatnonzero(in_blocks)
        in_block = in_blocks.take(blocks)
        having = np.diff(blocks.searchsorted(begins))
        blocks -= np.repeat(begins[:-1], having)
        idf = [
            w.session * term.weight * inverse_frequency(columns.blocks, number)
            for term, number in zip(terms, having.tolist(), strict=True)
        ]
        # The words of each block, relative to the average.
        of_average = (columns.block_words + 1) / max(float(columns.block_words.mean()) + 1, 1.0)
        in_block /= (1 - w.session_b + w.session_b * of_average).take(blocks)
        saturated = saturate(in_block, w.session_k1, np.repeat(idf, having))
        return _sums(blocks, saturated, columns.blocks), idf

    def _count_context(self, scaled: Sequence[Floats]) -> Floats:
        """Return BM25F of each message with its neighbours."""
        w, around = weights.WEIGHTS, self._columns.around
        shares = w.before, w.after, w.two_before, w.two_after
        context, frequencies = np.zeros((2, self._columns.last + 1))
        for rarity, docs, of_term in zip(self._rarities, self._said, scaled, strict=True):
            frequencies[docs] = of_term
            is_near = np.zeros(len(context), np.bool_)
            is_near[np.concatenate(around(docs))] = True
            near = np.flatnonzero(is_near)
            total, *beside = (frequencies.take(places) for places in around(near))
            for share, of_neighbour in zip(shares, beside, strict=True):
                total += share * of_neighbour
            context[near] = context.take(near) + saturate(total, w.k1, rarity)
            frequencies[docs] = 0.0
        context[0] = 0.0
        return context

    def candidates(self) -> Numbers:
        """Return the messages with a word in them, in their output, or in a neighbour.

        A message without, and without such neighbours, is left out although its block has some.
        """
        return np.flatnonzero((self._context > 0) | (self._output > 0))

    def of(self, docs: Numbers) -> tuple[Sequence[Floats], tuple[Mask, Mask]]:
        """Return four sums of some messages, and two masks of the terms that are said and put out in them.

        The sums are those of their words, of these with neighbours, of their blocks and of their output; a
        mask has a row for each term.
        """
        # Column 0 is for all other messages.
        places = np.zeros(self._columns.last + 1, np.int64)
        places[docs] = np.arange(1, len(docs) + 1)
        said, put_out = np.zeros((2, len(self._said), len(docs) + 1), np.bool_)
        for row, having in zip((*said, *put_out), (*self._said, *self._put_out), strict=True):
            row[places.take(having)] = True
        blocks = self._blocks.take(self._columns.block.take(docs))
        sums = self._words.take(docs), self._context.take(docs), blocks, self._output.take(docs)
        return sums, (said[:, 1:], put_out[:, 1:])


def _join(postings: Sequence[tuple[Numbers, Floats]]) -> tuple[Numbers, Floats, list[int]]:
    """Return the postings of terms one after the other, and the length of each."""
    sizes = [len(docs) for docs, _ in postings]
    numbers = np.concatenate([NO_NUMBERS, *(docs for docs, _ in postings)])
    return numbers, np.concatenate([np.empty(0), *(values for _, values in postings)]), sizes


def _sums(places: Numbers, values: Floats, count: int) -> Floats:
    return np.bincount(places, weights=values, minlength=count).astype(np.float64, copy=False)


def top(scores: Floats, count: int) -> Numbers:
    """Return the places of the `count` highest scores above zero, best first, equal ones in order.

    Takes a threshold from the maxima of blocks, which on mostly-zero scores is far faster than a partition
    and, with at least `count` blocks, exact.
    """
    size = max(8, min(512, len(scores) // (4 * max(count, 1))))
    threshold = 0.0
    blocks = len(scores) // size
    if blocks > count > 0:
        # A block takes scores at regular distances, so that neighbouring scores are compared at once.
        maxima = scores[: blocks * size].reshape(size, blocks).max(axis=0)
        threshold = float(np.partition(maxima, blocks - count)[blocks - count])
    places = np.flatnonzero(scores >= threshold) if threshold > 0 else np.flatnonzero(scores > 0)
    order = np.argsort(-scores[places], kind="stable")[:count]
    return places[order]
