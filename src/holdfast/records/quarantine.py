"""Records in quarantine: never recalled and in no prompt, until the user releases or discards them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from holdfast.records.view import agents_of
from holdfast.store import records
from holdfast.store.records import NOW, RecordFilter
from holdfast.types import Record, Scope, Writer, check_name

if TYPE_CHECKING:
    from holdfast.events import Events
    from holdfast.records.intake import Intake
    from holdfast.store.database import Database


class Quarantine:
    """The records that are in quarantine. `memory.quarantine`; iterate over it, the oldest record first.

    >>> for record in memory.quarantine:
    ...     print(record.id, record.flags, record.text)
    """

    def __init__(
        self,
        database: Database,
        scope: Scope,
        intake: Callable[[Writer | None], Intake],
        events: Events,
    ) -> None:
        self._database = database
        self._scope = scope
        self._intake = intake
        self._events = events

    def __iter__(self) -> Iterator[Record]:
        wanted = RecordFilter(agents=agents_of(self._scope), run=None, trust=("quarantined",))
        return iter(records.read(self._database, self._scope.space, NOW.version, wanted))

    def release(self, id: str, *, by: Writer | None = None) -> Record:
        """Release a record from quarantine. If it was to replace another text, it does so now.

        Raises:
            Denied: somebody else than the user wants it.
            InvalidInput: there is no such record in quarantine.

        """
        # Loaded by the first that goes back.
        from holdfast.records import revision

        return self._announced(revision.release(self._intake(by), check_name(id, "The id of a record")))

    def release_all(self, *, chat: str | None = None, by: Writer | None = None) -> list[Record]:
        """Release all that is in quarantine, or what was learned in one chat, as one change to `undo`.

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
