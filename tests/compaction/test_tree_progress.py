"""Compaction comes to an end, never blocks itself, and says what is true about what it did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tree_logs import (
    BUFFERS,
    EVENTS,
    LIMITS,
    LOSSLESS,
    MODELS,
    Event,
    Policy,
    check_tree,
    check_words,
    covered_by,
    frontier_of,
    say,
    steps_of,
)

from handles import memory_of
from holdfast import InvalidInput, Memory, Message, ToolCall
from holdfast.chat import Chat
from holdfast.compaction.driver import advance
from holdfast.prompt.window import Compaction, LastN, Lossless, SummaryBuffer
from holdfast.types import CompactionResult, Role

SENTENCE = "The tulips in the garden of Ada bloom in April. "


def talk(chat: Chat, turns: int, text: str = SENTENCE) -> list[Message]:
    roles: list[Role] = ["user", "assistant"]
    return chat.append([Message(roles[n % 2], f"{n}: {text}") for n in range(turns)])


@pytest.fixture
def chat() -> Chat:
    return Memory(":memory:", user="ada").chat("monday")


# It is never stuck before what it could summarise


@pytest.mark.parametrize("before", [1, 2, 5])
@pytest.mark.parametrize("policy", [Lossless(8_000), SummaryBuffer(8_000), Lossless(2_000)])
def test_a_message_larger_than_a_leaf_does_not_block_what_follows_it(
    chat: Chat, before: int, policy: Policy
) -> None:
    """A short question and then a whole file: the question is too short for a leaf of its own."""
    chat.append([Message("user", "Please read this file.")] * before)
    chat.append(Message("user", "word " * 20_000))
    talk(chat, 120, SENTENCE * 4)
    result = chat.compact(full=True, policy=policy)
    assert not result.noop
    assert result.tokens_after < result.tokens_before / 2
    assert not chat.window(policy=policy).over_budget


def test_small_messages_between_larger_ones_do_not_block_it(chat: Chat) -> None:
    for _ in range(6):
        chat.append([Message("user", "Read this."), Message("assistant", SENTENCE * 40)])
    talk(chat, 20)
    policy = Lossless(1_000, Compaction(leaf_source=400, leaf_target=60))
    result = chat.compact(full=True, policy=policy)
    assert result.tokens_after < 1_000, result.why


@pytest.mark.parametrize("every", [10, 100, 1_000])
@pytest.mark.parametrize("policy", [Lossless(2_000), SummaryBuffer(2_000)], ids=["tree", "single"])
def test_a_call_that_never_gets_its_result_does_not_block_what_follows_it(
    chat: Chat, policy: Policy, every: int
) -> None:
    """An agent at work: a tool was cancelled once; hundreds of calls later the request is the same."""
    chat.append([Message("user", "Go."), Message("assistant", "", calls=(ToolCall("lost", "look"),))])
    for n in range(300):
        if n % every == every - 1:
            chat.append(role="user", content="Go on.")
        call = ToolCall(f"call_{n}", "look")
        chat.append([Message("assistant", "", calls=(call,)), Message("tool", SENTENCE * 3, call_id=call.id)])
    result = chat.compact(full=True, policy=policy)
    assert result.tokens_after < policy.budget, result.why
    assert chat.window(policy=policy).omitted == ()


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize(
    "policy",
    [Lossless(800, Compaction(keep=0)), Lossless(800), SummaryBuffer(800, keep=0), SummaryBuffer(800)],
)
def test_a_call_that_waits_for_its_result_stays_with_the_newest_messages(
    chat: Chat, policy: Policy, after: int
) -> None:
    talk(chat, 100)
    call = chat.append(Message("assistant", "I look.", calls=(ToolCall("call", "look"),)))
    talk(chat, after, SENTENCE * 3)
    result = chat.compact(full=True, policy=policy)
    assert result.leaves > 0
    assert covered_by(chat) < call.seq
    chat.append(Message("tool", "found", call_id="call"))
    assert call in chat.window(100_000, policy=replace(policy, budget=100_000)).messages


@pytest.mark.parametrize("keep", [0, 1])
def test_the_newest_turns_stay_also_when_a_call_before_them_waits_for_its_result(
    chat: Chat, keep: int
) -> None:
    talk(chat, 100)
    chat.append(Message("assistant", "I look.", calls=(ToolCall("call", "look"),)))
    chat.append(role="user", content=SENTENCE * 100)
    newest = talk(chat, 4)
    chat.compact(full=True, policy=Lossless(800, Compaction(keep=keep)))
    assert covered_by(chat) < newest[0].seq


@given(EVENTS, LOSSLESS, st.sampled_from(sorted(MODELS)))
@pytest.mark.slow
def test_needs_compaction_is_false_when_no_more_could_be_done(
    events: list[Event], policy: Lossless, model: str
) -> None:
    with Memory(":memory:", user="ada") as memory:
        chat = memory.chat("monday")
        chat.append(say(events))
        result = chat.compact(full=True, policy=policy, llm=MODELS[model])
        if not result.why.startswith(LIMITS):
            assert not chat.needs_compaction(policy=policy), result.why


@pytest.mark.slow
@pytest.mark.parametrize("model", ["none", "longer than asked for", "markup", "longer than the source"])
@pytest.mark.parametrize(
    "text", ["The tulips bloom in the garden of Ada. ", "a << b && c >> d; x <- y. ", "<< && >> " * 4]
)
@pytest.mark.parametrize("budget", [100, 300])
def test_a_summary_that_would_cost_more_than_its_source_does_not_make_it_try_for_ever(
    chat: Chat, model: str, text: str, budget: int
) -> None:
    """What is around a summary, and what escaping adds, counts as well."""
    for _ in range(20):
        talk(chat, 2, text)
        chat.compact(full=True, budget=budget, llm=MODELS[model])
        assert not chat.needs_compaction(budget)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["none", "longer than asked for", "markup", "longer than the source"])
@pytest.mark.parametrize(
    "text", ["The tulips bloom in the garden of Ada. ", "a << b && c >> d; x <- y. ", "<< && >> " * 4]
)
@pytest.mark.parametrize("budget", [100, 300])
def test_a_cumulative_summary_never_makes_a_session_larger(
    chat: Chat, model: str, text: str, budget: int
) -> None:
    for _ in range(20):
        talk(chat, 2, text)
        result = chat.compact(full=True, policy=SummaryBuffer(budget), llm=MODELS[model])
        assert result.tokens_after <= result.tokens_before


def test_needs_compaction_with_a_threshold_below_the_target_is_false_after_a_compaction(chat: Chat) -> None:
    talk(chat, 200)
    assert chat.needs_compaction(2_000, 0.3)
    result = chat.compact(full=True, budget=2_000)
    assert "below the target" in result.why
    assert not chat.needs_compaction(2_000, 0.3), "the same compaction would do nothing"


# What happens while the model thinks


def test_an_erasure_between_two_summaries_of_summaries_ends_it_as_any_other_change(chat: Chat) -> None:
    policy = Lossless(300, Compaction(leaf_source=200, fan_in=(2, 2), turns=0, tail=0.01, calls=1_000))
    chat.append([Message("user", f"word{n:03} " * 20) for n in range(60)])
    running = steps_of(chat, "full", policy)
    batch = advance(running.__next__)
    erased = False
    while isinstance(batch, list):
        leaves = [one for one in chat.tree() if not one.depth]
        if not erased and chat.stats().messages - chat.stats().summarised <= 3:
            erased = True
            memory_of(chat).erase(chat="monday", messages=leaves[4].first)
        batch = advance(running.send, ["A short note."] * len(batch))
    assert erased
    assert isinstance(batch, CompactionResult)
    check_tree(memory_of(chat), chat, chat.history())


def again(memory: Memory, messages: list[Message]) -> None:
    memory.erase(chat="monday")
    memory.chat("monday").append(messages)


def test_what_was_written_of_an_erased_chat_is_not_stored_in_the_next_one_of_that_name(
    memory: Memory,
) -> None:
    """The same count of messages, of tokens and the same times: only the words are others."""
    old = [Message("user", f"secret{n:03} " * 20) for n in range(60)]
    new = [Message("user", f"public{n:03} " * 20) for n in range(60)]
    at = memory.chat("monday").append(old)[0].at
    chat = memory.chat("monday")
    done: list[bool] = []

    def answer(prompt: str) -> str:
        if not done:
            done.append(True)
            again(memory, [Message(one.role, one.content, at=at) for one in new])
        return "They spoke of " + ("secret001." if "secret001" in prompt else "something public.")

    result = chat.compact(full=True, budget=1_000, llm=answer)
    assert "secret" not in " ".join(one.text for one in chat.tree())
    assert result.noop
    assert "changed concurrently" in result.why


def test_a_summary_that_was_shown_erased_words_is_not_stored(memory: Memory) -> None:
    """A model is shown the summaries before. One goes; another comes that ends at the same message."""
    chat = memory.chat("monday")
    policy = Lossless(1_000, Compaction(leaf_source=300, turns=1, fan_in=(50, 50)))
    chat.append(Message("user", "I am secret001."))
    chat.append([Message("user", f"word{n:03} " * 42) for n in range(60)])
    asked: list[str] = []
    edges: list[int] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        if len(asked) == 2:
            assert "secret001" in prompt, "the summary before it is shown"
            edges.append(covered_by(chat))
            memory.erase(chat="monday", messages=1)
            other = steps_of(chat, "full", policy)
            batch = advance(other.__next__)
            assert isinstance(batch, list)
            advance(other.send, ["Nothing of note."] * len(batch))
            other.close()
            edges.append(covered_by(chat))
        return "Ada is secret001."

    chat.compact(full=True, policy=policy, llm=answer)
    assert edges[0] == edges[1], "the test is of no use otherwise"
    assert "secret001" not in " ".join(one.text for one in chat.tree())
    assert "secret001" not in " ".join(asked[2:])


@pytest.mark.parametrize("at", [1, 2, 3])
def test_the_progress_may_append_and_compact_and_erase(memory: Memory, at: int) -> None:
    chat = memory.chat("monday")
    talk(chat, 100)
    seen: list[CompactionResult] = []
    policy = Lossless(300, Compaction(leaf_source=200, fan_in=(2, 2), tail=0.1))

    def progress(so_far: CompactionResult) -> None:
        seen.append(so_far)
        if len(seen) == at:
            talk(chat, 10)
            chat.compact(full=True, policy=policy)
            memory.erase(chat="monday", messages=5)

    chat.compact(full=True, policy=policy, progress=progress)
    assert [len(one.summaries) for one in seen] == list(range(1, len(seen) + 1))
    check_tree(memory, chat, chat.history())
    check_words(chat, chat.history())


# What it says


def test_an_unknown_session_is_not_compacted(chat: Chat) -> None:
    result = chat.compact(full=True, budget=0)
    assert (result.noop, result.why) == (True, "The chat has no messages.")
    assert not chat.needs_compaction(0)


def test_below_the_threshold_nothing_is_done_and_said_why(memory: Memory) -> None:
    chat = memory.chat("monday")
    talk(chat, 20)
    tokens = chat.stats().context_tokens
    asked: list[str] = []
    budget = tokens * 4 // 3 + 2

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return ""

    result = chat.compact(budget=budget, llm=answer)
    assert (result.noop, result.calls, asked, chat.tree()) == (True, 0, [], [])
    assert "No compaction is needed" in result.why
    assert f"{tokens:,} tokens" in result.why
    assert not chat.needs_compaction(budget)


def test_a_policy_that_does_not_say_how_is_refused_also_when_awaited(chat: Chat) -> None:
    async def answer(prompt: str) -> str:
        return "A garden."

    wrong: Policy = LastN()  # type: ignore[assignment]  # what a caller without a type checker may pass
    with pytest.raises(InvalidInput, match="does not say how to compact"):
        chat.compact(policy=wrong)
    with pytest.raises(InvalidInput, match="does not say how to compact"):
        asyncio.run(memory_of(chat).aio.chat("monday").compact(llm=answer, policy=wrong))


@pytest.mark.parametrize("calls", [0, 1, 3])
def test_the_limit_of_calls_is_never_exceeded(memory: Memory, calls: int) -> None:
    chat = memory.chat("monday")
    talk(chat, 200)
    policy = Lossless(500, Compaction(leaf_source=200, fan_in=(2, 2), calls=calls))
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return prompt * 2

    result = chat.compact(full=True, policy=policy, llm=answer)
    assert result.calls == len(asked) <= calls
    check_tree(memory, chat, chat.history())


@pytest.mark.parametrize("fails_at", [1, 4])
def test_a_model_that_fails_leaves_what_was_stored(memory: Memory, fails_at: int) -> None:
    chat = memory.chat("monday")
    talk(chat, 200)
    policy = Lossless(500, Compaction(leaf_source=200, fan_in=(2, 2)))
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        if len(asked) == fails_at:
            raise OSError("no network")
        return "A garden."

    with pytest.raises(Exception, match="failed") as caught:
        chat.compact(full=True, policy=policy, llm=answer)
    assert type(caught.value).__name__ == "ModelFailed"
    assert len(chat.tree()) == fails_at - 1
    check_tree(memory, chat, chat.history())
    assert not chat.compact(full=True, policy=policy).noop
    check_tree(memory, chat, chat.history())


# One summary that grows


@pytest.mark.slow
@given(
    st.lists(EVENTS, min_size=1, max_size=5), BUFFERS, st.sampled_from(sorted(MODELS)), st.none() | LOSSLESS
)
def test_a_cumulative_summary_is_one_and_always_shown(
    parts: list[list[Event]], policy: SummaryBuffer, model: str, before: Lossless | None
) -> None:
    with Memory(":memory:", user="ada") as memory:
        chat = memory.chat("monday")
        said = 0
        if before:
            chat.append(say([event for part in parts for event in part], 5_000))
            chat.compact(full=True, policy=before)
        grown = ""
        for events in parts:
            chat.append(say(events, said))
            said += len(events)
            history = chat.history()
            result = chat.compact(full=True, policy=policy, llm=MODELS[model])
            frontier = frontier_of(chat.tree())
            if not result.why.startswith(LIMITS):
                assert len(frontier) <= 1
            if grown and frontier and len(frontier) == 1 and not before:
                assert frontier[0].id == grown
            grown = frontier[0].id if frontier and frontier[0].depth else grown
            if covered_by(chat) and not result.noop and result.leaves and not before:
                kept = policy.compaction.keep
                assert all(message.seq > covered_by(chat) for message in history[len(history) - kept :])
            for budget in (0, policy.budget // 2, policy.budget):
                window = chat.window(
                    policy=SummaryBuffer(budget, policy.threshold, policy.target, policy.keep)
                )
                assert window.summaries == tuple(frontier)


def test_a_cumulative_summary_is_pinned_at_every_fill_level(memory: Memory) -> None:
    chat = memory.chat("monday")
    policy = SummaryBuffer(1_000)
    levels = set()
    identities = []
    for n in range(150):
        chat.append(role="user" if n % 2 == 0 else "assistant", content=f"{n}: {SENTENCE}")
        if chat.needs_compaction(policy=policy):
            chat.compact(policy=policy)
            assert not chat.needs_compaction(policy=policy)
        frontier = frontier_of(chat.tree())
        assert len(frontier) <= 1
        window = chat.window(policy=policy)
        assert window.summaries == tuple(frontier)
        assert not window.over_budget
        assert window.omitted == ()
        if frontier:
            levels.add(window.tokens // 50)
            identities += [frontier[0].id] if frontier[0].depth else []
            assert len(window.messages) >= policy.compaction.keep
    assert levels >= set(range(13, 17)), "from the target to the threshold"
    assert len(set(identities)) == 1, "its id stays the same while it grows"
    check_words(chat, chat.history())


def asking(answer: str) -> Callable[[str], str]:
    return lambda prompt: answer


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["A garden.", "", "x" * 100_000])
def test_levels_say_how_a_summary_came_about(chat: Chat, answer: str) -> None:
    talk(chat, 400)
    result = chat.compact(full=True, budget=2_000, llm=asking(answer))
    wanted = {"A garden.": "normal", "": "deterministic"}.get(answer, "deterministic")
    assert {one.level for one in result.summaries} == {wanted}
    assert all(bool(one.model) == bool(result.calls) for one in result.summaries)
