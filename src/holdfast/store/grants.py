"""Grants: the rights that users have on spaces of others, checked where they are used."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

from holdfast import types
from holdfast.errors import Denied
from holdfast.store import table_rows
from holdfast.store.checksums import resealing, seal
from holdfast.store.database import decoding, first_value, matching
from holdfast.store.message_rows import from_micros
from holdfast.types import MAX_COUNT
from holdfast.types.scope import scope_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.store.database import Connection, Reader, Value
    from holdfast.types import Change, Scope, Writer
    from holdfast.types.grants import Rights

_RIGHTS = "SELECT rights FROM grants WHERE space = :space AND grantee = :grantee AND ended = :open"
_CURRENT = """
    SELECT number, grantee, rights, actor, at, why FROM grants
    WHERE space = :space AND ended = :open AND rights <> ''"""
# The names of a tenant's spaces begin with that of its shared space, which ends with a slash; 0 follows it.
_HELD = """
    SELECT space, number, grantee, rights, actor, at, why FROM grants
    WHERE space >= :shared AND space < :end AND grantee = :grantee AND ended = :open AND rights <> ''"""
_CHANGES = """
    SELECT g.id, g.grantee, b.rights, g.rights, g.writer, g.actor, g.at, g.why FROM grants g
    LEFT JOIN grants b ON b.space = g.space AND b.grantee = g.grantee AND b.ended = g.number
    WHERE g.space = :space AND g.grantee <> '' ORDER BY g.number DESC"""
_MISPLACED = """
    SELECT id, number FROM grants g WHERE space = :space AND ended <> coalesce((
        SELECT min(number) FROM grants n
        WHERE n.space = :space AND n.grantee = g.grantee AND n.number > g.number), :open)
    ORDER BY number"""
_NUMBERS = "SELECT number, grantee, why FROM grants WHERE space = :space"
_FORGET = "DELETE FROM grants WHERE space = :space AND grantee = :grantee"
_NEWEST = "SELECT coalesce(max(number), 0) FROM grants WHERE space = :space"
_END = """
    UPDATE grants SET ended = :number WHERE space = :space AND grantee = :grantee AND ended = :open"""


class GrantRow(NamedTuple):
    """A right that a user has on a space, who granted it and when."""

    number: int
    grantee: str
    rights: Rights
    actor: str
    at: int
    why: str


def check(reader: Reader, scope: Scope, space: str, needed: Rights = "read") -> None:
    """Raise Denied unless a scope may read or write a space, as of the transaction of the reader.

    A user's own space, its projects and, for reading, what the tenant shares need no grant; a scope without
    a user acts for its tenant. Nothing crosses tenants.
    """
    if not may(reader, scope, needed, space):
        raise Denied(
            f"User {scope.acting!r} may not {needed} the space {scope.reference(space)!r}.",
            "Ask its owner for the right, or the application for that of a team.",
        )


def may(reader: Reader, scope: Scope, needed: Rights = "read", space: str | None = None) -> bool:
    """Return whether a scope may read or write a space, see `check`; by default its own."""
    space = scope.space if space is None else space
    if scope.is_own(space) and (needed == "read" or not scope.acting or space != scope.shared.space):
        return True
    if not scope.acting or scope_of(space).tenant != scope.tenant:
        return False
    rights = first_value(reader, str, _RIGHTS, space=space, grantee=scope.acting, open=MAX_COUNT)
    return rights == "write" or (rights == "read" and needed == "read")


def current(reader: Reader, space: str, grantee: str | None = None) -> list[GrantRow]:
    """Return the rights of others on a space, or those of one user, in the order of their grants."""
    condition, values = matching({"grantee": grantee}, {})
    rows = reader.all(f"{_CURRENT}{condition} ORDER BY number", space=space, open=MAX_COUNT, **values)
    return [GrantRow(*row) for row in rows]


def rights_of(reader: Reader, shared: str, grantee: str) -> list[tuple[str, GrantRow]]:
    """Return the rights of a user in a tenant, each with its space; `shared` is the space of the tenant."""
    end = f"{shared.removesuffix('/')}0"
    rows = reader.all(_HELD, shared=shared, end=end, grantee=grantee, open=MAX_COUNT)
    return [(space, GrantRow(*row)) for space, *row in rows]


def forget(tx: Connection, space: str, grantee: str) -> int:
    """Delete all grants of an erased user on a space, and return their number.

    A row without a user keeps their numbers, so that none can be put back or removed unnoticed.
    """
    numbers = [str(number) for number, whose, _ in tx.all(_NUMBERS, space=space) if whose == grantee]
    if numbers:
        _add(tx, space, "", rights="", writer="app", actor="", at=0, why=" ".join(numbers))
        tx.all(_FORGET, space=space, grantee=grantee)
    return len(numbers)


def put(
    tx: Connection,
    space: str,
    grantee: str,
    rights: Rights | None,
    *,
    by: Writer,
    actor: str,
    at: int,
    why: str,
) -> bool:
    """Store the rights that a user has from now on, None for none; return whether that is a change."""
    held = first_value(tx, str, _RIGHTS, space=space, grantee=grantee, open=MAX_COUNT)
    if (held or "") == (rights or ""):
        return False
    _add(tx, space, grantee, rights=rights or "", writer=by, actor=actor, at=at, why=why)
    return True


def _add(tx: Connection, space: str, grantee: str, **fields: Value) -> None:
    number = int(tx.all(_NEWEST, space=space)[0][0]) + 1
    with resealing(
        tx, "grants", space, "grantee = :grantee AND ended = :open", grantee=grantee, open=MAX_COUNT
    ):
        tx.all(_END, space=space, grantee=grantee, number=number, open=MAX_COUNT)
    row: dict[str, Value] = {"space": space, "number": number, "ended": MAX_COUNT, "grantee": grantee}
    row |= {"id": f"gra_{number:08x}{random.getrandbits(32):08x}", **fields}
    table_rows.add(tx, "grants", {**row, "checksum": seal("grants", row, tx.key)})


def defects(db: Reader, space: str) -> Iterator[str]:
    """Iterate over defects: grants that do not end where the next begins, are missing or were put back."""
    for identity, number in db.all(_MISPLACED, space=space, open=MAX_COUNT):
        yield f"the grant {identity!r}, number {number}, does not end where the next one begins"
    rows = db.all(_NUMBERS, space=space)
    forgotten = {number for _, grantee, why in rows if not grantee for number in why.split()}
    if len(forgotten ^ {str(number) for number, *_ in rows}) != max((row[0] for row in rows), default=0):
        yield "a grant is missing, or was put back after its user was erased"


def changes(db: Reader, space: str) -> Iterator[Change]:
    """Iterate over the grants of a space and their revocations as changes, the newest first."""
    for identity, grantee, before, after, by, actor, at, why in db.all(_CHANGES, space=space):
        with decoding(f"The grant {identity!r}"):
            moment = from_micros(at)
        told = f"to user {grantee!r} by {f'user {actor!r}' if actor else 'the application'}"
        yield types.Change(
            version=0,
            action="grant" if after else "revoke",
            kind="grant",
            id=identity,
            before=before or None,
            after=after or None,
            by=by,
            chat="",
            at=moment,
            why=f"{told}: {why}" if why else told,
        )
