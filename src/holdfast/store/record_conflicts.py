"""Records in conflict: the one that was stored second names the other, as long as both say what they said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.store.database import one_of
from holdfast.store.record_rows import CONFLICTS_WITH
from holdfast.store.records import RecordFilter, by_versions, read

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from holdfast.store.database import Reader
    from holdfast.types import Record

# Not by its version, which PostgreSQL would read all versions of the space for.
_HOLDERS = f"""
    SELECT version, born FROM records
    WHERE space = :space AND flags IS NOT NULL AND flags LIKE '%"{CONFLICTS_WITH}%'
    AND ended > :at AND retracted = 0 AND trust <> 'quarantined' AND run = ''"""


def pairs(db: Reader, space: str, at: int, kinds: Collection[str]) -> Iterator[tuple[Record, Record, str]]:
    """Iterate over the pairs as of a version: the record that was stored second, the first, and why both are.

    A record never names another but when it is first written.
    """
    condition, values = one_of("kind", kinds)
    rows = db.all(f"{_HOLDERS} AND {condition}", space=space, at=at, **values)
    births = dict(sorted((version, born) for version, born in rows if version <= at))
    holders = by_versions(db, space, [*births])
    for version, born in births.items():
        second = holders[version]
        both = RecordFilter(ids=(second.id, *second.conflicts))
        then = {record.id: record for record in read(db, space, born, both)}
        for first in read(db, space, at, both):
            if first.id in second.conflicts and first.id in then and first.text == then[first.id].text:
                yield second, first, then[second.id].why
