"""Scoring: pure functions from postings and columns to numbers. Nothing here reads a database or a text.

A document's score is BM25 of its own words, BM25F of its words with those of its neighbours, and BM25 of the block of
conversation it stands in; more if it has substance, if it was said by whom the question names, and if it tells a time
that the question asks for; and a bonus for the date that the question names. The forms and most weights are those that
held on three public sets of conversations; `docs/decisions.md` says which were changed since and on what evidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.search.columns import Columns, Turns, Versions

_DENSE = 24  # a term that more than one document in so many has is common

Floats = NDArray[np.float64]
Numbers = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Weights:
    """Weigh the signals. All are factors of 0 or more; `k1` and `b` are BM25's saturation and length normalisation."""

    k1: float = 0.9
    b: float = 0.75
    context: float = 0.5  # the share of the turn with its neighbours, against the turn alone
    near: float = 0.5  # how much the previous and the next turn count in it
    two_before: float = 0.3
    two_after: float = 0.15
    session: float = 0.6
    session_k1: float = 1.5
    session_b: float = 0.5
    speaker: float = 1.0
    name_as_word: float = 0.25
    time: float = 0.3
    date: float = 0.5
    related: float = 0.5  # what words related to one of the question count, all together, against that word
    short: int = 6  # the number of words up to which they do: in longer questions they count for less
    summary: float = 0.2  # what a summary counts against a turn that says the same
    substance: float = 2.0  # the number of words at which a turn counts half: "Thanks!" answers nothing


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a question: the documents that have it, rising, how often it stands in each, and its weight.

    `rarity` is its inverse document frequency over all that is searched: messages and records weigh a word alike, so
    that their scores can be compared.
    """

    docs: Numbers
    frequencies: Floats
    weight: float
    rarity: float


@dataclass(frozen=True, slots=True)
class Focus:
    """What a question is about besides words: speakers, a time, and dates as (from, before, fit)."""

    actors: frozenset[int] = frozenset()
    asks_time: bool = False
    dates: tuple[tuple[int, int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of the documents that have a word of the question, or whose neighbours do, and what makes them up.

    All arrays are in the order of `docs`, which rise. `ceiling` is the best score that the question could give.
    """

    docs: Numbers
    total: Floats
    words: Floats
    context: Floats
    session: Floats
    factors: dict[str, Floats]
    date: Floats | None
    ceiling: float

    def shares(self, place: int) -> dict[str, float]:
        """Split the score at a place of the arrays into the signals that raised it; the shares add up to 1."""
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


def inverse_frequency(count: int, having: int) -> float:
    """Weigh a term by its rarity: ln(1 + (n - df + ½) / (df + ½)), which is never negative (Lucene's BM25)."""
    return math.log(1 + (count - having + 0.5) / (having + 0.5))


def saturate(frequency: Floats, k1: float, factor: float) -> Floats:
    """Let each further occurrence count for less, up to k1 + 1, and multiply by a factor."""
    saturated = frequency + k1
    np.divide(frequency, saturated, out=saturated)
    saturated *= factor * (k1 + 1)
    return saturated


def score(terms: Sequence[Term], columns: Turns, focus: Focus, weights: Weights) -> Scores:
    """Score the messages of a space for a question.

    Costs about twenty array operations per posting of its terms, and two per document. The result does not depend on
    how the documents are cut into segments, to the last bit.
    """
    size, w = columns.last + 1, weights
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
    return _combine(
        docs,
        words.take(docs),
        context.take(docs),
        session.take(columns.block.take(docs)),
        columns,
        focus,
        w,
        ceiling,
    )


def score_alone(
    terms: Sequence[Term], columns: Versions, alive: NDArray[np.bool_], focus: Focus, weights: Weights
) -> Scores:
    """Score records: BM25 of each by itself, as if those that are alive were all there ever were.

    So what is recalled as of an earlier version scores as it did then, to the last bit. The terms have alive documents
    only. Costs about ten array operations per posting, and two per version of a record.
    """
    size, w = columns.last + 1, weights
    words = np.zeros(size)
    total_words = int(columns.words[:size][alive].sum(dtype=np.int64))
    slope = w.b * max(int(alive.sum()), 1) / max(total_words, 1)
    ceiling = 0.0
    for term in terms:
        length = slope * np.maximum(columns.words.take(term.docs), 1)
        length += 1 - w.b
        idf = term.weight * term.rarity
        _add(words, term.docs, saturate(term.frequencies / length, w.k1, idf))
        ceiling += idf * (w.k1 + 1)
    docs = np.flatnonzero(words)
    none = np.zeros(len(docs))
    focus = Focus(asks_time=focus.asks_time)
    return _combine(docs, words.take(docs), none, none, columns, focus, w, ceiling)


def _add_context(
    context: Floats,
    buffer: Floats,
    columns: Turns,
    docs: Numbers,
    frequency: Floats,
    factor: float,
    w: Weights,
) -> None:
    """Add BM25F of each document with its neighbours; `buffer` is all zero before and after."""
    before, after = columns.previous.take(docs), columns.next.take(docs)
    places = np.concatenate([docs, after, before, columns.next.take(after), columns.previous.take(before)])
    shares = (w.near, w.near, w.two_before, w.two_after)
    size = len(docs)
    if size * _DENSE > len(
        context
    ):  # adding up over all documents is then faster, and gives the same to the last bit
        weighted = np.concatenate([frequency, *(share * frequency for share in shares)])
        sums = _sums(places, weighted, len(context))
        sums[0] = 0.0
        context += saturate(sums, w.k1, factor)
        return
    buffer[docs] = frequency
    for n, share in enumerate(shares, 1):
        place = places[n * size : (n + 1) * size]
        _add(buffer, place, share * frequency)  # all places differ, but for 0, which stands for no document
    buffer[0] = 0.0
    # A place may occur several times: each time the same sum is written to it, so it counts once.
    _add(context, places, saturate(buffer.take(places), w.k1, factor))
    buffer[places] = 0.0


def _add(sums: Floats, places: Numbers, values: Floats) -> None:
    """Add values at places, as `sums[places] += values` does in a fifth more time."""
    sums[places] = sums.take(places) + values


def _per_block(blocks: NDArray[np.int32], frequencies: Floats, count: int) -> tuple[Numbers, Floats]:
    """Add up the frequencies of a term in each block that has it."""
    if count <= 8 * len(blocks):
        sums = _sums(blocks, frequencies, count)
        found = np.flatnonzero(sums)
        return found, sums[found]
    some, places = np.unique(blocks, return_inverse=True)
    return some, _sums(places, frequencies, len(some))


def _sums(places: Numbers, values: Floats, count: int) -> Floats:
    return np.bincount(places, weights=values, minlength=count).astype(np.float64, copy=False)


def _combine(
    docs: Numbers,
    words: Floats,
    context: Floats,
    session: Floats,
    columns: Columns,
    focus: Focus,
    w: Weights,
    ceiling: float,
) -> Scores:
    """Multiply what the words give by the factors, and add the bonus for dates."""
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
    total = words + context
    total += session
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
    return Scores(docs, total, words, context, session, factors, date, max(ceiling, 1e-9))


def top(scores: Floats, count: int) -> Numbers:
    """Find the places of the `count` highest scores above zero, best first, the earlier of equal ones first.

    Takes a threshold from the maxima of blocks, which on mostly-zero scores is far faster than a partition and, with
    at least `count` blocks, exact.
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
