"""Limits of a compaction, and models that fail: each is stated, and nothing is stored by halves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import compaction_chats
import pytest
from compaction_chats import (
    Scribe,
    check_tree,
    policy,
    tell,
)

from holdfast import InvalidInput, Memory, ModelFailed
from holdfast.chat import Chat
from holdfast.prompt.window import Compaction, LastN, Lossless
from tables import each

chat = compaction_chats.chat


# Limits, each of which says so


@pytest.mark.slow
def test_one_pass_is_what_an_incremental_compaction_does() -> None:
    trees = []
    for full, passes in ((True, 1), (False, 12)):
        with Memory(":memory:", user="ada") as memory:
            chat = memory.chat("c")
            tell(chat, 300)
            chat.compact(full=full, policy=policy(600, fan_in=(2, 2), passes=passes))
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


def test_a_policy_that_does_not_say_how_to_compact_is_refused(chat: Chat) -> None:
    wrong: Lossless = LastN()  # type: ignore[assignment]
    with pytest.raises(InvalidInput, match="Use Lossless or SummaryBuffer"):
        chat.compact(policy=wrong)
    with pytest.raises(InvalidInput, match="Use Lossless or SummaryBuffer"):
        chat.needs_compaction(policy=wrong)


@each(
    "options",
    [
        {"target": 0.9},
        {"target": 0},
        {"tail": 1.5},
        {"seconds": -1},
        {"seconds": float("nan")},
        {"patience": "long"},
        {"spend": -1},
        {"turns": -1},
        {"calls": 1.5},
        {"passes": -1},
        {"previous": -1},
        {"leaf_source": 0},
        {"leaf_target": 0},
        {"condensed_target": 0},
        {"fan_in": (1, 4)},
        {"fan_in": (8, 1)},
        {"fan_in": (8,)},
        {"fan_in": 8},
        {"pressed": 1},
    ],
)
def test_a_number_that_is_out_of_range_is_refused(options: dict[str, object]) -> None:
    make: Callable[..., Compaction] = Compaction
    with pytest.raises(InvalidInput):
        make(**options)


# A model that fails


@pytest.mark.parametrize("fails_at", [1, 2, 3])
def test_when_the_model_fails_nothing_is_stored_by_halves(memory: Memory, fails_at: int) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    before = chat.window(), chat.stats()
    scribe = Scribe()

    def llm(prompt: str) -> str:
        answer = scribe(prompt)
        if len(scribe.prompts) == fails_at:
            raise ConnectionError
        return answer

    with pytest.raises(ModelFailed) as caught:
        chat.compact(full=True, llm=llm, policy=policy())
    assert caught.value.reason == "unavailable"
    assert isinstance(caught.value.__cause__, Exception)
    assert len(chat.tree()) == fails_at - 1
    assert ("stored before" in caught.value.what) is (fails_at > 1)
    if fails_at == 1:
        assert (chat.window(), chat.stats()) == before
    check_tree(chat)
    assert chat.needs_compaction(policy=policy())
    assert chat.compact(full=True, llm=Scribe(), policy=policy()).leaves, "it is tried again"


class RateLimitError(Exception):
    status_code = 429


class AuthenticationError(Exception):
    status_code = 401


@pytest.mark.parametrize(
    ("error", "reason"),
    [(RateLimitError, "quota"), (AuthenticationError, "authentication"), (TimeoutError, "timeout")],
)
def test_without_key_or_quota_nothing_is_written(memory: Memory, error: type[Exception], reason: str) -> None:
    chat = memory.chat("c")
    tell(chat, 40)

    def llm(prompt: str) -> str:
        raise error

    with pytest.raises(ModelFailed) as caught:
        chat.compact(full=True, llm=llm, policy=policy())
    assert caught.value.reason == reason
    assert chat.tree() == []
    assert chat.stats().context_tokens == 2_000


def test_an_answer_that_is_no_text_is_an_error_and_nothing_is_written(chat: Chat) -> None:
    tell(chat, 40)
    wrong: Callable[[str], str] = lambda _: None  # type: ignore[assignment, return-value]  # noqa: E731
    with pytest.raises(ModelFailed, match="instead of text"):
        chat.compact(full=True, llm=wrong, policy=policy())
    assert chat.tree() == []


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_an_interruption_leaves_a_sound_tree(memory: Memory, interruption: type[BaseException]) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    scribe = Scribe()

    def llm(prompt: str) -> str:
        answer = scribe(prompt)
        if len(scribe.prompts) == 3:
            raise interruption
        return answer

    with pytest.raises(interruption):
        chat.compact(full=True, llm=llm, policy=policy())
    assert len(chat.tree()) == 2
    check_tree(chat)
