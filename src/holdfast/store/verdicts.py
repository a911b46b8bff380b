"""Verdicts of the caller's guard about messages and records, beside the log, which stays as it is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.types import MAX_COUNT

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Reader

# The chat of verdicts about versions of records.
OF_RECORDS = ""
_REPLACE = """
    ON CONFLICT (space, chat, seq) DO UPDATE SET
        at = excluded.at, guard = excluded.guard, flags = excluded.flags"""
# Of a message only while it is there: it may have been erased since the guard was asked.
_OF_MESSAGE = f"""
    INSERT INTO verdicts (space, chat, seq, at, guard, flags)
    SELECT space, chat, seq, :at, :guard, :flags FROM messages
    WHERE space = :space AND chat = :chat AND seq = :seq {_REPLACE}"""
_OF_RECORD = f"""
    INSERT INTO verdicts (space, chat, seq, at, guard, flags) VALUES (:space, '', :seq, :at, :guard, :flags)
    {_REPLACE}"""
# Not what the user or the application wrote or released: that is theirs to decide.
_WITHOUT_VERDICT = """
    FROM records r LEFT JOIN verdicts v ON v.space = r.space AND v.chat = '' AND v.seq = r.version
    WHERE r.space = :space AND r.ended = :open AND r.retracted = 0 AND r.author NOT IN ('user', 'system')
    AND r.trust <> 'released' AND v.seq IS NULL"""


def note(
    tx: Connection, space: str, chat: str, seq: int, *, now: int, guard: str, flags: Sequence[str]
) -> None:
    """Store the verdict of a guard about a message, or about a version of a record if the chat is ""."""
    statement = _OF_RECORD if chat == OF_RECORDS else _OF_MESSAGE
    named = {} if chat == OF_RECORDS else {"chat": chat}
    tx.all(statement, space=space, seq=seq, at=now, guard=guard, flags=json.dumps(list(flags)), **named)


def agents_without_verdicts(db: Reader, space: str) -> set[str]:
    """Return the agents with records without a verdict; "" stands for no agent."""
    rows = db.all(f"SELECT DISTINCT r.agent {_WITHOUT_VERDICT}", space=space, open=MAX_COUNT)
    return {row[0] for row in rows}


def ids_without_verdicts(db: Reader, space: str, agent: str) -> list[str]:
    """Return the ids of the records without a verdict that belong to an agent, or to none."""
    sql = f"SELECT r.id {_WITHOUT_VERDICT} AND r.agent IN (:agent, '') ORDER BY r.version"
    return [row[0] for row in db.all(sql, space=space, open=MAX_COUNT, agent=agent)]
