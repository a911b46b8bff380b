"""What was heard: which record became of each text that was learned from a source, also where it became part of another.

Texts are compared with what is stored, and what is stored goes on; that a text was settled once is true for ever.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from holdfast.store import records

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database
    from holdfast.types import Record

_FIND = "SELECT record FROM heard WHERE space = :space AND digest = :digest"
_NOTE = """
    INSERT INTO heard (space, digest, chat, first, last, record)
    VALUES (:space, :digest, :chat, :first, :last, :record)
    ON CONFLICT (space, digest) DO NOTHING"""


def find(db: Database, space: str, text: Record) -> Record | None:
    """Find what became of a text that was learned from the same source before, as it is now, retracted or not."""
    with db.reading() as connection:
        rows = connection.all(_FIND, space=space, digest=_digest(text))
        return records.latest(connection, space, records.OF_ID, id=rows[0][0]) if rows else None


def note(tx: Connection, space: str, text: Record, became: Record) -> None:
    """Note what became of a text that was learned."""
    first, last = text.messages or (0, 0)
    tx.all(
        _NOTE,
        space=space,
        digest=_digest(text),
        chat=text.chat,
        first=first,
        last=last,
        record=became.id,
    )


def _digest(text: Record) -> str:
    """Digest a text with all that says where it belongs and where it came from."""
    # Loads OpenSSL, which hardly any program needs.
    from hashlib import sha256

    key = (text.kind, text.target, text.agent, text.chat, text.source, text.text)
    return sha256(json.dumps(key).encode()).hexdigest()
