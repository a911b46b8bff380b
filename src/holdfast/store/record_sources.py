"""Records by the source of their import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.store.database import batched, one_of
from holdfast.store.record_rows import FROM, SELECT, to_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.store.database import Reader
    from holdfast.types import Record


def versions_by_source(db: Reader, space: str, sources: Sequence[str]) -> dict[str, list[Record]]:
    """Return all versions of the records imported from some sources, the oldest first; a linear scan."""
    records: dict[str, list[Record]] = {}
    for some in batched(sources):
        condition, values = one_of("source", some)
        sql = f"""{SELECT} {FROM} AND r.id IN (
            SELECT id FROM records WHERE space = :space AND writer = 'import' AND {condition}
        ) ORDER BY r.version"""
        origins: dict[str, str] = {}
        for row in db.all(sql, space=space, **values):
            record = to_record(row)
            source = origins.setdefault(record.id, record.source)
            records.setdefault(source, []).append(record)
    return records
