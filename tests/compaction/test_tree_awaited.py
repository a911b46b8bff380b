"""A model that is awaited writes several summaries at once; what is left is the same kind of tree."""

from __future__ import annotations

import asyncio

import pytest
from tree_logs import check_tree, check_words, covered_by

from holdfast import Memory, Message
from holdfast.chat import Chat
from holdfast.errors import ModelFailed
from holdfast.prompt.window import Compaction, Lossless, SummaryBuffer

TREE = Lossless(600, Compaction(leaf_source=200, fan_in=(2, 2), tail=0.2, calls=1000))
POLICIES = pytest.mark.parametrize("policy", [TREE, SummaryBuffer(600)], ids=["tree", "single"])


def talk(chat: Chat, turns: int) -> None:
    chat.append(
        [Message("user", f"{n}: The tulips in the garden of Ada bloom in April.") for n in range(turns)]
    )


def check(memory: Memory) -> None:
    chat = memory.chat("monday")
    check_tree(memory, chat, chat.history())
    check_words(chat, chat.history())


@pytest.mark.slow
@POLICIES
@pytest.mark.parametrize("what", ["append", "compact", "erase", "erase all"])
@pytest.mark.parametrize("when", [2, 5])
def test_whatever_happens_while_several_are_awaited_leaves_a_tree(
    memory: Memory, policy: Lossless | SummaryBuffer, what: str, when: int
) -> None:
    chat = memory.aio.chat("monday")
    talk(memory.chat("monday"), 120)
    asked: list[str] = []

    async def answer(prompt: str) -> str:
        asked.append(prompt)
        if len(asked) == when:
            if what == "append":
                await chat.append(role="user", content="meanwhile")
            elif what == "compact":
                await chat.compact(full=True, policy=policy)
            elif what == "erase":
                await memory.aio.erase(chat="monday", messages=(20, 22))
            else:
                await memory.aio.erase(chat="monday")
                await chat.append(role="user", content="anew")
        return "They spoke of a garden."

    result = asyncio.run(chat.compact(full=True, policy=policy, llm=answer))
    assert result.calls == len(asked)
    check(memory)
    asyncio.run(chat.compact(full=True, policy=policy))
    check(memory)


def test_nobody_waits_for_a_model_that_is_awaited(memory: Memory) -> None:
    chat = memory.aio.chat("monday")
    talk(memory.chat("monday"), 120)

    async def main() -> None:
        thinks, may_go_on = asyncio.Event(), asyncio.Event()

        async def answer(prompt: str) -> str:
            thinks.set()
            await may_go_on.wait()
            return "They spoke of a garden."

        compacting = asyncio.create_task(chat.compact(full=True, policy=TREE, llm=answer))
        await thinks.wait()
        assert (await chat.append(role="user", content="meanwhile")).seq == 121
        assert not compacting.done()
        may_go_on.set()
        assert (await compacting).leaves > 4

    asyncio.run(main())
    assert covered_by(memory.chat("monday")) < 121
    check(memory)


@POLICIES
@pytest.mark.parametrize("fails", [1, 4])
def test_of_several_at_once_one_fails(memory: Memory, policy: Lossless | SummaryBuffer, fails: int) -> None:
    talk(memory.chat("monday"), 120)
    asked: list[str] = []

    async def answer(prompt: str) -> str:
        asked.append(prompt)
        await asyncio.sleep(0)
        if len(asked) >= fails:
            raise OSError("no network")
        return "They spoke of a garden."

    failed = False
    try:
        asyncio.run(memory.aio.chat("monday").compact(full=True, policy=policy, llm=answer))
    except ModelFailed:
        failed = True
    assert failed == (len(asked) >= fails)
    assert failed or policy is not TREE
    check(memory)
    memory.chat("monday").compact(full=True, policy=policy)
    check(memory)


def test_a_compaction_that_is_cancelled_holds_nothing(memory: Memory) -> None:
    chat = memory.aio.chat("monday")
    talk(memory.chat("monday"), 120)

    async def main() -> None:
        thinks = asyncio.Event()

        async def answer(prompt: str) -> str:
            thinks.set()
            await asyncio.Event().wait()
            return ""

        compacting = asyncio.create_task(chat.compact(full=True, policy=TREE, llm=answer))
        await thinks.wait()
        compacting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await compacting
        await chat.append(role="user", content="afterwards")

    asyncio.run(main())
    assert memory.chat("monday").tree() == []
    memory.chat("monday").compact(full=True, policy=TREE)
    check(memory)
