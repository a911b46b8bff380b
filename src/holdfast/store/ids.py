"""Ids of what a space holds, by their beginnings: a person types no more of one than needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.store.database import Reader

_BEGINS = "1, :length) = :beginning"
_BEGINNING = {
    "chat": f"SELECT chat FROM sessions WHERE space = :space AND substr(chat, {_BEGINS}",
    "record": f"SELECT DISTINCT id FROM records WHERE space = :space AND substr(id, {_BEGINS}",
    "summary": f"SELECT DISTINCT id FROM summaries WHERE space = :space AND substr(id, {_BEGINS}",
    "job": f"SELECT id FROM jobs WHERE space = :space AND substr(id, {_BEGINS}",
}


def beginning_with(db: Reader, space: str, sort: str, beginning: str) -> list[str]:
    """Return the ids of chats, records, summaries or jobs that begin with a text; linear in the space."""
    rows = db.all(_BEGINNING[sort], space=space, length=len(beginning), beginning=beginning)
    return sorted(str(id) for (id,) in rows)
