"""Records in quarantine: never recalled and in no prompt, until the user releases or discards them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from holdfast.records.reader import agents_of
from holdfast.store import records
from holdfast.store.records import NOW, RecordFilter
from holdfast.types import Record, Scope, Writer, check_name
from holdfast.types.handles import Handle

if TYPE_CHECKING:
    from holdfast.events import Events
    from holdfast.records.intake import Intake
    from holdfast.store.database import Database


class Quarantine(Handle):
    """The records that are in quarantine. `memory.quarantine`; iterate over it, the oldest record first.

    >>> for record in memory.quarantine:
    ...     print(record.id, record.flags, record.text)
    """

    def __init__(
        self, database: Database, scope: Scope, intake: Callable[[Writer | None], Intake], events: Events
    ) -> None:
        self._database = database
        self._scope = scope
        self._intake = intake
        self._events = events

    def __iter__(self) -> Iterator[Record]:
        wanted = RecordFilter(agents=agents_of(self._scope), run=None, trust=("quarantined",))
        return iter(records.read(self._database, self._scope.space, NOW.version, wanted))

    def release(self, id: str, *, to: str = "", by: Writer | None = None) -> Record:
        """Release a record from quarantine. If it was to replace another text, it does so now.

        Args:
            id: of the record.
            to: another space, such as "user" or "team:core", to which it goes in the same change, as by
                `Grants.move`; where it cannot, it stays in quarantine.
            by: who does it; see `Memory`.

        Raises:
            Denied: somebody else than the user wants it, or a right on the other space is missing.
            InvalidInput: there is no such record in quarantine, or no such space.
            Conflict: the other space has this text already.

        """
        # Loaded by the first that goes back.
        from holdfast.records import moving, revision

        intake, identity = self._intake(by), check_name(id, "The id of a record")
        if to:
            free = partial(revision.released, intake, identity)
            return moving.carry(intake, identity, to, self._events, free=free)
        return self._announced(revision.release(intake, identity))

    def release_all(self, *, chat: str | None = None, by: Writer | None = None) -> list[Record]:
        """Release all that is in quarantine, as one change to `undo`.

        Args:
            chat: only what was learned in this chat.
            by: who does it; see `Memory`.

        Raises:
            Denied: somebody else than the user wants it.
            InvalidInput: the id of the chat is no text.

        """
        # Loaded by the first that goes back.
        from holdfast.records import revision

        which = None if chat is None else check_name(chat, "The id of a chat")
        released = revision.release_all(self._intake(by), which)
        self._events.tell_of(self._scope, released)
        return released

    def discard(self, id: str, *, by: Writer | None = None) -> Record:
        """Retract a record that is in quarantine.

        Args:
            id: of the record.
            by: who does it; see `Memory`.

        Raises:
            Denied, InvalidInput: as `release`.

        """
        # Loaded by the first that goes back.
        from holdfast.records import revision

        return self._announced(revision.discard(self._intake(by), check_name(id, "The id of a record")))

    def _announced(self, written: Record) -> Record:
        self._events.tell_of(self._scope, [written])
        return written

    def __repr__(self) -> str:
        return f"Quarantine({self._scope})"
