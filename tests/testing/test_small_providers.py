"""A property of the smallest provider: what its windows show."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast import Message, ToolCall
from holdfast.testing import MinimalProvider
from holdfast.testing.case import tokens_of, unpaired

IDS = st.sampled_from(["call_0", "call_1"])
SAID = st.builds(
    Message, st.sampled_from(["user", "assistant"]), st.text("ab 漢😀", min_size=1).filter(str.strip)
)


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


@given(CONVERSATIONS, st.integers(0, 120), st.integers(0, 40))
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
