"""The common parts of the three sources: documents for the index, views for queries, and reading."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.search.columns import Columns, Mask, Numbers, RecordColumns, Viewer
from holdfast.search.segment import IndexedDocument
from holdfast.types import Hit, Source, Why
from holdfast.types.where import clauses

if TYPE_CHECKING:
    from holdfast.search.filters import Filters
    from holdfast.search.meta_masks import MetaMasks
    from holdfast.search.postings import Postings, QueryTerm
    from holdfast.search.vectors import Near
    from holdfast.store.database import Database
    from holdfast.store.records import AsOf

C = TypeVar("C", bound=Columns)


class Document(NamedTuple):
    """The document of a reference: its number, and a hit without a score.

    `checks` are the results of the filters that need its row.
    """

    number: int
    hit: Hit
    checks: Sequence[tuple[str, bool]] = ()


class RowHits(NamedTuple):
    """How records or summaries become hits.

    `read` reads the rows of some documents, `page` of them at once at most. `checks` yields the name and the
    result of each filter that needs a row, and `hit` returns a row as a hit.
    """

    page: int
    read: Callable[[Database, str, Sequence[int]], dict[int, Any]]
    checks: Callable[[Filters, Any], Iterable[tuple[str, bool]]]
    hit: Callable[[Any, float, Why], Hit]

    def look_up(self, view: SourceView[RecordColumns], reference: str, filters: Filters) -> Document | None:
        """Return the newest document of an id, even if no filter lets it pass."""
        number = view.columns.newest(reference, view.as_of.version, view.viewer)
        row = self.read(view.database, view.space, [number]).get(number)
        return row and Document(number, self.hit(row, 0.0, Why({})), tuple(self.checks(filters, row)))


# Compared by identity: two may have one name.
@dataclass(frozen=True, slots=True, eq=False)
class SearchSource(Generic[C]):
    """A source of hits: the functions that read its documents and find hits among them.

    `read` reads the documents of a space after a number, at most so many. `masks` yields the name of each
    filter and a mask of documents, and `look_up` returns the document of a reference, None if the view does
    not show it. `rows` is None for messages, which are ranked in all spaces at once. `joined` returns the
    names of documents of other agents that an agent sees; `shared` is whether it sees those of no agent as
    well. `aside` returns the documents of branches that are not current. `stored` is whether its segments are
    kept in the database, and `versioned` whether an earlier version of the space has other documents.
    """

    name: Source
    columns: Callable[[], C]
    read: Callable[[Database, str, int, int], Iterable[IndexedDocument]]
    masks: Callable[[SourceView[C], Numbers, Filters], Iterable[tuple[str, Mask]]]
    look_up: Callable[[SourceView[C], str, Filters], Document | None]
    rows: RowHits | None = None
    joined: Callable[[Database, str, str], frozenset[str]] = lambda *_: frozenset()
    aside: Callable[[Database, str], Sequence[int]] = lambda *_: ()
    shared: bool = False
    stored: bool = True
    versioned: bool = True

    def documents(self, database: Database, space: str, after: int, until: int) -> list[IndexedDocument]:
        """Return the documents after a number up to another one, with empty documents in the gaps.

        An erased message leaves a gap, and so does a damaged log.
        """
        rows = {document.number: document for document in self.read(database, space, after, until - after)}
        numbers = range(after + 1, until + 1)
        return [rows.get(number) or IndexedDocument(number, "", "", "", "", 0, ("",)) for number in numbers]


@dataclass(frozen=True, slots=True)
class SourceView(Generic[C]):
    """A source of a space as an agent sees it at a version, with the postings of a query.

    `near` is the vector of the query if it is searched by meaning as well; `meta` has the masks of filters on
    metadata.
    """

    source: SearchSource[C]
    database: Database
    space: str
    viewer: Viewer
    as_of: AsOf
    columns: C
    visible: Mask | None
    postings: Postings
    meta: MetaMasks | None
    near: Near | None = None


class Matched(NamedTuple):
    """A source of a space as a query sees it, and the terms of the query in it."""

    view: SourceView[Any]
    terms: list[QueryTerm]


def time_masks(at: NDArray[np.int64], filters: Filters) -> Iterator[tuple[str, Mask]]:
    """Yield a mask of some times for each filter on them."""
    if filters.since is not None:
        yield "since", at >= filters.since
    if filters.until is not None:
        yield "until", at < filters.until


def where_masks(view: SourceView[C], docs: Numbers | slice, filters: Filters) -> Iterator[tuple[str, Mask]]:
    """Yield a mask of some documents for each clause of the filter on metadata."""
    if filters.where is not None and view.meta is not None:
        for clause in clauses(filters.where):
            yield f"where: {clause}", view.meta.mask(clause, view.columns)[docs]


def parse_stored(stored: str) -> object:
    """Parse stored JSON; return damaged JSON unchanged, because reading its row reports the damage."""
    try:
        return json.loads(stored)
    except ValueError:
        return stored


def texts_in(value: object) -> Iterator[str]:
    """Yield all texts of a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts_in(item)
