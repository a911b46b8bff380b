"""Stored segments of the search index, and the documents of the log that they are made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.store.database import repeated
from holdfast.store.log import NEWEST_DOC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.store.database import Connection, Database, Row
    from holdfast.types import Source


_STATE = f"""
    SELECT
        ({NEWEST_DOC}) AS doc,
        (SELECT coalesce(max(summaries), 0) FROM spaces WHERE space = :space) AS summaries,
        (SELECT coalesce(max(version), 0) FROM spaces WHERE space = :space) AS version,
        (SELECT coalesce(max(epoch), 0) FROM spaces WHERE space = :space) AS epoch"""


class State(NamedTuple):
    """What the index of a space has to keep up with: its newest message, summary and change, and the epoch."""

    message: int
    summary: int
    record: int
    epoch: int


class Stored(NamedTuple):
    """A segment as it stands in the database."""

    first: int
    last: int
    version: int
    checksum: int
    body: bytes


def state(db: Database, space: str) -> State:
    """Give the numbers of the newest documents of a space, 0 for none, and the epoch of its index."""
    with db.reading() as connection:
        return State(*connection.all(_STATE, space=space)[0])


def missing(db: Database, space: str) -> tuple[int, list[tuple[int, int]]]:
    """Count the messages of a space, and give the ranges of document numbers that are between them or before them."""
    with db.reading() as connection:
        count = connection.all("SELECT count(*) FROM messages WHERE space = :space", space=space)[0][0]
        rows = connection.all(
            """SELECT before + 1, doc - 1 FROM (
                SELECT doc, lag(doc, 1, 0) OVER (ORDER BY doc) AS before FROM messages WHERE space = :space
            ) AS numbered WHERE doc <> before + 1 ORDER BY doc""",
            space=space,
        )
    return count, [(first, last) for first, last in rows]


def load(db: Database, space: str, version: int, after: int, source: Source = "message") -> list[Stored]:
    """Read the segments of a version and a source that cover documents after a number, in order."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT first, last, version, checksum, body FROM segments "
            "WHERE space = :space AND source = :source AND version = :version AND last > :after ORDER BY first",
            space=space,
            source=source,
            version=version,
            after=after,
        )
    return [Stored(*row) for row in rows]


@repeated
def replace(
    db: Database,
    space: str,
    source: Source,
    expected: Sequence[tuple[int, int]],
    epoch: int,
    segment: Stored,
) -> bool:
    """Store a segment in place of those of its version that it covers, and return whether that was done.

    It is not done unless `expected` lists the (first, last) of all stored segments of that source and version in the
    space, and the space is still in the `epoch` under which the documents were read: otherwise words that were erased
    since would come back.
    """
    keys: dict[str, str | int] = {"space": space, "source": source, "version": segment.version}
    with db.writing() as tx:
        tx.lock(space)
        now = tx.all("SELECT coalesce(max(epoch), 0) FROM spaces WHERE space = :space", space=space)[0][0]
        found = tx.all(
            "SELECT first, last FROM segments "
            "WHERE space = :space AND source = :source AND version = :version ORDER BY first",
            **keys,
        )
        if now != epoch or found != list(expected):
            return False
        tx.all(
            "DELETE FROM segments "
            "WHERE space = :space AND source = :source AND version = :version AND first >= :first",
            first=segment.first,
            **keys,
        )
        tx.all(
            "INSERT INTO segments (space, source, first, last, version, checksum, body) "
            "VALUES (:space, :source, :first, :last, :version, :checksum, :body)",
            space=space,
            source=source,
            **segment._asdict(),
        )
    return True


@repeated
def clear(db: Database, space: str, version: int | None = None) -> None:
    """Remove the segments of a space and begin a new epoch, so that every process makes its index anew.

    With a version only its own go, and a process that has another one loads it again.
    """
    with db.writing() as tx:
        tx.lock(space)
        clear_in(tx, space, version)


def clear_in(tx: Connection, space: str, version: int | None = None) -> None:
    """Do what `clear` does, within a transaction that has locked the space."""
    if version is None:
        tx.all("DELETE FROM segments WHERE space = :space", space=space)
    else:
        tx.all(
            "DELETE FROM segments WHERE space = :space AND version = :version", space=space, version=version
        )
    tx.all(
        "INSERT INTO spaces (space, epoch) VALUES (:space, 1) "
        "ON CONFLICT (space) DO UPDATE SET epoch = spaces.epoch + 1",
        space=space,
    )


def documents(db: Database, space: str, after: int, limit: int) -> list[Row]:
    """Read what the index needs of the messages of the next numbers: doc, chat, agent, role, name, at, content, calls."""
    # The agent is looked up for each message, and the numbers are bounded on both sides: with a join, or a bound on one
    # side, PostgreSQL reads the whole space as long as it has no statistics of a new database.
    with db.reading() as connection:
        return connection.all(
            """SELECT m.doc, m.chat, coalesce((
                SELECT s.agent FROM sessions s WHERE s.space = :space AND s.chat = m.chat), ''),
                m.role, m.name, m.at, m.content, m.calls
            FROM messages m WHERE m.space = :space AND m.doc > :after AND m.doc <= :until ORDER BY m.doc""",
            space=space,
            after=after,
            until=after + limit,
        )
