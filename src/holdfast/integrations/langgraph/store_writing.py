"""The writes of a batch to a LangGraph store, in one transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from holdfast.integrations.langgraph.store_items import (
    COLLECTION,
    Marker,
    Namespace,
    decode,
    decode_marker,
    encode_marker,
    item_key,
    marker_key,
    parse_key,
    vectors_key,
    with_created,
)
from holdfast.integrations.langgraph.store_search import NamespaceWrite
from holdfast.port.items import Item as StoredItem
from holdfast.port.items import retry_transaction

if TYPE_CHECKING:
    from holdfast.port.items import Items


class Put(NamedTuple):
    """An item to store, as `encode`, or to delete; its vectors as they are stored, and when it expires."""

    namespace: Namespace
    key: str
    body: str | None
    vectors: bytes | None = None
    expires: int | None = None


@retry_transaction
def write(table: Items, puts: Sequence[Put], renewed: Mapping[str, int]) -> dict[Namespace, NamespaceWrite]:
    """Store and delete items, set when others expire, and return the write to each namespace."""
    by_namespace: dict[Namespace, list[Put]] = defaultdict(list)
    for put in puts:
        by_namespace[put.namespace].append(put)
    with table.writing() as tx:
        if renewed:
            tx.renew(renewed)
        return _write(tx, by_namespace) if puts else {}


@retry_transaction
def sweep(table: Items) -> int:
    """Delete the items that have expired, with the namespaces that are empty then; return their number."""
    with table.writing() as tx:
        gone = tx.sweep()
        keys = [key for collection, key in gone if collection == COLLECTION and key.startswith("i")]
        emptied = _empty(tx, {parse_key(key)[0] for key in keys})
        tx.delete([marker_key(namespace) for namespace in emptied])
        return len(keys)


def _write(tx: Items, puts: Mapping[Namespace, Sequence[Put]]) -> dict[Namespace, NamespaceWrite]:
    keys = [item_key(put.namespace, put.key) for some in puts.values() for put in some if put.body]
    known = tx.get_many([*keys, *map(marker_key, puts)])
    written, stored = {}, defaultdict[int | None, dict[str, bytes]](dict)
    gone: list[str] = []
    for namespace, some in puts.items():
        marker = known.get(marker_key(namespace))
        before = None if marker is None else decode_marker(marker.data)
        fresh = [_item(put, known, tx.now) for put in some if put.body is not None]
        for item in fresh:
            stored[item.expires][item.key] = item.data
        for put in some:
            if put.vectors is not None:
                stored[put.expires][vectors_key(namespace, put.key)] = put.vectors
        deleted = [put.key for put in some if put.body is None]
        gone += [item_key(namespace, key) for key in deleted]
        if before is not None and before.vectors:
            gone += [vectors_key(namespace, put.key) for put in some if put.vectors is None]
        after = decode_marker(_marker(before, some))
        stored[None][marker_key(namespace)] = after.token
        written[namespace] = NamespaceWrite(before, after, fresh, deleted)
    for expires, data in stored.items():
        tx.put(data, expires=expires)
    if gone:
        tx.delete(gone)
    emptied = _empty(tx, (namespace for namespace, change in written.items() if not change.items))
    if emptied:
        tx.delete([marker_key(namespace) for namespace in emptied])
    return written | {namespace: written[namespace]._replace(after=None) for namespace in emptied}


def _empty(tx: Items, namespaces: Iterable[Namespace]) -> list[Namespace]:
    """Return which of some namespaces have no items."""
    return [namespace for namespace in namespaces if not tx.scan(prefix=item_key(namespace, ""), limit=1)]


def _item(put: Put, known: Mapping[str, StoredItem], now: int) -> StoredItem:
    key = item_key(put.namespace, put.key)
    old = known.get(key)
    created = now if old is None else decode(old).created
    return StoredItem(key, with_created(put.body or "", created), 0, now, put.expires)


def _marker(before: Marker | None, puts: Sequence[Put]) -> bytes:
    expiring = any(put.expires is not None for put in puts)
    vectors = any(put.vectors is not None for put in puts)
    return encode_marker(
        expiring=expiring or (before is not None and before.expiring),
        vectors=vectors or (before is not None and before.vectors),
    )
