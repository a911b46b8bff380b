"""BM25 of messages, of messages with their neighbours, and of the blocks of conversation they stand in.

Pure functions from postings and columns to sums; `rank.py` makes scores of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.search import weights
from holdfast.search.columns import NO_NUMBERS, Floats, MessageColumns, Numbers
from holdfast.search.postings import QueryTerm
from holdfast.search.weights import inverse_frequency

# Numbers of messages times terms whose neighbours are looked at together.
_AT_ONCE = 400_000
_NONE: tuple[Numbers, Floats] = (NO_NUMBERS, np.empty(0))


def saturate(frequency: Floats, k1: float, factor: float | Floats) -> Floats:
    """Return `factor` times BM25's saturated frequency: each occurrence adds less, up to k1 + 1."""
    saturated = frequency + k1
    np.divide(frequency, saturated, out=saturated)
    saturated *= factor * (k1 + 1)
    return saturated


def relative(frequencies: Floats, words: NDArray[np.integer[Any]], slope: float, b: float) -> Floats:
    """Return frequencies in texts of some words as if these were of average length, which is b / slope."""
    length = np.maximum(words, 1) * slope
    length += 1 - b
    shares: Floats = frequencies / length
    return shares


class MessageSums:
    """What the words of a query add up to in each message, its output and its block.

    What they add up to in a message with its neighbours takes as long as all of that, and is computed for
    those messages that it may bring among the best.
    """

    def __init__(self, columns: MessageColumns, terms: Sequence[QueryTerm]) -> None:
        w = self._weights = weights.WEIGHTS
        self._columns = columns
        self._idf = [term.weight * term.rarity for term in terms]
        docs, frequencies, sizes = _joined([(term.said.docs, term.said.frequencies) for term in terms])
        self._docs, self._ends = docs, np.cumsum(sizes)
        # Of each term in each message, if all were of average length.
        slope = w.b * columns.last / max(columns.total_words, 1)
        self._frequencies = relative(frequencies, columns.words.take(docs), slope, w.b)
        words = saturate(self._frequencies, w.k1, np.repeat(self._idf, sizes))
        # No less than what the words of a message add up to, with and without its best passage.
        self._most = _sums(docs, words, columns.last + 1)
        self._with_passages = self._count_best_passages(terms)
        self.output = self._count_output(terms) if columns.total_output else None
        self.blocks, of_blocks = self._count_blocks(terms, docs, frequencies, sizes)
        self.ceiling = 0.0
        most = 1 if self.output is None else 1 + w.output
        for of_words, of_block in zip(self._idf, of_blocks, strict=True):
            self.ceiling += most * of_words * (w.k1 + 1) + of_block * (w.session_k1 + 1)
        # A frequency of a neighbour counts a share of itself, and less than that is lost by saturation: most
        # of all at the highest one.
        highest = float(self._frequencies.max(initial=1.0))
        self._shares = [
            max(share, share * (highest + w.k1) / (share * highest + w.k1))
            for share in (w.before, w.after, w.two_before, w.two_after)
        ]
        self._slots = np.zeros(columns.last + 1, np.int32)
        self._bound = self._without_blocks()

    def _count_best_passages(self, terms: Sequence[QueryTerm]) -> tuple[Numbers, Floats]:
        """Return the messages with several passages, and their words with the best one of these."""
        w, columns = self._weights, self._columns
        places, frequencies, sizes = _joined([term.said.passages or _NONE for term in terms])
        if not len(places):
            return _NONE
        slope = w.b * columns.places / max(columns.total_words, 1)
        within = relative(frequencies, columns.passage_words.take(places), slope, w.b)
        some = _distinct(places)
        saturated = saturate(within, w.k1, np.repeat(self._idf, sizes))
        sums = _sums(some.searchsorted(places), saturated, len(some))
        docs = columns.documents(some)
        first = np.flatnonzero(np.diff(docs, prepend=0))
        docs, best = docs[first], np.maximum.reduceat(sums, first)
        alone = self._most.take(docs)
        words = (1 - w.passage) * alone + w.passage * best
        self._most[docs] = np.maximum(alone, words)
        return docs, words

    def _count_output(self, terms: Sequence[QueryTerm]) -> Floats:
        w, columns = self._weights, self._columns
        docs, frequencies, sizes = _joined([(term.output.docs, term.output.frequencies) for term in terms])
        slope = w.b * columns.outputs / max(columns.total_output, 1)
        frequency = relative(frequencies, columns.output.take(docs), slope, w.b)
        idf = np.repeat([w.output * one for one in self._idf], sizes)
        return _sums(docs, saturate(frequency, w.k1, idf), columns.last + 1)

    def _count_blocks(
        self, terms: Sequence[QueryTerm], docs: Numbers, frequencies: Floats, sizes: Sequence[int]
    ) -> tuple[Floats, list[float]]:
        """Return the sum of each block, and the rarity of each term in blocks."""
        w, columns = self._weights, self._columns
        count = columns.blocks
        begins = np.arange(len(terms) + 1) * count
        keys = columns.block.take(docs)
        keys += np.repeat(begins[:-1], sizes)
        found, in_block = _per_block(keys, frequencies, len(terms) * count)
        having = np.diff(found.searchsorted(begins))
        found -= np.repeat(begins[:-1], having)
        idf = [
            w.session * term.weight * inverse_frequency(count, number)
            for term, number in zip(terms, having.tolist(), strict=True)
        ]
        # Of each block, its words against those of an average one.
        of_average = (columns.block_words + 1) / max(float(columns.block_words.mean()) + 1, 1.0)
        in_block /= (1 - w.session_b + w.session_b * of_average).take(found)
        return _sums(found, saturate(in_block, w.session_k1, np.repeat(idf, having)), count), idf

    def words(self, docs: Numbers) -> Floats:
        """Return what the words of each of some messages add up to."""
        words = self._most.take(docs)
        several, sums = self._with_passages
        if len(several):
            places = np.minimum(several.searchsorted(docs), len(several) - 1)
            np.copyto(words, sums.take(places), where=several.take(places) == docs)
        return words

    def context(self, docs: Numbers) -> Floats:
        """Return BM25F of each of some messages with its neighbours."""
        w, slots = self._weights, self._slots
        most = max(1, _AT_ONCE // (len(self._idf) + 1))
        if len(docs) > most:
            return np.concatenate([self.context(docs[n : n + most]) for n in range(0, len(docs), most)])
        around = np.stack([docs, *self._neighbours(docs)])
        # The frequencies of all terms in these messages alone, at the last slot of each.
        slots[around.ravel()] = np.arange(1, around.size + 1)
        slots[0] = 0
        having = np.flatnonzero(slots.take(self._docs))
        frequencies = np.zeros((len(self._idf), around.size + 1))
        at = slots.take(self._docs.take(having))
        frequencies[self._ends.searchsorted(having, "right"), at] = self._frequencies.take(having)
        there = slots.take(around)
        slots[around.ravel()] = 0
        context = np.zeros(len(docs))
        for of_term, factor in zip(frequencies, self._idf, strict=True):
            near = of_term.take(there)
            total = near[0]
            for share, of_neighbour in zip(
                (w.before, w.after, w.two_before, w.two_after), near[1:], strict=True
            ):
                total += share * of_neighbour
            context += saturate(total, w.k1, factor)
        return context

    def _neighbours(self, docs: Numbers) -> tuple[Numbers, ...]:
        """Return the messages before, after, two before and two after each; 0 stands for none."""
        columns = self._columns
        before, after = columns.previous.take(docs), columns.next.take(docs)
        return before, after, columns.previous.take(before), columns.next.take(after)

    def _without_blocks(self) -> Floats:
        """Return no less than the sums of each message without its block.

        That is as if each message followed the one stored before it.
        """
        before, after, two_before, two_after = (self._weights.context * share for share in self._shares)
        bound = np.correlate(self._most, (two_before, before, 1.0, after, two_after), "full")[2:-2]
        if self.output is not None:
            bound += self.output
        bound[0] = 0.0
        return bound

    def _around(self, docs: Numbers) -> Floats:
        """Return the same of some messages with their own neighbours: 0 where no word is in any of these."""
        bound = np.zeros(len(docs))
        for share, places in zip(self._shares, self._neighbours(docs), strict=True):
            bound += share * self._most.take(places)
        bound *= self._columns.context_share.take(docs)
        bound += self._most.take(docs)
        if self.output is not None:
            bound += self.output.take(docs)
        return bound

    def likely(self, count: int, mask: NDArray[np.bool_] | None) -> Numbers:
        """Return messages of which the best are likely to be among all that a mask lets pass."""
        docs = top(self._bound if mask is None else self._bound * mask, count)
        return np.sort(docs[self._around(docs) > 0])

    def reach(self, least: float) -> tuple[Numbers, Floats]:
        """Return the messages whose sums may be as much as `least`, and no less than what they are.

        A message that merely stands in a session where the words were said is no answer: it is left out.
        """
        # A little less, for the rounding of sums.
        least *= 1 - 1e-9
        lowest = least - float(self.blocks.max(initial=0.0))
        near = self._bound >= lowest if lowest > 0 else self._bound > 0
        near[self._columns.apart()] = True
        near[0] = False
        docs = np.flatnonzero(near)
        bound = self._around(docs)
        found = bound > 0
        bound += self.blocks.take(self._columns.block.take(docs))
        found &= bound >= least
        return docs[found], bound[found]


def _joined(lists: Sequence[tuple[Numbers, Floats]]) -> tuple[Numbers, Floats, list[int]]:
    """Return lists of postings one after the other, and the length of each."""
    numbers = np.concatenate([one for one, _ in lists])
    return numbers, np.concatenate([values for _, values in lists]), [len(one) for one, _ in lists]


def _distinct(numbers: Numbers) -> Numbers:
    """Return the distinct ones of some numbers above 0, rising: on a few faster than `np.unique`."""
    numbers = np.sort(numbers)
    return numbers[np.flatnonzero(np.diff(numbers, prepend=0))]


def add_at(sums: Floats, places: Numbers, values: Floats) -> None:
    """Add values at places: a fifth faster than `sums[places] += values`."""
    sums[places] = sums.take(places) + values


def _per_block(blocks: Numbers, frequencies: Floats, count: int) -> tuple[Numbers, Floats]:
    """Return the blocks that have a term, and the sum of its frequencies in each."""
    if count <= 8 * len(blocks):
        sums = _sums(blocks, frequencies, count)
        found = np.flatnonzero(sums)
        return found, sums.take(found)
    some, places = np.unique(blocks, return_inverse=True)
    return some, _sums(places, frequencies, len(some))


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
        # A block is every so many-th score: those beside each other are compared at once.
        maxima = scores[: blocks * size].reshape(size, blocks).max(axis=0)
        threshold = float(np.partition(maxima, blocks - count)[blocks - count])
    places = np.flatnonzero(scores >= threshold) if threshold > 0 else np.flatnonzero(scores > 0)
    order = np.argsort(-scores[places], kind="stable")[:count]
    return places[order]
