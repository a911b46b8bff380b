"""Items of a LangGraph store as bytes under keys: their forms, their namespaces, and how many are written."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from langgraph.store.base import get_text_at_path

from holdfast.errors import InvalidInput, shown
from holdfast.port.items import Item as StoredItem
from holdfast.port.items import Items, retry_transaction

if TYPE_CHECKING:
    from langgraph.store.base import ListNamespacesOp, MatchCondition


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COLLECTION = "langgraph-store"
WHOLE = "$"  # the path of a whole value
_ANY = "*"  # any label, in a condition on namespaces
Namespace = tuple[str, ...]
# Paths of the fields by which an item is found, False for none, None for those of the store.
Fields = list[str] | bool | None
# Bytes of a namespace and a key together: an index of PostgreSQL holds no more than 2,700 in a row.
_LONGEST = 2_000


class StoreItem(NamedTuple):
    """The stored form of an item: when it was created, its minutes to live, its fields and its value."""

    created: int
    ttl: float | None
    fields: Fields
    value: dict[str, object]


class Marker(NamedTuple):
    """The stored form of a namespace: another `token` after each write, and what its items may have."""

    token: bytes
    expiring: bool = False
    vectors: bool = False


def path(namespace: Sequence[str]) -> str:
    """Return the labels of a namespace as one text, in the order of the namespaces; no label has a NUL."""
    return "\0".join((*namespace, ""))


def namespace_of(path: str) -> Namespace:
    """Return the namespace of a path."""
    return tuple(path.split("\0")[:-1])


def item_key(namespace: Sequence[str], key: str) -> str:
    """Return the key of an item; with "" the prefix of the keys of all items of the namespace."""
    return f"i{path(namespace)}\0{key}"


def vectors_key(namespace: Sequence[str], key: str) -> str:
    """Return the key of the vectors of an item; with "" the prefix of those of the namespace."""
    return f"v{path(namespace)}\0{key}"


def marker_key(namespace: Sequence[str]) -> str:
    """Return the key of the marker of a namespace, the prefix of those of the namespaces below it."""
    return f"n{path(namespace)}"


def parse_key(stored: str) -> tuple[Namespace, str]:
    """Return the namespace and the key of an item, from the key of the item or of its vectors."""
    labels, _, key = stored[1:].partition("\0\0")
    return tuple(labels.split("\0")), key


def check_key(namespace: Sequence[str], key: object) -> None:
    """Raise InvalidInput if an item cannot be stored under a key."""
    if not isinstance(key, str):
        raise InvalidInput(f"The key {shown(key)} is not text.", "Pass a string.")
    if len(item_key(namespace, key).encode("utf-8", "surrogatepass")) > _LONGEST:
        what = f"A namespace and its key take more than {_LONGEST:,} bytes."
        raise InvalidInput(what, "Shorten the key, or hash it.")


def encode(ttl: float | None, fields: Fields, value: Mapping[str, object]) -> str:
    """Return the stored form of an item, without the time when it was created.

    Raises:
        InvalidInput: the value is not JSON.

    """
    return Items.dump([ttl, fields, dict(value)], "The value of the item")


def with_created(body: str, created: int) -> bytes:
    """Return the bytes of an item to store, from the result of `encode`."""
    return f"[{created},{body[1:]}".encode()


def decode(item: StoredItem) -> StoreItem:
    """Return the stored form of an item from its bytes."""
    with Items.decoding("An item of the LangGraph store"):
        return StoreItem(*json.loads(item.data))


def time_of(micros: int) -> datetime:
    """Return the time of an item, from microseconds since the epoch."""
    return _EPOCH + timedelta(microseconds=micros)


def encode_marker(*, expiring: bool, vectors: bool) -> bytes:
    """Return the bytes of a marker with a new token."""
    return os.urandom(8) + bytes([expiring + 2 * vectors])


def decode_marker(data: bytes) -> Marker:
    """Return a marker from its bytes."""
    with Items.decoding("A namespace of the LangGraph store"):
        return Marker(data, bool(data[8] & 1), bool(data[8] & 2))


class NamespaceWrite(NamedTuple):
    """A write to a namespace: its marker before and after, the stored items, and the deleted keys."""

    before: Marker | None
    after: Marker | None
    items: Sequence[StoredItem]
    gone: Iterable[str]


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


def list_namespaces(table: Items, op: ListNamespacesOp) -> list[Namespace]:
    """Return the namespaces that match all conditions, in order, cut to a depth."""
    conditions = op.match_conditions or ()
    paths = (condition.path for condition in conditions if _is_prefix(condition))
    known = [tuple(takewhile(lambda label: label != _ANY, path)) for path in paths]
    scanned = table.scan(prefix=marker_key(max(known, key=len, default=())))
    markers = [(namespace_of(marker.key[1:]), marker.data) for marker in scanned]
    namespaces = [
        namespace
        for namespace, data in markers
        if all(_matches(condition, namespace) for condition in conditions)
        # All items of it may have expired, and not be swept yet.
        and (not decode_marker(data).expiring or table.scan(prefix=item_key(namespace, ""), limit=1))
    ]
    if op.max_depth is not None:
        namespaces = list(dict.fromkeys(namespace[: op.max_depth] for namespace in namespaces))
    return namespaces[op.offset : op.offset + op.limit]


def _is_prefix(condition: MatchCondition) -> bool:
    return condition.match_type == "prefix"


def _matches(condition: MatchCondition, namespace: Namespace) -> bool:
    """Return whether the labels at one end of a namespace are those of a path; "*" stands for any label."""
    path = condition.path
    if len(namespace) < len(path):
        return False
    labels = namespace[: len(path)] if _is_prefix(condition) else namespace[len(namespace) - len(path) :]
    return all(wanted in (label, _ANY) for label, wanted in zip(labels, path, strict=True))


# The texts by which an item is found, from the paths of its fields


def check_fields(fields: object) -> list[str]:
    """Return the paths of fields; raise InvalidInput if they are none."""
    if isinstance(fields, str):
        fields = [fields]
    if not isinstance(fields, list | tuple) or not all(isinstance(path, str) for path in fields):
        raise InvalidInput(f"The fields {shown(fields)} are not a list of paths.", "Pass a list of text.")
    return list(fields)


def texts_of(value: Mapping[str, object], fields: Sequence[str]) -> list[str]:
    """Return the texts at some paths, as LangGraph's own stores embed them: objects and lists as JSON."""
    return [text for field in fields for text in get_text_at_path(value, field)]


def words_of(value: Mapping[str, object], fields: Sequence[str]) -> Iterator[str]:
    """Return the texts at some paths for a search by words: of objects and lists the values alone."""
    for text in texts_of(value, fields):
        if text[:1] in ("{", "["):
            # A text of the value may begin like JSON.
            with suppress(ValueError, RecursionError):
                yield from _leaves(json.loads(text))
                continue
        yield text


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
