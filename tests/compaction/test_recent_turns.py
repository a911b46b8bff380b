"""The last turns of a chat, a line each, in a ring buffer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import InvalidInput, Message, ToolCall
from holdfast.compaction.recent_turns import LONGEST_LINE, RingBuffer
from tables import each

NOON = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
ANY_TEXT = st.text(st.characters())
HEAD = 2  # lines of the frame before the first turn


def ring(capacity: int = 20) -> RingBuffer:
    return RingBuffer(capacity, clock=lambda: NOON)


def filled(count: int, capacity: int = 20) -> RingBuffer:
    buffer = ring(capacity)
    for number in range(1, count + 1):
        buffer.append("user", f"turn {number}")
    return buffer


def turns(*numbers: int) -> list[str]:
    return [f"12:00  user  turn {number}" for number in numbers]


def test_the_newest_lines_are_kept_oldest_first_and_given_as_a_copy() -> None:
    buffer = filled(5, capacity=3)
    assert buffer.lines == list(buffer) == turns(3, 4, 5)
    assert (len(buffer), repr(buffer)) == (3, "RingBuffer(3 of 3 lines)")
    buffer.lines.append("mine")
    for _ in buffer:
        buffer.append("user", "turn 6")
    assert buffer.lines == turns(6, 6, 6)
    buffer.clear()
    assert (buffer.lines, buffer.text()) == ([], "")


@each("capacity", [0, -1])
def test_a_buffer_without_room_is_off(capacity: int) -> None:
    buffer = RingBuffer(capacity)
    buffer.append("user", "hello")
    buffer.restore(["12:00  user  hello"])
    assert (buffer.capacity, buffer.lines, buffer.text()) == (0, [], "")
    assert RingBuffer.of([Message("user", "hello")], capacity).lines == []


def calling(*names: str, content: str = "") -> Message:
    return Message("assistant", content, calls=tuple(ToolCall(str(n), name) for n, name in enumerate(names)))


@each(
    ("turn", "lines"),
    [
        (("user", "a\nb\rc\td\x00e\u2028f"), ["12:00  user  a b c d e f"]),
        (("assistant", "Sure! I set `a` to **b**:\n```py\nb = 1\n```"), ["12:00  assistant  I set a to b:"]),
        (("user", "a" * 300), [f"12:00  user  {'a' * 199}…"]),
        (("  sub\nagent  <1> ", "done"), ["12:00  sub agent <1>  done"]),
        (("r" * 50, "done"), [f"12:00  {'r' * 39}…  done"]),
        *((("user", text), []) for text in ("", "  \n\t", "\x00\x1b")),
        # Of messages, what user and assistant say.
        ([Message("user", "hi", name="ada")], ["12:00  user  hi"]),
        ([calling("read_file", "grep", "grep")], ["12:00  assistant  calls read_file, grep"]),
        ([calling("")], ["12:00  assistant  calls a tool"]),
        ([calling("grep", content="Let me look.")], ["12:00  assistant  Let me look."]),
        *(([Message(role, "Be brief.")], []) for role in ("tool", "system", "developer")),
    ],
)
def test_a_line_is_time_role_and_gist(turn: Any, lines: list[str]) -> None:
    buffer = ring()
    buffer.append(*turn)
    assert buffer.lines == lines
    assert len(turn) > 1 or RingBuffer.of(turn, clock=lambda: NOON).lines == lines


@each(
    ("at", "minute"),
    [
        (datetime(2024, 5, 1, 9, 5, 59, tzinfo=UTC).replace(tzinfo=None), "09:05"),
        (datetime(2024, 5, 1, 23, 5, tzinfo=timezone(timedelta(hours=-5, minutes=-30))), "04:35"),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))), "11:59"),
        (None, "12:00"),
    ],
)
def test_times_are_in_utc(at: datetime | None, minute: str) -> None:
    buffer = ring()
    buffer.append("user", "hi", at=at)
    buffer.append(Message("user", "hi", at=at))
    buffer.append(Message("user", "hi", at=NOON), at=at)
    assert buffer.lines == [f"{minute}  user  hi"] * 3


@each(
    "wrong",
    [
        lambda buffer: buffer.append(" \n", "hi"),
        lambda buffer: buffer.append("user"),
        lambda buffer: buffer.append(Message("user", "hi"), "hi"),
        lambda buffer: buffer.restore("a line"),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(wrong: Any) -> None:
    buffer = filled(2)
    with pytest.raises(InvalidInput):
        wrong(buffer)
    assert buffer.lines == turns(1, 2)


def test_lines_are_restored_as_they_were_stored() -> None:
    buffer = filled(9)
    lines = ["  09:00  user  Sure, **this**   is `code`  ", "no form at all", "```"]
    buffer.restore(lines)
    assert buffer.lines == lines
    small = ring(2)
    small.restore(f"line {number}" for number in range(5))
    small.append("user", "turn 1")
    assert small.lines == ["line 4", *turns(1)]


@given(st.lists(st.tuples(ANY_TEXT.filter(str.strip), ANY_TEXT)), st.lists(ANY_TEXT))
def test_a_text_has_a_line_for_each_turn_whatever_it_says(
    said: list[tuple[str, str]], stored: list[str]
) -> None:
    buffer = ring(5)
    buffer.restore(stored)
    for role, text in said:
        try:
            buffer.append(role, text)
        except InvalidInput:
            assert not role.isprintable()  # only control characters
    assert len(buffer) <= 5
    assert all(0 < len(line) <= LONGEST_LINE for line in buffer)
    text = buffer.text()
    assert text.encode("utf-8").decode("utf-8") == text
    assert len(text.splitlines()) == (HEAD + len(buffer) + 1 if len(buffer) else 0)
    assert text.count("<") == (2 if len(buffer) else 0)
    restored = ring(5)
    restored.restore(buffer.lines)
    assert restored.lines == buffer.lines


def test_threads_lose_no_line_and_never_see_a_buffer_that_is_half_restored() -> None:
    buffer, restored = ring(10_000), filled(3, capacity=3)
    states = [turns(1, 2, 3), turns(7, 8, 9)]
    seen: list[list[str]] = []

    def work(who: int) -> None:
        for number in range(200):
            buffer.append(f"user {who}", f"turn {number}")
            restored.restore(states[number % 2])
            seen.append(restored.lines)

    threads = [Thread(target=work, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(buffer) == len(set(buffer.lines)) == 1600
    assert all(lines in states for lines in seen)
