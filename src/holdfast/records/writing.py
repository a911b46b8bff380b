"""Writes of records: remember, replace, retract, undo, roll back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from holdfast.errors import InvalidInput, shown
from holdfast.kinds import FEEDBACK
from holdfast.records.draft import RecordDraft
from holdfast.records.options import NewRecord, NewRecords, RecordFields
from holdfast.records.view import selection
from holdfast.records.writers import check_chat_id, writer_of
from holdfast.safety.guard import mask
from holdfast.types import (
    Hit,
    Record,
    Scope,
    Writer,
    check_count,
    check_flag,
    check_name,
    is_whole,
)
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
    """Write the records of a scope. `make_intake` makes what stores them: for a writer, in a chat."""

    database: Database
    scope: Scope
    kinds: Mapping[str, Kind]
    make_intake: Callable[[Scope, Writer, str], Intake]
    events: Events

    def remember(
        self,
        text: str | NewRecords,
        kind: str,
        *,
        by: Writer | None = None,
        merge: bool | None = None,
        expected_version: int | None = None,
        **fields: Unpack[RecordFields],
    ) -> Record | list[Record]:
        """Store one thing that is known, or a list of them, all or none, and return what became of each.

        `record.action` is "add"; "duplicate" if a record said so already and now has more evidence; "update"
        of a record; "replace" of the one text of its kind, such as the profile; or "quarantine" of what looks
        like an order to the model, unless the user or the application wrote it. Credentials are cut out.

        Args:
            text: what is known. Items of a list are texts, or dicts with `text`, `kind` and fields.
            kind: a row of `holdfast.kinds`, such as fact, note, constraint, profile or lesson.
            by: who writes; see `Memory`.
            merge: whether to compare it with what is there; None as its kind says, which is so for facts.
            expected_version: the version that you read of the one text of this kind; 0 for none.
            fields: see `RecordFields`.

        Raises:
            InvalidInput: something cannot be accepted, or the cap of the kind is reached; nothing was stored.
            Denied: this kind may not be written by this writer, as a constraint by anyone but the user.
            Conflict: the text has another version than `expected_version`.

        """
        if merge is not None:
            check_flag(merge, "merge")
        if expected_version is not None:
            check_count(expected_version, "expected_version")
        if isinstance(text, list | tuple):
            writer_of(by, "agent")
            drafts = [self._draft_of(item, kind, fields) for item in text]
            return self._write(drafts, by, merge=merge, expected=expected_version) if drafts else []
        draft = self.draft(text, kind, **fields)
        return self._write([draft], by, merge=merge, expected=expected_version)[0]

    def _draft_of(self, item: str | NewRecord, kind: str, fields: RecordFields) -> RecordDraft:
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

    def _write(
        self, drafts: list[RecordDraft], by: Writer | None, *, merge: bool | None, expected: int | None
    ) -> list[Record]:
        before = 0

        def note_version(changes: Writing) -> None:
            nonlocal before
            before = changes.version

        intake = self._intake(by, chat=drafts[0].chat)
        written = intake.remember(drafts, merge=merge, expected=expected, also=note_version)
        self.events.tell_of(self.scope, [record for record in written if record.version > before])
        return written

    def replace(
        self,
        what: str,
        text: str,
        *,
        kind: str | None = None,
        by: Writer | None = None,
        expected_version: int | None = None,
        **fields: Unpack[RecordFields],
    ) -> Record:
        """Replace the text of one record. It keeps its place in lists, and its former text in its history.

        Args:
            what: the id of the record, or a part of its text in any case of letters, which must be in this
                one only; where several have it, the one whose whole text it is. "profile" and "soul" mean the
                one that `get` gives.
            text: the new text, in place of the whole old one.
            kind: look only among records of this kind.
            by: who writes; see `Memory`.
            expected_version: the version that you saw.
            fields: as in `remember`; left out, all stay as they were.

        Raises:
            InvalidInput: no record is meant, or several are, which the message shows; or the text cannot be
                accepted.
            Denied: this writer may not change it.
            Conflict: it has another version than `expected_version`.

        """
        draft = self.draft(text, kind or "fact", **fields)
        if expected_version is not None:
            check_count(expected_version, "expected_version")
        intake = self._intake(by, chat=draft.chat)
        # Loaded by the first revision.
        from holdfast.records import revision

        record = revision.replace_text(intake, what, draft, kind=kind, expected=expected_version)
        return self._announced([record])[0]

    def retract(
        self,
        what: str,
        *,
        kind: str | None,
        by: Writer | None,
        why: str,
        chat: str | None,
        expected_version: int | None,
    ) -> Record:
        """Retract one record: no list, recall or prompt shows it any more, but the history does.

        Args:
            what: its id, a part of its text, or "profile" or "soul", as in `replace`.
            kind: look only among records of this kind.
            by: who retracts it; see `Memory`.
            why: the reason, for the history; credentials are cut out of it.
            chat: the chat in which this happens.
            expected_version: the version that you saw.

        Raises:
            InvalidInput: no record is meant, or several are.
            Denied: this writer may not remove it.
            Conflict: it has another version than `expected_version`.

        """
        reason = mask(check_name(why, "why", empty=True))
        if expected_version is not None:
            check_count(expected_version, "expected_version")
        intake = self._intake(by, chat=self.chat_or_current(chat))
        # Loaded by the first revision.
        from holdfast.records import revision

        record = revision.retract(intake, what, kind=kind, why=reason, expected=expected_version)
        return self._announced([record])[0]

    def retract_all(
        self,
        *,
        kind: str | None,
        category: str | None,
        tags: Iterable[str] | None,
        target: str | None,
        chat: str | None,
        where: Mapping[str, object] | None,
        by: Writer | None,
    ) -> list[Record]:
        """Retract all records that meet all of the conditions, in one transaction, and return them.

        Of tags, one is enough. `undo` brings all of them back.

        Raises:
            InvalidInput: there is no condition.
            Denied: one of them may not be removed by this writer; none was.

        """
        if kind is None and category is None and tags is None and not where:
            raise InvalidInput(
                "No condition says what to retract.", "Pass kind=, category=, tags= or where=."
            )
        stored, passes = selection(
            self.scope,
            self.kinds,
            kind=kind,
            category=category,
            tags=tags,
            target=target,
            chat=chat,
            where=where,
        )
        # Loaded by the first revision.
        from holdfast.records import revision

        intake = self._intake(by, chat=self.chat_or_current(None))
        return self._announced(revision.retract_all(intake, stored, passes))

    def rollback(self, what: str, version: int, *, by: Writer | None) -> list[Record]:
        """Write again, as new versions, what a record or all records of a kind were at a version.

        Of the profile and the soul that is the one that `at(version).get` gives; where there was none, what
        is there is taken back. What the tenant shares is left as it is.

        Args:
            what: the id of a record, or a kind.
            version: of the space, as `changes` and `version` give them; 0 is before the first.
            by: who does it; see `Memory`.

        Raises:
            InvalidInput: there is no such record or version.
            Denied: this writer may not change it, as an agent a constraint.

        """
        check_name(what, "What is rolled back")
        if not is_whole(version):
            raise InvalidInput(f"{shown(version)} is not a version.", "Pass a number that `changes` shows.")
        # Loaded by the first that goes back.
        from holdfast.records import revision

        return self._announced(revision.rollback(self.users_intake(by), what, version))

    def undo(self, *, by: Writer | None) -> list[Record]:
        """Undo the newest call that is not undone yet, whoever made it.

        A second `undo` undoes the call before. Each writes new versions, so nothing is lost. Without
        `by`, and outside of an `acting_as` that names a writer, what an agent may not change is left as it
        is.

        Raises:
            InvalidInput: there is nothing to undo.
            Denied: this writer may not change it, or nobody said that it is the user who wants a constraint
                back.

        """
        # Loaded by the first that goes back.
        from holdfast.records import revision

        is_named = by is not None or current().source is not None
        return self._announced(revision.undo(self.users_intake(by), is_named=is_named))

    def note(self, text: str, *, run: str, by: Writer | None, **fields: Unpack[RecordFields]) -> Record:
        """Store a note of a run; see `Run.remember`."""
        fields["target"] = "run"
        draft = self.draft(text, "note", run=run, **fields)
        return self._intake(by).remember([draft])[0]

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
        return self._announced(self._intake(by, "user").remember([draft]))[0]

    def change_note(self, what: str, text: str | None, *, run: str, by: Writer | None) -> Record:
        """Replace the text of a note of a run, or retract it if there is no new text."""
        # Loaded by the first revision.
        from holdfast.records import revision

        if text is None:
            return revision.retract(self._intake(by), what, kind="note", run=run)
        draft = self.draft(text, "note", target="run", run=run)
        return revision.replace_text(self._intake(by), what, draft, kind="note")

    def draft(self, text: str, kind: str, *, run: str = "", **fields: Unpack[RecordFields]) -> RecordDraft:
        """Return a draft in this scope, and in the chat of `acting_as` by default."""
        source = check_name(fields.get("source", ""), "The source", empty=True)
        chat = self.chat_or_current(fields.get("chat"))
        own = {"source": source, "chat": chat, "agent": self.scope.agent, "run": run}
        return replace(RecordDraft(text, kind), **cast("dict[str, Any]", {**fields, **own}))

    def _announced(self, written: list[Record]) -> list[Record]:
        """Notify observers of records that were written, and return them."""
        self.events.tell_of(self.scope, written)
        return written

    def chat_or_current(self, chat: str | None) -> str:
        """Return the id of a chat, checked; of the current one, or "", if there is none."""
        name = current().chat if chat is None else check_name(chat, "The id of a chat")
        return check_chat_id(self.database, self.scope, name)

    def users_intake(self, by: Writer | None) -> Intake:
        """Return what writes for the user, unless another writer is named."""
        return self._intake(by, "user", self.chat_or_current(None))

    def _intake(self, by: Writer | None, default: Writer = "agent", chat: str = "") -> Intake:
        """Return what writes. The prompts of the chat that is named show at once what is not learned."""
        writer = writer_of(by, default)
        return self.make_intake(self.scope, writer, chat if writer in ("user", "agent", "tool") else "")
