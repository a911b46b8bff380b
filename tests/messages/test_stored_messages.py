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
from holdfast.messages import formats
from soak import cases
from tables import each

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
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
    lambda ids: formats.parse({"role": "user", "content": [result(call, f"of {call}") for call in ids]})
)
MESSAGES = st.lists(st.one_of(WORDS, ACTS, RESULTS, ANTHROPIC_RESULTS), min_size=1, max_size=6)


def fresh(memory: Memory) -> Chat:
    return memory.chat(uuid4().hex)


@pytest.fixture
def two_memories(reopen: Callable[[], Memory]) -> tuple[Memory, Memory]:
    return reopen(), reopen()


@ON_A_DATABASE
@given(MESSAGES)
def test_append_returns_what_history_returns(memory: Memory, messages: list[Message]) -> None:
    chat = fresh(memory)
    assert chat.append(messages) == chat.history()


@ON_A_DATABASE
@given(MESSAGES)
def test_what_was_said_is_stored_word_for_word(memory: Memory, messages: list[Message]) -> None:
    stored = fresh(memory).append(messages)
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


@ON_A_DATABASE
@given(MESSAGES)
def test_exported_messages_are_the_same_in_another_chat(memory: Memory, messages: list[Message]) -> None:
    stored = fresh(memory).append(messages)
    copies = fresh(memory).append([json.loads(json.dumps(formats.export(message))) for message in stored])
    assert copies == stored


def test_exported_answers_to_many_calls_are_the_same_in_another_chat(memory: Memory) -> None:
    calls = Message("assistant", calls=(ToolCall("t1", "find"), ToolCall("t2", "find")))
    given: list[Message | dict[str, object]] = [
        calls,
        {"role": "user", "content": [result("t1", "41"), result("t2", "42")]},
    ]
    stored = memory.chat("one").append(given)
    copies = memory.chat("two").append([formats.export(message) for message in stored])
    assert copies[1].answers == ("t1", "t2")


def test_nan_in_a_payload_comes_back(memory: Memory) -> None:
    memory.chat("monday").append(Message("user", "hello", raw={"loss": float("nan")}))
    assert str(memory.chat("monday").history()[0].raw) == "{'loss': nan}"


def test_a_payload_may_be_any_mapping(memory: Memory) -> None:
    memory.chat("monday").append(MappingProxyType({"role": "user", "content": "hello", "x": 1}))
    assert memory.chat("monday").history()[0].raw == {"role": "user", "content": "hello", "x": 1}


def test_a_message_without_a_payload_has_none(memory: Memory) -> None:
    memory.chat("monday").append(role="user", content="hello")
    assert memory.chat("monday").history()[0].raw is None


def test_a_payload_is_stored_as_it_was_at_the_append(memory: Memory) -> None:
    mine: dict[str, object] = {"role": "user", "content": "hello", "tags": ["a"]}
    memory.chat("monday").append(mine)
    mine["tags"] = ["b"]
    assert memory.chat("monday").history()[0].raw == {"role": "user", "content": "hello", "tags": ["a"]}


@pytest.mark.parametrize(
    "at",
    [
        datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC),
        datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=-7, minutes=-30))),
        NOON.replace(tzinfo=None),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    ],
)
def test_a_time_comes_back_to_the_microsecond(memory: Memory, at: datetime) -> None:
    memory.chat("monday").append(role="user", content="hello", at=at)
    assert memory.chat("monday").history()[0].at == (at if at.tzinfo else at.replace(tzinfo=UTC))


@settings(max_examples=cases(12, 150))
@given(st.lists(st.integers(0, 2**52 + 10**12), min_size=50, max_size=50, unique=True))
def test_no_microsecond_is_lost(micros: list[int]) -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    times = [epoch + timedelta(microseconds=each) for each in micros]
    with Memory(":memory:") as memory:
        memory.chat("monday").append([Message("user", "hello", at=at) for at in times])
        assert [message.at for message in memory.chat("monday").history()] == times


@pytest.mark.parametrize(
    "at",
    [
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
        datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-2))),
    ],
)
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


def test_a_message_without_a_time_gets_that_of_the_clock(location: str) -> None:
    with Memory(location, clock=lambda: NOON) as memory:
        assert memory.chat("monday").append(role="user", content="hello").at == NOON


def test_a_clock_may_tell_another_zone(location: str) -> None:
    zone = timezone(timedelta(hours=5))
    with Memory(location, clock=lambda: datetime(2026, 3, 1, 17, tzinfo=zone)) as memory:
        memory.chat("monday").append(role="user", content="hello")
        assert memory.chat("monday").history()[0].at == NOON


@pytest.mark.slow
def test_ten_megabytes_come_back(memory: Memory) -> None:
    text = "Zürich 日本 😀\n" * 700_000
    memory.chat("monday").append({"role": "user", "content": text, "x": 1})
    message = memory.chat("monday").history()[0]
    assert message.content == text
    assert message.raw == {"role": "user", "content": text, "x": 1}


# Text that the databases store differently, or not at all


def test_nul_and_lone_surrogates_in_content_are_replaced(memory: Memory) -> None:
    memory.chat("monday").append(role="user", content="a\x00b\ud800c")
    assert memory.chat("monday").history()[0].content == "a\ufffdb\ufffdc"


def test_the_words_before_the_replacement_stay_in_raw(memory: Memory) -> None:
    memory.chat("monday").append(role="user", content="a\x00b\ud800c")
    assert memory.chat("monday").history()[0].raw == {"role": "user", "content": "a\x00b\ud800c"}


def test_a_payload_with_nul_and_lone_surrogates_stays_as_it_is(memory: Memory) -> None:
    given = {"role": "user", "content": "a\x00\ud800", "name": "n\x00", "id": "i\ud800", "\udfff": ["\x00"]}
    memory.chat("monday").append(given)
    assert memory.chat("monday").history()[0].raw == given


def test_names_and_ids_in_a_payload_are_cleaned(memory: Memory) -> None:
    memory.chat("monday").append({"role": "user", "content": "hello", "name": "n\x00", "id": "i\ud800"})
    message = memory.chat("monday").history()[0]
    assert (message.name, message.id) == ("n\ufffd", "i\ufffd")


def test_the_halves_of_a_pair_in_content_are_joined(memory: Memory) -> None:
    memory.chat("monday").append(role="user", content="hello \ud83d\ude00")
    message = memory.chat("monday").history()[0]
    assert (message.content, message.raw) == ("hello 😀", None)


def test_halves_of_a_pair_beside_a_nul_are_joined_in_raw(memory: Memory) -> None:
    memory.chat("monday").append(role="user", content="\x00\ud83d\ude00")
    assert memory.chat("monday").history()[0].raw == {"role": "user", "content": "\x00😀"}


def test_the_halves_of_a_pair_in_a_payload_are_refused_with_the_reason(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="surrogates"):
        memory.chat("monday").append({"role": "user", "content": "hello \ud83d\ude00"})


def test_nul_and_lone_surrogates_in_the_arguments_of_a_call_are_replaced(memory: Memory) -> None:
    given: dict[str, object] = {"q\x00": ["\ud800", 1, {"deep": "\udfff"}]}
    memory.chat("monday").append(role="assistant", calls=[ToolCall("c1", "find", given)])
    message = memory.chat("monday").history()[0]
    assert message.calls == (ToolCall("c1", "find", {"q\ufffd": ["\ufffd", 1, {"deep": "\ufffd"}]}),)
    assert message.raw == {
        "role": "assistant",
        "content": "",
        "calls": [{"id": "c1", "name": "find", "arguments": given}],
    }


def test_the_arguments_before_the_replacement_stay_in_the_payload(memory: Memory) -> None:
    given = {"role": "assistant", "tool_calls": [function('{"path": "a\\ud83d"}')]}
    memory.chat("monday").append(given)
    message = memory.chat("monday").history()[0]
    assert (message.calls[0].arguments, message.raw) == ({"path": "a\ufffd"}, given)


def test_the_halves_of_a_pair_in_arguments_are_joined(memory: Memory) -> None:
    memory.chat("monday").append(role="assistant", calls=[ToolCall("c1", "find", {"q": "\ud83d\ude00"})])
    message = memory.chat("monday").history()[0]
    assert (message.calls[0].arguments, message.raw) == ({"q": "😀"}, None)


@pytest.mark.parametrize(
    "call", [ToolCall("c\x00", "find"), ToolCall("c\ud800", "find"), ToolCall("c1", "fi\x00nd")]
)
def test_nul_and_surrogates_in_the_name_of_a_call_are_refused(memory: Memory, call: ToolCall) -> None:
    with pytest.raises(InvalidInput, match="tool call"):
        memory.chat("monday").append(role="assistant", calls=[call])


def test_the_names_of_calls_in_a_payload_are_cleaned(memory: Memory) -> None:
    memory.chat("monday").append({"role": "assistant", "tool_calls": [function("{}", id="c\x00")]})
    memory.chat("monday").append({"role": "tool", "tool_call_id": "c\x00", "content": "42"})
    assert memory.chat("monday").history()[1].answers == ("c\ufffd",)


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
    "a tuple": lambda: (1, 2),
    "a tuple beside NaN": lambda: [float("nan"), (1, 2)],
    "a tuple beside the word NaN": lambda: ["NaN", (1, 2)],
    "a set": lambda: {1},
    "bytes": lambda: b"hello",
    "numbers as keys": lambda: {1: 2},
    "a number as key beside NaN": lambda: {"NaN": {1: 2}},
    "None as key": lambda: {None: 2},
    "a tuple as key": lambda: {(1, 2): 3},
    "an object": object,
    "a complex number": lambda: 1j,
    "a time": lambda: NOON,
    "a circle": circle,
    "201 levels": lambda: nested(201),
    "100,000 levels": lambda: nested(100_000),
    "a number of 5,000 digits": lambda: 10**5000,
}


@pytest.mark.slow
@each("kind", NOT_JSON)
def test_a_payload_that_is_not_json_is_refused(kind: str) -> None:
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match="payload"):
        memory.chat("monday").append({"role": "user", "content": "hello", "x": NOT_JSON[kind]()})


@pytest.mark.slow
@each("kind", NOT_JSON)
def test_meta_that_is_not_json_is_refused(kind: str) -> None:
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match="meta"):
        memory.chat("monday").append(role="user", content="hello", meta={"x": NOT_JSON[kind]()})


@each("kind", NOT_JSON)
def test_arguments_that_are_not_json_are_refused(kind: str) -> None:
    call = ToolCall("c1", "find", {"x": NOT_JSON[kind]()})
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match="arguments"):
        memory.chat("monday").append(role="assistant", calls=[call])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["a tuple", "a set", "100,000 levels"])
def test_a_refused_message_leaves_nothing_behind(memory: Memory, kind: str) -> None:
    with pytest.raises(InvalidInput):
        memory.chat("monday").append(
            [Message("user", "hello"), Message("user", "x", raw={"x": NOT_JSON[kind]()})]
        )
    assert (memory.chat("monday").history(), memory.chats()) == ([], [])


def test_a_message_of_199_levels_can_be_read_from_deep_within_a_program(memory: Memory) -> None:
    memory.chat("monday").append(Message("user", "hello", raw={"x": nested(199)}))

    def read(depth: int) -> list[Message]:
        return read(depth - 1) if depth else memory.chat("monday").history()

    assert len(read(600)) == 1


def test_many_values_side_by_side_are_not_deep() -> None:
    wide: dict[str, object] = {"x": [{"y": []} for _ in range(500)]}
    with Memory(":memory:") as memory:
        assert memory.chat("monday").append(Message("user", "hello", raw=wide)).raw == wide


@each(
    "fields",
    [
        {"id": 7},
        {"id": 0},
        {"id": "a\nb"},
        {"id": "a\x00b"},
        {"id": "\ud800"},
        {"id": "  "},
        {"id": "x" * 513},
        {"id": "é" * 257},
        {"name": 7},
        {"name": "a\x1bb"},
        {"name": "x" * 513},
        {"meta": [1]},
        {"meta": "text"},
        {"raw": [1]},
        {"raw": "text"},
        {"at": 1.5},
    ],
)
def test_a_field_of_another_kind_is_refused(fields: dict[str, Any]) -> None:
    with Memory(":memory:") as memory, pytest.raises(InvalidInput):
        memory.chat("monday").append(role="user", content="hello", **fields)


@each("field", ["id", "name"])
@each("value", ["a\nb", "x" * 513, "日" * 171])
def test_a_name_in_a_payload_that_does_not_fit_is_refused(field: str, value: str) -> None:
    with Memory(":memory:") as memory, pytest.raises(InvalidInput):
        memory.chat("monday").append({"role": "user", "content": "hello", field: value})


@each(
    "calls",
    [
        ["find"],
        [("c1", "find", {})],
        [ToolCall(7, "find")],  # type: ignore[arg-type]
        [ToolCall("c1", None)],  # type: ignore[arg-type]
        [ToolCall("c1", "find", [1])],  # type: ignore[arg-type]
        [ToolCall("c1", "find", None)],  # type: ignore[arg-type]
    ],
)
def test_what_is_no_call_is_refused(calls: Any) -> None:
    with Memory(":memory:") as memory, pytest.raises(InvalidInput):
        memory.chat("monday").append(role="assistant", calls=calls)


@pytest.mark.parametrize("fields", [{"calls": [ToolCall("c1", "find")]}, {"role": "tool", "answers": ["c1"]}])
def test_a_message_with_a_list_for_a_tuple_is_refused(fields: dict[str, Any]) -> None:
    message = Message(**{"role": "assistant", "content": "hello", **fields})
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match="tuple"):
        memory.chat("monday").append(message)


# What a message costs


def test_the_stored_tokens_are_the_estimate(memory: Memory) -> None:
    assert memory.chat("monday").append(role="user", content="x" * 400).tokens == 104


def test_the_arguments_of_a_call_cost_tokens(memory: Memory) -> None:
    chat = memory.chat("monday")
    bare, full = chat.append([Message("assistant",
                calls=(ToolCall("c", "f", arguments),)) for arguments in ({}, {"q": "x" * 400})])  # fmt: skip
    assert full.tokens - bare.tokens >= 100


def test_a_counter_of_ones_own_replaces_the_estimate(location: str) -> None:
    with Memory(location, count_tokens=lambda text: 1000 * len(text.split())) as memory:
        memory.chat("monday").append(role="user", content="three little words")
        assert memory.chat("monday").stats().stored_tokens == 3004


@pytest.mark.parametrize("counted", [1.5, -100, "5", None])
def test_a_counter_that_does_not_count_is_refused(location: str, counted: Any) -> None:
    with Memory(location, count_tokens=lambda _: counted) as memory:
        with pytest.raises((InvalidInput, TypeError)):
            memory.chat("monday").append(role="user", content="hello")
        assert memory.chat("monday").history() == []


def test_a_counter_that_fails_stores_nothing(location: str) -> None:
    def fail(_: str) -> int:
        raise RuntimeError("no tokenizer")

    with Memory(location, count_tokens=fail) as memory:
        with pytest.raises(RuntimeError, match="no tokenizer"):
            memory.chat("monday").append(role="user", content="hello")
        assert memory.chat("monday").history() == []
