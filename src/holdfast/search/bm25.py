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

# Numbers of messages times terms whose neighbours are looked at together.
_AT_ONCE = 400_000


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

    The sum of a message with its neighbours takes as long as all others, and is computed only for messages
    that it may bring among the best. `kernel.py` has the same in C.
    """

    def __init__(self, columns: MessageColumns, terms: Sequence[QueryTerm]) -> None:
        w, self._columns = weights.WEIGHTS, columns
        size = columns.last + 1
        self._rarities = [term.weight * term.rarity for term in terms]
        docs, frequencies, sizes = _join([term.said[:2] for term in terms])
        # The frequency of each term in each message, scaled to the average length.
        slope = w.b * columns.last / max(columns.total_words, 1)
        scaled = relative(frequencies, columns.words.take(docs), slope, w.b)
        self._said = docs, np.cumsum(sizes), scaled
        self._words = _sums(docs, saturate(scaled, w.k1, np.repeat(self._rarities, sizes)), size)
        # At least the sum of the words of a message, with and without its best passage.
        self._most = self._words.copy()
        self._count_best_passages(terms)
        self._output = np.zeros(size)
        self._put_out: tuple[Numbers, Numbers] = NO_NUMBERS, NO_NUMBERS
        if columns.total_output:
            self._count_output(terms)
        self._blocks, rarities = self._count_blocks(terms, docs, frequencies, sizes)
        # The largest sum that a message can have.
        self.ceiling = 0.0
        most = 1 + w.output if columns.total_output else 1
        for of_words, of_block in zip(self._rarities, rarities, strict=True):
            self.ceiling += most * of_words * (w.k1 + 1) + of_block * (w.session_k1 + 1)
        # A frequency of a neighbour counts a share of itself, and less than that is lost by saturation: most
        # of all at the highest one.
        highest = float(scaled.max(initial=1.0))
        self._shares = [
            max(share, share * (highest + w.k1) / (share * highest + w.k1))
            for share in (w.before, w.after, w.two_before, w.two_after)
        ]
        before, after, two_before, two_after = (w.context * share for share in self._shares)
        # Upper bounds of the sums of messages without their blocks. They hold for messages that follow the
        # one stored before them in their chat.
        self._beside = np.correlate(self._most, (two_before, before, 1.0, after, two_after), "full")[2:-2]
        self._beside += self._output
        self._beside[0] = 0.0
        self._slots = np.zeros(size, np.int32)

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
        alone = self._words.take(docs)
        self._words[docs] = (1 - w.passage) * alone + w.passage * best
        self._most[docs] = np.maximum(alone, self._words.take(docs))

    def _count_output(self, terms: Sequence[QueryTerm]) -> None:
        w, columns = weights.WEIGHTS, self._columns
        docs, frequencies, sizes = _join([term.output[:2] for term in terms])
        self._put_out = docs, np.cumsum(sizes)
        slope = w.b * columns.outputs / max(columns.total_output, 1)
        frequency = relative(frequencies, columns.output.take(docs), slope, w.b)
        idf = np.repeat([w.output * rarity for rarity in self._rarities], sizes)
        self._output = _sums(docs, saturate(frequency, w.k1, idf), columns.last + 1)

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

    def of(self, docs: Numbers) -> tuple[Floats, Mask]:
        """Return four sums of some messages, and two masks of the terms that are said and put out in them.

        The sums are those of their words, of these with neighbours, of their blocks and of their output; a
        mask has a row for each term.
        """
        context, said = self._context(docs)
        blocks = self._blocks.take(self._columns.block.take(docs))
        sums = np.stack((self._words.take(docs), context, blocks, self._output.take(docs)))
        return sums, np.stack((said, self._outputs(docs)))

    def _context(self, docs: Numbers) -> tuple[Floats, Mask]:
        """Return BM25F of some messages with their neighbours, and a mask of the terms that each says."""
        w, slots, (postings, ends, scaled) = weights.WEIGHTS, self._slots, self._said
        most = max(1, _AT_ONCE // (len(self._rarities) + 1))
        if len(docs) > most:
            parts = [self._context(docs[n : n + most]) for n in range(0, len(docs), most)]
            return np.concatenate([context for context, _ in parts]), np.hstack([said for _, said in parts])
        around = np.stack(self._columns.around(docs))
        # The frequencies of all terms in these messages alone, at the last slot of each.
        slots[around.ravel()] = np.arange(1, around.size + 1)
        slots[0] = 0
        having = np.flatnonzero(slots.take(postings))
        frequencies = np.zeros((len(self._rarities), around.size + 1))
        at = ends.searchsorted(having, "right"), slots.take(postings.take(having))
        frequencies[at] = scaled.take(having)
        there = slots.take(around)
        slots[around.ravel()] = 0
        context = np.zeros(len(docs))
        said = np.empty((len(self._rarities), len(docs)), np.bool_)
        for of_term, rarity, own in zip(frequencies, self._rarities, said, strict=True):
            near = of_term.take(there)
            total = near[0]
            np.greater(total, 0, out=own)
            for share, of_neighbour in zip(
                (w.before, w.after, w.two_before, w.two_after), near[1:], strict=True
            ):
                total += share * of_neighbour
            context += saturate(total, w.k1, rarity)
        return context, said

    def _outputs(self, docs: Numbers) -> Mask:
        """Return a mask of the terms in the output of some messages."""
        put_out, (postings, ends) = np.zeros((len(self._rarities), len(docs)), bool), self._put_out
        if len(postings):
            self._slots[docs] = np.arange(1, len(docs) + 1)
            having = np.flatnonzero(self._slots.take(postings))
            places = self._slots.take(postings.take(having)) - 1
            put_out[ends.searchsorted(having, "right"), places] = True
            self._slots[docs] = 0
        return put_out

    def _around(self, docs: Numbers) -> Floats:
        """Return bounds with the true neighbours; 0 if no word is in any of these messages."""
        bound = np.zeros(len(docs))
        for share, places in zip(self._shares, self._columns.around(docs)[1:], strict=True):
            bound += share * self._most.take(places)
        bound *= self._columns.context_share.take(docs)
        bound += self._most.take(docs)
        bound += self._output.take(docs)
        return bound

    def likely(self, count: int, mask: Mask | None) -> Numbers:
        """Return messages among which the best are likely to be; all pass the mask."""
        docs = np.sort(top(self._beside if mask is None else self._beside * mask, count))
        return docs[self._around(docs) > 0]

    def reach(self, least: float) -> tuple[Numbers, Floats]:
        """Return the messages whose sums may reach the least, each with an upper bound.

        A message without words whose neighbours have none either is left out, although its block has some.
        """
        # A little less, for the rounding of sums.
        least *= 1 - 1e-9
        lowest = least - float(self._blocks.max(initial=0.0))
        near = self._beside >= lowest if lowest > 0 else self._beside > 0
        near[np.concatenate(self._columns.around(self._columns.jumps()))] = True
        docs = np.flatnonzero(near)
        bound = self._around(docs)
        kept = bound > 0
        bound += self._blocks.take(self._columns.block.take(docs))
        kept &= bound >= least
        return docs[kept], bound[kept]


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
