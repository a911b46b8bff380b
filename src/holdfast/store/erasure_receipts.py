"""Receipts of erasures: kind, counts, time and writer, without the words."""

from __future__ import annotations

import json
import os
import random
from typing import TYPE_CHECKING, Any

from holdfast import types
from holdfast.errors import Conflict, Damaged
from holdfast.store import table_rows
from holdfast.store.checksums import seal
from holdfast.store.database import decoding
from holdfast.store.message_rows import from_micros

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from holdfast.store.database import Connection, Database, Reader
    from holdfast.types import Change, Erasure, Range, Writer

# Not the name of a space: its row counts the erasures of the database, and those whose remains in the files
# are rewritten.
DATABASE = "*"
_COUNT = "SELECT count(*) FROM erasures WHERE space = :space"
_READ = """
    SELECT id, what, counts, writer, at, digest, rewritten, remains FROM erasures
    WHERE space = :space ORDER BY at DESC, id DESC"""
_REWRITTEN = "SELECT coalesce(max(epoch), 0) FROM spaces WHERE space = :space"


class ErasureAccount:
    """The account of an erasure so far: counts, numbers, names, and a keyed digest of the words."""

    def __init__(self) -> None:
        # Loads OpenSSL, which hardly any program needs.
        import hmac

        self._key = os.urandom(32).hex()
        self._digest = hmac.new(bytes.fromhex(self._key), digestmod="sha256")
        self.counts: dict[str, int] = {}
        self.docs: list[int] = []
        self.versions: list[int] = []
        # As `Message.shown` and receipts of prompts name messages, summaries and records.
        self.names: set[str] = set()

    def count(self, table: str, rows: Sequence[object]) -> None:
        """Count rows that were deleted from a table."""
        self.counts[table] = self.counts.get(table, 0) + len(rows)

    def digest(self, rows: Iterable[Sequence[object]]) -> None:
        """Add rows to the digest."""
        for row in rows:
            self._digest.update(json.dumps(row).encode())

    def receipt(self, tx: Connection, space: str, kind: str, writer: Writer, now: int) -> Erasure:
        """Store the receipt, and return it with the key of the digest."""
        counts = {name: count for name, count in self.counts.items() if count}
        digest = self._digest.hexdigest()
        row = {
            "writer": writer,
            "what": kind,
            "counts": json.dumps(counts),
            "digest": digest,
            "number": table_rows.count_up(tx, DATABASE, "version"),
        }
        identity = insert(tx, space, now, row, to_ranges(self.docs), to_ranges(self.versions))
        return types.Erasure(identity, kind, counts, writer, from_micros(now), digest, self._key)


def insert(
    tx: Connection, space: str, now: int, row: dict[str, Any], docs: list[Range], versions: list[Range]
) -> str:
    """Store a receipt, with the numbers of the deleted messages and versions, and return its id."""
    identity = f"era_{now:015x}{random.getrandbits(32):08x}"
    row |= {"space": space, "id": identity, "at": now}
    row |= {"docs": json.dumps(docs), "versions": json.dumps(versions)}
    table_rows.insert(tx, "erasures", {**row, "checksum": seal("erasures", row, tx.key)})
    return identity


def to_ranges(numbers: Iterable[int]) -> list[Range]:
    """Return numbers as ranges (first, last)."""
    ranges: list[Range] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ranges


def changes(db: Reader, space: str) -> Iterator[Change]:
    """Iterate over the erasures of a space as changes, the newest first."""
    for identity, kind, counted, writer, at, digest, rewritten, remains in db.all(_READ, space=space):
        with decoding("A receipt of an erasure"):
            receipt = types.Erasure(
                identity,
                kind,
                {str(table): int(number) for table, number in dict(json.loads(counted)).items()},
                writer,
                from_micros(at),
                digest,
                rewritten=tuple(json.loads(rewritten)),
                remains=dict(json.loads(remains)),
            )
        counts = ", ".join(f"{name}: {number:,}" for name, number in receipt.counts.items() if number)
        why = f"{receipt.what} ({counts})" if counts else receipt.what
        yield types.Change(
            0, "erase", "erasure", receipt.id, None, None, receipt.by, "", receipt.at, why, erasure=receipt
        )


def count(db: Reader, space: str) -> int:
    """Return the number of erasures of a space, for `check_none_since`."""
    return int(db.all(_COUNT, space=space)[0][0])


def check_none_since(tx: Connection, space: str, counted: int) -> None:
    """Raise Conflict if there were erasures after the first `counted`: the words read then may be gone."""
    if count(tx, space) != counted:
        raise Conflict(
            "Something was erased while a model read the chat; nothing was stored.",
            "Try again, with what is left.",
        )


def count_unfinished(db: Database, space: str) -> int:
    """Return the number of erasures whose files were not rewritten, because of a crash or other readers."""
    with db.reading() as reader:
        rewritten = reader.all(_REWRITTEN, space=DATABASE)[0][0]
        return int(reader.all(f"{_COUNT} AND number > :rewritten", space=space, rewritten=rewritten)[0][0])


def note_rewritten(db: Database) -> None:
    """Note that the file was written anew, without remains of any erasure."""
    with db.writing() as tx:
        tx.all("UPDATE spaces SET epoch = version WHERE space = :space", space=DATABASE)


def erased_numbers(
    db: Reader, space: str, report: Callable[[str], object]
) -> tuple[list[Range], list[Range]]:
    """Return the ranges of erased messages and of erased versions, by their receipts.

    `report` is called for each receipt that cannot be read.
    """
    docs: list[Range] = []
    versions: list[Range] = []
    for identity, *lists in db.all(
        "SELECT id, docs, versions FROM erasures WHERE space = :space", space=space
    ):
        for ranges, text in zip((docs, versions), lists, strict=True):
            try:
                ranges.extend(read_ranges(identity, text))
            except Damaged as error:
                report(error.what.rstrip("."))
    return docs, versions


def read_ranges(identity: str, text: str) -> list[Range]:
    """Return the ranges of numbers in a receipt.

    Raises:
        Damaged: they cannot be read.

    """
    with decoding(f"The receipt {identity!r}"):
        ranges = [(first, last) for first, last in json.loads(text)]
        if not all(type(number) is int for pair in ranges for number in pair):
            raise ValueError("its numbers are none")
    return ranges
