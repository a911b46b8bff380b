"""What is stored of a message, word for word, and what cannot be stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from payloads import function, result

from holdfast import Chat, InvalidInput, Memory, Message, ToolCall
from holdfast.port.formats import export, parse
from soak import cases
from tables import each

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
EAST, WEST = timezone(timedelta(hours=14)), timezone(timedelta(hours=-7, minutes=-30))
ON_A_DATABASE = settings(
    max_examples=cases(10, 75), suppress_health_check=[HealthCheck.function_scoped_fixture]
)


# What is stored

ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**30, max_value=10**40),
    st.floats(allow_nan=False),
    st.text(),
    st.text(st.sampled_from("a\x00\x07\ud800é日😀\\\"'%:/")),
)
JSON = st.recursive(
    ATOMS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)
OBJECTS = st.dictionaries(st.text() | st.sampled_from(["\x00", "\ud800", "raw", "meta"]), JSON, max_size=5)
# Any text, except for pairs of surrogates in two halves, which JSON cannot tell from what they encode.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: not text.isspace())
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40).filter(str.strip)
TIMES = st.one_of(st.datetimes(), st.datetimes(timezones=st.just(UTC)))
WHOLE = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
)  # of which cleaning changes nothing
WHOLE_OBJECTS = st.dictionaries(WHOLE, st.integers() | st.lists(WHOLE, max_size=4), max_size=5)
CALLS = st.builds(ToolCall, NAMES, NAMES, WHOLE_OBJECTS | WHOLE)
RAWS = st.none() | OBJECTS
WORDS = st.builds(
    Message, st.sampled_from(["system", "developer", "user"]), TEXTS, name=st.none() | NAMES,
    at=st.none() | TIMES, raw=RAWS, meta=OBJECTS
)  # fmt: skip
ACTS = st.builds(Message, st.just("assistant"), TEXTS | st.just(""),
    calls=st.lists(CALLS, min_size=1, max_size=3).map(tuple), raw=RAWS, at=st.none() | TIMES)  # fmt: skip
RESULTS = st.builds(Message, st.just("tool"), TEXTS | st.just(""), call_id=st.none() | NAMES, raw=RAWS)
ANTHROPIC_RESULTS = st.lists(NAMES, min_size=1, max_size=3, unique=True).map(
    lambda ids: parse({"role": "user", "content": [result(call, f"of {call}") for call in ids]})
)
MESSAGES = st.lists(st.one_of(WORDS, ACTS, RESULTS, ANTHROPIC_RESULTS), min_size=1, max_size=6)


def fresh(memory: Memory) -> Chat:
    return memory.chat(uuid4().hex)


@pytest.fixture
def two_memories(reopen: Callable[[], Memory]) -> tuple[Memory, Memory]:
    return reopen(), reopen()


@ON_A_DATABASE
@given(MESSAGES)
@example(
    [
        Message("assistant", calls=(ToolCall("t1", "find"), ToolCall("t2", "find"))),
        parse({"role": "user", "content": [result("t1", "41"), result("t2", "42")]}),
    ]
)
def test_what_was_said_is_stored_word_for_word_and_exported_the_same(
    memory: Memory, messages: list[Message]
) -> None:
    chat = fresh(memory)
    stored = chat.append(messages)
    assert chat.history() == stored
    copies = fresh(memory).append([json.loads(json.dumps(export(message))) for message in stored])
    assert copies == stored
    given = [
        (m.role, m.content.replace("\x00", "\ufffd"), m.name, m.calls, m.call_id, dict(m.meta))
        for m in messages
    ]
    assert [(m.role, m.content, m.name, m.calls, m.call_id, m.meta) for m in stored] == given


@ON_A_DATABASE
@given(st.lists(OBJECTS, min_size=1, max_size=5))
@example([{}])
@example([{"role": "user", "content": "hello"}])
@example([{"role": "user", "content": "other"}])
@example(
    [{"f": 0.1, "g": -0.0, "big": 10**400, "h": 5e-324, "i": float("inf"), "j": 1e22, "deep": [[[[{}]]]]}]
)
@example([{"\x00": "\x00", "\ud800": "\udfff\ud800", "e": "😀", "": {"": [""]}}])
def test_a_payload_comes_back_equal_from_another_memory(
    two_memories: tuple[Memory, Memory], raws: list[dict[str, object]]
) -> None:
    writer, reader = two_memories
    chat = fresh(writer)
    chat.append([Message("user", "hello", raw=raw) for raw in raws])
    assert [json.dumps(m.raw) for m in reader.chat(chat.id).history()] == [json.dumps(raw) for raw in raws]


def test_a_payload_is_any_mapping_stored_as_it_was_at_the_append(memory: Memory) -> None:
    chat = memory.chat("monday")
    mine: dict[str, object] = {"role": "user", "content": "hello", "tags": ["a"], "loss": float("nan")}
    chat.append(MappingProxyType(mine))
    mine["tags"] = ["b"]
    chat.append(role="user", content="hello")
    first, second = chat.history()
    assert str(first.raw) == "{'role': 'user', 'content': 'hello', 'tags': ['a'], 'loss': nan}"
    assert second.raw is None


@each("at", [datetime(1, 1, 1, tzinfo=EAST), datetime(9999, 12, 31, 23, tzinfo=WEST)])
def test_a_time_that_utc_does_not_have_is_refused(memory: Memory, at: datetime) -> None:
    with pytest.raises(InvalidInput, match="years 1 to 9999"):
        memory.chat("monday").append(role="user", content="hello", at=at)
    assert memory.chat("monday").history() == []


def test_a_time_may_be_text(memory: Memory) -> None:
    chat = memory.chat("monday")
    assert chat.append(role="user", content="hello", at="2026-03-01T12:00").at == NOON
    assert [hit.seq for hit in chat.search("hello", since="2026-03-01")] == [1]
    assert chat.search("hello", before="2026-03-01") == []
    with pytest.raises(InvalidInput, match="not a time"):
        chat.append(role="user", content="hello", at="noon")


@pytest.mark.parametrize("now", [NOON, datetime(2026, 3, 2, 2, tzinfo=EAST)])
def test_a_message_without_a_time_gets_that_of_the_clock(location: str, now: datetime) -> None:
    with Memory(location, clock=lambda: now) as memory:
        assert memory.chat("monday").append(role="user", content="hello").at == NOON
        assert memory.chat("monday").history()[0].at == NOON


@pytest.mark.slow
def test_ten_megabytes_come_back(memory: Memory) -> None:
    text = "Zürich 日本 😀\n" * 700_000
    memory.chat("monday").append({"role": "user", "content": text, "x": 1})
    message = memory.chat("monday").history()[0]
    assert message.content == text
    assert message.raw == {"role": "user", "content": text, "x": 1}


# Text that the databases store differently, or not at all


ASKED = {"role": "assistant", "tool_calls": [function('{"path": "a\\ud83d"}')]}
DIRTY: dict[str, object] = {"q\x00": ["\ud800", 1, {"deep": "\udfff"}]}
CLEAN = {"q\ufffd": ["\ufffd", 1, {"deep": "\ufffd"}]}


def user(content: str, **fields: object) -> dict[str, object]:
    return {"role": "user", "content": content, **fields}


@each(
    ("given", "fields"),
    [
        (Message("user", "a\x00b\ud800c"), {"content": "a\ufffdb\ufffdc", "raw": user("a\x00b\ud800c")}),
        *(
            (payload, {"raw": payload, "name": "n\ufffd", "id": "i\ufffd"})
            for payload in [user("a\x00\ud800", name="n\x00", id="i\ud800", **{"\udfff": ["\x00"]})]
        ),
        (Message("user", "hello \ud83d\ude00"), {"content": "hello 😀", "raw": None}),
        (
            Message("assistant", calls=(ToolCall("c1", "find", DIRTY),)),
            {
                "calls": (ToolCall("c1", "find", CLEAN),),
                "raw": {
                    "role": "assistant",
                    "content": "",
                    "calls": [{"id": "c1", "name": "find", "arguments": DIRTY}],
                },
            },
        ),
        (ASKED, {"calls": (ToolCall("c1", "find", {"path": "a\ufffd"}),), "raw": ASKED}),
    ],
)
def test_nul_and_lone_surrogates_are_replaced_and_stay_in_raw(
    memory: Memory, given: Message | dict[str, object], fields: dict[str, object]
) -> None:
    chat = memory.chat("monday")
    chat.append(given)
    message = chat.history()[-1]
    assert {name: getattr(message, name) for name in fields} == fields


# What cannot be stored


def circle() -> dict[str, object]:
    ring: dict[str, object] = {}
    ring["ring"] = [ring]
    return ring


def nested(levels: int) -> object:
    value: object = "core"
    for n in range(levels):
        value = [value] if n % 2 else {"in": value}
    return value


NOT_JSON: dict[str, Callable[[], object]] = {
    "a tuple beside NaN": lambda: [float("nan"), (1, 2)],
    "a set": lambda: {1},
    "numbers as keys": lambda: {1: 2},
    "a circle": circle,
    "201 levels": lambda: nested(201),
    "100,000 levels": lambda: nested(100_000),
    "a number of 5,000 digits": lambda: 10**5000,
}


@pytest.mark.slow
@each("kind", NOT_JSON)
def test_what_is_not_json_is_refused_and_leaves_nothing_behind(memory: Memory, kind: str) -> None:
    chat, no = memory.chat("monday"), {"x": NOT_JSON[kind]()}
    for message, what in (
        (user("hello", **no), "payload"),
        (Message("user", "hello", meta=no), "meta"),
        (Message("assistant", calls=(ToolCall("c1", "find", no),)), "arguments"),
    ):
        with pytest.raises(InvalidInput, match=what):
            chat.append([Message("user", "hello"), message])
    assert (chat.history(), memory.chats()) == ([], [])


def test_a_message_of_199_levels_can_be_read_from_deep_within_a_program(memory: Memory) -> None:
    memory.chat("monday").append(Message("user", "hello", raw={"x": nested(199)}))

    def read(depth: int) -> list[Message]:
        return read(depth - 1) if depth else memory.chat("monday").history()

    assert len(read(600)) == 1


NO_NAMES = ["a\nb", "a\x00b", "\ud800", "  ", "x" * 513, "é" * 257]


@each(
    "wrong",
    [
        *({"id": identity} for identity in (7, 0, *NO_NAMES)),
        *({"name": name} for name in (7, "a\x1bb", "x" * 513)),
        {"meta": [1]},
        {"raw": "text"},
        {"at": 1.5},
        {"role": "assistant", "calls": ["find"]},
        *({"role": "assistant", "calls": [ToolCall(no, "find")]} for no in ("c\x00", "c\ud800")),
        {"role": "assistant", "calls": [ToolCall("c1", "fi\x00nd")]},
        {"role": "assistant", "calls": [ToolCall("c1", "find", [1])]},  # type: ignore[arg-type]  # the case
    ],
)
def test_a_field_of_another_kind_is_refused(quick: Memory, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        quick.chat("monday").append(**({"role": "user", "content": "hello"} | wrong))


# What a message costs


def test_a_message_costs_what_the_counter_says(memory: Memory) -> None:
    chat = memory.chat("monday")
    assert chat.append(role="user", content="x" * 400).tokens == 104
    calls = [(ToolCall("c", "f", arguments),) for arguments in ({}, {"q": "x" * 400})]
    bare, full = chat.append([Message("assistant", calls=call) for call in calls])
    assert full.tokens - bare.tokens >= 100
    with Memory(":memory:", count_tokens=lambda text: 1000 * len(text.split())) as own:
        own.chat("monday").append(role="user", content="three little words")
        assert own.chat("monday").stats().stored_tokens == 3004
