"""Imported files by their hashes, the account of each import, and the beginnings of chats."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.store import table_rows
from holdfast.store.database import decoding, first_value, retry_transaction

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Reader
    from holdfast.types import Scope

_FIND = "SELECT account FROM imports WHERE space = :space AND file = :file AND digest = :digest"
_BEGINNINGS = """
    SELECT one.id, two.id, s.chat FROM sessions s
    JOIN messages one ON one.space = s.space AND one.chat = s.chat AND one.seq = 1
    JOIN messages two ON two.space = s.space AND two.chat = s.chat AND two.seq = 2
    WHERE s.space = :space AND s.agent = :agent"""
# No hash of a file is written so.
_KNOWN_FILE = "known texts"


def find(db: Reader, space: str, file: str, digest: str) -> str | None:
    """Return the account of the import of a file with this content; None if there was none."""
    return first_value(db, str, _FIND, space=space, file=file, digest=digest)


@retry_transaction
def note(db: Database, space: str, file: str, digest: str, account: str) -> None:
    """Store the account of a file, in place of that of its earlier content."""
    with db.writing() as tx:
        row = {"space": space, "file": file, "digest": digest, "account": account}
        table_rows.put(tx, "imports", row)


def beginnings(db: Reader, scope: Scope) -> Mapping[tuple[str, str], list[str]]:
    """Return the chats of an agent by the ids of their first two messages."""
    chats: dict[tuple[str, str], list[str]] = defaultdict(list)
    for first, second, chat in db.all(_BEGINNINGS, space=scope.space, agent=scope.agent):
        chats[first, second].append(chat)
    return chats


def known_texts(db: Reader, space: str) -> list[str]:
    """Return the texts that everyone is shown anyway, such as the instructions of a project."""
    account = find(db, space, _KNOWN_FILE, "")
    with decoding("What clients show anyway"):
        return [str(text) for text in json.loads(account or "[]")]


def note_known_texts(db: Database, space: str, texts: Sequence[str]) -> None:
    """Store the texts that everyone is shown anyway, in place of those known until now."""
    if known_texts(db, space) != list(texts):
        note(db, space, _KNOWN_FILE, "", json.dumps(list(texts)))


def forget(tx: Connection, space: str) -> None:
    """Forget all files of a space."""
    tx.all("DELETE FROM imports WHERE space = :space", space=space)
