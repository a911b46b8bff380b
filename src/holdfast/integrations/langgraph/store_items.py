"""Items of a LangGraph store as bytes under keys: the forms of both."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import InvalidInput, shown
from holdfast.port.items import Items

if TYPE_CHECKING:
    from holdfast.port.items import Item as StoredItem

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COLLECTION = "langgraph-store"
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
