"""Meaning: a query as a vector, and one order of documents by words and by nearness to it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from holdfast.errors import ModelFailed, Unavailable
from holdfast.safety.guard import mask
from holdfast.search import rank
from holdfast.search.bm25 import top
from holdfast.search.calibration import BY_WORDS, WITH_MEANING
from holdfast.search.fusion import WEIGHT, Ranked, RankedDocuments, fuse
from holdfast.types import Hit, Scope, Why

if TYPE_CHECKING:
    from holdfast.llm.embedding import Embedded, Embedder
    from holdfast.llm.meter import Meter
    from holdfast.search.columns import Floats, Mask, Numbers
    from holdfast.search.filters import Filters
    from holdfast.search.query import Query
    from holdfast.search.source import C, Matched, RowHits, SourceView
    from holdfast.search.vectors import Rows

# The purpose under which embedding a query is metered.
_PURPOSE = "recall"
# The number of vectors that are kept: a prompt, and a tool after it, often have the same query.
_KEPT = 256
# The least length of both lists that are fused.
DEPTH = 200
_UNKNOWN = "Found by words alone: the embedder knows no word of the query."


class QueryVector(NamedTuple):
    """The vector of a query, or the reason why there is none, and the weight of meaning against words."""

    model: str
    vector: Rows | None
    weight: float = WEIGHT
    degraded: str | None = None


class QueryEmbedder:
    """Embeds queries: metered, within a time limit. A failure leaves words alone, and the result says so."""

    def __init__(self, embedder: Embedder, meter: Callable[[Scope], Meter], patience: float) -> None:
        self._embedder, self._meter, self._patience = embedder, meter, patience
        self._vectors: OrderedDict[str, Rows] = OrderedDict()
        self._lock = threading.Lock()

    def embed(self, scope: Scope, query: str, weight: float = WEIGHT) -> QueryVector:
        """Return the vector of a query, or the reason why there is none."""
        # Loaded only where there is an embedder.
        from holdfast.llm.embedding import LONGEST, request
        from holdfast.llm.errors import logged
        from holdfast.llm.llm_request import LLMRequest

        text, model = mask(query)[:LONGEST], self._embedder.name
        with self._lock:
            vector = self._vectors.get(text)
        if vector is None:
            call = LLMRequest(_PURPOSE, request([text]), None, _PURPOSE, answer_tokens=0)
            try:
                answer = self._meter(scope).ask(self._embedder.queries, call, self._patience)
            except (ModelFailed, Unavailable) as error:
                why = f"Found by words alone: {logged(error, _PURPOSE)}"
                return QueryVector(model, None, weight, why)
            vector = cast("Embedded", answer).vectors[0]
            with self._lock:
                self._vectors[text] = vector
                while len(self._vectors) > _KEPT:
                    self._vectors.popitem(last=False)
        if not vector.any():
            return QueryVector(model, None, weight, _UNKNOWN)
        return QueryVector(model, vector, weight)


def ranking(
    view: SourceView[C], docs: Numbers, scores: Floats, filters: Filters, count: int
) -> RankedDocuments:
    """Return the best documents of a source, by words and, if there are vectors, by meaning.

    Args:
        view: the source.
        docs: the documents that words find, rising.
        scores: their scores, 0 for those that do not pass the filters.
        filters: those on documents.
        count: the number to return.

    """
    near = view.near
    if near is None:
        best = top(scores, count)
        return RankedDocuments(docs[best], scores[best], np.zeros(len(best)), best)
    best = top(scores, max(count, DEPTH))
    allowed = _mask_of(view, near.matrix.numbers, filters)
    nearest = near.matrix.nearest(near.query, max(count, DEPTH), allowed)
    other = np.setdiff1d(nearest, docs[best], assume_unique=True)
    both, words = np.concatenate([docs[best], other]), np.concatenate([scores[best], np.zeros(len(other))])
    fused = fuse(words, near.standing(both), len(near.matrix), weight=near.weight)
    places = np.concatenate([best, np.full(len(other), -1)])
    kept = fused.order[:count]
    return RankedDocuments(both[kept], fused.scores[:count], fused.meaning[:count], places[kept])


def find_rows(match: Matched, query: Query, filters: Filters, rows: RowHits) -> list[Hit]:
    """Return the records or summaries that match a query, best first.

    Their probabilities depend on the best one that passes all filters.
    """
    scores, best = best_rows(match, query, filters, rows)
    ranked = [candidate for candidate, _ in best]
    likely = probabilities(match.view, ranked, filters.min_score)
    whys = reasons(scores, ranked[: len(likely)])
    return [rows.hit(row, score, why) for (_, row), score, why in zip(best, likely, whys, strict=False)]


def best_rows(
    match: Matched, query: Query, filters: Filters, rows: RowHits
) -> tuple[rank.Scores, list[tuple[Ranked, Any]]]:
    """Return the scores of records or summaries, and the best rows that pass all filters with their ranks."""
    view, terms = match
    scores = rank.score_alone(terms, view.columns, view.visible, asks_time=query.asks_time)
    shares = scores.shares
    for _, passing in view.source.masks(view, scores.docs, filters):
        shares *= passing
    count = max(len(shares), DEPTH)
    if view.near is not None and filters.chat is not None:
        # The chat of a record is known when it is read: the nearest ones may all be of other chats.
        count = max(count, len(view.near.matrix))
    ranked = ranking(view, scores.docs, shares, filters, count)
    best: list[tuple[Ranked, Any]] = []
    # How likely the first is depends on the second.
    wanted = max(filters.limit, 2)
    page = min(wanted, rows.page)
    for start in range(0, min(len(ranked.docs), filters.candidates), page):
        some = ranked.part(start, min(start + page, filters.candidates))
        there = rows.read(view.database, view.space, [candidate.doc for candidate in some])
        for candidate in some:
            row = there.get(candidate.doc)
            if row is not None and all(passes for _, passes in rows.checks(filters, row)):
                best.append((candidate, row))
        if len(best) >= wanted:
            break
    return scores, best[:wanted]


def _mask_of(view: SourceView[C], numbers: Numbers, filters: Filters) -> Mask | None:
    """Return a mask of the documents that may be hits, by their numbers; None for all."""
    passing = [mask for _, mask in view.source.masks(view, numbers, filters)]
    if view.visible is not None:
        passing.append(view.visible.take(numbers))
    if not passing:
        return None
    allowed = np.zeros(view.columns.last + 1, bool)
    allowed[numbers] = np.logical_and.reduce(passing)
    return allowed


def probabilities(view: SourceView[C], ranked: Sequence[Ranked], least: float) -> list[float]:
    """Return the probability of each hit to answer, down to the least wanted, from 0 to 1."""
    calibration = (WITH_MEANING if view.near else BY_WORDS)[view.source.name]
    likely: list[float] = calibration.probabilities(np.array([hit.score for hit in ranked])).tolist()
    return likely[: sum(probability >= least for probability in likely)]


def reasons(scores: rank.Scores, ranked: Sequence[Ranked]) -> list[Why]:
    """Return the reasons for the score of each hit."""
    by_words = iter(scores.explain([hit.place for hit in ranked if hit.place >= 0]))
    whys = []
    for hit in ranked:
        why = next(by_words) if hit.place >= 0 else Why({})
        if hit.meaning:
            shares = {name: share * (1 - hit.meaning) for name, share in why.items()}
            why = Why({**shares, "meaning": hit.meaning}, why.words)
        whys.append(why)
    return whys
