"""Checksums of rows, over all columns that do not change later.

Without a key it is a CRC-32, against failing disks; with one it is a keyed hash, against others who write to
the database. A keyed checksum is negative. Each row stands for itself; there is no chain.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from holdfast.store import table_rows
from holdfast.store.schema import tables

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Value

# The tables with checksums, and their columns that change later. `verify` counts the messages of `sessions`
# again, and looks up on which branch each is; the number of an erasure receipt belongs to its database, and
# its rewritten files are known later.
CHANGING: Mapping[str, tuple[str, ...]] = {
    "sessions": (
        *("length", "tokens", "oldest", "newest", "erased"),
        *("covered", "covered_messages", "covered_tokens", "summary_tokens", "aside"),
    ),
    "messages": ("aside",),
    "heads": (),
    "records": ("ended",),
    "summaries": ("ended", "parent"),
    "pads": (),
    "items": ("revision",),
    "erasures": ("number", "rewritten", "remains"),
    "grants": (),
    "snapshots": (),
}
_KEYED = -(1 << 63)
# The checksum of a message whose numbers the database gave: `:sum`, that of the row without them, and above
# its 32 bits their sum modulo a prime, which is another when any bit of them is.
_FACTOR, _PRIME = 65_537, 2**31 - 1
WITH_NUMBERS = f":sum + (1 + (length + {_FACTOR} * docs) % {_PRIME}) * {1 << 32}"


def seal(table: str, row: Mapping[str, Any], key: bytes) -> int:
    """Return the checksum of a row of a table; `row` has all columns but those that are set later."""
    return sealer(table, key)(row)


@cache
def sealer(table: str, key: bytes) -> Callable[[Mapping[str, Any]], int]:
    """Return the function that computes checksums of rows of a table, prepared for the speed of appends.

    No two rows are serialized alike: required columns are joined by NUL, or quoted if a text has one. NULL is
    left out, so a nullable column that is added later changes no checksum of an older row.
    """
    left_out = (*CHANGING[table], "checksum")
    columns = [column for column in tables()[table].columns if column.name not in left_out]
    names = tuple(column.name for column in columns if column.nullable)
    required = itemgetter(*(column.name for column in columns if not column.nullable))
    optional = itemgetter(*names) if len(names) > 1 else lambda row: tuple(row[name] for name in names)
    breaks, empty = len(columns) - len(names) - 1, len(names)
    form = "\0".join(["%s"] * (breaks + 1))
    checksum = _hash(key) if key else zlib.crc32

    def checksum_of(row: Mapping[str, Any]) -> int:
        values = required(row)
        text = form % values
        if text.count("\0") != breaks:
            text = ascii(values)
        rest = optional(row)
        if rest.count(None) != empty:
            text += "\0" + ascii(
                {name: value for name, value in zip(names, rest, strict=True) if value is not None}
            )
        return checksum(text.encode())

    return checksum_of


def seal_without_numbers(row: Mapping[str, Any]) -> int:
    """Return the checksum of a message without its numbers, of which one begins its id."""
    rest = row["id"].removeprefix(f"{row['doc']:012x}")
    return sealer("messages", b"")({**row, "seq": 0, "doc": 0, "id": rest})


def _hash(key: bytes) -> Callable[[bytes], int]:
    # Loaded only where there is a key.
    from hashlib import blake2b

    return lambda data: _KEYED + int.from_bytes(blake2b(data, digest_size=8, key=key).digest()) // 2


def matches(table: str, row: Mapping[str, Any], key: bytes) -> bool | None:
    """Return whether a row fits its checksum; None if only one of row and caller has a key."""
    checksum = row["checksum"]
    if checksum is not None and checksum < 0:
        return seal(table, row, key) == checksum if key else None
    if table == "messages" and (checksum or 0) >> 32:
        numbers = 1 + (row["seq"] + _FACTOR * row["doc"]) % _PRIME
        expected = (numbers << 32) + seal_without_numbers(row)
    else:
        expected = seal(table, row, b"")
    if expected != checksum:
        return False
    return None if key else True


def check(db: Database, space: str, table: str, key: bytes) -> Iterator[tuple[dict[str, Any], bool | None]]:
    """Compare all rows of a table of a space with their checksums, in the order of their key."""
    for row in table_rows.iterate(db, table, space):
        yield row, matches(table, row, key)


@contextmanager
def resealing(tx: Connection, table: str, space: str, condition: str, **values: Value) -> Iterator[None]:
    """Update the checksums of the rows that meet a condition after the block has changed them.

    A wrong checksum stays wrong: the block proves nothing about the columns that it does not set.
    """
    shape = tables()[table]
    before = table_rows.select(tx, shape, space, condition, **values)
    sound = [row for row in before if matches(table, row, tx.key) is not False]
    yield
    same = table_rows.same_key(shape)
    for row in sound:
        for changed in table_rows.select_key(tx, shape, space, row):
            checksum = seal(table, changed, tx.key)
            keys = {name: row[name] for name in shape.key}
            sql = f"UPDATE {table} SET checksum = :checksum WHERE space = :space AND {same}"
            tx.all(sql, space=space, checksum=checksum, **keys)


def digest(text: str) -> str:
    """Return the SHA-256 of a text; "" for an empty one."""
    if not text:
        return ""
    # Loads OpenSSL.
    from hashlib import sha256

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
