"""A handle on an open database, bound to a scope: every operation of `Memory`, and the room that does it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Self, overload

from holdfast.errors import InvalidInput
from holdfast.events import logged
from holdfast.records.point_in_time import point_in_time
from holdfast.records.quarantine import Quarantine
from holdfast.records.view import View
from holdfast.records.writers import check_chat_id, writer_of
from holdfast.safety.guard import check_name_is_open
from holdfast.scratchpad import Scratchpad
from holdfast.store import grants, sessions
from holdfast.store.pads import ScratchpadKey
from holdfast.types import Hit, Hits, Record, Scope, Time, check_count, check_flag, check_key, check_name
from holdfast.types.acting import chat_id, current
from holdfast.types.scope import check_actor, scoped
from holdfast.types.where import check_where

if TYPE_CHECKING:
    from typing import Unpack

    from holdfast.chat import Chat
    from holdfast.events import Event
    from holdfast.learning.service import Learner
    from holdfast.records.grants import Grants
    from holdfast.records.options import (
        ExplainOptions,
        NewRecords,
        RecallOptions,
        RecordFilters,
        RememberOptions,
        ReplaceOptions,
    )
    from holdfast.records.writing import RecordWriter
    from holdfast.runtime import Runtime
    from holdfast.tools.tool import Tool, ToolOptions
    from holdfast.types import Change, ChatInfo, Erasure, Explanation, Verification, Writer
    from holdfast.types.scope import ScopeParts


class MemoryHandle:
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

        Without an id it is the one that `acting_as` names, or else a new one. `channel` and `meta` are stored
        with the next message that is appended through this handle; see `Chat.rename`.
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
    ) -> list[ChatInfo]:
        """List chats, the one with the newest message first; `where` is a filter on their metadata.

        None for `agent` and `user` is this handle's, "" for `agent` all agents, None for `archived` both.
        """
        scope = scoped(self.scope, {"user": user, "agent": agent})
        self._check_scope(scope)
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
            )

    # What is known: records/, search/ ---------------------------------------------------------------------

    @logged
    def recall(self, query: str, *, limit: int = 10, **options: Unpack[RecallOptions]) -> Hits:
        """Find the messages, summaries and records that answer a question, best first.

        See `View.recall` for sources, chat, roles, kinds, per_kind, tags, trust, since, until, valid_at,
        where, min_score, prefer, secrets, meaning and fresh.
        """
        return self._view.recall(query, limit=limit, **options)

    @logged
    def explain(
        self, query: str, what: Hit | str, *, limit: int = 10, **options: Unpack[ExplainOptions]
    ) -> Explanation:
        """Explain why a hit, a message (`chat#12`), record or summary is a hit or not; see `View.explain`."""
        return self._view.explain(query, what, limit=limit, **options)

    @logged
    def feedback(self, hit: Hit | str, *, helpful: bool, query: str = "", by: Writer | None = None) -> Record:
        """Store whether a hit (or what `explain` takes for one) helped; a change that ranks nothing."""
        found = hit if isinstance(hit, Hit) else self.explain(query, hit).hit
        return self._writer.feedback(found, query, helpful=helpful, by=by)

    @overload
    def remember(self, text: str, kind: str = "fact", **options: Unpack[RememberOptions]) -> Record: ...
    @overload
    def remember(
        self, text: NewRecords, kind: str = "fact", **options: Unpack[RememberOptions]
    ) -> list[Record]: ...
    @logged
    def remember(
        self, text: str | NewRecords, kind: str = "fact", **options: Unpack[RememberOptions]
    ) -> Record | list[Record]:
        """Store one thing that is known, or a list of them, all or none, and return the records they became.

        See `RecordWriter.remember`, and `RecordFields` for target, category, tags, meta, priority, source,
        chat and more.
        """
        return self._writer.remember(text, kind, **options)

    @logged
    def replace(self, what: str, text: str, **options: Unpack[ReplaceOptions]) -> Record:
        """Replace the text of one record. It keeps its place, and its former text in its history.

        See `RecordWriter.replace`, and `ReplaceOptions`; of fields that are left out the record keeps its
        own.
        """
        return self._writer.replace(what, text, **options)

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
        """Take one record back: it is in no list, recall or prompt any more, but in the history."""
        return self._writer.retract(
            what, kind=kind, by=by, why=why, chat=chat, expected_version=expected_version
        )

    def retract_all(
        self,
        *,
        kind: str | None = None,
        category: str | None = None,
        tags: Iterable[str] | None = None,
        target: str | None = None,
        chat: str | None = None,
        where: Mapping[str, object] | None = None,
        by: Writer | None = None,
    ) -> list[Record]:
        """Retract the records that meet all conditions (of tags, one is enough), in one transaction."""
        return self._writer.retract_all(
            kind=kind, category=category, tags=tags, target=target, chat=chat, where=where, by=by
        )

    @logged
    def get(self, what: str) -> Record | None:
        """Return a record by its id, or the one text of a kind such as "profile", or None. See `View.get`."""
        return self._view.get(what)

    @logged
    def records(
        self, *, limit: int | None = None, offset: int = 0, **filters: Unpack[RecordFilters]
    ) -> list[Record]:
        """List records in the order in which they were first written; see `RecordFilters` for the filters."""
        return self._view.records(limit=limit, offset=offset, **filters)

    # Versions: records/ -----------------------------------------------------------------------------------

    @logged
    def changes(
        self, *, kind: str | None = None, id: str | None = None, limit: int | None = None
    ) -> list[Change]:
        """List changes, newest first: by whom, when, and the text before and after. See `View.changes`."""
        return self._view.changes(kind=kind, id=id, limit=limit)

    def version(self) -> int:
        """Return the number of the newest change of this space; 0 before the first."""
        return self._view.version()

    def at(self, version: int | Time) -> View:
        """Return a view of what was known at a version or a time, for reads and recall. See `View`."""
        scope = self.scope
        return self._runtime.view(scope, point_in_time(self._runtime.database_of(scope), scope, version))

    @logged
    def undo(self, *, by: Writer | None = None) -> list[Record]:
        """Take back what the newest call changed that was not taken back yet; see `RecordWriter.undo`."""
        return self._writer.undo(by=by)

    @logged
    def rollback(self, what: str, version: int, *, by: Writer | None = None) -> list[Record]:
        """Write again, as new versions, what a record or all records of a kind were at a version."""
        return self._writer.rollback(what, version, by=by)

    # Agents and background work: tools/, learning/, events ------------------------------------------------

    def tools(self, chat: Chat | str | None = None, **options: Unpack[ToolOptions]) -> list[Tool]:
        """Make tools for an agent, to be handed to any framework; see `holdfast.tools.tool.ToolOptions`.

        Tools of a chat stay with the user and the agent that they were made for, whoever acts later.
        """
        # Only for those who use tools.
        from holdfast.chat import Chat
        from holdfast.tools.tool import tools_for

        # One that is traced, as well.
        inner = getattr(chat, "__wrapped__", chat)
        if isinstance(inner, Chat) and inner != self.chat(inner.id):
            raise InvalidInput("The chat is that of another user or database.", "Make tools of its memory.")
        return tools_for(self if chat is None else self._fixed(self.scope), chat, **options)

    @property
    def learning(self) -> Learner:
        """Learning from history: its jobs, its calls now, and what they cost. See `Learner`."""
        return self._runtime.learner(self.scope, self._check_scope)

    @property
    def quarantine(self) -> Quarantine:
        """What is in quarantine, to be iterated over, with `release` and `discard`."""
        runtime, scope = self._runtime, self.scope
        return Quarantine(runtime.database_of(scope), scope, self._writer.users_intake, runtime.events)

    @property
    def grants(self) -> Grants:
        """Rights of users on spaces of others, to be iterated over, and records that go to other spaces."""
        # Only for those who share.
        from holdfast.records.grants import Grants

        runtime, intake = self._runtime, self._writer.users_intake
        return Grants(runtime.database, self.scope, intake, runtime.events, admin=self._admin)

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
        """
        scope, database = self.scope, self._runtime.database
        grants.check(database, scope, scope.space)
        may_hear, everyone = partial(grants.may, database, scope), self._admin and not scope.user
        return self._runtime.events.on(event, observer, scope, everyone=everyone, may_hear=may_hear)

    # Safekeeping: verify.py, store/ -----------------------------------------------------------------------

    @logged
    def verify(self, *, key: bytes | None = None, repair: bool = False) -> Verification:
        """Check that every message is reachable, every row as it was written, and the index true; linear.

        Of a user, the projects are checked as well. `repair` first ends versions of records that a later one
        of the same record has replaced, makes the index anew, and the files if an erasure deferred that.
        `key` is the one that the rows were sealed with; None for that of `Memory(key=…)`. A row that somebody
        took out from the end of the log is not noticed.
        """
        # Loads numpy, which most programs never need.
        from holdfast.store import record_changes
        from holdfast.store.erasure import purge_deferred
        from holdfast.verify import verify

        database = self._runtime.database_of(self.scope)
        sealed_with = database.key if key is None else check_key(key)
        scopes = sessions.with_projects(database, self.scope)
        if check_flag(repair, "repair"):
            for one in scopes:
                record_changes.end_at_next(database, one.space)
                self._runtime.search().rebuild(one.space)
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

        A user goes with all projects and grants; a project is one of this handle's user; a team is erased by
        who acts for all. With None as `rewrite`, the words stay in the files until the next erasure or
        `verify(repair=True)`.
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
        intakes, forget = [runtime.intake(one, writer) for one in scopes], partial(runtime.forget, chat=chat)
        return erase_spaces(intakes, what, rewrite=rewrite, events=runtime.events, forget=forget)

    @logged
    def backup(self, path: str | os.PathLike[str]) -> Verification:
        """Copy the whole database, with all users, into a new file while it is in use, and check the copy."""
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

    def scoped(self, **parts: Unpack[ScopeParts]) -> Self:
        """Return a handle for another tenant, user, agent, project or team on the same connections.

        It is of the same class, with its attributes; see `ScopeParts`. Raises Denied where `admin` would be
        needed.
        """
        scope = scoped(self._bound, parts)
        self._check_scope(scope)
        if scope.agent != self._bound.agent:
            check_name_is_open(scope.agent, "The name of the agent")
        handle = copy(self)
        vars(handle).update(_bound=scope)
        return handle

    def users(self) -> list[str]:
        """Name the users of this tenant of whom something is stored; "" stands for what all of them share."""
        self._check_scope(None)
        return sessions.users(self._runtime.database, self.scope.tenant)

    def close(self) -> None:
        """Close the connections of this handle and of all that share them. Closing twice is harmless."""
        self._runtime.close()

    def __repr__(self) -> str:
        return f"Memory({self.scope})"

    @property
    def _view(self) -> View:
        return self._runtime.view(self.scope)

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
