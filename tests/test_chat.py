"""Chats: append, append the same again, read back and count; calls of tools and their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from chat_messages import NO_COUNTS, NOON, say
from holdfast import Conflict, InvalidInput, Memory, Message, ToolCall
from tables import each

# Append


@each("thing", ["", "hello", b"", b"hello", 0, 7, False, {"role", "user"}, iter(()), object()])
def test_what_is_no_message_cannot_be_appended(quick: Memory, thing: Any) -> None:
    with pytest.raises(InvalidInput):
        quick.chat("monday").append(thing)


@each("field", [{"role": "user"}, {"id": "m1"}, {"meta": {"a": 1}}, {"at": NOON}])
def test_fields_beside_a_message_are_refused_and_not_dropped(quick: Memory, field: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="beside"):
        quick.chat("monday").append({"role": "user", "content": "hello"}, **field)


@each("name", ["", "  ", "a\nb", "a\x00", "\ud800", "x" * 513, 7, b"monday"])
def test_a_chat_needs_a_name(quick: Memory, name: Any) -> None:
    with pytest.raises(InvalidInput, match="id of a chat"):
        quick.chat(name)


# The same message again


@each(
    ("first", "again"),
    [
        ({}, {}),
        ({"x": {"a": 1, "b": 2}}, {"x": {"b": 2, "a": 1}}),
        ({"x": float("nan")}, {"x": float("nan")}),
        ({"meta": {"channel": "mail"}}, {"meta": {"channel": "mail"}}),
        ({"id": 7}, {"id": 7}),
    ],
)
def test_the_same_message_again_is_one_message(first: dict[str, Any], again: dict[str, Any]) -> None:
    message = {"role": "user", "content": "hello", "id": "m1"}
    with Memory(":memory:") as memory:
        chat = memory.chat("monday")
        stored = [chat.append(message | first), *chat.append([message | again] * 2)]
        assert {(one.id, one.seq) for one in stored} == {(stored[0].id, 1)}
        assert chat.stats().messages == 1
        assert memory.verify().problems == ()


CALL = Message("assistant", id="m1", calls=(ToolCall("c1", "find", {"n": 1}),))


@each(
    ("first", "other"),
    [
        (Message("user", "hello", id="m1"), {"content": "bye"}),
        (Message("user", "hello", id="m1"), {"role": "system"}),
        (Message("user", "hello", id="m1"), {"name": "bob"}),
        (Message("user", "hello", id="m1"), {"raw": {"x": 1}}),
        (Message("user", "hello", id="m1"), {"meta": {"channel": "phone"}}),
        (CALL, {"calls": (ToolCall("c1", "find", {"n": 2}),)}),
        (CALL, {"content": "hello"}),
    ],
)
def test_another_message_under_the_same_id_is_a_conflict(first: Message, other: dict[str, Any]) -> None:
    changed = replace(first, **other)
    with Memory(":memory:") as memory:
        with pytest.raises(Conflict, match="m1"):
            memory.chat("tuesday").append([first, changed])
        memory.chat("monday").append(first)
        with pytest.raises(Conflict, match="m1"):
            memory.chat("monday").append(changed)
        assert [one.content for one in memory.chat("monday").history()] == [first.content]
        assert [one.id for one in memory.chats()] == ["monday"]


def test_old_and_new_messages_in_a_list_come_back_in_its_order(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append([Message("user", word, id=word) for word in "ab"])
    stored = chat.append([Message("user", word, id=word) for word in "cbda"])
    assert [(message.content, message.seq) for message in stored] == [("c", 3), ("b", 2), ("d", 4), ("a", 1)]
    assert memory.verify().problems == ()


def test_ids_that_were_made_name_their_messages_in_this_chat_and_in_others(memory: Memory) -> None:
    monday, tuesday = memory.chat("monday"), memory.chat("tuesday")
    stored = say(monday, "a", "b", "c")
    assert monday.append(stored) == stored
    with pytest.raises(Conflict):
        monday.append(replace(stored[1], content="other"))
    copies = tuesday.append(stored)
    assert tuesday.append(stored) == copies
    assert [(m.id, m.content) for m in copies] == [(m.id, m.content) for m in stored]
    own = monday.append(role="user", content="d", id="00000000000100000000")  # like those that are made
    assert monday.append(own) == own
    assert monday.stats().messages == 4
    assert memory.verify().problems == ()


def test_a_thousand_messages_again_at_another_time_add_nothing(memory: Memory) -> None:
    chat = memory.chat("monday")
    first = chat.append([Message("user", "hello", id=f"m{n}", at=NOON) for n in range(1000)])
    assert chat.append([replace(one, at=NOON + timedelta(1)) for one in first]) == first == chat.history()


# History and stats


@each("argument", ["limit", "before", "after"])
@each("value", NO_COUNTS)
def test_a_page_needs_whole_numbers(quick: Memory, argument: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=argument):
        quick.chat("monday").history(**{argument: value})


def test_oldest_and_newest_are_by_time_and_not_by_order(memory: Memory) -> None:
    days = [NOON + timedelta(days) for days in (2, 0, -3, 1)]
    memory.chat("monday").append([Message("user", "hello", at=day) for day in days[:2]])
    memory.chat("monday").append([Message("user", "hello", at=day) for day in days[2:]])
    stats = memory.chat("monday").stats()
    assert (stats.oldest, stats.newest) == (NOON - timedelta(3), NOON + timedelta(2))


# Tool calls and their results


def call(*identities: str) -> Message:
    return Message("assistant", calls=tuple(ToolCall(identity, "find") for identity in identities))


def answer(identity: str) -> Message:
    return Message("tool", "42", call_id=identity)


AGAIN = replace(call("c1"), id="m1")
BLOCKS = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": f"c{n}", "content": str(n)} for n in range(3)],
}


@each(
    ("log", "answers"),
    [
        ([answer("c1"), call("c1")], [(), ()]),
        ([call("c1", "c2"), answer("c2"), answer("c1")], [(), ("c2",), ("c1",)]),
        ([call("c1"), answer("c1"), call("c1"), answer("c1")], [(), ("c1",), (), ("c1",)]),
        ([call("c2", "c0"), BLOCKS], [(), ("c0", "c2")]),
        ([AGAIN, AGAIN, answer("c1")], [(), (), ("c1",)]),
        ([Message("tool", "42", answers=("c1", "c2"))], [()]),
    ],
)
def test_a_result_answers_the_calls_before_it(log: list[Any], answers: list[tuple[str, ...]]) -> None:
    with Memory(":memory:") as memory:
        assert [message.answers for message in memory.chat("monday").append(log)] == answers


def test_calls_of_earlier_appends_are_answered_and_the_answers_stored(reopen: Callable[[], Memory]) -> None:
    chat = reopen().chat("monday")
    chat.append(call("c1"))
    say(chat, *map(str, range(500)))
    chat.append([answer("c1"), answer("c9")])
    assert [(one.call_id, one.answers) for one in reopen().chat("monday").history(2)] == [
        ("c1", ("c1",)),
        ("c9", ()),
    ]


# Without repetition, because a database may compress what repeats.
LONG = "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(5000))


@pytest.mark.parametrize("identity", ["x" * 10_000, LONG, "toolu_'\"%_\\", "a b", "\n"])
def test_the_id_of_a_call_may_be_anything(memory: Memory, identity: str) -> None:
    stored = memory.chat("monday").append([call(identity), answer(identity), answer(identity[:-1] or "-")])
    assert [message.answers for message in stored] == [(), (identity,), ()]
