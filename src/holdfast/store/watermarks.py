"""Watermarks: the newest message of a chat that each kind of job has processed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.store import table_rows
from holdfast.store.database import first_value
from holdfast.types import MAX_COUNT

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Reader, Value

_POSTPONE = """
    INSERT INTO watermarks (space, chat, kind, seq, at, failures) VALUES (:space, :chat, :kind, 0, :at, 1)
    ON CONFLICT (space, chat, kind) DO UPDATE SET at = excluded.at, failures = watermarks.failures + 1"""
_PENDING = """
    SELECT s.chat, s.agent, s.length, s.newest, coalesce(w.seq, 0), coalesce(w.at, 0)
    FROM sessions s LEFT JOIN watermarks w ON w.space = s.space AND w.chat = s.chat AND w.kind = :kind
    WHERE s.space = :space AND s.length > coalesce(w.seq, 0) AND s.length > s.erased + s.aside
    AND (s.newest <= :quiet OR s.newest > :now)
    AND (coalesce(w.failures, 0) < :most OR s.newest > w.at OR w.at <= :rested)
    AND (:any = 1 OR s.agent = :agent) AND (:archived = 1 OR s.archived = 0)
    ORDER BY coalesce(w.at, 0), s.newest, s.born"""
_RETURN = """
    UPDATE watermarks SET seq = :back - 1
    WHERE space = :space AND chat = :chat AND seq >= :back AND :back > 0"""
_SKIP = "UPDATE watermarks SET seq = :length WHERE space = :space AND chat = :chat AND seq >= :head"
# In microseconds.
DAY = 86_400_000_000


class PendingChat(NamedTuple):
    """A chat with messages that a kind of job has not processed: those after `seen`."""

    chat: str
    agent: str
    length: int
    newest: int
    seen: int
    seen_at: int


def read(db: Reader, space: str, chat: str, kind: str) -> int:
    """Return the watermark of a chat and a kind of job; 0 for none."""
    sql = "SELECT seq FROM watermarks WHERE space = :space AND chat = :chat AND kind = :kind"
    return first_value(db, int, sql, space=space, chat=chat, kind=kind) or 0


def read_all(db: Reader, space: str) -> list[tuple[str, str, int]]:
    """Return all watermarks of a space as (chat, kind, seq); those of records have the chat ""."""
    sql = "SELECT chat, kind, seq FROM watermarks WHERE space = :space ORDER BY chat, kind"
    return [(chat, kind, int(seq)) for chat, kind, seq in db.all(sql, space=space)]


def advance(tx: Connection, space: str, chat: str, kind: str, seq: int, now: int) -> None:
    """Store the newest message of a chat that a kind of job has processed."""
    row = {"space": space, "chat": chat, "kind": kind, "seq": seq, "at": now, "failures": 0}
    table_rows.put(tx, "watermarks", row)


def postpone(tx: Connection, space: str, chat: str, kind: str, now: int) -> None:
    """Count a failure, and let other chats come first. The watermark stays."""
    tx.all(_POSTPONE, space=space, chat=chat, kind=kind, at=now)


def follow(tx: Connection, space: str, chat: str, length: int, head: int, back: int) -> None:
    """Let the watermarks of a chat follow another branch, up to `head`.

    They return to before the message `back`, 0 for none, from which on messages were brought back, as those
    may not have been processed. Where nothing of the branch is left to do, they pass the whole log.
    """
    tx.all(_RETURN, space=space, chat=chat, back=back)
    tx.all(_SKIP, space=space, chat=chat, length=length, head=head)


def pending_chats(
    db: Reader,
    space: str,
    kind: str,
    *,
    agent: str | None = None,
    quiet: int = MAX_COUNT,
    now: int = MAX_COUNT,
    archived: bool = True,
    most: int = MAX_COUNT,
) -> list[PendingChat]:
    """Return the chats with unprocessed messages and none since `quiet`, the one processed longest ago first.

    A time after `now` is a mistake, and the chat is taken to be quiet. One that failed `most` times is left
    out for a day, or until it gets a message. Linear in the chats of the space.
    """
    values: dict[str, Value] = {"any": int(agent is None), "agent": agent or "", "archived": int(archived)}
    values |= {"quiet": quiet, "now": now, "most": most, "rested": now - DAY}
    return [PendingChat(*row) for row in db.all(_PENDING, space=space, kind=kind, **values)]
