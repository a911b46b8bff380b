"""Snapshots: the version of what is known that the prompts of a session show."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.store.database import repeated

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database
    from holdfast.types import Scope

_READ = "SELECT version, shared, at FROM snapshots WHERE space = :space AND chat = :chat"
_EPOCH = "SELECT coalesce(max(epoch), 0) FROM spaces WHERE space = :space"
_VERSION = "SELECT coalesce(max(version), 0) FROM spaces WHERE space = :space"


class Snapshot(NamedTuple):
    """What a session knows: the version of its space and of the one that the tenant shares, and since when.

    The same snapshot always shows the same, until something is erased: the epochs of the two spaces grow then.
    """

    version: int
    shared: int
    at: int
    epoch: int
    shared_epoch: int


def read(db: Database, scope: Scope, chat: str) -> Snapshot | None:
    """Read the snapshot of a session; None before its first prompt, and for a chat that does not exist."""
    with db.reading() as connection:
        return _read(connection, scope, chat)


def _read(connection: Connection, scope: Scope, chat: str) -> Snapshot | None:
    rows = connection.all(_READ, space=scope.space, chat=chat)
    if not rows:
        return None
    epochs = [connection.all(_EPOCH, space=space)[0][0] for space in (scope.space, scope.shared.space)]
    return Snapshot(*rows[0], *epochs)


def now(db: Database, scope: Scope, time: int) -> Snapshot:
    """Return the snapshot of what is known now, which is what a session that has none is shown."""
    with db.reading() as connection:
        return _now(connection, scope, time)


def _now(connection: Connection, scope: Scope, time: int) -> Snapshot:
    spaces = (scope.space, scope.shared.space)
    version, shared = (connection.all(_VERSION, space=space)[0][0] for space in spaces)
    epoch, shared_epoch = (connection.all(_EPOCH, space=space)[0][0] for space in spaces)
    return Snapshot(version, shared, time, epoch, shared_epoch)


def freeze(db: Database, scope: Scope, chat: str, time: int) -> None:
    """Take the snapshot of a session that has none; do nothing for a chat that does not exist."""
    with db.reading() as connection:
        if _read(connection, scope, chat) or not _exists(connection, scope, chat):
            return
    _take(db, scope, chat, time, again=False)


def advance(db: Database, scope: Scope, chat: str, time: int) -> int:
    """Let a session know what is known now, and return that version."""
    return _take(db, scope, chat, time, again=True)


def follow(tx: Connection, scope: Scope, chat: str, version: int, time: int) -> None:
    """Let a session that has a snapshot know what it writes itself, in the transaction that writes it."""
    shared = (
        version if scope.shared.space == scope.space else tx.all(_VERSION, space=scope.shared.space)[0][0]
    )
    tx.all(
        "UPDATE snapshots SET version = :version, shared = :shared, at = :time WHERE space = :space AND chat = :chat",
        space=scope.space,
        chat=chat,
        version=version,
        shared=shared,
        time=time,
    )


@repeated
def _take(db: Database, scope: Scope, chat: str, time: int, *, again: bool) -> int:
    with db.writing() as tx:
        tx.lock(scope.space)  # a change that has its version is then committed
        taken = _now(tx, scope, time)
        if again or _exists(tx, scope, chat):
            tx.all(
                """INSERT INTO snapshots (space, chat, version, shared, at)
                VALUES (:space, :chat, :version, :shared, :time)
                ON CONFLICT (space, chat) DO UPDATE SET
                    version = CASE WHEN :again = 1 THEN excluded.version ELSE snapshots.version END,
                    shared = CASE WHEN :again = 1 THEN excluded.shared ELSE snapshots.shared END,
                    at = CASE WHEN :again = 1 THEN excluded.at ELSE snapshots.at END""",
                space=scope.space,
                chat=chat,
                version=taken.version,
                shared=taken.shared,
                time=time,
                again=int(again),
            )
    return taken.version


def _exists(connection: Connection, scope: Scope, chat: str) -> bool:
    sql = "SELECT 1 FROM sessions WHERE space = :space AND chat = :chat"
    return bool(connection.all(sql, space=scope.space, chat=chat))
