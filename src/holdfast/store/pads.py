"""Scratchpads: names with values, of a user, of a chat, or of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.store import table_rows
from holdfast.store.checksums import seal
from holdfast.store.database import retry_transaction
from holdfast.store.runs import check_run

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Reader

_READ = "SELECT name, value FROM pads WHERE space = :space AND chat = :chat AND run = :run"
_REMOVE = """
    DELETE FROM pads WHERE space = :space AND chat = :chat AND run = :run AND (:every = 1 OR name = :name)
    RETURNING name"""


# The beginning of names that are kept in memory only.
TEMPORARY = "temp:"


class ScratchpadKey(NamedTuple):
    """The owner of a scratchpad: a run, else a chat, else the user."""

    space: str
    chat: str = ""
    run: str = ""


def read(db: Reader, key: ScratchpadKey, name: str) -> str | None:
    """Return the value of a name; None if it has none."""
    rows = db.all(f"{_READ} AND name = :name", **key._asdict(), name=name)
    return str(rows[0][1]) if rows else None


def read_all(db: Reader, key: ScratchpadKey) -> dict[str, str]:
    """Return a whole scratchpad, in the order of its names."""
    return dict(sorted((name, value) for name, value in db.all(_READ, **key._asdict())))


@retry_transaction
def write(db: Database, key: ScratchpadKey, name: str, value: str, now: int) -> None:
    """Store the value of a name.

    Raises:
        InvalidInput: the run has ended.

    """
    with db.writing() as tx:
        if key.run:
            # Or the run could end before the value is stored.
            tx.lock(key.space)
            check_run(tx, key.space, key.run)
        put(tx, key, name, value, now)


def put(tx: Connection, key: ScratchpadKey, name: str, value: str, now: int) -> None:
    """Store the value of a name within a transaction of the caller."""
    row = {**key._asdict(), "name": name, "value": value, "at": now}
    table_rows.put(tx, "pads", {**row, "checksum": seal("pads", row, tx.key)})


@retry_transaction
def remove(db: Database, key: ScratchpadKey, name: str | None = None) -> bool:
    """Remove a name, or all of them, and return whether there was any."""
    with db.writing() as tx:
        return delete(tx, key, name)


def delete(tx: Connection, key: ScratchpadKey, name: str | None = None) -> bool:
    """Remove a name, or all of them, within a transaction of the caller; return whether there was any."""
    return bool(tx.all(_REMOVE, **key._asdict(), every=int(name is None), name=name or ""))
