"""Grants: which users may read or write the spaces of others, and records that go from one to another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING

from holdfast.errors import Denied, InvalidInput, shown
from holdfast.records import moving
from holdfast.safety.guard import mask
from holdfast.store import grants, sessions
from holdfast.store.database import decoding, retry_transaction
from holdfast.store.message_rows import from_micros
from holdfast.types import Record, Scope, Writer, check_name
from holdfast.types.grants import RIGHTS, Grant, Rights
from holdfast.types.handles import Handle

if TYPE_CHECKING:
    from holdfast.records.writing import RecordWriter
    from holdfast.store.database import Database


class Grants(Handle):
    """The rights that users have on spaces of others. `memory.grants`; iterate over it, by space.

    A user grants what is the user's: the own space and its projects. What is a team's, or all users share, is
    granted by the application: a handle without a user, or one that may act for others (`admin`). It sees all
    grants of the tenant, a user those on the own spaces and the own rights on others. `changes` of a space
    lists its grants, who made them and when, also those that were revoked since. `check_scope` raises Denied
    where this handle may not act for all users.

    >>> memory.grants.add("project:shop", to="user:bob")
    Grant(space='project:shop', to='user:bob', rights='read', ...)
    """

    def __init__(
        self,
        database: Database,
        writer: RecordWriter,
        check_scope: Callable[[Scope | None], None],
        *,
        admin: bool,
    ) -> None:
        # Not that of the writer, which lets nobody without a right on a space give one.
        self._database, self._scope, self._writer = database, writer.scope, writer
        self._check_scope, self._for_all = check_scope, admin or not writer.scope.user

    def __iter__(self) -> Iterator[Grant]:
        # Read to the end: whoever stops half way, or revokes what is iterated over, leaves no read open.
        return iter(self._all())

    def _all(self) -> list[Grant]:
        database = self._database
        first = (self._scope.shared if self._for_all else self._scope.owner).space
        with database.one_read():
            spaces = [first, *sessions.spaces_below(database, first if self._for_all else f"{first}/")]
            rights = [(space, row) for space in spaces for row in grants.current(database, space)]
            if not self._for_all:
                held = grants.rights_of(database, self._scope.shared.space, self._scope.user)
                rights += [right for right in held if not self._manages(right[0])]
        return [self._grant(*right) for right in sorted(rights, key=itemgetter(0))]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def add(
        self, space: str, *, to: str, rights: Rights = "read", why: str = "", by: Writer | None = None
    ) -> Grant:
        """Grant a user a right on a space, in place of the one that this user has there.

        Args:
            space: a reference as in `reads`: "project:shop", "user", "team:core", "tenant".
            to: the user, as "user:bob".
            rights: "read", or "write", which covers it.
            why: the reason, for the history; credentials are cut out of it.
            by: who does it; see `Memory`.

        Raises:
            InvalidInput: one of them is no reference, or no right.
            Denied: the space is not this user's to grant.

        """
        if rights not in RIGHTS:
            raise InvalidInput(f"`rights` is {shown(rights)}.", "Use 'read' or 'write'.")
        (granted,) = self._put(space, to, rights, why, by)[1]
        return granted

    def revoke(self, space: str, *, to: str, why: str = "", by: Writer | None = None) -> bool:
        """Take back what a user may do with a space, and return whether there was such a right.

        It ends at once, in handles that are open and in other processes; the history keeps it.

        Args:
            space, to, why, by: as for `add`.

        """
        return self._put(space, to, None, why, by)[0]

    def move(self, id: str, to: str, *, by: Writer | None = None) -> Record:
        """Move a record from the nearest space that has it to another one, and return it as it is there.

        It is taken back here and new there, with its text, kind, labels and author; each space has the
        change, and the history here stays. `undo`, in either space, takes both back. Both must be writable.

        Args:
            id: of the record.
            to: the space, as in `reads`.
            by: who does it; see `Memory`.

        Raises:
            InvalidInput: there is no such record, or it is there already.
            Denied: a right is missing.
            Conflict: the other space has this text, or one of a kind that it has only one of.

        """
        return self._carry(id, to, by, keep=False)

    def copy(self, id: str, to: str, *, by: Writer | None = None) -> Record:
        """Copy a record to another space, as `move` does, but leave it here; `undo` there takes it back.

        Args:
            id, to, by: as for `move`.

        """
        return self._carry(id, to, by, keep=True)

    def projects(self) -> list[str]:
        """Name the projects of this user of which something is stored."""
        return sessions.projects(self._database, self._scope)

    def users(self) -> list[str]:
        """Name the users of this tenant of whom something is stored; "" stands for what all of them share."""
        self._check_scope(None)
        return sessions.users(self._database, self._scope)

    def _carry(self, id: str, to: str, by: Writer | None, *, keep: bool) -> Record:
        intake, identity = self._writer.users_intake(by), check_name(id, "The id of a record")
        return moving.carry(intake, identity, to, self._writer.events, keep=keep)

    @retry_transaction
    def _put(
        self, space: str, to: str, rights: Rights | None, why: str, by: Writer | None
    ) -> tuple[bool, list[Grant]]:
        """Store a right, and return whether that changed anything, and what the user has there now."""
        place, user = self._scope.named(space).space, self._grantee(to)
        if not self._manages(place):
            raise Denied(
                f"The space {self._scope.reference(place)!r} is not this user's to grant.",
                "Ask its owner, or use a handle that names no user.",
            )
        reason, intake = mask(check_name(why, "why", empty=True)), self._writer.users_intake(by)
        with self._database.writing_to(place) as tx:
            changed = grants.put(
                tx, place, user, rights, by=intake.by, actor=self._scope.user, at=intake.now, why=reason
            )
            return changed, [self._grant(place, row) for row in grants.current(tx, place, user)]

    def _manages(self, space: str) -> bool:
        own = self._scope.owner.space
        return self._for_all or space == own or space.startswith(f"{own}/")

    def _grantee(self, to: str) -> str:
        other = self._scope.named(to)
        if not other.user or other.project:
            raise InvalidInput(f"`to` is {shown(to)}, which is no user.", "Pass 'user:NAME'.")
        return other.user

    def _grant(self, space: str, row: grants.GrantRow) -> Grant:
        tenant = self._scope.tenant
        to = Scope(tenant).reference(Scope(tenant, row.grantee).space)
        with decoding(f"A grant to {to!r}"):
            at = from_micros(row.at)
            return Grant(self._scope.reference(space), to, row.rights, row.actor, at, row.why)

    def __repr__(self) -> str:
        return f"Grants({self._scope})"
