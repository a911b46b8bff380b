"""Stored segments of the search index, and the documents of the log that they are made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.store.database import Database, Row


_STATE = """
    SELECT
        (SELECT coalesce(max(doc), 0) FROM messages WHERE space = :space),
        (SELECT coalesce(max(epoch), 0) FROM spaces WHERE space = :space)"""


class Stored(NamedTuple):
    """A segment as it stands in the database."""

    first: int
    last: int
    version: int
    checksum: int
    body: bytes


def state(db: Database, space: str) -> tuple[int, int]:
    """Give the number of the newest document of a space, 0 for none, and the epoch of its index."""
    with db.reading() as connection:
        newest, epoch = connection.all(_STATE, space=space)[0]
    return newest, epoch


def numbers(db: Database, space: str) -> tuple[int, int, int]:
    """Count the messages of a space, and give their lowest and highest document number."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT count(*), coalesce(min(doc), 0), coalesce(max(doc), 0) FROM messages WHERE space = :space",
            space=space,
        )
    return rows[0][0], rows[0][1], rows[0][2]


def load(db: Database, space: str, after: int) -> list[Stored]:
    """Read the segments that cover documents after a number, in order."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT first, last, version, checksum, body FROM segments "
            "WHERE space = :space AND last > :after ORDER BY first",
            space=space,
            after=after,
        )
    return [Stored(*row) for row in rows]


def replace(db: Database, space: str, expected: Sequence[tuple[int, int]], segment: Stored) -> bool:
    """Store a segment in place of those that it covers; do nothing and say False unless `expected` is what is there.

    `expected` lists the (first, last) of all stored segments of the space.
    """
    with db.writing() as tx:
        tx.lock(space)
        found = tx.all("SELECT first, last FROM segments WHERE space = :space ORDER BY first", space=space)
        if found != list(expected):
            return False
        tx.all(
            "DELETE FROM segments WHERE space = :space AND first >= :first", space=space, first=segment.first
        )
        tx.all(
            "INSERT INTO segments (space, first, last, version, checksum, body) "
            "VALUES (:space, :first, :last, :version, :checksum, :body)",
            space=space,
            **segment._asdict(),
        )
    return True


def clear(db: Database, space: str) -> None:
    """Remove all segments of a space and begin a new epoch, so that every process makes its index anew."""
    with db.writing() as tx:
        tx.lock(space)
        tx.all("DELETE FROM segments WHERE space = :space", space=space)
        tx.all(
            "INSERT INTO spaces (space, epoch) VALUES (:space, 1) "
            "ON CONFLICT (space) DO UPDATE SET epoch = spaces.epoch + 1",
            space=space,
        )


def documents(db: Database, space: str, after: int, limit: int) -> list[Row]:
    """Read what the index needs of the next messages: doc, chat, agent, role, name, at, content, calls."""
    with db.reading() as connection:
        return connection.all(
            """SELECT m.doc, m.chat, s.agent, m.role, m.name, m.at, m.content, m.calls
            FROM messages m JOIN sessions s ON s.space = m.space AND s.chat = m.chat
            WHERE m.space = :space AND m.doc > :after ORDER BY m.doc LIMIT :limit""",
            space=space,
            after=after,
            limit=limit,
        )
