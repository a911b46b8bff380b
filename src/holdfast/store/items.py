"""Items: bytes under keys, which adapters keep of a framework and only the framework reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import Conflict
from holdfast.store.checksums import seal
from holdfast.store.database import batched, one_of
from holdfast.types import MAX_COUNT

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Reader, Row, Value

_OF = "chat = :chat AND collection = :collection"
_IS_THERE = "(expires IS NULL OR expires > :now)"
_COLUMNS = "key, data, revision, at, expires"
_READ = f"SELECT {_COLUMNS} FROM items WHERE space = :space AND {_OF} AND {_IS_THERE} AND "
_READ_ONE = f"{_READ}key = :key"
_READ_DATA = f"""
    SELECT key, data FROM items
    WHERE space = :space AND {_OF} AND {_IS_THERE} AND key >= :first AND key <= :last ORDER BY key"""
_READ_CHATS = f"""
    SELECT chat, {_COLUMNS} FROM items
    WHERE space = :space AND chat > '' AND collection = :collection AND {_IS_THERE} ORDER BY key"""
_PUT = """
    INSERT INTO items (space, chat, collection, key, data, revision, at, expires, checksum)
    VALUES (:space, :chat, :collection, :key, :data, 1, :at, :expires, :checksum)
    ON CONFLICT (space, chat, collection, key) DO """
_OVERWRITE = """UPDATE SET
    data = excluded.data, revision = items.revision + 1, at = excluded.at, expires = excluded.expires,
    checksum = excluded.checksum"""
_REPLACE = f"""
    UPDATE items SET data = :data, revision = revision + 1, at = :at, expires = :expires, checksum = :checksum
    WHERE space = :space AND {_OF} AND key = :key AND revision = :revision RETURNING revision"""
_RENEW = f"""
    UPDATE items SET expires = :expires, checksum = :checksum
    WHERE space = :space AND {_OF} AND key = :key"""
_DELETE = f"DELETE FROM items WHERE space = :space AND {_OF} AND "
_EXPIRED = "DELETE FROM items WHERE space = :space AND expires <= :now RETURNING collection, key"
_NEXT_CHAT = """
    SELECT chat FROM items WHERE space = :space AND chat > :after AND collection = :collection
    ORDER BY chat LIMIT 1"""
_OF_CHATS = f"""
    SELECT data FROM items WHERE space = :space AND chat > '' AND collection = :collection AND key = :key
    AND {_IS_THERE}"""
# Behind every key that begins as another one does: no UTF-8 has this byte.
_BEYOND = b"\xff"


class ItemPlace(NamedTuple):
    """Where items are: the collection of a chat, or of none with "" as its id."""

    space: str
    chat: str
    collection: str


class Item(NamedTuple):
    """An item; `revision` counts its writes, and the times are microseconds since the epoch."""

    key: str
    data: bytes
    revision: int
    at: int
    expires: int | None


def get_one(db: Reader, place: ItemPlace, key: str, now: int) -> Item | None:
    """Return the item that has a key; None if there is none."""
    space, chat, collection = place
    rows = db.all(_READ_ONE, space=space, chat=chat, collection=collection, key=_encoded(key), now=now)
    return _item(rows[0]) if rows else None


def get(db: Reader, place: ItemPlace, keys: Iterable[str], now: int) -> dict[str, Item]:
    """Return the items that have some keys, by their keys."""
    found: dict[str, Item] = {}
    for part in batched([_encoded(key) for key in keys]):
        condition, values = one_of("key", part)
        rows = db.all(f"{_READ}{condition}", **place._asdict(), **values, now=now)
        found |= {item.key: item for item in map(_item, rows)}
    return found


def scan(
    db: Reader,
    place: ItemPlace,
    now: int,
    *,
    prefix: str = "",
    after: str | None = None,
    before: str | None = None,
    descending: bool = False,
    limit: int | None = None,
    offset: int = 0,
) -> list[Item]:
    """Return the items whose keys begin with `prefix`, after and before others, in the order of the keys.

    The first `offset` of them are passed over.
    """
    first, last = _encoded(prefix), _encoded(prefix) + _BEYOND
    # A key before which nothing stands but those that are not asked for.
    above = first if after is None else max(first, _encoded(after) + b"\0")
    below = last if before is None else min(last, _encoded(before))
    order = "DESC" if descending else "ASC"
    statement = f"{_READ}key >= :above AND key < :below ORDER BY key {order}"
    bounds: dict[str, Value] = {"above": above, "below": below}
    if limit is not None or offset:
        statement += " LIMIT :limit OFFSET :offset"
        bounds |= {"limit": MAX_COUNT if limit is None else limit, "offset": offset}
    return [_item(row) for row in db.all(statement, **place._asdict(), **bounds, now=now)]


def scan_data(db: Reader, place: ItemPlace, now: int, first: str, last: str) -> list[tuple[bytes, bytes]]:
    """Return the items from one key to another, in their order: the keys and the data alone, as bytes."""
    bounds = {"first": _encoded(first), "last": _encoded(last)}
    return [(key, data) for key, data in db.all(_READ_DATA, **place._asdict(), **bounds, now=now)]


def scan_chats(db: Reader, space: str, collection: str, now: int) -> Iterator[tuple[str, Item]]:
    """Iterate over the items of a collection in all chats, with their chats, in the order of the keys."""
    for row in db.all(_READ_CHATS, space=space, collection=collection, now=now):
        yield row[0], _item(row[1:])


def keys(db: Reader, place: ItemPlace, now: int) -> list[str]:
    """Return the keys of all items, in their order."""
    sql = f"SELECT key FROM items WHERE space = :space AND {_OF} AND {_IS_THERE} ORDER BY key"
    return [_decoded(key) for (key,) in db.all(sql, **place._asdict(), now=now)]


def chats(db: Reader, space: str, collection: str) -> Iterator[str]:
    """Iterate over the chats that have items in a collection, without reading all their items."""
    after = ""
    while found := db.all(_NEXT_CHAT, space=space, collection=collection, after=after):
        after = found[0][0]
        yield after


def of_chats(db: Reader, place: ItemPlace, key: str, now: int) -> list[bytes]:
    """Return the data of the items that have a key, one for each chat that has it in the collection."""
    values = {"space": place.space, "collection": place.collection}
    return [bytes(data) for (data,) in db.all(_OF_CHATS, **values, key=_encoded(key), now=now)]


def put(
    tx: Connection, place: ItemPlace, items: Mapping[str, bytes], now: int, expires: int | None = None
) -> None:
    """Store items in place of those that have their keys."""
    # In one order everywhere, so that of two transactions none waits for the other.
    rows = [_row(tx, place, key, data, now, expires) for key, data in sorted(items.items())]
    tx.many(_PUT + _OVERWRITE, rows)


def replace(
    tx: Connection,
    place: ItemPlace,
    key: str,
    data: bytes,
    revision: int,
    now: int,
    expires: int | None = None,
) -> int:
    """Store an item if the one that has its key has this revision, 0 for none; return the new revision.

    Raises:
        Conflict: it has another one; nothing was stored.

    """
    row = _row(tx, place, key, data, now, expires)
    if revision:
        found = tx.all(_REPLACE, **row, revision=revision)
    else:
        tx.all(f"{_DELETE}key = :key AND expires <= :now", **place._asdict(), key=row["key"], now=now)
        found = tx.all(f"{_PUT}NOTHING RETURNING revision", **row)
    if not found:
        raise Conflict(
            f"The item {key!r} was written by somebody else since its revision {revision}.",
            "Read it again, and repeat the change.",
        )
    return int(found[0][0])


def renew(tx: Connection, place: ItemPlace, expires: Mapping[str, int], now: int) -> None:
    """Set when items expire, by their keys; those that never do stay so."""
    found = get(tx, place, expires, now)
    tx.many(
        _RENEW,
        [
            _row(tx, place, key, item.data, item.at, expires[key])
            for key, item in sorted(found.items())
            if item.expires is not None
        ],
    )


def delete(tx: Connection, place: ItemPlace, keys: Sequence[str] | None = None, prefix: str = "") -> int:
    """Delete the items that have some keys, or all whose keys begin with `prefix`; return their number."""
    if keys is None:
        bounds = {"above": _encoded(prefix), "below": _encoded(prefix) + _BEYOND}
        condition = "key >= :above AND key < :below RETURNING 1"
        return len(tx.all(f"{_DELETE}{condition}", **place._asdict(), **bounds))
    count = 0
    for part in batched([_encoded(key) for key in keys]):
        condition, values = one_of("key", part)
        count += len(tx.all(f"{_DELETE}{condition} RETURNING 1", **place._asdict(), **values))
    return count


def delete_expired(tx: Connection, space: str, now: int) -> list[tuple[str, str]]:
    """Delete the items of a space that have expired, and return the collection and the key of each."""
    rows = tx.all(_EXPIRED, space=space, now=now)
    return [(collection, _decoded(key)) for collection, key in rows]


def _row(
    tx: Connection, place: ItemPlace, key: str, data: bytes, now: int, expires: int | None
) -> dict[str, str | int | bytes | None]:
    row = {**place._asdict(), "key": _encoded(key), "data": data, "at": now, "expires": expires}
    return {**row, "checksum": seal("items", row, tx.key)}


def _encoded(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass")


def _decoded(key: bytes) -> str:
    return bytes(key).decode("utf-8", "surrogatepass")


def _item(row: Row) -> Item:
    key, data, revision, at, expires = row
    return Item(_decoded(key), bytes(data), revision, at, expires)
