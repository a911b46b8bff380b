"""Records as a source: the documents of their versions for the index, and the best for a query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from holdfast.search import rank
from holdfast.search.columns import Mask, Numbers, RecordColumns, Viewer, passing
from holdfast.search.fusion import Ranked
from holdfast.search.meaning import best_rows, explain_rows
from holdfast.search.segment import IndexedDocument
from holdfast.search.source import (
    Document,
    Matched,
    SearchSource,
    SourceView,
    parse_stored,
    texts_in,
    time_masks,
    where_masks,
)
from holdfast.store import records
from holdfast.store.message_rows import EPOCH
from holdfast.text import analyze
from holdfast.types import Hit, Record, Why

if TYPE_CHECKING:
    from holdfast.search.filters import Filters
    from holdfast.search.query import Query
    from holdfast.store.database import Database
    from holdfast.store.records import AsOf

# Records read at once, at most.
_PAGE = 64


def find(match: Matched, query: Query, filters: Filters) -> list[Hit]:
    """Return the records that match a query, best first."""
    rows = explain_rows(match.view, filters.min_score, *best(match, query, filters))
    return [_hit(*row) for row in rows]


def best(match: Matched, query: Query, filters: Filters) -> tuple[rank.Scores, list[tuple[Ranked, Record]]]:
    """Return the scores of the visible records, and the best records that pass with their ranks."""
    read = partial(records.by_versions, match.view.database, match.view.space)
    page = min(max(filters.limit, 2), _PAGE)
    return best_rows(match, query, filters, page, read, partial(_checks, filters))


def _visible(columns: RecordColumns, viewer: Viewer, as_of: AsOf) -> Mask:
    return columns.visible(as_of.version, viewer)


def _masks(view: SourceView[RecordColumns], docs: Numbers, filters: Filters) -> Iterator[tuple[str, Mask]]:
    """Yield a mask of some versions for each filter that needs no row."""
    if filters.kinds is not None:
        allowed = [kind in filters.kinds for kind, _ in view.columns.actors]
        yield "kinds", passing(allowed, view.columns.actor.take(docs))
    if filters.tags is not None:
        tagged = records.versions_with_tags(view.database, view.space, sorted(filters.tags))
        yield "tags", np.isin(docs, tagged)
    yield from time_masks(view.columns.at.take(docs), filters)
    yield from where_masks(view, docs, filters)


def _checks(filters: Filters, record: Record) -> Iterator[tuple[str, bool]]:
    """Yield the result of each filter that needs the record."""
    yield "retracted", not record.retracted
    waits = record.trust == "quarantined"
    yield ("trust", waits) if filters.trust else ("quarantined", not waits)
    yield "tags", filters.tags is None or not filters.tags.isdisjoint(record.tags)
    yield "chat", filters.chat in (None, record.chat)
    yield "outside", filters.is_outside(record.chat)
    yield "target", filters.target in (None, record.target)
    yield "agents", filters.agents is None or record.agent in filters.agents
    yield "valid_at", filters.valid_at is None or record.valid(filters.valid_at)


def _look_up(view: SourceView[RecordColumns], reference: str, filters: Filters) -> Document | None:
    """Return the newest version of a record, even if retracted or in quarantine; no note of a run."""
    version = view.columns.newest(reference, filters.as_of_in(view.space).version, view.viewer)
    record = records.by_versions(view.database, view.space, [version]).get(version)
    if record is None or record.run:
        return None
    return Document(version, _hit(record, 0.0, Why({})), tuple(_checks(filters, record)))


def _hit(record: Record, score: float, why: Why) -> Hit:
    first, last = record.messages or (0, 0)
    trust = () if record.trust == "trusted" else (record.trust,)
    return Hit(
        "record",
        record.text,
        score,
        id=record.id,
        chat=record.chat,
        seq=first,
        last_seq=last,
        role=record.by,
        name=None,
        at=record.at or EPOCH,
        why=why,
        kind=record.kind,
        flags=(*record.flags, *trust),
        wordings=tuple(dict.fromkeys(wording.text for wording in record.wordings)),
    )


def _read_versions(
    database: Database, space: str, after: int, limit: int, *, waiting: bool = False
) -> Iterator[IndexedDocument]:
    """Yield versions of records as documents, one each."""
    rows = records.documents(database, space, after, limit, waiting=waiting)
    for version, identity, agent, kind, at, text, wordings in rows:
        yield IndexedDocument(version, identity, agent, kind, "", at, (_with_wordings(text, wordings),))


def _with_wordings(text: str, wordings: str | None) -> str:
    """Return the text of a record, followed by the further words of its other wordings, each once."""
    if not wordings:
        return text
    seen = {analyze.fold(word) for word in analyze.tokens(text)}
    added: dict[str, str] = {}
    stored = parse_stored(wordings)
    said = [row[:1] for row in stored if isinstance(row, list)] if isinstance(stored, list) else wordings
    for other in texts_in(said):
        added |= {analyze.fold(word): word for word in analyze.tokens(other)}
    return " ".join([text, *(word for folded, word in added.items() if folded not in seen)])


RECORDS = SearchSource("record", RecordColumns, _read_versions, _visible, find, _masks, _look_up, shared=True)
# Records in quarantine, seldom searched: the database has their words only in their own rows.
WAITING = replace(RECORDS, read=partial(_read_versions, waiting=True), stored=False)
