"""Scoring: pure functions from postings and columns to scores. Nothing here reads a database or a text.

A document's score is BM25 of its own words, BM25F of its words with those of its neighbours, and BM25 of the
block of conversation it stands in; more if it has substance, if its speaker is named in the query, and if it
tells a time that the query asks for; and a bonus for the date that the query names. The forms and most
weights are those that held on three public sets of conversations; `docs/decisions.md` says which were changed
since and on what evidence.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.search import weights
from holdfast.search.bm25 import MessageSums, add_at, relative, saturate
from holdfast.search.columns import NO_NUMBERS, Columns, Floats, Mask, MessageColumns, Numbers, RecordColumns
from holdfast.search.postings import QueryTerm
from holdfast.types import Why

if TYPE_CHECKING:
    from holdfast.search.filters import Later

# What is raised stands just above, by more than is lost by rounding.
_ABOVE = 1 + 1e-12
# Earlier messages that a later one is compared with.
_LOOKED_AT = 32


@dataclass(frozen=True, slots=True)
class Focus:
    """What a query asks for besides words: speakers, a time, dates as (from, before, fit), what is later."""

    actors: frozenset[int] = frozenset()
    asks_time: bool = False
    dates: tuple[tuple[int, int, float], ...] = ()
    later: Later | None = "chat"


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of documents, and what makes them up; all arrays are in the order of `docs`, which rise.

    `parts` add up to the score before `factors` change it, `bonuses` are added after them. `ceiling` is the
    best score that the query could give.
    """

    terms: Sequence[QueryTerm]
    docs: Numbers
    total: Floats
    parts: dict[str, Floats]
    factors: dict[str, Floats]
    bonuses: dict[str, Floats]
    ceiling: float

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
        # All at once: a number taken from an array by itself costs more than all that is done with it.
        rows = zip(*(values.tolist() for values in signals.values()), strict=True)
        matched = self._matched(self.docs[places])
        return [
            Why({name: one / total for name, one in zip(signals, row, strict=True) if one > 0}, words)
            for total, row, words in zip(totals, rows, matched, strict=True)
        ]

    def _signals(self, places: Sequence[int] | Numbers) -> dict[str, Floats]:
        """Return how much each signal adds to the score at each of some places."""
        scale = self.factors["substance"][places]
        signals = {name: values[places] * scale for name, values in self.parts.items()}
        running = sum(signals.values())
        for name, values in self.factors.items():
            if name != "substance":
                factor = values[places]
                signals[name] = running * (factor - 1)
                running = running * factor
        return signals | {name: values[places] for name, values in self.bonuses.items()}

    def _matched(self, docs: Numbers) -> list[tuple[str, ...]]:
        """Return the words of the query that stand in each document itself."""
        found: list[dict[str, None]] = [{} for _ in docs]
        for term in self.terms:
            for place in np.flatnonzero(_has(term.said.docs, docs) | _has(term.output.docs, docs)).tolist():
                found[place][term.written] = None
        return [tuple(words) for words in found]


def score(
    terms: Sequence[QueryTerm],
    columns: MessageColumns,
    focus: Focus,
    mask: NDArray[np.bool_] | None,
    limit: int,
) -> Scores:
    """Return the scores of the messages that a mask lets pass: those of the `limit` best, and of some others.

    Of messages of one chat that are nearly as good as each other the later ones are better: what is said
    later stands for what was said before. `focus.later` says whether so are those of all chats, or none.

    Costs about twenty array operations per posting of its terms, and ten per document. The result does not
    depend on how the documents are cut into segments, to the last bit.
    """
    if not terms:
        none = np.zeros(0)
        return Scores(terms, NO_NUMBERS, none, {}, {}, {}, 1.0)
    sums = MessageSums(columns, terms)
    exact = partial(_exact, terms, sums, columns, focus)
    # What is computed of a message is its sum times no more than this.
    most = _most(focus, columns)
    bonus = None
    if focus.dates:
        best = float(exact(_in_reach(sums, most, 1, exact)).total.max(initial=0.0))
        bonus = weights.WEIGHTS.date * best * _fit(columns, focus.dates)
    docs = _in_reach(sums, most, limit, partial(exact, bonus=bonus), mask, bonus)
    found = exact(docs, bonus=bonus)
    return found if focus.later is None else raise_later(found, columns, limit, focus.later)


def _in_reach(
    sums: MessageSums,
    most: float,
    limit: int,
    exact: Callable[[Numbers], Scores],
    mask: NDArray[np.bool_] | None = None,
    bonus: Floats | None = None,
) -> Numbers:
    """Return the documents that can be among the `limit` best, also when later ones are raised."""
    floor = _floor(exact(sums.likely(2 * limit, mask)).total, limit)
    docs, bound = sums.reach((floor - (0.0 if bonus is None else float(bonus.max()))) / most)
    bound *= most
    if bonus is not None:
        bound += bonus.take(docs)
    passes = bound >= floor
    if mask is not None:
        passes &= mask.take(docs)
    return docs[passes]


def _floor(total: Floats, limit: int) -> float:
    """Return the score from which on a document can be among the `limit` best."""
    if not len(total) >= limit > 0:
        return 0.0
    # A little less, for the rounding of products.
    return float(np.partition(total, -limit)[-limit]) * (1 - weights.WEIGHTS.later) * (1 - 1e-9)


def raise_later(scores: Scores, columns: MessageColumns, limit: int, later: Later) -> Scores:
    """Raise each message to the best earlier one, of its chat or of any, whose place it may take.

    That is one which it is nearly as good as, and of whose words of the query it has a third.
    """
    share = 1 - weights.WEIGHTS.later
    places = np.flatnonzero(scores.total >= _floor(scores.total, limit))
    docs = scores.docs[places]
    chats = columns.chat.take(docs) if later == "chat" else np.zeros(len(docs), np.int64)
    said = _said(scores.terms, docs)
    total = scores.total.copy()
    # The score and the words of those before, by chat.
    earlier: dict[int, list[tuple[float, int]]] = {}
    for n in np.lexsort((docs, columns.at.take(docs))).tolist():
        if not said[n] or share == 1:
            continue
        score, before = float(total[places[n]]), earlier.setdefault(int(chats[n]), [])
        end = bisect_right(before, (score / share, 0))
        for level, words in reversed(before[max(0, end - _LOOKED_AT) : end]):
            if level < score:
                break
            if 3 * (words & said[n]).bit_count() >= words.bit_count():
                score = total[places[n]] = level * _ABOVE
                break
        insort(before, (score, said[n]))
    return replace(scores, total=total, bonuses={**scores.bonuses, "later": total - scores.total})


def _said(terms: Sequence[QueryTerm], docs: Numbers) -> list[int]:
    """Return which terms each document has itself, as the bits of a number."""
    found = [0] * len(docs)
    for n, term in enumerate(terms):
        for place in np.flatnonzero(_has(term.said.docs, docs)).tolist():
            found[place] |= 1 << n
    return found


def _has(having: Numbers, docs: Numbers) -> Mask:
    """Return which documents are among some that rise."""
    if not len(having):
        return np.zeros(len(docs), np.bool_)
    places = np.minimum(having.searchsorted(docs), len(having) - 1)
    found: Mask = having.take(places) == docs
    return found


def _most(focus: Focus, columns: Columns) -> float:
    """Return what all factors together can be."""
    w = weights.WEIGHTS
    most = 1 + w.conclusion if isinstance(columns, MessageColumns) else 1.0
    return most * (1 + w.speaker * bool(focus.actors)) * (1 + w.time * focus.asks_time)


def _fit(columns: MessageColumns, dates: Sequence[tuple[int, int, float]]) -> Floats:
    """Return for each message how well its time fits dates, 0 to 1."""
    at = columns.at[: columns.last + 1]
    fit = np.zeros(len(at))
    for start, end, share in dates:
        inside = (at >= start) & (at < end)
        fit[inside] = np.maximum(fit[inside], share)
    return fit


def _exact(
    terms: Sequence[QueryTerm],
    sums: MessageSums,
    columns: MessageColumns,
    focus: Focus,
    docs: Numbers,
    bonus: Floats | None = None,
) -> Scores:
    """Return the scores of some messages; each has the bonus at its place."""
    share = columns.context_share.take(docs)
    parts = {
        "words": (1 - share) * sums.words(docs),
        "neighbours": share * sums.context(docs),
        "session": sums.blocks.take(columns.block.take(docs)),
    }
    bonuses = {} if sums.output is None else {"output": sums.output.take(docs)}
    if bonus is not None:
        bonuses["date"] = bonus.take(docs)
    return _combine(terms, docs, parts, bonuses, columns, focus, sums.ceiling)


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
        idf = term.weight * term.rarity
        docs = term.said.docs
        frequency = relative(term.said.frequencies, columns.words.take(docs), slope, w.b)
        add_at(words, docs, saturate(frequency, w.k1, idf))
        ceiling += idf * (w.k1 + 1)
    docs = np.flatnonzero(words)
    return _combine(
        terms, docs, {"words": words.take(docs)}, {}, columns, Focus(asks_time=asks_time), ceiling
    )


def _combine(
    terms: Sequence[QueryTerm],
    docs: Numbers,
    parts: dict[str, Floats],
    bonuses: dict[str, Floats],
    columns: Columns,
    focus: Focus,
    ceiling: float,
) -> Scores:
    """Return the sum of the parts times the factors, plus the bonuses."""
    w = weights.WEIGHTS
    length = np.maximum(columns.words.take(docs), 1).astype(np.float64)
    factors: dict[str, Floats] = {
        "substance": length / (length + w.substance) if w.substance else np.ones(len(docs))
    }
    if isinstance(columns, MessageColumns) and w.conclusion:
        factors["conclusion"] = 1 + w.conclusion * columns.concludes(docs).astype(np.float64)
    if focus.actors:
        spoken = np.ones(len(columns.actors))
        spoken[list(focus.actors)] += w.speaker
        factors["speaker"] = spoken.take(columns.actor.take(docs))
    if focus.asks_time:
        factors["time words"] = 1 + w.time * columns.tells_time.take(docs).astype(np.float64)
    total = np.zeros(len(docs))
    for part in parts.values():
        total += part
    for factor in factors.values():
        total *= factor
    for bonus in bonuses.values():
        total += bonus
    ceiling *= _most(focus, columns) * (1 + w.date * bool(focus.dates))
    return Scores(terms, docs, total, parts, factors, bonuses, max(ceiling, 1e-9))
