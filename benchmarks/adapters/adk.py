"""Sessions of Google's ADK beside its DatabaseSessionService, and its memory beside the one in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.memory import BaseMemoryService, InMemoryMemoryService
from google.adk.sessions import BaseSessionService, DatabaseSessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.schemas.v1 import StorageEvent
from google.genai.types import Content, Part

from benchmarks.adapters import Call
from holdfast.integrations.google_adk import HoldfastMemoryService, HoldfastSessionService
from holdfast.memory import Memory

_Awaited = Callable[[int], Coroutine[object, object, object]]
_APP, _USER, _ID = "coach", "ada", "trip"
_NEWEST = 20  # events that a turn reads


class _Services:
    """The services of one side, with a session in hand."""

    def __init__(self, sessions: BaseSessionService, memory: BaseMemoryService) -> None:
        self._sessions, self._memory, self._session = (
            sessions,
            memory,
            Session(id="", app_name="", user_id=""),
        )

    async def fill(self, size: int) -> None:
        """Append so many events to a session."""
        self._session = await self._sessions.create_session(app_name=_APP, user_id=_USER, session_id=_ID)
        if isinstance(self._sessions, DatabaseSessionService):
            # One by one they take 20 ms each, whatever the size. These are the rows that it would write.
            async with self._sessions.database_session_factory() as database:
                database.add_all([StorageEvent.from_event(self._session, _event(n)) for n in range(1, size)])
                await database.commit()
        else:
            for number in range(1, size):
                await self.append(number)
        await self.append(0)

    async def open(self) -> None:
        """Take the session in hand, and add it to memory."""
        self._session = cast("Session", await self.whole(0))
        await self.add(0)

    async def append(self, number: int) -> object:
        return await self._sessions.append_event(self._session, _event(number))

    async def newest(self, _: int) -> object:
        return await self._read(GetSessionConfig(num_recent_events=_NEWEST))

    async def whole(self, _: int) -> object:
        return await self._read(None)

    async def list(self, _: int) -> object:
        return await self._sessions.list_sessions(app_name=_APP, user_id=_USER)

    async def add(self, _: int) -> None:
        await self._memory.add_session_to_memory(self._session)

    async def search(self, number: int) -> object:
        query = f"What was message {number} about?"
        return await self._memory.search_memory(app_name=_APP, user_id=_USER, query=query)

    async def _read(self, config: GetSessionConfig | None) -> object:
        return await self._sessions.get_session(app_name=_APP, user_id=_USER, session_id=_ID, config=config)


def _event(number: int) -> Event:
    author = "coach" if number % 2 else "user"
    text = f"Message {number} about the marathon in Berlin, and how to train for it."
    return Event(
        author=author,
        content=Content(role="model" if number % 2 else "user", parts=[Part(text=text)]),
        actions=EventActions(state_delta={"turn": number}),
    )


@contextmanager
def calls(folder: Path, size: int) -> Iterator[Sequence[Call]]:
    """Open services of each with a session of so many events, and return the calls of a turn."""
    file = folder / "holdfast.db"
    database = DatabaseSessionService(f"sqlite+aiosqlite:///{folder / 'theirs.db'}")
    theirs = _Services(database, InMemoryMemoryService())
    with asyncio.Runner() as runner:
        runner.run(theirs.fill(size))
        # What is stored is the same, and filling does not wait for the disk.
        with Memory(file, durability="normal") as memory:
            runner.run(_ours(memory).fill(size))
        with Memory(file) as memory:
            ours = _ours(memory)
            for side in (ours, theirs):
                runner.run(side.open())
            yield _calls(runner, ours, theirs)
        runner.run(database.close())


def _ours(memory: Memory) -> _Services:
    return _Services(HoldfastSessionService(memory), HoldfastMemoryService(memory))


def _calls(runner: asyncio.Runner, ours: _Services, theirs: _Services) -> Sequence[Call]:
    def compared(name: str, ours: _Awaited, theirs: _Awaited, against: str) -> Call:
        return Call(name, lambda n: runner.run(ours(n)), lambda n: runner.run(theirs(n)), against)

    stored, kept = "DatabaseSessionService", "InMemoryMemoryService"
    return [
        compared("append an event that sets state", ours.append, theirs.append, stored),
        compared(f"get the {_NEWEST} newest events", ours.newest, theirs.newest, stored),
        compared("get all events", ours.whole, theirs.whole, stored),
        compared("list the sessions of a user", ours.list, theirs.list, stored),
        compared("add the session to memory again", ours.add, theirs.add, kept),
        compared("search memory", ours.search, theirs.search, kept),
    ]
