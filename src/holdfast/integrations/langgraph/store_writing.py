"""What a batch writes to a LangGraph store: one transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from holdfast.integrations.langgraph.store_items import (
    COLLECTION,
    Marker,
    Namespace,
    decoded,
    decoded_marker,
    encoded_marker,
    item_key,
    marker_key,
    parsed_key,
    vectors_key,
    with_created,
)
from holdfast.integrations.langgraph.store_search import Written
from holdfast.store import items
from holdfast.store.database import retry_transaction
from holdfast.store.items import Item as StoredItem

if TYPE_CHECKING:
    from holdfast.integrations.item_table import ItemTable
    from holdfast.store.database import Connection


class Put(NamedTuple):
    """An item to store, as `encoded`, or to delete; its vectors as they are stored, and when it expires."""

    namespace: Namespace
    key: str
    body: str | None
    vectors: bytes | None = None
    expires: int | None = None


@retry_transaction
def write(
    table: ItemTable, puts: Sequence[Put], renewed: Mapping[str, int], now: int
) -> dict[Namespace, Written]:
    """Store and delete items, set when others expire, and return what was done to each namespace."""
    by_namespace: dict[Namespace, list[Put]] = defaultdict(list)
    for put in puts:
        by_namespace[put.namespace].append(put)
    with table.writing() as tx:
        if renewed:
            items.renew(tx, table.place(), renewed, now)
        return _Transaction(tx, table, now).write(by_namespace) if puts else {}


@retry_transaction
def sweep(table: ItemTable, now: int) -> int:
    """Delete the items that have expired, with the namespaces that are empty then; return their number."""
    with table.writing() as tx:
        gone = items.delete_expired(tx, table.place().space, now)
        keys = [key for collection, key in gone if collection == COLLECTION and key.startswith("i")]
        emptied = _Transaction(tx, table, now).empty({parsed_key(key)[0] for key in keys})
        items.delete(tx, table.place(), [marker_key(namespace) for namespace in emptied])
        return len(keys)


class _Transaction:
    def __init__(self, tx: Connection, table: ItemTable, now: int) -> None:
        self._tx, self._place, self._now = tx, table.place(), now

    def write(self, puts: Mapping[Namespace, Sequence[Put]]) -> dict[Namespace, Written]:
        keys = [item_key(put.namespace, put.key) for some in puts.values() for put in some if put.body]
        known = items.get(self._tx, self._place, [*keys, *map(marker_key, puts)], self._now)
        written, stored = {}, defaultdict[int | None, dict[str, bytes]](dict)
        gone: list[str] = []
        for namespace, some in puts.items():
            marker = known.get(marker_key(namespace))
            before = None if marker is None else decoded_marker(marker.data)
            fresh = [self._item(put, known) for put in some if put.body is not None]
            for item in fresh:
                stored[item.expires][item.key] = item.data
            for put in some:
                if put.vectors is not None:
                    stored[put.expires][vectors_key(namespace, put.key)] = put.vectors
            deleted = [put.key for put in some if put.body is None]
            gone += [item_key(namespace, key) for key in deleted]
            if before is not None and before.vectors:
                gone += [vectors_key(namespace, put.key) for put in some if put.vectors is None]
            after = decoded_marker(_marker(before, some))
            stored[None][marker_key(namespace)] = after.token
            written[namespace] = Written(before, after, fresh, deleted)
        for expires, data in stored.items():
            items.put(self._tx, self._place, data, self._now, expires)
        if gone:
            items.delete(self._tx, self._place, gone)
        emptied = self.empty(namespace for namespace, one in written.items() if not one.items)
        if emptied:
            items.delete(self._tx, self._place, [marker_key(namespace) for namespace in emptied])
        return written | {namespace: written[namespace]._replace(after=None) for namespace in emptied}

    def empty(self, namespaces: Iterable[Namespace]) -> list[Namespace]:
        """Return which of some namespaces have no items."""
        return [
            namespace
            for namespace in namespaces
            if not items.scan(self._tx, self._place, self._now, prefix=item_key(namespace, ""), limit=1)
        ]

    def _item(self, put: Put, known: Mapping[str, StoredItem]) -> StoredItem:
        key = item_key(put.namespace, put.key)
        old = known.get(key)
        created = self._now if old is None else decoded(old).created
        return StoredItem(key, with_created(put.body or "", created), 0, self._now, put.expires)


def _marker(before: Marker | None, puts: Sequence[Put]) -> bytes:
    expiring = any(put.expires is not None for put in puts)
    vectors = any(put.vectors is not None for put in puts)
    return encoded_marker(
        expiring=expiring or (before is not None and before.expiring),
        vectors=vectors or (before is not None and before.vectors),
    )
