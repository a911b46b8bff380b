"""SQLite files to damage and lock, and calls that read or write a database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from holdfast import Memory


def fill(location: str | Path, messages: int = 1) -> None:
    with Memory(location, user="ada") as memory:
        for n in range(messages):
            memory.chat("monday").append(role="user", content=f"message {n} " + "words " * 50)


def put(file: Path, sql: str) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(sql)


CALLS: dict[str, Callable[[Memory], object]] = {
    "append": lambda memory: memory.chat("monday").append(role="user", content="hello"),
    "append a list": lambda memory: memory.chat("monday").append([{"role": "user", "content": "hello"}]),
    "history": lambda memory: memory.chat("monday").history(),
    "stats": lambda memory: memory.chat("monday").stats(),
    "window": lambda memory: memory.chat("monday").window(),
    "prompt": lambda memory: memory.chat("monday").prompt(query="marathon"),
    "rename": lambda memory: memory.chat("monday").rename("Training"),
    "archive": lambda memory: memory.chat("monday").archive(),
    "chats": lambda memory: memory.chats(),
    "recall": lambda memory: memory.recall("marathon"),
    "rebuild": lambda memory: memory.verify(repair=True),
    "verify": lambda memory: memory.verify(),
    "a scoped handle": lambda memory: memory.scoped(user="bob").chats(),
}
