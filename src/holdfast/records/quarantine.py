"""Records in quarantine: never recalled and in no prompt, until the user releases or discards them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from holdfast.records.reader import agents_of
from holdfast.store import records
from holdfast.store.records import NOW, RecordFilter
from holdfast.types import Record, Writer, check_name
from holdfast.types.handles import Handle

if TYPE_CHECKING:
    from holdfast.records.writing import RecordWriter


class Quarantine(Handle):
    """The records that are in quarantine. `memory.quarantine`; iterate over it, the oldest record first.

    >>> for record in memory.quarantine:
    ...     print(record.id, record.flags, record.text)
    """

    def __init__(self, writer: RecordWriter) -> None:
        self._writer, self._scope = writer, writer.scope

    def __iter__(self) -> Iterator[Record]:
        wanted = RecordFilter(agents=agents_of(self._scope), run=None, trust=("quarantined",))
        return iter(records.read(self._writer.database, self._scope.space, NOW.version, wanted))

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

        intake, identity = self._writer.users_intake(by), check_name(id, "The id of a record")
        if to:
            free = partial(revision.release_within, intake, identity)
            return moving.carry(intake, identity, to, self._writer.events, free=free)
        return self._writer.announce([revision.release(intake, identity)])[0]

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
        return self._writer.announce(revision.release_all(self._writer.users_intake(by), which))

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

        intake, identity = self._writer.users_intake(by), check_name(id, "The id of a record")
        return self._writer.announce([revision.discard(intake, identity)])[0]

    def __repr__(self) -> str:
        return f"Quarantine({self._scope})"
