"""Chat stores of LlamaIndex, beside its SQLAlchemyChatStore in a file of SQLite."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from sqlalchemy.ext.asyncio import create_async_engine

from benchmarks.adapters import Call
from holdfast.integrations.llama_index import HoldfastChatStore
from holdfast.memory import Memory

_Awaited = Callable[[AsyncDBChatStore, int], Coroutine[object, object, object]]
_KEY = "trip"
_ACTIVE = 20  # messages of the queue; all others are archived


@contextmanager
def calls(folder: Path, size: int) -> Iterator[Sequence[Call]]:
    """Open a store of each with so many messages, and return the calls of a turn."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{folder / 'theirs.db'}")
    with asyncio.Runner() as runner, Memory(folder / "holdfast.db") as memory:
        ours, theirs = HoldfastChatStore(memory=memory), SQLAlchemyChatStore("messages", async_engine=engine)
        for store in (ours, theirs):
            runner.run(_filled(store, size))

        def compared(name: str, call: _Awaited) -> Call:
            def ours_called(number: int) -> object:
                return runner.run(call(ours, number))

            def theirs_called(number: int) -> object:
                return runner.run(call(theirs, number))

            return Call(name, ours_called, theirs_called, "SQLAlchemyChatStore")

        yield [
            compared("add 2 messages, archive 2", _turn),
            compared(f"get {_ACTIVE} active messages", lambda store, _: store.get_messages(_KEY)),
            compared("count active messages", lambda store, _: store.count_messages(_KEY)),
            compared("get all messages", lambda store, _: store.get_messages(_KEY, status=None)),
        ]
        runner.run(engine.dispose())


async def _filled(store: AsyncDBChatStore, size: int) -> None:
    for start in range(0, size, 1_000):
        await store.add_messages(_KEY, [_message(n) for n in range(start, min(start + 1_000, size))])
    await store.archive_oldest_messages(_KEY, size - _ACTIVE)


async def _turn(store: AsyncDBChatStore, number: int) -> None:
    await store.add_messages(_KEY, [_message(number), _message(number + 1)])
    await store.archive_oldest_messages(_KEY, 2)


def _message(number: int) -> ChatMessage:
    role = "assistant" if number % 2 else "user"
    text = f"Message {number} about the marathon in Berlin, and how to train for it."
    return ChatMessage(role=role, content=text)
