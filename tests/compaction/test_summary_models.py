"""Functions that may write summaries, called or awaited, and how long they are waited for."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from itertools import count
from typing import Any

import compaction_chats
import pytest
from compaction_chats import (
    PATIENCE,
    WAYS,
    AsyncScribe,
    Scribe,
    awaited,
    check_tree,
    compact,
    in_turn,
    policy,
    section,
    served,
    tell,
)

import llm_server
from holdfast import CompactionResult, InvalidInput, Memory, ModelFailed
from holdfast.chat import Chat
from holdfast.llm.model import LLM
from holdfast.prompt.window import LastN, SummaryBuffer
from llm_server import Body, Server, completion
from tables import each

chat, server = compaction_chats.chat, llm_server.server

# Awaited functions


def test_leaves_are_written_at_the_same_time(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    asked = 0

    async def main() -> CompactionResult:
        together = asyncio.Barrier(4)

        async def llm(prompt: str) -> str:
            nonlocal asked
            asked += 1
            if asked <= 4:
                await together.wait()
            return "Cranes."

        async with asyncio.timeout(PATIENCE):
            return await awaited(chat).compact(full=True, llm=llm, policy=policy())

    result = asyncio.run(main())
    assert asked == result.calls >= 4
    assert result.tokens_after < 600
    check_tree(chat)


def test_no_more_than_four_are_written_at_the_same_time(chat: Chat) -> None:
    tell(chat, 200)
    running = most = 0
    together = asyncio.Event()

    async def llm(prompt: str) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if most >= 4:
            together.set()
        await together.wait()
        for _ in range(20):  # in which a fifth could begin
            await asyncio.sleep(0)
        running -= 1
        return "Cranes."

    compact("awaited", chat, llm)
    assert most == 4
    check_tree(chat)


def test_the_answers_are_stored_in_the_order_of_the_messages(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 40)

    async def main() -> None:
        last = asyncio.Event()

        async def llm(prompt: str) -> str:
            said = section(prompt, "conversation") if "<conversation>" in prompt.splitlines() else ""
            if "Crane1 " in said:
                await last.wait()  # the first is the last to answer
            if "Crane13 " in said:
                last.set()
            return f"Cranes from {said[:40].split('Crane')[-1].split(' ')[0]} on." if said else "All cranes."

        async with asyncio.timeout(PATIENCE):
            await awaited(chat).compact(full=True, llm=llm, policy=policy(1_500))

    asyncio.run(main())
    found = [one for one in chat.tree() if not one.depth]
    assert len(found) >= 4
    assert [one.text for one in found] == [f"Cranes from {one.first} on." for one in found]
    check_tree(chat)


def test_the_first_that_fails_cancels_the_others_and_nothing_is_stored(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    before = chat.window(), chat.stats()
    ended: list[str] = []

    async def main() -> None:
        together, never = asyncio.Barrier(4), asyncio.Event()

        async def llm(prompt: str) -> str:
            await together.wait()
            if "Crane9 " in prompt:
                raise ConnectionError
            if "Crane1 " in prompt:
                return "Cranes."
            try:
                await never.wait()
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise
            return "Never."

        async with asyncio.timeout(PATIENCE):
            with pytest.raises(ModelFailed) as caught:
                await awaited(chat).compact(full=True, llm=llm, policy=policy())
            assert caught.value.reason == "unavailable"
            assert ended == ["cancelled", "cancelled"], "when it raises, no call is running any more"

    asyncio.run(main())
    assert chat.tree() == []
    assert (chat.window(), chat.stats()) == before
    assert compact("awaited", chat, AsyncScribe()).leaves


def test_what_was_stored_before_the_failing_batch_stays(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 80)
    scribe = Scribe()

    async def llm(prompt: str) -> str:
        answer = scribe(prompt)
        if len(scribe.prompts) == 6:
            raise ConnectionError
        return answer

    with pytest.raises(ModelFailed, match="4 summaries were stored before"):
        compact("awaited", chat, llm)
    assert len(chat.tree()) == 4
    check_tree(chat)


def test_cancelling_a_compaction_leaves_a_sound_tree(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 80)

    async def main() -> None:
        begun, never = asyncio.Event(), asyncio.Event()
        asked = 0

        async def llm(prompt: str) -> str:
            nonlocal asked
            asked += 1
            if asked > 4:
                begun.set()
                await never.wait()
            return "Cranes."

        async with asyncio.timeout(PATIENCE):
            task = asyncio.ensure_future(awaited(chat).compact(full=True, llm=llm, policy=policy()))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert len(chat.tree()) == 4
    check_tree(chat)
    assert compact("awaited", chat, AsyncScribe()).leaves
    check_tree(chat)


def test_the_event_loop_turns_while_a_synchronous_model_thinks(chat: Chat) -> None:
    tell(chat, 40)
    answer = threading.Event()
    scribe = Scribe()

    def llm(prompt: str) -> str:
        assert answer.wait(PATIENCE)
        return scribe(prompt)

    async def main() -> CompactionResult:
        async with asyncio.timeout(PATIENCE):
            task = asyncio.ensure_future(awaited(chat).compact(full=True, llm=llm, policy=policy()))
            assert await awaited(chat).history(limit=1)
            answer.set()
            return await task

    result = asyncio.run(main())
    assert result.calls == len(scribe.prompts) > 1
    check_tree(chat)


def test_an_awaited_model_may_use_the_memory(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    here = awaited(chat)

    async def llm(prompt: str) -> str:
        assert len(await here.history()) >= 40
        assert (await here.window()).messages
        assert await memory.aio.recall("crane7")
        await here.append(role="user", content="Meanwhile.")
        return "Cranes."

    async def main() -> CompactionResult:
        async with asyncio.timeout(PATIENCE):
            return await here.compact(full=True, llm=llm, policy=policy())

    result = asyncio.run(main())
    assert len(chat.history()) == 40 + result.calls
    check_tree(chat)


@each("messages", [14, 20, 40, 100])
def test_called_and_awaited_do_the_same(messages: int) -> None:
    results = []
    for way in WAYS:
        with Memory(":memory:", user="ada") as memory:
            chat = memory.chat("c")
            tell(chat, messages)
            answer = "Cranes lifted many boxes to the piers of the harbour. " * 3
            result = compact(way, chat, AsyncScribe(answer), leaf_source=300)
            results.append(
                (
                    [(one.depth, one.first, one.last, one.text) for one in result.summaries],
                    result.tokens_after,
                    result.why,
                )
            )
    assert results[0] == results[1]


def test_four_at_once_do_not_go_further_than_one_after_the_other(chat: Chat) -> None:
    tell(chat, 200)
    result = compact("awaited", chat, AsyncScribe("Cranes."), budget=10_000, leaf_source=1_000)
    assert 6_000 - 1_000 <= result.tokens_after < 6_000


@pytest.mark.parametrize("way", WAYS)
def test_an_account_is_true_in_both_ways(memory: Memory, way: str) -> None:
    chat = memory.chat("c")
    tell(chat, 60)
    scribe = AsyncScribe(in_turn("far too long. " * 500, "Cranes.", "Cranes lifted boxes."))
    result = compact(way, chat, scribe, fan_in=(3, 2))
    assert result.calls == len(scribe.prompts)
    assert result.prompt_tokens == sum((len(prompt) + 3) // 4 for prompt in scribe.prompts)
    assert {one.model for one in result.summaries} == {"AsyncScribe"}
    assert {one.level for one in result.summaries} == {"normal", "aggressive"}
    assert result.tokens_after == chat.stats().context_tokens
    check_tree(chat)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("calls", [1, 2, 3, 5, 7])
def test_at_most_so_many_calls_in_both_ways(chat: Chat, way: str, calls: int) -> None:
    tell(chat, 100)
    scribe = AsyncScribe("far too long. " * 500)
    result = compact(way, chat, scribe, calls=calls)
    assert result.calls == len(scribe.prompts) <= calls
    assert result.why == f"The limit of {calls} calls of the model is reached."


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("spend", [1_000, 2_000, 4_000])
def test_it_spends_no_more_than_it_may_in_both_ways(chat: Chat, way: str, spend: int) -> None:
    tell(chat, 100)
    result = compact(way, chat, AsyncScribe(), spend=spend)
    assert result.calls
    assert result.prompt_tokens + result.answer_tokens <= spend


def test_progress_is_told_when_awaited(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 60)
    stages: list[CompactionResult] = []

    async def main() -> CompactionResult:
        async with asyncio.timeout(PATIENCE):
            return await awaited(chat).compact(
                full=True, llm=AsyncScribe(), policy=policy(), progress=stages.append
            )

    result = asyncio.run(main())
    assert stages[0].why, "the model is asked next"
    stages = [stage for stage in stages if not stage.why]
    assert [len(stage.summaries) for stage in stages] == list(range(1, len(result.summaries) + 1))
    assert [stage.tokens_after for stage in stages] == sorted(
        (one.tokens_after for one in stages), reverse=True
    )
    assert [stage.calls for stage in stages] == sorted(stage.calls for stage in stages)


def test_without_a_model_it_can_be_awaited_too(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 40)

    async def main() -> CompactionResult:
        return await awaited(chat).compact(full=True, policy=policy())

    assert asyncio.run(main()).tokens_after < 600
    check_tree(chat)


@pytest.mark.parametrize("llm", [None, Scribe(), AsyncScribe()])
def test_what_is_wrong_is_refused_when_awaited(chat: Chat, llm: LLM | None) -> None:
    tell(chat, 40)
    wrong: Any = LastN()

    async def main() -> None:
        with pytest.raises(InvalidInput, match="full"):
            await awaited(chat).compact(full=wrong, llm=llm)
        with pytest.raises(InvalidInput):
            await awaited(chat).compact(budget=-1, llm=llm)
        with pytest.raises(InvalidInput, match="does not say how to compact"):
            await awaited(chat).compact(policy=wrong, llm=llm)

    asyncio.run(main())


@each("way", WAYS)
@each("llm", [5, "nope:model", "gpt-5-mini", lambda: "x", object()])
def test_what_is_no_model_is_refused_before_anything(chat: Chat, way: str, llm: Any) -> None:
    tell(chat, 40)
    with pytest.raises(InvalidInput):
        compact(way, chat, llm)
    assert chat.tree() == []


def test_a_buffer_of_one_summary_can_be_awaited(memory: Memory) -> None:
    chat = memory.chat("c")
    buffer = SummaryBuffer(1_000)

    async def main() -> None:
        for first in range(1, 60, 9):
            tell(chat, 9, first=first)
            await awaited(chat).compact(llm=AsyncScribe(f"Up to {first}."), policy=buffer)

    asyncio.run(main())
    assert len(chat.window(policy=buffer).summaries) == 1
    check_tree(chat)


# Patience


@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_does_not_answer_is_given_up(memory: Memory, way: str) -> None:
    chat = memory.chat("c")
    tell(chat, 40)

    async def llm(prompt: str) -> str:
        with suppress(TimeoutError):  # or the test would wait for ever
            await asyncio.wait_for(asyncio.Event().wait(), 1)
        return "Too late."

    with pytest.raises(ModelFailed) as caught:
        compact(way, chat, llm, patience=0.05, seconds=0.5)
    assert caught.value.reason == "timeout"
    assert chat.tree() == []


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stored", [0, 1])
def test_a_function_that_hangs_ends_with_the_time_of_the_compaction(
    memory: Memory, way: str, stored: int
) -> None:
    """It is no failure: what was written before stays, and the account names the thread that still waits."""
    chat, go_on, asked = memory.chat("c"), threading.Event(), count()
    tell(chat, 40)

    def llm(_: str) -> str:
        if next(asked) >= stored:
            go_on.wait()
        return "They spoke of this and that."

    seconds = 1.2 if stored else 0.3  # on a busy machine, what is stored takes its time as well
    try:
        done = compact(way, chat, llm, patience=60, seconds=seconds)
    finally:
        go_on.set()
    assert (len(done.summaries), len(chat.tree())) == (stored, stored)
    assert done.why.startswith(f"The time limit of {seconds} seconds is reached. The model ")
    assert "did not answer" in done.why
    assert "thread 'holdfast-model-" in done.why
    check_tree(chat)


@pytest.mark.parametrize("way", WAYS)
def test_a_server_that_does_not_answer_is_given_up(chat: Chat, server: Server, way: str) -> None:
    tell(chat, 40)
    late = threading.Event()

    def reply(_: Body) -> tuple[int, str]:
        late.wait(1)
        return 200, completion("Too late.")

    server.reply = reply
    try:
        with pytest.raises(ModelFailed) as caught:
            compact(way, chat, served(server), patience=0.05, seconds=0.5)
    finally:
        late.set()
    assert caught.value.reason == "timeout"
    assert chat.tree() == []
