"""Watermarks: how far each session was learned from, and which sessions have news."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.types import MAX_COUNT

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database

_ADVANCE = """
    INSERT INTO watermarks (space, chat, kind, seq, at) VALUES (:space, :chat, :kind, :seq, :at)
    ON CONFLICT (space, chat, kind) DO UPDATE SET seq = excluded.seq, at = excluded.at, failures = 0"""
_NEWS = """
    SELECT s.chat, s.agent, s.length, s.newest, coalesce(w.seq, 0), coalesce(w.at, 0)
    FROM sessions s LEFT JOIN watermarks w ON w.space = s.space AND w.chat = s.chat AND w.kind = :kind
    WHERE s.space = :space AND s.length > coalesce(w.seq, 0) AND s.length > s.erased
    AND (s.newest <= :quiet OR s.newest > :now) AND (coalesce(w.failures, 0) < :most OR s.newest > w.at OR w.at <= :rested)
    AND (:any = 1 OR s.agent = :agent) AND (:archived = 1 OR s.archived = 0)
    ORDER BY coalesce(w.at, 0), s.newest, s.born LIMIT :limit"""


DAY = 86_400_000_000  # microseconds


class News(NamedTuple):
    """A session that has messages which a kind of job has not looked at: those after `seen`."""

    chat: str
    agent: str
    length: int
    newest: int
    seen: int
    seen_at: int


def read(source: Database, space: str, chat: str, kind: str) -> int:
    """Give the newest message of a session that a kind of job has looked at; 0 for none."""
    with source.reading() as connection:
        rows = connection.all(
            "SELECT seq FROM watermarks WHERE space = :space AND chat = :chat AND kind = :kind",
            space=space,
            chat=chat,
            kind=kind,
        )
    return int(rows[0][0]) if rows else 0


def read_all(db: Database, space: str) -> list[tuple[str, str, int]]:
    """Read all watermarks of a space: chat, kind, seq; those of records, that are about no chat, included."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT chat, kind, seq FROM watermarks WHERE space = :space ORDER BY chat, kind", space=space
        )
    return [(chat, kind, int(seq)) for chat, kind, seq in rows]


def advance(tx: Connection, space: str, chat: str, kind: str, seq: int, now: int) -> None:
    """Note up to which message a kind of job has looked at a session."""
    tx.all(_ADVANCE, space=space, chat=chat, kind=kind, seq=seq, at=now)


def put_last(tx: Connection, space: str, chat: str, kind: str, now: int) -> None:
    """Let other sessions come before one that could not be done. How far it was looked at stays as it is."""
    tx.all(
        "INSERT INTO watermarks (space, chat, kind, seq, at, failures) VALUES (:space, :chat, :kind, 0, :at, 1) "
        "ON CONFLICT (space, chat, kind) DO UPDATE SET at = excluded.at, failures = watermarks.failures + 1",
        space=space,
        chat=chat,
        kind=kind,
        at=now,
    )


def news(
    db: Database,
    space: str,
    kind: str,
    *,
    agent: str | None = None,
    quiet: int = MAX_COUNT,
    now: int = MAX_COUNT,
    archived: bool = True,
    limit: int = MAX_COUNT,
    most: int = MAX_COUNT,
) -> list[News]:
    """List the sessions with news, the one that was looked at longest ago first; without new messages since `quiet`.

    A time after `now` is a mistake, and the session is taken to be quiet. One that could not be done `most` times is
    left out for a day, or until something is said in it. Linear in the sessions of the space.
    """
    with db.reading() as connection:
        rows = connection.all(
            _NEWS,
            space=space,
            kind=kind,
            any=int(agent is None),
            agent=agent or "",
            quiet=quiet,
            now=now,
            most=most,
            rested=now - DAY,
            archived=int(archived),
            limit=limit,
        )
    return [News(*row) for row in rows]
