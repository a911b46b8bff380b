"""Jobs: what is left to do later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.store.rows import from_micros
from holdfast.types import Job

if TYPE_CHECKING:
    from holdfast.store.database import Database


def read(db: Database, space: str) -> list[Job]:
    """Read the open jobs of a space, the oldest first."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT id, kind, record, other, at FROM jobs WHERE space = :space AND status = 'open' ORDER BY at, id",
            space=space,
        )
    return [
        Job(identity, kind, (record, other), from_micros(at)) for identity, kind, record, other, at in rows
    ]
