"""Ids of what a space holds, by their beginnings: a person types no more of one than needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.store.database import Reader

_BEGINS = "WHERE space = :space AND substr"
_BEGINNING = {
    "chat": f"SELECT chat FROM sessions {_BEGINS}(chat, 1, :length) = :beginning",
    "record": f"SELECT DISTINCT id FROM records {_BEGINS}(id, 1, :length) = :beginning",
    "summary": f"SELECT DISTINCT id FROM summaries {_BEGINS}(id, 1, :length) = :beginning",
    "job": f"SELECT id FROM jobs {_BEGINS}(id, 1, :length) = :beginning",
}


def beginning_with(db: Reader, space: str, sort: str, beginning: str) -> list[str]:
    """Return the ids of chats, records, summaries or jobs that begin with a text; linear in the space."""
    rows = db.all(_BEGINNING[sort], space=space, length=len(beginning), beginning=beginning)
    return sorted(str(id) for (id,) in rows)
