"""Writes of what is known, as a program calls them: of a `Memory`, and `remember` of a chat as well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, overload

from holdfast.errors import InvalidInput, shown
from holdfast.events import logged
from holdfast.records.draft import writer_of
from holdfast.records.reader import selection
from holdfast.safety.guard import mask
from holdfast.types import Record, Time, Writer, check_count, check_flag, check_name, check_several, is_whole
from holdfast.types.acting import current
from holdfast.types.handles import Handle

if TYPE_CHECKING:
    from holdfast.records.options import NewRecords, RecordFields, RecordFilters
    from holdfast.records.writing import RecordWriter


class Rememberer(Handle):
    """A handle that remembers: a `Memory`, or a `Chat`."""

    @property
    def _writer(self) -> RecordWriter:
        raise NotImplementedError

    @overload
    def remember(
        self,
        text: str,
        kind: str = "fact",
        *,
        by: Writer | None = None,
        target: str | None = None,
        category: str = "",
        tags: str | Iterable[str] = (),
        meta: Mapping[str, object] | None = None,
        priority: int | None = None,
        source: str = "",
        at: Time | None = None,
        since: Time | None = None,
        until: Time | None = None,
        chat: str | None = None,
        messages: int | tuple[int, int] | None = None,
        merge: bool | None = None,
        expected_version: int | None = None,
    ) -> Record: ...
    @overload
    def remember(
        self,
        text: NewRecords,
        kind: str = "fact",
        *,
        by: Writer | None = None,
        target: str | None = None,
        category: str = "",
        tags: str | Iterable[str] = (),
        meta: Mapping[str, object] | None = None,
        priority: int | None = None,
        source: str = "",
        at: Time | None = None,
        since: Time | None = None,
        until: Time | None = None,
        chat: str | None = None,
        messages: int | tuple[int, int] | None = None,
        merge: bool | None = None,
        expected_version: int | None = None,
    ) -> list[Record]: ...
    @logged
    def remember(
        self,
        text: str | NewRecords,
        kind: str = "fact",
        *,
        by: Writer | None = None,
        target: str | None = None,
        category: str = "",
        tags: str | Iterable[str] = (),
        meta: Mapping[str, object] | None = None,
        priority: int | None = None,
        source: str = "",
        at: Time | None = None,
        since: Time | None = None,
        until: Time | None = None,
        chat: str | None = None,
        messages: int | tuple[int, int] | None = None,
        merge: bool | None = None,
        expected_version: int | None = None,
    ) -> Record | list[Record]:
        """Store one thing that is known, or a list of them, all or none, and return what became of each.

        `record.action` is "add"; "duplicate" if a record said so already and now has more evidence; "update"
        of a record; "replace" of the one text of its kind, such as the profile; or "quarantine" of what looks
        like an order to the model, unless the user or the application wrote it. Credentials are cut out.

        Args:
            text: what is known. Items of a list are texts, or dicts with `text`, `kind` and fields of their
                own, which come before those of the call.
            kind: a row of `holdfast.kinds`, such as fact, note, constraint, profile or lesson.
            by: who writes; see `Memory`.
            target: what a fact is about, "user" (the default) or "env"; the compartment of a note, "session"
                or "plan".
            category: one word for what it belongs to.
            tags: words to find it by.
            meta: JSON values.
            priority: 1 to 10; of notes, the higher are shown first; None for that of the record whose place
                it takes, or 5.
            source: where it comes from, such as "GOAL:plan the trip".
            at: when it was said; None for the time of the last of its messages, or now.
            since: from when on it is true in the world.
            until: until when, exclusive.
            chat: the chat it was learned in; None for that of `acting_as`, or the one whose method it is. The
                next prompt of the chat shows it.
            messages: the `seq` of the message it was learned in, or of the first and the last one.
            merge: whether to compare it with what is there; None as its kind says, which is so for facts.
            expected_version: the version that you read of the one text of this kind; 0 for none.

        Raises:
            InvalidInput: something cannot be accepted, or the cap of the kind is reached; nothing was stored.
            Denied: this kind may not be written by this writer, as a constraint by anyone but the user.
            Conflict: the text has another version than `expected_version`.

        """
        fields: RecordFields = {"target": target, "category": category, "tags": tags, "meta": meta}
        fields |= {"priority": priority, "source": source, "chat": chat, "messages": messages}
        fields |= {"at": at, "since": since, "until": until}
        writer = self._writer
        if merge is not None:
            check_flag(merge, "merge")
        _check_version(expected_version)
        if isinstance(text, list | tuple):
            writer_of(by, "agent")
            drafts = [writer.draft_of(item, kind, fields) for item in text]
            return writer.write(drafts, by, merge=merge, expected=expected_version) if drafts else []
        draft = writer.draft(text, kind, **fields)
        return writer.write([draft], by, merge=merge, expected=expected_version)[0]


class RecordWrites(Rememberer):
    """The writes of a `Memory`."""

    @logged
    def replace(
        self,
        what: str,
        text: str,
        *,
        kind: str | None = None,
        by: Writer | None = None,
        category: str = "",
        tags: str | Iterable[str] = (),
        meta: Mapping[str, object] | None = None,
        priority: int | None = None,
        source: str = "",
        since: Time | None = None,
        until: Time | None = None,
        chat: str | None = None,
        messages: int | tuple[int, int] | None = None,
        expected_version: int | None = None,
    ) -> Record:
        """Replace the text of one record. It keeps its place in lists, and its former text in its history.

        Of fields that are left out it keeps its own.

        Args:
            what: the id of the record, or a part of its text in any case of letters, which must be in this
                one only; where several have it, the one whose whole text it is. "profile" and "soul" mean the
                one that `get` gives.
            text: the new text, in place of the whole old one.
            kind: look only among records of this kind.
            by: who writes; see `Memory`.
            category: one word for what it belongs to.
            tags: words to find it by.
            meta: JSON values.
            priority: 1 to 10.
            source: where it comes from.
            since: from when on it is true in the world.
            until: until when, exclusive.
            chat: the chat in which this happens.
            messages: the `seq` of the message of it, or of the first and the last one.
            expected_version: the version that you saw.

        Raises:
            InvalidInput: no record is meant, or several are, which the message shows; or the text cannot be
                accepted.
            Denied: this writer may not change it.
            Conflict: it has another version than `expected_version`.

        """
        fields: RecordFields = {"category": category, "tags": tags, "meta": meta}
        fields |= {"priority": priority, "source": source, "chat": chat, "messages": messages}
        fields |= {"since": since, "until": until}
        writer = self._writer
        draft = writer.draft(text, kind or "fact", **fields)
        _check_version(expected_version)
        intake = writer.intake(by, chat=draft.chat)
        # Loaded by the first revision.
        from holdfast.records import revision

        record = revision.replace_text(intake, what, draft, kind=kind, expected=expected_version)
        return writer.announce([record])[0]

    @logged
    def retract(
        self,
        what: str,
        *,
        kind: str | None = None,
        by: Writer | None = None,
        why: str = "",
        chat: str | None = None,
        expected_version: int | None = None,
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
        writer = self._writer
        reason = mask(check_name(why, "why", empty=True))
        _check_version(expected_version)
        intake = writer.intake(by, chat=writer.chat_or_current(chat))
        # Loaded by the first revision.
        from holdfast.records import revision

        record = revision.retract(intake, what, kind=kind, why=reason, expected=expected_version)
        return writer.announce([record])[0]

    @logged
    def pin(self, what: str | Record, *, kind: str | None = None, by: Writer | None = None) -> Record:
        """Pin a record: no rule of its kind lets it expire, and prompts show it first among its kind.

        It is a change, which `undo` takes back. Another text that takes the place of this one is pinned as
        well. A record that is pinned already stays as it is.

        Args:
            what: a record, its id, or a part of its text, as in `replace`.
            kind: look only among records of this kind.
            by: who pins it; see `Memory`.

        Raises:
            InvalidInput: no record is meant, or several are.
            Denied: this writer may not change it.

        """
        return self._pin(what, kind, by, "pin")

    @logged
    def unpin(self, what: str | Record, *, kind: str | None = None, by: Writer | None = None) -> Record:
        """End the pin of a record. What its kind lets expire has the whole time before it from now on.

        Args:
            what: a record, its id, or a part of its text, as in `replace`.
            kind: look only among records of this kind.
            by: who does it; see `Memory`.

        Raises:
            InvalidInput, Denied: as `pin`.

        """
        return self._pin(what, kind, by, "unpin")

    def _pin(
        self, what: str | Record, kind: str | None, by: Writer | None, action: Literal["pin", "unpin"]
    ) -> Record:
        writer = self._writer
        intake = writer.intake(by, chat=writer.chat_or_current(None))
        # Loaded by the first revision.
        from holdfast.records import revision

        named = what.id if isinstance(what, Record) else what
        return writer.announce([revision.pin(intake, named, kind=kind, action=action)])[0]

    @logged
    def resolve(
        self, *, keep: str | Record | Iterable[str | Record], by: Writer | None = None
    ) -> list[Record]:
        """Settle the conflicts of a record: it is kept, and what contradicts it is retracted, in one change.

        Of several that are kept all are true: only the conflicts between them end. `undo` takes it back.

        >>> for pair in memory.conflicts():
        ...     memory.resolve(keep=pair.shown)

        Args:
            keep: a record or its id, or several.
            by: who does it, the user unless another writer is named; see `Memory`.

        Raises:
            InvalidInput: what is to be kept is in no conflict.
            Denied: this writer may not remove what contradicts it.

        """
        named = [keep] if isinstance(keep, str | Record) else check_several(keep, "keep", "records")
        ids = [item.id if isinstance(item, Record) else check_name(item, "A record") for item in named]
        writer = self._writer
        # Loaded by the first that settles.
        from holdfast.records import conflicts

        return writer.announce(conflicts.resolve(writer.users_intake(by), list(dict.fromkeys(ids))))

    @logged
    def retract_all(
        self,
        *,
        kind: str | None = None,
        category: str | None = None,
        tags: str | Iterable[str] | None = None,
        target: str | None = None,
        chat: str | None = None,
        where: Mapping[str, object] | None = None,
        by: Writer | None = None,
    ) -> list[Record]:
        """Retract all records that meet all of the conditions, in one transaction, and return them.

        `undo` brings all of them back.

        Args:
            kind: records of this kind.
            category: records of this category.
            tags: records with one of these tags.
            target: what a fact is about, or the compartment of a note; a condition beside others only.
            chat: the chat they were learned in; a condition beside others only.
            where: a filter on `meta`; see `docs/filters.md`.
            by: who retracts them; see `Memory`.

        Raises:
            InvalidInput: there is no condition.
            Denied: one of them may not be removed by this writer; none was.

        """
        conditions: RecordFilters = {"kind": kind, "category": category, "tags": tags}
        conditions |= {"target": target, "chat": chat, "where": where}
        writer = self._writer
        if (kind, category, tags) == (None, None, None) and not where:
            raise InvalidInput(
                "No condition says what to retract.", "Pass kind=, category=, tags= or where=."
            )
        stored, passes = selection(writer.scope, writer.kinds, **conditions)
        # Loaded by the first revision.
        from holdfast.records import revision

        intake = writer.intake(by, chat=writer.chat_or_current(None))
        return writer.announce(revision.retract_all(intake, stored, passes))

    @logged
    def rollback(self, what: str, version: int, *, by: Writer | None = None) -> list[Record]:
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
        writer = self._writer
        check_name(what, "What is rolled back")
        if not is_whole(version):
            raise InvalidInput(f"{shown(version)} is not a version.", "Pass a number that `changes` shows.")
        # Loaded by the first that goes back.
        from holdfast.records import revision

        return writer.announce(revision.rollback(writer.users_intake(by), what, version))

    @logged
    def undo(self, *, by: Writer | None = None) -> list[Record]:
        """Undo the newest call that is not undone yet, whoever made it.

        A second `undo` undoes the call before. Each writes new versions, so nothing is lost. Where a chat was
        rewound, edited or switched last, it goes back to the branch before, and no record is returned.
        Without `by`, and outside of an `acting_as` that names a writer, what an agent may not change is left
        as it is.

        Args:
            by: who does it; see `Memory`.

        Raises:
            InvalidInput: there is nothing to undo.
            Denied: this writer may not change it, or nobody said that it is the user who wants a constraint
                back.

        """
        writer = self._writer
        # Loaded by the first that goes back.
        from holdfast.records import revision

        is_named = by is not None or current().source is not None
        return writer.announce(revision.undo(writer.users_intake(by), is_named=is_named))


def _check_version(expected: int | None) -> None:
    if expected is not None:
        check_count(expected, "expected_version")
