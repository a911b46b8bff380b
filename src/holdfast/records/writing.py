"""Writes of records: remember, replace, retract, undo, roll back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from holdfast.errors import InvalidInput, shown
from holdfast.kinds import FEEDBACK
from holdfast.records.draft import RecordDraft, check_chat_id, writer_of
from holdfast.records.options import NewRecord, RecordFields
from holdfast.types import Hit, Record, Scope, Writer, check_flag, check_name
from holdfast.types.acting import current

if TYPE_CHECKING:
    from typing import Unpack

    from holdfast.events import Events
    from holdfast.kinds import Kind
    from holdfast.records.intake import Intake
    from holdfast.store.database import Database
    from holdfast.store.record_changes import Writing


@dataclass(frozen=True, slots=True)
class RecordWriter:
    """Write the records of a scope; `RecordWrites` has what a program calls.

    `make_intake` makes an intake for a writer in a chat. `chat` is the chat of all these records, "" for any.
    """

    database: Database
    scope: Scope
    kinds: Mapping[str, Kind]
    make_intake: Callable[[Scope, Writer, str], Intake]
    events: Events
    chat: str = ""

    def draft_of(self, item: str | NewRecord, kind: str, fields: RecordFields) -> RecordDraft:
        """Return the draft of an item of a list; its own fields come before those of the call."""
        if not isinstance(item, Mapping):
            return self.draft(item, kind, **fields)
        given: dict[str, object] = {"kind": kind, **fields, **item}
        if unknown := given.keys() - NewRecord.__annotations__.keys() - RecordFields.__annotations__.keys():
            raise InvalidInput(
                f"A record has no field {shown(min(map(str, unknown)))}.",
                f"Use {', '.join(('text', 'kind', *RecordFields.__annotations__))}.",
            )
        return self.draft(**cast("NewRecord", {"text": None, **given}))

    def write(
        self, drafts: list[RecordDraft], by: Writer | None, *, merge: bool | None, expected: int | None
    ) -> list[Record]:
        """Store drafts in one transaction, and notify observers of what is new."""
        before = 0

        def note_version(changes: Writing) -> None:
            nonlocal before
            before = changes.version

        intake = self.intake(by, chat=drafts[0].chat)
        written = intake.remember(drafts, merge=merge, expected=expected, also=note_version)
        self.events.tell_of(self.scope, [record for record in written if record.version > before])
        return written

    def note(self, text: str, *, run: str, by: Writer | None, **fields: Unpack[RecordFields]) -> Record:
        """Store a note of a run; see `Run.remember`."""
        draft = self.draft(text, "note", run=run, **fields)
        return self.intake(by).remember([draft])[0]

    def feedback(self, hit: Hit, query: str, *, helpful: bool, by: Writer | None) -> Record:
        """Store whether a hit helped to answer a query, for the user unless another writer is named.

        It belongs to the messages of this space that the hit is or was learned from, and to its record: an
        erasure of either takes it along. No search reads it.
        """
        check_flag(helpful, "helpful")
        if not isinstance(query, str):
            raise InvalidInput(f"A query must be text, not {type(query).__name__}.", "Pass a string.")
        question = query.strip()
        # The own chat of this name, if there is one, is another.
        chat = hit.chat if hit.space in ("", self.scope.reference(self.scope.space)) else ""
        draft = self.draft(
            question or hit.id,
            FEEDBACK,
            chat=chat or None,
            messages=(hit.seq, max(hit.seq, hit.last_seq)) if chat and hit.seq else None,
            meta={"helpful": helpful, "asked": bool(question), "hit": hit.source, "of": [hit.id]},
        )
        # Not the intake of the chat, whose prompts would show what was learned since they began.
        return self.announce(self.intake(by, "user").remember([draft]))[0]

    def change_note(self, what: str, text: str | None, *, run: str, by: Writer | None) -> Record:
        """Replace the text of a note of a run, or retract it if there is no new text."""
        # Loaded by the first revision.
        from holdfast.records import revision

        if text is None:
            return revision.retract(self.intake(by), what, kind="note", run=run)
        draft = self.draft(text, "note", target="run", run=run)
        return revision.replace_text(self.intake(by), what, draft, kind="note")

    def draft(self, text: str, kind: str, *, run: str = "", **fields: Unpack[RecordFields]) -> RecordDraft:
        """Return a draft in this scope, and in the chat of `acting_as` by default."""
        source = check_name(fields.get("source", ""), "The source", empty=True)
        chat = self.chat_or_current(fields.get("chat"))
        own = {"source": source, "chat": chat, "agent": self.scope.agent, "run": run}
        return replace(RecordDraft(text, kind), **cast("dict[str, Any]", {**fields, **own}))

    def announce(self, written: list[Record]) -> list[Record]:
        """Notify observers of records that were written, and return them."""
        self.events.tell_of(self.scope, written)
        return written

    def chat_or_current(self, chat: str | None) -> str:
        """Return the id of a chat, checked; of the current one, or "", if there is none."""
        name = (self.chat or current().chat) if chat is None else check_name(chat, "The id of a chat")
        if self.chat and name != self.chat:
            raise InvalidInput(f"`chat` is {shown(name)}.", "Leave it out, or call `Memory.remember`.")
        return check_chat_id(self.database, self.scope, name)

    def users_intake(self, by: Writer | None) -> Intake:
        """Return an intake that writes for the user, unless another writer is named."""
        return self.intake(by, "user", self.chat_or_current(None))

    def intake(self, by: Writer | None, default: Writer = "agent", chat: str = "") -> Intake:
        """Return an intake for a writer. Prompts of the named chat show at once what is not learned."""
        writer = writer_of(by, default)
        return self.make_intake(self.scope, writer, chat if writer in ("user", "agent", "tool") else "")
