"""Models of pydantic-ai that write summaries, also over the wire."""

from __future__ import annotations

import gc
import re
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import compaction_chats
import pytest
from compaction_chats import (
    PATIENCE,
    WAYS,
    AsyncScribe,
    check_tree,
    compact,
    served,
    tell,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

import llm_server
from holdfast import Memory, ModelFailed
from holdfast.chat import Chat
from llm_server import Body, Server, completion, prompt_of, refusal

chat, server = compaction_chats.chat, llm_server.server

# Models of pydantic-ai


@pytest.mark.parametrize("way", WAYS)
def test_a_test_model_writes_summaries(memory: Memory, way: str) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    result = compact(way, chat, TestModel(custom_output_text="Cranes lifted boxes."))
    assert {(one.text, one.level, one.model) for one in result.summaries} == {
        ("Cranes lifted boxes.", "normal", "test:test")
    }
    assert result.calls == len(result.summaries)
    check_tree(chat)


@pytest.mark.parametrize("way", WAYS)
def test_a_function_model_is_asked_with_the_prompt_alone(chat: Chat, way: str) -> None:
    tell(chat, 40)
    prompts: list[str] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        (request,) = messages
        assert isinstance(request, ModelRequest)
        (part,) = request.parts
        assert isinstance(part, UserPromptPart)
        assert isinstance(part.content, str)
        prompts.append(part.content)
        return ModelResponse(parts=[ThinkingPart("Hm, a secret."), TextPart("Cranes.")])

    result = compact(way, chat, FunctionModel(answer))
    assert result.calls == len(prompts)
    assert all("<conversation>" in prompt or "<summaries>" in prompt for prompt in prompts)
    assert {one.text for one in result.summaries} == {"Cranes."}


@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_only_thinks_does_not_keep_a_session_from_being_compacted(chat: Chat, way: str) -> None:
    tell(chat, 40)
    result = compact(way, chat, FunctionModel(lambda _, __: ModelResponse(parts=[ThinkingPart("Hm.")])))
    assert {one.level for one in result.summaries} == {"deterministic"}
    assert result.tokens_after < 600


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_server_writes_summaries(memory: Memory, server: Server, way: str) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    server.reply = lambda _: (200, completion("Cranes lifted boxes.", reasoning_content="A secret."))
    result = compact(way, chat, served(server))
    assert {one.text for one in result.summaries} == {"Cranes lifted boxes."}
    assert {one.model for one in result.summaries} == {"openai:served"}
    prompts = [prompt_of(body) for body in server.requests]
    assert result.calls == len(prompts)
    assert result.prompt_tokens == sum((len(prompt) + 3) // 4 for prompt in prompts)
    check_tree(chat)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (401, "invalid_api_key", "authentication"),
        (403, "forbidden", "authentication"),
        (429, "rate_limit_exceeded", "quota"),
        (429, "insufficient_quota", "quota"),
        (500, "server_error", "error"),
    ],
)
def test_a_server_that_refuses_leaves_the_session_as_it_was(
    chat: Chat, server: Server, way: str, status: int, code: str, reason: str
) -> None:
    tell(chat, 40)
    before = chat.window(), chat.stats()
    server.reply = lambda _: (status, refusal(code))
    with pytest.raises(ModelFailed) as caught:
        compact(way, chat, served(server))
    assert caught.value.reason == reason
    assert chat.tree() == []
    assert (chat.window(), chat.stats()) == before


@pytest.mark.slow
def test_calls_that_fail_together_leave_no_connection_open(chat: Chat, server: Server) -> None:
    tell(chat, 40)
    together = threading.Barrier(4)

    def reply(_: Body) -> tuple[int, str]:
        with suppress(threading.BrokenBarrierError):
            together.wait(PATIENCE)
        return 429, refusal("rate_limit_exceeded")

    server.reply = reply
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(10):
            with pytest.raises(ModelFailed):
                compact("awaited", chat, served(server))
        together.abort()
        gc.collect()
    assert [str(warning.message) for warning in caught] == []


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", ["", None, "<think>only</think>"])
def test_a_server_that_answers_nothing_does_not_keep_a_session_from_being_compacted(
    chat: Chat, server: Server, way: str, text: str | None
) -> None:
    tell(chat, 40)
    server.reply = lambda _: (200, completion(text))
    result = compact(way, chat, served(server))
    assert {one.level for one in result.summaries} == {"deterministic"}
    assert result.tokens_after < 600


def test_a_server_is_asked_for_several_leaves_at_once(chat: Chat, server: Server) -> None:
    tell(chat, 40)
    together = threading.Barrier(4)
    asked: list[int] = []

    def reply(_: Body) -> tuple[int, str]:
        asked.append(1)
        if len(asked) <= 4:
            together.wait(PATIENCE)
        return 200, completion("Cranes.")

    server.reply = reply
    assert compact("awaited", chat, served(server)).calls >= 4
    check_tree(chat)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_model_is_found_by_its_name(
    chat: Chat, server: Server, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    server.reply = lambda _: (200, completion("Cranes."))
    tell(chat, 40)
    result = compact(way, chat, "openai-chat:gpt-5-mini")
    assert {one.model for one in result.summaries} == {"openai-chat:gpt-5-mini"}
    assert {body["model"] for body in server.requests} == {"gpt-5-mini"}
    assert {one.text for one in result.summaries} == {"Cranes."}


@pytest.mark.parametrize("way", WAYS)
def test_a_missing_key_is_named_before_anything(
    chat: Chat, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    tell(chat, 40)
    with pytest.raises(ModelFailed, match=re.escape("Set OPENAI_API_KEY")) as caught:
        compact(way, chat, "openai:gpt-5-mini")
    assert caught.value.reason == "authentication"
    assert chat.tree() == []


@pytest.mark.parametrize("way", WAYS)
def test_a_failure_after_some_summaries_keeps_its_reason(chat: Chat, way: str) -> None:
    tell(chat, 80)
    asked: list[str] = []

    class RateLimitError(Exception):
        pass

    async def llm(prompt: str) -> str:
        asked.append(prompt)
        if len(asked) > 5:
            raise RateLimitError
        return "Cranes."

    with pytest.raises(ModelFailed, match=r"\d summaries were stored before") as caught:
        compact(way, chat, llm)
    assert caught.value.reason == "quota"
    assert chat.tree()
    check_tree(chat)


def test_a_function_of_an_awaitable_may_write_summaries(chat: Chat) -> None:
    tell(chat, 40)
    scribe = AsyncScribe()
    lazy: Callable[[str], Any] = lambda prompt: scribe(prompt)  # noqa: E731, PLW0108 - not seen to be a coroutine function
    for way in WAYS:
        tell(chat, 40, first=1 + len(chat.history()))
        assert compact(way, chat, lazy).leaves
    check_tree(chat)
