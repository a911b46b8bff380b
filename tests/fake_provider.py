"""A second implementation of the whole contract, in memory, which the suite must pass."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from threading import RLock

from fake_chat import FakeChat, Space, hits_of, rank, record_hit
from fake_ledger import SINGLE, Known, Ledger
from holdfast.types import Change, ChatInfo, Hit, Record, Scope, Writer
from holdfast.types.timeline import ChatDay, Timeline, TimelineDay

MOVES_SNAPSHOT = ("user", "agent", "tool")  # writers whose chat shows at once what they wrote in its course


class FakeProvider(Known):
    """Implement all of the contract without a database and without a model.

    Each read looks at everything, and `recall` counts the words that a text shares with the query. It may be
    shared by threads.

    >>> memory = FakeProvider()
    >>> record = memory.remember("The quokka sleeps in the harbour.")
    >>> [hit.text for hit in memory.recall("Where does the quokka sleep?")]
    ['The quokka sleeps in the harbour.']
    """

    name = "fake"

    def __init__(self) -> None:
        self._bind(RLock(), {}, Scope())

    def _bind(self, lock: RLock, spaces: dict[str, Space], scope: Scope) -> None:
        self._lock, self._spaces, self._scope = lock, spaces, scope
        with lock:
            self._space = spaces.setdefault(scope.user, Space(lock, Ledger(lock)))
        Known.__init__(self, self._space.ledger, scope.agent)

    def scoped(self, *, user: str | None = None, agent: str | None = None) -> FakeProvider:
        """Return a provider for another user or agent on the same store."""
        own = self._scope
        scope = Scope("", own.user if user is None else user, own.agent if agent is None else agent)
        handle = object.__new__(type(self))
        handle._bind(self._lock, self._spaces, scope)
        return handle

    def close(self) -> None:
        """Do nothing: nothing is held that would have to be let go of."""

    def chat(self, id: str, /) -> FakeChat:
        """Open a chat; it comes into being with its first message."""
        return FakeChat(id, self._scope, self._space)

    def chats(
        self, *, archived: bool | None = False, limit: int | None = None, offset: int = 0
    ) -> list[ChatInfo]:
        """List chats, the one with the newest message first."""
        with self._lock:
            logs, agent = self._space.logs.values(), self._scope.agent
            own = [log.info(self._scope.user) for log in logs if agent in ("", *log.writers)]
        found = [one for one in own if archived in (None, one.archived)]
        found.sort(key=lambda one: one.newest, reverse=True)
        return found[offset : None if limit is None else offset + limit]

    def recall(self, query: str, *, limit: int = 10) -> list[Hit]:
        """Find in all chats and records what shares words with a question, the most first."""
        with self._lock:
            every = [*hits_of(self._space.logs.values()), *map(record_hit, self.records())]
        return rank(query, every)[:limit]

    def timeline(
        self,
        since: datetime | None = None,
        until: datetime | None = None,
        *,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Timeline:
        """Return what was said by day; the cursor is the number of entries before it."""
        days = []
        for info in self.chats(archived=None):
            said = [
                message
                for message in self.chat(info.id).history()
                if message.at and (not since or message.at >= since) and (not until or message.at < until)
            ]
            for _, group in groupby(said, lambda message: message.at and message.at.date()):
                part = list(group)
                numbers, moment = (part[0].seq, part[-1].seq, len(part)), part[0].at
                assert moment
                days.append(ChatDay(info.id, info.title, info.agent, moment, *numbers, ()))
        days.sort(key=lambda day: day.at)
        first = int(cursor or 0)
        page = days[first : first + limit]
        more = str(first + limit) if first + limit < len(days) else None
        by_day = groupby(page, lambda entry: entry.at.date())
        return Timeline([TimelineDay(day, tuple(chats), ()) for day, chats in by_day], more)

    @property
    def scratchpad(self) -> MutableMapping[str, str]:
        """The scratchpad of the user."""
        return self._space.scratchpad

    # What is known

    def remember(
        self, text: str, kind: str = "fact", *, by: Writer | None = None, chat: str | None = None
    ) -> Record:
        """Store one thing that is known."""
        draft = Record("", kind, text, agent=self._scope.agent, by=by or "agent", chat=chat or "")
        with self._lock:
            return self._wrote(self._ledger.write(draft))

    def replace(self, what: str, text: str, *, by: Writer | None = None) -> Record:
        """Replace the text of a record."""
        return self._change(what, by, lambda one: replace(one, text=text))

    def retract(self, what: str, *, by: Writer | None = None, chat: str | None = None) -> Record:
        """Take a record back; the name of a kind means the one text of it."""
        there = [one.id for one in self.records(kind=what)]
        found = there[-1] if there and what in SINGLE else what
        return self._change(found, by, lambda one: replace(one, retracted=True), chat)

    def _change(
        self, what: str, by: Writer | None, change: Callable[[Record], Record], chat: str | None = None
    ) -> Record:
        def written(one: Record) -> Record:
            return replace(change(one), by=by or "agent", chat=chat or "")

        with self._lock:
            return self._wrote(self._ledger.change(what, self._scope.agent, written))

    def _wrote(self, record: Record) -> Record:
        """Refresh the chat in which a record was written, unless reflection wrote it."""
        chat = self.chat(record.chat)
        if record.chat and record.by in MOVES_SNAPSHOT and chat.snapshot() is not None:
            chat.refresh()
        return record

    def at(self, version: int, /) -> Known:
        """Look at what was known at a version."""
        self._ledger.check(version)
        return Known(self._ledger, self._scope.agent, version)

    def rollback(self, what: str, version: int, *, by: Writer | None = None) -> list[Record]:
        """Write again what a record, or the one text of a kind, said in a version."""
        return self._ledger.rollback(what, self._scope.agent, version, by or "user")

    def changes(self, *, kind: str | None = None, limit: int | None = None) -> list[Change]:
        """List what changed, the newest first."""
        found = self._ledger.changes(self._scope.agent)
        return [one for one in found if kind in (None, one.kind)][:limit]

    # What is learned

    @property
    def learning(self) -> FakeProvider:
        """What learns: this provider itself."""
        return self

    def work(self, *, limit: int | None = None) -> list[Record]:
        """Write an episode of each chat that has ended: what its first message says."""
        with self._lock:
            ended = [log for log in self._space.logs.values() if log.ended][:limit]
            written = []
            for log in ended:
                log.ended = False
                written.append(
                    self.remember(log.messages[0].content[:200], "episode", by="reflect", chat=log.id)
                )
            return written
