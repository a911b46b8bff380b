"""Compaction as the list has it: when, how far, of what, and that nothing is lost, doubled, or stored by halves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Literal

import pytest
from compaction_chats import (
    START,
    Scribe,
    check_tree,
    in_turn,
    leaves,
    minute,
    policy,
    ranges,
    section,
    seqs,
    tell,
    words,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import CompactionResult, InvalidInput, Memory, Message, ModelFailed, ToolCall
from holdfast.chat import Chat
from holdfast.prompt.window import Compaction, LastN, Lossless

Both = Literal["incremental", "full"]
MODES: list[Both] = ["incremental", "full"]


@pytest.fixture
def chat() -> Iterator[Chat]:
    with Memory(":memory:", user="ada", admin=True) as memory:
        yield memory.chat("c")


# When a session is crowded


def test_crowded_and_compact_answer_for_a_chat_that_does_not_exist(memory: Memory) -> None:
    chat = memory.chat("unknown")
    assert not chat.crowded()
    for mode in MODES:
        result = chat.compact(mode)
        assert result.noop
        assert result.why == "The chat has no messages."
        assert (result.messages, result.tokens_before, result.tokens_after, result.calls) == (0, 0, 0, 0)
    assert chat.tree() == []
    assert memory.chats() == []


def test_crowded_depends_on_the_share_of_the_budget(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 5, 100)
    assert chat.crowded(policy=policy(10))
    assert chat.crowded(policy=policy(600))
    assert not chat.crowded(policy=policy(700))
    assert not chat.crowded(policy=policy(1_000_000))


def test_a_session_is_crowded_strictly_above_the_threshold(chat: Chat) -> None:
    tell(chat, 15, 50)
    assert chat.stats().context_tokens == 750
    how = policy(1_000)
    assert not chat.crowded(policy=how)
    assert chat.compact(policy=how).why.startswith("No compaction is needed: 750 tokens")
    tell(chat, 1, 10, first=16)
    assert chat.crowded(policy=how)
    assert chat.compact(policy=how).leaves


@pytest.mark.parametrize(
    ("budget", "threshold"), [(1_000, 0.75), (300, 1.0), (10_000, 0.57), (10_000, 0.58), (100_000, 0.29)]
)
def test_the_threshold_is_exact_for_every_fraction(chat: Chat, budget: int, threshold: float) -> None:
    limit = round(budget * threshold)
    tell(chat, 1, limit - 30)
    tell(chat, 1, 30, first=2)
    how = policy(
        budget, threshold=threshold, target=threshold / 2, leaf_source=10**6, turns=0, tail=0.001, keep=0
    )
    assert chat.stats().context_tokens == limit
    assert not chat.crowded(policy=how)
    assert chat.compact(policy=how).noop
    tell(chat, 1, 10, first=3)
    assert chat.crowded(policy=how) is True


def test_what_something_else_takes_of_a_prompt_is_left_off_the_budget(chat: Chat) -> None:
    tell(chat, 14)
    observed, budget = 200, 1_000  # tokens of the instructions and tools, which the memory does not see
    assert not chat.crowded(policy=policy(budget))
    assert chat.crowded(policy=policy(budget - observed))
    chat.compact(policy=policy(budget - observed))
    assert chat.window(budget - observed).tokens + observed < budget
    assert not chat.crowded(policy=policy(budget - observed))


def test_a_threshold_that_is_passed_takes_the_place_of_that_of_the_policy(chat: Chat) -> None:
    tell(chat, 12, 50)
    assert not chat.crowded(policy=policy(1_000))
    assert chat.crowded(threshold=0.5, policy=policy(1_000))
    assert not chat.crowded(threshold=0.6, policy=policy(1_000))


@pytest.mark.parametrize("threshold", [0, -0.1, 1.01, 75, float("nan"), float("inf"), True, "0.75"])
def test_a_threshold_that_is_no_share_is_refused(chat: Chat, threshold: float) -> None:
    with pytest.raises(InvalidInput, match="fraction"):
        chat.crowded(threshold=threshold)
    with pytest.raises(InvalidInput, match="fraction"):
        Compaction(threshold=threshold)


def test_what_is_too_short_to_be_summarised_is_not_crowded(chat: Chat) -> None:
    tell(chat, 5, 12)
    assert not chat.crowded(10)
    assert chat.compact("full", budget=10).why.startswith("Nothing more can be compacted")


def test_after_a_compaction_a_session_is_not_crowded_until_enough_is_new(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    how = policy(1_000)
    assert chat.crowded(policy=how)
    chat.compact(policy=how)
    added = 0
    while not chat.crowded(policy=how):
        added += len(tell(chat, 1, first=100 + added))
    assert chat.stats().context_tokens > 750
    assert added * 50 >= 150
    assert chat.compact(policy=how).leaves
    assert not chat.crowded(policy=how)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("budget", [300, 1_000, 8_000])
def test_right_after_a_full_compaction_a_session_is_not_crowded(chat: Chat, mode: Both, budget: int) -> None:
    tell(chat, 60)
    chat.compact("full", budget=budget)
    assert not chat.crowded(budget)
    assert chat.compact(mode, budget=budget).noop


# What it leaves


def test_twelve_messages_and_a_tail_of_one_make_a_leaf(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 12)
    result = chat.compact("full", policy=policy(100, target=0.3, threshold=0.5))
    assert result.leaves >= 1
    assert result.messages == chat.stats().summarised
    assert result.tokens_after <= result.tokens_before
    check_tree(chat)


def test_a_prompt_names_expand_where_the_model_has_it(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    chat.compact("full", policy=policy(1_000))
    with chat.run() as run:
        for prompt in (chat.prompt, run.prompt):
            plain, named = prompt(1_000), prompt(1_000, expand=True)
            assert "expand" not in str(plain.messages[0])
            assert "`expand` with this id gives the original words." in str(named.messages[0])
            assert plain.tokens["total"] == named.tokens["total"] <= 1_000
    assert "`expand`" not in chat.review(after=39)


@pytest.mark.parametrize("mode", MODES)
def test_a_window_after_a_compaction_has_summaries_and_then_the_tail_untouched(
    memory: Memory, mode: Both
) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    before = chat.history()
    result = chat.compact(mode, policy=policy(1_000))
    window = chat.window(1_000)
    assert window.summaries
    assert window.messages == tuple(before[window.summaries[-1].last :])
    assert [1 + one.last for one in window.summaries] == [
        *(one.first for one in window.summaries[1:]),
        window.messages[0].seq,
    ]
    assert window.omitted == ()
    assert window.tokens == result.tokens_after == chat.stats().context_tokens < result.tokens_before == 2_000
    assert result.tokens_before == sum(message.tokens for message in before)
    check_tree(chat)


@pytest.mark.parametrize("mode", MODES)
def test_the_log_stays_word_for_word(memory: Memory, mode: Both) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    before, stats = chat.history(), chat.stats()
    assert not chat.compact(mode, policy=policy()).noop
    assert chat.history() == before
    after = chat.stats()
    assert (after.messages, after.stored_tokens) == (stats.messages, stats.stored_tokens)
    assert memory.verify().ok


def test_a_second_full_compaction_makes_no_progress_and_says_so(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 60)
    chat.compact("full", policy=policy())
    tree, window = chat.tree(), chat.window()
    scribe = Scribe()
    again = chat.compact("full", llm=scribe, policy=policy())
    assert again.noop
    assert (again.summaries, again.messages, again.calls, again.leaves, again.nodes) == ((), 0, 0, 0, 0)
    assert again.tokens_before == again.tokens_after
    assert "target" in again.why
    assert scribe.prompts == []
    assert (chat.tree(), chat.window()) == (tree, window)


def test_a_compaction_again_and_again_keeps_the_tree_sound(memory: Memory) -> None:
    chat = memory.chat("c")
    how = policy(600, fan_in=(3, 2))
    first, depths = 1, set[int]()
    for _ in range(12):
        tell(chat, 8, first=first)
        first += 8
        chat.compact(policy=how)
        check_tree(chat)
        depths |= {one.depth for one in chat.tree()}
        assert chat.window(600).messages[-1].seq == first - 1
        assert chat.compact("full", policy=how).tokens_after < 450
    assert depths >= {0, 1, 2}
    assert not chat.crowded(policy=how)


def test_every_message_stays_reachable_from_the_window(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 80)
    chat.compact("full", policy=policy(600, fan_in=(3, 2)))
    window = chat.window(600)
    reached: list[Message] = []
    todo = [one.id for one in window.summaries]
    while todo:
        opened = chat.expand(todo.pop(0), 10**9)
        reached += opened.messages
        todo = [one.id for one in opened.children] + todo
    assert [*reached, *window.messages] == chat.history()


def test_sessions_and_users_are_compacted_apart(memory: Memory) -> None:
    one, other, foreign = memory.chat("one"), memory.chat("other"), memory.scoped(user="eve").chat("one")
    for each in (one, other, foreign):
        tell(each, 40)
    one.compact("full", policy=policy())
    assert other.tree() == foreign.tree() == []
    assert other.stats() == foreign.stats()
    assert other.stats().context_tokens == 2_000
    assert len(other.window(10**6).messages) == 40


def test_ids_of_summaries_are_a_prefix_and_sixteen_digits_and_unique(chat: Chat) -> None:
    tell(chat, 200)
    chat.compact("full", policy=policy())
    ids = [one.id for one in chat.tree()]
    assert len(ids) > 20
    assert len(set(ids)) == len(ids)
    for identity in ids:
        assert identity.startswith("sum_")
        assert len(identity) == 20
        int(identity[4:], 16)


# What is summarised first, and how much of it


def test_leaves_are_made_of_the_oldest_messages_in_their_order(chat: Chat) -> None:
    tell(chat, 40)
    scribe = Scribe()
    chat.compact("full", llm=scribe, policy=policy(1_500, previous=0))
    made = leaves(chat)
    assert made[0].first == 1
    for leaf, prompt in zip(made, scribe.prompts, strict=True):
        said = section(prompt, "conversation")
        assert [n for n in range(1, 41) if f"Crane{n} " in said] == list(range(leaf.first, leaf.last + 1))


def test_the_source_of_a_leaf_is_capped(chat: Chat) -> None:
    tell(chat, 40)
    chat.compact("full", policy=policy(leaf_source=220))
    assert len(leaves(chat)) > 3
    assert all(one.source_tokens <= 220 for one in leaves(chat))


def test_a_single_tool_use_that_is_larger_is_a_leaf_of_its_own(chat: Chat) -> None:
    tell(chat, 4)
    chat.append(
        [
            Message("assistant", calls=(ToolCall("a", "read", {"path": "src/a.py"}),), at=minute(5)),
            Message("tool", words(6, 900), call_id="a", at=minute(6)),
        ]
    )
    tell(chat, 30, first=7)
    chat.compact("full", policy=policy(leaf_source=200, budget=600))
    check_tree(chat)
    (large,) = [one for one in leaves(chat) if one.first <= 6 <= one.last]
    assert (large.first, large.last) == (5, 6)
    assert all(one.source_tokens <= 200 for one in leaves(chat) if one != large)


@pytest.mark.parametrize("opening", [12, 60, 99])
def test_a_short_opening_does_not_keep_a_huge_message_from_being_summarised(chat: Chat, opening: int) -> None:
    tell(chat, 1, opening)
    chat.append(Message("user", "line of a log that was pasted. " * 3_400, at=minute(2)))
    tell(chat, 6, first=3)
    assert chat.stats().context_tokens > 20_000
    assert chat.crowded()
    result = chat.compact("full")
    assert result.tokens_after < 6_000, result.why
    check_tree(chat)


def test_a_message_of_100_kb_is_summarised_and_stays_readable(memory: Memory) -> None:
    chat = memory.chat("c")
    text = "".join(f"Entry {n} of the report: sensor {n * 7} reads {n % 13} bar. " for n in range(2_000))
    assert len(text) > 100_000
    chat.append(Message("user", text, at=START))
    tell(chat, 8, 200, first=2)
    result = chat.compact("full")
    assert result.leaves == 1
    assert result.tokens_after < 4_800
    assert chat.expand(chat.tree()[0].id).messages[0].content == text


@pytest.mark.parametrize("messages", [32, 40, 60, 90])
def test_it_stops_as_soon_as_it_is_under_the_target(chat: Chat, messages: int) -> None:
    tell(chat, messages)
    stages: list[CompactionResult] = []
    result = chat.compact("full", policy=policy(2_000), progress=stages.append)
    assert result.why == "It is below the target of 1,200 tokens."
    assert result.tokens_after < 1_200
    before = [result.tokens_before, *(stage.tokens_after for stage in stages)]
    assert min(before[:-1]) >= 1_200, "without the last it would not have been"


def test_a_large_leaf_takes_no_more_than_is_needed(chat: Chat) -> None:
    tell(chat, 160)
    result = chat.compact("full")
    assert result.tokens_before == 8_000
    assert 0.6 * 8_000 - 1_000 <= result.tokens_after < 0.6 * 8_000


def test_a_model_that_is_terse_does_not_make_it_go_too_far(chat: Chat) -> None:
    tell(chat, 200)
    result = chat.compact("full", llm=Scribe("Cranes."), policy=policy(10_000, leaf_source=1_000))
    assert 6_000 - 1_000 <= result.tokens_after < 6_000


@pytest.mark.parametrize(("tokens", "rounds"), [(599, False), (600, True), (601, True)])
def test_a_full_compaction_goes_strictly_under_the_target(chat: Chat, tokens: int, rounds: bool) -> None:
    tell(chat, 11)
    tell(chat, 1, tokens - 550, first=12)
    result = chat.compact("full", policy=policy(1_000))
    assert bool(result.summaries) is rounds
    assert result.noop is not rounds
    assert result.tokens_before == tokens
    assert result.tokens_after < 600
    assert result.leaves == rounds
    if not rounds:
        assert result.why == "It is below the target already: 599 tokens, and the target is 600."


@pytest.mark.parametrize("messages", [20, 80, 160])
def test_what_is_crowded_is_brought_under_the_target_and_a_full_compaction_finds_no_more(
    chat: Chat, messages: int
) -> None:
    tell(chat, messages)
    how = policy(600, fan_in=(4, 2))
    result = chat.compact("full", policy=how)
    assert result.tokens_after < 360
    assert result.why == "It is below the target of 360 tokens."
    assert chat.compact("full", policy=how).noop
    check_tree(chat)


def test_full_loops_to_the_target_even_if_the_session_is_not_crowded(chat: Chat) -> None:
    tell(chat, 14)
    assert not chat.crowded(policy=policy(1_000))
    assert chat.compact("incremental", policy=policy(1_000)).noop
    assert chat.compact("full", policy=policy(1_000)).tokens_after < 600


# The fresh tail


def test_a_session_that_is_all_tail_is_not_summarised(chat: Chat) -> None:
    tell(chat, 10)
    how = Lossless(700, Compaction(turns=6, tail=1.0, threshold=0.5, target=0.5))
    assert not chat.crowded(policy=how)
    assert chat.compact("full", policy=how).noop
    assert seqs(chat.window(policy=how).messages) == list(range(1, 11))


@pytest.mark.parametrize(("turns", "kept"), [(1, 1), (2, 3), (3, 5)])
def test_the_newest_turns_are_never_summarised(chat: Chat, turns: int, kept: int) -> None:
    tell(chat, 31)
    chat.compact("full", policy=policy(500, turns=turns, tail=0.8, target=0.1, threshold=0.2))
    assert chat.stats().messages - chat.stats().summarised >= kept
    assert chat.window(500).messages[-kept].role == "user"


def test_a_tail_is_capped_at_whole_turns_and_the_newest_user_message_stays(chat: Chat) -> None:
    tell(chat, 32)
    chat.append(Message("user", words(33, 300), at=minute(33)))
    how = policy(600, turns=6, tail=0.5, target=0.1, threshold=0.2)
    chat.compact("full", policy=how)
    assert seqs(chat.window(policy=how).messages) == [33]


def test_of_a_newest_turn_that_is_larger_than_the_tail_the_newest_messages_stay(chat: Chat) -> None:
    tell(chat, 1)
    chat.append([Message("assistant", words(n, 50), at=minute(n)) for n in range(2, 40)])
    chat.compact("full", policy=policy(600, tail=0.4))
    rest = chat.stats().messages - chat.stats().summarised
    assert 1 <= rest <= 240 // 50 + 1
    assert chat.window(600).messages[-1].seq == 39


def test_without_a_tail_everything_may_be_summarised(chat: Chat) -> None:
    tell(chat, 32)
    result = chat.compact("full", policy=policy(300, turns=0, keep=0, threshold=0.2, target=0.1))
    assert chat.stats().summarised == 32
    assert chat.window().messages == ()
    assert chat.window().summaries
    assert result.messages == 32
    check_tree(chat)


@pytest.mark.parametrize("budget", [0, 1, 16, 100])
def test_a_tiny_budget_ends(chat: Chat, budget: int) -> None:
    tell(chat, 40)
    result = chat.compact("full", budget=budget)
    assert result.why
    assert chat.window(budget).messages[-1].seq == 40
    assert not chat.crowded(budget)
    check_tree(chat)


# Summaries of summaries


def test_at_most_eight_leaves_are_condensed_and_later_four_of_those(chat: Chat) -> None:
    first = 1
    for _ in range(12):
        tell(chat, 40, first=first)
        first += 40
        chat.compact("full", llm=Scribe("Cranes."), policy=policy(2_000))
    check_tree(chat)
    tree = chat.tree()
    sizes = {
        depth: {sum(part.parent == one.id for part in tree) for one in tree if one.depth == depth}
        for depth in range(1, 1 + max(one.depth for one in tree))
    }
    assert sizes.keys() == {1, 2}
    assert sizes[1] <= set(range(2, 9))
    assert sizes[2] <= set(range(2, 5))


def test_under_the_target_fewer_than_the_fan_in_are_not_condensed(chat: Chat) -> None:
    tell(chat, 27)
    answer = "Cranes lifted many boxes to the piers of the harbour. " * 3
    result = chat.compact("full", llm=Scribe(answer), policy=policy(1_000, leaf_source=300))
    assert result.leaves == 4
    assert result.tokens_after < 600
    assert result.nodes == 0


def test_fewer_than_the_fan_in_are_not_condensed_while_messages_can_be(chat: Chat) -> None:
    tell(chat, 40)
    result = chat.compact("full", policy=policy(2_000, fan_in=(20, 20)))
    assert result.tokens_after < 1_200
    assert result.messages < 39, "there was more to summarise"
    assert result.nodes == 0


def test_leaves_are_not_condensed_while_they_leave_room_for_messages(chat: Chat) -> None:
    tell(chat, 60)
    result = chat.compact("full", llm=Scribe("Cranes."), policy=policy(2_000, fan_in=(2, 2)))
    assert result.leaves > 4
    assert result.nodes == 0


def test_fewer_than_the_fan_in_are_condensed_only_under_pressure(chat: Chat) -> None:
    tell(chat, 22)
    relaxed = chat.compact("full", llm=Scribe(), policy=policy(1_000))
    assert relaxed.leaves >= 3
    assert relaxed.nodes == 0
    pressed = chat.compact("full", llm=Scribe(), policy=policy(300, tail=0.2))
    assert pressed.nodes >= 1
    check_tree(chat)


def test_the_shallowest_are_condensed_first(chat: Chat) -> None:
    tell(chat, 240)
    scribe = Scribe()
    result = chat.compact("full", llm=scribe, policy=policy(600, fan_in=(3, 2)))
    depths = [one.depth for one in result.summaries if one.depth]
    assert max(depths) >= 2
    seen: list[int] = []
    for one in result.summaries:
        if one.depth > 1:
            below = [made for made in result.summaries[: len(seen)] if made.depth == one.depth - 1]
            assert below, "what it is made of was made before"
        seen.append(one.depth)
    firsts = {depth: [one.first for one in result.summaries if one.depth == depth] for depth in set(depths)}
    assert all(starts == sorted(starts) for starts in firsts.values()), "the oldest first"
    check_tree(chat)


def test_no_deeper_level_is_made_than_there_is_need_for(chat: Chat) -> None:
    tell(chat, 40)
    depths = []
    for budget in (1_800, 700, 260):
        chat.compact("full", llm=Scribe(), policy=policy(budget, tail=0.2, fan_in=(4, 2)))
        depths.append(max(one.depth for one in chat.tree()))
    assert depths == sorted(depths)
    assert depths[0] == 0
    assert depths[-1] >= 1


# Limits, each of which says so


def test_one_pass_is_what_an_incremental_compaction_does() -> None:
    trees = []
    ways: list[tuple[Both, int]] = [("full", 1), ("incremental", 12)]
    for mode, passes in ways:
        with Memory(":memory:", user="ada") as memory:
            chat = memory.chat("c")
            tell(chat, 300)
            chat.compact(mode, policy=policy(600, fan_in=(2, 2), passes=passes))
            trees.append([(one.depth, one.first, one.last) for one in chat.tree()])
    assert trees[0] == trees[1] != []


def test_no_passes_do_nothing(chat: Chat) -> None:
    tell(chat, 40)
    result = chat.compact("full", policy=policy(passes=0))
    assert result.noop
    assert result.why == "It made 0 passes over the chat."


@pytest.mark.parametrize("llm", [None, Scribe()])
def test_no_time_does_nothing_and_says_so(chat: Chat, llm: Scribe | None) -> None:
    tell(chat, 40)
    result = chat.compact("full", llm=llm, policy=policy(seconds=0))
    assert result.noop
    assert result.why == "The time limit of 0 seconds is reached."
    assert result.calls == 0
    assert chat.crowded(policy=policy())


@pytest.mark.parametrize("calls", [0, 1, 2, 3, 5])
def test_at_most_so_many_calls(chat: Chat, calls: int) -> None:
    tell(chat, 100)
    scribe = Scribe()
    result = chat.compact("full", llm=scribe, policy=policy(calls=calls))
    assert result.calls == len(scribe.prompts) == calls
    assert len(result.summaries) == calls
    assert result.why == f"The limit of {calls} calls of the model is reached."
    check_tree(chat)


@pytest.mark.parametrize("calls", [1, 2, 3, 4, 5])
def test_what_is_asked_again_counts_as_a_call(chat: Chat, calls: int) -> None:
    tell(chat, 100)
    scribe = Scribe("far too long. " * 1_000)
    result = chat.compact("full", llm=scribe, policy=policy(calls=calls))
    assert len(scribe.prompts) == result.calls == calls
    assert {one.level for one in result.summaries} == {"deterministic"}


def test_the_calls_of_a_model_do_not_limit_a_compaction_without_one(chat: Chat) -> None:
    tell(chat, 40)
    assert chat.compact("full", policy=policy(calls=0, spend=0)).tokens_after < 600


@pytest.mark.parametrize("spend", [0, 600, 1_500, 3_000, 5_000])
def test_it_spends_no_more_than_it_may(chat: Chat, spend: int) -> None:
    tell(chat, 100)
    result = chat.compact("full", llm=Scribe(), policy=policy(spend=spend))
    assert result.prompt_tokens + result.answer_tokens <= spend
    assert result.why == f"The limit of {spend:,} tokens for the model allows no further summary."
    assert result.noop is (result.calls == 0)
    assert (spend >= 1_500) is bool(result.calls)


@pytest.mark.parametrize("spend", [1_500, 2_000, 2_500])
def test_what_is_asked_again_is_within_what_it_may_spend(chat: Chat, spend: int) -> None:
    tell(chat, 100)
    answer = "Cranes lifted some more boxes. " * 40  # which nobody knows to be so long before it is there
    result = chat.compact("full", llm=Scribe(answer), policy=policy(spend=spend))
    assert result.calls
    assert result.prompt_tokens + result.answer_tokens - len(answer) // 4 <= spend


@pytest.mark.parametrize("mode", ["", "Full", "partial", None])
def test_an_unknown_mode_is_refused(chat: Chat, mode: Both) -> None:
    with pytest.raises(InvalidInput, match="Use one of incremental, full"):
        chat.compact(mode)


def test_a_policy_that_does_not_say_how_to_compact_is_refused(chat: Chat) -> None:
    wrong: Lossless = LastN()  # type: ignore[assignment]
    with pytest.raises(InvalidInput, match="Use Lossless or SummaryBuffer"):
        chat.compact(policy=wrong)
    with pytest.raises(InvalidInput, match="Use Lossless or SummaryBuffer"):
        chat.crowded(policy=wrong)


@pytest.mark.parametrize(
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
    ids=str,
)
def test_a_number_that_is_out_of_range_is_refused(options: dict[str, object]) -> None:
    make: Callable[..., Compaction] = Compaction
    with pytest.raises(InvalidInput):
        make(**options)


# What happens meanwhile


def test_a_model_may_read_and_write_the_same_memory(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    seen: list[int] = []

    def llm(prompt: str) -> str:
        seen.append(len(chat.history()))
        assert memory.recall("crane7")
        assert chat.window().messages
        chat.append(role="user", content=f"Meanwhile {len(seen)}.")
        memory.chat("other").append(role="user", content="Elsewhere.")
        memory.remember(f"Box number {len(seen)} is red.")
        return "Cranes lifted boxes."

    result = chat.compact("full", llm=llm, policy=policy())
    assert seen == list(range(40, 40 + result.calls))
    assert result.leaves > 1
    assert len(chat.history()) == 40 + result.calls
    assert chat.window().messages[-1].content == f"Meanwhile {result.calls}."
    check_tree(chat)
    assert memory.verify().ok


def test_another_memory_may_write_to_the_same_database_meanwhile(reopen: Callable[[], Memory]) -> None:
    one, other = reopen(), reopen()
    tell(one.chat("c"), 40)

    def llm(prompt: str) -> str:
        other.chat("c").append(role="user", content="From elsewhere.")
        return "Cranes lifted boxes."

    result = one.chat("c").compact("full", llm=llm, policy=policy())
    assert result.calls > 1
    assert other.chat("c").tree() == one.chat("c").tree()
    check_tree(other.chat("c"))


def test_of_two_that_compact_at_once_one_says_that_the_other_was_first(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    inner: list[CompactionResult] = []

    def llm(prompt: str) -> str:
        inner.append(chat.compact("full", policy=policy()))
        return "Too late."

    result = chat.compact("full", llm=llm, policy=policy())
    assert len(inner) == 1
    assert inner[0].leaves
    assert result.noop
    assert result.why.startswith("The chat was changed concurrently")
    assert (result.calls, result.tokens_after) == (1, inner[0].tokens_after)
    assert "Too late." not in {one.text for one in chat.tree()}
    check_tree(chat)


def test_of_two_that_condense_at_once_one_says_that_the_other_was_first(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    chat.compact("full", llm=Scribe(), policy=policy(1_500))
    assert max(one.depth for one in chat.tree()) == 0

    def llm(prompt: str) -> str:
        if "<summaries>" in prompt:
            chat.compact("full", policy=policy(400, tail=0.2))
            return "Too late."
        return "Cranes."

    result = chat.compact("full", llm=llm, policy=policy(400, tail=0.2))
    assert result.why.startswith("The chat was changed concurrently")
    assert "Too late." not in {one.text for one in chat.tree()}
    check_tree(chat)


def test_an_erasure_meanwhile_of_what_was_to_be_condensed_next_ends_it_well(chat: Chat) -> None:
    memory = chat._memory
    how = policy(1_000, fan_in=(4, 4))
    scribe = Scribe("Cranes lifted many boxes to the piers. " * 3)
    tell(chat, 400)
    erased = False

    def llm(prompt: str) -> str:
        nonlocal erased
        above = [one for one in chat.window(10**6).summaries if one.depth]
        if "<summaries>" in prompt and above and not erased:
            under = [one for one in chat.window(10**6).summaries if not one.depth]
            erased = True
            memory.erase(chat=chat.id, messages=under[4].first)
        return scribe(prompt)

    result = chat.compact("full", llm=llm, policy=how)
    assert erased
    assert result.why


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
        chat.compact("full", llm=llm, policy=policy())
    assert caught.value.reason == "unavailable"
    assert isinstance(caught.value.__cause__, Exception)
    assert len(chat.tree()) == fails_at - 1
    assert ("stored before" in caught.value.what) is (fails_at > 1)
    if fails_at == 1:
        assert (chat.window(), chat.stats()) == before
    check_tree(chat)
    assert chat.crowded(policy=policy())
    assert chat.compact("full", llm=Scribe(), policy=policy()).leaves, "it is tried again"


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
        chat.compact("full", llm=llm, policy=policy())
    assert caught.value.reason == reason
    assert chat.tree() == []
    assert chat.stats().context_tokens == 2_000


def test_an_answer_that_is_no_text_is_an_error_and_nothing_is_written(chat: Chat) -> None:
    tell(chat, 40)
    wrong: Callable[[str], str] = lambda _: None  # type: ignore[assignment, return-value]  # noqa: E731
    with pytest.raises(ModelFailed, match="instead of text"):
        chat.compact("full", llm=wrong, policy=policy())
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
        chat.compact("full", llm=llm, policy=policy())
    assert len(chat.tree()) == 2
    check_tree(chat)


# The account


def test_an_account_is_true(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 60)
    scribe = Scribe()
    stages: list[CompactionResult] = []
    result = chat.compact("full", llm=scribe, policy=policy(fan_in=(3, 2)), progress=stages.append)
    tree = {one.id: one for one in chat.tree()}
    assert {one.id for one in result.summaries} == tree.keys()
    assert result.leaves + result.nodes == len(result.summaries)
    assert result.leaves == sum(one.depth == 0 for one in tree.values())
    assert result.messages == chat.stats().summarised
    assert result.calls == len(scribe.prompts)
    assert result.prompt_tokens == sum((len(prompt) + 3) // 4 for prompt in scribe.prompts)
    assert result.answer_tokens == result.calls * ((len("Cranes lifted boxes to piers.") + 3) // 4)
    assert result.seconds >= 0
    assert {one.level for one in result.summaries} == {"normal"}
    assert {one.model for one in result.summaries} == {"Scribe"}
    assert all(tree[one.id].text == one.text for one in result.summaries)


def test_progress_is_told_after_each_summary(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 60)
    told: list[tuple[CompactionResult, int]] = []
    result = chat.compact(
        "full",
        llm=Scribe(),
        policy=policy(fan_in=(3, 2)),
        progress=lambda account: told.append((account, len(chat.tree()))),
    )
    stages = [(account, stored) for account, stored in told if not account.why]
    asked = [(account, stored) for account, stored in told if account.why]
    assert [account.calls for account, _ in asked] == list(range(len(asked)))
    assert [stored for _, stored in asked] == [len(account.summaries) for account, _ in asked]
    assert "Scribe summarises messages c#1-" in asked[0][0].why
    assert [len(account.summaries) for account, _ in stages] == list(range(1, len(result.summaries) + 1))
    assert [stored for _, stored in stages] == list(range(1, len(result.summaries) + 1))
    for (one, _), (two, _) in pairwise(stages):
        assert two.summaries[: len(one.summaries)] == one.summaries
        assert two.calls > one.calls
        assert two.prompt_tokens > one.prompt_tokens
        assert two.answer_tokens > one.answer_tokens
        assert two.messages >= one.messages
        assert two.tokens_after < one.tokens_after
        assert two.tokens_before == one.tokens_before
        assert two.seconds >= one.seconds
    last = stages[-1][0]
    assert (last.summaries, last.calls, last.tokens_after) == (
        result.summaries,
        result.calls,
        result.tokens_after,
    )


def test_progress_is_not_told_of_nothing(chat: Chat) -> None:
    tell(chat, 5)
    stages: list[CompactionResult] = []
    assert chat.compact("full", progress=stages.append).noop
    assert stages == []


def test_progress_that_fails_leaves_a_sound_tree(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 60)

    def progress(account: CompactionResult) -> None:
        if len(account.summaries) == 2:
            raise LookupError

    with pytest.raises(LookupError):
        chat.compact("full", policy=policy(), progress=progress)
    assert len(chat.tree()) == 2
    check_tree(chat)


def test_with_a_counter_of_your_own_all_is_counted_by_it() -> None:
    def count(text: str) -> int:
        return len(text.split())

    with Memory(":memory:", user="ada", count_tokens=count) as memory:
        chat = memory.chat("c")
        tell(chat, 40, 400)
        assert chat.stats().context_tokens == sum(4 + count(message.content) for message in chat.history())
        scribe = Scribe()
        result = chat.compact("full", llm=scribe, policy=policy(2_000, leaf_source=600))
        assert result.prompt_tokens == sum(map(count, scribe.prompts))
        assert result.answer_tokens == 5 * result.calls
        prompt = chat.prompt(2_000, expand=True)
        for one, item in zip(prompt.window.summaries, prompt.messages, strict=False):
            assert one.tokens == 4 + count(str(item["content"]))
        assert result.tokens_after == chat.window(2_000).tokens < 1_200
        check_tree(chat)


def strict(text: str) -> int:
    """Count as a tokenizer does, to which ids and dates are many tokens."""
    return len(re.findall(r"[a-zA-Z]{1,6}|\d{1,3}|[^\sa-zA-Z\d]", text))


@pytest.mark.parametrize("budget", [500, 1_000])
def test_with_a_strict_counter_nothing_is_asked_for_that_cannot_be_used(budget: int) -> None:
    with Memory(":memory:", user="ada", count_tokens=strict) as memory:
        chat = memory.chat("c")
        scribe = Scribe()
        for n in range(1, 80):
            tell(chat, 1, 60, first=n)
            if chat.crowded(budget):
                asked = len(scribe.prompts)
                result = chat.compact(budget=budget, llm=scribe)
                assert result.calls == len(scribe.prompts) - asked
                assert bool(result.summaries) or not result.calls, result.why
        check_tree(chat)


# Tool use


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["user", "assistant", "system"]), st.just(())),
        st.tuples(
            st.sampled_from(["call", "result", "result"]),
            st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=2, unique=True).map(tuple),
        ),
    ),
    min_size=6,
    max_size=40,
)


def log_of(events: list[tuple[str, tuple[str, ...]]]) -> list[Message]:
    log: list[Message] = []
    for n, (kind, ids) in enumerate(events, 1):
        if kind == "call":
            log.append(
                Message("assistant", words(n, 40), calls=tuple(ToolCall(i, "tool", {"n": n}) for i in ids))
            )
        elif kind == "result":
            log += [Message("tool", words(n, 60), call_id=i) for i in ids]
        elif kind == "user":
            log.append(Message("user", words(n, 40)))
        else:
            log.append(Message("assistant" if kind == "assistant" else "system", words(n, 40)))
    return log


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(events=EVENTS, budget=st.sampled_from([150, 400, 900]), source=st.sampled_from([100, 250, 20_000]))
def test_no_tool_call_is_ever_parted_from_its_result(
    events: list[tuple[str, tuple[str, ...]]], budget: int, source: int
) -> None:
    with Memory(":memory:", user="ada") as memory:
        chat = memory.chat("c")
        log = log_of(events)
        how = policy(budget, leaf_source=source, fan_in=(3, 2), keep=0, turns=1)
        half = len(log) // 2
        chat.append(log)
        chat.compact(policy=how)
        check_tree(chat)
        chat.append([Message("user", words(n, 50)) for n in range(half)])
        chat.compact("full", policy=how)
        check_tree(chat)
        assert not chat.crowded(policy=how)


def test_parallel_calls_stay_with_all_their_results(memory: Memory) -> None:
    chat = memory.chat("c")
    first = 1
    for n in range(8):
        tell(chat, 1, first=first)
        calls = (ToolCall(f"x{n}", "read", {"path": f"a{n}"}), ToolCall(f"y{n}", "read", {"path": f"b{n}"}))
        chat.append(
            [
                Message("assistant", words(first + 1, 50), calls=calls, at=minute(first + 1)),
                Message("tool", words(first + 2, 60), call_id=f"y{n}", at=minute(first + 2)),
                Message("user", words(first + 3, 50), at=minute(first + 3)),
                Message("tool", words(first + 4, 60), call_id=f"x{n}", at=minute(first + 4)),
                Message("assistant", words(first + 5, 50), at=minute(first + 5)),
            ]
        )
        first += 6
    chat.compact("full", policy=policy(800, leaf_source=150))
    assert len(leaves(chat)) > 3
    check_tree(chat)
    window = chat.window(800)
    assert not [one for one in window.omitted if "call" in one.why]


def test_a_call_that_still_runs_is_not_summarised_away_from_its_result(chat: Chat) -> None:
    tell(chat, 30)
    chat.append(
        Message("assistant", "I look it up.", calls=(ToolCall("slow", "look_up", {"q": "x"}),), at=minute(31))
    )
    chat.append(Message("user", words(32, 60), at=minute(32)))
    chat.append(Message("user", words(33, 60), at=minute(33)))
    chat.compact("full", policy=policy(300, threshold=0.3, target=0.2, turns=2))
    chat.append(Message("tool", "The answer is 4312.", call_id="slow", at=minute(34)))
    check_tree(chat)
    window = chat.window(300)
    assert "The answer is 4312." in {message.content for message in window.messages}, window.omitted


# The prompt between two compactions


def test_between_compactions_every_window_is_the_beginning_of_the_next(memory: Memory) -> None:
    chat = memory.chat("c")
    how = policy(1_000)
    first, steps = 1, 0
    before = chat.window(policy=how)
    while first < 100:
        tell(chat, 2, first=first)
        first += 2
        after = chat.window(policy=how)
        if after.omitted == ():
            steps += 1
            assert after.summaries == before.summaries
            assert after.messages[: len(before.messages)] == before.messages
        if chat.crowded(policy=how):
            chat.compact(policy=how)
            after = chat.window(policy=how)
        before = after
    assert steps > 40


def test_between_compactions_every_prompt_is_the_beginning_of_the_next(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    chat.compact(policy=policy())
    before = chat.prompt(1_000, system="Be brief.")
    assert before.window.summaries
    for first in range(41, 47, 2):
        tell(chat, 2, 25, first=first)
        after = chat.prompt(1_000, system="Be brief.")
        assert after.system == before.system
        assert after.messages[: len(before.messages)] == before.messages
        assert len(after.messages) == len(before.messages) + 2
        before = after


def test_another_handle_sees_the_same_window(reopen: Callable[[], Memory]) -> None:
    one = reopen().chat("c")
    tell(one, 60)
    one.compact("full", policy=policy(fan_in=(3, 2)))
    other = reopen().chat("c")
    assert other.window() == one.window()
    assert other.prompt(1_000).messages == one.prompt(1_000).messages
    assert other.tree() == one.tree()
    assert ranges(other.window().summaries)[0][0] == 1


def test_the_words_of_one_answer_are_not_taken_for_another(chat: Chat) -> None:
    tell(chat, 40)
    result = chat.compact(
        "full",
        llm=Scribe(in_turn(*(f"Part {n} of the harbour." for n in range(1, 40)))),
        policy=policy(1_500),
    )
    assert [one.text for one in leaves(chat)] == [
        f"Part {n} of the harbour." for n in range(1, result.calls + 1)
    ]
