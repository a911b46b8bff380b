"""Erasure: the one exception to append-only. It deletes words from every table, and leaves a receipt."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import InvalidInput, Unavailable
from holdfast.store import (
    agenda,
    branches,
    imports,
    jobs,
    prompt_receipts,
    record_changes,
    segments,
    summaries,
    vectors,
)
from holdfast.store.checksums import resealing
from holdfast.store.database import PurgeResult, decoding, one_of, retry_transaction
from holdfast.store.erasure_receipts import DATABASE, ErasureAccount
from holdfast.store.log import title_of
from holdfast.store.record_erasure import RecordEraser
from holdfast.store.sessions import RECOUNTED
from holdfast.types import MAX_COUNT, Erasure, Range, Writer, check_flag, check_name, check_range
from holdfast.types.references import write_reference

if TYPE_CHECKING:
    from holdfast.store.database import Database, Value
    from holdfast.store.record_changes import Writing

_SET_REWRITTEN = """
    UPDATE erasures SET rewritten = :rewritten, remains = :remains WHERE space = :space AND id = :id"""
_SET_ALL_REWRITTEN = "UPDATE spaces SET epoch = :newest WHERE space = :space AND epoch < :newest"
_DELETE_MESSAGES = """
    DELETE FROM messages WHERE space = :space AND chat = :chat AND seq >= :first AND seq <= :last
    RETURNING doc, seq, role, content, raw, calls, meta"""
_OF_MESSAGES = (
    "DELETE FROM calls WHERE space = :space AND chat = :chat AND seq >= :first AND seq <= :last",
    "DELETE FROM heard WHERE space = :space AND chat = :chat AND first <= :last AND last >= :first",
    "DELETE FROM verdicts WHERE space = :space AND chat = :chat AND seq >= :first AND seq <= :last",
)
# So that no document number is used again, whatever becomes of the message that has it.
_KEEP_NUMBERS = """
    INSERT INTO spaces (space, epoch, docs)
    VALUES (:space, 0, (SELECT coalesce(max(doc), 0) FROM messages WHERE space = :space))
    ON CONFLICT (space) DO UPDATE SET
        docs = CASE WHEN excluded.docs > spaces.docs THEN excluded.docs ELSE spaces.docs END"""
_DELETE_EPISODE = """
    DELETE FROM watermarks WHERE space = :space AND chat = :chat AND kind IN ('episode', 'episode:rules')"""
_COUNT_MESSAGES = f"""
    UPDATE sessions SET title = :title, {RECOUNTED} WHERE space = :space AND chat = :chat"""
_RECORD = "id = :id OR id IN (SELECT id FROM records WHERE space = :space AND replaces = :id)"
_RECORDS = "{0} OR id IN (SELECT id FROM records WHERE space = :space AND {1})"
_SHOWN = "SELECT chat, seq, shown FROM messages WHERE space = :space AND shown IS NOT NULL"
_SET_SHOWN = "UPDATE messages SET shown = :left WHERE space = :space AND chat = :chat AND seq = :seq"
_CHAT_TABLES = ("sessions", "heads", "pads", "items", "snapshots", "receipts", "runs", "jobs", "watermarks")
_OF_CHAT = {
    **{
        name: f"DELETE FROM {name} WHERE space = :space AND chat = :chat RETURNING 1" for name in _CHAT_TABLES
    },
    # The cost stays; only its chat is forgotten.
    "spend": "UPDATE spend SET chat = '', job = '' WHERE space = :space AND chat = :chat RETURNING 1",
}
_OF_ALL = {
    name: f"DELETE FROM {name} WHERE space = :space RETURNING 1"
    for name in (*_CHAT_TABLES, "spend", "uses", "vectors", "vector_sets", "grants", "moves")
}

_DEFERRED = PurgeResult((), {"file": "it is rewritten later, with `verify(repair=True)`"}, done=False)
# Kinds of erasures of a whole space.
WHOLE = ("user", "project", "team")


class ErasureTarget(NamedTuple):
    """The target of an erasure: a record, messages of a chat, a chat, a whole space, or remains in files."""

    chat: str | None = None
    messages: Range | None = None
    record: str | None = None
    # Records that a rule lets expire, and the worker whose lease on that stays.
    expired: Sequence[str] = ()
    worker: str = ""
    # Nothing but what earlier erasures left in the files.
    files: bool = False
    # One of WHOLE: the owner of a space that is erased as a whole.
    whole: str = "user"
    # Grants of the user on spaces of others, which are deleted already.
    rights: int = 0

    @property
    def kind(self) -> str:
        """The kind of erasure, as receipts name it."""
        if self.files:
            return "files"
        if self.record is not None:
            return "record"
        return self.whole if self.chat is None else "chat" if self.messages is None else "messages"


def erasure_target(
    *,
    chat: str | None,
    messages: int | Range | None,
    record: str | None,
    user: str | None,
    project: str | None = None,
    team: str | None = None,
    rewrite: bool | None,
) -> ErasureTarget:
    """Check the arguments of an erasure, and return its target.

    Raises:
        InvalidInput: not exactly one thing is named.

    """
    if rewrite is not None:
        check_flag(rewrite, "rewrite")
    named = {"chat": chat, "record": record, **dict(zip(WHOLE, (user, project, team), strict=True))}
    given = [kind for kind, name in named.items() if name is not None]
    if rewrite and not given and messages is None:
        return ErasureTarget(files=True)
    if len(given) != 1:
        raise InvalidInput(
            "It is not clear what to erase.",
            "Pass one of chat=, record=, user=, project=, team=; messages= beside chat=; or rewrite=True.",
        )
    if messages is not None and chat is None:
        raise InvalidInput("Messages belong to a chat.", "Pass chat= as well.")
    if given[0] in WHOLE:
        return ErasureTarget(whole=given[0])
    check_name(named[given[0]], f"The id of a {given[0]}")
    return ErasureTarget(chat, check_range(messages, chat or ""), record)


def erase(
    db: Database,
    space: str,
    target: ErasureTarget,
    writer: Writer,
    now: int,
    allow: Callable[[str], None],
    *,
    rewrite: bool | None,
) -> Erasure:
    """Erase in one transaction, purge or rewrite the files, and return the receipt.

    With None as `rewrite` the files are left to the next erasure, or to `purge_deferred`. `allow` is called
    with the kind of each record that is to be erased, and raises if it may not be.

    Raises:
        InvalidInput: there is nothing of that name; nothing was erased.
        Unavailable: it is erased, but the files could not be purged: its receipt says what remains, and why.
            The next erasure, of anything, tries again.

    """
    receipt = _erase(db, space, target, writer, now, allow)
    newest = db.all("SELECT version FROM spaces WHERE space = :space", space=DATABASE)[0][0]
    purged = _DEFERRED if rewrite is None else db.purge(rewrite=rewrite)
    _note_purge(db, space, receipt.id, purged, newest)
    receipt = replace(receipt, rewritten=purged.rewritten, remains=purged.remains)
    if not purged.done and purged is not _DEFERRED:
        left = "; ".join(f"{part}: {why}" for part, why in purged.remains.items())
        raise Unavailable(
            f"The words are erased from every table, but the files may still hold remains of them ({left}).",
            "Remove the cause and call `erase(rewrite=True)`; the receipt is in the error.",
            receipt=receipt,
        )
    return receipt


def erase_expired(changes: Writing, ids: Sequence[str], worker: str) -> Erasure:
    """Erase records within a transaction of a worker, and return the receipt; the files wait."""
    account = ErasureAccount()
    _Eraser(changes, account, lambda _: None).erase(ErasureTarget(expired=ids, worker=worker))
    return account.receipt(changes.tx, changes.space, "expired", "system", changes.now)


def purge_deferred(db: Database) -> None:
    """Rewrite the files after erasures that deferred it; do nothing if there were none."""
    rows = db.all("SELECT version, epoch FROM spaces WHERE space = :space", space=DATABASE)
    newest, rewritten = rows[0] if rows else (0, 0)
    if newest > rewritten and db.purge(rewrite=False).done:
        with db.writing() as tx:
            tx.all(_SET_ALL_REWRITTEN, space=DATABASE, newest=newest)


@retry_transaction
def _note_purge(db: Database, space: str, receipt: str, purged: PurgeResult, newest: int) -> None:
    """Add the rewritten parts to a receipt; a complete purge leaves no remains of earlier erasures."""
    rewritten, remains = json.dumps(purged.rewritten), json.dumps(purged.remains)
    with db.writing() as tx:
        tx.all(_SET_REWRITTEN, space=space, id=receipt, rewritten=rewritten, remains=remains)
        if purged.done:
            tx.all(_SET_ALL_REWRITTEN, space=DATABASE, newest=newest)


@retry_transaction
def _erase(
    db: Database, space: str, target: ErasureTarget, writer: Writer, now: int, allow: Callable[[str], None]
) -> Erasure:
    with record_changes.writing(db, space, now) as changes:
        account = ErasureAccount()
        if not target.files:
            _Eraser(changes, account, allow).erase(target)
        return account.receipt(changes.tx, space, target.kind, writer, now)


class _Eraser:
    """Deletes rows of a space within a transaction, and keeps account of them."""

    def __init__(self, changes: Writing, account: ErasureAccount, allow: Callable[[str], None]) -> None:
        self._tx = changes.tx
        self._space = changes.space
        self._account = account
        self._records = RecordEraser(changes, account, allow)

    def erase(self, target: ErasureTarget) -> None:
        if target.record is not None:
            self._records.erase(_RECORD, id=target.record)
        elif target.expired:
            condition, ids = one_of("id", target.expired)
            replacing = condition.replace("id IN", "replaces IN")
            self._records.erase(_RECORDS.format(condition, replacing), **ids)
        elif target.chat is None:
            self._account.count("grants", range(target.rights))
            self._erase_all()
        elif target.messages is None:
            self._erase_chat(target.chat)
        else:
            self._erase_range(target.chat, *target.messages)
        if not any(self._account.counts.values()):
            raise InvalidInput(
                "There is nothing of that name to erase.", "Look at `chats()`, `records()` and `changes()`."
            )
        self._remove_names()
        segments.clear_in(self._tx, self._space)
        imports.forget(self._tx, self._space)
        jobs.revoke_leases(self._tx, self._space, target.worker)
        if target.record or target.chat or target.expired:
            agenda.touch(self._tx, self._space)

    def _erase_chat(self, chat: str) -> None:
        self._tx.all(_KEEP_NUMBERS, space=self._space)
        self._erase_messages(chat, 1, MAX_COUNT)
        self._records.erase("chat = :chat", chat=chat)
        self._records.remove_wordings(chat, 1, MAX_COUNT)
        self._records.remove_source(chat)
        for table, statement in _OF_CHAT.items():
            self._account.count(table, self._tx.all(statement, space=self._space, chat=chat))

    def _erase_range(self, chat: str, first: int, last: int) -> None:
        self._tx.all(_KEEP_NUMBERS, space=self._space)
        texts = self._erase_messages(chat, first, last)
        overlapping = "chat = :chat AND first <= :last AND last >= :first"
        self._records.erase(overlapping, chat=chat, first=first, last=last)
        self._records.remove_wordings(chat, first, last)
        prompt_receipts.erase(self._tx, self._space, chat, first, last)
        if texts:
            self._update_chat(chat, texts)
            # Its episode was made of these messages too, and is written again from the others.
            self._tx.all(_DELETE_EPISODE, space=self._space, chat=chat)

    def _erase_all(self) -> None:
        self._tx.all(_KEEP_NUMBERS, space=self._space)
        for (chat,) in self._tx.all("SELECT chat FROM sessions WHERE space = :space", space=self._space):
            self._erase_messages(chat, 1, MAX_COUNT)
        self._records.erase("1 = 1")
        for table, statement in _OF_ALL.items():
            self._account.count(table, self._tx.all(statement, space=self._space))
        self._tx.all("DELETE FROM agenda WHERE space = :space", space=self._space)

    def _erase_messages(self, chat: str, first: int, last: int) -> list[str]:
        """Erase messages, the rows that refer to them, and summaries; return the texts of the messages."""
        keys: dict[str, Value] = {"space": self._space, "chat": chat, "first": first, "last": last}
        rows = sorted(self._tx.all(_DELETE_MESSAGES, **keys))
        for statement in _OF_MESSAGES:
            self._tx.all(statement, **keys)
        docs = [row[0] for row in rows]
        self._account.docs += docs
        self._account.names |= {f"{chat}#{row[1]}" for row in rows}
        self._account.digest(rows)
        self._account.count("messages", rows)
        nodes = summaries.erase(self._tx, self._space, chat, rows[0][1] if rows else MAX_COUNT)
        self._account.digest(sorted(row[:2] for row in nodes))
        self._account.names |= {row[2] for row in nodes}
        self._account.count("summaries", nodes)
        self._account.count("vectors", vectors.erase(self._tx, self._space, "message", docs))
        of_summaries = vectors.erase(self._tx, self._space, "summary", [row[0] for row in nodes])
        self._account.count("vectors", of_summaries)
        return [row[3] for row in rows]

    def _update_chat(self, chat: str, texts: Sequence[str]) -> None:
        """Count the remaining messages of a chat, and clear a title that repeats an erased one."""
        keys = {"space": self._space, "chat": chat}
        title = self._tx.all("SELECT title FROM sessions WHERE space = :space AND chat = :chat", **keys)[0][0]
        if title in map(title_of, texts):
            title = ""
        with resealing(self._tx, "sessions", self._space, "chat = :chat", chat=chat):
            self._tx.all(_COUNT_MESSAGES, title=title, **keys)
        branches.settle(self._tx, self._space, chat)

    def _remove_names(self) -> None:
        """Remove erased names from the lists of what prompts have shown; the answers to the prompts stay."""
        names = self._account.names
        if not names:
            return
        prompt_receipts.remove_names(self._tx, self._space, names)
        for chat, seq, text in self._tx.all(_SHOWN, space=self._space):
            with decoding(f"What was recalled for message {write_reference(chat, seq)}"):
                shown = json.loads(text)
                left = [name for name in shown if name not in names]
            if left != shown:
                keys = {"chat": chat, "seq": seq}
                with resealing(self._tx, "messages", self._space, "chat = :chat AND seq = :seq", **keys):
                    self._tx.all(
                        _SET_SHOWN, space=self._space, left=json.dumps(left) if left else None, **keys
                    )
