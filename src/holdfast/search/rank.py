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
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.search import weights
from holdfast.search.bm25 import MessageSums, add_at, relative, saturate
from holdfast.search.columns import NO_NUMBERS, Columns, Floats, Mask, MessageColumns, Numbers, RecordColumns
from holdfast.search.corpora import Corpora
from holdfast.search.postings import QueryTerm
from holdfast.types import Why

if TYPE_CHECKING:
    from holdfast.search.filters import Later

# What is raised stands just above, by more than is lost by rounding.
_ABOVE = 1 + 1e-12
# Earlier messages that a later one is compared with.
_LOOKED_AT = 32


class Focus(NamedTuple):
    """What a query asks for besides words: speakers, a time, dates as (from, before, fit)."""

    actors: frozenset[int] = frozenset()
    asks_time: bool = False
    dates: tuple[tuple[int, int, float], ...] = ()


class Corpus(NamedTuple):
    """The messages of a space as a query sees them: its terms there, what else it asks for, who passes."""

    columns: MessageColumns
    terms: Sequence[QueryTerm]
    focus: Focus = Focus()
    mask: Mask | None = None


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of documents, and what makes them up; all arrays are in the order of `docs`, which rise.

    `parts` add up to the score before `factors` change it, `bonuses` are added after them. `ceiling` is the
    best score that the query could give. `matched` returns the words of the query in the documents at some
    places. `said` is which terms each message says, a row for each term.
    """

    docs: Numbers
    total: Floats
    parts: dict[str, Floats]
    factors: dict[str, Floats]
    bonuses: dict[str, Floats]
    ceiling: float | Floats
    matched: Callable[[Sequence[int]], list[tuple[str, ...]]]
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
        # All at once: a number taken from an array by itself costs more than all that is done with it.
        rows = zip(*(values.tolist() for values in signals.values()), strict=True)
        matched = self.matched(places)
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


def score(corpora: Sequence[Corpus], limit: int, later: Later | None) -> Scores:
    """Return the scores of the messages of some spaces: of each those of the `limit` best, and others.

    They are what they would be without the other spaces; documents are numbered as in `Corpora`. Of messages
    of one chat that are nearly as good as each other the later ones are better: what is said later stands for
    what was said before. `later` says whether so are those of all chats of a space, or none.

    Costs about twenty array operations per posting of its terms, and ten per document. The result does not
    depend on how the documents are cut into segments, to the last bit.
    """
    if not any(one.terms for one in corpora):
        return Scores(NO_NUMBERS, np.zeros(0), {}, {}, {}, 1.0, lambda _: [])
    every = Corpora([one.columns for one in corpora])
    sums = MessageSums(every, [one.terms for one in corpora])
    exact = partial(_exact, sums, every, [one.focus for one in corpora])
    mask = None
    if any(one.mask is not None for one in corpora):
        mask = every.together(
            np.ones(one.columns.last + 1, bool) if one.mask is None else one.mask for one in corpora
        )
    # What is computed of a message is its sum times no more than this.
    most = [_most(one.focus, one.columns) for one in corpora]
    in_reach = partial(_in_reach, sums, every, most)
    bonus = None
    if any(one.focus.dates for one in corpora):
        best = exact(in_reach(1, exact))
        spaces = zip(corpora, pairwise(every.bounds(best.docs)), strict=True)
        bonus = every.together(
            weights.WEIGHTS.date
            * float(best.total[start:end].max(initial=0.0))
            * _fit(one.columns, one.focus.dates)
            for one, (start, end) in spaces
        )
    docs = in_reach(limit, partial(exact, bonus=bonus), mask, bonus)
    found = exact(docs, bonus=bonus)
    return found if later is None else raise_later(found, every, limit, later)


def _in_reach(
    sums: MessageSums,
    every: Corpora,
    most: Sequence[float],
    limit: int,
    exact: Callable[[Numbers], Scores],
    mask: Mask | None = None,
    bonus: Floats | None = None,
) -> Numbers:
    """Return the documents that can be among the `limit` best, also when later ones are raised."""
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
    """Return the score of each space from which on a document can be among its `limit` best."""
    bounds = pairwise(every.bounds(scores.docs))
    return [_floor(scores.total[start:end], limit) for start, end in bounds]


def _floor(total: Floats, limit: int) -> float:
    if not len(total) >= limit > 0:
        return 0.0
    # A little less, for the rounding of products.
    return float(np.partition(total, -limit)[-limit]) * (1 - weights.WEIGHTS.later) * (1 - 1e-9)


def raise_later(scores: Scores, every: Corpora, limit: int, later: Later) -> Scores:
    """Raise each message to the best earlier one, of its chat or of any, whose place it may take.

    That is one which it is nearly as good as, and of whose words of the query it has a third.
    """
    share = 1 - weights.WEIGHTS.later
    if share == 1 or scores.said is None:
        return scores
    places = np.flatnonzero(scores.total >= every.each(_floors(scores, every, limit), scores.docs))
    docs = scores.docs[places]
    among = every.take("chat", docs) if later == "chat" else every.spaces(docs)
    chats, words, raised = among.tolist(), _bits(scores.said[:, places]), scores.total[places].tolist()
    # The score and the words of those before, by chat.
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


def _bits(said: Mask) -> list[int]:
    """Return which terms each message says as the bits of a number."""
    found = [0] * said.shape[1]
    for row, place in np.argwhere(said).tolist():
        found[place] |= 1 << row
    return found


def _matched(terms: Sequence[QueryTerm], every: Numbers, places: Sequence[int]) -> list[tuple[str, ...]]:
    """Return the words of the query that stand in the documents at some places."""
    docs = every[places]
    found: list[dict[str, None]] = [{} for _ in docs]
    for term in terms:
        for place in np.flatnonzero(_has(term.said.docs, docs) | _has(term.output.docs, docs)).tolist():
            found[place][term.written] = None
    return [tuple(words) for words in found]


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
    sums: MessageSums,
    every: Corpora,
    focuses: Sequence[Focus],
    docs: Numbers,
    bonus: Floats | None = None,
) -> Scores:
    """Return the scores of some messages; each has the bonus at its place."""
    w = weights.WEIGHTS
    share, (context, said) = every.take("context_share", docs), sums.context(docs)
    parts = {
        "words": (1 - share) * sums.words(docs),
        "neighbours": share * context,
        "session": sums.blocks.take(every.take("block", docs)),
    }
    factors = {"substance": _substance(every.take("words", docs))}
    if w.conclusion:
        factors["conclusion"] = 1 + w.conclusion * every.concludes(docs).astype(np.float64)
    if any(focus.actors for focus in focuses):
        spoken = [np.ones(len(columns.actors)) for columns in every.columns]
        for focus, of_space in zip(focuses, spoken, strict=True):
            of_space[list(focus.actors)] += w.speaker
        factors["speaker"] = every.together(spoken).take(every.take("actor", docs))
    if focuses[0].asks_time:
        factors["time words"] = 1 + w.time * every.take("tells_time", docs).astype(np.float64)
    bonuses = {} if sums.output is None else {"output": sums.output.take(docs)}
    if bonus is not None:
        bonuses["date"] = bonus.take(docs)
    ceilings = [
        max(one * (_most(focus, columns) * (1 + w.date * bool(focus.dates))), 1e-9)
        for one, focus, columns in zip(sums.ceilings, focuses, every.columns, strict=True)
    ]

    def matched(places: Sequence[int]) -> list[tuple[str, ...]]:
        return sums.matched(docs[places], said[:, places])

    return _combine(docs, parts, factors, bonuses, every.each(ceilings, docs), matched, said)


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
    factors = {"substance": _substance(columns.words.take(docs))}
    if asks_time:
        factors["time words"] = 1 + w.time * columns.tells_time.take(docs).astype(np.float64)
    ceiling *= _most(Focus(asks_time=asks_time), columns)
    parts = {"words": words.take(docs)}
    return _combine(docs, parts, factors, {}, max(ceiling, 1e-9), partial(_matched, terms, docs))


def _substance(words: Numbers) -> Floats:
    """Return what texts of so many words count: few words have little to say."""
    length = np.maximum(words, 1).astype(np.float64)
    half = weights.WEIGHTS.substance
    return length / (length + half) if half else np.ones(len(words))


def _combine(
    docs: Numbers,
    parts: dict[str, Floats],
    factors: dict[str, Floats],
    bonuses: dict[str, Floats],
    ceiling: float | Floats,
    matched: Callable[[Sequence[int]], list[tuple[str, ...]]],
    said: Mask | None = None,
) -> Scores:
    """Return the sum of the parts times the factors, plus the bonuses."""
    total = np.zeros(len(docs))
    for part in parts.values():
        total += part
    for factor in factors.values():
        total *= factor
    for bonus in bonuses.values():
        total += bonus
    return Scores(docs, total, parts, factors, bonuses, ceiling, matched, said)
