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
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.search import weights
from holdfast.search.bm25 import add_at, relative, saturate
from holdfast.search.columns import NO_NUMBERS, Columns, Floats, Mask, MessageColumns, Numbers, RecordColumns
from holdfast.search.corpora import Corpora
from holdfast.search.postings import LIKE, QueryTerm
from holdfast.search.sums import MessageSums
from holdfast.types import Why

if TYPE_CHECKING:
    from holdfast.search.filters import Later

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
        signals = self._signals(places)
        totals: list[float] = np.asarray(sum(signals.values())).tolist()
        # All at once: to take single numbers from an array costs more than the work on them.
        rows = zip(*(values.tolist() for values in signals.values()), strict=True)
        matches = self.match_words(places)
        return [
            Why({name: value / total for name, value in zip(signals, row, strict=True) if value > 0}, words)
            for total, row, words in zip(totals, rows, matches, strict=True)
        ]

    def _signals(self, places: Sequence[int] | Numbers) -> dict[str, Floats]:
        """Return the amount that each signal adds to the score at each of some places."""
        scale = self.factors["substance"][places]
        signals = {name: values[places] * scale for name, values in self.parts.items()}
        running = sum(signals.values())
        for name, values in self.factors.items():
            if name != "substance":
                factor = values[places]
                signals[name] = running * (factor - 1)
                running = running * factor
        return signals | {name: values[places] for name, values in self.bonuses.items()}


def score(corpora: Sequence[Corpus], limit: int, later: Later | None) -> Scores:
    """Return the scores of messages of some spaces, which include the `limit` best of each space.

    Scores do not depend on the other spaces; documents are numbered as in `Corpora`. Among nearly equal
    messages of a chat the later ones come first, since later statements replace earlier ones. `later` says
    whether that holds within each chat, for all chats of a space, or not at all.

    Costs about twenty array operations per posting of its terms, and ten per document. The result does not
    depend on how the documents are cut into segments, to the last bit.
    """
    if not any(corpus.terms for corpus in corpora):
        return Scores(NO_NUMBERS, np.zeros(0), {}, {}, {}, 1.0, lambda _: [])
    every = Corpora([corpus.columns for corpus in corpora])
    sums = MessageSums(every, [corpus.terms for corpus in corpora])
    exact = partial(_exact, sums, every, [corpus.focus for corpus in corpora])
    mask = None
    if any(corpus.mask is not None for corpus in corpora):
        mask = every.together(
            np.ones(corpus.columns.last + 1, bool) if corpus.mask is None else corpus.mask
            for corpus in corpora
        )
    # The score of a message is at most its sum times this.
    most = [_most(corpus.focus, corpus.columns) for corpus in corpora]
    in_reach = partial(_in_reach, sums, every, most)
    bonus = None
    if any(corpus.focus.dates for corpus in corpora):
        best = exact(in_reach(1, exact))
        spaces = zip(corpora, sums.ceilings, pairwise(every.bounds(best.docs)), strict=True)
        bonus = every.together(
            weights.WEIGHTS.date
            * max(float(best.total[start:end].max(initial=0.0)), _OF_THE_DAY * ceiling)
            * _fit(corpus.columns, corpus.focus.dates)
            * _substance(corpus.columns.words[: corpus.columns.last + 1], _half(corpus.terms))
            for corpus, ceiling, (start, end) in spaces
        )
    docs = in_reach(limit, partial(exact, bonus=bonus), mask, bonus)
    if bonus is not None:
        of_span = np.flatnonzero((bonus > 0) if mask is None else (bonus > 0) & mask)
        docs = np.union1d(docs, of_span[-_MOST_OF_A_SPAN:])
    scores = raise_lenders(exact(docs, bonus=bonus), every, limit, mask, partial(exact, bonus=bonus))
    return scores if later is None else raise_later(scores, every, limit, later)


def _in_reach(
    sums: MessageSums,
    every: Corpora,
    most: Sequence[float],
    limit: int,
    exact: Callable[[Numbers], Scores],
    mask: Mask | None = None,
    bonus: Floats | None = None,
) -> Numbers:
    """Return the documents that can be among the `limit` best, even after later ones are raised."""
    likely = exact(sums.likely(2 * limit, mask))
    floors = _floors(likely, every, limit)
    highest = [0.0] * len(floors)
    if bonus is not None:
        highest = [float(bonus[start:end].max()) for start, end in pairwise(every.documents)]
    docs, bound = sums.reach([(a - b) / c for a, b, c in zip(floors, highest, most, strict=True)])
    bound *= every.each(most, docs)
    if bonus is not None:
        bound += bonus.take(docs)
    passes = bound >= every.each(floors, docs)
    if mask is not None:
        passes &= mask.take(docs)
    return docs[passes]


def _floors(scores: Scores, every: Corpora, limit: int) -> list[float]:
    """Return the score of each space that a document needs to be among its `limit` best."""
    same = every.take("same", scores.docs)
    bounds = pairwise(every.bounds(scores.docs))
    # A little less, for the rounding of products.
    share = (1 - weights.WEIGHTS.later) * (1 - 1e-9)
    return [share * _least(scores.total[start:end], same[start:end], limit) for start, end in bounds]


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
    scores: Scores, every: Corpora, limit: int, mask: Mask | None, exact: Callable[[Numbers], Scores]
) -> Scores:
    """Raise the message with words of the query above one that has none and scores by standing beside it."""
    floors = every.each(_floors(scores, every, limit), scores.docs)
    # What is of the day that is asked for borrows nothing.
    of_day = scores.bonuses.get("date", np.zeros(len(scores.docs))) > 0
    borrowers = scores.docs[~_own(scores) & ~of_day & (scores.total >= floors) & (scores.total > 0)]
    if not len(borrowers):
        return scores
    around = np.stack(every.around(borrowers)[1:])
    # Document 0 of a space stands for no neighbour.
    there = ~np.isin(around, every.documents)
    if mask is not None:
        there &= mask.take(around)
    if not np.isin(around[there], scores.docs).all():
        scores = exact(np.union1d(scores.docs, around[there]))
    total, places = scores.total.copy(), np.where(there, scores.docs.searchsorted(around), 0)
    lent = np.where(there & _own(scores).take(places), scores.total.take(places), 0.0)
    some = lent.max(axis=0) > 0
    lenders = places[lent.argmax(axis=0), np.arange(len(borrowers))]
    levels = scores.total.take(scores.docs.searchsorted(borrowers)) * _ABOVE
    np.maximum.at(total, lenders[some], levels[some])
    return replace(scores, total=total, bonuses={**scores.bonuses, "own words": total - scores.total})


def _own(scores: Scores) -> Mask:
    """Return a mask of the messages that have a word of the query themselves."""
    none = np.zeros(len(scores.docs), bool)
    said = none if scores.said is None else scores.said.any(axis=0)
    own: Mask = said | (scores.bonuses.get("output", none) > 0)
    return own


def raise_later(scores: Scores, every: Corpora, limit: int, later: Later) -> Scores:
    """Raise each message above the best earlier one, of its chat or of any, that it may replace.

    Of a chat only where an assistant speaks in it: what people say to each other seldom replaces something.
    It may replace a message with a nearly equal score if it has a third of its words of the query.
    """
    share = 1 - weights.WEIGHTS.later
    if share == 1 or scores.said is None:
        return scores
    places = np.flatnonzero(scores.total >= every.each(_floors(scores, every, limit), scores.docs))
    if later == "chat":
        assisted = every.together(part.assisted[: len(part.chats)] for part in every.columns)
        places = places[assisted.take(every.take("chat", scores.docs[places]))]
    docs = scores.docs[places]
    among = every.take("chat", docs) if later == "chat" else every.spaces(docs)
    chats, raised = among.tolist(), scores.total[places].tolist()
    # The terms of each message as the bits of a number.
    bits = np.packbits(scores.said[:, places].T, axis=1, bitorder="little")
    words = [int.from_bytes(row, "little") for row in map(bytes, bits)]
    # The scores and the words of earlier messages, by chat.
    earlier: dict[int, list[tuple[float, int]]] = {}
    for n in np.lexsort((docs, every.take("at", docs))).tolist():
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
    docs = every[places]
    matches: list[dict[str, None]] = [{} for _ in docs]
    for term in terms:
        if len(having := term.said.docs):
            found = having.take(np.minimum(having.searchsorted(docs), len(having) - 1)) == docs
            for place in np.flatnonzero(found).tolist():
                matches[place][term.written] = None
    return [tuple(words) for words in matches]


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


def _exact(
    sums: MessageSums,
    every: Corpora,
    focuses: Sequence[Focus],
    docs: Numbers,
    bonus: Floats | None = None,
) -> Scores:
    """Return the scores of some messages; `bonus` has one for every message."""
    w = weights.WEIGHTS
    share, (of_docs, (said, put_out)) = every.take("context_share", docs), sums.of(docs)
    words, context, blocks, output = of_docs
    parts = {"words": (1 - share) * words, "neighbours": share * context, "session": blocks}
    halves = every.each([_half(terms) for terms in sums.terms], docs)
    factors = {"substance": _substance(every.take("words", docs), halves)}
    if w.conclusion:
        factors["conclusion"] = 1 + w.conclusion * every.concludes(docs).astype(np.float64)
    if any(focus.actors for focus in focuses):
        spoken = [np.ones(len(columns.actors)) for columns in every.columns]
        for focus, of_space in zip(focuses, spoken, strict=True):
            of_space[list(focus.actors)] += w.speaker
        factors["speaker"] = every.together(spoken).take(every.take("actor", docs))
    if focuses[0].asks_time:
        factors["time words"] = 1 + w.time * every.take("tells_time", docs).astype(np.float64)
    bonuses = {"output": output}
    if bonus is not None:
        bonuses["date"] = bonus.take(docs)
    ceilings = [
        max(ceiling * (_most(focus, columns) * (1 + w.date * bool(focus.dates))), 1e-9)
        for ceiling, focus, columns in zip(sums.ceilings, focuses, every.columns, strict=True)
    ]

    def match_words(places: Sequence[int]) -> list[tuple[str, ...]]:
        return sums.match_words(docs[places], (said | put_out)[:, places])

    total, ceiling = _combine(docs, parts, factors, bonuses), every.each(ceilings, docs)
    return Scores(docs, total, parts, factors, bonuses, ceiling, match_words, said)


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
        add_at(words, docs, saturate(frequency, w.k1, idf))
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
