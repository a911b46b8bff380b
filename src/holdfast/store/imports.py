"""Files that were imported: which they are, by hashes, and what came of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.store.database import repeated

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database


def find(db: Database, space: str, file: str, digest: str) -> str | None:
    """Give the account of a file that was imported with this content, None if it was not."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT account FROM imports WHERE space = :space AND file = :file AND digest = :digest",
            space=space,
            file=file,
            digest=digest,
        )
    return str(rows[0][0]) if rows else None


@repeated
def note(db: Database, space: str, file: str, digest: str, account: str) -> None:
    """Keep the account of a file, in place of that of its earlier content."""
    with db.writing() as tx:
        tx.all(
            "INSERT INTO imports (space, file, digest, account) VALUES (:space, :file, :digest, :account) "
            "ON CONFLICT (space, file) DO UPDATE SET digest = excluded.digest, account = excluded.account",
            space=space,
            file=file,
            digest=digest,
            account=account,
        )


def forget(tx: Connection, space: str) -> None:
    """Forget all files of a space."""
    tx.all("DELETE FROM imports WHERE space = :space", space=space)
