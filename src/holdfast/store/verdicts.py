"""Verdicts of guards about messages and records, beside the log, which stays as it is.

Those of the caller's guard stand in place of ours. Ours about long messages are kept because they take long
to find: they count for the version of the guard that gave them, and no other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from holdfast.store import table_rows
from holdfast.store.database import DECODING_ERRORS, retry_transaction
from holdfast.types import MAX_COUNT

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Reader, Value

# How the names of our own guard begin.
OWN = "holdfast "
OF_CALLER = f"substr(v.guard, 1, {len(OWN)}) <> '{OWN}'"
# The chat of verdicts about versions of records.
OF_RECORDS = ""
_HAS_MESSAGE = "SELECT 1 FROM messages WHERE space = :space AND chat = :chat AND seq = :seq"
_KEPT = """
    SELECT flags FROM verdicts WHERE space = :space AND chat = :chat AND seq = :seq AND guard = :guard"""
_KEEP = f"""
    INSERT INTO verdicts AS v (space, chat, seq, at, guard, flags)
    SELECT space, chat, seq, 0, :guard, :flags FROM messages
    WHERE space = :space AND chat = :chat AND seq = :seq AND id = :id
    ON CONFLICT (space, chat, seq) DO UPDATE SET
        at = excluded.at, guard = excluded.guard, flags = excluded.flags
    WHERE NOT ({OF_CALLER})"""
# Not what the user or the application wrote or released: that is theirs to decide.
_WITHOUT_VERDICT = """
    FROM records r LEFT JOIN verdicts v ON v.space = r.space AND v.chat = '' AND v.seq = r.version
    WHERE r.space = :space AND r.ended = :open AND r.retracted = 0 AND r.author NOT IN ('user', 'system')
    AND r.trust <> 'released' AND v.seq IS NULL"""


def note(
    tx: Connection, space: str, chat: str, seq: int, *, now: int, guard: str, flags: Sequence[str]
) -> None:
    """Store the verdict of a guard about a message, or about a version of a record if the chat is ""."""
    key: dict[str, Value] = {"space": space, "chat": chat, "seq": seq}
    # A message may have been erased since the guard was asked.
    if chat == OF_RECORDS or tx.all(_HAS_MESSAGE, **key):
        table_rows.put(tx, "verdicts", {**key, "at": now, "guard": guard, "flags": json.dumps(list(flags))})


class Verdict(NamedTuple):
    """The verdict of our own guard on a message: its flags, and the places of credentials with masks."""

    flags: tuple[str, ...]
    masks: Sequence[tuple[int, int, str]]

    def masked(self, text: str) -> str:
        """Return the text of the message with its credentials masked."""
        parts, at = list[str](), 0
        for start, end, mask in self.masks:
            parts += (text[at:start], mask)
            at = end
        return "".join((*parts, text[at:]))


def kept(db: Database, space: str, chat: str, seq: int, guard: str) -> Verdict | None:
    """Return what a version of our own guard found in a message; None where that is not known.

    Who has a key believes nothing without a checksum by it, and verdicts have none.
    """
    rows = [] if db.key else db.all(_KEPT, space=space, chat=chat, seq=seq, guard=OWN + guard)
    with suppress(*DECODING_ERRORS):
        flags, masks = json.loads(rows[0][0])
        return Verdict(tuple(flags), [(int(start), int(end), str(mask)) for start, end, mask in masks])
    return None


@retry_transaction
def keep(db: Database, space: str, guard: str, found: Iterable[tuple[str, int, str, Verdict]]) -> None:
    """Keep what a version of our own guard found in messages, given by chat, seq and id."""
    with db.writing_to(space) as tx:
        for chat, seq, identity, verdict in found:
            keys: dict[str, Value] = {"chat": chat, "seq": seq, "id": identity, "guard": OWN + guard}
            tx.all(_KEEP, space=space, flags=json.dumps(verdict), **keys)


def agents_without_verdicts(db: Reader, space: str) -> set[str]:
    """Return the agents with records without a verdict; "" stands for no agent."""
    rows = db.all(f"SELECT DISTINCT r.agent {_WITHOUT_VERDICT}", space=space, open=MAX_COUNT)
    return {row[0] for row in rows}


def ids_without_verdicts(db: Reader, space: str, agent: str) -> list[str]:
    """Return the ids of the records without a verdict that belong to an agent, or to none."""
    sql = f"SELECT r.id {_WITHOUT_VERDICT} AND r.agent IN (:agent, '') ORDER BY r.version"
    return [row[0] for row in db.all(sql, space=space, open=MAX_COUNT, agent=agent)]
