"""The policy of a memory: what windows, prompts and compactions go by where none is named."""

from __future__ import annotations

import pytest

from holdfast import Memory, Message
from holdfast.chat import Chat
from holdfast.errors import InvalidInput
from holdfast.prompt.window import (
    Compaction,
    FreshTail,
    LastN,
    Lossless,
    Policy,
    SummaryBuffer,
    TokenBudget,
)
from tables import each

POLICIES = [
    Lossless(900, Compaction(turns=2)),
    SummaryBuffer(900),
    FreshTail(900, turns=2),
    TokenBudget(900, keep=3),
    LastN(7),
]
WORDS = "We moved the tents again because the river rose, and nobody slept before the rain was over. " * 4


def told(chat: Chat, count: int = 40) -> Chat:
    chat.append(
        [{"role": "assistant" if n % 2 else "user", "content": f"Note {n}. {WORDS}"} for n in range(count)]
    )
    return chat


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_the_policy_of_a_memory_is_that_of_its_windows_and_prompts(location: str, policy: Policy) -> None:
    with Memory(location, user="ada", policy=policy) as memory:
        chat = told(memory.chat("c"))
        assert chat.window() == chat.window(policy=policy)
        assert chat.window().messages
        named = chat.prompt(policy=policy).window
        assert chat.prompt().window == named
        assert chat.prompt().tokens["budget"] == (8_000 if isinstance(policy, LastN) else 900)
        with chat.run() as run:
            assert run.prompt().window == named
        assert memory.scoped(agent="coach").chat("c").window() == chat.window()
        assert chat.window() != chat.window(policy=Lossless()), "one that is named comes first"


def test_a_chat_is_compacted_for_the_policy_of_its_memory(location: str) -> None:
    policy = SummaryBuffer(900)
    with Memory(location, user="ada", policy=policy) as memory:
        chat = told(memory.chat("c"))
        assert chat.needs_compaction()
        assert not chat.needs_compaction(100_000)
        assert chat.compact(budget=100_000).noop
        chat.compact(full=True)
        assert not chat.needs_compaction()
        assert len(chat.window().summaries) == 1
        assert chat.window().tokens <= policy.budget
        assert chat.window().messages[0].role == "user"


@each("policy", POLICIES[2:])
def test_a_policy_without_summaries_does_not_say_how_to_compact(policy: Policy) -> None:
    with Memory(":memory:", policy=policy) as memory:
        chat = told(memory.chat("c"))
        for call in (chat.compact, chat.needs_compaction):
            with pytest.raises(InvalidInput, match="does not say how to compact"):
                call(budget=500)
        assert chat.needs_compaction(policy=Lossless(500))


def test_a_tail_is_kept_by_a_policy_that_keeps_a_number_of_messages() -> None:
    for policy in (Lossless(100), TokenBudget(100)):
        with Memory(":memory:", policy=policy) as memory:
            assert len(told(memory.chat("c")).window(tail=8).messages) == 8
    for other in (FreshTail(100), LastN(3), SummaryBuffer(100)):
        with Memory(":memory:", policy=other) as memory:
            chat = told(memory.chat("c"))
            assert chat.window(tail=None).messages
            with pytest.raises(InvalidInput, match=type(other).__name__):
                chat.window(tail=8)


@each("policy", ["lossless", 8_000, Lossless, {"budget": 1}])
def test_what_is_no_policy_is_refused(policy: Policy) -> None:
    with pytest.raises(InvalidInput, match="`policy` is"):
        Memory(":memory:", policy=policy)


def test_a_budget_beside_a_policy_is_that_of_the_window_and_of_its_compaction() -> None:
    with Memory(":memory:") as memory:
        chat = memory.chat("trip")
        chat.append([Message("user", f"the boat left the harbour on day {n}") for n in range(200)])
        policies: list[Policy] = [Lossless(10_000), TokenBudget(10_000), FreshTail(10_000, turns=1)]
        for policy in policies:
            assert chat.window(policy=policy).tokens > 500
            window = chat.window(500, policy=policy)
            assert (window.budget, window.tokens <= 500) == (500, True)
        assert not chat.needs_compaction(policy=Lossless(10_000))
        assert chat.needs_compaction(500, policy=Lossless(10_000))
        assert chat.compact(full=True, budget=500, policy=Lossless(10_000)).tokens_after < 500
