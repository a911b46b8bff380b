"""Prompts of turns with results that do not fit: the request stays, and older messages fill the budget."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Chat, Memory, Message, Prompt, ToolCall
from holdfast.prompt.window import TokenBudget
from soak import cases

Turn = tuple[
    int, list[list[int]], int
]  # the tokens of a request, of the results of each step, and of an answer

CALLS = count()
SHORT: Turn = (20, [], 60)


def words(tokens: int) -> str:
    return " ".join(f"word{n % 97}" for n in range(tokens * 2 // 3 + 1))


def step(chat: Chat, results: list[int], argument: int = 0, said: str = "") -> None:
    """Append parallel calls and their results, with what a user says before the last of them."""
    calls = tuple(
        ToolCall(f"c{next(CALLS)}", "read", {"path": "a.log", "text": words(argument)}) for _ in results
    )
    answers = [
        Message("tool", words(tokens), call_id=call.id) for tokens, call in zip(results, calls, strict=True)
    ]
    between = [Message("user", said)] if said else []
    chat.append([Message("assistant", calls=calls), *answers[:-1], *between, answers[-1]])


def say(chat: Chat, *turns: Turn) -> None:
    for request, steps, answer in turns:
        chat.append(role="user", content=f"Why? {words(request)}")
        for results in steps:
            step(chat, results)
        if answer:
            chat.append(role="assistant", content=words(answer))


def assert_sound(chat: Chat, prompt: Prompt, budget: int) -> None:
    """Check that the request is there, the user begins, each result follows its call, and all of it fits."""
    request = next(one for one in reversed(chat.history()) if one.role == "user")
    assert request.seq in [one.seq for one in prompt.window.messages]
    assert prompt.messages[0]["role"] == "user"
    assert prompt.tokens["total"] <= max(budget, request.tokens)
    waiting: list[str] = []
    for one in prompt.messages:
        if one["role"] == "tool":
            waiting.remove(one["tool_call_id"])
        else:
            assert not waiting
            waiting = [call["id"] for call in one.get("tool_calls", ())]
    assert not waiting
    window = prompt.window
    told = (
        window.tokens + sum(one.tokens for one in window.omitted) + sum(one.saved for one in window.shortened)
    )
    assert told == chat.stats().stored_tokens


SIZES = st.sampled_from([1, 20, 150, 900, 2_500, 9_000])
STEPS = st.lists(st.lists(SIZES, min_size=1, max_size=4), max_size=4)
TURNS = st.lists(st.tuples(SIZES, STEPS, SIZES), max_size=5)


@pytest.mark.slow
@settings(max_examples=cases(20, 400), deadline=None)
@given(TURNS, SIZES, STEPS, SIZES, st.booleans(), st.sampled_from([300, 1_000, 2_000, 4_000, 8_000]))
def test_whatever_the_sizes_the_request_is_there_and_all_of_it_fits(
    turns: list[Turn], request_: int, steps: list[list[int]], argument: int, said: bool, budget: int
) -> None:
    with Memory(":memory:", user="ada") as memory:
        chat = memory.chat("monday")
        say(chat, *[SHORT] * 3, *turns, (request_, steps, 0))
        for _ in range(2):
            for query in (None, "word7 word9"):
                assert_sound(chat, chat.prompt(budget, query), budget)
            step(chat, [20, request_], argument, "And that?" if said else "")
            for query in (None, "word7 word9"):
                assert_sound(chat, chat.prompt(budget, query), budget)
            chat.append(role="assistant", content=words(argument))


@pytest.mark.parametrize("results", [[10_000], [1_700, 1_700, 1_700], [400] * 12])
@pytest.mark.parametrize("said", ["", "And the other nodes?"])
@pytest.mark.parametrize("query", [None, "word7"])
def test_a_step_that_does_not_fit_is_cut_to_its_beginnings_and_ends(
    quick: Memory, results: list[int], said: str, query: str | None
) -> None:
    chat = quick.chat("monday")
    say(chat, *[SHORT] * 60, (20, [[50]], 0))
    step(chat, results, said=said)
    for budget in (2_000, 4_000):
        prompt = chat.prompt(budget, query)
        assert_sound(chat, prompt, budget)
        shown = prompt.window.messages
        assert [one.seq for one in shown][-len(results) - 4 - bool(said) :][0] == 121
        assert shown[-1].content.startswith("word0")
        assert shown[-1].content.endswith(chat.history(1)[0].content[-5:])
        assert f"tokens is not shown; it is message monday#{shown[-1].seq}" in shown[-1].content
        assert prompt.tokens["total"] > 0.8 * budget


def test_a_call_that_does_not_fit_is_cut_in_its_arguments(quick: Memory) -> None:
    chat = quick.chat("monday")
    say(chat, *[SHORT] * 10, (20, [], 0))
    step(chat, [5], argument=12_000)
    prompt = chat.prompt(4_000)
    assert_sound(chat, prompt, 4_000)
    assert len(prompt.window.messages) == 23
    (call,) = prompt.window.messages[-2].calls
    assert dict(call.arguments)["path"] == "a.log"  # type: ignore[arg-type]  # a mapping, as it was
    assert "tokens is not shown" in str(call.arguments)


def test_a_result_that_fits_beside_the_request_stays_whole(quick: Memory) -> None:
    chat = quick.chat("monday")
    say(chat, *[SHORT] * 10, (20, [[3_000]], 0))
    for query in (None, "word7"):
        prompt = chat.prompt(4_000, query)
        assert prompt.window.shortened == ()
        assert [one.seq for one in prompt.window.messages][-3:] == [21, 22, 23]


@pytest.mark.parametrize("budget", [1_000, 2_000, 4_000])
@pytest.mark.parametrize("answer", [100, 700, 1_500, 3_000, 9_000])
def test_the_last_answer_takes_no_room_of_hits(quick: Memory, budget: int, answer: int) -> None:
    for n in range(80):
        quick.chat("before").append(role="user", content=f"word{n} berlin {words(100)}")
    chat = quick.chat("monday")
    say(chat, *[SHORT] * 5, (20, [], answer))
    prompt = chat.prompt(budget, query="berlin")
    assert_sound(chat, prompt, budget)
    assert [message.role for message in prompt.window.messages][-2:] == ["user", "assistant"]
    assert prompt.tokens["window"] <= budget / 4
    assert prompt.tokens["recalled"] >= budget * 3 / 5


@pytest.mark.parametrize("sizes", [(5_000, 1_900, 400), (20, 7_000, 60), (900, 900, 60)])
@pytest.mark.parametrize("budget", [1_000, 8_000])
def test_without_a_query_what_a_placeholder_frees_is_filled(
    quick: Memory, sizes: tuple[int, int, int], budget: int
) -> None:
    chat = quick.chat("monday")
    request, result, answer = sizes
    say(chat, *[SHORT] * 120, (request, [[result]], answer))
    for _ in range(10):
        chat.append(role="user", content="And the other nodes?")
        prompt = chat.prompt(budget)
        assert_sound(chat, prompt, budget)
        # An eighth that the start moves by, one that is not worth to move it, and the message that it cuts.
        assert prompt.tokens["total"] >= budget * 5 / 8
        chat.append(role="assistant", content="They have room.")


def test_what_a_policy_guarantees_stays_whole_behind_the_request(quick: Memory) -> None:
    chat = quick.chat("monday")
    say(chat, *[SHORT] * 10, (20, [[100], [9_000]], 0))
    window = chat.window(policy=TokenBudget(4_000, keep=4))
    assert [one.seq for one in window.messages] == [21, 22, 23, 24, 25]
    assert window.over_budget
    assert window.shortened == ()
