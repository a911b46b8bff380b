"""Receipts of erasures: what kind, how many, when and by whom; no words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from holdfast.errors import Conflict
from holdfast.store.message_rows import from_micros
from holdfast.types import Change, Erasure, Range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.store.database import Connection, Database

# No name of a space. Its row counts the erasures, and those after which the files were written anew.
FILE = "*"
_COUNT = "SELECT count(*) FROM erasures WHERE space = :space"


def read(db: Database, space: str) -> list[Erasure]:
    """Read the receipts of a space, the oldest first."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT id, what, counts, writer, at, digest, rewritten, remains FROM erasures "
            "WHERE space = :space ORDER BY at, id",
            space=space,
        )
    return [
        Erasure(
            identity,
            kind,
            json.loads(counts),
            writer,
            from_micros(at),
            digest,
            rewritten=tuple(json.loads(rewritten)),
            remains=json.loads(remains),
        )
        for identity, kind, counts, writer, at, digest, rewritten, remains in rows
    ]


def changes(db: Database, space: str) -> Iterator[Change]:
    """Give the erasures of a space as changes, the newest first."""
    for one in reversed(read(db, space)):
        counts = ", ".join(f"{name}: {number:,}" for name, number in one.counts.items() if number)
        why = f"{one.what} ({counts})" if counts else one.what
        yield Change(0, "erase", "erasure", one.id, None, None, one.by, "", one.at, why)


def count(db: Database, space: str) -> int:
    """Count the erasures of a space, before something is read of which `check_none_since` is to be told."""
    with db.reading() as connection:
        return int(connection.all(_COUNT, space=space)[0][0])


def check_none_since(tx: Connection, space: str, counted: int) -> None:
    """Raise Conflict if something was erased since the erasures were counted: what was read then may be gone."""
    if tx.all(_COUNT, space=space)[0][0] != counted:
        raise Conflict(
            "Something was erased while a model read the session; nothing of it was stored.",
            "Try again, with what is left.",
        )


def unfinished(db: Database, space: str) -> int:
    """Count the erasures after which the files were not written anew: their process was killed, or others read on."""
    with db.reading() as connection:
        purged = connection.all("SELECT coalesce(max(epoch), 0) FROM spaces WHERE space = :space", space=FILE)
        rows = connection.all(
            "SELECT count(*) FROM erasures WHERE space = :space AND number > :purged",
            space=space,
            purged=purged[0][0],
        )
    return int(rows[0][0])


def gaps(db: Database, space: str) -> tuple[list[Range], list[Range]]:
    """Give the numbers of messages and of versions that receipts say are gone."""
    with db.reading() as connection:
        rows = connection.all("SELECT docs, versions FROM erasures WHERE space = :space", space=space)
    docs = [(first, last) for row in rows for first, last in json.loads(row[0])]
    versions = [(first, last) for row in rows for first, last in json.loads(row[1])]
    return docs, versions
