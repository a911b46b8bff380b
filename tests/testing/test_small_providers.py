"""Properties of the two small providers: windows, trees of summaries, and versions."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fake_provider import FakeProvider
from holdfast import Message, ToolCall
from holdfast.testing import MinimalProvider
from holdfast.testing.case import full_window, seqs, texts, tokens_of, unpaired
from holdfast.testing.cases.exploration import walk
from soak import cases

IDS = st.sampled_from(["call_0", "call_1"])
SAID = st.builds(
    Message, st.sampled_from(["user", "assistant"]), st.text("ab 漢😀", min_size=1).filter(str.strip)
)
NUMBERS = st.integers(0, 40)


@st.composite
def tool_uses(draw: st.DrawFn) -> list[Message]:
    """Make calls with their results in some order, and what is said in between."""
    ids = draw(st.lists(IDS, min_size=1, unique=True))
    call = Message("assistant", calls=tuple(ToolCall(one, "weigh") for one in ids))
    results = [Message("tool", "5 kg", call_id=one) for one in draw(st.permutations(ids))]
    between = draw(st.lists(SAID, max_size=1))
    return [call, *results[:1], *between, *results[1:]]


CONVERSATIONS = st.lists(st.one_of(SAID.map(lambda one: [one]), tool_uses()), max_size=12).map(
    lambda parts: [message for part in parts for message in part]
)


@given(CONVERSATIONS, st.integers(0, 120), NUMBERS)
def test_a_window_is_the_longest_end_that_fits_and_parts_nothing(
    said: list[Message], budget: int, tail: int
) -> None:
    chat = MinimalProvider().chat("c")
    stored = chat.append(said)
    ends = [stored[start:] for start in range(len(stored) + 1) if not unpaired(stored[start:])]
    found = chat.window(budget, tail=tail)
    least = min(len(end) for end in ends if len(end) >= min(tail, len(stored)))
    fitting = max(len(end) for end in ends if tokens_of(end) <= budget)
    assert list(found.messages) == stored[len(stored) - max(least, fitting) :]
    assert found.tokens == tokens_of(found.messages)
    assert sum(one.messages for one in found.omitted) + len(found.messages) == len(stored)


@settings(max_examples=cases(10, 120))
@given(st.lists(CONVERSATIONS, max_size=6), st.integers(10, 200), NUMBERS)
def test_compaction_loses_and_parts_nothing(parts: list[list[Message]], budget: int, tail: int) -> None:
    chat, stored = FakeProvider().chat("c"), list[Message]()
    for part in parts:
        stored += chat.append(part)
        result = chat.compact(full=True, budget=budget)
        assert result.noop or result.tokens_after < result.tokens_before
        window = full_window(chat)
        reached = [message for one in window.summaries for message in walk(chat, one.id)]
        assert [*reached, *window.messages] == stored
        for one in window.summaries:
            assert unpaired(stored[: one.last]) == []
        shown = chat.window(budget, tail=tail).messages
        assert unpaired(shown) == []
        assert seqs(shown) == list(range(len(stored) - len(shown) + 1, len(stored) + 1))
        assert chat.stats().context_tokens == window.tokens
        assert chat.compact(full=True, budget=budget).noop


WRITES = st.lists(st.tuples(st.sampled_from(["add", "replace", "retract", "rollback"]), NUMBERS), max_size=25)


@given(WRITES)
def test_every_version_stays_what_it_was(writes: list[tuple[str, int]]) -> None:
    memory = FakeProvider()
    states: list[list[str]] = [[]]
    for what, number in writes:
        there = memory.records()
        if what == "add" or not there:
            memory.remember(f"fact {number}")
        elif what == "replace":
            memory.replace(there[number % len(there)].id, f"other {number}")
        elif what == "retract":
            memory.retract(there[number % len(there)].id)
        else:
            memory.rollback(there[number % len(there)].id, number % len(states))
        states.append(texts(memory.records()))
    assert memory.version() == len(states) - 1
    assert [texts(memory.at(version).records()) for version in range(len(states))] == states
    newest_first = memory.changes()
    assert [one.version for one in newest_first] == list(range(len(writes), 0, -1))
