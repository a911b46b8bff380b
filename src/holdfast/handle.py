"""A handle on an open database, bound to a scope: every operation of `Memory`, and the room that does it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import replace
from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING, Self

from holdfast.errors import InvalidInput
from holdfast.events import logged
from holdfast.records.draft import check_chat_id, writer_of
from holdfast.records.quarantine import Quarantine
from holdfast.records.reader import point_in_time
from holdfast.records.remember import RecordWrites
from holdfast.records.view import RecordReads
from holdfast.safety.guard import check_name_is_open
from holdfast.scratchpad import Scratchpad
from holdfast.store import grants, sessions
from holdfast.store.message_rows import to_micros
from holdfast.store.pads import ScratchpadKey
from holdfast.types import MAX_COUNT, Scope, Time, check_count, check_flag, check_key, check_name
from holdfast.types.acting import chat_id, current
from holdfast.types.scope import check_actor, scoped
from holdfast.types.where import check_where

if TYPE_CHECKING:
    from holdfast.chat import Chat
    from holdfast.events import Event
    from holdfast.learning.service import Learner
    from holdfast.records.grants import Grants
    from holdfast.records.reader import RecordReader
    from holdfast.records.view import View
    from holdfast.records.writing import RecordWriter
    from holdfast.runtime import Runtime
    from holdfast.tools.tool import Style, Tool
    from holdfast.types import ChatInfo, Erasure, Verification, Writer
    from holdfast.types.timeline import Timeline


class MemoryHandle(RecordReads, RecordWrites):
    """The operations of a memory on an open database, for one scope.

    `Memory` opens the database; `scoped` makes further handles on it. `bound` is the scope that the handle
    was made for, which a `pinned` one keeps whoever acts; `admin` allows it to act for other users.
    """

    def __init__(self, runtime: Runtime, bound: Scope, *, admin: bool = False) -> None:
        self._runtime, self._bound, self._admin, self._pinned = runtime, bound, admin, False

    @property
    def name(self) -> str:
        """What this kind of memory is called among the providers of the contract."""
        return "holdfast"

    # Chats: chat.py, store/ -------------------------------------------------------------------------------

    def chat(
        self, id: str | None = None, *, channel: str | None = None, meta: Mapping[str, object] | None = None
    ) -> Chat:
        """Return a handle on a chat, which exists from its first message on, for its user and agent.

        `channel` and `meta` are stored with the next message that is appended through this handle; see
        `Chat.rename`.

        Args:
            id: yours; without one it is that which `acting_as` names, or else a new one.
            channel: where the chat takes place, such as "telegram".
            meta: any JSON object.

        Raises:
            InvalidInput: the id or the channel is no name, or the metadata is no JSON object.

        """
        # Half of the package, which a program that only asks does not need.
        from holdfast.chat import Chat

        name, scope = chat_id(id), self.scope
        opened = Chat(self._runtime, scope, name, sessions.check_label(channel, meta))
        check_chat_id(self._runtime.database_of(scope), scope, name)
        return opened

    @logged
    def chats(
        self,
        *,
        agent: str | None = None,
        user: str | None = None,
        archived: bool | None = False,
        channel: str | None = None,
        limit: int | None = None,
        offset: int = 0,
        where: Mapping[str, object] | None = None,
        everyone: bool = False,
    ) -> list[ChatInfo]:
        """List chats, the one with the newest message first.

        Args:
            agent: those that this agent opened; None for this handle's, "" for all agents.
            user: those of this user; None for this handle's.
            archived: whether those that are archived, or the others; None for both.
            channel: those that take place there; "" for those without a channel.
            limit: at most so many, after the first `offset`.
            offset: how many of the first are left out.
            where: a filter on their metadata; see `docs/filters.md`.
            everyone: those of all users of this tenant, their projects and teams, for a handle without a
                user, or with `admin=True`. Takes a look at each of their spaces.

        Raises:
            InvalidInput: a filter of the wrong type, or a user beside `everyone`.
            Denied: `user` is another one than that of this handle, or `everyone` from a handle of one user;
                see `Memory`.

        """
        scope = scoped(self.scope, {"user": user, "agent": agent})
        self._check_scope(None if check_flag(everyone, "everyone") else scope)
        if everyone and user is not None:
            raise InvalidInput("A user is named beside everyone.", "Leave one of both out.")
        database = self._runtime.database_of(scope)
        with database.one_read():
            return sessions.list_chats(
                database,
                scope,
                archived=None if archived is None else check_flag(archived, "archived"),
                channel=None if channel is None else check_name(channel, "The channel", empty=True),
                limit=None if limit is None else check_count(limit, "limit"),
                offset=check_count(offset, "offset"),
                where=check_where(where),
                zone=self._runtime.clock().tzinfo,
                everyone=everyone,
            )

    @logged
    def timeline(
        self,
        since: Time | None = None,
        until: Time | None = None,
        *,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Timeline:
        """Return what was said and learned, across chats, by the days of the memory's zone, oldest first.

        Covers the chats and the records that `chats` and `changes` list, archived chats as well; what is in
        quarantine is not among it.

        >>> for day in memory.timeline("last week", "last week"):
        ...     print(day.day, [chat.title for chat in day.chats], [change.after for change in day.learned])

        Args:
            since: from this time, or the beginning of this day or span, on: a datetime, ISO 8601 text, or a
                name such as "yesterday", "14 March", "last week" or "2026-W11".
            until: before this time, or up to the end of this day or span.
            limit: the most chats of a day, and changes, on a page; 1 or more.
            cursor: that of the page before, to go on.

        Raises:
            InvalidInput: a time is none, the limit is 0 or no count, or the cursor is that of no page.

        """
        # Only for those who look back.
        from holdfast.store import timeline
        from holdfast.text.relative_days import time_named

        scope, now = self.scope, self._runtime.clock()
        begins = -MAX_COUNT if since is None else to_micros(time_named(since, now))
        ends = MAX_COUNT if until is None else to_micros(time_named(until, now, ends=True))
        if not (most := check_count(limit, "limit")):
            raise InvalidInput("`limit` is 0.", "Pass 1 or more.")
        name = None if cursor is None else check_name(cursor, "The cursor", longest=MAX_COUNT)
        place = None if name is None else timeline.read_cursor(name)
        database = self._runtime.database_of(scope)
        with database.one_read():
            return timeline.read(database, scope, begins, ends, now.tzinfo or UTC, place, most)

    # What is known, and its versions: records/, search/ ---------------------------------------------------

    # What `RecordReads` and `RecordWrites` have, and:

    def at(self, version: int | Time) -> View:
        """Return a view of what was known at a version or a time, for reads and recall. See `View`.

        Args:
            version: the number of a change, as `version` and `changes` give it, or a time.

        Raises:
            InvalidInput: it is neither.

        """
        scope = self.scope
        return self._runtime.view(scope, point_in_time(self._runtime.database_of(scope), scope, version))

    # Agents and background work: tools/, learning/, events ------------------------------------------------

    def tools(
        self,
        chat: Chat | str | None = None,
        *,
        style: Style = "many",
        allow: str | Iterable[str] | None = None,
        read_only: bool | str | Iterable[str] = False,
        confirm: Callable[[str], bool] | None = None,
        max_tokens: int = 2_000,
    ) -> list[Tool]:
        """Make tools for an agent, to be handed to any framework; see `holdfast.tools`.

        A call takes and returns JSON and never raises: an error is a result with what to do. See
        `holdfast.tools.exports` for the forms of model providers, and `holdfast.tools.presets` for other
        sets. Tools of a chat stay with the user and the agent that they were made for, whoever acts later.

        Args:
            chat: the chat that they are of, for the actions on one.
            style: "many" for one tool for each action, "single" for one tool `memory` with an argument
                `action`.
            allow: only these actions; None for all.
            read_only: True to permit no writes, or the parts that are read-only: "records", "profile",
                "soul", "constraints", "notes", "scratchpad"; these cannot be rolled back either.
            confirm: asks the user about a change of a constraint, and returns True if they agreed; without it
                constraints cannot be changed, and the model learns that the user has to be asked.
            max_tokens: of a result at most, 400 or more; a longer one has a cursor.

        Raises:
            InvalidInput: the style, an action or a part is unknown, another option is invalid, or the chat is
                that of another user or database.

        """
        # Only for those who use tools.
        from holdfast.chat import Chat
        from holdfast.tools.tool import tools_for

        # One that is traced, as well.
        inner = getattr(chat, "__wrapped__", chat)
        if isinstance(inner, Chat) and inner != self.chat(inner.id):
            raise InvalidInput("The chat is that of another user or database.", "Make tools of its memory.")
        provider = self if chat is None else self._fixed(self.scope)
        make = partial(tools_for, provider, chat, style=style, allow=allow, read_only=read_only)
        return make(confirm=confirm, max_tokens=max_tokens)

    @property
    def learning(self) -> Learner:
        """Learning from history: its jobs, its calls now, and what they cost. See `Learner`."""
        return self._runtime.learner(self.scope, self._check_scope)

    @property
    def quarantine(self) -> Quarantine:
        """What is in quarantine, to be iterated over, with `release` and `discard`."""
        return Quarantine(self._writer)

    @property
    def grants(self) -> Grants:
        """Rights of users on spaces of others, to be iterated over, and records that go to other spaces."""
        # Only for those who share.
        from holdfast.records.grants import Grants

        return Grants(self._runtime.database, self._writer, self._check_scope, admin=self._admin)

    @property
    def scratchpad(self) -> Scratchpad:
        """The scratchpad of the user: a dict of texts that is kept."""
        return Scratchpad(self._runtime, ScratchpadKey(self.scope.space), self.scope)

    def on(self, event: str, observer: Callable[[Event], object]) -> Callable[[], None]:
        """Call a function at each event of a name (see `holdfast.Event`), and return what ends that.

        Of another space it hears nothing; an agent hears what it may read. Of a handle without a user that
        may act for all (`admin`), it hears the events of all users of the tenant. Of a team
        it hears as long as the user may read it; Denied is raised if that is not so now.

        >>> off = memory.on("learned", lambda event: print(event.record.text))

        Args:
            event: its name, such as "learned"; see `holdfast.Event`.
            observer: a synchronous function of one event; what it raises is logged.

        Raises:
            InvalidInput: there is no such event, or what was passed cannot be called.

        """
        scope, database = self.scope, self._runtime.database
        grants.check(database, scope, scope.space)
        may_hear, everyone = partial(grants.may, database, scope), self._admin and not scope.user
        return self._runtime.events.on(event, observer, scope, everyone=everyone, may_hear=may_hear)

    # Safekeeping: verify.py, store/ -----------------------------------------------------------------------

    @logged
    def verify(self, *, key: bytes | None = None, repair: bool = False) -> Verification:
        """Check that every message is reachable, every row as it was written, and the index true; linear.

        Of a user, the projects are checked as well. A row that somebody took out from the end of the log is
        not noticed.

        Args:
            key: the one that the rows were sealed with; None for that of `Memory(key=…)`.
            repair: whether first to end versions of records that a later one of the same record has replaced,
                and to make the index anew, and the files if an erasure deferred that.

        """
        # Loads numpy, which most programs never need.
        from holdfast.store import record_changes
        from holdfast.store.erasure import purge_deferred
        from holdfast.verify import verify

        database = self._runtime.database_of(self.scope)
        sealed_with = database.key if key is None else check_key(key)
        scopes = sessions.with_projects(database, self.scope)
        if check_flag(repair, "repair"):
            for scope in scopes:
                record_changes.end_at_next(database, scope.space)
                self._runtime.search().rebuild(scope.space)
            purge_deferred(database)
        with database.one_read():
            return verify(database, scopes, sealed_with)

    @logged
    def erase(
        self,
        *,
        chat: str | None = None,
        messages: int | tuple[int, int] | None = None,
        record: str | None = None,
        user: str | None = None,
        project: str | None = None,
        team: str | None = None,
        rewrite: bool | None = False,
        by: Writer | None = None,
    ) -> Erasure:
        """Erase words from all tables, indexes and files, and return a receipt. See `docs/erasing.md`.

        Args:
            chat: the id of the chat whose words go.
            messages: of this chat only these: the `seq` of one, or of the first and the last.
            record: the id of the record that goes, with its history.
            user: goes with all projects and grants; "" is what all users share.
            project: one of this handle's user.
            team: is erased by who acts for all.
            rewrite: None leaves the words in the files until the next erasure or `verify(repair=True)`.
            by: who erases; see `Memory`.

        Raises:
            InvalidInput: it does not say what to erase, or more than one thing, or there is no such thing.
            Denied: this writer or this handle may not.
            Unavailable: remains are left in files; `receipt` names them.

        """
        # Only for those who erase.
        from holdfast.records.erasing import erase_spaces, spaces_of
        from holdfast.store.erasure import erasure_target

        runtime, own, writer = self._runtime, self.scope, writer_of(by, "user")
        named = {"chat": chat, "record": record, "user": user, "project": project, "team": team}
        what = erasure_target(messages=messages, rewrite=rewrite, **named)
        scopes = spaces_of(runtime.database, own, user=user, project=project, team=team)
        self._check_scope(scopes[0])
        if team is not None and not self._admin:
            # As for grants, whoever acts counts as well.
            check_actor(own, scopes[0])
        intakes = [runtime.intake(scope, writer) for scope in scopes]
        forget = partial(runtime.forget, chat=chat)
        return erase_spaces(intakes, what, rewrite=rewrite, events=runtime.events, forget=forget)

    @logged
    def backup(self, path: str | os.PathLike[str]) -> Verification:
        """Copy the whole database, with all users, into a new file while it is in use, and check the copy.

        Args:
            path: of the new file.

        Raises:
            InvalidInput: there is a file already, or the path is none.

        """
        # Loads numpy, which most programs never need.
        from holdfast.verify import backup

        return backup(self._runtime.database, path)

    # Handles ----------------------------------------------------------------------------------------------

    @property
    def scope(self) -> Scope:
        """Whose memory this handle is."""
        acting, own = current(), self._bound
        if self._pinned or not (acting.user or acting.agent):
            return own
        return replace(own, user=own.user or acting.user, agent=own.agent or acting.agent)

    def scoped(
        self,
        *,
        tenant: str | None = None,
        user: str | None = None,
        agent: str | None = None,
        project: str | None = None,
        team: str | None = None,
        reads: str | Iterable[str] | None = None,
    ) -> Self:
        """Return a handle for another tenant, user, agent, project or team on the same connections.

        It is of the same class, with its attributes. None keeps what this handle has. Another tenant or user
        begins without project, team and `reads`, and a project or team takes the place of both: `project=""`
        names the space of the user.

        Args:
            tenant, user, agent, project, team, reads: as of `Memory`.

        Raises:
            Denied: `admin` would be needed.
            InvalidInput: a name is invalid.

        """
        parts = {"tenant": tenant, "user": user, "agent": agent, "project": project, "team": team}
        scope = scoped(self._bound, {**parts, "reads": reads})
        self._check_scope(scope)
        if scope.agent != self._bound.agent:
            check_name_is_open(scope.agent, "The name of the agent")
        handle = copy(self)
        vars(handle).update(_bound=scope)
        return handle

    def close(self) -> None:
        """Close the connections of this handle and of all that share them. Closing twice is harmless."""
        self._runtime.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.scope})"

    @property
    def _reader(self) -> RecordReader:
        return self._runtime.record_reader(self.scope)

    @property
    def _writer(self) -> RecordWriter:
        return self._runtime.writer(self.scope)

    def _fixed(self, scope: Scope) -> Self:
        """Return a handle that stays with a scope, whoever acts later."""
        handle = copy(self)
        vars(handle).update(_bound=scope, _pinned=True)
        return handle

    def _check_scope(self, scope: Scope | None) -> None:
        """Raise Denied where a handle of one user would act for another; None stands for all users."""
        if not self._admin:
            check_actor(self._bound, scope)
