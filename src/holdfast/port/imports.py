"""What an import asks a memory about, and stores in it beside messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import Conflict, InvalidInput
from holdfast.records.draft import check_text
from holdfast.runtime import runtime_of
from holdfast.safety import guard
from holdfast.store import imports, log, sessions
from holdfast.store.records import versions_by_source
from holdfast.store.sessions import ChatLabel, check_label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.memory import Memory
    from holdfast.records.options import NewRecord
    from holdfast.store.record_changes import Writing
    from holdfast.types import Message, Record, ToolCall


class StoredMeanwhile(Conflict):
    """Another import stored some of the same records since they were looked up. Look them up again."""


class Imports:
    """The imports into a memory, of its agent; a memory that stores nothing has none."""

    def __init__(self, memory: Memory) -> None:
        self._runtime, self._scope = runtime_of(memory), memory.scope
        self._space = memory.scope.space
        self._database = self._runtime.database_of(memory.scope) if self._runtime else None
        self.stores = self._database is not None

    # Files ------------------------------------------------------------------------------------------------

    def account(self, file: str, digest: str) -> str | None:
        """Return the account of a file that was imported with this content; None if there is none."""
        return imports.find(self._database, self._space, file, digest) if self._database else None

    def note(self, file: str, digest: str, account: str) -> None:
        """Note the account of a file, in place of that of its earlier content."""
        if self._database:
            imports.note(self._database, self._space, file, digest, account)

    def note_known_texts(self, texts: Sequence[str]) -> None:
        """Note the texts that a client shows its model anyway, in place of those known until now."""
        if self._database:
            imports.note_known_texts(self._database, self._space, texts)

    # Messages ---------------------------------------------------------------------------------------------

    def beginnings(self) -> Mapping[tuple[str, str], Sequence[str]]:
        """Return the chats of the agent by the ids of their first two messages."""
        return imports.beginnings(self._database, self._scope) if self._database else {}

    def chats_with(self, id: str) -> set[str]:
        """Return the chats with a message of this id, which its writer gave it."""
        return set(sessions.with_message(self._database, self._space, id)) if self._database else set()

    def find(self, chat: str, ids: Sequence[str]) -> list[Message]:
        """Return the messages of a chat with these ids."""
        return log.by_ids(self._database, self._space, chat, ids) if self._database else []

    def call(self, chat: str, call: str) -> ToolCall | None:
        """Return a call of a chat by its id; None if no message made it."""
        return log.call_of(self._database, self._space, chat, call) if self._database else None

    def title_of(self, text: str) -> str:
        """Return the title that a message of the user gives a chat; "" for none."""
        return log.title_of(text)

    def relabel(self, chat: str, label: ChatLabel) -> None:
        """Store the channel, the metadata and the time of creation of a chat; see `check_label`."""
        if self._database:
            sessions.relabel(self._database, self._space, chat, label)

    # Records ----------------------------------------------------------------------------------------------

    def versions(self, sources: Sequence[str]) -> Mapping[str, Sequence[Record]]:
        """Return all versions of the records that were imported from some sources, the oldest first."""
        return versions_by_source(self._database, self._space, sources) if self._database else {}

    def remember(self, records: Sequence[NewRecord], sources: Sequence[str]) -> list[Record]:
        """Store records of new sources, all or none, without a comparison with what is known.

        Raises:
            StoredMeanwhile: a record of one of the sources is there.
            InvalidInput, Denied, Conflict: one cannot be stored.

        """
        if self._runtime is None:
            return []

        def check_new(changes: Writing) -> None:
            if versions_by_source(changes.tx, changes.space, sources):
                raise StoredMeanwhile("Another import stored the same records.", "Import the file again.")

        writer = self._runtime.writer(self._scope)
        drafts = [writer.draft(**record) for record in records]
        intake = writer.make_intake(self._scope, "import", "")
        written = intake.remember(drafts, merge=False, also=check_new)
        self._runtime.events.tell_of(self._scope, written)
        return written


def stored_text(text: str) -> str:
    """Return the text of a record as it is stored; the same text if it cannot be."""
    try:
        checked = check_text(text)
    except InvalidInput:
        return text
    return guard.redact(checked, guard.scan(checked))
