"""What appends are held against: bare SQLite, and what others keep the messages of agents in.

Each is used as its own page shows it, with its own settings: OpenAI's session and LangGraph's saver commit
to a write-ahead log at full durability, LangGraph's store to a rollback journal. The saver writes its whole
state at each step, the list of all messages so far; a conversation here ends after 100.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import random
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from benchmarks.measurement import PER_CHAT
from holdfast.chat import Chat
from holdfast.memory import Memory
from holdfast.text.tokens import estimate_tokens
from holdfast.types import Message

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
    """Holdfast: a memory, and a chat of it."""

    def __init__(self, path: Path, durability: Durability) -> None:
        self._memory = Memory(path, user="ada", durability=durability)
        super().__init__(self._memory.chat("monday"))

    def thread(self, number: int) -> OurChat:
        """Return another chat of the same memory."""
        return OurChat(self._memory.chat(f"thread-{number}"))

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


class LangGraphSaver:
    """`SqliteSaver` of LangGraph: a checkpoint of the list of messages for each append."""

    def __init__(self, path: Path, _: Durability) -> None:
        self._open = ExitStack()
        module = importlib.import_module("langgraph.checkpoint.sqlite")
        self._empty = importlib.import_module("langgraph.checkpoint.base").empty_checkpoint
        self._saver = self._open.enter_context(module.SqliteSaver.from_conn_string(str(path)))
        self._chat = 0
        self._messages: list[dict[str, str]] = []
        self._config: dict[str, Any] = {}

    def made(self, text: str) -> dict[str, str]:
        """Return a message of a graph's state."""
        return {"role": "user", "content": text}

    def append(self, some: Sequence[dict[str, str]]) -> None:
        """Put the state after these messages."""
        if not self._config or len(self._messages) >= PER_CHAT:
            self._chat += 1
            self._messages = []
            self._config = {"configurable": {"thread_id": str(self._chat), "checkpoint_ns": ""}}
        self._messages += some
        state = {**self._empty(), "channel_values": {"messages": self._messages}}
        metadata = {"source": "loop", "step": len(self._messages), "parents": {}}
        self._config = self._saver.put(self._config, state, metadata, {})

    def close(self) -> None:
        """Close the connection."""
        self._open.close()


class LangGraphStore:
    """`SqliteStore` of LangGraph, without an index of vectors: an item for each message."""

    def __init__(self, path: Path, _: Durability) -> None:
        self._open = ExitStack()
        self._put = importlib.import_module("langgraph.store.base").PutOp
        module = importlib.import_module("langgraph.store.sqlite")
        self._store = self._open.enter_context(module.SqliteStore.from_conn_string(str(path)))
        self._store.setup()
        self._numbers = count(1)

    def made(self, text: str) -> Any:
        """Return the operation that puts an item."""
        return self._put(("ada", "monday"), str(next(self._numbers)), {"role": "user", "content": text})

    def append(self, some: Sequence[Any]) -> None:
        """Put items."""
        self._store.batch(some)

    def close(self) -> None:
        """Close the connection."""
        self._open.close()


PEERS: dict[str, tuple[Callable[[Path, Durability], Peer], str]] = {
    "bare INSERT": (Bare, ""),
    "INSERT + FTS5": (Indexed, ""),
    "OpenAI SQLiteSession": (OpenAISession, "agents"),
    "LangGraph SqliteSaver": (LangGraphSaver, "langgraph.checkpoint.sqlite"),
    "LangGraph SqliteStore": (LangGraphStore, "langgraph.store.sqlite"),
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
