"""Search: a query goes in, hits with their reasons come out.

The path of a query: `filters.check`, `query.parse`, `Index.view` of each source, `postings.match`, then
`find` of the source, which scores (`rank`), filters and reads the best.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.errors import Unavailable
from holdfast.search import record_source
from holdfast.search.filters import Filters
from holdfast.search.index import Index
from holdfast.search.message_source import MESSAGES
from holdfast.search.postings import QueryTerm, match
from holdfast.search.query import Query, has_words, parse, widened
from holdfast.search.record_source import RECORDS
from holdfast.search.source import SearchSource, SourceView
from holdfast.search.summary_source import SUMMARIES
from holdfast.store import segments
from holdfast.types import Hit, Record, Scope, Source

if TYPE_CHECKING:
    from holdfast.store.database import Database

# Bytes of indexes in memory; beyond it the least recently used ones are dropped.
CACHE_BYTES = 512 * 2**20
# Records that share most with a text, among which `similar` looks for those of one kind and target.
NEAREST = 256
# How often a read is begun anew because others have meanwhile written more than a memtable takes.
_ATTEMPTS = 100
# A word has one weight in all sources of a group. Summaries repeat what messages say: their words have a
# weight of their own.
_GROUPS: tuple[tuple[SearchSource[Any], ...], ...] = ((MESSAGES, RECORDS), (SUMMARIES,))
SEARCHED = tuple(chain.from_iterable(_GROUPS))


class Search:
    """Search over the spaces of a database, with the indexes that were used last.

    Safe to share between threads.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._indexes: OrderedDict[tuple[str, Source], Index[Any]] = OrderedDict()
        self._sizes: dict[tuple[str, Source], int] = {}
        self._total = 0
        self._lock = threading.Lock()

    def recall(self, scope: Scope, query: str, filters: Filters) -> list[Hit]:
        """Return the hits of a query, best first; see `Memory.recall`.

        Raises:
            InvalidInput: the query has nothing to search for.

        """
        parsed = parse(query)
        with self.one_read(scope, filters) as reader:
            return reader.find(parsed, filters)

    def similar(self, scope: Scope, draft: Record, limit: int) -> list[Record]:
        """Return the records of the scope's own space that share most with a draft.

        They are of its kind, target and agent. They are chosen among the `NEAREST` of its kind, so that the
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
        with self._one_read((scope.space,), scope.agent, filters) as reader:
            return reader.similar(scope.space, query, filters)

    def one_read(self, scope: Scope, filters: Filters) -> AbstractContextManager[SearchReader]:
        """Open one read of the database for recalls from the sources of the filters.

        No index is made or stored in the block: that is done before.

        Raises:
            Unavailable: others write so much that the indexes cannot be kept up.

        """
        # A chat belongs to its space; the shared space may have another of the same name.
        shared = scope.shared.space if filters.chat is None else scope.space
        return self._one_read(dict.fromkeys((scope.space, shared)), scope.agent, filters)

    @contextmanager
    def _one_read(self, spaces: Iterable[str], agent: str, filters: Filters) -> Iterator[SearchReader]:
        sources = [one for one in SEARCHED if one.name in filters.sources and filters.limit]
        indexes = {space: [self._index(space, source) for source in sources] for space in spaces}
        for _ in range(_ATTEMPTS):
            # Everybody takes them in this order: the indexes, one after the other, then the database.
            with ExitStack() as locks:
                for index in chain.from_iterable(indexes.values()):
                    locks.enter_context(index.lock)
                with self._database.one_read():
                    if self._catch_up(indexes):
                        yield SearchReader(agent, indexes, locks)
                        return
            for space, some in indexes.items():
                for index in some:
                    # This may take long: nothing but this index waits for it.
                    with index.lock:
                        self._refresh(space, index, segments.index_state(self._database, space))
        raise Unavailable("Others write faster than the index can be kept up.", "Try again.")

    def _catch_up(self, indexes: Mapping[str, Sequence[Index[Any]]]) -> bool:
        """Bring indexes up to what one read shows; return False where that would take long."""
        states = {
            space: segments.index_state(self._database, space) for space, some in indexes.items() if some
        }
        if not all(index.is_near(states[space]) for space, some in indexes.items() for index in some):
            return False
        for space, some in indexes.items():
            for index in some:
                self._refresh(space, index, states[space])
        return True

    def rebuild(self, space: str) -> int:
        """Make the indexes of a space anew, for `Memory.verify`, and return the number of its messages."""
        segments.clear(self._database, space)
        indexes = [self._index(space, source) for source in SEARCHED]
        with ExitStack() as locks:
            for index in indexes:
                locks.enter_context(index.lock)
            state = segments.index_state(self._database, space)
            for index in indexes:
                index.refresh(state)
            return indexes[0].covered

    def _index(self, space: str, source: SearchSource[Any]) -> Index[Any]:
        key = (space, source.name)
        with self._lock:
            index = self._indexes.get(key)
            if index is None:
                index = self._indexes[key] = Index(self._database, space, source)
            self._indexes.move_to_end(key)
        return index

    def _refresh(self, space: str, index: Index[Any], state: segments.IndexState) -> None:
        """Bring an index up to date, and drop the least recently used ones when all take too much memory."""
        before, key = index.covered, (space, index.source.name)
        index.refresh(state)
        if index.covered == before and key in self._sizes:
            return
        size = index.nbytes
        with self._lock:
            if key not in self._indexes:
                return
            self._total += size - self._sizes.get(key, 0)
            self._sizes[key] = size
            while self._total > CACHE_BYTES and len(self._indexes) > 1:
                oldest, _ = self._indexes.popitem(last=False)
                self._total -= self._sizes.pop(oldest, 0)


class Matched(NamedTuple):
    """A source of a space as a query sees it, and the terms of the query in it."""

    view: SourceView[Any]
    terms: list[QueryTerm]


class SearchReader:
    """Some indexes as of one read of the database, which is open as long as this is in use."""

    def __init__(self, agent: str, indexes: Mapping[str, Sequence[Index[Any]]], locks: ExitStack) -> None:
        self._agent = agent
        self._indexes = indexes
        self._locks = locks

    def find(self, query: Query, filters: Filters) -> list[Hit]:
        """Return the hits of a query in all spaces, best first; see `Memory.recall`."""
        # A chat belongs to its space; the shared space may have another of the same name.
        spaces = self.spaces if filters.chat is None else self.spaces[:1]
        hits = [hit for space in spaces for hit in self._find(space, query, filters)]
        hits.sort(key=lambda hit: -hit.score)
        return hits[: filters.limit]

    @property
    def spaces(self) -> tuple[str, ...]:
        """The spaces that are read, one's own first."""
        return tuple(self._indexes)

    def _find(self, space: str, query: Query, filters: Filters) -> Iterator[Hit]:
        for wider, group in self.matched(space, query, filters):
            for view, terms in group:
                if terms:
                    yield from view.source.find(view, wider, terms, filters)

    def matched(self, space: str, query: Query, filters: Filters) -> Iterator[tuple[Query, list[Matched]]]:
        """Yield the query, with nearest words, and the views of each group of sources in a space."""
        as_of = filters.as_of_in(space)
        indexes = {one.source.name: one for one in self._indexes[space] if one.covered}
        for group in _GROUPS:
            names = [
                source.name for source in group if source.name in filters.sources and source.name in indexes
            ]
            if not names:
                continue
            views = [indexes[name].view(query.terms, self._agent, as_of) for name in names]
            having = zip(*(view.searched.postings.counts for view in views), strict=True)
            wider = widened(query, [sum(counts) for counts in having])
            if wider is not query:
                views = [indexes[name].view(wider.terms, self._agent, as_of) for name in names]
            terms = match(wider, [view.searched for view in views])
            yield wider, list(map(Matched, views, terms))

    def similar(self, space: str, query: Query, filters: Filters) -> list[Record]:
        """Return the records of a space that match a query, best first."""
        (index,) = self._indexes[space]
        view = index.view(query.terms, self._agent, filters.as_of_in(space))
        (matched,) = match(query, [view.searched])
        found = record_source.best(view, query, matched, filters)[1] if matched else []
        return [record for _, record in found]

    def release(self) -> None:
        """Release the indexes after the last recall, so that others need not wait for the end of the read."""
        self._locks.close()
