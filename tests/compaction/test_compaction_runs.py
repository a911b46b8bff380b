"""What happens while a compaction runs, its account, tool use, and the prompts between two compactions."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import compaction_chats
import pytest
from compaction_chats import (
    Scribe,
    check_tree,
    in_turn,
    leaves,
    minute,
    policy,
    ranges,
    tell,
    words,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handles import memory_of
from holdfast import CompactionResult, Memory, Message, ToolCall
from holdfast.chat import Chat
from soak import cases

chat = compaction_chats.chat


# What happens meanwhile


@pytest.mark.slow
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

    result = chat.compact(full=True, llm=llm, policy=policy())
    assert seen == list(range(40, 40 + result.calls))
    assert result.leaves > 1
    assert len(chat.history()) == 40 + result.calls
    assert chat.window().messages[-1].content == f"Meanwhile {result.calls}."
    check_tree(chat)
    assert memory.verify().ok


@pytest.mark.slow
def test_another_memory_may_write_to_the_same_database_meanwhile(reopen: Callable[[], Memory]) -> None:
    one, other = reopen(), reopen()
    tell(one.chat("c"), 40)

    def llm(prompt: str) -> str:
        other.chat("c").append(role="user", content="From elsewhere.")
        return "Cranes lifted boxes."

    result = one.chat("c").compact(full=True, llm=llm, policy=policy())
    assert result.calls > 1
    assert other.chat("c").tree() == one.chat("c").tree()
    check_tree(other.chat("c"))


def test_of_two_that_compact_at_once_one_says_that_the_other_was_first(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    inner: list[CompactionResult] = []

    def llm(prompt: str) -> str:
        inner.append(chat.compact(full=True, policy=policy()))
        return "Too late."

    result = chat.compact(full=True, llm=llm, policy=policy())
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
    chat.compact(full=True, llm=Scribe(), policy=policy(1_500))
    assert max(one.depth for one in chat.tree()) == 0

    def llm(prompt: str) -> str:
        if "<summaries>" in prompt:
            chat.compact(full=True, policy=policy(400, tail=0.2))
            return "Too late."
        return "Cranes."

    result = chat.compact(full=True, llm=llm, policy=policy(400, tail=0.2))
    assert result.why.startswith("The chat was changed concurrently")
    assert "Too late." not in {one.text for one in chat.tree()}
    check_tree(chat)


@pytest.mark.slow
def test_an_erasure_meanwhile_of_what_was_to_be_condensed_next_ends_it_well(chat: Chat) -> None:
    memory = memory_of(chat)
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

    result = chat.compact(full=True, llm=llm, policy=how)
    assert erased
    assert result.why


# The account


def test_an_account_is_true(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 60)
    scribe = Scribe()
    stages: list[CompactionResult] = []
    result = chat.compact(full=True, llm=scribe, policy=policy(fan_in=(3, 2)), progress=stages.append)
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
        full=True,
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
    assert chat.compact(full=True, progress=stages.append).noop
    assert stages == []


def test_progress_that_fails_leaves_a_sound_tree(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 60)

    def progress(account: CompactionResult) -> None:
        if len(account.summaries) == 2:
            raise LookupError

    with pytest.raises(LookupError):
        chat.compact(full=True, policy=policy(), progress=progress)
    assert len(chat.tree()) == 2
    check_tree(chat)


@pytest.mark.slow
def test_with_a_counter_of_your_own_all_is_counted_by_it() -> None:
    def count(text: str) -> int:
        return len(text.split())

    with Memory(":memory:", user="ada", count_tokens=count) as memory:
        chat = memory.chat("c")
        tell(chat, 40, 400)
        assert chat.stats().context_tokens == sum(4 + count(message.content) for message in chat.history())
        scribe = Scribe()
        result = chat.compact(full=True, llm=scribe, policy=policy(2_000, leaf_source=600))
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
            if chat.needs_compaction(budget):
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


@pytest.mark.slow
@settings(max_examples=cases(15, 180), suppress_health_check=list(HealthCheck))
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
        chat.compact(full=True, policy=how)
        check_tree(chat)
        assert not chat.needs_compaction(policy=how)


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
    chat.compact(full=True, policy=policy(800, leaf_source=150))
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
    chat.compact(full=True, policy=policy(300, threshold=0.3, target=0.2, turns=2))
    chat.append(Message("tool", "The answer is 4312.", call_id="slow", at=minute(34)))
    check_tree(chat)
    window = chat.window(300)
    assert "The answer is 4312." in {message.content for message in window.messages}, window.omitted


# The prompt between two compactions


@pytest.mark.slow
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
        if chat.needs_compaction(policy=how):
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
    one.compact(full=True, policy=policy(fan_in=(3, 2)))
    other = reopen().chat("c")
    assert other.window() == one.window()
    assert other.prompt(1_000).messages == one.prompt(1_000).messages
    assert other.tree() == one.tree()
    assert ranges(other.window().summaries)[0][0] == 1


def test_the_words_of_one_answer_are_not_taken_for_another(chat: Chat) -> None:
    tell(chat, 40)
    result = chat.compact(
        full=True,
        llm=Scribe(in_turn(*(f"Part {n}: cranes lift boxes." for n in range(1, 40)))),
        policy=policy(1_500),
    )
    assert [one.text for one in leaves(chat)] == [
        f"Part {n}: cranes lift boxes." for n in range(1, result.calls + 1)
    ]
