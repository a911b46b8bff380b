"""Lists of records and chats by their metadata, without reading all of them where a key is declared."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from holdfast.store import records, sessions
from holdfast.store.meta_index import candidates, catch_up
from holdfast.types import check_count, check_flag, check_name
from holdfast.types.where import check_where

if TYPE_CHECKING:
    from holdfast.store.database import Database
    from holdfast.store.meta_values import Labelled
    from holdfast.store.records import RecordFilter
    from holdfast.types import ChatInfo, Record, Scope
    from holdfast.types.where import Where

# Of more than these it is quicker to read all in order, up to the limit.
_MOST = 5_000


def chosen(db: Database, space: str, source: Labelled, where: Where | None) -> set[int | str] | None:
    """Return records, by versions, or chats, among which are all that pass; None if that is not known."""
    found = None if where is None else candidates(db, space, source, where)
    return None if found is None or len(found) > _MOST else found


def listed_records(
    database: Database, space: str, at: int, wanted: RecordFilter, among: Collection[int | str] | None
) -> Iterator[Record]:
    """Iterate over records in the order in which they were first written: of some versions, None for all."""
    if among is None:
        return records.iterate(database, space, at, wanted)
    return iter(records.read_some(database, space, at, wanted, sorted(map(int, among))))


def listed_chats(
    database: Database,
    scope: Scope,
    declared: frozenset[str],
    *,
    archived: bool | None,
    channel: str | None,
    limit: int | None,
    offset: int,
    where: Mapping[str, object] | None,
) -> list[ChatInfo]:
    """Return the chats of a scope, see `Memory.chats`.

    Raises:
        InvalidInput: a filter is of the wrong type.

    """
    tree = check_where(where)
    if tree is not None:
        catch_up(database, scope.space, ["chat"], tree, declared)
    with database.one_read():
        found = chosen(database, scope.space, "chat", tree)
        return sessions.list_chats(
            database,
            scope,
            archived=None if archived is None else check_flag(archived, "archived"),
            channel=None if channel is None else check_name(channel, "The channel", empty=True),
            limit=None if limit is None else check_count(limit, "limit"),
            offset=check_count(offset, "offset"),
            where=tree,
            among=None if found is None else {str(chat) for chat in found},
        )
