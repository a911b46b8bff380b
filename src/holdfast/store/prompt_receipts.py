"""Receipts of prompts: the sources of each prompt, linked to the message that answers it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from holdfast import types
from holdfast.store import table_rows
from holdfast.store.database import decoding, retry_transaction
from holdfast.store.message_rows import from_micros, to_micros
from holdfast.types import MAX_COUNT

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Reader, Row, Value
    from holdfast.types import Receipt

# How many of the newest messages of a chat keep their receipts: those of 1,000 turns at least.
MAX_ANSWERED = 2_000
# How many prompts of a chat may wait for their answers, each of another open memory.
MAX_WAITING = 16
_COLUMNS = "seq, at, version, shared, budget, policy, system, query, summary_ids, hits"
# Only for an existing chat, and not if something was erased since the prompt was made: it may name that.
_UNCHANGED = """
    SELECT 1 FROM sessions WHERE space = :space AND chat = :chat
    AND (SELECT coalesce(max(epoch), 0) FROM spaces WHERE space = :space) = :epoch"""
# Of other workers.
DELETE_OLDEST = """
    DELETE FROM receipts WHERE space = :space AND chat = :chat AND seq = 0 AND worker <> :worker AND at < (
        SELECT min(at) FROM (
            SELECT at FROM receipts WHERE space = :space AND chat = :chat AND seq = 0 AND worker <> :worker
            ORDER BY at DESC LIMIT :waiting
        ) AS newest)"""
_WAITING = """
    SELECT worker, at, hits FROM receipts WHERE space = :space AND chat = :chat AND seq = 0
    ORDER BY at, worker"""
_ANSWER = """
    UPDATE receipts SET seq = :seq, worker = ''
    WHERE space = :space AND chat = :chat AND seq = 0 AND worker = :worker"""
_DELETE_WAITING = "DELETE FROM receipts WHERE space = :space AND chat = :chat AND seq = 0 AND at <= :at"
_DELETE_ANSWERED = "DELETE FROM receipts WHERE space = :space AND chat = :chat AND seq > 0 AND seq <= :last"
_SHOWN_LAST = """
    SELECT shown FROM messages WHERE space = :space AND chat = :chat AND seq = (
        SELECT max(seq) FROM receipts WHERE space = :space AND chat = :chat)"""
_READ = f"""
    SELECT {_COLUMNS} FROM receipts WHERE space = :space AND chat = :chat AND seq > 0
    ORDER BY seq DESC LIMIT :limit"""
_ERASE = "DELETE FROM receipts WHERE space = :space AND chat = :chat AND seq >= :first AND seq <= :last"
# A query comes before its answer: it is that of the next answer after the erased messages, or one that waits
# for its answer.
_ERASE_QUERIES = """
    UPDATE receipts SET query = '' WHERE space = :space AND chat = :chat AND (seq = 0 OR seq = (
        SELECT min(later.seq) FROM receipts later WHERE later.space = :space AND later.chat = :chat
        AND later.seq > :last))"""
_SET_NAMES = """
    UPDATE receipts SET summary_ids = :summary_ids, hits = :hits
    WHERE space = :space AND chat = :chat AND seq = :seq AND worker = :worker"""


class LastPrompt(NamedTuple):
    """The last prompt that an open memory has made for a chat, and the name of that memory."""

    worker: str
    shown: tuple[str, ...] = ()
    # Of a prompt that was made before the chat existed.
    unstored: Receipt | None = None


@retry_transaction
def note(db: Database, space: str, chat: str, worker: str, receipt: Receipt, epoch: int) -> None:
    """Store the receipt of a prompt in place of the last one of this worker.

    It does not wait for the disk: a prompt lost in a crash was not answered.
    """
    row = {"space": space, "chat": chat, "seq": 0, "worker": worker, **_row(receipt)}
    others: dict[str, Value] = {"worker": worker, "waiting": MAX_WAITING - 1}
    if db.runs_alone and db.run_alone("note", {**row, **others, "epoch": epoch}):
        return
    with db.writing_to(space, lasting=False) as tx:
        tx.all(note_statement(), **row, epoch=epoch)
        tx.all(DELETE_OLDEST, space=space, chat=chat, **others)


def note_statement(unchanged: str = _UNCHANGED, also: str = "") -> str:
    """Return the statement that stores a receipt if nothing has changed; `also` are other parts of it."""
    columns = ("chat", "worker", *_COLUMNS.split(", "))
    # Without a condition SQLite takes what follows for a part of the query.
    put = table_rows.replacement("receipts", columns, "FROM unchanged WHERE 1 = 1")
    return f"WITH unchanged AS ({unchanged}){also} {put} RETURNING 1"


def link_answer(tx: Connection, space: str, chat: str, prompt: LastPrompt, seq: int) -> tuple[str, ...]:
    """Link a prompt to the message that answers it, and return the names that its writer was shown.

    The prompt is the last one of the same worker, or else the newest. Names in older unanswered prompts are
    included, because the message may answer one of them; without any prompt, those of the last answer.
    """
    keys: dict[str, Value] = {"space": space, "chat": chat}
    waiting = tx.all(_WAITING, **keys)
    if waiting:
        chosen = next((row for row in waiting if row[0] == prompt.worker), waiting[-1])
        tx.all(_ANSWER, **keys, worker=chosen[0], seq=seq)
        if len(waiting) > 1:
            tx.all(_DELETE_WAITING, **keys, at=chosen[1])
    elif prompt.unstored is not None:
        table_rows.add(tx, "receipts", {**keys, "seq": seq, "worker": "", **_row(prompt.unstored)})
    if seq > MAX_ANSWERED and (waiting or prompt.unstored):
        tx.all(_DELETE_ANSWERED, **keys, last=seq - MAX_ANSWERED)
    seen = [row[2] for row in waiting] or [row[0] for row in tx.all(_SHOWN_LAST, **keys) if row[0]]
    with decoding(f"What was recalled for chat {chat!r}"):
        stored = [name for names in seen for name in json.loads(names)]
    return tuple(dict.fromkeys((*stored, *prompt.shown)))


def read(db: Reader, space: str, chat: str, limit: int | None) -> list[Receipt]:
    """Return the receipts of the answered prompts of a chat, the oldest first: the newest `limit`."""
    rows = db.all(_READ, space=space, chat=chat, limit=MAX_COUNT if limit is None else limit)
    return [_to_receipt(row) for row in reversed(rows)]


def erase(tx: Connection, space: str, chat: str, first: int, last: int) -> None:
    """Delete the receipts of answers that are erased, and the digests of queries that may be erased."""
    tx.all(_ERASE, space=space, chat=chat, first=first, last=last)
    tx.all(_ERASE_QUERIES, space=space, chat=chat, last=last)


def remove_names(tx: Connection, space: str, gone: Iterable[str]) -> None:
    """Remove erased names from all receipts of a space."""
    names = set(gone)
    sql = "SELECT chat, seq, worker, summary_ids, hits FROM receipts WHERE space = :space"
    for chat, seq, worker, *lists in tx.all(sql, space=space):
        with decoding(f"A receipt of a prompt of chat {chat!r}"):
            before = [list(json.loads(text)) for text in lists]
        left = [[name for name in shown if name not in names] for shown in before]
        if left != before:
            summaries, hits = map(json.dumps, left)
            keys: dict[str, Value] = {"chat": chat, "seq": seq, "worker": worker}
            tx.all(_SET_NAMES, space=space, summary_ids=summaries, hits=hits, **keys)


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


def _to_receipt(row: Row) -> Receipt:
    seq, at, version, shared, budget, policy, system, query, summaries, hits = row
    with decoding("A receipt of a prompt"):
        name, parameters = json.loads(policy)
        shown = tuple(json.loads(summaries)), tuple(json.loads(hits))
        return types.Receipt(
            seq, from_micros(at), version, shared, budget, name, parameters, system, query, *shown
        )
