"""BM25 of messages, of messages with their neighbours, and of their blocks of conversation.

Pure functions from postings and columns to sums, from which `rank.py` computes scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice, pairwise, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.search import weights
from holdfast.search.columns import Floats, Mask, Numbers
from holdfast.search.corpora import Corpora
from holdfast.search.postings import NOTHING, QueryTerm
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


class MessageSums:
    """The sums of a query for each message of some spaces, for its output and for its block.

    Each space has terms and statistics of its own. The sum of a message with its neighbours takes as long as
    all others, and is computed only for messages that it may bring among the best.
    """

    def __init__(self, corpora: Corpora, terms: Sequence[Sequence[QueryTerm]]) -> None:
        w = self._weights = weights.WEIGHTS
        self._corpora, self.terms = corpora, terms
        of_each = [[term.weight * term.rarity for term in some] for some in terms]
        self._idf = list(chain.from_iterable(of_each))
        # The place of each term among those of its space, and the rarity of each place in each space.
        self._rows = np.concatenate([np.arange(len(some)) for some in terms])
        self._rarities = np.array(list(zip_longest(*of_each, fillvalue=0.0)))
        docs, frequencies, sizes = _join(
            [[(term.said.docs, term.said.frequencies) for term in some] for some in terms], corpora.documents
        )
        self._docs, self._ends = docs, np.cumsum(sizes)
        # The frequency of each term in each message, scaled to the average length.
        slopes = [w.b * columns.last / max(columns.total_words, 1) for columns in corpora.columns]
        lengths = corpora.take("words", docs)
        self._frequencies = relative(frequencies, lengths, corpora.each(slopes, docs), w.b)
        words = saturate(self._frequencies, w.k1, np.repeat(self._idf, sizes))
        # At least the sum of the words of a message, with and without its best passage.
        self._most = _sums(docs, words, corpora.documents[-1])
        self._with_passages = self._count_best_passages()
        has_output = any(columns.total_output for columns in corpora.columns)
        self.output = self._count_output() if has_output else None
        self.blocks, of_blocks = self._count_blocks(docs, frequencies, sizes)
        self.ceilings = self._ceilings(of_blocks)
        # A frequency of a neighbour counts a share of itself, and less than that is lost by saturation: most
        # of all at the highest one.
        highest = float(self._frequencies.max(initial=1.0))
        self._shares = [
            max(share, share * (highest + w.k1) / (share * highest + w.k1))
            for share in (w.before, w.after, w.two_before, w.two_after)
        ]
        self._slots = np.zeros(corpora.documents[-1], np.int32)
        self._none = np.array(corpora.documents[:-1])
        self._bound = self._without_blocks()

    def _ceilings(self, of_blocks: Sequence[float]) -> list[float]:
        """Return the largest sum that a message of each space can have."""
        w, ceilings, rarities = self._weights, [], zip(self._idf, of_blocks, strict=True)
        for columns, terms in zip(self._corpora.columns, self.terms, strict=True):
            most = 1 + w.output if columns.total_output else 1
            ceiling = 0.0
            for of_words, of_block in islice(rarities, len(terms)):
                ceiling += most * of_words * (w.k1 + 1) + of_block * (w.session_k1 + 1)
            ceilings.append(ceiling)
        return ceilings

    def _count_best_passages(self) -> tuple[Numbers, Floats]:
        """Return the messages with several passages, and the sums of their words with the best passage."""
        w, corpora = self._weights, self._corpora
        passages = [[term.said.passages for term in some] for some in self.terms]
        places, frequencies, sizes = _join(passages, corpora.places)
        if not len(places):
            return NOTHING.passages
        slopes = [w.b * columns.places / max(columns.total_words, 1) for columns in corpora.columns]
        slope = corpora.each(slopes, places, corpora.places)
        lengths = corpora.take("passage_words", places, corpora.places)
        within = relative(frequencies, lengths, slope, w.b)
        # For few numbers faster than `np.unique`; none is 0.
        some = np.sort(places)
        some = some[np.flatnonzero(np.diff(some, prepend=0))]
        saturated = saturate(within, w.k1, np.repeat(self._idf, sizes))
        sums = _sums(some.searchsorted(places), saturated, len(some))
        docs = corpora.take("owner", some, corpora.places)
        first = np.flatnonzero(np.diff(docs, prepend=0))
        docs, best = docs[first], np.maximum.reduceat(sums, first)
        alone = self._most.take(docs)
        words = (1 - w.passage) * alone + w.passage * best
        self._most[docs] = np.maximum(alone, words)
        return docs, words

    def _count_output(self) -> Floats:
        w, corpora = self._weights, self._corpora
        put_out = [[(term.output.docs, term.output.frequencies) for term in some] for some in self.terms]
        docs, frequencies, sizes = _join(put_out, corpora.documents)
        slopes = [w.b * columns.outputs / max(columns.total_output, 1) for columns in corpora.columns]
        self._put_out = docs, np.cumsum(sizes)
        lengths = corpora.take("output", docs)
        frequency = relative(frequencies, lengths, corpora.each(slopes, docs), w.b)
        idf = np.repeat([w.output * rarity for rarity in self._idf], sizes)
        return _sums(docs, saturate(frequency, w.k1, idf), corpora.documents[-1])

    def _count_blocks(
        self, docs: Numbers, frequencies: Floats, sizes: Sequence[int]
    ) -> tuple[Floats, list[float]]:
        """Return the sum of each block, and the rarity of each term among blocks."""
        w, corpora = self._weights, self._corpora
        # The blocks of each space once for each of its terms, one after the other.
        counts = [part.blocks for part, some in zip(corpora.columns, self.terms, strict=True) for _ in some]
        before = [begin for begin, some in zip(corpora.blocks, self.terms, strict=False) for _ in some]
        begins = np.cumsum([0, *counts])
        shifts = begins[:-1] - before
        keys = corpora.take("block", docs)
        keys += np.repeat(shifts, sizes)
        blocks, in_block = _per_block(keys, frequencies, int(begins[-1]))
        having = np.diff(blocks.searchsorted(begins))
        blocks -= np.repeat(shifts, having)
        idf = [
            w.session * term.weight * inverse_frequency(count, number)
            for term, count, number in zip(
                chain.from_iterable(self.terms), counts, having.tolist(), strict=True
            )
        ]
        # The words of each block, relative to the average.
        of_average = corpora.together(
            (part.block_words + 1) / max(float(part.block_words.mean()) + 1, 1.0) for part in corpora.columns
        )
        in_block /= (1 - w.session_b + w.session_b * of_average).take(blocks)
        saturated = saturate(in_block, w.session_k1, np.repeat(idf, having))
        return _sums(blocks, saturated, corpora.blocks[-1]), idf

    def words(self, docs: Numbers) -> Floats:
        """Return the sums of the words of some messages."""
        words = self._most.take(docs)
        several, sums = self._with_passages
        if len(several):
            places = np.minimum(several.searchsorted(docs), len(several) - 1)
            np.copyto(words, sums.take(places), where=several.take(places) == docs)
        return words

    def context(self, docs: Numbers) -> tuple[Floats, Mask]:
        """Return BM25F of some messages with their neighbours, and a mask of the terms that each says itself.

        The mask has a row for each term of its space.
        """
        w, slots = self._weights, self._slots
        most = max(1, _AT_ONCE // (len(self._rarities) + 1))
        if len(docs) > most:
            parts = [self.context(docs[n : n + most]) for n in range(0, len(docs), most)]
            return np.concatenate([context for context, _ in parts]), np.hstack([said for _, said in parts])
        around = np.stack(self._corpora.around(docs))
        # The frequencies of all terms in these messages alone, at the last slot of each.
        slots[around.ravel()] = np.arange(1, around.size + 1)
        slots[self._none] = 0
        having = np.flatnonzero(slots.take(self._docs))
        frequencies = np.zeros((len(self._rarities), around.size + 1))
        at = slots.take(self._docs.take(having))
        rows = self._rows.take(self._ends.searchsorted(having, "right"))
        frequencies[rows, at] = self._frequencies.take(having)
        there = slots.take(around)
        slots[around.ravel()] = 0
        context = np.zeros(len(docs))
        said = np.empty((len(self._rarities), len(docs)), np.bool_)
        rarities = np.repeat(self._rarities, np.diff(self._corpora.bounds(docs)), axis=1)
        for of_term, factors, own in zip(frequencies, rarities, said, strict=True):
            near = of_term.take(there)
            total = near[0]
            np.greater(total, 0, out=own)
            for share, of_neighbour in zip(
                (w.before, w.after, w.two_before, w.two_after), near[1:], strict=True
            ):
                total += share * of_neighbour
            context += saturate(total, w.k1, factors)
        return context, said

    def _without_blocks(self) -> Floats:
        """Return upper bounds of the sums of messages without their blocks.

        They hold for messages that follow the one stored before them in their chat.
        """
        before, after, two_before, two_after = (self._weights.context * share for share in self._shares)
        bound = np.correlate(self._most, (two_before, before, 1.0, after, two_after), "full")[2:-2]
        if self.output is not None:
            bound += self.output
        bound[self._none] = 0.0
        return bound

    def _around(self, docs: Numbers) -> Floats:
        """Return the same bounds with the true neighbours; 0 if no word is in any of these messages."""
        bound = np.zeros(len(docs))
        for share, places in zip(self._shares, self._corpora.around(docs)[1:], strict=True):
            bound += share * self._most.take(places)
        bound *= self._corpora.take("context_share", docs)
        bound += self._most.take(docs)
        if self.output is not None:
            bound += self.output.take(docs)
        return bound

    def likely(self, count: int, mask: NDArray[np.bool_] | None) -> Numbers:
        """Return messages among which the best of each space are likely to be; all pass the mask."""
        bound = self._bound if mask is None else self._bound * mask
        docs = np.concatenate(
            [
                start + np.sort(top(bound[start:end], count))
                for start, end in pairwise(self._corpora.documents)
            ]
        )
        return docs[self._around(docs) > 0]

    def reach(self, least: Sequence[float]) -> tuple[Numbers, Floats]:
        """Return the messages whose sums may reach the least of their space, each with an upper bound.

        A message without words whose neighbours have none either is left out, although its block has some.
        """
        corpora = self._corpora
        # A little less, for the rounding of sums.
        least = [score * (1 - 1e-9) for score in least]
        near = np.empty(len(self._bound), np.bool_)
        spaces = zip(least, pairwise(corpora.documents), pairwise(corpora.blocks), strict=True)
        for score, (start, end), (first, last) in spaces:
            lowest = score - float(self.blocks[first:last].max(initial=0.0))
            bound = self._bound[start:end]
            near[start:end] = bound >= lowest if lowest > 0 else bound > 0
        near[corpora.numbers(columns.apart() for columns in corpora.columns)] = True
        near[self._none] = False
        docs = np.flatnonzero(near)
        bound = self._around(docs)
        kept = bound > 0
        bound += self.blocks.take(corpora.take("block", docs))
        kept &= bound >= corpora.each(least, docs)
        return docs[kept], bound[kept]

    def match_words(self, docs: Numbers, said: Mask) -> list[tuple[str, ...]]:
        """Return the words of the query in each of some messages and in its output.

        `said` is the mask of terms that `context` returns.
        """
        matches: list[set[int]] = [set() for _ in docs]
        for place, row in np.argwhere(said.T).tolist():
            matches[place].add(row)
        if self.output is not None:
            self._slots[docs] = np.arange(1, len(docs) + 1)
            postings, ends = self._put_out
            having = np.flatnonzero(self._slots.take(postings))
            places = self._slots.take(postings.take(having)) - 1
            self._slots[docs] = 0
            rows = self._rows.take(ends.searchsorted(having, "right"))
            for place, row in zip(places.tolist(), rows.tolist(), strict=True):
                matches[place].add(row)
        return [
            tuple(dict.fromkeys(self.terms[space][row].written for row in sorted(rows)))
            for space, rows in zip(self._corpora.spaces(docs).tolist(), matches, strict=True)
        ]


def _join(
    lists: Sequence[Sequence[tuple[Numbers, Floats]]], begins: Sequence[int]
) -> tuple[Numbers, Floats, list[int]]:
    """Return the postings of the terms of all spaces one after the other, and the length of each.

    `begins` has the first number of each space.
    """
    every = list(chain.from_iterable(lists))
    sizes = [len(docs) for docs, _ in every]
    numbers = np.concatenate([docs for docs, _ in every])
    if len(lists) > 1:
        shifts = [begin for begin, some in zip(begins, lists, strict=False) for _ in some]
        numbers += np.repeat(shifts, sizes)
    return numbers, np.concatenate([values for _, values in every]), sizes


def add_at(sums: Floats, places: Numbers, values: Floats) -> None:
    """Add values at places: a fifth faster than `sums[places] += values`."""
    sums[places] = sums.take(places) + values


def _per_block(blocks: Numbers, frequencies: Floats, count: int) -> tuple[Numbers, Floats]:
    """Return the blocks with a term, and the sum of its frequencies in each."""
    if count <= 8 * len(blocks):
        sums = _sums(blocks, frequencies, count)
        having = np.flatnonzero(sums)
        return having, sums.take(having)
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
        # A block takes scores at regular distances, so that neighbouring scores are compared at once.
        maxima = scores[: blocks * size].reshape(size, blocks).max(axis=0)
        threshold = float(np.partition(maxima, blocks - count)[blocks - count])
    places = np.flatnonzero(scores >= threshold) if threshold > 0 else np.flatnonzero(scores > 0)
    order = np.argsort(-scores[places], kind="stable")[:count]
    return places[order]
