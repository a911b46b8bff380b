"""Pads: names with values, of a user, of a session, or of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.store.checksums import seal
from holdfast.store.database import repeated
from holdfast.store.runs import check_run

if TYPE_CHECKING:
    from holdfast.store.database import Database, Value


TEMPORARY = "temp:"  # what names begin with that are kept in memory only


class Place(NamedTuple):
    """Whose pad it is: of a run, else of a chat, else of the user."""

    space: str
    chat: str = ""
    run: str = ""

    def values(self) -> dict[str, Value]:
        """Give the columns that lead the key of a pad."""
        return {"chat": self.chat, "run": self.run}


def read(db: Database, place: Place, name: str) -> str | None:
    """Read the value of a name; None if it has none."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT value FROM pads WHERE space = :space AND chat = :chat AND run = :run AND name = :name",
            space=place.space,
            name=name,
            **place.values(),
        )
    return str(rows[0][0]) if rows else None


def read_all(db: Database, place: Place) -> dict[str, str]:
    """Read a whole pad, in the order of its names."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT name, value FROM pads WHERE space = :space AND chat = :chat AND run = :run",
            space=place.space,
            **place.values(),
        )
    return dict(sorted((name, value) for name, value in rows))


@repeated
def write(db: Database, place: Place, name: str, value: str, now: int) -> None:
    """Give a name a value.

    Raises:
        InvalidInput: the run has ended.

    """
    with db.writing() as tx:
        if place.run:
            tx.lock(place.space)  # or the run could end between this and the next
            check_run(tx, place.space, place.run)
        row: dict[str, Value] = {
            "space": place.space,
            **place.values(),
            "name": name,
            "value": value,
            "at": now,
        }
        tx.all(
            "INSERT INTO pads (space, chat, run, name, value, at, checksum) "
            "VALUES (:space, :chat, :run, :name, :value, :at, :checksum) "
            "ON CONFLICT (space, chat, run, name) DO UPDATE SET "
            "value = excluded.value, at = excluded.at, checksum = excluded.checksum",
            **row,
            checksum=seal("pads", row, tx.key),
        )


@repeated
def remove(db: Database, place: Place, name: str | None = None) -> bool:
    """Remove a name, or all of them; say whether there was any."""
    with db.writing() as tx:
        rows = tx.all(
            "DELETE FROM pads WHERE space = :space AND chat = :chat AND run = :run AND (:every = 1 OR name = :name) "
            "RETURNING name",
            space=place.space,
            every=int(name is None),
            name=name or "",
            **place.values(),
        )
    return bool(rows)
