"""Texts learned from a source, each with the record that it became or was merged into."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from holdfast.store import records, table_rows
from holdfast.store.checksums import digest

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database
    from holdfast.types import Record

_FIND = "SELECT record FROM heard WHERE space = :space AND digest = :digest"


def find(db: Database, space: str, text: Record) -> Record | None:
    """Return the newest version of the record that a learned text became; None for a new text."""
    with db.reading() as reader:
        rows = reader.all(_FIND, space=space, digest=_digest(text))
        return records.latest(reader, space, records.OF_ID, id=rows[0][0]) if rows else None


def note(tx: Connection, space: str, text: Record, became: Record) -> None:
    """Store the record that a learned text became."""
    first, last = text.messages or (0, 0)
    source = {"digest": _digest(text), "chat": text.chat, "first": first, "last": last}
    table_rows.insert(tx, "heard", {"space": space, "record": became.id, **source})


def _digest(text: Record) -> str:
    """Return the digest of a text, its place and its source."""
    key = (text.kind, text.target, text.agent, text.chat, text.source, text.text)
    return digest(json.dumps(key))
