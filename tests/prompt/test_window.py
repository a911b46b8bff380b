from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Memory
from holdfast.errors import InvalidInput
from holdfast.prompt.window import (
    BuiltInPolicy,
    Compaction,
    FreshTail,
    LastN,
    Lossless,
    SummaryBuffer,
    TokenBudget,
)
from holdfast.prompt.window_selection import NO_RESULT, NO_USER, OVER_BUDGET, UNKNOWN_CALL
from holdfast.types import Message, Omission
from tables import each
from window_logs import LOGS, Reference, counting, parse, seqs, window, window_of

NUMBERS = st.integers(0, 250)
SMALL = st.integers(0, 8)
POLICIES: st.SearchStrategy[BuiltInPolicy] = st.one_of(
    st.builds(LastN, SMALL, st.booleans()),
    st.builds(TokenBudget, NUMBERS, SMALL, st.booleans()),
    st.builds(FreshTail, NUMBERS, SMALL, st.none() | NUMBERS, st.booleans()),
)
FIVE = parse("u a u a u")


# How many messages: LastN


@each(
    ("script", "n", "first"),
    [
        ("u a a u a a a", 2, 4),  # inside a turn
        ("u a a u a a a", 5, 1),
        ("u a a a a a a", 3, 5),  # it began too long ago
        ("a a u a", 1, 3),
        ("u +x u -x a", 2, 1),  # a user message inside a tool use cannot start a window
        ("s u a", 3, 1),  # instructions before the user message stay
    ],
)
def test_last_n_extends_back_to_the_user_message(script: str, n: int, first: int) -> None:
    assert seqs(window(LastN(n), parse(script)))[0] == first


# How many tokens: TokenBudget


@each(
    ("script", "policy", "kept"),
    [
        ("u a a u a", TokenBudget(49, 2), [4, 5]),  # nothing guaranteed is lost
        ("u a a u a", TokenBudget(49, 3), [2, 3, 4, 5]),  # the third newest message would be
        ("u a u a a u a", FreshTail(45, 1), [6, 7]),
        ("u a u a a u a", FreshTail(45, 1, user_first=False), [4, 5, 6, 7]),
        ("u a a a u a", TokenBudget(59, 0), [2, 3, 4, 5, 6]),  # of 50 tokens 20 are less than half
        ("u a a a a", TokenBudget(25, 0), [4, 5]),
        ("s u a u a", TokenBudget(50, 0), [1, 2, 3, 4, 5]),
        ("u a s u a", TokenBudget(35, 0), [3, 4, 5]),  # instructions before the user message stay
        (
            "u +x:5 u:5 -x:5 a:5 u a",
            TokenBudget(49, 0),
            [6, 7],
        ),  # one inside a tool use cannot start a window
        ("u a a u a", TokenBudget(0, 0), []),
    ],
)
def test_a_budget_starts_with_a_user_message(script: str, policy: BuiltInPolicy, kept: list[int]) -> None:
    assert seqs(window(policy, parse(script))) == kept


@each("script", ["a u a u a", "a a a a a", "s a u a t", "+x -x u a u"])
def test_what_fits_is_shown_whole_whoever_began(script: str) -> None:
    for policy in (LastN(5), TokenBudget(50), FreshTail(50), Lossless(50), SummaryBuffer(50)):
        result = window(policy, parse(script))
        assert (seqs(result), result.omitted) == ([1, 2, 3, 4, 5], ())


# The fresh tail


@pytest.mark.parametrize("questions", [1, 2])
def test_a_window_that_the_request_takes_room_from_begins_with_it(quick: Memory, questions: int) -> None:
    chat = quick.chat("monday")
    chat.append([Message("user", "Mend all pumps. " * 9), *[Message("assistant", "word " * 20)] * 2])
    chat.append([Message("user", f"{number}?") for number in range(questions)])
    request, *others = chat.history()
    budget = sum(one.tokens for one in others)
    window = chat.window(policy=TokenBudget(budget, keep=1))
    assert window.tokens <= budget
    # Of several turns none is left out for the request of one.
    assert (window.messages[0] == request) == (questions == 1)
    assert window.messages[-questions:] == tuple(others[-questions:])


def test_broken_tool_use_does_not_shorten_the_tail() -> None:
    assert seqs(window(FreshTail(0, turns=2, cap=99), parse("u a u a -zz u +x -zz -x"))) == [3, 4, 6, 7, 9]
    assert seqs(window(LastN(2), parse("u a -zz -zz -zz"))) == [1, 2]


# Tool use


def test_a_call_without_its_result_is_left_out_with_the_results_it_got() -> None:
    result = window(TokenBudget(100), parse("u +x,y u -x a"))
    assert seqs(result) == [1, 3, 5]
    assert result.omitted == (Omission(1, 2, 2, 10, NO_RESULT), Omission(1, 4, 4, 10, NO_RESULT))
    assert result.tokens == 30


@each(
    ("script", "kept"), [("u +x", [1]), ("u +x,y -x", [1]), ("u +x -zz", [1]), ("u +x u +y -x", [1, 2, 3, 5])]
)
def test_a_call_whose_results_are_still_to_come_waits_for_them(script: str, kept: list[int]) -> None:
    assert seqs(window(TokenBudget(100), parse(script))) == kept
    assert seqs(window(TokenBudget(100), parse(f"{script} u"))) == [*kept, len(parse(script)) + 1]


# Cost


def test_reading_stops_behind_the_window() -> None:
    log = parse("u a " * 500)
    for policy, most in (
        (LastN(7, user_first=False), 7),
        (TokenBudget(70, 2), 8),
        (FreshTail(70, 1), 8),
        (FreshTail(0, 0), 1),
        (LastN(7), 8),
    ):
        read: list[int] = []
        window_of(policy, counting(log, read), 1000, 10_000)
        assert len(read) <= most
    read = []
    window_of(LastN(7), counting(parse("a " * 500), read), 500, 5_000)
    assert len(read) <= 14


def test_what_is_appended_meanwhile_is_left_for_the_next_window() -> None:
    result = window_of(LastN(2), reversed(FIVE), 4, 40)
    assert seqs(result) == [3, 4]
    assert result.omitted == (Omission(2, 1, 2, 20, "older than the newest 2 messages"),)


# Helpers


@each(
    "make",
    [
        lambda: LastN(-1),
        lambda: TokenBudget(-1),
        lambda: FreshTail(5, 1, -1),
        lambda: LastN("3"),  # type: ignore[arg-type]
    ],
)
def test_numbers_are_checked(make: object) -> None:
    assert callable(make)
    with pytest.raises(InvalidInput) as caught:
        make()
    assert caught.value.what.endswith(".")
    assert caught.value.todo.endswith(".")


# Properties, on random logs with parallel, interleaved, repeated, missing and unfinished tool use


@given(LOGS, POLICIES)
def test_a_window_is_a_suffix_and_accounts_for_every_message(
    log: list[Message], policy: BuiltInPolicy
) -> None:
    result = window(policy, log)
    kept = seqs(result)
    missing = [seq for o in result.omitted for seq in range(o.first, o.last + 1)]
    assert sorted(kept + missing) == list(range(1, len(log) + 1))
    assert kept == sorted(kept)
    assert missing == sorted(missing)
    assert sum(o.messages for o in result.omitted) == len(missing)
    for omission in result.omitted:
        assert omission.tokens == sum(m.tokens for m in log[omission.first - 1 : omission.last])
    assert result.tokens == sum(m.tokens for m in result.messages)
    reference = Reference(log)
    if kept:  # what is missing behind the start is broken, and says so
        inside = {o.why for o in result.omitted if o.first > kept[0]}
        assert inside <= {NO_RESULT, UNKNOWN_CALL}
        assert {seq for seq in missing if seq > kept[0]} <= reference.broken | reference.orphans
    assert not (reference.broken | reference.orphans).intersection(kept)


@given(LOGS, NUMBERS, SMALL, st.none() | NUMBERS)
def test_the_fresh_tail_is_what_its_definition_says(
    log: list[Message], budget: int, turns: int, cap: int | None
) -> None:
    result = window(FreshTail(budget, turns, cap, user_first=False), log)
    reference = Reference(log)
    tail = reference.tail(turns, budget if cap is None else cap)
    n = max(tail, reference.fitting(budget))
    assert seqs(result) == [m.seq for group in reference.groups[:n][::-1] for m in group]
    assert not result.over_budget or n == tail
    assert not result.over_budget or cap is not None or n == 1


@given(LOGS, NUMBERS, SMALL)
def test_the_token_budget_is_what_its_definition_says(log: list[Message], budget: int, keep: int) -> None:
    result = window(TokenBudget(budget, keep, user_first=False), log)
    reference = Reference(log)
    n = max(reference.newest(keep), reference.fitting(budget))
    assert seqs(result) == [m.seq for group in reference.groups[:n][::-1] for m in group]
    assert not result.over_budget or n == reference.newest(keep)


@given(LOGS, SMALL)
def test_last_n_is_what_its_definition_says(log: list[Message], n: int) -> None:
    reference = Reference(log)
    groups = reference.groups[: reference.newest(n)]
    result = window(LastN(n, user_first=False), log)
    assert seqs(result) == [m.seq for group in groups[::-1] for m in group]
    assert (result.budget, result.over_budget) == (None, False)


@given(LOGS, NUMBERS, SMALL)
def test_a_window_begins_with_a_user_message_or_says_that_none_is_in_reach(
    log: list[Message], budget: int, number: int
) -> None:
    reference = Reference(log)
    for policy in (
        TokenBudget(budget, number),
        FreshTail(budget, number),
        Lossless(budget, Compaction(turns=number)),
        SummaryBuffer(budget, keep=number),
    ):
        plain = window(replace(policy, user_first=False), log)
        result = window(policy, log)
        there = seqs(result)
        assert there == seqs(plain)[len(plain.messages) - len(there) :]
        assert result.over_budget == plain.over_budget
        if isinstance(policy, TokenBudget):
            guaranteed = reference.groups[: reference.newest(number)]
            assert {m.seq for group in guaranteed for m in group} <= set(there)
        elif isinstance(policy, FreshTail):
            guaranteed = reference.groups[: reference.tail(number, budget)]
            assert {m.seq for group in guaranteed for m in group} <= set(there)
        left_out = [one.why for one in result.omitted if one.why not in (NO_RESULT, UNKNOWN_CALL)]
        spoken = [m.role for m in result.messages if m.role != "system"]
        if not there or not left_out:
            assert result == plain
        elif spoken[:1] == ["user"]:
            assert 2 * result.tokens >= plain.tokens
            assert NO_USER not in "".join(left_out)
        else:
            assert result.messages == plain.messages
            assert left_out == [f"{OVER_BUDGET}, {NO_USER}"]
