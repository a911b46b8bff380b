"""What stops a compaction: limits, and models that fail; and what its account says of it."""

from __future__ import annotations

from itertools import count
from typing import Any

import compaction_chats
import pytest
from compaction_chats import (
    WAYS,
    AsyncScribe,
    Scribe,
    compact,
    cost,
    depths,
    failing,
    fresh,
    in_turn,
    policy,
    section,
    tell,
)
from tree_checks import check_tree, frontier_of

from holdfast import Chat, Memory, ModelFailed
from holdfast.prompt.window import (
    SummaryBuffer,
)
from tables import each

chat = compaction_chats.chat
BUFFER = SummaryBuffer(1_000)


# Limits, each of which says so


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("answer", ["Cranes lifted boxes to piers.", "far too long. " * 1_000])
def test_at_most_so_many_calls(way: str, answer: str) -> None:
    for calls in (1, 2, 3, 5, 7):
        chat, scribe = fresh(), AsyncScribe(answer)
        tell(chat, 100)
        result = compact(way, chat, scribe, calls=calls)
        assert result.calls == len(scribe.prompts) == calls
        assert result.why == f"The limit of {calls} calls of the model is reached."
        assert result.summaries
        assert {one.level for one in result.summaries} == {"deterministic" if "far" in answer else "normal"}
        check_tree(chat)


@pytest.mark.parametrize("way", WAYS)
def test_it_spends_no_more_than_it_may(way: str) -> None:
    for spend in (600, 1_500, 2_000, 3_000, 5_000):
        for answer in ("Cranes lifted boxes to piers.", "Cranes lifted some more boxes. " * 40):
            chat = fresh()
            tell(chat, 100)
            result = compact(way, chat, AsyncScribe(answer), spend=spend)
            # Nobody knows an answer to be so long before it is there.
            overrun = (4 if way == "awaited" else 1) * len(answer) // 4 if len(answer) > 100 else 0
            assert result.prompt_tokens + result.answer_tokens - overrun <= spend
            assert result.why == f"The limit of {spend:,} tokens for the model allows no further summary."
            assert (spend >= 1_500) is bool(result.calls) is not result.noop


def test_the_calls_of_a_model_do_not_limit_a_compaction_without_one(chat: Chat) -> None:
    tell(chat, 40)
    assert chat.compact(full=True, policy=policy(calls=0, spend=0)).tokens_after < 600


# The account


@pytest.mark.parametrize("way", WAYS)
def test_an_account_is_true_and_told_after_each_summary(memory: Memory, way: str) -> None:
    chat = memory.chat("c")
    tell(chat, 60)
    told: list[tuple[Any, int]] = []
    scribe = AsyncScribe(in_turn("far too long. " * 500, "Cranes.", "Cranes lifted boxes."))
    result = compact(
        way, chat, scribe, fan_in=(3, 2), progress=lambda so_far: told.append((so_far, len(chat.tree())))
    )
    assert {one.id for one in result.summaries} == {one.id for one in chat.tree()}
    assert result.calls == len(scribe.prompts)
    assert result.prompt_tokens == sum(map(cost, scribe.prompts))
    answers = [1_750, 2, *[5] * (result.calls - 2)]
    assert result.answer_tokens == sum(answers)
    assert {(one.level, one.model) for one in result.summaries} == {
        ("normal", "AsyncScribe"),
        ("aggressive", "AsyncScribe"),
    }
    asked = [(so_far, stored) for so_far, stored in told if so_far.why]
    stages = [(so_far, stored) for so_far, stored in told if not so_far.why]
    assert asked[0][0].why.startswith("AsyncScribe summarises messages c#1-")
    assert all(len(so_far.summaries) == stored for so_far, stored in [*asked, *stages])
    assert [stored for _, stored in stages] == list(range(1, len(result.summaries) + 1))
    for name in ("calls", "prompt_tokens", "answer_tokens", "messages", "seconds"):
        values = [getattr(so_far, name) for so_far, _ in stages]
        assert values == sorted(values)
        assert 0 <= values[-1] <= getattr(result, name)
    assert {so_far.tokens_before for so_far, _ in stages} == {result.tokens_before} == {3_000}


def test_with_a_counter_of_your_own_all_is_counted_by_it() -> None:
    def count(text: str) -> int:
        return len(text.split())

    with Memory(":memory:", user="ada", count_tokens=count) as memory:
        chat, scribe = memory.chat("c"), Scribe()
        tell(chat, 40, 400)
        assert chat.stats().context_tokens == sum(4 + count(message.content) for message in chat.history())
        result = chat.compact(full=True, llm=scribe, policy=policy(2_000, leaf_source=600))
        assert result.prompt_tokens == sum(map(count, scribe.prompts))
        assert result.answer_tokens == 5 * result.calls
        prompt = chat.prompt(2_000, expand=True)
        for one, item in zip(prompt.window.summaries, prompt.messages, strict=False):
            assert one.tokens == 4 + count(str(item["content"]))
        assert result.tokens_after == chat.window(2_000).tokens < 1_200
        check_tree(chat)


# What fails


class RateLimitError(Exception):
    status_code = 429


class AuthenticationError(Exception):
    status_code = 401


@each(
    "how",
    [policy(), BUFFER],
)
@each("at", [1, 2, 3])
def test_when_the_model_fails_nothing_is_stored_by_halves(how: Any, at: int) -> None:
    errors: dict[type[Exception], str] = {ConnectionError: "unavailable", TimeoutError: "timeout"}
    errors |= {RateLimitError: "quota", AuthenticationError: "authentication"}
    for error, reason in errors.items():
        chat = fresh()
        tell(chat, 40)
        if isinstance(how, SummaryBuffer):
            chat.compact(llm=Scribe(), policy=how)
            tell(chat, 20, first=41)
        before = chat.window(policy=how), chat.stats(), chat.tree()
        with pytest.raises(ModelFailed) as caught:
            chat.compact(full=True, llm=failing(min(at, 2) if how is BUFFER else at, error=error), policy=how)
        stored = len(chat.tree()) - len(before[2])
        assert caught.value.reason == reason
        assert isinstance(caught.value.__cause__, Exception)
        assert caught.value.what.endswith(
            {0: "", 1: " 1 summary was stored before."}.get(
                stored, f" {stored} summaries were stored before."
            )
        )
        assert stored or (chat.window(policy=how), chat.stats(), chat.tree()) == before
        assert stored == at - 1 or how is BUFFER
        check_tree(chat)
        assert chat.needs_compaction(policy=how) or how is BUFFER
        assert not chat.compact(full=True, llm=Scribe(), policy=how).noop, "it is tried again"


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_an_interruption_leaves_a_sound_tree(chat: Chat, interruption: type[BaseException]) -> None:
    tell(chat, 40)
    with pytest.raises(interruption):
        chat.compact(full=True, llm=failing(3, error=interruption), policy=policy())
    assert len(chat.tree()) == 2
    told = count(1)

    def progress(_: object) -> None:
        if next(told) == 2:
            raise interruption

    with pytest.raises(interruption):
        chat.compact(full=True, policy=policy(300), progress=progress)
    assert len(chat.tree()) == 4
    check_tree(chat)


# One summary that grows


def test_when_the_model_fails_to_merge_both_summaries_are_shown_and_the_next_time_merged(chat: Chat) -> None:
    tell(chat, 18)
    first = chat.compact(llm=Scribe(), policy=BUFFER)
    assert first.calls == 1
    assert "<summary id=" in str(chat.prompt(1_000, policy=BUFFER).messages[0]["content"])
    tell(chat, 10, first=19)

    def fail(prompt: str) -> str:
        if "<summaries>" in prompt.splitlines():
            raise ConnectionError
        return "Cranes lifted a new part."

    with pytest.raises(ModelFailed):
        chat.compact(llm=fail, policy=BUFFER)
    window = chat.window(policy=BUFFER)
    assert [one.text for one in window.summaries] == [
        "Cranes lifted boxes to piers.",
        "Cranes lifted a new part.",
    ]
    assert window.omitted == ()
    scribe = Scribe("Merged cranes.")
    chat.compact(full=True, llm=scribe, policy=BUFFER)
    assert [one.text for one in chat.window(policy=BUFFER).summaries] == ["Merged cranes."]
    (merging,) = [prompt for prompt in scribe.prompts if "<summaries>" in prompt.splitlines()]
    assert section(merging, "summaries") == "- Cranes lifted boxes to piers.\n- Cranes lifted a new part."
    check_tree(chat)


@pytest.mark.slow
def test_a_tree_becomes_one_summary_and_one_a_tree_when_the_policy_changes(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 120)
    deep = policy(600, fan_in=(3, 2))
    chat.compact(full=True, llm=Scribe(), policy=deep)
    assert depths(chat) >= {0, 1, 2}
    for _ in range(4):
        tell(chat, 20, first=1 + len(chat.history()))
        chat.compact(full=True, llm=Scribe("Cranes lifted all of it."), policy=BUFFER)
        check_tree(chat)
    (summary,) = chat.window(policy=BUFFER).summaries
    assert (summary.text, summary.first) == ("Cranes lifted all of it.", 1)
    assert {(one.level, one.model) for one in chat.tree()} == {("normal", "Scribe")}
    for _ in range(6):
        tell(chat, 20, first=1 + len(chat.history()))
        chat.compact(full=True, policy=deep)
        check_tree(chat)
        assert chat.stats().context_tokens < 450
    assert len(frontier_of(chat.tree())) > 1
