"""Models that write summaries: called or awaited, of pydantic-ai, over the wire; and how long they have."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

import compaction_chats
import pytest
from compaction_chats import PATIENCE, WAYS, AsyncScribe, compact, fresh, leaves, policy, tell
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from tree_checks import check_tree, covered_by

import llm_server
from holdfast import Chat, CompactionResult, Memory, ModelFailed
from llm_server import Server, completion, refusal
from tables import each

chat, server = compaction_chats.chat, llm_server.server


def served(server: Server) -> OpenAIChatModel:
    return OpenAIChatModel("served", provider=OpenAIProvider(base_url=server.url, api_key="key"))


def awaited(chat: Chat, llm: Callable[[str], Any], **options: Any) -> CompactionResult:
    return compact("awaited", chat, llm, **options)


# Awaited functions


def test_four_leaves_are_written_at_a_time_and_stored_in_order_whoever_answers_first(chat: Chat) -> None:
    tell(chat, 80)
    running = most = 0
    together = asyncio.Event()

    async def llm(prompt: str) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if most >= 4:
            together.set()
        await together.wait()
        first = re.search(r"Crane(\d+) ", prompt)
        for _ in range(200 - int(first[1]) if first else 1):  # the first is the last to answer
            await asyncio.sleep(0)
        running -= 1
        return f"Cranes from {first[1]} on." if first else "All cranes."

    awaited(chat, llm, budget=1_500)
    assert most == 4
    found = leaves(chat)
    assert len(found) > 4
    assert [one.text for one in found] == [f"Cranes from {one.first} on." for one in found]
    check_tree(chat)


@each(("fails", "stored"), [(1, 0), (3, 0), (6, 4)])
def test_the_first_that_fails_cancels_the_others_and_its_batch_is_not_stored(fails: int, stored: int) -> None:
    chat = fresh()
    tell(chat, 80)
    asked, ended, begun = count(1), list[str](), asyncio.Event()

    async def llm(prompt: str) -> str:
        if (number := next(asked)) == stored + 4:
            begun.set()
        if number == fails:
            await begun.wait()
            raise ConnectionError
        if number > stored:
            try:
                await asyncio.sleep(PATIENCE if number % 2 else 0)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise
        return "Cranes."

    with pytest.raises(ModelFailed) as caught:
        awaited(chat, llm)
    assert caught.value.reason == "unavailable"
    assert ended, "when it raises, no call is running any more"
    assert f"{stored} summaries were stored before" in caught.value.what or not stored
    assert len(chat.tree()) == stored
    check_tree(chat)
    assert awaited(chat, AsyncScribe()).leaves


def test_a_compaction_that_is_cancelled_leaves_a_sound_tree_and_holds_nothing(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 80)
    here = memory.aio.chat("c")

    async def main() -> None:
        begun, asked = asyncio.Event(), count(1)

        async def llm(prompt: str) -> str:
            if next(asked) > 4:
                begun.set()
                await asyncio.Event().wait()
            return "Cranes."

        async with asyncio.timeout(PATIENCE):
            task = asyncio.ensure_future(here.compact(full=True, llm=llm, policy=policy()))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await here.append(role="user", content="afterwards")

    asyncio.run(main())
    assert len(chat.tree()) == 4
    check_tree(chat)
    assert awaited(chat, AsyncScribe()).leaves


@pytest.mark.parametrize("kind", ["called", "awaited"])
def test_nobody_waits_for_a_model_that_is_awaited(memory: Memory, kind: str) -> None:
    """Also not for one that is no coroutine; and it may use the memory itself."""
    chat, here = memory.chat("c"), memory.aio.chat("c")
    tell(chat, 40)
    answer = threading.Event()

    def blocking(prompt: str) -> str:
        assert answer.wait(PATIENCE)
        return "Cranes."

    async def using(prompt: str) -> str:
        assert len(await here.history()) >= 40
        assert (await here.window()).messages
        assert await memory.aio.recall("crane7")
        await asyncio.to_thread(answer.wait, PATIENCE)
        return "Cranes."

    async def main() -> CompactionResult:
        async with asyncio.timeout(PATIENCE):
            llm = blocking if kind == "called" else using
            task = asyncio.ensure_future(here.compact(full=True, llm=llm, policy=policy()))
            assert (await here.append(role="user", content="Meanwhile.")).seq == 41
            assert not task.done()
            answer.set()
            return await task

    assert asyncio.run(main()).calls > 1
    assert covered_by(chat) < 41
    check_tree(chat)


# Over the wire


@pytest.mark.slow
@pytest.mark.parametrize(("way", "named"), [("called", True), ("awaited", False)])
def test_a_server_writes_summaries_and_one_that_refuses_leaves_the_session_as_it_was(
    chat: Chat, server: Server, way: str, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    server.reply = lambda _: (200, completion("Cranes.", reasoning_content="A secret."))
    tell(chat, 40)
    result = compact(way, chat, "openai-chat:gpt-5-mini" if named else served(server))
    name = "openai-chat:gpt-5-mini" if named else "openai:served"
    assert {(one.model, one.text) for one in result.summaries} == {(name, "Cranes.")}
    assert result.calls == len(server.requests)
    tell(chat, 40, first=41)
    before = chat.window(), chat.stats(), chat.tree()
    server.reply = lambda _: (429, refusal("insufficient_quota"))
    with pytest.raises(ModelFailed) as caught:
        compact(way, chat, served(server))
    assert caught.value.reason == "quota"
    assert (chat.window(), chat.stats(), chat.tree()) == before


@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_does_not_answer_is_given_up(chat: Chat, way: str) -> None:
    tell(chat, 40)

    async def llm(prompt: str) -> str:
        with suppress(TimeoutError):  # or the test would wait for ever
            await asyncio.wait_for(asyncio.Event().wait(), 1)
        return "Too late."

    with pytest.raises(ModelFailed) as caught:
        compact(way, chat, llm, patience=0.05)
    assert caught.value.reason == "timeout"
    assert chat.tree() == []
