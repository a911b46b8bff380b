"""Stored segments of the search index, and the messages that they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.store import table_rows
from holdfast.store.database import matching, of_each, retry_transaction
from holdfast.store.log import NEWEST_DOC
from holdfast.store.schema import DOCUMENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.store.database import Connection, Database, Reader, Row, Value
    from holdfast.types import Source


_STATE = f"""
    SELECT ({NEWEST_DOC}) AS doc, coalesce(max(summaries), 0) AS summaries,
        coalesce(max(version), 0) AS version, coalesce(max(epoch), 0) AS epoch,
        coalesce(max(heads), 0) AS heads
    FROM spaces WHERE space = :space"""
_EPOCH = "SELECT coalesce(max(epoch), 0) FROM spaces WHERE space = :space"
_NEXT_EPOCH = """
    INSERT INTO spaces (space, epoch) VALUES (:space, 1)
    ON CONFLICT (space) DO UPDATE SET epoch = spaces.epoch + 1"""
_GAPS = """
    SELECT before + 1, doc - 1 FROM (
        SELECT doc, lag(doc, 1, 0) OVER (ORDER BY doc) AS before FROM messages WHERE space = :space
    ) AS numbered WHERE doc <> before + 1 ORDER BY doc"""
_OF_SOURCE = "segments WHERE space = :space AND source = :source AND version = :version"
_FROM_SOURCE = f"FROM {_OF_SOURCE}"
# The agent is looked up for each message, and the numbers are bounded on both sides: with a join, or a bound
# on one side, PostgreSQL reads the whole space as long as it has no statistics of a new database.
_DOCUMENTS = """
    SELECT m.doc, m.chat, coalesce((
        SELECT s.agent FROM sessions s WHERE s.space = :space AND s.chat = m.chat), ''),
        m.role, m.name, m.at, m.content, m.calls
    FROM messages m WHERE m.space = :space AND m.doc > :after AND m.doc <= :until ORDER BY m.doc"""


class IndexState(NamedTuple):
    """The newest message, summary and version of a space, which its index follows, the epoch and the heads.

    `heads` is how often a chat went on elsewhere than after its newest message.
    """

    message: int
    summary: int
    record: int
    epoch: int
    heads: int = 0


class StoredSegment(NamedTuple):
    """A segment as it is stored in the database."""

    first: int
    last: int
    version: int
    checksum: int
    body: bytes


def index_state(db: Reader, space: str) -> IndexState:
    """Return the numbers of the newest documents of a space, 0 for none, and the epoch of its index."""
    return index_states(db, (space,))[0]


def index_states(db: Reader, spaces: Sequence[str]) -> list[IndexState]:
    """Return what `index_state` does of several spaces, read at once."""
    sql, values = of_each(_STATE, spaces)
    return [IndexState(*state) for _, *state in sorted(db.all(sql, **values))] if spaces else []


def missing(db: Reader, space: str) -> tuple[int, list[tuple[int, int]]]:
    """Return the number of messages of a space, and the missing ranges of document numbers."""
    count = db.all("SELECT count(*) FROM messages WHERE space = :space", space=space)[0][0]
    return count, [(first, last) for first, last in db.all(_GAPS, space=space)]


def count_after(db: Reader, space: str, source: Source, after: int) -> int:
    """Return how many documents of a source have a larger number."""
    table, number = DOCUMENTS[source]
    sql = f"SELECT count(*) FROM {table} WHERE space = :space AND {number} > :after"
    return int(db.all(sql, space=space, after=after)[0][0])


def load(db: Reader, space: str, version: int, after: int, source: Source = "message") -> list[StoredSegment]:
    """Return the segments of a version and a source that cover documents after a number, in order."""
    sql = f"{_OF_SOURCE} AND last > :after ORDER BY first"
    keys: dict[str, Value] = {"space": space, "source": source, "version": version, "after": after}
    rows = db.all_large("first, last, version, checksum", "body", sql, **keys)
    return [StoredSegment(*row) for row in rows]


@retry_transaction
def replace(
    db: Database,
    space: str,
    source: Source,
    expected: Sequence[tuple[int, int]],
    epoch: int,
    segment: StoredSegment,
) -> bool:
    """Store a segment in place of those of its version that it covers, and return whether that was done.

    It is done only if `expected` lists the (first, last) of all stored segments of that source and version in
    the space, and the space is still in the `epoch` in which the documents were read: otherwise words erased
    since would come back. It does not wait for the disk: a segment lost in a crash is made again.
    """
    keys: dict[str, Value] = {"space": space, "source": source, "version": segment.version}
    with db.writing_to(space, lasting=False) as tx:
        stored = tx.all(f"SELECT first, last {_FROM_SOURCE} ORDER BY first", **keys)
        if tx.all(_EPOCH, space=space)[0][0] != epoch or stored != list(expected):
            return False
        tx.all(f"DELETE {_FROM_SOURCE} AND first >= :first", first=segment.first, **keys)
        table_rows.add(tx, "segments", {"space": space, "source": source, **segment._asdict()})
    return True


@retry_transaction
def clear(db: Database, space: str, version: int | None = None) -> None:
    """Delete the segments of a space and begin a new epoch, so that every process builds its index anew.

    With a version, only its segments are deleted, and a process with another version loads its own again.
    """
    with db.writing_to(space) as tx:
        clear_in(tx, space, version)


def clear_in(tx: Connection, space: str, version: int | None = None) -> None:
    """Do what `clear` does, within a transaction that has locked the space."""
    condition, values = matching({"version": version}, {})
    tx.all(f"DELETE FROM segments WHERE space = :space {condition}", space=space, **values)
    tx.all(_NEXT_EPOCH, space=space)


def documents(db: Reader, space: str, after: int, limit: int) -> list[Row]:
    """Return columns of the next messages for the index: doc, chat, agent, role, name, at, content, calls."""
    return db.all(_DOCUMENTS, space=space, after=after, until=after + limit)
