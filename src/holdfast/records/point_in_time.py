"""Which version an earlier point in time is, in each space that is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.records.draft import unknown_version
from holdfast.store import records
from holdfast.store.message_rows import from_micros, to_micros
from holdfast.store.records import AsOf
from holdfast.types import Scope, Time, is_whole, to_time

if TYPE_CHECKING:
    from holdfast.store.database import Database


@dataclass(frozen=True, slots=True)
class PointInTime:
    """An earlier version: the moment of each space, its time, and until when messages count."""

    moments: Mapping[str, AsOf] = field(default_factory=dict)
    time: datetime | None = None


def point_in_time(database: Database, scope: Scope, point: int | Time) -> PointInTime:
    """Return the version that `Memory.at` names, in the space and in those that are read beside it.

    Raises:
        InvalidInput: there is no such version.

    """
    space = scope.space
    with database.one_read():
        newest = records.version(database, space)
        if isinstance(point, datetime | str):
            written = to_micros(to_time(point, "version"))
            own = AsOf(records.version_at(database, space, written), until=written + 1)
        elif is_whole(point) and 0 <= point <= newest:
            own, written = records.as_of(database, space, point)
        else:
            raise unknown_version(point, newest)
        moments = {
            one: AsOf(records.version_at(database, one, written), until=written + 1) for one in scope.spaces
        }
    if own == AsOf(0, 0):
        moments = dict.fromkeys(moments, own)
    return PointInTime({**moments, space: own}, from_micros(written))
