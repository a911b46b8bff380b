"""Conversation stores of pydantic-ai, beside its own, which keeps them in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationStore, InMemoryConversationStore
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from benchmarks.adapters import Call
from holdfast.integrations.pydantic_conversations import HoldfastConversationStore
from holdfast.memory import Memory

_Awaited = Callable[[ConversationStore, int], Coroutine[object, object, object]]
_ID = "trip"
_WINDOW = 20  # messages that a run needs


@contextmanager
def calls(folder: Path, size: int) -> Iterator[Sequence[Call]]:
    """Open a store of each with a conversation of so many messages, and return the calls of a turn."""
    with asyncio.Runner() as runner, Memory(folder / "holdfast.db") as memory:
        ours, theirs = HoldfastConversationStore(memory), InMemoryConversationStore()
        for store in (ours, theirs):
            messages = [_message(number) for number in range(size)]
            runner.run(store.save(Conversation(conversation_id=_ID, messages=messages)))

        def compared(name: str, call: _Awaited) -> Call:
            def ours_called(number: int) -> object:
                return runner.run(call(ours, number))

            def theirs_called(number: int) -> object:
                return runner.run(call(theirs, number))

            return Call(name, ours_called, theirs_called, "InMemoryConversationStore")

        yield [
            compared(f"load {_WINDOW} messages, save 2 more", _turn),
            compared("load all messages", lambda store, _: store.load(_ID)),
        ]


async def _turn(store: ConversationStore, number: int) -> None:
    conversation = await store.load(_ID, limit=_WINDOW)
    if conversation is not None:
        conversation.messages += [_message(2 * number), _message(2 * number + 1)]
        await store.save(conversation)


def _message(number: int) -> ModelMessage:
    text = f"Message {number} about the marathon in Berlin, and how to train for it."
    return ModelResponse(parts=[TextPart(text)]) if number % 2 else ModelRequest(parts=[UserPromptPart(text)])
