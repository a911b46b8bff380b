"""Records as a source: how their versions are indexed, and the best of them for a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from holdfast.search import rank
from holdfast.search.columns import Mask, RecordColumns
from holdfast.search.fusion import Ranked
from holdfast.search.meaning import explained, whole_ranking
from holdfast.search.segment import IndexedDocument
from holdfast.search.source import SearchSource, SourceView, parsed, read_best, texts_in, time_masks
from holdfast.store import records
from holdfast.store.message_rows import EPOCH
from holdfast.text import analyze
from holdfast.types import Hit, Record, Why

if TYPE_CHECKING:
    from holdfast.search.columns import Numbers
    from holdfast.search.filters import Filters
    from holdfast.search.postings import QueryTerm
    from holdfast.search.query import Query
    from holdfast.store.database import Database
    from holdfast.store.records import AsOf

# Records read at once, at most.
_PAGE = 64


def find(
    view: SourceView[RecordColumns], query: Query, terms: Sequence[QueryTerm], filters: Filters
) -> list[Hit]:
    """Return the records that match a query, best first."""
    scores, found = best(view, query, terms, filters)
    reasons = explained(scores, [one for one, _ in found])
    return [_hit(record, *reason) for (_, record), reason in zip(found, reasons, strict=True)]


def best(
    view: SourceView[RecordColumns], query: Query, terms: Sequence[QueryTerm], filters: Filters
) -> tuple[rank.Scores, list[tuple[Ranked, Record]]]:
    """Return the scores of the visible records, and the best records that pass with their ranks."""
    scores = rank.score_alone(terms, view.columns, view.visible, asks_time=query.asks_time)
    ranked = whole_ranking(view, scores, partial(_masks, view, filters=filters), filters)
    read = partial(records.by_versions, view.database, view.space)
    page = min(filters.limit, _PAGE)
    return scores, read_best(ranked, filters, page, read, partial(_passes, filters))


def _visible(columns: RecordColumns, agent: str, as_of: AsOf) -> Mask:
    """Return which versions are alive and an agent's or nobody's."""
    return columns.visible(as_of.version, agent, shared=True)


def _masks(view: SourceView[RecordColumns], docs: Numbers, filters: Filters) -> Iterator[Mask]:
    """Yield which of some versions pass each filter that can be applied without reading them."""
    if filters.kinds is not None:
        allowed = np.array([kind in filters.kinds for kind, _ in view.columns.actors], bool)
        yield allowed.take(view.columns.actor.take(docs))
    if filters.tags is not None:
        yield np.isin(docs, records.versions_with_tags(view.database, view.space, sorted(filters.tags)))
    yield from time_masks(view.columns.at.take(docs), filters)


def _passes(filters: Filters, record: Record) -> bool:
    return (
        not record.retracted
        and record.trust != "quarantined"
        and (filters.tags is None or not filters.tags.isdisjoint(record.tags))
        and (filters.chat is None or record.chat == filters.chat)
        and filters.target in (None, record.target)
        and (filters.agents is None or record.agent in filters.agents)
        and (filters.valid_at is None or record.valid(filters.valid_at))
    )


def _hit(record: Record, score: float, why: Why) -> Hit:
    first, last = record.messages or (0, 0)
    released = ("released",) if record.trust == "released" else ()
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
        flags=(*record.flags, *released),
        wordings=tuple(dict.fromkeys(one.text for one in record.wordings)),
    )


def _read(database: Database, space: str, after: int, limit: int) -> Iterator[IndexedDocument]:
    """Yield versions of records as documents, one each."""
    rows = records.documents(database, space, after, limit)
    for version, identity, agent, kind, at, text, wordings in rows:
        yield IndexedDocument(version, identity, agent, kind, "", at, (_with_wordings(text, wordings),))


def _with_wordings(text: str, wordings: str | None) -> str:
    """Return the text of a record and the words that its other wordings add, each once."""
    if not wordings:
        return text
    seen = {analyze.fold(word) for word in analyze.tokens(text)}
    added: dict[str, str] = {}
    stored = parsed(wordings)
    for other in texts_in([one[:1] for one in stored] if isinstance(stored, list) else wordings):
        added |= {analyze.fold(word): word for word in analyze.tokens(other)}
    return " ".join([text, *(word for folded, word in added.items() if folded not in seen)])


RECORDS = SearchSource("record", RecordColumns, _read, _visible, find)
