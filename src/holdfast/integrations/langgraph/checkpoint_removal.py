"""How checkpoints are removed and copied, with what only they need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from secrets import token_hex
from typing import TYPE_CHECKING

from holdfast.errors import Conflict
from holdfast.integrations.framework_keys import unescape
from holdfast.integrations.langgraph import checkpoint_rows as rows
from holdfast.integrations.langgraph.checkpoint_rows import StoredCheckpoint
from holdfast.integrations.langgraph.thread_items import ListOfMessages
from holdfast.store import items

if TYPE_CHECKING:
    from holdfast.integrations.langgraph.thread_items import ThreadItems
    from holdfast.store.database import Connection

# Returns the versions of the channels of a checkpoint.
Versions = Callable[[StoredCheckpoint], Mapping[str, object]]
# Items that are copied at once.
_PAGE = 256


def latest(thread: ThreadItems, versions: Versions) -> set[str]:
    """Return the keys of the newest checkpoint of each namespace, and of those that it is rebuilt from."""
    kept = set[str]()
    for ns in {key.partition("/")[0] for key in thread.keys(rows.CHECKPOINTS)}:
        found = thread.checkpoint(unescape(ns), "")
        needed = _deltas(found)
        while found is not None:
            kept.add(found.key)
            needed -= _valued(thread, found, versions(found), needed)
            found = thread.checkpoint(found.ns, found.parent) if needed and found.parent else None
    return kept


def _deltas(found: StoredCheckpoint | None) -> set[str]:
    """Return the channels of which a checkpoint may have no value, but the writes since an earlier one."""
    counters = found.metadata.get("counters_since_delta_snapshot") if found else None
    return set(counters) if isinstance(counters, dict) else set()


def _valued(
    thread: ThreadItems, found: StoredCheckpoint, versions: Mapping[str, object], channels: Collection[str]
) -> set[str]:
    keys = {
        rows.value_key(found.ns, one, version): one for one, version in versions.items() if one in channels
    }
    return {keys[key] for key in thread.values(list(keys))}


def keep(
    tx: Connection, thread: ThreadItems, kept: Collection[str], versions: Versions, now: int
) -> list[str]:
    """Delete all checkpoints but some, and what only they needed; return the identities of lost messages."""
    gone = set(thread.keys(rows.CHECKPOINTS)).difference(kept)
    if not gone:
        return []
    _delete(tx, thread, rows.CHECKPOINTS, gone)
    writes = thread.keys(rows.WRITES)
    _delete(tx, thread, rows.WRITES, [key for key in writes if "/".join(key.split("/")[:2]) in gone])
    needed = {
        rows.value_key(one.ns, channel, version)
        for one in thread.all_checkpoints()
        for channel, version in versions(one).items()
    }
    values = thread.keys(rows.VALUES)
    _delete(tx, thread, rows.VALUES, [key for key in values if key not in needed])
    return _delete_messages(tx, thread, needed.intersection(values), now)


def _delete_messages(tx: Connection, thread: ThreadItems, values: Collection[str], now: int) -> list[str]:
    """Delete the messages that no value lists; return the identities that no message has any more."""
    head = thread.head()
    lists = [one for one in thread.values(list(values)).values() if isinstance(one, ListOfMessages)]
    ranges = [one for each in lists for one in each.ranges]
    if head is None or not (lost := rows.without([(1, head.messages)] if head.messages else [], ranges)):
        return []
    messages = thread.messages(rows.to_ranges(lost))
    _delete(tx, thread, rows.MESSAGES, map(rows.message_key, messages))
    # Whoever knows the numbers of deleted messages stores them again.
    items.put(tx, thread.place(rows.HEAD), {"": head._replace(epoch=token_hex(8)).packed()}, now)
    left = {one.identity for one in thread.messages(ranges).values()}
    return [unescape(one.identity) for one in messages.values() if one.identity not in left]


def _delete(tx: Connection, thread: ThreadItems, collection: str, keys: Collection[str] | map[str]) -> None:
    items.delete(tx, thread.place(collection), list(keys))


def copy(tx: Connection, source: ThreadItems, target: ThreadItems, name: str, now: int) -> bool:
    """Copy all items of a thread to a new one; return whether there were any.

    Raises:
        Conflict: the new one is there already.

    """
    tx.lock(source.space)
    head = source.head()
    if head is None:
        return False
    if target.head() is not None:
        raise Conflict(
            f"The thread {name!r} has checkpoints already.", "Delete it first, or copy to another one."
        )
    for collection in rows.COLLECTIONS:
        after = None
        while page := items.scan(tx, source.place(collection), now, after=after, limit=_PAGE):
            items.put(tx, target.place(collection), {item.key: item.data for item in page}, now)
            after = page[-1].key
    items.put(tx, target.place(rows.HEAD), {"": head._replace(thread=name, epoch=token_hex(8)).packed()}, now)
    return True
