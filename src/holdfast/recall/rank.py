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

from holdfast.recall.columns import Columns

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
    substance: float = 2.0  # the number of words at which a turn counts half: "Thanks!" answers nothing


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a question: the documents that have it, rising, how often it stands in each, and its weight."""

    docs: Numbers
    frequencies: Floats
    weight: float


@dataclass(frozen=True, slots=True)
class Focus:
    """What a question is about besides words: speakers, a time, and dates as (from, before, fit)."""

    actors: frozenset[int] = frozenset()
    asks_time: bool = False
    dates: tuple[tuple[int, int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of all documents, by document number, with what they are made of; `ceiling` is the best possible."""

    total: Floats
    words: Floats
    context: Floats
    session: Floats
    factors: dict[str, Floats]
    date: Floats | None
    ceiling: float

    def shares(self, doc: int) -> dict[str, float]:
        """Split the score of a document into the signals that raised it; the shares add up to 1."""
        base = {
            "words": float(self.words[doc]),
            "neighbours": float(self.context[doc]),
            "session": float(self.session[doc]),
        }
        scale = float(self.factors["substance"][doc])
        parts = {name: value * scale for name, value in base.items()}
        running = sum(parts.values())
        for name, factor in self.factors.items():
            if name != "substance":
                parts[name] = running * (float(factor[doc]) - 1)
                running *= float(factor[doc])
        parts["date"] = 0.0 if self.date is None else float(self.date[doc])
        total = sum(parts.values())
        return {name: value / total for name, value in parts.items() if value > 0}


def inverse_frequency(count: int, having: int) -> float:
    """Weigh a term by its rarity: ln(1 + (n - df + ½) / (df + ½)), which is never negative (Lucene's BM25)."""
    return math.log(1 + (count - having + 0.5) / (having + 0.5))


def saturate(frequency: Floats, k1: float) -> Floats:
    """Let each further occurrence count for less, up to k1 + 1."""
    return frequency * (k1 + 1) / (frequency + k1)


def score(terms: Sequence[Term], columns: Columns, focus: Focus, weights: Weights) -> Scores:
    """Score all documents of a space for a question.

    Costs about ten array operations per posting of its terms and per document. The result does not depend on how the
    documents are cut into segments, to the last bit.
    """
    size, w = columns.last + 1, weights
    words, context, buffer = np.zeros(size), np.zeros(size), np.zeros(size)
    block_words = columns.block_words + 1.0
    session = np.zeros(len(block_words))
    block_norm = (
        1 - w.session_b + w.session_b * block_words / max(block_words.mean(), 1.0)
        if len(block_words)
        else block_words
    )
    mean_words = columns.total_words / max(columns.last, 1)
    ceiling = 0.0
    for term in terms:
        docs = term.docs
        idf = term.weight * inverse_frequency(columns.last, len(docs))
        frequency = term.frequencies / (1 - w.b + w.b * np.maximum(columns.words[docs], 1) / mean_words)
        words[docs] += (1 - w.context) * idf * saturate(frequency, w.k1)
        _add_context(context, buffer, columns, docs, frequency, idf, w)
        blocks, in_block = _per_block(columns.block[docs], term.frequencies, len(session))
        block_idf = term.weight * inverse_frequency(len(session), len(blocks))
        session[blocks] += w.session * block_idf * saturate(in_block / block_norm[blocks], w.session_k1)
        ceiling += idf * (w.k1 + 1) + w.session * block_idf * (w.session_k1 + 1)
    return _combine(words, context, session[columns.block[:size]], columns, focus, w, ceiling)


def _add_context(
    context: Floats,
    buffer: Floats,
    columns: Columns,
    docs: Numbers,
    frequency: Floats,
    idf: float,
    w: Weights,
) -> None:
    """Add BM25F of each document with its neighbours; `buffer` is all zero before and after."""
    before, after = columns.previous[docs], columns.next[docs]
    buffer[docs] = frequency
    touched = [docs]
    for place, share in (
        (after, w.near),
        (before, w.near),
        (columns.next[after], w.two_before),
        (columns.previous[before], w.two_after),
    ):
        buffer[place] += share * frequency  # all places differ, but for 0, which stands for no document
        touched.append(place)
    buffer[0] = 0.0
    places = np.concatenate(touched)
    # A place may occur several times: each time the same sum is written to it, so it counts once.
    context[places] += w.context * idf * saturate(buffer[places], w.k1)
    buffer[places] = 0.0


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
    words: Floats,
    context: Floats,
    session: Floats,
    columns: Columns,
    focus: Focus,
    w: Weights,
    ceiling: float,
) -> Scores:
    size = columns.last + 1
    length = columns.words[:size].astype(np.float64)
    factors: dict[str, Floats] = {
        "substance": length / (length + w.substance) if w.substance else np.ones(size)
    }
    if focus.actors:
        spoken = np.zeros(len(columns.actors))
        spoken[list(focus.actors)] = w.speaker
        factors["speaker"] = 1 + spoken[columns.actor[:size]]
        ceiling *= 1 + w.speaker
    if focus.asks_time:
        factors["time words"] = 1 + w.time * columns.tells_time[:size].astype(np.float64)
        ceiling *= 1 + w.time
    total = words + context
    total += session
    for factor in factors.values():
        total *= factor
    date = None
    if focus.dates:
        fit = np.zeros(size)
        at = columns.at[:size]
        for start, end, share in focus.dates:
            inside = (at >= start) & (at < end)
            fit[inside] = np.maximum(fit[inside], share)
        date = w.date * float(total.max(initial=0.0)) * fit * (total > 0)
        total = total + date
        ceiling *= 1 + w.date
    total[0] = 0.0
    return Scores(total, words, context, session, factors, date, max(ceiling, 1e-9))


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
