"""Snapshots: the versions of records that the prompts of a chat show."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from holdfast.store import records, table_rows
from holdfast.store.checksums import seal
from holdfast.store.database import decoding, of_each, retry_transaction
from holdfast.store.message_rows import from_micros
from holdfast.store.records import AsOf
from holdfast.text.json_text import load_object

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Reader, Value
    from holdfast.types import Scope

_IS_THERE = "SELECT 1 FROM snapshots WHERE space = :space AND chat = :chat"
_EPOCH = "SELECT coalesce(max(epoch), 0) AS epoch FROM spaces WHERE space = :space"
_EPOCHS = f"({_EPOCH}), ({_EPOCH.replace(':space', ':shared')})"
_READ = f"SELECT version, shared, at, others, {_EPOCHS} FROM snapshots WHERE space = :space AND chat = :chat"
_VERSION = "SELECT coalesce(max(version), 0) AS version FROM spaces WHERE space = :space"
_EXISTS = "SELECT 1 FROM sessions WHERE space = :space AND chat = :chat"


class Snapshot(NamedTuple):
    """The versions of a chat's space and of the shared space, the time of both, and the epochs.

    A snapshot always shows the same records until an erasure, which increments the epoch of its space.
    `others` are the other spaces of the scope, each with its version and its epoch.
    """

    version: int
    shared: int
    at: int
    epoch: int
    shared_epoch: int
    others: tuple[tuple[str, int, int], ...] = ()

    def moments(self, scope: Scope) -> dict[str, AsOf]:
        """Return the version of each space that the scope reads, nearest first."""
        versions = {space: version for space, version, _ in self.others}
        versions |= {scope.shared.space: self.shared, scope.space: self.version}
        return {space: AsOf(versions[space]) for space in scope.spaces}


def read(db: Database, scope: Scope, chat: str) -> Snapshot | None:
    """Return the snapshot of a chat; None before its first prompt, and for an unknown chat."""
    rows = db.all(_READ, space=scope.space, chat=chat, shared=scope.shared.space)
    if not rows:
        return None
    version, shared, at, others, epoch, shared_epoch = rows[0]
    return Snapshot(version, shared, at, epoch, shared_epoch, _others(db, scope, at, others))


def now(db: Database, scope: Scope, time: int) -> Snapshot:
    """Return a snapshot of the newest versions, for a chat that has none."""
    version, shared = _select_both(db, scope, _VERSION)
    further = _others(db, scope, time, _newest_versions(db, scope))
    return Snapshot(version, shared, time, *_select_both(db, scope, _EPOCH), further)


def _select_both(reader: Reader, scope: Scope, sql: str) -> tuple[int, int]:
    both, values = of_each(sql, (scope.space, scope.shared.space))
    (_, own), (_, shared) = sorted(reader.all(both, **values))
    return own, shared


def _newest_versions(reader: Reader, scope: Scope) -> str | None:
    """Return the newest versions of the other spaces, as JSON; None if there are no such spaces."""
    versions = {space: reader.all(_VERSION, space=space)[0][0] for space in _other_spaces(scope)}
    return json.dumps(versions) if versions else None


def _others(reader: Reader, scope: Scope, at: int, stored: str | None) -> tuple[tuple[str, int, int], ...]:
    """Return the other spaces with version and epoch; the version of a new one is that of the time."""
    with decoding("The snapshot of a chat"):
        versions = {space: int(version) for space, version in load_object(stored or "{}").items()}
        from_micros(at)  # as a prompt will do
    others = []
    for space in _other_spaces(scope):
        version = versions[space] if space in versions else records.version_at(reader, space, at)
        others.append((space, version, int(reader.all(_EPOCH, space=space)[0][0])))
    return tuple(others)


def _other_spaces(scope: Scope) -> tuple[str, ...]:
    return tuple(space for space in scope.spaces if space not in (scope.space, scope.shared.space))


def freeze(db: Database, scope: Scope, chat: str, time: int) -> None:
    """Take the snapshot of a chat that has none; do nothing for an unknown chat."""
    keys = {"space": scope.space, "chat": chat}
    if not db.all(_IS_THERE, **keys) and db.all(_EXISTS, **keys):
        _take(db, scope, chat, time, again=False)


def advance(db: Database, scope: Scope, chat: str, time: int) -> int:
    """Let a chat show the newest versions, and return that of its space."""
    return _take(db, scope, chat, time, again=True)


def follow(tx: Connection, scope: Scope, chat: str, version: int, time: int) -> None:
    """Let a chat that has a snapshot show its own changes, in the transaction that writes them."""
    if tx.all(_IS_THERE, space=scope.space, chat=chat):
        same = scope.shared.space == scope.space
        shared = version if same else tx.all(_VERSION, space=scope.shared.space)[0][0]
        _put(tx, scope, chat, version, shared, time)


@retry_transaction
def _take(db: Database, scope: Scope, chat: str, time: int, *, again: bool) -> int:
    with db.writing_to(scope.space) as tx:
        # The lock: a change with an earlier version is committed by now.
        version, shared = _select_both(tx, scope, _VERSION)
        is_missing = not tx.all(_IS_THERE, space=scope.space, chat=chat)
        if again or (is_missing and tx.all(_EXISTS, space=scope.space, chat=chat)):
            _put(tx, scope, chat, version, shared, time)
    return version


def _put(tx: Connection, scope: Scope, chat: str, version: int, shared: int, time: int) -> None:
    row: dict[str, Value] = {"space": scope.space, "chat": chat, "version": version, "shared": shared}
    row |= {"at": time, "others": _newest_versions(tx, scope)}
    table_rows.put(tx, "snapshots", {**row, "checksum": seal("snapshots", row, tx.key)})
