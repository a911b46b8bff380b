"""Records in conflict: the one that was stored second names the other, as long as both say what they said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.store.record_rows import CONFLICTS_WITH, FROM, SELECT, to_record
from holdfast.store.records import RecordFilter, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.store.database import Reader
    from holdfast.types import Record

_HOLDERS = f"""{SELECT}, r.born {FROM} AND r.kind = :kind AND r.version <= :at AND r.ended > :at
    AND r.retracted = 0 AND r.trust <> 'quarantined' AND r.run = '' AND r.flags LIKE '%"{CONFLICTS_WITH}%'
    ORDER BY r.version"""


def pairs(db: Reader, space: str, at: int, kinds: Iterable[str]) -> Iterator[tuple[Record, Record, str]]:
    """Iterate over the pairs as of a version: the record that was stored second, the first, and why both are.

    A record never names another but when it is first written.
    """
    for kind in kinds:
        for row in db.all(_HOLDERS, space=space, kind=kind, at=at):
            second, born = to_record(row[:-1]), row[-1]
            both = RecordFilter(ids=(second.id, *second.conflicts))
            then = {record.id: record for record in read(db, space, born, both)}
            for first in read(db, space, at, both):
                if first.id in second.conflicts and first.id in then and first.text == then[first.id].text:
                    yield second, first, then[second.id].why
