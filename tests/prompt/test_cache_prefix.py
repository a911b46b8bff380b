"""The beginning of a prompt: unchanged from turn to turn, so that providers find it in their caches."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Chat, Memory, Prompt, ToolCall
from holdfast.prompt.prompt_cache import PromptCache
from holdfast.prompt.window import FreshTail, LastN, Policy
from holdfast.types import Message, Scope
from soak import cases

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TOPICS = ("marathon", "Berlin", "harbour", "budget", "kernel", "piano")


def say(chat: Chat, turn: int, *, tools: bool) -> str:
    """Append what a turn begins with, and give its question."""
    question = f"What about the {TOPICS[turn % len(TOPICS)]} of turn {turn}?"
    chat.append(role="user", content=question, at=NOON + timedelta(minutes=turn))
    if tools:
        call = ToolCall(f"call_{turn}", "look", {"turn": turn})
        chat.append(role="assistant", calls=[call], at=NOON + timedelta(minutes=turn))
        chat.append(role="tool", content=f"result {turn}", call_id=call.id, at=NOON + timedelta(minutes=turn))
    return question


def answer(chat: Chat, turn: int) -> None:
    topic = TOPICS[turn % len(TOPICS)]
    chat.append(
        role="assistant", content=f"The {topic} is fine in turn {turn}.", at=NOON + timedelta(minutes=turn)
    )


def lasting(prompt: Prompt) -> list[str]:
    """Write all of a prompt, in a provider's order, up to what was recalled or the newest user message."""
    parts = [prompt.system, *(json.dumps(one, sort_keys=True) for one in prompt.messages)]
    places = [
        place
        for place, one in enumerate(prompt.messages, 1)
        if str(one["content"]).startswith("<recalled>") or one["role"] == "user"
    ]
    recalled = [
        place for place, one in enumerate(prompt.messages, 1) if str(one["content"]).startswith("<recalled>")
    ]
    return parts[: min([places[-1], *recalled])] if places else parts


def fill_others(memory: Memory) -> None:
    """Say things elsewhere, so that there is more to recall than fits."""
    for number, topic in enumerate(TOPICS):
        texts = [f"The {topic} was mentioned {n} times before. " + "word " * 30 for n in range(12)]
        memory.chat(f"other {number}").append([Message("user", text, at=NOON) for text in texts])
    memory.remember("Ada runs.", merge=False)
    memory.remember("the marathon is in May", "finding")


@pytest.mark.parametrize("tools", [False, True])
@pytest.mark.parametrize("queried", [False, True])
def test_nothing_before_the_newest_turn_changes(memory: Memory, *, tools: bool, queried: bool) -> None:
    fill_others(memory)
    chat = memory.chat("monday")
    before: list[str] = []
    recalled = set()
    for turn in range(12):
        question = say(chat, turn, tools=tools)
        prompt = chat.prompt(3_000, question if queried else None, system="Be brief.")
        now = [prompt.system, *(json.dumps(one, sort_keys=True) for one in prompt.messages)]
        assert now[: len(before)] == before
        before = lasting(prompt)
        assert len(before) == 1 + (4 if tools else 2) * turn
        recalled.add(prompt.hits)
        answer(chat, turn)
    assert len(recalled) == (12 if queried else 1)


def test_a_conversation_longer_than_its_share_keeps_its_start_for_many_turns(memory: Memory) -> None:
    fill_others(memory)
    chat = memory.chat("monday")
    moved = 0
    start = 0
    for turn in range(80):
        question = say(chat, turn, tools=False)
        prompt = chat.prompt(1_000, question)
        answer(chat, turn)
        moved += prompt.window.messages[0].seq != start
        start = prompt.window.messages[0].seq
    assert start > 80
    assert moved <= 14


# What a prompt says of it


def test_what_an_erased_chat_was_is_forgotten(memory: Memory) -> None:
    for _ in range(2):
        chat = memory.chat("monday")
        chat.append(role="user", content="hello", id="1")
        assert chat.prompt().tokens["unchanged"] == 0
        assert chat.prompt().tokens["unchanged"] > 0
        memory.erase(chat="monday")


PARTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=8).map(tuple)


@settings(max_examples=cases(50, 600))
@given(PARTS, PARTS, PARTS)
def test_unchanged_is_the_length_of_what_both_begin_with(
    same: tuple[tuple[int, int], ...], one: tuple[tuple[int, int], ...], other: tuple[tuple[int, int], ...]
) -> None:
    cache, key = PromptCache(""), (Scope(), "monday")
    cache.unchanged(key, same + one)
    tokens = cache.unchanged(key, same + other)
    assert tokens == cache.unchanged(key, same + one) >= sum(number for _, number in same)
    if one[:1] != other[:1] or not (one and other):
        assert tokens == sum(number for _, number in same)


def test_it_is_kept_for_the_chats_that_were_prompted_last() -> None:
    cache = PromptCache("")
    for number in range(300):
        cache.unchanged((Scope(), f"chat {number}"), ((1, 5),))
    assert [cache.unchanged((Scope(), f"chat {n}"), ((1, 5),)) for n in (299, 0)] == [5, 0]


# What is asked is not recalled


def test_a_question_that_was_appended_is_not_recalled(memory: Memory) -> None:
    memory.chat("tuesday").append(role="user", content="the marathon is in May")
    chat = memory.chat("monday")
    chat.append(role="user", content=" When is the marathon? ")
    policies: list[Policy] = [FreshTail(2_000), LastN(0)]
    for policy in policies:
        prompt = chat.prompt(2_000, "When is the marathon?", policy=policy)
        assert [one.text for one in prompt.hits] == ["the marathon is in May"]


def test_as_many_are_recalled_as_fit_or_as_are_asked_for(memory: Memory) -> None:
    for number in range(40):
        memory.chat("tuesday").append(role="user", content=f"the marathon in week {number}")
    chat = memory.chat("monday")
    chat.append(role="user", content="When is the marathon?")
    assert [len(chat.prompt(8_000, "marathon", limit=limit).hits) for limit in (0, 1, 25)] == [0, 1, 25]
    assert len(chat.prompt(8_000, "marathon").hits) == 40
    small = chat.prompt(300, "marathon")
    assert 5 <= len(small.hits) <= 9
    assert small.tokens["total"] <= 300


def test_what_compaction_wrote_is_not_recalled_beside_its_turns(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append([Message("user", f"the marathon in week {n} " + "word " * 80) for n in range(60)])
    chat.compact(full=True, budget=2_000)
    prompt = chat.prompt(2_000, "marathon in week 7")
    assert prompt.window.summaries
    assert prompt.hits
    assert {one.source for one in prompt.hits} == {"message"}
    assert str(prompt.messages[0]["content"]).startswith("<summary ")
    assert prompt.tokens["total"] <= 2_000
    chat.append(role="user", content="thanks")
    again = chat.prompt(2_000, "marathon in week 9")
    assert again.window.summaries == prompt.window.summaries
    before = [one for one in prompt.messages if not str(one["content"]).startswith("<recalled>")]
    assert list(again.messages[: len(before) - 1]) == before[:-1]
    assert again.tokens["unchanged"] >= sum(one.tokens for one in prompt.window.summaries)


def changes_of(chat: Chat, turns: int, *, budget: int, compacts_for: int | None) -> tuple[int, int]:
    """Count how often a prompt does not begin as the one before, turn by turn, and the compactions."""
    before: tuple[object, ...] = ()
    changes = compactions = 0
    for turn in range(turns):
        chat.append(role="user", content=f"Question {turn}: " + f"word{turn} " * 40, at=NOON)
        prompt = chat.prompt(budget)
        shown = (prompt.system, *prompt.messages)
        assert prompt.tokens["total"] <= budget
        changes += shown[: len(before)] != before
        before = shown
        chat.append(role="assistant", content=f"Answer {turn}: " + f"term{turn} " * 40, at=NOON)
        if compacts_for:
            compactions += not chat.compact(budget=compacts_for).noop
    return changes, compactions


@pytest.mark.parametrize("budget", [2_000, 8_000])
@pytest.mark.parametrize("room", [1.0, 0.9])
@pytest.mark.slow
def test_without_a_query_it_changes_once_per_compaction_at_most(
    memory: Memory, budget: int, room: float
) -> None:
    """Also where instructions, which the compaction did not count, take a part of the budget."""
    turns = budget // 25
    changes, compactions = changes_of(memory.chat("c"), turns, budget=int(room * budget), compacts_for=budget)
    assert 2 < changes <= compactions < turns / 3
