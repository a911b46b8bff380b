from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from holdfast import Message, ToolCall
from holdfast.messages.message_tokens import message_tokens
from holdfast.text.tokens import MESSAGE_OVERHEAD, estimate_tokens
from tables import each


@each(
    ("text", "tokens"),
    [
        ("", 0),
        ("x" * 4000, 1000),
        ("日", 2),
        ("한국어", 5),
        ("😀", 2),
        ("𠮷", 2),
        ("Ж", 1),
        ("Привет!", 4),
        ("日 ab", 3),
    ],
)
def test_estimate_of_a_text(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text())
def test_the_estimate_is_the_sum_of_the_weights_rounded_up(text: str) -> None:
    def weight(character: str) -> float:
        code = ord(character)
        if code < 128:
            return 0.25
        if code > 0xFFFF:
            return 2.0
        return 1.5 if estimate_tokens(character) == 2 else 0.5

    assert estimate_tokens(text) == math.ceil(sum(map(weight, text)))


def test_a_message_costs_its_text_its_calls_and_an_overhead_for_each() -> None:
    calls = ToolCall("c1", "find", {"q": "x" * 91}), ToolCall("c2", "find", "x" * 40)
    assert message_tokens(Message("user", "x" * 40)) == 10 + MESSAGE_OVERHEAD
    assert message_tokens(Message("assistant", calls=calls)) == 3 * MESSAGE_OVERHEAD + 1 + 25 + 1 + 10


def test_a_counter_of_ones_own_counts_text_names_and_arguments() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return 100

    message = Message("assistant", "hello", calls=(ToolCall("c1", "find", {"q": 1}),))
    assert (message_tokens(message, count), counted) == (
        2 * MESSAGE_OVERHEAD + 300,
        ["hello", "find", '{"q": 1}'],
    )
