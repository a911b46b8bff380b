"""Scoring: pure functions from postings and columns to scores. Nothing here reads a database or a text.

A document's score is BM25 of its own words, BM25F of its words with those of its neighbours, and BM25 of the
block of conversation it stands in; more if it has substance, if its speaker is named in the query, and if it
tells a time that the query asks for; and a bonus for the date that the query names. The forms and most
weights are those that held on three public sets of conversations; `docs/decisions.md` says which were changed
since and on what evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.search import weights
from holdfast.search.columns import Columns, MessageColumns, RecordColumns
from holdfast.search.postings import Floats, Numbers, QueryTerm
from holdfast.search.weights import RankWeights, inverse_frequency
from holdfast.types import Why

# A term that more than one document in so many has is common.
_DENSE = 24


@dataclass(frozen=True, slots=True)
class Focus:
    """What a query asks for besides words: speakers, a time, and dates as (from, before, fit)."""

    actors: frozenset[int] = frozenset()
    asks_time: bool = False
    dates: tuple[tuple[int, int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of documents, and what makes them up.

    They are those that have a term of the query, or whose neighbours do. All arrays are in the order of
    `docs`, which rise. `ceiling` is the best score that the query could give.
    """

    terms: Sequence[QueryTerm]
    docs: Numbers
    total: Floats
    words: Floats
    context: Floats
    session: Floats
    factors: dict[str, Floats]
    date: Floats | None
    ceiling: float

    def ranked(self, masks: Iterable[NDArray[np.bool_]], min_score: float) -> Numbers:
        """Return the places of the arrays that pass all masks and have a score, best first."""
        shares = self.total / self.ceiling
        for mask in masks:
            shares *= mask
        places = np.flatnonzero((shares > 0) & (shares >= min_score))
        return places[np.argsort(-shares[places], kind="stable")]

    def explain(self, places: Sequence[int] | Numbers) -> list[tuple[float, Why]]:
        """Return the score at each of some places, 0 to 1, with the reasons for it."""
        words = self._matched(self.docs[places]) if len(places) else []
        return [
            (float(self.total[place] / self.ceiling), Why(self._shares(place), found))
            for place, found in zip(places, words, strict=True)
        ]

    def _matched(self, docs: Numbers) -> list[tuple[str, ...]]:
        """Return the words of the query that stand in each document itself."""
        found: list[list[str]] = [[] for _ in docs]
        for term in self.terms:
            if len(term.docs):
                places = np.minimum(term.docs.searchsorted(docs), len(term.docs) - 1)
                for place in np.flatnonzero(term.docs.take(places) == docs):
                    found[place].append(term.written)
        return [tuple(words) for words in found]

    def _shares(self, place: int) -> dict[str, float]:
        """Split the score at a place into the signals that raised it; the shares add up to 1."""
        base = {"words": self.words, "neighbours": self.context, "session": self.session}
        scale = float(self.factors["substance"][place])
        parts = {name: float(values[place]) * scale for name, values in base.items()}
        running = sum(parts.values())
        for name, factor in self.factors.items():
            if name != "substance":
                parts[name] = running * (float(factor[place]) - 1)
                running *= float(factor[place])
        parts["date"] = 0.0 if self.date is None else float(self.date[place])
        total = sum(parts.values())
        return {name: value / total for name, value in parts.items() if value > 0}


def saturate(frequency: Floats, k1: float, factor: float) -> Floats:
    """Return `factor` times BM25's saturated frequency: each occurrence adds less, up to k1 + 1."""
    saturated = frequency + k1
    np.divide(frequency, saturated, out=saturated)
    saturated *= factor * (k1 + 1)
    return saturated


def score(terms: Sequence[QueryTerm], columns: MessageColumns, focus: Focus) -> Scores:
    """Return the scores of the messages of a space.

    Costs about twenty array operations per posting of its terms, and two per document. The result does not
    depend on how the documents are cut into segments, to the last bit.
    """
    size, w = columns.last + 1, weights.WEIGHTS
    words, context, buffer = np.zeros(size), np.zeros(size), np.zeros(size)
    block_words = columns.block_words + 1.0
    session = np.zeros(len(block_words))
    block_norm = 1 - w.session_b + w.session_b / max(float(block_words.mean()), 1.0) * block_words
    slope = w.b * max(columns.last, 1) / max(columns.total_words, 1)
    ceiling = 0.0
    for term in terms:
        docs = term.docs
        idf = term.weight * term.rarity
        length = slope * np.maximum(columns.words.take(docs), 1)
        length += 1 - w.b
        frequency = term.frequencies / length
        _add(words, docs, saturate(frequency, w.k1, (1 - w.context) * idf))
        _add_context(context, buffer, columns, docs, frequency, w.context * idf, w)
        blocks, in_block = _per_block(columns.block.take(docs), term.frequencies, len(session))
        block_idf = w.session * term.weight * inverse_frequency(len(session), len(blocks))
        session[blocks] += saturate(in_block / block_norm[blocks], w.session_k1, block_idf)
        ceiling += idf * (w.k1 + 1) + block_idf * (w.session_k1 + 1)
    # A message that merely stands in a session where the words were said is no answer: it has no score.
    docs = np.flatnonzero((words + context) > 0)
    parts = (words.take(docs), context.take(docs), session.take(columns.block.take(docs)))
    return _combine(terms, docs, parts, columns, focus, ceiling)


def score_alone(
    terms: Sequence[QueryTerm], columns: RecordColumns, alive: NDArray[np.bool_] | None, *, asks_time: bool
) -> Scores:
    """Return the scores of records: BM25 of each by itself, as if only those alive had ever been.

    So a recall as of an earlier version gives the scores of then, to the last bit. The terms have alive
    documents only; None stands for all. Costs about ten array operations per posting, and two per version of
    a record.
    """
    size, w = columns.last + 1, weights.WEIGHTS
    words = np.zeros(size)
    lengths = columns.words[1:size] if alive is None else columns.words[:size][alive]
    slope = w.b * max(len(lengths), 1) / max(int(lengths.sum(dtype=np.int64)), 1)
    ceiling = 0.0
    for term in terms:
        length = slope * np.maximum(columns.words.take(term.docs), 1)
        length += 1 - w.b
        idf = term.weight * term.rarity
        _add(words, term.docs, saturate(term.frequencies / length, w.k1, idf))
        ceiling += idf * (w.k1 + 1)
    docs = np.flatnonzero(words)
    none = np.zeros(len(docs))
    return _combine(terms, docs, (words.take(docs), none, none), columns, Focus(asks_time=asks_time), ceiling)


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
    shares = (w.near, w.near, w.two_before, w.two_after)
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
        _add(buffer, places[n * size : (n + 1) * size], share * frequency)
    buffer[0] = 0.0
    # A place may occur several times: each time the same sum is written to it, so it counts once.
    _add(context, places, saturate(buffer.take(places), w.k1, factor))
    buffer[places] = 0.0


def _add(sums: Floats, places: Numbers, values: Floats) -> None:
    """Add values at places: a fifth faster than `sums[places] += values`."""
    sums[places] = sums.take(places) + values


def _per_block(blocks: NDArray[np.int32], frequencies: Floats, count: int) -> tuple[Numbers, Floats]:
    """Return the blocks that have a term, and the sum of its frequencies in each."""
    if count <= 8 * len(blocks):
        sums = _sums(blocks, frequencies, count)
        found = np.flatnonzero(sums)
        return found, sums[found]
    some, places = np.unique(blocks, return_inverse=True)
    return some, _sums(places, frequencies, len(some))


def _sums(places: Numbers, values: Floats, count: int) -> Floats:
    return np.bincount(places, weights=values, minlength=count).astype(np.float64, copy=False)


def _combine(
    terms: Sequence[QueryTerm],
    docs: Numbers,
    parts: tuple[Floats, Floats, Floats],
    columns: Columns,
    focus: Focus,
    ceiling: float,
) -> Scores:
    """Return the sum of the parts (words, context, session) times the factors, with the bonus for dates."""
    w = weights.WEIGHTS
    length = np.maximum(columns.words.take(docs), 1).astype(np.float64)
    factors: dict[str, Floats] = {
        "substance": length / (length + w.substance) if w.substance else np.ones(len(docs))
    }
    if focus.actors:
        spoken = np.ones(len(columns.actors))
        spoken[list(focus.actors)] += w.speaker
        factors["speaker"] = spoken.take(columns.actor.take(docs))
        ceiling *= 1 + w.speaker
    if focus.asks_time:
        factors["time words"] = 1 + w.time * columns.tells_time.take(docs).astype(np.float64)
        ceiling *= 1 + w.time
    total = parts[0] + parts[1]
    total += parts[2]
    for factor in factors.values():
        total *= factor
    date = None
    if focus.dates:
        fit = np.zeros(len(docs))
        at = columns.at.take(docs)
        for start, end, share in focus.dates:
            inside = (at >= start) & (at < end)
            fit[inside] = np.maximum(fit[inside], share)
        date = w.date * float(total.max(initial=0.0)) * fit
        total = total + date
        ceiling *= 1 + w.date
    return Scores(terms, docs, total, *parts, factors, date, max(ceiling, 1e-9))


def top(scores: Floats, count: int) -> Numbers:
    """Return the places of the `count` highest scores above zero, best first, equal ones in order.

    Takes a threshold from the maxima of blocks, which on mostly-zero scores is far faster than a partition
    and, with at least `count` blocks, exact.
    """
    size = 512
    threshold = 0.0
    blocks = len(scores) // size
    if blocks > count > 0:
        maxima = scores[: blocks * size].reshape(blocks, size).max(axis=1)
        threshold = float(np.partition(maxima, blocks - count)[blocks - count])
    places = np.flatnonzero(scores >= threshold) if threshold > 0 else np.flatnonzero(scores > 0)
    order = np.argsort(-scores[places], kind="stable")[:count]
    return places[order]
