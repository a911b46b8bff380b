"""What an agent knows: remember, change, take back, and go back. The part of `Memory` that writes records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.errors import Denied, InvalidInput, Unavailable, shown
from holdfast.kinds import FIL
from holdfast.logs import logged
from holdfast.records.draft import RecordDraft, allow, policy
from holdfast.records.view import View, place, selection
from holdfast.safety.guard import check_name_is_open, mask, mask_name
from holdfast.store import erasure, erasure_receipts, records, sessions
from holdfast.store.records import NOW, RecordFilter
from holdfast.types import (
    Erasure,
    Record,
    Scope,
    Time,
    Writer,
    check_count,
    check_flag,
    check_name,
    is_whole,
)
from holdfast.types.acting_as import check_writer, current

if TYPE_CHECKING:
    from holdfast.records.intake import Intake
    from holdfast.store.record_changes import Writing


class Knowledge(View):
    """Read and write what is known. A part of `Memory`."""

    _admin = False

    def _check_scope(self, scope: Scope | None) -> None:
        """Raise Denied where a handle of one user would act for another; None stands for all users."""
        own = self._bound
        if not own.user or self._admin or (scope is not None and scope.space == own.space):
            return
        whom = "all users" if scope is None else f"tenant {scope.tenant!r}, user {scope.user!r}"
        raise Denied(
            f"This handle is bound to user {own.user!r} and does not act for {whom}.",
            "Use a handle that names no user, or open one for such work: Memory(…, admin=True).",
        )

    @logged
    def remember(
        self,
        text: str,
        kind: str = "fact",
        *,
        target: str | None = None,
        category: str = "",
        tags: Iterable[str] = (),
        meta: Mapping[str, object] | None = None,
        priority: int | None = None,
        source: str = "",
        since: Time | None = None,
        until: Time | None = None,
        by: Writer | None = None,
        chat: str | None = None,
        messages: int | tuple[int, int] | None = None,
        merge: bool | None = None,
        expected_version: int | None = None,
    ) -> Record:
        """Store one thing that is known, and return the record that it became.

        When the call returns it is durable and recallable. What `record.action` says: "add"; "duplicate", when a
        record said so already and now has more evidence, and these words beside its own; "update", when it took the
        place of what a record said; "replace", of the one text of its kind; or "quarantine", when it looks like an
        order to the model, or hides something, and neither the user nor the application wrote it. Credentials are cut
        out before anything is stored, and `record.flags` says so.

        Args:
            text: what is known; of a profile or soul the whole new text.
            kind: a row of `holdfast.kinds`: constraint, soul, profile, fact, note, finding, insight, lesson, episode.
            target: what a fact is about, "user" (the default) or "env"; the compartment of a note, "session" or "plan".
            category: one word for what it belongs to.
            tags: words to find it by.
            meta: more about it, as JSON values.
            priority: 1 to 10; of notes, the higher are shown first. Left out, that of the record whose place it takes, or 5.
            source: where it comes from, such as "GOAL:plan the trip".
            since: from when on it is true in the world.
            until: before when it is true in the world.
            by: who writes; the one named by `acting`, or else the agent.
            chat: the session it was learned in; that of `acting` by default.
            messages: the `seq` of the message it was learned in, or of the first and the last one.
            merge: whether to compare it with what is there; as its kind says by default, which is so for facts.
            expected_version: the version that you saw of the one text of this kind; 0 for none.

        Raises:
            InvalidInput: something cannot be accepted, or the kind has a cap, and it is reached; nothing was stored.
            Denied: this kind may not be written by this writer, as a constraint by anyone but the user.
            Conflict: the text has another version than `expected_version`.

        """
        draft = RecordDraft(
            text,
            kind,
            target=target,
            category=category,
            tags=tags,
            meta=meta,
            priority=priority,
            source=source,
            since=since,
            until=until,
            messages=messages,
        )
        if merge is not None:
            check_flag(merge, "merge")
        if expected_version is not None:
            check_count(expected_version, "expected_version")
        return self._write([self._draft(draft, chat)], by, merge=merge, expected=expected_version)[0]

    def remember_fil(
        self,
        findings: Sequence[str] = (),
        insights: Sequence[str] = (),
        lessons: Sequence[str] = (),
        source: str = "",
        *,
        by: Writer | None = None,
        chat: str | None = None,
        merge: bool = False,
    ) -> list[Record]:
        """Store findings, insights and lessons, in this order and all or none, and return their records.

        Raises:
            InvalidInput: one cannot be accepted; none was stored.

        """
        check_flag(merge, "merge")
        self._writer(by, "agent")
        self._chat(chat)
        check_name(source, "source", empty=True)
        drafts = []
        for kind, texts in zip(FIL, (findings, insights, lessons), strict=True):
            if isinstance(texts, str) or not isinstance(texts, Iterable):
                raise InvalidInput(f"The {kind}s must be a list of texts.", "Pass a list of strings.")
            drafts += [self._draft(RecordDraft(text, kind, source=source), chat) for text in texts]
        return self._write(drafts, by, merge=merge) if drafts else []

    @logged
    def replace(
        self,
        what: str,
        text: str,
        *,
        kind: str | None = None,
        category: str = "",
        tags: Iterable[str] = (),
        meta: Mapping[str, object] | None = None,
        priority: int | None = None,
        source: str = "",
        since: Time | None = None,
        until: Time | None = None,
        by: Writer | None = None,
        chat: str | None = None,
        messages: int | tuple[int, int] | None = None,
        expected_version: int | None = None,
    ) -> Record:
        """Give one record another text. It keeps its place in lists, and its former text in its history.

        Args:
            what: the id of the record, or a part of its text in any case of letters, which must be in this one only;
                where several have it, the one whose whole text it is. "profile" and "soul" mean the one that `get` gives.
            text: the new text, in place of the whole old one.
            kind: look only among records of this kind.
            expected_version: the version that you saw.
            category, tags, meta, priority, source, since, until, by, chat, messages: as in `remember`; left out, all
                but the writer stay as they were.

        Raises:
            InvalidInput: no record is meant, or several are, which the message shows; or the text cannot be accepted.
            Denied: this writer may not change it.
            Conflict: it has another version than `expected_version`.

        """
        draft = RecordDraft(
            text,
            category=category,
            tags=tags,
            meta=meta,
            priority=priority,
            source=source,
            since=since,
            until=until,
            messages=messages,
        )
        if expected_version is not None:
            check_count(expected_version, "expected_version")
        # Loaded by the first revision.
        from holdfast.records import revision

        draft = self._draft(draft, chat)
        intake = self._intake(by, chat=draft.chat)
        record = revision.replace_text(intake, what, draft, kind=kind, expected=expected_version)
        return self._told([record])[0]

    @logged
    def retract(
        self,
        what: str,
        *,
        kind: str | None = None,
        by: Writer | None = None,
        why: str = "",
        chat: str | None = None,
    ) -> Record:
        """Take one record back: it is in no list, no recall and no prompt any more, but in the history.

        Args:
            what: its id, a part of its text, or "profile" or "soul", as in `replace`.
            kind: look only among records of this kind.
            by: who takes it back.
            why: the reason, for the history; credentials are cut out of it.
            chat: the session in which this happens.

        Raises:
            InvalidInput: no record is meant, or several are.
            Denied: this writer may not remove it.

        """
        return self._retract(what, kind=kind, by=by, why=why, chat=chat)

    def _retract(
        self,
        what: str,
        *,
        kind: str | None,
        by: Writer | None,
        chat: str | None,
        why: str = "",
        expected_version: int | None = None,
    ) -> Record:
        reason = mask(check_name(why, "why", empty=True))
        if expected_version is not None:
            check_count(expected_version, "expected_version")
        # Loaded by the first revision.
        from holdfast.records import revision

        intake = self._intake(by, chat=self._chat(chat))
        record = revision.retract(intake, what, kind=kind, why=reason, expected=expected_version)
        return self._told([record])[0]

    def _told(self, written: list[Record]) -> list[Record]:
        """Tell of records that were written, and return them."""
        self._open.events.tell_of(self.scope, written)
        return written

    def clear(
        self,
        *,
        kind: str | None = None,
        category: str | None = None,
        tags: Iterable[str] | None = None,
        target: str | None = None,
        chat: str | None = None,
        by: Writer | None = None,
    ) -> list[Record]:
        """Retract all records that meet all of the conditions, in one transaction, and return them.

        Of tags, one is enough. `undo` brings all of them back.

        Raises:
            InvalidInput: there is no condition.
            Denied: one of them may not be removed by this writer; none was.

        """
        if kind is None and category is None and tags is None:
            raise InvalidInput("It is not said what to clear.", "Pass kind=, category= or tags=.")
        if kind is not None:
            policy(self._open.kinds, kind)
        passes = selection(category=category, tags=tags)
        target = None if target is None else check_name(target, "target", empty=True)
        chat = None if chat is None else check_name(chat, "The id of a chat")
        wanted = RecordFilter(
            kinds=None if kind is None else (kind,), agents=self._agents(), target=target, chat=chat
        )
        # Loaded by the first revision.
        from holdfast.records import revision

        return self._told(revision.retract_all(self._intake(by, chat=self._chat(None)), wanted, passes))

    def at(self, version: int | Time) -> View:
        """Look at what was known earlier: a view with every read of records and recall, answered as of then.

        Of a version, messages count that were stored when it was written; of a time, those that were said until then.
        Version 0 is empty. What is true in the world is judged as of then as well.

        Raises:
            InvalidInput: there is no such version.

        """
        return View(self._open, self.scope, place(self._open, self.scope, version))

    @logged
    def rollback(self, what: str, version: int, *, by: Writer | None = None) -> list[Record]:
        """Write again, as new versions, what a record or all records of a kind were at a version.

        Of the profile and the soul that is the one that `at(version).get` gives; where there was none, what is there is taken
        back. What the tenant shares is left as it is.

        Args:
            what: the id of a record, or a kind.
            version: of the space, as `changes` and `version` give them; 0 is before the first.
            by: who does it; the one named by `acting`, or else the user.

        Raises:
            InvalidInput: there is no such record or version.
            Denied: this writer may not change it, as an agent a constraint.

        """
        check_name(what, "What is rolled back")
        if not is_whole(version):
            raise InvalidInput(f"{shown(version)} is not a version.", "Pass a number that `changes` shows.")
        # Loaded by the first revision.
        from holdfast.records import revision

        return self._told(revision.rollback(self._intake(by, "user", self._chat(None)), what, version))

    @logged
    def undo(self, *, by: Writer | None = None) -> list[Record]:
        """Take back what the newest call changed that was not taken back yet, whoever made it.

        A second `undo` takes back the call before. Each writes new versions, so nothing is lost. Without `by`, and
        outside of an `acting` that names a writer, what an agent may not change is left as it is.

        Raises:
            InvalidInput: there is nothing to undo.
            Denied: this writer may not change it, or nobody said that it is the user who wants a constraint back.

        """
        # Loaded by the first revision.
        from holdfast.records import revision

        is_named = by is not None or current().source is not None
        return self._told(revision.undo(self._intake(by, "user", self._chat(None)), is_named=is_named))

    def quarantine(self) -> list[Record]:
        """List what is in quarantine: never recalled and in no prompt, until the user releases or discards it."""
        wanted = RecordFilter(agents=self._agents(), run=None, trust=("quarantined",))
        return records.read(self._open.database, self.scope.space, NOW.version, wanted)

    def release(self, id: str, *, by: Writer | None = None) -> Record:
        """Let a record out of quarantine; where it was to replace another text, it does so now.

        Raises:
            Denied: somebody else than the user wants it.
            InvalidInput: there is no such record in quarantine.

        """
        # Loaded by the first revision.
        from holdfast.records import revision

        intake = self._intake(by, "user", self._chat(None))
        return self._told([revision.release(intake, check_name(id, "The id of a record"))])[0]

    def discard(self, id: str, *, by: Writer | None = None) -> Record:
        """Retract a record that is in quarantine.

        Raises:
            Denied, InvalidInput: as `release`.

        """
        # Loaded by the first revision.
        from holdfast.records import revision

        intake = self._intake(by, "user", self._chat(None))
        return self._told([revision.discard(intake, check_name(id, "The id of a record"))])[0]

    @logged
    def erase(
        self,
        *,
        chat: str | None = None,
        messages: int | tuple[int, int] | None = None,
        record: str | None = None,
        user: str | None = None,
        rewrite: bool = False,
        by: Writer | None = None,
    ) -> Erasure:
        """Remove words for ever, from every table, index and file, and return a receipt without them.

        With `chat`, the session and all that was learned in it, or only some of its `messages`; with `record`, all
        versions of one; with `user`, all of a user. SQLite's file is written anew for it, which takes as long as copying
        it. PostgreSQL's tables are vacuumed, which leaves the bytes in its files until they are used again: with
        `rewrite` the tables of all users, their indexes and the planner's statistics are written anew, and each is locked
        meanwhile. `rewrite` alone erases nothing more: it removes what earlier erasures left.

        Args:
            chat: the id of a session.
            messages: the `seq` of a message of it, or of the first and the last one.
            record: the id of a record.
            user: a user of this tenant; another than that of the handle only with `Memory(…, admin=True)`, or from a
                handle that names no user.
            rewrite: write PostgreSQL's tables anew (`VACUUM FULL`), as SQLite's file always is.
            by: who wants it, for the receipt; the user by default.

        Raises:
            InvalidInput: not exactly one thing is named, or it is not there; nothing was erased.
            Denied: a constraint, by anyone but the user; or another user than that of the handle.
            Unavailable: it is erased, but others kept reading, or this role may not vacuum or write anew; the files
                still hold remains. `receipt` of the error says where and why. The next erasure, of anything, tries
                again, and until one succeeds `verify` says so.

        """
        writer = self._writer(by, "user")
        scope, rewrite = self.scope, check_flag(rewrite, "rewrite")
        what = erasure.erasure_target(chat=chat, messages=messages, record=record, user=user, rewrite=rewrite)
        if user is not None:
            scope = Scope(scope.tenant, user)
            self._check_scope(scope)
        # Only for those who erase.
        from holdfast.events import Event

        receipt: Erasure | None = None
        try:
            receipt = erasure.erase(
                self._open.database,
                scope.space,
                what,
                writer,
                self._open.now(),
                lambda kind: self._may_erase(kind, writer),
                rewrite=rewrite,
            )
        except Unavailable as error:
            receipt = error.receipt  # what is erased although the files still hold remains
            raise
        finally:
            if what.kind in ("chat", "user"):
                self._open.forget(scope.space, chat=what.chat)
            if receipt is not None:
                self._open.events.tell(Event("erased", scope, erasure=receipt))
        return receipt

    def _may_erase(self, kind: str, writer: Writer) -> None:
        """Raise Denied where a record may not be removed by a writer; one of a kind that is not known here may."""
        if kind in self._open.kinds:
            allow(self._open.kinds[kind], writer, "erase")

    def erasures(self) -> list[Erasure]:
        """List the receipts of this space, the oldest first."""
        return erasure_receipts.read(self._open.database, self.scope.space)

    def _draft(self, draft: RecordDraft, chat: str | None) -> RecordDraft:
        """Return a draft as one of this scope and of a chat, that of `acting` by default."""
        source = check_name(draft.source, "The source", empty=True)
        return replace(draft, source=source, agent=self.scope.agent, chat=self._chat(chat))

    def _note(self, draft: RecordDraft, *, chat: str, by: Writer | None) -> Record:
        """Store a note of a run; see `Run.remember`."""
        return self._intake(by).remember([self._draft(draft, chat)])[0]

    def _change_note(self, what: str, text: str | None, *, run: str, by: Writer | None) -> Record:
        """Change a note of a run, or retract it if there is no new text."""
        # Loaded by the first revision.
        from holdfast.records import revision

        if text is None:
            return revision.retract(self._intake(by), what, kind="note", run=run)
        draft = self._draft(RecordDraft(text, "note", target="run", run=run), None)
        return revision.replace_text(self._intake(by), what, draft, kind="note")

    def _write(
        self,
        drafts: list[RecordDraft],
        by: Writer | None,
        *,
        merge: bool | None = None,
        expected: int | None = None,
    ) -> list[Record]:
        before = 0

        def also(changes: Writing) -> None:
            nonlocal before
            before = changes.version

        intake = self._intake(by, chat=drafts[0].chat)
        written = intake.remember(drafts, merge=merge, expected=expected, also=also)
        self._open.events.tell_of(self.scope, [record for record in written if record.version > before])
        return written

    def _chat(self, chat: str | None) -> str:
        return self._check_chat(current().chat if chat is None else check_name(chat, "The id of a chat"))

    def _check_chat(self, chat: str) -> str:
        """Raise InvalidInput where the id of a new chat holds a credential; one that is there stays in reach."""
        if mask_name(chat) != chat and not sessions.length(self._open.database, self.scope.space, chat):
            check_name_is_open(chat, "The id of the chat")
        return chat

    def _writer(self, by: Writer | None, default: Writer) -> Writer:
        return current().source or default if by is None else check_writer(by)

    def _intake(self, by: Writer | None, default: Writer = "agent", chat: str = "") -> Intake:
        """Make what writes, in a session if one is named: what reflection learned from it waits for the next session."""
        writer = self._writer(by, default)
        return self._open.intake(self.scope, writer, chat if writer in ("user", "agent", "tool") else "")
