"""Items: bytes under keys, which adapters store for a framework."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from holdfast.errors import Conflict
from holdfast.store import table_rows
from holdfast.store.checksums import seal
from holdfast.store.database import batched, decoding, one_of, retry_transaction
from holdfast.text.json_text import dump
from holdfast.types import MAX_COUNT

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Reader, Row, Value

_OF = "chat = :chat AND collection = :collection"
_IS_THERE = "(expires IS NULL OR expires > :now)"
_COLUMNS = "key, data, revision, at, expires"
_READ = f"SELECT {_COLUMNS} FROM items WHERE space = :space AND {_OF} AND {_IS_THERE} AND "
_READ_DATA = f"""
    SELECT key, data FROM items
    WHERE space = :space AND {_OF} AND {_IS_THERE} AND key >= :first AND key <= :last ORDER BY key"""
_READ_CHATS = f"""
    SELECT chat, {_COLUMNS} FROM items
    WHERE space = :space AND chat > '' AND collection = :collection AND {_IS_THERE} ORDER BY key"""
_PUT = """
    INSERT INTO items (space, chat, collection, key, data, revision, at, expires, checksum)
    VALUES (:space, :chat, :collection, :key, :data, 1, :at, :expires, :checksum)
    ON CONFLICT (space, chat, collection, key) DO UPDATE SET
        data = excluded.data, revision = items.revision + 1, at = excluded.at, expires = excluded.expires,
        checksum = excluded.checksum"""
_REPLACE = f"""
    UPDATE items SET data = :data, revision = :revision, at = :at, expires = :expires, checksum = :checksum
    WHERE space = :space AND {_OF} AND key = :key AND revision = :revision - 1 RETURNING revision"""
_RENEW = f"""
    UPDATE items SET expires = :expires, checksum = :checksum
    WHERE space = :space AND {_OF} AND key = :key"""
_DELETE = f"DELETE FROM items WHERE space = :space AND {_OF} AND "
_EXPIRED = "DELETE FROM items WHERE space = :space AND expires <= :now RETURNING collection, key"
_NEXT_CHAT = """
    SELECT chat FROM items WHERE space = :space AND chat > :after AND collection = :collection
    ORDER BY chat LIMIT 1"""
T = TypeVar("T")
# Behind every key that begins as another one does: no UTF-8 has this byte.
_BEYOND = b"\xff"


class Item(NamedTuple):
    """An item; `revision` counts its writes, and the times are microseconds since the epoch."""

    key: str
    data: bytes
    revision: int
    at: int
    expires: int | None


class ItemRows:
    """The rows of one collection of items in a space: of a chat or, with "" as its id, of none.

    Each method is a transaction of its own, except on what `writing` yields, where all are one.
    """

    def __init__(self, database: Database, clock: Callable[[], int], space: str, collection: str) -> None:
        self._database, self._clock, self._space, self._collection = database, clock, space, collection
        self._tx: Connection | None = None
        self._time = 0

    dump = staticmethod(dump)
    decoding = staticmethod(decoding)

    @property
    def now(self) -> int:
        """The time in microseconds since the epoch; in a transaction, that of its beginning."""
        return self._time or self._clock()

    def of(self, collection: str) -> Self:
        """Return another collection, in the same transaction."""
        return self._with(_collection=collection)

    def reading(self) -> AbstractContextManager[None]:
        """Let all reads of this thread in the block see one state of the database."""
        return self._database.one_read()

    @contextmanager
    def writing(self) -> Iterator[Self]:
        """Open a transaction that lets no other one change the space; see `retry_transaction`."""
        with self._database.writing_to(self._space) as tx:
            yield self._with(_tx=tx, _time=self.now)

    @retry_transaction
    def write_together(self, work: Callable[[Self], T]) -> T:
        """Run a function in such a transaction, which may share its commit with those of other threads."""

        def write(tx: Connection) -> T:
            tx.lock(self._space)
            return work(self._with(_tx=tx, _time=self.now))

        return self._database.write_together(write)

    # Reading ----------------------------------------------------------------------------------------------

    def get(self, key: str, chat: str = "") -> Item | None:
        """Return the item with a key; None if there is none."""
        rows = self.reader.all(f"{_READ}key = :key", **self._place(chat), key=_encode(key), now=self.now)
        return _to_item(rows[0]) if rows else None

    def get_many(self, keys: Iterable[str], chat: str = "") -> dict[str, Item]:
        """Return the items with some keys, by their keys."""
        items: dict[str, Item] = {}
        for part in batched([_encode(key) for key in keys]):
            condition, values = one_of("key", part)
            rows = self.reader.all(f"{_READ}{condition}", **self._place(chat), **values, now=self.now)
            items |= {item.key: item for item in map(_to_item, rows)}
        return items

    def keys(self, chat: str = "") -> list[str]:
        """Return the keys of all items, in their order."""
        sql = f"SELECT key FROM items WHERE space = :space AND {_OF} AND {_IS_THERE} ORDER BY key"
        return [_decode(key) for (key,) in self.reader.all(sql, **self._place(chat), now=self.now)]

    def scan(
        self,
        chat: str = "",
        *,
        prefix: str = "",
        after: str | None = None,
        descending: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Item]:
        """Return the items with a prefix, those after a key, in the order of the keys.

        The first `offset` of them are skipped.
        """
        first, below = _encode(prefix), _encode(prefix) + _BEYOND
        # The smallest key behind `after`.
        above = first if after is None else max(first, _encode(after) + b"\0")
        order = "DESC" if descending else "ASC"
        statement = f"{_READ}key >= :above AND key < :below ORDER BY key {order} LIMIT :limit OFFSET :offset"
        bounds: dict[str, Value] = {"above": above, "below": below, "offset": offset}
        bounds["limit"] = MAX_COUNT if limit is None else limit
        return [*map(_to_item, self.reader.all(statement, **self._place(chat), **bounds, now=self.now))]

    def scan_data(self, chat: str, first: str, last: str) -> list[tuple[bytes, bytes]]:
        """Return keys and data of the items from one key to another, as bytes, in the order of the keys."""
        bounds = {"first": _encode(first), "last": _encode(last)}
        rows = self.reader.all(_READ_DATA, **self._place(chat), **bounds, now=self.now)
        return [(key, data) for key, data in rows]

    def scan_chats(self) -> Iterator[tuple[str, Item]]:
        """Iterate over the items of all chats, with the ids of the chats, in the order of the keys."""
        values = {"space": self._space, "collection": self._collection}
        for row in self.reader.all(_READ_CHATS, **values, now=self.now):
            yield row[0], _to_item(row[1:])

    def chats(self) -> Iterator[str]:
        """Iterate over the chats that have items, without reading all their items."""
        after, values = "", {"space": self._space, "collection": self._collection}
        while rows := self.reader.all(_NEXT_CHAT, **values, after=after):
            after = rows[0][0]
            yield after

    # Writing ----------------------------------------------------------------------------------------------

    def put(self, data: Mapping[str, bytes], chat: str = "", *, expires: int | None = None) -> None:
        """Store items in place of those with their keys; `expires` is in microseconds since the epoch."""
        # In one order everywhere, so that of two transactions none waits for the other.
        rows = [self._row(chat, *pair, self.now, expires) for pair in sorted(data.items())]
        self.write(lambda tx: tx.many(_PUT, rows))

    def replace(self, key: str, data: bytes, revision: int, chat: str = "") -> int:
        """Store an item in place of a revision of it, 0 for a new item, and return the new revision.

        Raises:
            Conflict: the item has another revision; nothing was stored.

        """

        def replace(tx: Connection) -> bool:
            row = self._row(chat, key, data, self.now, None) | {"revision": revision + 1}
            if revision:
                return bool(tx.all(_REPLACE, **row))
            gone = f"{_DELETE}key = :key AND expires <= :now"
            tx.all(gone, **self._place(chat), key=row["key"], now=self.now)
            return table_rows.insert(tx, "items", row)

        if not self.write(replace):
            raise Conflict(
                f"The item {key!r} was written by somebody else since its revision {revision}.",
                "Read it again, and repeat the change.",
            )
        return revision + 1

    def renew(self, expires: Mapping[str, int], chat: str = "") -> None:
        """Set the times at which items expire, by their keys, within `writing`; lasting items stay so."""
        items = [item for item in sorted(self.get_many(expires, chat).values()) if item.expires is not None]
        rows = [self._row(chat, item.key, item.data, item.at, expires[item.key]) for item in items]
        self.write(lambda tx: tx.many(_RENEW, rows))

    def delete(self, keys: Iterable[str] | None = None, chat: str = "") -> int:
        """Delete the items with some keys, or all; return their number."""
        conditions: list[tuple[str, Mapping[str, Value]]] = [("1 = 1", {})]
        if keys is not None:
            conditions = [one_of("key", part) for part in batched([_encode(key) for key in keys])]
        place = self._place(chat)
        return self.write(
            lambda tx: sum(
                len(tx.all(f"{_DELETE}{condition} RETURNING 1", **place, **values))
                for condition, values in conditions
            )
        )

    def sweep(self) -> list[tuple[str, str]]:
        """Delete expired items of all collections of the space; return their collections and keys."""
        rows = self.write(lambda tx: tx.all(_EXPIRED, space=self._space, now=self.now))
        return [(collection, _decode(key)) for collection, key in rows]

    @property
    def reader(self) -> Reader:
        """What runs queries: the transaction, or else the database."""
        return self._tx or self._database

    def _with(self, **parts: object) -> Self:
        other = copy(self)
        vars(other).update(parts)
        return other

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run a function in the transaction, or else in one of its own, and return its result."""
        return work(self._tx) if self._tx is not None else self._write_alone(work)

    @retry_transaction
    def _write_alone(self, work: Callable[[Connection], T]) -> T:
        with self._database.writing() as tx:
            return work(tx)

    def _place(self, chat: str) -> dict[str, str]:
        return {"space": self._space, "chat": chat, "collection": self._collection}

    def _row(self, chat: str, key: str, data: bytes, at: int, expires: int | None) -> dict[str, Value]:
        row = {**self._place(chat), "key": _encode(key), "data": data, "at": at, "expires": expires}
        return {**row, "checksum": seal("items", row, self._database.key)}


def _encode(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass")


def _decode(key: bytes) -> str:
    return bytes(key).decode("utf-8", "surrogatepass")


def _to_item(row: Row) -> Item:
    key, data, revision, at, expires = row
    return Item(_decode(key), bytes(data), revision, at, expires)
