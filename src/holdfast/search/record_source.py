"""Records as a source: the documents of their versions for the index, and the best for a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from holdfast.search.columns import Mask, Numbers, RecordColumns, passing
from holdfast.search.segment import IndexedDocument
from holdfast.search.source import (
    RowHits,
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
    from holdfast.store.database import Database


def _read_records(database: Database, space: str, versions: Sequence[int]) -> dict[int, Record]:
    """Return versions of records, but no notes of a run."""
    rows = records.by_versions(database, space, versions)
    return {version: record for version, record in rows.items() if not record.run}


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


ROWS = RowHits(64, _read_records, _checks, _hit)
RECORDS = SearchSource("record", RecordColumns, _read_versions, _masks, ROWS.look_up, ROWS, shared=True)
# Records in quarantine, seldom searched: the database has their words only in their own rows.
WAITING = replace(RECORDS, read=partial(_read_versions, waiting=True), stored=False)
