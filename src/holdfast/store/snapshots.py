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
    """Read the snapshot of a session; None before its first prompt."""
    with db.reading() as connection:
        return _read(connection, scope, chat)


def _read(connection: Connection, scope: Scope, chat: str) -> Snapshot | None:
    rows = connection.all(_READ, space=scope.space, chat=chat)
    if not rows:
        return None
    epochs = [connection.all(_EPOCH, space=space)[0][0] for space in (scope.space, scope.shared.space)]
    return Snapshot(*rows[0], *epochs)


def freeze(db: Database, scope: Scope, chat: str, now: int) -> Snapshot:
    """Give the snapshot of a session; take it now if there is none."""
    return read(db, scope, chat) or _take(db, scope, chat, now, again=False)


def advance(db: Database, scope: Scope, chat: str, now: int) -> Snapshot:
    """Let a session know what is known now."""
    return _take(db, scope, chat, now, again=True)


@repeated
def _take(db: Database, scope: Scope, chat: str, now: int, *, again: bool) -> Snapshot:
    with db.writing() as tx:
        tx.lock(scope.space)  # a change that has its version is then committed
        version, shared = (tx.all(_VERSION, space=space)[0][0] for space in (scope.space, scope.shared.space))
        tx.all(
            """INSERT INTO snapshots (space, chat, version, shared, at) VALUES (:space, :chat, :version, :shared, :now)
            ON CONFLICT (space, chat) DO UPDATE SET
                version = CASE WHEN :again = 1 THEN excluded.version ELSE snapshots.version END,
                shared = CASE WHEN :again = 1 THEN excluded.shared ELSE snapshots.shared END,
                at = CASE WHEN :again = 1 THEN excluded.at ELSE snapshots.at END""",
            space=scope.space,
            chat=chat,
            version=version,
            shared=shared,
            now=now,
            again=int(again),
        )
        taken = _read(tx, scope, chat)
    assert taken  # noqa: S101 - it was written two lines before
    return taken
