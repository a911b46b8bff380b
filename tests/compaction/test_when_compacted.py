"""When a chat is compacted, how far, of what, and what stops it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import compaction_chats
import pytest
from compaction_chats import (
    START,
    WAYS,
    AsyncScribe,
    Scribe,
    compact,
    cost,
    depths,
    failing,
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
from tree_checks import check_tree, check_window, covered_by, frontier_of

from holdfast import Chat, InvalidInput, Memory, Message, ModelFailed, ToolCall, Window
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
SENTENCE = "The tulips in the garden of Ada bloom in April. "
LONG = "Cranes lifted many boxes to the piers of the harbour. " * 3


def fresh() -> Chat:
    """Open a chat of its own, for a row of a table."""
    return Memory(":memory:", user="ada", admin=True).chat("c")


# When


@each(("budget", "threshold"), [(1_000, 0.75), (300, 1.0), (10_000, 0.57), (10_000, 0.58), (100_000, 0.29)])
def test_a_chat_needs_compaction_strictly_above_the_threshold(budget: int, threshold: float) -> None:
    chat, limit = fresh(), round(budget * threshold)
    tell(chat, 1, limit - 30)
    tell(chat, 1, 30, first=2)
    how = policy(budget, threshold=threshold, target=threshold / 2, leaf_source=10**6, turns=0, keep=0)
    other = policy(budget, target=0.1, leaf_source=10**6, turns=0, keep=0)
    assert not chat.needs_compaction(policy=how)
    result = chat.compact(policy=how)
    assert result.noop
    assert result.why == (
        f"No compaction is needed: {limit:,} tokens, and the threshold is {limit:,} of {budget:,}."
    )
    tell(chat, 1, 10, first=3)
    assert chat.needs_compaction(policy=how) is True
    # One that is passed takes the place of that of the policy.
    assert not chat.needs_compaction(threshold=min(1.0, threshold + 0.2), policy=how) or threshold == 1.0
    assert chat.needs_compaction(threshold=threshold, policy=other)


@each(
    ("messages", "size", "wanted", "why"),
    [
        (0, 50, {"policy": policy()}, "The chat has no messages."),
        (0, 50, {"full": False, "budget": 0}, "The chat has no messages."),
        (5, 50, {"policy": policy()}, "It is below the target already: 250 tokens, and the target is 600."),
        (12, 50, {"full": False, "policy": policy()}, "No compaction is needed: 600 tokens, and the thres"),
        (15, 50, {"full": False, "policy": BUFFER}, "No compaction is needed: 750 tokens, and the thres"),
        (5, 12, {"budget": 10}, "Nothing more can be compacted: the 60 tokens that are left are the newest"),
        (40, 50, {"policy": policy(passes=0)}, "It made 0 passes over the chat."),
        (40, 50, {"policy": policy(seconds=0)}, "The time limit of 0 seconds is reached."),
        (40, 50, {"policy": policy(calls=0)}, "The limit of 0 calls of the model is reached."),
        (
            40,
            50,
            {"policy": policy(spend=0)},
            "The limit of 0 tokens for the model allows no further summary.",
        ),
    ],
)
def test_where_nothing_is_done_it_says_why(messages: int, size: int, wanted: Any, why: str) -> None:
    chat, scribe, told = fresh(), Scribe(), list[Any]()
    tell(chat, messages, size) if messages else None
    result = chat.compact(**({"full": True, "llm": scribe, "progress": told.append} | wanted))
    assert result.why.startswith(why)
    assert result.noop
    assert (result.summaries, result.messages, result.calls, result.leaves, result.nodes) == ((), 0, 0, 0, 0)
    assert result.tokens_before == result.tokens_after == messages * size
    assert (scribe.prompts, told, chat.tree()) == ([], [], [])


@pytest.mark.parametrize("way", WAYS)
def test_how_far_it_goes(way: str) -> None:
    for tokens, target, leaf_source, answer in (
        (599, 600, 200, LONG),
        (600, 600, 200, LONG),
        (700, 600, 200, "Cranes."),
        (8_000, 4_800, 20_000, LONG),
        (10_000, 6_000, 1_000, "Cranes."),
    ):
        chat = fresh()
        tell(chat, 11)
        tell(chat, 1, tokens % 50 or 50, first=12)
        tell(chat, max(0, tokens // 50 - 12 + bool(tokens % 50)), first=13)
        before = chat.stats().context_tokens
        assert before == tokens
        how = policy(target * 10 // 6, leaf_source=leaf_source)
        result = compact(way, chat, AsyncScribe(answer), policy=how)
        assert result.noop is (tokens < target)
        assert target - max(150, leaf_source // 4 * 3) <= result.tokens_after < target
        assert compact(way, chat, AsyncScribe(answer), policy=how).calls == 0
        assert not chat.needs_compaction(policy=how)


def test_needs_compaction_with_a_threshold_below_the_target_is_false_after_a_compaction(chat: Chat) -> None:
    tell(chat, 200)
    assert chat.needs_compaction(2_000, 0.3)
    assert "below the target" in chat.compact(full=True, budget=2_000).why
    assert not chat.needs_compaction(2_000, 0.3), "the same compaction would do nothing"


def test_one_pass_is_what_an_incremental_compaction_does() -> None:
    trees, whys = [], []
    for full, passes in ((True, 1), (False, 12)):
        chat = fresh()
        tell(chat, 300)
        result = chat.compact(full=full, policy=policy(600, fan_in=(2, 2), passes=passes))
        whys.append(result.why)
        trees.append([(one.depth, one.first, one.last) for one in chat.tree()])
    assert trees[0] == trees[1] != []
    assert whys[1] in ("An incremental compaction makes one pass over the chat.", whys[0])


# A chat that grows


@pytest.mark.parametrize("llm", [None, Scribe("Boxes."), Scribe(LONG)], ids=["none", "terse", "long"])
@pytest.mark.parametrize(
    "how",
    [
        policy(),
        policy(600, fan_in=(3, 2)),
        BUFFER,
        SummaryBuffer(1_000, keep=5),
        Lossless(1_000),
    ],
    ids=["small leaves", "deep", "buffer", "keeps five", "default"],
)
def test_between_compactions_every_window_is_the_beginning_of_the_next(
    chat: Chat, how: Lossless | SummaryBuffer, llm: Scribe | None
) -> None:
    """Whenever it is compacted, it fits, begins with a message of the user, and leaves nothing out."""
    before, fill, grown = Window((), (), 0, 0, ()), set[int](), set[str]()
    for n in range(1, 130):
        tell(chat, 1, first=n)
        if chat.needs_compaction(policy=how):
            assert chat.stats().context_tokens > how.compaction.threshold * how.budget
            chat.compact(policy=how, llm=llm)
            assert not chat.needs_compaction(policy=how)
            before = Window((), (), 0, 0, ())
        window = chat.window(policy=how)
        check_window(window, how, chat.history(), frontier_of(chat.tree()))
        assert window.omitted == ()
        assert window.messages[-1].seq == n
        assert window.messages[0].role == "user"
        assert window.summaries == before.summaries or not before.messages
        assert window.messages[: len(before.messages)] == before.messages
        before = window
        fill.add(100 * window.tokens // how.budget)
        grown |= {one.id for one in window.summaries if one.depth}
    assert len(fill & {*range(int(100 * how.compaction.target), int(100 * how.compaction.threshold))}) >= 3
    assert not isinstance(how, SummaryBuffer) or len(grown) == 1, "its id stays the same while it grows"
    check_tree(chat)


@each("budget", [60, 120, 200, 400])
def test_with_a_small_budget_it_does_not_summarise_for_ever(budget: int) -> None:
    for how in (SummaryBuffer(budget), Lossless(budget)):
        chat, scribe = fresh(), Scribe("Boxes.")
        for n in range(1, 60):
            tell(chat, 1, 30, first=n)
            for _ in range(3):
                if chat.needs_compaction(policy=how):
                    chat.compact(llm=scribe, policy=how)
        assert not chat.needs_compaction(policy=how)
        assert len(scribe.prompts) <= 60
        assert chat.window(policy=how).messages[-1].seq == 59
        check_tree(chat)


@pytest.mark.parametrize("budget", [500, 1_000])
def test_with_a_strict_counter_nothing_is_asked_for_that_cannot_be_used(budget: int) -> None:
    """A tokenizer counts ids and dates as many tokens."""

    def strict(text: str) -> int:
        return sum(2 if word.isalpha() else 6 for word in text.replace("-", " - ").split())

    with Memory(":memory:", user="ada", count_tokens=strict) as memory:
        chat, scribe = memory.chat("c"), Scribe()
        for n in range(1, 80):
            tell(chat, 1, 60, first=n)
            if chat.needs_compaction(budget):
                asked = len(scribe.prompts)
                result = chat.compact(budget=budget, llm=scribe)
                assert result.calls == len(scribe.prompts) - asked
                assert bool(result.summaries) or not result.calls, result.why
        check_tree(chat)


def test_between_compactions_every_prompt_is_the_beginning_of_the_next(chat: Chat) -> None:
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


# Nothing keeps a compaction from what could be summarised


def huge(before: int, opening: int = 12) -> list[Message]:
    """A short question and then a whole file: the question is too short for a leaf of its own."""
    asked = [Message("user", words(n, opening)) for n in range(before)]
    return [*asked, Message("user", "word " * 20_000), *(Message("user", SENTENCE * 4) for _ in range(120))]


def lost_call(every: int) -> list[Message]:
    """An agent at work: a tool was cancelled once; hundreds of calls later the request is the same."""
    said = [Message("user", "Go."), Message("assistant", "", calls=(ToolCall("lost", "look"),))]
    for n in range(300):
        said += [Message("user", "Go on.")] * (n % every == every - 1)
        call = ToolCall(f"call_{n}", "look")
        said += [Message("assistant", "", calls=(call,)), Message("tool", SENTENCE * 3, call_id=call.id)]
    return said


REPORT = "".join(f"Entry {n} of the report: sensor {n * 7} reads {n % 13} bar. " for n in range(2_000))
UNEVEN = [Message("user", "Read this."), Message("assistant", SENTENCE * 40)] * 6
SMALL_LEAVES = Lossless(1_000, Compaction(leaf_source=400, leaf_target=60))
STUCK: list[tuple[list[Message], Lossless | SummaryBuffer, Any]] = [
    *((huge(n), how, None) for n in (1, 2, 5) for how in (Lossless(8_000), SummaryBuffer(8_000))),
    *((huge(n), Lossless(2_000), None) for n in (1, 2, 5)),
    *((huge(1, opening), Lossless(8_000), None) for opening in (60, 99)),
    *((lost_call(n), how, None) for n in (10, 100, 1_000) for how in (Lossless(2_000), SummaryBuffer(2_000))),
    ([*UNEVEN, *(Message("user", f"{n}: {SENTENCE}") for n in range(20))], SMALL_LEAVES, None),
    ([Message("user", REPORT), *(Message("user", words(n, 200)) for n in range(8))], Lossless(8_000), None),
    # Answers that are hardly shorter than their source, or with the frame around them not shorter at all.
    *(([Message("user", words(n, 50)) for n in range(13)], policy(600, leaf_source=500, turns=0), size)
      for size in (499, 490, 460)),
    *(([Message("user", words(n, 50)) for n in range(12)], policy(500, leaf_source=100), size)
      for size in (60, 80, 95)),
    ([Message("user", words(n, 50)) for n in range(125)], Lossless(8_000), "all but 20"),
]  # fmt: skip


@pytest.mark.slow
@each(("said", "how", "answer"), STUCK)
def test_nothing_blocks_a_compaction(said: list[Message], how: Lossless | SummaryBuffer, answer: Any) -> None:
    def llm(prompt: str) -> str:
        if "<summaries>" in prompt.splitlines():
            return "Boxes."
        size = answer if isinstance(answer, int) else 50 * prompt.count("| user] Crane") - 20
        return ("Cranes lift boxes. " * 900)[: 4 * size - 1] + "."

    chat = fresh()
    chat.append(said)
    result = chat.compact(full=True, policy=how, llm=llm if answer else None)
    assert result.leaves, result.why
    assert result.tokens_after < min(result.tokens_before, how.budget), result.why
    assert not chat.needs_compaction(policy=how)
    assert chat.window(policy=how).omitted == ()
    check_tree(chat)


@each("after", [0, 1])
@each(
    "policy",
    [Lossless(800, Compaction(keep=0)), Lossless(800), SummaryBuffer(800, keep=0), SummaryBuffer(800)],
)
def test_a_call_that_waits_for_its_result_stays_with_the_newest_messages(policy: Any, after: int) -> None:
    chat = fresh()
    tell(chat, 100)
    call = chat.append(Message("assistant", "I look.", calls=(ToolCall("call", "look"),)))
    tell(chat, after, 40, first=102) if after else None
    assert chat.compact(full=True, policy=policy).leaves > 0
    assert covered_by(chat) < call.seq
    chat.append(Message("tool", "found", call_id="call"))
    shown = chat.window(100_000, policy=replace(policy, budget=100_000)).messages
    assert call in shown
    assert shown[-1].content == "found"


@pytest.mark.parametrize("keep", [0, 1])
def test_the_newest_turns_stay_also_when_a_call_before_them_waits_for_its_result(
    chat: Chat, keep: int
) -> None:
    tell(chat, 100)
    chat.append(Message("assistant", "I look.", calls=(ToolCall("call", "look"),)))
    chat.append(role="user", content=SENTENCE * 100)
    newest = tell(chat, 4, first=103)
    chat.compact(full=True, policy=Lossless(800, Compaction(keep=keep)))
    assert covered_by(chat) < newest[0].seq


def test_a_call_that_waits_and_what_follows_it_stay_whatever_they_cost(chat: Chat) -> None:
    tell(chat, 20)
    call = ToolCall("slow", "look")
    chat.append([Message("assistant", "I look it up. " * 20, calls=(call,)), Message("user", "Hurry. " * 20)])
    chat.compact(full=True, policy=SummaryBuffer(60, threshold=1.0, target=1.0, keep=0))
    assert covered_by(chat) == 20


@pytest.mark.slow
def test_many_calls_that_wait_are_looked_at_once(chat: Chat) -> None:
    calls = [Message("assistant", "", calls=(ToolCall(f"c{n}", "look"),)) for n in range(8_000)]
    chat.append([Message("user", "Look."), *calls])
    assert not chat.compact(full=True, budget=1_000).leaves


# Leaves, and summaries of them


def test_a_single_tool_use_that_is_larger_is_a_leaf_of_its_own(chat: Chat) -> None:
    tell(chat, 4)
    call = Message("assistant", calls=(ToolCall("a", "read", {"path": "src/a.py"}),), at=minute(5))
    chat.append([call, Message("tool", words(6, 900), call_id="a", at=minute(6))])
    tell(chat, 30, first=7)
    chat.compact(full=True, policy=policy(600))
    (large,) = [one for one in leaves(chat) if one.first <= 6 <= one.last]
    assert (large.first, large.last) == (5, 6)
    assert len(leaves(chat)) > 3
    assert all(one.source_tokens <= 200 for one in leaves(chat) if one != large)
    ids = [one.id for one in chat.tree()]
    assert all(identity.startswith("sum_") and int(identity[4:], 16) >= 0 for identity in ids)
    assert {len(identity) for identity in ids} == {20}


@each(
    ("before", "how", "kept"),
    [
        (10, Lossless(700, Compaction(turns=6, tail=1.0, threshold=0.5, target=0.5)), range(1, 11)),
        (32, policy(300, turns=0, keep=0, threshold=0.2, target=0.1), []),
        (31, policy(500, turns=1, tail=0.8, target=0.1, threshold=0.2), [31]),
        (31, policy(500, turns=2, tail=0.8, target=0.1, threshold=0.2), [29, 30, 31]),
        (31, policy(500, turns=3, tail=0.8, target=0.1, threshold=0.2), range(27, 32)),
        (31, policy(500, turns=9, tail=0.32, target=0.1, threshold=0.2), [29, 30, 31]),
        (31, policy(500, turns=1, tail=0.05, target=0.1, threshold=0.2), [31]),
        (30, policy(500, turns=0, keep=3, target=0.1, threshold=0.2), [27, 28, 29, 30]),
        (30, policy(500, turns=1, tail=0.1, target=0.1, threshold=0.2), [29, 30]),
    ],
)
def test_the_tail_is_never_summarised_and_what_is_before_it_is(before: int, how: Lossless, kept: Any) -> None:
    chat = fresh()
    tell(chat, before)
    chat.compact(full=True, policy=how)
    assert seqs(chat.history(after=covered_by(chat))) == list(kept)
    assert seqs(chat.window(policy=how).messages) == list(kept)


def test_of_a_newest_turn_that_is_larger_than_the_tail_the_newest_messages_stay(chat: Chat) -> None:
    tell(chat, 1)
    chat.append([Message("assistant", words(n, 50), at=minute(n)) for n in range(2, 40)])
    chat.compact(full=True, policy=policy(600, tail=0.4))
    assert 1 <= 39 - covered_by(chat) <= 240 // 50 + 1
    assert chat.window(600).messages[-1].seq == 39


@each(
    ("messages", "how", "answer", "nodes"),
    [
        (27, policy(1_000, leaf_source=300), LONG, False),  # fewer than the fan-in, under the target
        (40, policy(2_000, fan_in=(20, 20)), None, False),  # fewer, while messages can be summarised
        (60, policy(2_000, fan_in=(2, 2)), "Cranes.", False),  # leaves leave room for messages
        (22, policy(1_000), "Cranes lifted boxes to piers.", False),
        (22, policy(300, tail=0.2), "Cranes lifted boxes to piers.", True),  # fewer, under pressure
        (80, policy(300, tail=0.2, fan_in=(20, 20), pressed=9), "Cranes lifted boxes to piers.", True),
    ],
)
def test_summaries_are_condensed_where_there_is_need(
    messages: int, how: Lossless, answer: Any, nodes: bool
) -> None:
    chat = fresh()
    tell(chat, messages)
    result = chat.compact(full=True, llm=answer and Scribe(answer), policy=how)
    assert result.leaves > 1
    assert bool(result.nodes) is nodes
    assert covered_by(chat) < messages
    assert not nodes or min(len(chat.expand(one.id).children) for one in chat.tree() if one.depth) >= (
        min(how.compaction.pressed, result.leaves)
    )


def test_the_shallowest_are_condensed_first(chat: Chat) -> None:
    tell(chat, 240)
    made = chat.compact(full=True, llm=Scribe(), policy=policy(600, fan_in=(3, 2))).summaries
    assert depths(chat) >= {0, 1, 2}
    for n, one in enumerate(made):
        if one.depth:
            assert any(below.depth == one.depth - 1 for below in made[:n]), "what it is made of was before"
    for depth in depths(chat):
        starts = [one.first for one in made if one.depth == depth]
        assert starts == sorted(starts), "the oldest first"
    tell(chat, 40, first=241)
    deepest = []
    for budget in (9_000, 1_800, 700, 260):
        other = fresh()
        tell(other, 40)
        other.compact(full=True, llm=Scribe(), policy=policy(budget, tail=0.2, fan_in=(4, 2)))
        deepest.append(max(depths(other), default=-1))
    assert deepest == sorted(deepest)
    assert (deepest[0], deepest[1]) == (-1, 0)
    assert deepest[-1] >= 1


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


# Windows


@each("simple", [LastN(100), TokenBudget(10_000), FreshTail(10_000)])
def test_the_simple_policies_show_messages_only(simple: Policy) -> None:
    chat = fresh()
    tell(chat, 40)
    before = chat.window(policy=simple)
    chat.compact(full=True, policy=policy())
    assert chat.window(policy=simple) == before
    assert (before.summaries, len(before.messages)) == ((), 40)


def test_when_it_does_not_fit_the_oldest_summaries_are_left_out_first_and_named(chat: Chat) -> None:
    tell(chat, 40)
    chat.compact(full=True, llm=Scribe(), policy=policy(1_500))
    everything = chat.window(10_000)
    assert len(everything.summaries) > 4
    spans = [*ranges(everything.summaries), *((one.seq, one.seq) for one in everything.messages)]
    assert [n for first, last in spans for n in range(first, last + 1)] == list(range(1, 41))
    for budget in range(60, everything.tokens + 50, 35):
        window = chat.window(budget)
        left = len(everything.summaries) - len(window.summaries)
        named = [one for one in window.omitted if one.why.startswith("summarised in")]
        assert [(one.first, one.last, one.messages, one.tokens) for one in named] == [
            (one.first, one.last, one.messages, one.source_tokens) for one in everything.summaries[:left]
        ]
        assert all(one.id in told.why for one, told in zip(everything.summaries, named, strict=False))
        check_window(window, Lossless(budget), chat.history(), everything.summaries)
    assert window == Window(everything.messages, everything.summaries, window.tokens, budget, ())
    assert chat.window(policy=Lossless(0, Compaction(turns=0))).tokens == 0
    chat.append(Message("user", words(41, 900), at=minute(41)))
    window = chat.window(300)
    assert (seqs(window.messages), window.over_budget, window.summaries) == ([41], True, ())


def test_after_summaries_nothing_is_left_out_for_a_turn_that_began_long_ago(chat: Chat) -> None:
    chat.append([Message("user" if n == 1 else "assistant", words(n, 50)) for n in range(1, 60)])
    assert not chat.compact(budget=1_000).noop
    window = chat.window(1_000)
    assert window.summaries
    assert window.messages[0].role == "assistant"
    assert not window.omitted


@pytest.mark.slow
def test_of_a_session_that_is_compacted_for_its_room_all_is_shown_or_named_as_left_out(chat: Chat) -> None:
    system = "Be careful. " * 500
    room = 8_000
    for turn in range(80):
        chat.append(role="user", content=f"Turn {turn}: " + "what about the invoices of that week " * 8)
        chat.append(role="assistant", content=f"Answer {turn}: " + "the invoices are in the archive " * 20)
        if chat.needs_compaction(room):
            chat.compact(budget=room)
        prompt = chat.prompt(8_000, query=f"invoices of turn {turn}", system=system)
        room = prompt.tokens["room"]
        assert turn < 40 or chat.prompt(8_000, system=system).window.omitted == ()
        window = prompt.window
        told = [*seqs(window.messages)]
        for first, last in [*ranges(window.summaries), *((one.first, one.last) for one in window.omitted)]:
            told += range(first, last + 1)
        assert sorted(told) == list(range(1, 2 * turn + 3))
        assert turn < 40 or prompt.hits


def test_the_default_policy_is_lossless(chat: Chat) -> None:
    tell(chat, 200)
    chat.compact(full=True)
    assert chat.window() == chat.window(policy=Lossless(8_000))
    assert chat.window().summaries
    (times,) = {(one.since, one.until) for one in leaves(chat)[:1]}
    assert times == (minute(1), minute(leaves(chat)[0].last))
    assert times[0] > START


# Policies by their names, and what is refused


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


def test_without_a_name_all_messages_are_shown_and_nothing_is_summarised(chat: Chat) -> None:
    tell(chat, 300)
    for showing_all in (make_policy(None), make_policy(), make_policy("none")):
        assert len(chat.window(policy=showing_all).messages) == 300
        wrong: Any = showing_all
        for way in WAYS:
            with pytest.raises(
                InvalidInput, match=r"does not say how to compact.*Use Lossless or SummaryBuf"
            ):
                compact(way, chat, None, policy=wrong)
        with pytest.raises(InvalidInput, match="does not say how to compact"):
            chat.needs_compaction(policy=wrong)
    assert chat.tree() == []


NO_SHARES: list[object] = [0, -0.1, 1.01, 75, float("nan"), float("inf"), True, "0.75", None]
NO_COUNTS: list[object] = [-1, 1.5, "10", None]
by_name: Callable[..., Policy] = make_policy
NAMES = "Use one of none, last_n, token_budget, fresh_tail, summary_buffer, lossless"
WRONG: list[tuple[Callable[..., object], dict[str, Any], str]] = [
    *((by_name, {"name": name}, NAMES) for name in ("", "buffer_window", "Lossless", "summary", "nil", 5)),
    *(
        (by_name, {"name": name, option: value}, "")
        for name, option, value in [
            ("none", "n", 5),
            ("last_n", "budget", 5),
            ("last_n", "n", -1),
            ("token_budget", "n", 5),
            ("summary_buffer", "leaf_source", 5),
            ("summary_buffer", "threshold", 0),
            ("summary_buffer", "target", 1.2),
            ("summary_buffer", "budget", 0.5),
            ("lossless", "threshold", 0.5),
            ("lossless", "budget", -1),
        ]
    ),
    *(
        (SummaryBuffer, {share: value}, "fraction")
        for share in ("threshold", "target")
        for value in NO_SHARES
    ),
    *(
        (Compaction, {share: value}, "fraction")
        for share in ("threshold", "target", "tail")
        for value in NO_SHARES
    ),
    *((SummaryBuffer, {name: value}, "") for name in ("budget", "keep") for value in NO_COUNTS),
    *((Lossless, {"budget": value}, "") for value in NO_COUNTS),
    *(
        (Compaction, {name: -1}, "")
        for name in ("seconds", "patience", "spend", "turns", "calls", "passes", "previous")
    ),
    *(
        (Compaction, {name: 0}, "Pass 1 or more")
        for name in ("leaf_source", "leaf_target", "condensed_target")
    ),
    *((Compaction, {"fan_in": value}, "") for value in [(1, 4), (8, 1), (8,), 8]),
    (Compaction, {"target": 0.9}, "Lower the target"),
    (SummaryBuffer, {"threshold": 0.5}, "Lower the target"),
    (Compaction, {"seconds": float("nan")}, ""),
    (Compaction, {"patience": "long"}, ""),
    (Compaction, {"calls": 1.5}, ""),
    (Compaction, {"pressed": 1}, ""),
    (Lossless, {"compaction": 5}, "compaction"),
]


@each(("make", "options", "what"), WRONG)
def test_a_wrong_policy_is_refused(
    make: Callable[..., object], options: dict[str, object], what: str
) -> None:
    with pytest.raises(InvalidInput, match=what or None):
        make(**options)


@each("way", WAYS)
@each(
    ("options", "what"),
    [
        *(({"full": value}, "`full`") for value in ("", "full", 1, None)),
        *(({"llm": value}, "") for value in (5, "nope:model", "gpt-5-mini", lambda: "x", object())),
        ({"progress": 5}, "progress"),
        ({"policy": LastN()}, "Use Lossless or SummaryBuffer"),
        ({"prompts": {"observe": "v1"}}, r"Unknown prompt 'observe'. Use one of leaf, condensed, arc."),
        ({"prompts": {"leaf": "v99"}}, "has no version 'v99'"),
        ({"prompts": {"leaf": "no/such.md"}}, "has no version 'no/such.md'"),
        ({"prompts": {"leaf": 7}}, "Invalid prompt version 7"),
        ({"prompts": "leaf=v1"}, "Pass a dict of versions by name: leaf, condensed, arc."),
        ({"prompts": []}, "Pass a dict of versions by name: leaf, condensed, arc."),
    ],
)
def test_a_wrong_argument_is_refused_before_anything(way: str, options: dict[str, Any], what: str) -> None:
    chat = fresh()
    tell(chat, 40)
    for llm in (None, Scribe(), AsyncScribe()):
        with pytest.raises(InvalidInput, match=what or None):
            compact(way, chat, options.get("llm", llm), **{k: v for k, v in options.items() if k != "llm"})
    for threshold in NO_SHARES[:-1]:
        wrong: Any = threshold
        with pytest.raises(InvalidInput, match="fraction"):
            chat.needs_compaction(threshold=wrong)
    assert chat.tree() == []
