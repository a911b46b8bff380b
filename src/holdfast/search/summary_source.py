"""Summaries as a source: their documents for the index, and the best of them for a query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from holdfast.search.columns import Mask, Numbers, RecordColumns
from holdfast.search.segment import IndexedDocument
from holdfast.search.source import RowHits, SearchSource, SourceView, time_masks
from holdfast.store import summaries
from holdfast.store.message_rows import to_micros
from holdfast.types import Hit, Why

if TYPE_CHECKING:
    from holdfast.search.filters import Filters
    from holdfast.store.database import Database
    from holdfast.types import Summary


def summary_hit(summary: Summary, score: float, why: Why) -> Hit:
    """Return a summary as a hit."""
    return Hit(
        "summary",
        summary.text,
        score,
        id=summary.id,
        chat=summary.chat,
        seq=summary.first,
        last_seq=summary.last,
        role="summary",
        name=None,
        at=summary.until,
        why=why,
        kind=summary.kind,
    )


def _masks(view: SourceView[RecordColumns], docs: Numbers, filters: Filters) -> Iterator[tuple[str, Mask]]:
    """Yield a mask of some summaries for each filter that needs no row."""
    yield from time_masks(view.columns.at.take(docs), filters)
    if filters.chat is not None:
        yield "chat", np.isin(docs, summaries.numbers(view.database, view.space, filters.chat))


def _checks(filters: Filters, summary: Summary) -> Iterator[tuple[str, bool]]:
    """Yield the result of each filter that needs the summary: the columns have the time of its end only."""
    yield "outside", filters.is_outside(summary.chat)
    yield "since", filters.since is None or to_micros(summary.since) >= filters.since


def _read_summaries(database: Database, space: str, after: int, limit: int) -> Iterator[IndexedDocument]:
    """Yield summaries as documents; earlier versions of extended ones are documents as well."""
    for number, identity, agent, at, text in summaries.documents(database, space, after, limit):
        yield IndexedDocument(number, identity, agent, "summary", "", at, (text,))


# Each is a page of text.
ROWS = RowHits(8, summaries.by_numbers, _checks, summary_hit)
SUMMARIES = SearchSource(
    "summary",
    RecordColumns,
    _read_summaries,
    _masks,
    ROWS.look_up,
    ROWS,
    summaries.joined,
    summaries.aside,
    versioned=False,
)
