"""A checksum beside each row of what was said and what is known, over all its columns that do not change later.

Without a key it is a CRC-32, against disks that err; with one it is a keyed hash, against those who write to the database
behind our back. A row says which: a keyed checksum is negative. Each row stands for itself; there is no chain.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from holdfast.store.tables import Table, tables

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Row, Value

# The tables that have checksums, with those of their columns that are set later. A session counts its messages, which
# `verify` counts as well; a receipt's number is that of the database that it is in, and what was written anew is known later.
CHANGING: Mapping[str, tuple[str, ...]] = {
    "sessions": (
        *("length", "tokens", "oldest", "newest", "erased"),
        *("covered", "covered_messages", "covered_tokens", "summary_tokens"),
    ),
    "messages": (),
    "records": ("ended",),
    "summaries": ("ended", "parent"),
    "pads": (),
    "erasures": ("number", "rewritten", "remains"),
}
_KEYED = -(1 << 63)
PAGE = 1000  # rows read at once


def seal(table: str, row: Mapping[str, Any], key: bytes) -> int:
    """Return the checksum of a row of a table; `row` has all columns but those that are set later."""
    return sealer(table, key)(row)


@cache
def sealer(table: str, key: bytes) -> Callable[[Mapping[str, Any]], int]:
    """Make what sums up rows of a table: a function of its own, because every append waits for it.

    No two rows are written down alike: the texts that every row has have no NUL, or are quoted. What is NULL is left out,
    so that a column that is added later, and is NULL in the rows that are there, changes no checksum.
    """
    columns = [one for one in tables()[table].columns if one.name not in (*CHANGING[table], "checksum")]
    names = tuple(column.name for column in columns if column.nullable)
    required = itemgetter(*(column.name for column in columns if not column.nullable))
    optional = itemgetter(*names) if len(names) > 1 else lambda row: tuple(row[name] for name in names)
    breaks, empty = len(columns) - len(names) - 1, len(names)
    form = "\0".join(["%s"] * (breaks + 1))
    checksum = _hash(key) if key else zlib.crc32

    def sum_up(row: Mapping[str, Any]) -> int:
        values = required(row)
        text = form % values
        if text.count("\0") != breaks:
            text = ascii(values)
        rest = optional(row)
        if rest.count(None) != empty:
            text += "\0" + ascii(
                {name: one for name, one in zip(names, rest, strict=True) if one is not None}
            )
        return checksum(text.encode())

    return sum_up


def _hash(key: bytes) -> Callable[[bytes], int]:
    # Only for those who have a key.
    from hashlib import blake2b

    return lambda data: _KEYED + int.from_bytes(blake2b(data, digest_size=8, key=key).digest()) // 2


def holds(table: str, row: Mapping[str, Any], key: bytes) -> bool | None:
    """Compare a row with its checksum; None if that proves nothing: there is none, or it was made with another key or none."""
    checksum = row["checksum"]
    if checksum is None or (checksum < 0 and not key):
        return None
    if checksum < 0:
        return bool(seal(table, row, key) == checksum)
    if seal(table, row, b"") != checksum:
        return False
    return None if key else True


def check(db: Database, space: str, table: str, key: bytes) -> Iterator[tuple[dict[str, Any], bool | None]]:
    """Compare all rows of a table of a space with their checksums, in the order of their key."""
    shape = tables()[table]
    last: dict[str, Value] = {}
    while True:
        with db.reading() as connection:
            rows = rows_of(connection, shape, space, page_after(shape, last), limit=PAGE, **last)
        for row in rows:
            yield row, holds(table, row, key)
        if len(rows) < PAGE:
            return
        last = {f"after_{name}": rows[-1][name] for name in shape.key}


def page_after(table: Table, last: Mapping[str, Value]) -> str:
    """Write the condition for the next rows of a table after those of a key, and their order."""
    order = ", ".join(table.key)
    after = f"({order}) > ({', '.join(f':{name}' for name in last)})" if last else "1 = 1"
    return f"{after} ORDER BY {order} LIMIT :limit"


@contextmanager
def resealed(tx: Connection, table: str, space: str, condition: str, **values: Value) -> Iterator[None]:
    """Let the rows that meet a condition be changed within the block, and give them the checksums of what they are then.

    One whose checksum is wrong keeps it, and one without stays without: a change proves nothing of what it leaves.
    """
    shape = tables()[table]
    before = rows_of(tx, shape, space, condition, **values)
    sound = [row for row in before if row["checksum"] is not None and holds(table, row, tx.key) is not False]
    yield
    same = " AND ".join(f"{name} = :{name}" for name in shape.key)
    for row in sound:
        keys = {name: row[name] for name in shape.key}
        for changed in rows_of(tx, shape, space, same, **keys):
            tx.all(
                f"UPDATE {table} SET checksum = :checksum WHERE space = :space AND {same}",
                space=space,
                checksum=seal(table, changed, tx.key),
                **keys,
            )


def rows_of(
    connection: Connection, table: Table, space: str, rest: str, **values: Value
) -> list[dict[str, Any]]:
    """Read rows of a table of a space with all their columns; `rest` is the condition after the space."""
    names = table.names
    rows: list[Row] = connection.all(
        f"SELECT {', '.join(names)} FROM {table.name} WHERE space = :space AND {rest}",
        space=space,
        **values,
    )
    return [dict(zip(names, row, strict=True)) for row in rows]
