"""Ids of what a space holds, by their beginnings: a person types no more of one than needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.store.database import Reader

_TABLES = {"chat": "sessions", "record": "records", "summary": "summaries", "job": "jobs"}


def beginning_with(db: Reader, space: str, sort: str, beginning: str) -> list[str]:
    """Return the ids of chats, records, summaries or jobs that begin with a text; linear in the space."""
    column = "chat" if sort == "chat" else "id"
    sql = f"""
        SELECT DISTINCT {column} FROM {_TABLES[sort]}
        WHERE space = :space AND substr({column}, 1, :length) = :beginning"""
    rows = db.all(sql, space=space, length=len(beginning), beginning=beginning)
    return sorted(str(id) for (id,) in rows)
