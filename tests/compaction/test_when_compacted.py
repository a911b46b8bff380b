"""When a chat is compacted, how far, and of what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from compaction_chats import (
    Scribe,
    buffer,
    fresh,
    lossless,
    policy,
    seqs,
    tell,
    words,
)
from tree_checks import Policy, check_tree, check_window, covered_by, frontier_of

from holdfast import Memory, Message, ToolCall, Window
from tables import each

SENTENCE = "The tulips in the garden of Ada bloom in April. "
LONG = "Cranes lifted many boxes to the piers of the harbour. " * 3


# When


@each(("budget", "threshold"), [(1_000, 0.75), (300, 1.0), (10_000, 0.57), (100_000, 0.29)])
def test_a_chat_needs_compaction_strictly_above_the_threshold(budget: int, threshold: float) -> None:
    chat, limit = fresh(), round(budget * threshold)
    tell(chat, 1, limit - 30)
    tell(chat, 1, 30, first=2)
    how = policy(budget, threshold=threshold, target=threshold / 2, leaf_source=10**6, turns=0, keep=0)
    assert not chat.needs_compaction(policy=how)
    assert chat.compact(policy=how).why == (
        f"No compaction is needed: {limit:,} tokens, and the threshold is {limit:,} of {budget:,}."
    )
    tell(chat, 1, 10, first=3)
    assert chat.needs_compaction(policy=how) is True
    # One that is passed takes the place of that of the policy.
    assert not chat.needs_compaction(threshold=min(1.0, threshold + 0.2), policy=how) or threshold == 1.0


@each(
    ("messages", "size", "wanted", "why"),
    [
        (0, 50, {"policy": policy()}, "The chat has no messages."),
        (5, 50, {"policy": policy()}, "It is below the target already: 250 tokens, and the target is 600."),
        (12, 50, {"full": False, "policy": policy()}, "No compaction is needed: 600 tokens, and the thres"),
        (5, 12, {"budget": 10}, "Nothing more can be compacted: the 60 tokens that are left are the newest"),
        (40, 50, {"policy": policy(passes=0)}, "It made 0 passes over the chat."),
        (40, 50, {"policy": policy(seconds=0)}, "The time limit of 0 seconds is reached."),
        (40, 50, {"policy": policy(calls=0)}, "The limit of 0 calls of the model is reached."),
        (40, 50, {"policy": policy(spend=0)}, "The limit of 0 tokens for the model allows no further"),
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


def test_an_incremental_compaction_makes_one_pass() -> None:
    trees = []
    for full, passes in ((True, 1), (False, 12)):
        chat = fresh()
        tell(chat, 100)
        done = chat.compact(full=full, policy=policy(200, fan_in=(2, 2), passes=passes))
        trees.append([(one.depth, one.first, one.last) for one in chat.tree()])
    assert trees[0] == trees[1] != []
    assert done.why.startswith("An incremental compaction makes one pass over the chat.")


# A chat that grows


@pytest.mark.slow
@each(
    ("how", "llm"),
    [(policy(600, fan_in=(3, 2)), None), (buffer(keep=5), Scribe(LONG)), (lossless(1_000), Scribe("Boxes."))],
)
def test_between_compactions_every_window_is_the_beginning_of_the_next(
    how: Policy, llm: Scribe | None
) -> None:
    """Whenever it is compacted, it fits, begins with a message of the user, and leaves nothing out."""
    chat = fresh()
    before, fill = Window((), (), 0, 0, ()), set[int]()
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
    assert len(fill & {*range(int(100 * how.compaction.target), int(100 * how.compaction.threshold))}) >= 3
    check_tree(chat)


def test_with_a_strict_counter_nothing_is_asked_for_that_cannot_be_used() -> None:
    """A tokenizer counts ids and dates as many tokens."""

    def strict(text: str) -> int:
        return sum(2 if word.isalpha() else 6 for word in text.replace("-", " - ").split())

    with Memory(":memory:", user="ada", count_tokens=strict) as memory:
        chat, scribe = memory.chat("c"), Scribe()
        for n in range(1, 80):
            tell(chat, 1, 60, first=n)
            if chat.needs_compaction(500):
                asked = len(scribe.prompts)
                result = chat.compact(budget=500, llm=scribe)
                assert result.calls == len(scribe.prompts) - asked
                assert bool(result.summaries) or not result.calls, result.why
        check_tree(chat)


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
SMALL_LEAVES = lossless(1_000, leaf_source=400, leaf_target=60)
STUCK: list[tuple[list[Message], Policy, Any]] = [
    *((huge(n), how, None) for n in (1, 5) for how in (lossless(8_000), buffer(8_000))),
    *((lost_call(n), how, None) for n in (10, 1_000) for how in (lossless(2_000), buffer(2_000))),
    ([*UNEVEN, *(Message("user", f"{n}: {SENTENCE}") for n in range(20))], SMALL_LEAVES, None),
    ([Message("user", REPORT), *(Message("user", words(n, 200)) for n in range(8))], lossless(8_000), None),
    # Answers that are hardly shorter than their source, or with the frame around them not shorter at all.
    *(([Message("user", words(n, 50)) for n in range(13)], policy(600, leaf_source=500, turns=0), size)
      for size in (499, 460)),
    ([Message("user", words(n, 50)) for n in range(125)], lossless(8_000), "all but 20"),
]  # fmt: skip


@pytest.mark.slow
@each(("said", "how", "answer"), STUCK)
def test_nothing_blocks_a_compaction(said: list[Message], how: Policy, answer: Any) -> None:
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
@each("how", [lossless(800, keep=0), buffer(800)])
def test_a_call_that_waits_for_its_result_stays_with_the_newest_messages(how: Policy, after: int) -> None:
    chat = fresh()
    tell(chat, 100)
    call = chat.append(Message("assistant", "I look.", calls=(ToolCall("call", "look"),)))
    tell(chat, after, 40, first=102) if after else None
    assert chat.compact(full=True, policy=how).leaves > 0
    assert covered_by(chat) < call.seq
    chat.append(Message("tool", "found", call_id="call"))
    assert call in chat.window(policy=replace(how, budget=100_000)).messages


# Leaves, and summaries of them


@each(
    ("before", "how", "kept"),
    [
        (32, policy(300, turns=0, keep=0, threshold=0.2, target=0.1), []),
        (31, policy(500, turns=1, tail=0.8, target=0.1, threshold=0.2), [31]),
        (31, policy(500, turns=3, tail=0.8, target=0.1, threshold=0.2), range(27, 32)),
        (31, policy(500, turns=9, tail=0.32, target=0.1, threshold=0.2), [29, 30, 31]),
        (30, policy(500, turns=0, keep=3, target=0.1, threshold=0.2), [27, 28, 29, 30]),
    ],
)
def test_the_tail_is_never_summarised_and_what_is_before_it_is(before: int, how: Policy, kept: Any) -> None:
    chat = fresh()
    tell(chat, before)
    chat.compact(full=True, policy=how)
    assert seqs(chat.history(after=covered_by(chat))) == list(kept)


@each(
    ("messages", "how", "answer", "nodes"),
    [
        (27, policy(1_000, leaf_source=300), LONG, False),  # fewer than the fan-in, under the target
        (40, policy(2_000, fan_in=(20, 20)), None, False),  # fewer, while messages can be summarised
        (22, policy(1_000), "Cranes lifted boxes to piers.", False),
        (22, policy(300, tail=0.2), "Cranes lifted boxes to piers.", True),  # fewer, under pressure
    ],
)
def test_summaries_are_condensed_where_there_is_need(
    messages: int, how: Policy, answer: Any, nodes: bool
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
