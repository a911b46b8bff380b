"""Records in conflict: the one that was stored second names the other, as long as both say what they said."""

from __future__ import annotations

from dataclasses import replace
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


def pairs(db: Reader, space: str, at: int, kinds: Iterable[str]) -> Iterator[tuple[Record, Record]]:
    """Iterate over the pairs as of a version: the record that was stored second, and the first.

    A record never names another but when it is first written.
    """
    for kind in kinds:
        for row in db.all(_HOLDERS, space=space, kind=kind, at=at):
            second, born = to_record(row[:-1]), row[-1]
            wanted = RecordFilter(ids=second.conflicts)
            said = {first.id: first.text for first in read(db, space, born, replace(wanted, retracted=True))}
            yield from (
                (second, first) for first in read(db, space, at, wanted) if first.text == said.get(first.id)
            )
