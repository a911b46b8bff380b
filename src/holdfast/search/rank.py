"""Scoring: pure functions from postings and columns to scores. Nothing here reads a database or a text.

A document's score is BM25 of its own words, BM25F of its words with those of its neighbours, and BM25 of the
block of conversation that it belongs to; factors for substance, for a speaker that the query names, and for a
time if the query asks for one; and a bonus for a date that the query names. The formulas and most weights are
those that held on three public sets of conversations; `docs/decisions.md` lists later changes with their
evidence.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.search import weights
from holdfast.search.bm25 import SpaceSums, relative, saturate
from holdfast.search.columns import NO_NUMBERS, Columns, Floats, Mask, MessageColumns, Numbers, RecordColumns
from holdfast.search.kernel import LATER, NOT_RAISED, KernelSums, kernel_in_use
from holdfast.search.postings import LIKE, QueryTerm
from holdfast.types import Why

if TYPE_CHECKING:
    from holdfast.search.filters import Later

# The parts of a score and its factors, in their order.
_PARTS, _FACTORS = ("words", "neighbours", "session"), ("substance", "conclusion", "speaker", "time words")
# A raised score is just above the other one, by more than is lost by rounding.
_ABOVE = 1 + 1e-12
# The share of the best score possible that a message is worth by nothing but the day that is asked for.
_OF_THE_DAY = 0.25
# The messages of a day or a span that are looked at without a word of the query; of more, the newest.
_MOST_OF_A_SPAN = 4_096
# The number of earlier messages that a later one is compared with.
_LOOKED_AT = 32


class Focus(NamedTuple):
    """The parts of a query besides words: speakers, a time, dates as (from, before, fit)."""

    actors: frozenset[int] = frozenset()
    asks_time: bool = False
    dates: tuple[tuple[int, int, float], ...] = ()


class Corpus(NamedTuple):
    """The messages of a space for a query: its terms there, its other parts, and a mask of filters."""

    columns: MessageColumns
    terms: Sequence[QueryTerm]
    focus: Focus = Focus()
    mask: Mask | None = None


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of documents and their components; all arrays are in the order of `docs`, which rise.

    `parts` add up to the score before `factors` change it, `bonuses` are added after them. `ceiling` is the
    best score that the query could give. `match_words` returns the words of the query in the documents at
    some places. `said` is a mask of the terms in each message, a row for each term.
    """

    docs: Numbers
    total: Floats
    parts: dict[str, Floats]
    factors: dict[str, Floats]
    bonuses: dict[str, Floats]
    ceiling: float | Floats
    match_words: Callable[[Sequence[int]], list[tuple[str, ...]]]
    said: Mask | None = None

    @property
    def shares(self) -> Floats:
        """The score of each document from 0 to 1."""
        return np.minimum(self.total / self.ceiling, 1.0)

    def explain(self, places: Sequence[int]) -> list[Why]:
        """Return the reasons for the score at each of some places."""
        if not places:
            return []
        signals = self._signals(np.asarray(places))
        totals: list[float] = np.asarray(sum(signals.values())).tolist()
        # All at once: to take single numbers from an array costs more than the work on them.
        rows = zip(*(values.tolist() for values in signals.values()), strict=True)
        matches = self.match_words(places)
        return [
            Why({name: value / total for name, value in zip(signals, row, strict=True) if value > 0}, words)
            for total, row, words in zip(totals, rows, matches, strict=True)
        ]

    def _signals(self, places: Numbers) -> dict[str, Floats]:
        """Return the amount that each signal adds to the score at each of some places."""
        scale = self.factors["substance"].take(places)
        signals = {name: values.take(places) * scale for name, values in self.parts.items()}
        running = sum(signals.values())
        for name, values in self.factors.items():
            if name != "substance":
                factor = values.take(places)
                signals[name] = running * (factor - 1)
                running = running * factor
        return signals | {name: values.take(places) for name, values in self.bonuses.items()}


def score(corpus: Corpus, limit: int, later: Later | None) -> Scores:
    """Return the scores of messages of a space, which include the `limit` best.

    Among nearly equal messages of a chat the later ones come first, since later statements replace earlier
    ones. `later` says whether that holds within each chat, for all chats, or not at all.

    Costs about twenty array operations per posting of its terms, and ten per document. The result does not
    depend on how the documents are cut into segments, to the last bit.
    """
    columns, terms, focus, _ = corpus
    if not terms:
        return Scores(NO_NUMBERS, np.zeros(0), {}, {}, {}, 1.0, lambda _: [])
    ranking = _ByKernel(corpus) if kernel_in_use() == "C" else _ByNumpy(corpus)
    bonus = None
    if focus.dates:
        highest = max(ranking.highest(), _OF_THE_DAY * ranking.sums.ceiling)
        bonus = weights.WEIGHTS.date * highest * _fit(columns, focus.dates)
        bonus *= _substance(columns.words[: columns.last + 1], _half(terms))
    return ranking.best(limit, later, bonus)


class _ByNumpy:
    """The order of the messages of a space; all that have a word of the query near them are scored."""

    def __init__(self, corpus: Corpus) -> None:
        self.sums, self._corpus = SpaceSums(corpus.columns, corpus.terms), corpus
        self._candidates = self.sums.candidates()

    def highest(self) -> float:
        """Return the highest score without a bonus and a filter."""
        return float(_exact(self.sums, self._corpus, self._candidates).total.max(initial=0.0))

    def best(self, limit: int, later: Later | None, bonus: Floats | None) -> Scores:
        """See `score`."""
        docs, columns, mask = self._candidates, self._corpus.columns, self._corpus.mask
        exact = partial(_exact, self.sums, self._corpus, bonus=bonus)
        if mask is not None:
            docs = docs[mask.take(docs)]
        if bonus is not None:
            of_span = np.flatnonzero((bonus > 0) if mask is None else (bonus > 0) & mask)
            docs = np.union1d(docs, of_span[-_MOST_OF_A_SPAN:])
        scores = raise_lenders(exact(docs), columns, limit, mask, exact)
        return scores if later is None else raise_later(scores, columns, limit, later)


class _ByKernel:
    """The same by the kernel in C."""

    def __init__(self, corpus: Corpus) -> None:
        columns, terms, focus, _ = self._corpus = corpus
        time = weights.WEIGHTS.time * focus.asks_time
        factors = time, _half(terms), _most(focus, columns)
        self.sums = KernelSums(columns, terms, _spoken(focus, columns), factors)

    def highest(self) -> float:
        """Return the highest score without a bonus and a filter."""
        return float(self.sums.best(1, NOT_RAISED)[1][-1].max(initial=0.0))

    def best(self, limit: int, later: Later | None, bonus: Floats | None) -> Scores:
        """See `score`."""
        found = self.sums.best(limit, LATER[later], _MOST_OF_A_SPAN, self._corpus.mask, bonus)
        docs, (*values, output, date, plain, raised, total), bits = found
        bonuses = {"output": output, "date": date, "own words": raised - plain, "later": total - raised}
        parts, factors = dict(zip(_PARTS, values, strict=False)), dict(zip(_FACTORS, values[3:], strict=True))
        match_words = partial(_words, self._corpus.terms, bits[0] | bits[1])
        return Scores(docs, total, parts, factors, bonuses, _ceiling(self.sums, self._corpus), match_words)


def _floor(scores: Scores, columns: MessageColumns, limit: int) -> float:
    """Return the score that a document needs to be among the `limit` best."""
    # A little less, for the rounding of products.
    share = (1 - weights.WEIGHTS.later) * (1 - 1e-9)
    return share * _least(scores.total, columns.same.take(scores.docs), limit)


def _least(total: Floats, same: NDArray[np.uint64], limit: int) -> float:
    """Return the lowest of the `limit` best scores of different texts; 0 if there are fewer."""
    if not len(total) >= limit > 0:
        return 0.0
    if len(total) > 4 * limit:
        # Most often there are as many among these few.
        some = np.argpartition(total, -4 * limit)[-4 * limit :]
        if least := _least(total[some], same[some], limit):
            return least
    lone = total[first_of_equals(same, total)]
    return float(np.partition(lone, -limit)[-limit]) if len(lone) >= limit else 0.0


def first_of_equals(same: NDArray[np.uint64], scores: Floats) -> Mask:
    """Return a mask of the best of the documents that say the same; of equal scores, the last."""
    mask, ordered = np.ones(len(same), bool), np.sort(same)
    # 0 is no text.
    again = ordered[1:][(ordered[1:] == ordered[:-1]) & (ordered[1:] > 0)]
    if not len(again):
        return mask
    some = np.flatnonzero(np.isin(same, again))
    some = some[np.lexsort((some, scores[some], same[some]))]
    mask[some[:-1]] = same[some[1:]] != same[some[:-1]]
    return mask


def raise_lenders(
    scores: Scores,
    columns: MessageColumns,
    limit: int,
    mask: Mask | None,
    exact: Callable[[Numbers], Scores],
) -> Scores:
    """Raise the message with words of the query above one that has none and scores by standing beside it."""
    # What is of the day that is asked for borrows nothing.
    of_day = scores.bonuses.get("date", np.zeros(len(scores.docs))) > 0
    borrowers = scores.docs[~_own(scores) & ~of_day & (scores.total >= _floor(scores, columns, limit))]
    if not len(borrowers):
        return scores
    around = np.stack(columns.around(borrowers)[1:])
    there = around > 0
    if mask is not None:
        there &= mask.take(around)
    # One without words of its own lends nothing, and is no hit for standing near.
    near = exact(np.unique(around[there]))
    lenders = near.docs[_own(near)]
    scores = exact(np.union1d(scores.docs, lenders))
    there &= np.isin(around, lenders)
    total, places = scores.total.copy(), np.where(there, scores.docs.searchsorted(around), 0)
    lent = np.where(there, scores.total.take(places), 0.0)
    some = np.flatnonzero(lent.max(axis=0) > 0)
    levels = scores.total.take(scores.docs.searchsorted(borrowers[some])) * _ABOVE
    np.maximum.at(total, places[lent.argmax(axis=0)[some], some], levels)
    return replace(scores, total=total, bonuses={**scores.bonuses, "own words": total - scores.total})


def _own(scores: Scores) -> Mask:
    """Return a mask of the messages that have a word of the query themselves."""
    none = np.zeros(len(scores.docs), bool)
    said = none if scores.said is None else scores.said.any(axis=0)
    own: Mask = said | (scores.bonuses.get("output", none) > 0)
    return own


def raise_later(scores: Scores, columns: MessageColumns, limit: int, later: Later) -> Scores:
    """Raise each message above the best earlier one, of its chat or of any, that it may replace.

    Of a chat only where an assistant speaks in it: what people say to each other seldom replaces something.
    It may replace a message with a nearly equal score if it has a third of its words of the query.
    """
    share = 1 - weights.WEIGHTS.later
    if share == 1 or scores.said is None:
        return scores
    places = np.flatnonzero(scores.total >= _floor(scores, columns, limit))
    if later == "chat":
        places = places[columns.assisted.take(columns.chat.take(scores.docs[places]))]
    docs = scores.docs[places]
    chats = columns.chat.take(docs).tolist() if later == "chat" else [0] * len(docs)
    raised = scores.total[places].tolist()
    # The terms of each message as the bits of a number.
    bits = np.packbits(scores.said[:, places].T, axis=1, bitorder="little")
    words = [int.from_bytes(row, "little") for row in map(bytes, bits)]
    # The scores and the words of earlier messages, by chat.
    earlier: dict[int, list[tuple[float, int]]] = {}
    for n in np.lexsort((docs, columns.at.take(docs))).tolist():
        if not words[n]:
            continue
        score, before = raised[n], earlier.setdefault(chats[n], [])
        end = bisect_right(before, (score / share, 0))
        for level, other in reversed(before[max(0, end - _LOOKED_AT) : end]):
            if level < score:
                break
            if 3 * (other & words[n]).bit_count() >= other.bit_count():
                score = raised[n] = level * _ABOVE
                break
        insort(before, (score, words[n]))
    total = scores.total.copy()
    total[places] = raised
    return replace(scores, total=total, bonuses={**scores.bonuses, "later": total - scores.total})


def _match_words(terms: Sequence[QueryTerm], every: Numbers, places: Sequence[int]) -> list[tuple[str, ...]]:
    """Return the words of the query in the records or summaries at some places; these have no output."""
    docs, matched = every[places], np.zeros((len(places), len(terms)), bool)
    for n, term in enumerate(terms):
        if len(having := term.said.docs):
            matched[:, n] = having.take(having.searchsorted(docs), mode="clip") == docs
    return _words(terms, np.packbits(matched, axis=1, bitorder="little"), range(len(docs)))


def _most(focus: Focus, columns: Columns) -> float:
    """Return the largest product of all factors."""
    w = weights.WEIGHTS
    most = 1 + w.conclusion if isinstance(columns, MessageColumns) else 1.0
    return most * (1 + w.speaker * bool(focus.actors)) * (1 + w.time * focus.asks_time)


def _fit(columns: MessageColumns, dates: Sequence[tuple[int, int, float]]) -> Floats:
    """Return the fit of the time of each message to dates, 0 to 1."""
    at = columns.at[: columns.last + 1]
    fit = np.zeros(len(at))
    for start, end, share in dates:
        inside = (at >= start) & (at < end)
        fit[inside] = np.maximum(fit[inside], share)
    return fit


def _exact(sums: SpaceSums, corpus: Corpus, docs: Numbers, bonus: Floats | None = None) -> Scores:
    """Return the scores of some messages; `bonus` has one for every message."""
    w, (columns, terms, focus, _) = weights.WEIGHTS, corpus
    share, (of_docs, (said, put_out)) = columns.context_share.take(docs), sums.of(docs)
    words, context, blocks, output = of_docs
    parts = {"words": (1 - share) * words, "neighbours": share * context, "session": blocks}
    factors = {"substance": _substance(columns.words.take(docs), _half(terms))}
    if w.conclusion:
        factors["conclusion"] = 1 + w.conclusion * columns.concludes(docs).astype(np.float64)
    if focus.actors:
        factors["speaker"] = _spoken(focus, columns).take(columns.actor.take(docs))
    if focus.asks_time:
        factors["time words"] = 1 + w.time * columns.tells_time.take(docs).astype(np.float64)
    bonuses = {"output": output}
    if bonus is not None:
        bonuses["date"] = bonus.take(docs)
    total = _combine(docs, parts, factors, bonuses)
    match_words = partial(_words, terms, np.packbits(said | put_out, axis=0, bitorder="little").T)
    return Scores(docs, total, parts, factors, bonuses, _ceiling(sums, corpus), match_words, said)


def _ceiling(sums: SpaceSums | KernelSums, corpus: Corpus) -> float:
    """Return the best score that a query could give."""
    most = _most(corpus.focus, corpus.columns) * (1 + weights.WEIGHTS.date * bool(corpus.focus.dates))
    return max(sums.ceiling * most, 1e-9)


def _spoken(focus: Focus, columns: MessageColumns) -> Floats:
    """Return the factor of each speaker."""
    factors = np.ones(len(columns.actors))
    factors[list(focus.actors)] += weights.WEIGHTS.speaker
    return factors


def _words(terms: Sequence[QueryTerm], bits: NDArray[np.uint8], at: Sequence[int]) -> list[tuple[str, ...]]:
    """Return the words of the query in the documents at some places; a bit tells whether one has a term."""
    written = [term.written for term in terms]
    rows = np.unpackbits(bits[at], axis=1, bitorder="little").tolist()
    return [tuple(dict.fromkeys(compress(written, row))) for row in rows]


def score_alone(
    terms: Sequence[QueryTerm], columns: RecordColumns, alive: NDArray[np.bool_] | None, *, asks_time: bool
) -> Scores:
    """Return the scores of records: BM25 of each by itself, as if only the alive ones existed.

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
        idf = term.weight * term.rarity
        docs = term.said.docs
        frequency = relative(term.said.frequencies, columns.words.take(docs), slope, w.b)
        # A fifth faster than `+=`.
        words[docs] = words.take(docs) + saturate(frequency, w.k1, idf)
        ceiling += idf * (w.k1 + 1)
    docs = np.flatnonzero(words)
    factors = {"substance": _substance(columns.words.take(docs), _half(terms))}
    if asks_time:
        factors["time words"] = 1 + w.time * columns.tells_time.take(docs).astype(np.float64)
    ceiling = max(ceiling * _most(Focus(asks_time=asks_time), columns), 1e-9)
    parts = {"words": words.take(docs)}
    total = _combine(docs, parts, factors, {})
    return Scores(docs, total, parts, factors, {}, ceiling, partial(_match_words, terms, docs))


def _substance(words: Numbers, half: float | Floats) -> Floats:
    """Return the factors of texts by their words: short texts say little; `half` words have half a factor."""
    length = np.maximum(words, 1).astype(np.float64)
    return length / (length + half)


def _half(terms: Sequence[QueryTerm]) -> float:
    """Return the number of words that have half a factor: a text as short as the query says enough."""
    return min(weights.WEIGHTS.substance, sum(not term.written.startswith(LIKE) for term in terms))


def _combine(
    docs: Numbers, parts: dict[str, Floats], factors: dict[str, Floats], bonuses: dict[str, Floats]
) -> Floats:
    """Return the sum of the parts times the factors, plus the bonuses."""
    total = np.zeros(len(docs))
    for part in parts.values():
        total += part
    for factor in factors.values():
        total *= factor
    for bonus in bonuses.values():
        total += bonus
    return total
