"""Compaction: when, how far, of what; and nothing is lost, doubled, or stored by halves."""

from __future__ import annotations

import compaction_chats
import pytest
from compaction_chats import (
    START,
    Scribe,
    check_tree,
    leaves,
    minute,
    policy,
    section,
    seqs,
    tell,
    words,
)

from holdfast import CompactionResult, InvalidInput, Memory, Message, ToolCall
from holdfast.chat import Chat
from holdfast.prompt.window import Compaction, Lossless
from tables import each

chat = compaction_chats.chat


# When a compaction is needed


def test_needs_compaction_and_compact_answer_for_a_chat_that_does_not_exist(memory: Memory) -> None:
    chat = memory.chat("unknown")
    assert not chat.needs_compaction()
    for full in (False, True):
        result = chat.compact(full=full)
        assert result.noop
        assert result.why == "The chat has no messages."
        assert (result.messages, result.tokens_before, result.tokens_after, result.calls) == (0, 0, 0, 0)
    assert chat.tree() == []
    assert memory.chats() == []


def test_needs_compaction_depends_on_the_share_of_the_budget(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 5, 100)
    assert chat.needs_compaction(policy=policy(10))
    assert chat.needs_compaction(policy=policy(600))
    assert not chat.needs_compaction(policy=policy(700))
    assert not chat.needs_compaction(policy=policy(1_000_000))


def test_a_chat_needs_compaction_strictly_above_the_threshold(chat: Chat) -> None:
    tell(chat, 15, 50)
    assert chat.stats().context_tokens == 750
    how = policy(1_000)
    assert not chat.needs_compaction(policy=how)
    assert chat.compact(policy=how).why.startswith("No compaction is needed: 750 tokens")
    tell(chat, 1, 10, first=16)
    assert chat.needs_compaction(policy=how)
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
    assert not chat.needs_compaction(policy=how)
    assert chat.compact(policy=how).noop
    tell(chat, 1, 10, first=3)
    assert chat.needs_compaction(policy=how) is True


def test_what_something_else_takes_of_a_prompt_is_left_off_the_budget(chat: Chat) -> None:
    tell(chat, 14)
    observed, budget = 200, 1_000  # tokens of the instructions and tools, which the memory does not see
    assert not chat.needs_compaction(policy=policy(budget))
    assert chat.needs_compaction(policy=policy(budget - observed))
    chat.compact(policy=policy(budget - observed))
    assert chat.window(budget - observed).tokens + observed < budget
    assert not chat.needs_compaction(policy=policy(budget - observed))


def test_a_threshold_that_is_passed_takes_the_place_of_that_of_the_policy(chat: Chat) -> None:
    tell(chat, 12, 50)
    assert not chat.needs_compaction(policy=policy(1_000))
    assert chat.needs_compaction(threshold=0.5, policy=policy(1_000))
    assert not chat.needs_compaction(threshold=0.6, policy=policy(1_000))


@each("threshold", [0, -0.1, 1.01, 75, float("nan"), float("inf"), True, "0.75"])
def test_a_threshold_that_is_no_share_is_refused(chat: Chat, threshold: float) -> None:
    with pytest.raises(InvalidInput, match="fraction"):
        chat.needs_compaction(threshold=threshold)
    with pytest.raises(InvalidInput, match="fraction"):
        Compaction(threshold=threshold)


def test_what_is_too_short_to_be_summarised_needs_no_compaction(chat: Chat) -> None:
    tell(chat, 5, 12)
    assert not chat.needs_compaction(10)
    assert chat.compact(full=True, budget=10).why.startswith("Nothing more can be compacted")


def test_after_a_compaction_a_chat_needs_none_until_enough_is_new(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    how = policy(1_000)
    assert chat.needs_compaction(policy=how)
    chat.compact(policy=how)
    added = 0
    while not chat.needs_compaction(policy=how):
        added += len(tell(chat, 1, first=100 + added))
    assert chat.stats().context_tokens > 750
    assert added * 50 >= 150
    assert chat.compact(policy=how).leaves
    assert not chat.needs_compaction(policy=how)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("budget", [300, 1_000, 8_000])
def test_right_after_a_full_compaction_a_chat_needs_none(chat: Chat, full: bool, budget: int) -> None:
    tell(chat, 60)
    chat.compact(full=True, budget=budget)
    assert not chat.needs_compaction(budget)
    assert chat.compact(full=full, budget=budget).noop


# What it leaves


def test_twelve_messages_and_a_tail_of_one_make_a_leaf(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 12)
    result = chat.compact(full=True, policy=policy(100, target=0.3, threshold=0.5))
    assert result.leaves >= 1
    assert result.messages == chat.stats().summarised
    assert result.tokens_after <= result.tokens_before
    check_tree(chat)


def test_a_prompt_names_expand_where_the_model_has_it(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    chat.compact(full=True, policy=policy(1_000))
    with chat.run() as run:
        for prompt in (chat.prompt, run.prompt):
            plain, named = prompt(1_000), prompt(1_000, expand=True)
            assert "expand" not in str(plain.messages[0])
            assert "`expand` with this id gives the original words." in str(named.messages[0])
            assert plain.tokens["total"] == named.tokens["total"] <= 1_000
    assert "`expand`" not in chat.review(after=39)


@pytest.mark.parametrize("full", [False, True])
def test_a_window_after_a_compaction_has_summaries_and_then_the_tail_untouched(
    memory: Memory, full: bool
) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    before = chat.history()
    result = chat.compact(full=full, policy=policy(1_000))
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


@pytest.mark.parametrize("full", [False, True])
def test_the_log_stays_word_for_word(memory: Memory, full: bool) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    before, stats = chat.history(), chat.stats()
    assert not chat.compact(full=full, policy=policy()).noop
    assert chat.history() == before
    after = chat.stats()
    assert (after.messages, after.stored_tokens) == (stats.messages, stats.stored_tokens)
    assert memory.verify().ok


def test_a_second_full_compaction_makes_no_progress_and_says_so(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 60)
    chat.compact(full=True, policy=policy())
    tree, window = chat.tree(), chat.window()
    scribe = Scribe()
    again = chat.compact(full=True, llm=scribe, policy=policy())
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
        assert chat.compact(full=True, policy=how).tokens_after < 450
    assert depths >= {0, 1, 2}
    assert not chat.needs_compaction(policy=how)


def test_every_message_stays_reachable_from_the_window(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 80)
    chat.compact(full=True, policy=policy(600, fan_in=(3, 2)))
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
    for chat in (one, other, foreign):
        tell(chat, 40)
    one.compact(full=True, policy=policy())
    assert other.tree() == foreign.tree() == []
    assert other.stats() == foreign.stats()
    assert other.stats().context_tokens == 2_000
    assert len(other.window(10**6).messages) == 40


def test_ids_of_summaries_are_a_prefix_and_sixteen_digits_and_unique(chat: Chat) -> None:
    tell(chat, 200)
    chat.compact(full=True, policy=policy())
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
    chat.compact(full=True, llm=scribe, policy=policy(1_500, previous=0))
    made = leaves(chat)
    assert made[0].first == 1
    for leaf, prompt in zip(made, scribe.prompts, strict=True):
        said = section(prompt, "conversation")
        assert [n for n in range(1, 41) if f"Crane{n} " in said] == list(range(leaf.first, leaf.last + 1))


def test_the_source_of_a_leaf_is_capped(chat: Chat) -> None:
    tell(chat, 40)
    chat.compact(full=True, policy=policy(leaf_source=220))
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
    chat.compact(full=True, policy=policy(leaf_source=200, budget=600))
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
    assert chat.needs_compaction()
    result = chat.compact(full=True)
    assert result.tokens_after < 6_000, result.why
    check_tree(chat)


@pytest.mark.slow
def test_a_message_of_100_kb_is_summarised_and_stays_readable(memory: Memory) -> None:
    chat = memory.chat("c")
    text = "".join(f"Entry {n} of the report: sensor {n * 7} reads {n % 13} bar. " for n in range(2_000))
    assert len(text) > 100_000
    chat.append(Message("user", text, at=START))
    tell(chat, 8, 200, first=2)
    result = chat.compact(full=True)
    assert result.leaves == 1
    assert result.tokens_after < 4_800
    assert chat.expand(chat.tree()[0].id).messages[0].content == text


@pytest.mark.parametrize("messages", [32, 40, 60, 90])
def test_it_stops_as_soon_as_it_is_under_the_target(chat: Chat, messages: int) -> None:
    tell(chat, messages)
    stages: list[CompactionResult] = []
    result = chat.compact(full=True, policy=policy(2_000), progress=stages.append)
    assert result.why == "It is below the target of 1,200 tokens."
    assert result.tokens_after < 1_200
    before = [result.tokens_before, *(stage.tokens_after for stage in stages)]
    assert min(before[:-1]) >= 1_200, "without the last it would not have been"


def test_a_large_leaf_takes_no_more_than_is_needed(chat: Chat) -> None:
    tell(chat, 160)
    result = chat.compact(full=True)
    assert result.tokens_before == 8_000
    assert 0.6 * 8_000 - 1_000 <= result.tokens_after < 0.6 * 8_000


def test_a_model_that_is_terse_does_not_make_it_go_too_far(chat: Chat) -> None:
    tell(chat, 200)
    result = chat.compact(full=True, llm=Scribe("Cranes."), policy=policy(10_000, leaf_source=1_000))
    assert 6_000 - 1_000 <= result.tokens_after < 6_000


@pytest.mark.parametrize(("tokens", "rounds"), [(599, False), (600, True), (601, True)])
def test_a_full_compaction_goes_strictly_under_the_target(chat: Chat, tokens: int, rounds: bool) -> None:
    tell(chat, 11)
    tell(chat, 1, tokens - 550, first=12)
    result = chat.compact(full=True, policy=policy(1_000))
    assert bool(result.summaries) is rounds
    assert result.noop is not rounds
    assert result.tokens_before == tokens
    assert result.tokens_after < 600
    assert result.leaves == rounds
    if not rounds:
        assert result.why == "It is below the target already: 599 tokens, and the target is 600."


@pytest.mark.parametrize("messages", [20, 80, 160])
def test_what_needs_compaction_is_brought_under_the_target_and_a_full_compaction_finds_no_more(
    chat: Chat, messages: int
) -> None:
    tell(chat, messages)
    how = policy(600, fan_in=(4, 2))
    result = chat.compact(full=True, policy=how)
    assert result.tokens_after < 360
    assert result.why == "It is below the target of 360 tokens."
    assert chat.compact(full=True, policy=how).noop
    check_tree(chat)


def test_full_loops_to_the_target_even_if_no_compaction_is_needed(chat: Chat) -> None:
    tell(chat, 14)
    assert not chat.needs_compaction(policy=policy(1_000))
    assert chat.compact(policy=policy(1_000)).noop
    assert chat.compact(full=True, policy=policy(1_000)).tokens_after < 600


# The fresh tail


def test_a_session_that_is_all_tail_is_not_summarised(chat: Chat) -> None:
    tell(chat, 10)
    how = Lossless(700, Compaction(turns=6, tail=1.0, threshold=0.5, target=0.5))
    assert not chat.needs_compaction(policy=how)
    assert chat.compact(full=True, policy=how).noop
    assert seqs(chat.window(policy=how).messages) == list(range(1, 11))


@pytest.mark.parametrize(("turns", "kept"), [(1, 1), (2, 3), (3, 5)])
def test_the_newest_turns_are_never_summarised(chat: Chat, turns: int, kept: int) -> None:
    tell(chat, 31)
    chat.compact(full=True, policy=policy(500, turns=turns, tail=0.8, target=0.1, threshold=0.2))
    assert chat.stats().messages - chat.stats().summarised >= kept
    assert chat.window(500).messages[-kept].role == "user"


def test_a_tail_is_capped_at_whole_turns_and_the_newest_user_message_stays(chat: Chat) -> None:
    tell(chat, 32)
    chat.append(Message("user", words(33, 300), at=minute(33)))
    how = policy(600, turns=6, tail=0.5, target=0.1, threshold=0.2)
    chat.compact(full=True, policy=how)
    assert seqs(chat.window(policy=how).messages) == [33]


def test_of_a_newest_turn_that_is_larger_than_the_tail_the_newest_messages_stay(chat: Chat) -> None:
    tell(chat, 1)
    chat.append([Message("assistant", words(n, 50), at=minute(n)) for n in range(2, 40)])
    chat.compact(full=True, policy=policy(600, tail=0.4))
    rest = chat.stats().messages - chat.stats().summarised
    assert 1 <= rest <= 240 // 50 + 1
    assert chat.window(600).messages[-1].seq == 39


def test_without_a_tail_everything_may_be_summarised(chat: Chat) -> None:
    tell(chat, 32)
    result = chat.compact(full=True, policy=policy(300, turns=0, keep=0, threshold=0.2, target=0.1))
    assert chat.stats().summarised == 32
    assert chat.window().messages == ()
    assert chat.window().summaries
    assert result.messages == 32
    check_tree(chat)


@pytest.mark.parametrize("budget", [0, 1, 16, 100])
def test_a_tiny_budget_ends(chat: Chat, budget: int) -> None:
    tell(chat, 40)
    result = chat.compact(full=True, budget=budget)
    assert result.why
    assert chat.window(budget).messages[-1].seq == 40
    assert not chat.needs_compaction(budget)
    check_tree(chat)


# Summaries of summaries


@pytest.mark.slow
def test_at_most_eight_leaves_are_condensed_and_later_four_of_those(chat: Chat) -> None:
    first = 1
    for _ in range(12):
        tell(chat, 40, first=first)
        first += 40
        chat.compact(full=True, llm=Scribe("Cranes."), policy=policy(2_000))
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
    result = chat.compact(full=True, llm=Scribe(answer), policy=policy(1_000, leaf_source=300))
    assert result.leaves == 4
    assert result.tokens_after < 600
    assert result.nodes == 0


def test_fewer_than_the_fan_in_are_not_condensed_while_messages_can_be(chat: Chat) -> None:
    tell(chat, 40)
    result = chat.compact(full=True, policy=policy(2_000, fan_in=(20, 20)))
    assert result.tokens_after < 1_200
    assert result.messages < 39, "there was more to summarise"
    assert result.nodes == 0


def test_leaves_are_not_condensed_while_they_leave_room_for_messages(chat: Chat) -> None:
    tell(chat, 60)
    result = chat.compact(full=True, llm=Scribe("Cranes."), policy=policy(2_000, fan_in=(2, 2)))
    assert result.leaves > 4
    assert result.nodes == 0


def test_fewer_than_the_fan_in_are_condensed_only_under_pressure(chat: Chat) -> None:
    tell(chat, 22)
    relaxed = chat.compact(full=True, llm=Scribe(), policy=policy(1_000))
    assert relaxed.leaves >= 3
    assert relaxed.nodes == 0
    pressed = chat.compact(full=True, llm=Scribe(), policy=policy(300, tail=0.2))
    assert pressed.nodes >= 1
    check_tree(chat)


def test_the_shallowest_are_condensed_first(chat: Chat) -> None:
    tell(chat, 240)
    scribe = Scribe()
    result = chat.compact(full=True, llm=scribe, policy=policy(600, fan_in=(3, 2)))
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
        chat.compact(full=True, llm=Scribe(), policy=policy(budget, tail=0.2, fan_in=(4, 2)))
        depths.append(max(one.depth for one in chat.tree()))
    assert depths == sorted(depths)
    assert depths[0] == 0
    assert depths[-1] >= 1
