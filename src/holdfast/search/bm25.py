"""BM25 of messages, of messages with their neighbours, and of the blocks of conversation they stand in.

Pure functions from postings and columns to sums; `rank.py` makes scores of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.search import weights
from holdfast.search.columns import Floats, MessageColumns, Numbers
from holdfast.search.postings import QueryTerm
from holdfast.search.weights import RankWeights, inverse_frequency

# A term that more than one document in so many has is common.
_DENSE = 24


def saturate(frequency: Floats, k1: float, factor: float) -> Floats:
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
    """What the words of a query add up to in each message, its neighbours, its output and its block."""

    def __init__(self, columns: MessageColumns, terms: Sequence[QueryTerm]) -> None:
        self._weights, self._columns = weights.WEIGHTS, columns
        size, b = columns.last + 1, self._weights.b
        self._buffer = np.zeros(size)
        self.words = np.zeros(size)
        self.context = np.zeros(size)
        self.output = np.zeros(size) if columns.total_output else None
        self._passages = np.zeros(columns.places + 2) if columns.places > columns.last else None
        self.blocks = np.zeros(columns.blocks)
        # Of each block, its words against those of an average one.
        self._of_average = (columns.block_words + 1) / max(float(columns.block_words.mean()) + 1, 1.0)
        self._slope = b * columns.last / max(columns.total_words, 1)
        self._passage_slope = b * columns.places / max(columns.total_words, 1)
        self._output_slope = b * columns.outputs / max(columns.total_output, 1)
        self.ceiling = 0.0
        for term in terms:
            self._add(term)
        self._count_best_passages(terms)

    def _add(self, term: QueryTerm) -> None:
        w, columns, docs = self._weights, self._columns, term.said.docs
        idf = term.weight * term.rarity
        frequency = relative(term.said.frequencies, columns.words.take(docs), self._slope, w.b)
        add_at(self.words, docs, saturate(frequency, w.k1, idf))
        _add_context(self.context, self._buffer, columns, docs, frequency, idf, w)
        blocks, in_block = _per_block(columns.block.take(docs), term.said.frequencies, columns.blocks)
        block_idf = w.session * term.weight * inverse_frequency(columns.blocks, len(blocks))
        length = 1 - w.session_b + w.session_b * self._of_average[blocks]
        self.blocks[blocks] += saturate(in_block / length, w.session_k1, block_idf)
        most = 1 if self.output is None else 1 + w.output
        self.ceiling += most * idf * (w.k1 + 1) + block_idf * (w.session_k1 + 1)
        if self._passages is not None and term.said.passages is not None:
            places, within = term.said.passages
            within = relative(within, columns.passage_words.take(places), self._passage_slope, w.b)
            add_at(self._passages, places, saturate(within, w.k1, idf))
        if self.output is not None and len(term.output.docs):
            docs = term.output.docs
            put_out = relative(term.output.frequencies, columns.output.take(docs), self._output_slope, w.b)
            add_at(self.output, docs, saturate(put_out, w.k1, w.output * idf))

    def _count_best_passages(self, terms: Sequence[QueryTerm]) -> None:
        """Let the best passage count in each message that has several."""
        places = [term.said.passages[0] for term in terms if term.said.passages is not None]
        if self._passages is None or not places:
            return
        docs = np.unique(self._columns.documents(np.concatenate(places)))
        begins = np.append(self._columns.begins[: len(self.words)], self._columns.places + 1)
        bounds = np.column_stack([begins.take(docs), begins.take(docs + 1)])
        best = np.maximum.reduceat(self._passages, bounds.ravel())[::2]
        share = self._weights.passage
        self.words[docs] = (1 - share) * self.words[docs] + share * best

    def total(self) -> Floats:
        """Return for each message all sums, 0 where no word is in it, its neighbours or its output."""
        columns, size = self._columns, len(self.words)
        total = self.context - self.words
        total *= columns.context_share[:size]
        total += self.words
        if self.output is not None:
            total += self.output
        found = total > 0
        # A message that merely stands in a session where the words were said is no answer: it has no score.
        total += self.blocks.take(columns.block[:size])
        total *= found
        return total


def _add_context(
    context: Floats,
    buffer: Floats,
    columns: MessageColumns,
    docs: Numbers,
    frequency: Floats,
    factor: float,
    w: RankWeights,
) -> None:
    """Add BM25F of each document with its neighbours; `buffer` is all zero before and after."""
    before, after = columns.previous.take(docs), columns.next.take(docs)
    places = np.concatenate([docs, after, before, columns.next.take(after), columns.previous.take(before)])
    shares = (w.before, w.after, w.two_before, w.two_after)
    size = len(docs)
    # Adding up over all documents is then faster, and gives the same to the last bit.
    if size * _DENSE > len(context):
        weighted = np.concatenate([frequency, *(share * frequency for share in shares)])
        sums = _sums(places, weighted, len(context))
        sums[0] = 0.0
        context += saturate(sums, w.k1, factor)
        return
    buffer[docs] = frequency
    for n, share in enumerate(shares, 1):
        # All places differ, but for 0, which stands for no document.
        add_at(buffer, places[n * size : (n + 1) * size], share * frequency)
    buffer[0] = 0.0
    # A place may occur several times: each time the same sum is written to it, so it counts once.
    add_at(context, places, saturate(buffer.take(places), w.k1, factor))
    buffer[places] = 0.0


def add_at(sums: Floats, places: Numbers, values: Floats) -> None:
    """Add values at places: a fifth faster than `sums[places] += values`."""
    sums[places] = sums.take(places) + values


def _per_block(blocks: NDArray[np.int64], frequencies: Floats, count: int) -> tuple[Numbers, Floats]:
    """Return the blocks that have a term, and the sum of its frequencies in each."""
    if count <= 8 * len(blocks):
        sums = _sums(blocks, frequencies, count)
        found = np.flatnonzero(sums)
        return found, sums[found]
    some, places = np.unique(blocks, return_inverse=True)
    return some, _sums(places, frequencies, len(some))


def _sums(places: Numbers, values: Floats, count: int) -> Floats:
    return np.bincount(places, weights=values, minlength=count).astype(np.float64, copy=False)
