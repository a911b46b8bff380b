"""Agents of pydantic-ai, the models they ask, and what a chat has stored of their runs."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator, Sequence

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from holdfast import Chat, Memory

Answer = Callable[[Sequence[ModelMessage], AgentInfo], ModelResponse]


@pytest.fixture(autouse=True)
def runner() -> Iterator[asyncio.Runner]:
    """Give an event loop that is closed in the end; `run_sync` would leave one of its own open."""
    with asyncio.Runner() as runner:
        asyncio.set_event_loop(runner.get_loop())
        yield runner
        asyncio.set_event_loop(None)


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", user="ada", admin=True) as opened:
        yield opened


@pytest.fixture
def chat(memory: Memory) -> Chat:
    return memory.chat("monday")


class Watched:
    """A model that answers by a function and keeps what it was shown."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.shown: list[list[ModelMessage]] = []
        self._answer = answer
        self.model = FunctionModel(self._reply)

    def _reply(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.shown.append(messages)
        if self._answer is not None:
            return self._answer(messages, info)
        return say(f"answer {len(self.shown)}")

    def words(self) -> list[str]:
        """Give what the model saw last, a line for each part."""
        return words(self.shown[-1])


def say(text: str) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)])


def call(*cities: str) -> ModelResponse:
    return ModelResponse(
        parts=[TextPart("I look."), *(ToolCallPart("weather", {"city": city}) for city in cities)]
    )


def words(messages: Sequence[ModelMessage]) -> list[str]:
    return [
        f"{part.part_kind}: {getattr(part, 'content', None) or getattr(part, 'args', '')}"
        for message in messages
        for part in message.parts
    ]


def asked(messages: Sequence[ModelMessage]) -> str:
    """Give the newest message of the user, without what was recalled for it."""
    return next(
        str(part.content)
        for message in reversed(messages)
        for part in reversed(message.parts)
        if isinstance(part, UserPromptPart)
    )


def answered(messages: Sequence[ModelMessage]) -> list[str]:
    """Give the results that the model is to go on with; those of other runs may come before a question."""
    if isinstance(messages[-1].parts[-1], UserPromptPart):
        return []
    return [str(part.content) for part in messages[-1].parts if isinstance(part, ToolReturnPart)]


def look_up(messages: Sequence[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Ask for the weather where the user does, and say what it is."""
    if results := answered(messages):
        return say(" and ".join(results))
    return call("Lisbon", "Berlin") if "weather" in asked(messages) else say("Hello.")


def weather(city: str) -> str:
    return f"sun in {city}"


def stored(chat: Chat) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in chat.history()]


def check_accepted(messages: Sequence[ModelMessage]) -> None:
    """Check the rules that all providers have."""
    kinds = [type(message) for message in messages]
    assert kinds[0] is kinds[-1] is ModelRequest
    assert (ModelRequest, ModelRequest) not in set(itertools.pairwise(kinds))
    for message, after in itertools.pairwise(messages):
        calls = {part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)}
        results = {part.tool_call_id for part in after.parts if isinstance(part, ToolReturnPart)}
        if calls or results:
            assert calls == results
    first = [part for message in messages for part in message.parts][: len(words(messages[:1]))]
    system = [isinstance(part, SystemPromptPart) for part in first]
    assert system == sorted(system, reverse=True)
