"""Search: a query goes in, hits with their reasons come out.

The path of a query: `filters.check`, `query.parse`, `Index.view` of each source, `postings.match_terms`,
then `find` of the source, which scores (`rank`), filters and reads the best.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.errors import Unavailable
from holdfast.search import nearness
from holdfast.search.filters import Filters
from holdfast.search.fusion import WEIGHT
from holdfast.search.index import Index
from holdfast.search.meaning import QueryEmbedder, QueryVector, best_rows, find_rows
from holdfast.search.message_source import MESSAGES, MessageRanking, RankedMessage
from holdfast.search.postings import match_terms
from holdfast.search.query import Query, has_words, parse
from holdfast.search.record_source import RECORDS, ROWS, WAITING
from holdfast.search.source import Matched, SearchSource, SourceView
from holdfast.search.summary_source import SUMMARIES
from holdfast.search.vocabulary import may_be_slip
from holdfast.store import grants, segments, vectors
from holdfast.text.analyze import hash_term, normal
from holdfast.text.sentences import asks_only
from holdfast.types import Hit, Hits, Record, Scope
from holdfast.types.messages import changed

if TYPE_CHECKING:
    from holdfast.events import Events
    from holdfast.store.database import Database
    from holdfast.types.where import Where

# Records that share most with a text, among which `similar` looks for those of one kind and target.
NEAREST = 256
_NOTHING = "Found by words alone: this embedder has embedded nothing here yet. Run `learning.work`."
_OTHER_SIZE = "Found by words alone: the embedder has changed the size of its vectors. Give it another name."
# The words of a setting that one message has by chance: one, and one in so many.
BY_CHANCE, ONE_IN = 1.0, 20
# Hits by a prompt and by its request that are compared, at least.
ASKED_TWICE = 50
# The words of a query that may be misspelt, and those that each may stand for.
MAX_SLIPS, _NEAREST = 8, 3
# How often a read is begun anew because others have meanwhile written more than can be read at once.
_ATTEMPTS = 100
# A word has one weight in all sources of a group. Summaries repeat what messages say: their words have a
# weight of their own.
_GROUPS: tuple[tuple[SearchSource[Any], ...], ...] = ((MESSAGES, RECORDS), (SUMMARIES,))
SEARCHED = tuple(chain.from_iterable(_GROUPS))


class Search:
    """Search over the spaces of a database, with the indexes that were used last.

    Safe to share between threads.
    """

    def __init__(self, database: Database, events: Events, embed: QueryEmbedder | None, most: int) -> None:
        self._database = database
        # The bytes of indexes in memory; beyond them the least recently used ones are dropped.
        self._most = most
        self._events = events
        self._embedder = embed
        self._indexes: OrderedDict[tuple[str, SearchSource[Any]], Index[Any]] = OrderedDict()
        self._total = 0
        self._lock = threading.Lock()

    def meaning(self, scope: Scope, query: str, weight: float = WEIGHT) -> QueryVector | None:
        """Return the query as a vector, for `recall` and `one_read`; None without an embedder or a weight.

        A model is called: this comes before any read that it belongs to.
        """
        if self._embedder is None or not weight or not has_words(query):
            return None
        return self._embedder.embed(scope, query, weight)

    def recall(
        self,
        scope: Scope,
        query: Query,
        filters: Filters,
        meaning: QueryVector | None = None,
        each: Iterable[str] | None = None,
    ) -> Hits:
        """Return the hits of a query, best first; see `Memory.recall`. Without `meaning`, by words alone.

        The limit holds for all, or for each of some kinds of records.
        """
        with self.one_read(scope, filters, meaning) as reader:
            if each is None:
                return Hits(reader.find(query, filters), reader.degraded)
            kinds = [kind for kind in each if filters.kinds is None or kind in filters.kinds]
            lists = [reader.find(query, replace(filters, kinds=frozenset((kind,)))) for kind in kinds]
            hits = sorted(chain.from_iterable(lists), key=lambda hit: -hit.score)
            return Hits(hits, reader.degraded)

    def similar(
        self, scope: Scope, draft: Record, limit: int, *, by_meaning: bool = False
    ) -> list[tuple[Record, float]]:
        """Return the records of the scope's own space that share most with a draft.

        Each has the number of deviations by which it stands out in meaning, 0 without `by_meaning`. They are
        of its kind, target and agent. They are chosen among the `NEAREST` of its kind, so that the
        cost does not grow with what is stored.
        """
        if not has_words(draft.text):
            return []
        filters = Filters(
            sources=frozenset(("record",)),
            kinds=frozenset((draft.kind,)),
            target=draft.target,
            agents=frozenset((scope.agent, "")),
            limit=limit,
            candidates=NEAREST,
        )
        query = parse(draft.text)
        meaning = self.meaning(scope, draft.text) if by_meaning else None
        with self.one_read(scope, filters, meaning, (scope.space,)) as reader:
            return reader.similar(scope.space, query, filters)

    @contextmanager
    def one_read(
        self,
        scope: Scope,
        filters: Filters,
        meaning: QueryVector | None = None,
        spaces: Sequence[str] | None = None,
    ) -> Iterator[SearchReader]:
        """Open one read of the database for recalls from the sources of the filters.

        No index is made or stored in the block: that is done before.

        Raises:
            Unavailable: others write so much that the indexes cannot be kept up.

        """
        # A chat belongs to its space; another space may have one of the same name. What waits there is not
        # this user's to release.
        is_own = filters.chat is not None or filters.trust
        spaces = spaces or ((scope.space,) if is_own else scope.spaces)
        named = [source for source in SEARCHED if source.name in filters.sources and filters.limit]
        sources = [WAITING if source is RECORDS and filters.trust else source for source in named]
        indexes = {space: [self._index(space, source) for source in sources] for space in spaces}
        for _ in range(_ATTEMPTS):
            # Everybody takes them in this order: the metadata and the indexes, by the names of their spaces,
            # which other handles may read the other way around; then the database.
            with ExitStack() as locks:
                if filters.where is not None:
                    self._read_metadata(indexes, filters.where, locks)
                for index in chain.from_iterable(indexes[space] for space in sorted(indexes)):
                    locks.enter_context(index.lock)
                with self._database.one_read():
                    for space in indexes:
                        grants.check(self._database, scope, space)
                    if self._catch_up(indexes, meaning):
                        yield SearchReader(scope, indexes, locks, meaning)
                        return
            for space, some in indexes.items():
                for index in some:
                    # This may take long: nothing but this index waits for it.
                    with index.lock:
                        state = segments.index_state(self._database, space)
                        self._refresh(index, state, self._vector_set(space, meaning))
        raise Unavailable("Others write faster than the index can be kept up.", "Try again.")

    def _read_metadata(
        self, indexes: Mapping[str, Iterable[Index[Any]]], where: Where, locks: ExitStack
    ) -> None:
        """Read what a filter needs while others use the indexes, and keep it locked."""
        for space in sorted(indexes):
            state = segments.index_state(self._database, space)
            for index in indexes[space]:
                if index.meta is not None:
                    locks.enter_context(index.meta.lock)
                    index.meta.prepare(where, getattr(state, index.source.name))

    def _vector_set(self, space: str, meaning: QueryVector | None) -> vectors.VectorSet | None:
        """Return the vectors of a space to compare a query with; None for a query without a vector."""
        if meaning is None or meaning.vector is None:
            return None
        return vectors.set_of(self._database, space, meaning.model)

    def _catch_up(self, indexes: Mapping[str, Sequence[Index[Any]]], meaning: QueryVector | None) -> bool:
        """Bring indexes up to what one read shows; return False where that would take long."""
        spaces = [space for space, some in indexes.items() if some]
        states = dict(zip(spaces, segments.index_states(self._database, spaces), strict=True))
        stored = {space: self._vector_set(space, meaning) for space in states}
        every = [
            index
            for index in chain.from_iterable(indexes.values())
            if stored[index.space] or index.is_behind(states[index.space])
        ]
        if not all(index.is_near(states[index.space], stored[index.space]) for index in every):
            return False
        for index in every:
            self._refresh(index, states[index.space], stored[index.space])
        return True

    def rebuild(self, space: str) -> None:
        """Make the indexes of a space anew, for `Memory.verify`."""
        segments.clear(self._database, space)
        self.freeze(space)

    def freeze(self, space: str) -> None:
        """Store all of the indexes of a space, so that the next process has nothing to analyse."""
        for source in SEARCHED:
            index = self._index(space, source)
            with index.lock:
                index.refresh(segments.index_state(self._database, space))
                index.freeze()

    def _index(self, space: str, source: SearchSource[Any]) -> Index[Any]:
        key = (space, source)
        with self._lock:
            if key not in self._indexes:
                self._indexes[key] = Index(self._database, space, source, self._events)
            self._indexes.move_to_end(key)
            return self._indexes[key]

    def _refresh(
        self, index: Index[Any], state: segments.IndexState, stored: vectors.VectorSet | None
    ) -> None:
        """Bring an index up to date, and drop the least recently used ones when all take too much memory."""
        index.refresh(state)
        if stored is not None:
            index.refresh_vectors(stored)
        size = index.nbytes
        with self._lock:
            if self._indexes.get((index.space, index.source)) is not index:
                return
            self._total += size - index.counted
            index.counted = size
            while self._total > self._most and len(self._indexes) > 1:
                self._total -= self._indexes.popitem(last=False)[1].counted


def _slips(
    query: Query, views: Sequence[SourceView[Any]], indexes: Sequence[Index[Any]]
) -> dict[int, tuple[tuple[int, str], ...]]:
    """Return the nearest words of the texts for each word of a query that none of them has in any form."""
    having = [sum(counts) for counts in zip(*(view.postings.counts for view in views), strict=True)]
    meant: dict[int, tuple[tuple[int, str], ...]] = {}
    for word, own, forms in zip(query.words, having, query.synonyms, strict=False):
        is_unknown = not own and not any(having[n] for n in forms)
        if is_unknown and may_be_slip(word.written) and len(meant) < MAX_SLIPS:
            parts = [part for index in indexes for part in index.parts]
            near = {other: slips for part in parts for slips, other in part.vocabulary.near(word.written)}
            least = min(near.values(), default=0)
            if closest := sorted(other for other, slips in near.items() if slips == least):
                meant[word.term] = tuple((hash_term(normal(other)), other) for other in closest[:_NEAREST])
    return meant


def _messages(matched: Mapping[str, Iterable[Iterable[Matched]]]) -> dict[str, Matched]:
    """Return what a query matches among the messages of each space."""
    return {
        space: match
        for space, groups in matched.items()
        for match in chain.from_iterable(groups)
        if match.view.source is MESSAGES and (match.terms or match.view.near)
    }


def key_of(hit: Hit) -> tuple[str, str, str, int, str]:
    """Return what tells a hit from all others."""
    return hit.source, hit.id, hit.chat, hit.seq, hit.space


class SearchReader:
    """A reader of some indexes as of one read of the database, which is open as long as the reader."""

    def __init__(
        self,
        scope: Scope,
        indexes: Mapping[str, Sequence[Index[Any]]],
        locks: ExitStack,
        meaning: QueryVector | None,
    ) -> None:
        self.scope = scope
        self._indexes = indexes
        self._locks = locks
        self._meaning = meaning
        # Why words are gone by alone, None if they are not.
        self.degraded = meaning.degraded if meaning else None

    def find(self, query: Query, filters: Filters) -> list[Hit]:
        """Return the hits of a query in all spaces, best first; see `Memory.recall`.

        A prompt with a setting is ranked by its request alone, unless the setting is what it is about; a
        score is the larger of both probabilities, as far as that keeps the order.
        """
        if query.request is None:
            return self._find(query, filters)
        every = replace(filters, min_score=0.0, limit=max(filters.limit, ASKED_TWICE))
        by_request = self._find(query.request, every)
        likely = {key_of(hit): hit.score for hit in by_request}
        hits = self._find(query, every)
        scores = [max(hit.score, likely.pop(key_of(hit), 0.0)) for hit in hits]
        if query.points_back or self._is_told_of(query.setting, filters):
            scores = list(accumulate(scores, min))
        else:
            left = [hit for hit in by_request if key_of(hit) in likely]
            hits, scores = hits + left, scores + [hit.score for hit in left]
        best = sorted(zip(scores, hits, strict=True), key=lambda scored: -scored[0])[: filters.limit]
        return [changed(hit, score=score) for score, hit in best if score >= filters.min_score]

    def _is_told_of(self, setting: Query | None, filters: Filters) -> bool:
        """Return whether a message has more of the words of a setting than small talk has by chance."""
        if setting is None:
            return False
        first = replace(filters, sources=frozenset(("message",)), limit=1)
        ranking = MessageRanking(setting, _messages(self._matched_everywhere(setting, first)).values(), first)
        return ranking.most * setting.length > BY_CHANCE + setting.length / ONE_IN

    def _matched_everywhere(self, query: Query, filters: Filters) -> dict[str, list[list[Matched]]]:
        # A chat belongs to its space; another space may have one of the same name.
        spaces = self.spaces if filters.chat is None else self.spaces[:1]
        return {space: list(self.matched(space, query, filters)) for space in spaces}

    def _find(self, query: Query, filters: Filters) -> list[Hit]:
        matched = self._matched_everywhere(query, filters)
        spaces, names = tuple(matched), {space: self.scope.reference(space) for space in matched}
        messages = _messages(matched)
        ranking = MessageRanking(query, messages.values(), filters)
        best = dict(zip(messages, ranking.best, strict=True))

        def find(space: str, limit: int, least: float) -> Iterator[Hit | RankedMessage]:
            yield from (message for message in best.get(space, ()) if message.score >= least)
            for match in chain.from_iterable(matched[space]):
                rows = match.view.source.rows
                if rows and (match.terms or match.view.near):
                    yield from find_rows(match, query, replace(filters, limit=limit, min_score=least), rows)

        chosen = nearness.joined(self.scope, spaces, filters, find)
        read = ranking.read([ranked for ranked, _ in chosen if isinstance(ranked, RankedMessage)], names)
        answers = ranking.answers(read) if filters.answers else {}
        hits: dict[object, Hit] = {}
        give_way: dict[object, Hit] = {}
        for ranked, place in chosen:
            hit = ranked if isinstance(ranked, Hit) else read.get(ranked)
            answer = None if isinstance(ranked, Hit) else answers.get(ranked)
            is_bare = hit and filters.answers and hit.source == "message" and asks_only(hit.text)
            for message in filter(None, (answer, hit) if is_bare else (hit, answer)):
                label = nearness.labelled(message, self.scope, names[spaces[place]], place)
                (give_way if is_bare and not answer else hits).setdefault(key_of(label), label)
        return list((hits | give_way).values())[: filters.limit]

    @property
    def spaces(self) -> tuple[str, ...]:
        """The spaces that are read, one's own first."""
        return tuple(self._indexes)

    def matched(self, space: str, query: Query, filters: Filters) -> Iterator[list[Matched]]:
        """Yield the views of each group of sources in a space, with the terms of the query."""
        every = [index for index in self._indexes[space] if index.covered]
        for group in _GROUPS:
            names = filters.sources.intersection(source.name for source in group)
            indexes = [index for index in every if index.source.name in names]
            if not indexes:
                continue
            views = [self._view(index, query.terms, filters) for index in indexes]
            if meant := _slips(query, views, indexes):
                words = (word._replace(related=meant.get(word.term, word.related)) for word in query.words)
                query = replace(query, words=tuple(words))
                views = [self._view(index, query.terms, filters) for index in indexes]
            terms = match_terms(query, [view.postings for view in views])
            yield list(map(Matched, views, terms))

    def _view(self, index: Index[Any], terms: Sequence[int], filters: Filters) -> SourceView[Any]:
        """Return the view of a source, with its vectors if the query has one of their dimension."""
        as_of, meaning = filters.as_of_in(index.space), self._meaning
        view = index.view(terms, self.scope.agent, as_of, branches=filters.branches)
        kept = index.vectors
        if meaning is None or meaning.vector is None or kept is None:
            return view
        # What the tenant shares may well have none.
        if not kept.begun and index in next(iter(self._indexes.values())):
            self.degraded = _NOTHING
        if not len(kept.matrix):
            return view
        if len(meaning.vector) != kept.matrix.dimension:
            self.degraded = _OTHER_SIZE
            return view
        # Only for those who have an embedder.
        from holdfast.search.vectors import Near

        return replace(view, near=Near(kept.matrix, meaning.vector, meaning.weight))

    def similar(self, space: str, query: Query, filters: Filters) -> list[tuple[Record, float]]:
        """Return the records of a space that match a query, best first, and how each stands out."""
        (index,) = self._indexes[space]
        view = self._view(index, query.terms, filters)
        (terms,) = match_terms(query, [view.postings])
        matched = Matched(view, terms)
        pairs = best_rows(matched, query, filters, ROWS)[1] if terms or view.near else []
        if view.near is None:
            return [(record, 0.0) for _, record in pairs]
        deviations = view.near.standing(np.array([ranked.doc for ranked, _ in pairs], np.int64))
        return [(record, stands) for (_, record), stands in zip(pairs, deviations.tolist(), strict=True)]

    def release(self) -> None:
        """Release the indexes after the last recall, so that others need not wait for the end of the read."""
        self._locks.close()
