"""Sessions of the OpenAI Agents SDK, and their items."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from agents import RunConfig
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from holdfast import Memory
from holdfast.integrations.openai_agents import HoldfastSession

Item = dict[str, Any]
CALL: Item = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "weather",
    "arguments": '{"of": "Oslo"}',
}
QUIET = RunConfig(tracing_disabled=True)
OUTPUT: Item = {"type": "function_call_output", "call_id": "c1", "output": "Snow, minus four degrees."}


def said(text: str, role: str = "user") -> Item:
    return {"role": role, "content": text}


def add(session: HoldfastSession, *items: Item) -> None:
    asyncio.run(session.add_items(cast("Any", list(items))))


def items(session: HoldfastSession, limit: int | None = None) -> list[Any]:
    return list(asyncio.run(session.get_items(limit)))


def pop(session: HoldfastSession) -> Any:
    return asyncio.run(session.pop_item())


def clear(session: HoldfastSession) -> None:
    asyncio.run(session.clear_session())


@pytest.fixture
def session(memory: Memory) -> HoldfastSession:
    return HoldfastSession(memory, "trip")


def answer(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(
        id="1", type="message", role="assistant", content=[content], status="completed"
    )
