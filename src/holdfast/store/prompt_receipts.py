"""What prompts were made of: noted when one is made, by any process, and tied to the message that answers it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from holdfast.store.database import repeated
from holdfast.store.message_rows import from_micros, to_micros
from holdfast.types import MAX_COUNT, Receipt

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Row, Value

KEPT = 2_000  # messages of a chat, the newest, whose receipts are kept: of 1,000 turns at least, where each is two
WAITING = 16  # prompts of a chat that may wait for their answers, each of another open memory
_COLUMNS = "seq, at, version, shared, budget, policy, system, query, summary_ids, hits"
# Only for a chat that is there, and not if something was erased since the prompt was made: it may name that.
_NOTE = """
    INSERT INTO receipts (space, chat, seq, worker, at, version, shared, budget, policy, system, query, summary_ids, hits)
    SELECT space, chat, 0, :worker, :at, :version, :shared, :budget, :policy, :system, :query, :summary_ids, :hits
    FROM sessions WHERE space = :space AND chat = :chat
    AND (SELECT coalesce(max(epoch), 0) FROM spaces WHERE space = :space) = :epoch
    ON CONFLICT (space, chat, seq, worker) DO UPDATE SET
        at = excluded.at, version = excluded.version, shared = excluded.shared, budget = excluded.budget,
        policy = excluded.policy, system = excluded.system, query = excluded.query,
        summary_ids = excluded.summary_ids, hits = excluded.hits
    RETURNING 1"""
_FORGET_OLDEST = """
    DELETE FROM receipts WHERE space = :space AND chat = :chat AND seq = 0 AND at < (
        SELECT min(at) FROM (
            SELECT at FROM receipts WHERE space = :space AND chat = :chat AND seq = 0 ORDER BY at DESC LIMIT :waiting
        ) AS newest)"""
_WAITING = "SELECT worker, at, hits FROM receipts WHERE space = :space AND chat = :chat AND seq = 0 ORDER BY at, worker"
_ANSWER = """
    UPDATE receipts SET seq = :seq, worker = ''
    WHERE space = :space AND chat = :chat AND seq = 0 AND worker = :worker"""
_FORGET_OLDER = "DELETE FROM receipts WHERE space = :space AND chat = :chat AND seq = 0 AND at <= :at"
_ADD = f"""
    INSERT INTO receipts (space, chat, worker, {_COLUMNS})
    VALUES (:space, :chat, '', :{_COLUMNS.replace(", ", ", :")})"""
_FORGET_OLD = "DELETE FROM receipts WHERE space = :space AND chat = :chat AND seq > 0 AND seq <= :last"
_SHOWN_LAST = """
    SELECT shown FROM messages WHERE space = :space AND chat = :chat AND seq = (
        SELECT max(seq) FROM receipts WHERE space = :space AND chat = :chat)"""


class Asked(NamedTuple):
    """What an open memory itself knows of the prompts of a chat: its name among others, and what is kept in memory only."""

    worker: str
    shown: tuple[str, ...] = ()
    unstored: Receipt | None = None  # of a prompt that was made before the chat was there


def digest(text: str) -> str:
    """Return the SHA-256 of a text; "" for none."""
    if not text:
        return ""
    # Loads OpenSSL.
    from hashlib import sha256

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@repeated
def note(db: Database, space: str, chat: str, worker: str, receipt: Receipt, epoch: int) -> bool:
    """Note what a prompt was made of, in place of the last one of this worker; say whether that is stored.

    It does not wait for the disk: what a failure of the machine takes was not answered.
    """
    with db.writing(lasting=False) as tx:
        tx.lock(space)
        values = {"space": space, "chat": chat}
        stored = bool(tx.all(_NOTE, **values, worker=worker, epoch=epoch, **_row(receipt)))
        tx.all(_FORGET_OLDEST, **values, waiting=WAITING)
    return stored


def answered(tx: Connection, space: str, chat: str, asked: Asked, seq: int) -> tuple[str, ...]:
    """Tie the prompt that a message answers to it, and return what was shown to whoever wrote the message.

    That is the last prompt of the same worker, or else the newest. What older ones showed that nobody has answered counts as
    shown too: which of them it was that is answered cannot be known. With none, it is what the last answer was shown.
    """
    values: dict[str, Value] = {"space": space, "chat": chat}
    waiting = tx.all(_WAITING, **values)
    if waiting:
        chosen = next((row for row in waiting if row[0] == asked.worker), waiting[-1])
        tx.all(_ANSWER, **values, worker=chosen[0], seq=seq)
        if len(waiting) > 1:
            tx.all(_FORGET_OLDER, **values, at=chosen[1])
    elif asked.unstored is not None:
        tx.all(_ADD, **values, **_row(asked.unstored), seq=seq)
    if seq > KEPT and (waiting or asked.unstored):
        tx.all(_FORGET_OLD, **values, last=seq - KEPT)
    seen = waiting or [(None, None, row[0]) for row in tx.all(_SHOWN_LAST, **values) if row[0]]
    stored = [name for row in seen for name in json.loads(row[2])]
    return tuple(dict.fromkeys((*stored, *asked.shown)))


def read(db: Database, space: str, chat: str, limit: int | None) -> list[Receipt]:
    """Read the receipts of the prompts of a chat that were answered, oldest first: the newest `limit`."""
    with db.reading() as connection:
        rows = connection.all(
            f"SELECT {_COLUMNS} FROM receipts WHERE space = :space AND chat = :chat AND seq > 0 "
            "ORDER BY seq DESC LIMIT :limit",
            space=space,
            chat=chat,
            limit=MAX_COUNT if limit is None else limit,
        )
    return [_receipt(row) for row in reversed(rows)]


def erase(tx: Connection, space: str, chat: str, first: int, last: int) -> None:
    """Delete the receipts of answers that are erased; of queries that may be erased, the digests."""
    values: dict[str, Value] = {"space": space, "chat": chat, "first": first, "last": last}
    tx.all(
        "DELETE FROM receipts WHERE space = :space AND chat = :chat AND seq >= :first AND seq <= :last",
        **values,
    )
    # A query comes before its answer: that of the next one after them, and those that wait for theirs.
    tx.all(
        """UPDATE receipts SET query = '' WHERE space = :space AND chat = :chat AND (seq = 0 OR seq = (
            SELECT min(later.seq) FROM receipts later WHERE later.space = :space AND later.chat = :chat
            AND later.seq > :last))""",
        space=space,
        chat=chat,
        last=last,
    )


def unname(tx: Connection, space: str, gone: Iterable[str]) -> None:
    """Take names of what is erased out of all receipts of a space."""
    names = set(gone)
    rows = tx.all(
        "SELECT chat, seq, worker, summary_ids, hits FROM receipts WHERE space = :space", space=space
    )
    for chat, seq, worker, *lists in rows:
        summaries, hits = map(json.loads, lists)
        if names.isdisjoint(summaries) and names.isdisjoint(hits):
            continue
        tx.all(
            "UPDATE receipts SET summary_ids = :summary_ids, hits = :hits "
            "WHERE space = :space AND chat = :chat AND seq = :seq AND worker = :worker",
            space=space,
            chat=chat,
            seq=seq,
            worker=worker,
            summary_ids=json.dumps([name for name in summaries if name not in names]),
            hits=json.dumps([name for name in hits if name not in names]),
        )


def _row(receipt: Receipt) -> dict[str, Value]:
    return {
        "at": to_micros(receipt.at),
        "version": receipt.version,
        "shared": receipt.shared,
        "budget": receipt.budget,
        "policy": json.dumps([receipt.policy, receipt.parameters]),
        "system": receipt.system,
        "query": receipt.query,
        "summary_ids": json.dumps(receipt.summaries),
        "hits": json.dumps(receipt.hits),
    }


def _receipt(row: Row) -> Receipt:
    seq, at, version, shared, budget, policy, system, query, summaries, hits = row
    name, parameters = json.loads(policy)
    return Receipt(
        seq,
        from_micros(at),
        version,
        shared,
        budget,
        name,
        parameters,
        system,
        query,
        tuple(json.loads(summaries)),
        tuple(json.loads(hits)),
    )
