"""Limits of a compaction, and models that fail: each is stated, and nothing is stored by halves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest
from compaction_chats import (
    Scribe,
    check_tree,
    policy,
    tell,
)

from holdfast import InvalidInput, Memory
from holdfast.chat import Chat

Both = Literal["incremental", "full"]
MODES: list[Both] = ["incremental", "full"]


@pytest.fixture
def chat() -> Iterator[Chat]:
    with Memory(":memory:", user="ada", admin=True) as memory:
        yield memory.chat("c")


# Limits, each of which says so


def test_one_pass_is_what_an_incremental_compaction_does() -> None:
    trees = []
    ways: list[tuple[Both, int]] = [("full", 1), ("incremental", 12)]
    for mode, passes in ways:
        with Memory(":memory:", user="ada") as memory:
            chat = memory.chat("c")
            tell(chat, 300)
            chat.compact(full=mode == "full", policy=policy(600, fan_in=(2, 2), passes=passes))
            trees.append([(one.depth, one.first, one.last) for one in chat.tree()])
    assert trees[0] == trees[1] != []


def test_no_passes_do_nothing(chat: Chat) -> None:
    tell(chat, 40)
    result = chat.compact(full=True, policy=policy(passes=0))
    assert result.noop
    assert result.why == "It made 0 passes over the chat."


@pytest.mark.parametrize("llm", [None, Scribe()])
def test_no_time_does_nothing_and_says_so(chat: Chat, llm: Scribe | None) -> None:
    tell(chat, 40)
    result = chat.compact(full=True, llm=llm, policy=policy(seconds=0))
    assert result.noop
    assert result.why == "The time limit of 0 seconds is reached."
    assert result.calls == 0
    assert chat.needs_compaction(policy=policy())


@pytest.mark.parametrize("calls", [0, 1, 2, 3, 5])
def test_at_most_so_many_calls(chat: Chat, calls: int) -> None:
    tell(chat, 100)
    scribe = Scribe()
    result = chat.compact(full=True, llm=scribe, policy=policy(calls=calls))
    assert result.calls == len(scribe.prompts) == calls
    assert len(result.summaries) == calls
    assert result.why == f"The limit of {calls} calls of the model is reached."
    check_tree(chat)


@pytest.mark.parametrize("calls", [1, 2, 3, 4, 5])
def test_what_is_asked_again_counts_as_a_call(chat: Chat, calls: int) -> None:
    tell(chat, 100)
    scribe = Scribe("far too long. " * 1_000)
    result = chat.compact(full=True, llm=scribe, policy=policy(calls=calls))
    assert len(scribe.prompts) == result.calls == calls
    assert {one.level for one in result.summaries} == {"deterministic"}


def test_the_calls_of_a_model_do_not_limit_a_compaction_without_one(chat: Chat) -> None:
    tell(chat, 40)
    assert chat.compact(full=True, policy=policy(calls=0, spend=0)).tokens_after < 600


@pytest.mark.parametrize("spend", [0, 600, 1_500, 3_000, 5_000])
def test_it_spends_no_more_than_it_may(chat: Chat, spend: int) -> None:
    tell(chat, 100)
    result = chat.compact(full=True, llm=Scribe(), policy=policy(spend=spend))
    assert result.prompt_tokens + result.answer_tokens <= spend
    assert result.why == f"The limit of {spend:,} tokens for the model allows no further summary."
    assert result.noop is (result.calls == 0)
    assert (spend >= 1_500) is bool(result.calls)


@pytest.mark.parametrize("spend", [1_500, 2_000, 2_500])
def test_what_is_asked_again_is_within_what_it_may_spend(chat: Chat, spend: int) -> None:
    tell(chat, 100)
    answer = "Cranes lifted some more boxes. " * 40  # which nobody knows to be so long before it is there
    result = chat.compact(full=True, llm=Scribe(answer), policy=policy(spend=spend))
    assert result.calls
    assert result.prompt_tokens + result.answer_tokens - len(answer) // 4 <= spend


@pytest.mark.parametrize("full", ["", "full", 1, None])
def test_full_is_true_or_false(chat: Chat, full: Any) -> None:
    with pytest.raises(InvalidInput, match="`full`"):
        chat.compact(full=full)
