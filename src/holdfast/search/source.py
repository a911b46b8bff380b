"""What the three sources have in common: how they are indexed, seen by a query, and read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.search.columns import Columns, Mask, Numbers
from holdfast.search.segment import IndexedDocument
from holdfast.types import Hit, Source
from holdfast.types.where import clauses

if TYPE_CHECKING:
    from holdfast.search.filters import Filters
    from holdfast.search.fusion import Ranked, RankedDocuments
    from holdfast.search.meta_masks import MetaMasks
    from holdfast.search.postings import QueryTerm, Searched
    from holdfast.search.query import Query
    from holdfast.search.vector_scan import Near
    from holdfast.store.database import Database
    from holdfast.store.records import AsOf

C = TypeVar("C", bound=Columns)
_Row = TypeVar("_Row")


class Document(NamedTuple):
    """A document that a reference names: its number, and as a hit that has no score yet.

    `checks` are the filters that need its row, each with whether it passes.
    """

    number: int
    hit: Hit
    checks: Sequence[tuple[str, bool]] = ()


# Compared by identity: two may have one name.
@dataclass(frozen=True, slots=True, eq=False)
class SearchSource(Generic[C]):
    """Something that is searched: how it is indexed, and how hits are found in it.

    `documents` reads those of a space after a number up to another one; they are numbered 1, 2, 3 … without
    gaps. `visible` returns what an agent sees at a version, None for everything. `find` returns the hits of a
    query; None for messages, which are ranked in all spaces at once. `masks` yields, by the names of the
    filters, which of some documents pass, and `look_up` returns the document that a reference names, None
    where the view shows none. `stored` is whether its segments are kept in the database.
    """

    name: Source
    columns: Callable[[], C]
    read: Callable[[Database, str, int, int], Iterable[IndexedDocument]]
    visible: Callable[[C, str, AsOf], Mask | None]
    find: Callable[[SourceView[C], Query, Sequence[QueryTerm], Filters], list[Hit]] | None
    masks: Callable[[SourceView[C], Numbers, Filters], Iterable[tuple[str, Mask]]]
    look_up: Callable[[SourceView[C], str, Filters], Document | None]
    stored: bool = True

    def documents(self, database: Database, space: str, after: int, until: int) -> list[IndexedDocument]:
        """Return the documents after a number up to another one: 1, 2, 3 …, an empty one where there is none.

        An erased message leaves such a gap, and so does a damaged log.
        """
        found = {one.number: one for one in self.read(database, space, after, until - after)}
        numbers = range(after + 1, until + 1)
        return [found.get(number) or IndexedDocument(number, "", "", "", "", 0, ("",)) for number in numbers]


@dataclass(frozen=True, slots=True)
class SourceView(Generic[C]):
    """A source of a space as an agent sees it at a version, with the postings of a query.

    `near` is the query as a vector, where what is near it in meaning is to be found as well; `meta` the
    filters on metadata.
    """

    source: SearchSource[C]
    database: Database
    space: str
    agent: str
    columns: C
    visible: Mask | None
    searched: Searched
    near: Near | None = None
    meta: MetaMasks | None = None


def time_masks(at: NDArray[np.int64], filters: Filters) -> Iterator[tuple[str, Mask]]:
    """Yield which of some times pass each filter."""
    if filters.since is not None:
        yield "since", at >= filters.since
    if filters.until is not None:
        yield "until", at < filters.until


def where_masks(view: SourceView[C], docs: Numbers | slice, filters: Filters) -> Iterator[tuple[str, Mask]]:
    """Yield which of some documents pass each clause of the filter on metadata."""
    if filters.where is not None and view.meta is not None:
        for clause in clauses(filters.where):
            yield f"where: {clause}", view.meta.mask(clause, view.columns)[docs]


def read_best(
    ranked: RankedDocuments,
    filters: Filters,
    page: int,
    read: Callable[[list[int]], dict[int, _Row]],
    checks: Callable[[_Row], Iterable[tuple[str, bool]]],
) -> list[tuple[Ranked, _Row]]:
    """Return the best rows that pass, best first, each with its rank; reads by pages."""
    found: list[tuple[Ranked, _Row]] = []
    limit = filters.limit
    if not limit:
        return found
    for start in range(0, min(len(ranked), filters.candidates), page):
        some = ranked[start : min(start + page, filters.candidates)]
        rows = read([one.doc for one in some])
        for one in some:
            row = rows.get(one.doc)
            if row is not None and all(passes for _, passes in checks(row)):
                found.append((one, row))
        if len(found) >= limit:
            break
    return found[:limit]


def parsed(stored: str) -> object:
    """Return stored JSON; damaged JSON as it stands: reading its row names the damage."""
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
