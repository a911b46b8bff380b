"""Windows with summaries: the buffer of one summary, the lossless tree, and policies by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import compaction_chats
import pytest
from compaction_chats import Scribe, check_tree, in_turn, minute, policy, ranges, section, seqs, tell, words

from holdfast import CompactionResult, InvalidInput, Memory, Message, ModelFailed, ToolCall, Window
from holdfast.chat import Chat
from holdfast.prompt.window import (
    Compaction,
    FreshTail,
    LastN,
    Lossless,
    Policy,
    SummaryBuffer,
    TokenBudget,
    make_policy,
)
from tables import each

chat = compaction_chats.chat

BUFFER = SummaryBuffer(1_000)


def account(chat: Chat, window: Window) -> int:
    """Count the messages that a window shows, stands for or names."""
    return (
        len(window.messages)
        + sum(one.messages for one in window.summaries)
        + sum(one.messages for one in window.omitted)
    )


# By name


@each(
    ("name", "options", "expected"),
    [
        ("last_n", {}, LastN(20)),
        ("last_n", {"n": 3}, LastN(3)),
        ("token_budget", {}, TokenBudget(8_000, 5)),
        ("token_budget", {"budget": 100, "keep": 2}, TokenBudget(100, 2)),
        ("fresh_tail", {"turns": 2}, FreshTail(8_000, 2)),
        ("summary_buffer", {}, SummaryBuffer(8_000, 0.85, 0.7, 10)),
        ("summary_buffer", {"budget": 100, "threshold": 0.9, "target": 0.5}, SummaryBuffer(100, 0.9, 0.5)),
        ("lossless", {}, Lossless(8_000)),
        ("lossless", {"budget": 100}, Lossless(100)),
    ],
)
def test_a_policy_is_made_by_its_name(name: str, options: dict[str, float], expected: Policy) -> None:
    assert make_policy(name, **options) == expected


def test_without_a_name_or_by_the_name_none_all_messages_are_shown_and_nothing_is_summarised(
    chat: Chat,
) -> None:
    tell(chat, 300)
    for showing_all in (make_policy(None), make_policy(), make_policy("none")):
        assert len(chat.window(policy=showing_all).messages) == 300
        wrong: Any = showing_all
        with pytest.raises(InvalidInput, match="does not say how to compact"):
            chat.compact(full=True, policy=wrong)
        with pytest.raises(InvalidInput, match="does not say how to compact"):
            chat.needs_compaction(policy=wrong)
    assert chat.tree() == []


@each("name", ["", "buffer_window", "Lossless", "summary", "nil", 5])
def test_an_unknown_name_is_refused(name: str) -> None:
    with pytest.raises(
        InvalidInput, match="Use one of none, last_n, token_budget, fresh_tail, summary_buffer, lossless"
    ):
        make_policy(name)


@each(
    ("name", "options"),
    [
        ("none", {"n": 5}),
        ("last_n", {"budget": 5}),
        ("last_n", {"n": -1}),
        ("token_budget", {"n": 5}),
        ("summary_buffer", {"leaf_source": 5}),
        ("summary_buffer", {"threshold": 0}),
        ("summary_buffer", {"target": 1.2}),
        ("summary_buffer", {"budget": 0.5}),
        ("lossless", {"threshold": 0.5}),
        ("lossless", {"budget": -1}),
    ],
)
def test_an_option_that_does_not_fit_is_refused(name: str, options: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        make_policy(name, **options)


# The buffer of one summary


@each("share", [0, -0.5, 1.0001, 85, float("nan"), True, "0.5", None])
def test_a_share_of_a_summary_buffer_that_is_out_of_range_is_refused(share: float) -> None:
    with pytest.raises(InvalidInput, match="fraction"):
        SummaryBuffer(threshold=share)
    with pytest.raises(InvalidInput, match="fraction"):
        SummaryBuffer(target=share)


def test_a_target_above_the_threshold_is_refused() -> None:
    with pytest.raises(InvalidInput, match="Lower the target"):
        SummaryBuffer(threshold=0.5)


@each("value", [-1, 1.5, "10", None])
def test_a_count_of_a_summary_buffer_that_is_none_is_refused(value: int) -> None:
    with pytest.raises(InvalidInput):
        SummaryBuffer(value)
    with pytest.raises(InvalidInput):
        SummaryBuffer(keep=value)


@pytest.mark.parametrize("messages", [1, 10, 17])
def test_up_to_the_threshold_nothing_is_summarised(memory: Memory, messages: int) -> None:
    chat = memory.chat("c")
    tell(chat, messages)
    assert not chat.needs_compaction(policy=BUFFER)
    result = chat.compact(policy=BUFFER)
    assert result.noop
    assert result.why.startswith("No compaction is needed")
    assert len(chat.window(policy=BUFFER).messages) == messages


def test_above_the_threshold_one_summary_and_the_newest_messages_remain(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 18)
    assert chat.needs_compaction(policy=BUFFER)
    scribe = Scribe()
    result = chat.compact(llm=scribe, policy=BUFFER)
    window = chat.window(policy=BUFFER)
    (summary,) = window.summaries
    assert summary.text == "Cranes lifted boxes to piers."
    assert seqs(window.messages) == list(range(summary.last + 1, 19))
    assert len(window.messages) >= 10
    assert window.tokens == result.tokens_after < 700
    assert len(scribe.prompts) == result.calls == 1
    first = chat.prompt(1_000, policy=BUFFER).messages[0]
    assert str(first["content"]).startswith(f'<summary id="{summary.id}"')
    assert len(chat.history()) == 18
    assert not chat.needs_compaction(policy=BUFFER)
    check_tree(chat)


def test_it_is_never_out_of_the_window_whatever_is_appended(memory: Memory) -> None:
    chat = memory.chat("c")
    first, shown = 1, set[int]()
    for _ in range(150):
        tell(chat, 1, 40, first=first)
        first += 1
        if chat.needs_compaction(policy=BUFFER):
            chat.compact(policy=BUFFER)
        window = chat.window(policy=BUFFER)
        stats = chat.stats()
        if stats.summarised:
            (summary,) = window.summaries
            assert summary.first == 1
            assert summary.messages == stats.summarised
            assert seqs(window.messages) == list(range(summary.last + 1, first))
            shown.add(100 * window.tokens // 1_000)
        assert window.tokens <= 1_000
        assert account(chat, window) == first - 1
    assert len(shown & {*range(70, 85)}) >= 3, "also between the target and the threshold"


def test_the_summary_is_cumulative_and_keeps_its_id(memory: Memory) -> None:
    chat = memory.chat("c")
    scribe = Scribe(in_turn(*(f"Summary {n}: cranes lift boxes." for n in range(1, 100))))
    first = 1
    ids: list[str] = []
    for _ in range(6):
        tell(chat, 10, first=first)
        first += 10
        before = chat.window(policy=BUFFER).summaries
        asked = len(scribe.prompts)
        result = chat.compact(llm=scribe, policy=BUFFER)
        window = chat.window(policy=BUFFER)
        if before and result.summaries:
            merging = [prompt for prompt in scribe.prompts[asked:] if "<summaries>" in prompt.splitlines()]
            assert before[0].text in section(merging[-1], "summaries"), "it is part of what it is made from"
            (now,) = window.summaries
            assert (now.first, now.last >= before[0].last) == (1, True)
            assert now.text == f"Summary {len(scribe.prompts)}: cranes lift boxes."
        ids += [one.id for one in window.summaries if one.depth]
        check_tree(chat)
    assert len(set(ids)) == 1
    assert max(one.depth for one in chat.tree()) == 1
    window = chat.window(policy=BUFFER)
    parts = chat.expand(window.summaries[0].id, 10**9).children
    assert ranges(parts)[0][0] == 1
    reached = [message for part in parts for message in chat.expand(part.id, 10**9).messages]
    assert [*reached, *window.messages] == chat.history()


def test_when_the_model_fails_the_window_stays_as_it_was(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 18)
    chat.compact(llm=Scribe(), policy=BUFFER)
    tell(chat, 10, first=19)
    before = chat.window(policy=BUFFER), chat.tree()

    def fail(prompt: str) -> str:
        raise ConnectionError

    with pytest.raises(ModelFailed):
        chat.compact(llm=fail, policy=BUFFER)
    assert (chat.window(policy=BUFFER), chat.tree()) == before


def test_when_the_model_fails_to_merge_both_summaries_are_shown_and_the_next_time_merged(
    memory: Memory,
) -> None:
    chat = memory.chat("c")
    tell(chat, 18)
    chat.compact(llm=Scribe(), policy=BUFFER)
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
    assert account(chat, window) == 28
    assert window.omitted == ()
    chat.compact(full=True, llm=Scribe("Merged cranes."), policy=BUFFER)
    assert [one.text for one in chat.window(policy=BUFFER).summaries] == ["Merged cranes."]
    check_tree(chat)


def test_without_a_model_sentences_are_chosen(memory: Memory) -> None:
    chat = memory.chat("c")
    for first in range(1, 100, 9):
        tell(chat, 9, first=first)
        chat.compact(policy=BUFFER)
    (summary,) = chat.window(policy=BUFFER).summaries
    assert summary.level == "deterministic"
    assert "lifts" in summary.text
    assert not chat.needs_compaction(policy=BUFFER)
    check_tree(chat)


def test_progress_is_told_once_for_one_summary(chat: Chat) -> None:
    tell(chat, 18)
    stages: list[CompactionResult] = []
    chat.compact(llm=Scribe(), policy=BUFFER, progress=stages.append)
    assert ["summarises messages" in stage.why for stage in stages] == [True, False]
    assert (stages[0].noop, stages[0].calls, stages[1].noop) == (True, 0, False)


def test_a_second_call_does_nothing(chat: Chat) -> None:
    tell(chat, 18)
    chat.compact(policy=BUFFER)
    window = chat.window(policy=BUFFER)
    for again in (chat.compact(policy=BUFFER), chat.compact(full=True, policy=BUFFER)):
        assert again.noop
    assert chat.window(policy=BUFFER) == window


@pytest.mark.parametrize("keep", [1, 5, 10, 14])
def test_the_newest_messages_are_never_summarised(chat: Chat, keep: int) -> None:
    buffer = SummaryBuffer(1_000, keep=keep)
    for first in range(1, 60, 3):
        tell(chat, 3, first=first)
        chat.compact(full=True, policy=buffer)
        stats = chat.stats()
        limit = min(keep, 1_000 * 0.7 // 60)
        assert stats.messages - stats.summarised >= min(limit, stats.messages)


@pytest.mark.parametrize("budget", [60, 120, 200, 400])
def test_with_a_small_budget_it_does_not_summarise_for_ever(chat: Chat, budget: int) -> None:
    buffer = SummaryBuffer(budget)
    scribe = Scribe("Boxes.")
    for n in range(1, 60):
        tell(chat, 1, 30, first=n)
        for _ in range(3):
            if chat.needs_compaction(policy=buffer):
                chat.compact(llm=scribe, policy=buffer)
    assert not chat.needs_compaction(policy=buffer)
    assert len(scribe.prompts) <= 60
    assert len(chat.window(policy=buffer).summaries) <= 1
    assert chat.window(policy=buffer).messages[-1].seq == 59
    check_tree(chat)


@pytest.mark.parametrize("how", [SummaryBuffer(1_000), Lossless(1_000)], ids=["buffer", "lossless"])
def test_messages_after_summaries_start_with_one_of_a_user(chat: Chat, how: SummaryBuffer | Lossless) -> None:
    for n in range(1, 60):
        tell(chat, 1, first=n)
        chat.compact(policy=how)
        window = chat.window(policy=how)
        assert window.messages[0].role == "user"
        assert account(chat, window) == n
        assert not window.omitted, "nothing is left out for that"
    assert window.summaries


def test_after_summaries_nothing_is_left_out_for_a_turn_that_began_long_ago(quick: Memory) -> None:
    chat = quick.chat("c")
    chat.append([Message("user" if n == 1 else "assistant", words(n, 50)) for n in range(1, 60)])
    assert not chat.compact(budget=1_000).noop
    window = chat.window(1_000)
    assert window.summaries
    assert window.messages[0].role == "assistant"
    assert not window.omitted


def test_tool_use_counts_and_is_not_split_in_a_buffer(chat: Chat) -> None:
    first = 1
    for n in range(12):
        tell(chat, 1, first=first)
        chat.append(
            [
                Message(
                    "assistant",
                    calls=(ToolCall(f"x{n}", "read", {"path": words(n, 60)}),),
                    at=minute(first + 1),
                ),
                Message("tool", words(first + 2, 60), call_id=f"x{n}", at=minute(first + 2)),
            ]
        )
        first += 3
        chat.compact(policy=BUFFER)
        check_tree(chat)
        window = chat.window(policy=BUFFER)
        assert not [one for one in window.omitted if "call" in one.why]
    assert chat.stats().summarised


# From one policy to another


@pytest.mark.slow
def test_a_tree_becomes_one_summary_when_the_policy_changes(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 120)
    chat.compact(full=True, llm=Scribe(), policy=policy(600, fan_in=(3, 2)))
    depth = max(one.depth for one in chat.tree())
    assert depth >= 2
    assert len(chat.window(policy=BUFFER).summaries) >= 1
    for _ in range(4):
        tell(chat, 20, first=1 + len(chat.history()))
        chat.compact(full=True, llm=Scribe("Cranes lifted all of it."), policy=BUFFER)
        check_tree(chat)
    (summary,) = chat.window(policy=BUFFER).summaries
    assert summary.text == "Cranes lifted all of it."
    assert summary.first == 1


def test_a_summary_that_a_model_wrote_names_the_model(chat: Chat) -> None:
    tell(chat, 120)
    chat.compact(full=True, llm=Scribe(), policy=policy(600, fan_in=(3, 2)))
    tell(chat, 20, first=121)
    chat.compact(full=True, llm=Scribe("Cranes lifted all of it."), policy=BUFFER)
    assert {(one.level, one.model) for one in chat.tree()} == {("normal", "Scribe")}


def test_one_summary_becomes_a_tree_when_the_policy_changes(memory: Memory) -> None:
    chat = memory.chat("c")
    for first in range(1, 60, 9):
        tell(chat, 9, first=first)
        chat.compact(policy=BUFFER)
    for _ in range(6):
        tell(chat, 20, first=1 + len(chat.history()))
        chat.compact(full=True, policy=policy(800, fan_in=(3, 2)))
        check_tree(chat)
        assert chat.stats().context_tokens < 600
    assert max(one.depth for one in chat.tree()) >= 2


@pytest.mark.parametrize("simple", [LastN(100), TokenBudget(10_000), FreshTail(10_000)])
def test_the_simple_policies_show_messages_only(memory: Memory, simple: Policy) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    before = chat.window(policy=simple)
    chat.compact(full=True, policy=policy())
    assert chat.window(policy=simple) == before
    assert before.summaries == ()
    assert len(before.messages) == 40


# The lossless window


def compacted(chat: Chat, **options: Any) -> Lossless:
    tell(chat, 40)
    how = policy(1_500, **options)
    chat.compact(full=True, llm=Scribe(), policy=how)
    assert len(chat.window(1_500).summaries) > 4
    return how


def test_summaries_come_first_and_then_messages_in_order(memory: Memory) -> None:
    chat = memory.chat("c")
    compacted(chat)
    window = chat.window(1_500)
    spans = [*ranges(window.summaries), *((one.seq, one.seq) for one in window.messages)]
    assert spans[0][0] == 1
    assert spans[-1][1] == 40
    assert [span[0] for span in spans[1:]] == [span[1] + 1 for span in spans[:-1]]


def test_when_it_does_not_fit_the_oldest_summaries_are_left_out_first_and_named(memory: Memory) -> None:
    chat = memory.chat("c")
    compacted(chat)
    everything = chat.window(10_000)
    for budget in range(60, everything.tokens + 50, 35):
        window = chat.window(budget)
        assert account(chat, window) == 40
        kept = len(window.summaries)
        assert window.summaries == everything.summaries[len(everything.summaries) - kept :]
        assert window.tokens <= budget
        assert window.messages[-1].seq == 40
        left = everything.summaries[: len(everything.summaries) - kept]
        named = [one for one in window.omitted if one.why.startswith("summarised in")]
        assert [(one.first, one.last, one.messages, one.tokens) for one in named] == [
            (one.first, one.last, one.messages, one.source_tokens) for one in left
        ]
        assert all(one.id in omission.why for one, omission in zip(left, named, strict=True))
        if budget >= everything.tokens:
            assert window == Window(everything.messages, everything.summaries, window.tokens, budget, ())


def test_the_newest_turn_stays_even_over_the_budget(memory: Memory) -> None:
    chat = memory.chat("c")
    compacted(chat)
    chat.append(Message("user", words(41, 900), at=minute(41)))
    window = chat.window(300)
    assert seqs(window.messages) == [41]
    assert window.over_budget
    assert window.summaries == ()
    assert account(chat, window) == 41


def test_with_a_tail_that_is_longer_than_the_session_all_is_shown(chat: Chat) -> None:
    tell(chat, 6)
    window = chat.window(policy=Lossless(300, Compaction(turns=100, tail=1.0)))
    assert seqs(window.messages) == [1, 2, 3, 4, 5, 6]


def test_without_budget_and_without_turns_nothing_is_shown(chat: Chat) -> None:
    compacted(chat)
    window = chat.window(policy=Lossless(0, Compaction(turns=0)))
    assert (window.messages, window.summaries, window.tokens) == ((), (), 0)
    assert account(chat, window) == 40


@pytest.mark.parametrize("budget", [150, 300, 600, 1_000, 5_000])
def test_with_user_first_the_messages_start_with_one_of_a_user(chat: Chat, budget: int) -> None:
    compacted(chat)
    tell(chat, 11, first=41)
    window = chat.window(policy=Lossless(budget, user_first=True))
    assert window.messages[0].role == "user"
    assert account(chat, window) == 51


def test_a_budget_that_is_none_is_refused() -> None:
    make: Callable[..., Lossless] = Lossless
    for budget in (-1, 1.5, "8000", None):
        with pytest.raises(InvalidInput):
            make(budget)


@pytest.mark.slow
def test_a_window_while_more_is_appended_stays_true(memory: Memory) -> None:
    chat = memory.chat("c")
    how = policy(1_000)
    for n in range(1, 120):
        tell(chat, 1, first=n)
        if chat.needs_compaction(policy=how):
            chat.compact(policy=how)
        for budget in (300, 1_000):
            assert account(chat, chat.window(budget)) == n
    check_tree(chat)
