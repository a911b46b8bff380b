"""A policy of one's own chooses the messages; tool use stays whole, and what is left out is stated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import BudgetExceeded, InvalidInput, Memory, Message, ToolCall, Window
from soak import cases

Choose = Callable[[Iterator[Message], int], Iterable[Message]]
# The role of a message, and a tool use of so many calls.
STEPS = st.lists(st.sampled_from(["user", "assistant"]) | st.integers(1, 3), min_size=1, max_size=12)


@dataclass
class Own:
    """A policy that chooses by a function."""

    by: Choose
    budget: int = 8_000

    def choose(self, messages: Iterator[Message], budget: int, /) -> Iterable[Message]:
        return self.by(messages, budget)


def first_and_last(messages: Iterator[Message], _: int) -> list[Message]:
    every = list(messages)
    return [every[0], every[-1]]


def tell(memory: Memory, steps: Sequence[str | int]) -> None:
    chat = memory.chat("trip")
    for number, step in enumerate(steps):
        if step in ("user", "assistant"):
            chat.append(role="user" if step == "user" else "assistant", content=f"message {number}")
            continue
        calls = [ToolCall(f"{number}.{n}", "read") for n in range(int(step))]
        chat.append(role="assistant", calls=calls)
        for call in calls:
            chat.append(role="tool", content="read", call_id=call.id)


def numbers_of(window: Window) -> list[int]:
    """Return the seqs that a window shows or states, in order."""
    gaps = [seq for gap in window.omitted for seq in range(gap.first, gap.last + 1)]
    return sorted([*gaps, *(message.seq for message in window.messages)])


@settings(max_examples=cases(40, 2_000), deadline=None)
@given(steps=STEPS, chosen=st.sets(st.integers(1, 30)), backwards=st.booleans())
def test_whatever_is_chosen_tool_use_is_whole_and_the_rest_is_stated(
    steps: list[str | int], chosen: set[int], *, backwards: bool
) -> None:
    def some(messages: Iterator[Message], _: int) -> list[Message]:
        mine = [message for message in messages if message.seq in chosen]
        return mine if backwards else mine[::-1]

    with Memory(":memory:") as memory:
        tell(memory, steps)
        history = memory.chat("trip").history()
        window = memory.chat("trip").window(policy=Own(some))
    shown = {message.seq for message in window.messages}
    assert chosen & {message.seq for message in history} <= shown
    of_call = {call.id: message.seq for message in history for call in message.calls}
    uses = [{of_call[answer], message.seq} for message in history for answer in message.answers]
    assert all(use <= shown or not use & shown for use in uses)
    assert [message.seq for message in window.messages] == sorted(shown)
    assert numbers_of(window) == [message.seq for message in history]
    assert window.tokens == sum(message.tokens for message in window.messages)


def test_a_memory_a_window_and_a_prompt_take_it() -> None:
    with Memory(":memory:", policy=Own(first_and_last, budget=500)) as memory:
        chat = memory.chat("trip")
        for number in range(50):
            chat.append(role="user", content=f"message {number}")
        assert [message.seq for message in chat.window().messages] == [1, 50]
        assert [gap.why for gap in chat.window().omitted] == ["not chosen by Own"]
        assert chat.window(90).budget == 90
        assert [message["content"] for message in chat.prompt().messages] == ["message 0", "message 49"]
        newest = Own(lambda messages, _: islice(messages, 3))
        assert [message.seq for message in chat.window(policy=newest).messages] == [48, 49, 50]
        chat.append(role="assistant", content="done")
        assert (chat.receipts()[-1].policy, chat.receipts()[-1].parameters) == ("Own", {"budget": 500})
        with pytest.raises(InvalidInput, match="Own does not say how to compact"):
            chat.compact()


def test_it_reads_no_further_than_it_needs_and_learns_its_budget() -> None:
    budgets: list[int] = []

    def within(messages: Iterator[Message], budget: int) -> Iterator[Message]:
        budgets.append(budget)
        for message in messages:
            budget -= message.tokens
            if budget < 0:
                return
            yield message

    with Memory(":memory:") as memory:
        chat = memory.chat("trip")
        chat.append([Message("user", f"the lake and the boat, day {n}") for n in range(300)])
        window = chat.window(400, policy=Own(within))
        assert window.tokens <= 400
        prompt = chat.prompt(400, query="boat", policy=Own(within))
        assert prompt.tokens["total"] <= 400
        assert max(budgets[1:]) <= 400
        everything = Own(lambda messages, _: messages)
        assert chat.prompt(400, policy=everything).tokens["over"] > 0
        with pytest.raises(BudgetExceeded):
            chat.prompt(400, policy=everything, strict=True)


def test_what_cannot_choose_is_refused() -> None:
    with Memory(":memory:") as memory:
        chat = memory.chat("trip")
        chat.append(role="user", content="hello")
        stranger = Message("user", "hello", seq=1)
        for wrong in (Own, Own(first_and_last, budget=-1), object(), 5, type("No", (), {"budget": 5})()):
            with pytest.raises(InvalidInput):
                chat.window(policy=cast("Any", wrong))
            with pytest.raises(InvalidInput):
                Memory(":memory:", policy=cast("Any", wrong))
        for answer in ([stranger], None, ["hello"], [None]):
            with pytest.raises(InvalidInput, match="The policy chose"):
                chat.window(policy=Own(partial(lambda answer, *_: answer, cast("Any", answer))))
