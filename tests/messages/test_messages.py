"""Messages: what goes in, in any format, comes out word for word."""

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

from holdfast import Chat, InvalidInput, Memory, Message, ToolCall
from holdfast.messages import formats

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ON_A_DATABASE = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def content(*parts: object, role: str = "user") -> str:
    return formats.parse({"role": role, "content": list(parts)}).content


def calls(**fields: object) -> tuple[ToolCall, ...]:
    return formats.parse({"role": "assistant", "content": None, **fields}).calls


def function(arguments: object, **fields: object) -> dict[str, object]:
    return {"id": "c1", "type": "function", "function": {"name": "find", "arguments": arguments}, **fields}


def result(call: object, said: object) -> dict[str, object]:
    return {"type": "tool_result", "tool_use_id": call, "content": said}


def results_within_results(levels: int) -> object:
    said: object = "42"
    for _ in range(levels):
        said = [result("t1", said)]
    return said


# The OpenAI chat format


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant", "tool"])
def test_each_role_is_read(role: str) -> None:
    assert formats.parse({"role": role, "content": "hello"}).role == role


def test_the_payload_stays_as_raw() -> None:
    given = {"role": "user", "content": "hello", "anything": [1, {"else": None}]}
    assert formats.parse(given).raw == given


def test_text_parts_become_lines() -> None:
    assert content({"type": "text", "text": "one"}, {"type": "text", "text": "two"}) == "one\ntwo"


def test_a_plain_text_among_parts_is_a_part() -> None:
    assert content("one", {"type": "text", "text": "two"}) == "one\ntwo"


def test_a_part_without_a_type_is_read_by_its_text() -> None:
    assert content({"text": "hello"}) == "hello"


def test_text_with_annotations_is_its_value() -> None:
    assert content({"type": "text", "text": {"value": "hello", "annotations": []}}) == "hello"


@pytest.mark.parametrize("text", [None, "", {}])
def test_a_text_part_without_text_adds_nothing(text: object) -> None:
    assert content({"type": "text", "text": text}, {"type": "text", "text": "hello"}) == "hello"


@pytest.mark.parametrize(
    ("part", "placeholder"),
    [
        ({"type": "image_url", "image_url": {"url": "https://x.org/a/cat.png?size=2"}}, "[image: cat.png]"),
        ({"type": "image_url", "image_url": {"url": "https://x.org/"}}, "[image: x.org]"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, "[image: unnamed]"),
        ({"type": "input_image", "image_url": "https://x.org/dog.jpg"}, "[image: dog.jpg]"),
        ({"type": "input_image", "file_id": "file-7"}, "[image: file-7]"),
        ({"type": "file", "file": {"filename": "plan.pdf", "file_data": "data:;base64,AA"}}, "[file: plan.pdf]"),
        ({"type": "input_file", "file_url": "https://x.org/plan.pdf"}, "[file: plan.pdf]"),
        ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}, "[file: wav]"),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}, "[image: image/png]"),
        ({"type": "image", "source": {"type": "url", "url": "https://x.org/cat.png"}}, "[image: cat.png]"),
        ({"type": "image", "source": {"type": "file", "file_id": "file_1"}}, "[image: file_1]"),
        ({"type": "document", "title": "Plan", "source": {"type": "text", "data": "…"}}, "[file: Plan]"),
        ({"type": "document", "source": {"media_type": "application/pdf"}}, "[file: application/pdf]"),
        ({"type": "image"}, "[image: unnamed]"),
        ({"type": "hologram"}, "[hologram]"),
        ({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}, "[server_tool_use: web_search]"),
        ({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}, "[web_search_tool_result]"),
        ({"no": "type"}, "[part]"),
    ],
)  # fmt: skip
def test_what_is_not_text_becomes_a_placeholder(part: dict[str, object], placeholder: str) -> None:
    assert content(part) == placeholder


def test_placeholders_stand_where_their_parts_stood() -> None:
    before, image, after = (
        {"type": "text", "text": "look"},
        {"type": "image"},
        {"type": "text", "text": "nice?"},
    )
    assert content(before, image, after) == "look\n[image: unnamed]\nnice?"


def test_a_tool_call_is_read() -> None:
    assert calls(tool_calls=[function('{"q": "race"}')]) == (ToolCall("c1", "find", {"q": "race"}),)


def test_many_tool_calls_keep_their_order() -> None:
    assert [call.id for call in calls(tool_calls=[function("{}", id=f"c{n}") for n in range(5)])] == [
        "c0",
        "c1",
        "c2",
        "c3",
        "c4",
    ]


@pytest.mark.parametrize("text", ['{"q": ', "race", "[1, 2]", '"race"', "[" * 100_000, "1" * 10_000])
def test_arguments_that_are_no_object_stay_as_the_model_wrote_them(text: str) -> None:
    assert calls(tool_calls=[function(text)])[0].arguments == text


@pytest.mark.parametrize("nothing", [None, "", "  ", "{}", {}])
def test_no_arguments_are_an_empty_object(nothing: object) -> None:
    assert calls(tool_calls=[function(nothing)])[0].arguments == {}


def test_a_call_without_an_id_has_that_of_its_function() -> None:
    assert calls(tool_calls=[function("{}", id=None)])[0].id == "find"


def test_a_call_of_a_tool_that_takes_plain_text_is_read() -> None:
    custom = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    assert calls(tool_calls=[custom]) == (ToolCall("c1", "patch", "*** Begin"),)


def test_a_call_may_come_with_words() -> None:
    message = formats.parse({"role": "assistant", "content": "Let me see.", "tool_calls": [function("{}")]})
    assert (message.content, len(message.calls)) == ("Let me see.", 1)


def test_a_tool_result_names_its_call() -> None:
    message = formats.parse({"role": "tool", "tool_call_id": "c1", "content": "42"})
    assert (message.role, message.content, message.call_id) == ("tool", "42", "c1")


def test_a_tool_result_may_be_empty() -> None:
    assert formats.parse({"role": "tool", "tool_call_id": "c1", "content": ""}).content == ""


def test_a_tool_result_may_have_parts() -> None:
    assert content({"type": "text", "text": "42"}, role="tool") == "42"


def test_a_legacy_function_call_is_a_tool_call() -> None:
    assert calls(function_call={"name": "find", "arguments": "{}"}) == (ToolCall("find", "find", {}),)


def test_a_legacy_function_result_answers_the_call_of_its_name() -> None:
    message = formats.parse({"role": "function", "name": "find", "content": "42"})
    assert (message.role, message.call_id) == ("tool", "find")


def test_a_refusal_among_parts_is_text() -> None:
    assert content({"type": "refusal", "refusal": "I can't."}, role="assistant") == "I can't."


def test_a_refusal_beside_an_empty_content_is_the_content() -> None:
    assert formats.parse({"role": "assistant", "content": None, "refusal": "I can't."}).content == "I can't."


def test_a_refusal_of_none_beside_content_adds_nothing() -> None:
    assert formats.parse({"role": "assistant", "content": "Sure.", "refusal": None}).content == "Sure."


def test_a_spoken_answer_is_its_transcript() -> None:
    audio = {"id": "a1", "data": "AAAA", "transcript": "Sure."}
    assert formats.parse({"role": "assistant", "content": None, "audio": audio}).content == "Sure."


def test_a_spoken_answer_without_a_transcript_is_a_placeholder() -> None:
    assert (
        formats.parse({"role": "assistant", "content": None, "audio": {"id": "a1"}}).content
        == "[file: unnamed]"
    )


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_details", "thinking"])
def test_a_message_of_reasoning_beside_no_content_is_a_placeholder(field: str) -> None:
    assert formats.parse({"role": "assistant", "content": "\n\n", field: "Hm."}).content == formats.REASONING


def test_reasoning_beside_content_stays_in_raw_only() -> None:
    message = formats.parse({"role": "assistant", "content": "42", "reasoning_content": "Hm."})
    assert (message.content, message.raw) == (
        "42",
        {"role": "assistant", "content": "42", "reasoning_content": "Hm."},
    )


def test_reasoning_beside_calls_needs_no_placeholder() -> None:
    message = {"role": "assistant", "content": "", "reasoning": "Hm.", "tool_calls": [function("{}")]}
    assert formats.parse(message).content == ""


def test_answers_of_another_kind_are_nobodys_tool_results() -> None:
    message = formats.parse({"role": "user", "content": "Which one?", "answers": ["the first", "the second"]})
    assert message.answers == ()


def test_a_name_is_read() -> None:
    assert formats.parse({"role": "user", "name": "ada", "content": "hello"}).actor == "ada"


# OpenAI's Responses format


def test_a_message_item_is_read() -> None:
    item = {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "42"}],
    }
    message = formats.parse(item)
    assert (message.id, message.role, message.content) == ("m1", "assistant", "42")


def test_a_function_call_item_is_read() -> None:
    item = {"type": "function_call", "id": "f1", "call_id": "c1", "name": "find", "arguments": '{"q": 1}'}
    message = formats.parse(item)
    assert (message.id, message.role, message.calls) == (
        "f1",
        "assistant",
        (ToolCall("c1", "find", {"q": 1}),),
    )


@pytest.mark.parametrize("kind", [[], {}, 5])
def test_an_item_whose_type_is_no_text_is_refused(kind: object) -> None:
    with pytest.raises(InvalidInput, match="has no role"):
        formats.parse({"type": kind})


def test_the_function_of_a_call_item_is_not_who_speaks() -> None:
    item = {"type": "function_call", "call_id": "c1", "name": "find", "arguments": "{}"}
    assert formats.parse(item).actor == "assistant"


def test_a_custom_call_item_is_read() -> None:
    item = {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "*** Begin"}
    assert formats.parse(item).calls == (ToolCall("c1", "patch", "*** Begin"),)


@pytest.mark.parametrize("kind", ["function_call_output", "custom_tool_call_output"])
@pytest.mark.parametrize("output", ["42", [{"type": "output_text", "text": "42"}]])
def test_the_output_of_a_call_item_is_read(output: object, kind: str) -> None:
    message = formats.parse({"type": kind, "call_id": "c1", "output": output})
    assert (message.role, message.content, message.call_id) == ("tool", "42", "c1")


def test_a_reasoning_item_is_a_placeholder() -> None:
    item = {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "Hm."}]}
    assert formats.parse(item).content == formats.REASONING


# The Anthropic format


def test_a_tool_use_block_is_a_call() -> None:
    block = {"type": "tool_use", "id": "t1", "name": "find", "input": {"q": "race"}}
    message = formats.parse(
        {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, block]}
    )
    assert (message.content, message.calls) == ("Let me see.", (ToolCall("t1", "find", {"q": "race"}),))


def test_a_message_of_results_has_the_role_of_a_tool() -> None:
    message = formats.parse({"role": "user", "content": [result("t1", "42")]})
    assert (message.role, message.content, message.call_id) == ("tool", "42", "t1")


def test_many_results_in_one_message_answer_many_calls() -> None:
    message = formats.parse({"role": "user", "content": [result("t1", "41"), result("t2", "42")]})
    assert (message.content, message.answers) == ("41\n42", ("t1", "t2"))


@pytest.mark.parametrize("said", [None, "", []])
def test_a_result_may_say_nothing(said: object) -> None:
    assert formats.parse({"role": "user", "content": [result("t1", said)]}).content == ""


def test_a_result_without_content_says_nothing() -> None:
    block = {"type": "tool_result", "tool_use_id": "t1", "is_error": True}
    assert formats.parse({"role": "user", "content": [block]}).content == ""


def test_an_image_in_a_result_is_a_placeholder() -> None:
    image = {"type": "image", "source": {"media_type": "image/png"}}
    assert formats.parse({"role": "user", "content": [result("t1", [image])]}).content == "[image: image/png]"


def test_a_result_may_stand_in_a_result() -> None:
    message = formats.parse({"role": "user", "content": results_within_results(3)})
    assert (message.content, message.answers) == ("42", ("t1",))


def test_words_beside_a_result_are_kept() -> None:
    assert content(result("t1", "42"), {"type": "text", "text": "Go on."}) == "42\nGo on."


@pytest.mark.parametrize("kind", ["thinking", "redacted_thinking"])
def test_thoughts_stay_out_of_the_content(kind: str) -> None:
    assert (
        content({"type": kind, "thinking": "Hm."}, {"type": "text", "text": "42"}, role="assistant") == "42"
    )


@pytest.mark.parametrize("kind", ["thinking", "redacted_thinking"])
def test_a_message_of_thoughts_only_is_a_placeholder(kind: str) -> None:
    assert content({"type": kind, "data": "…"}, role="assistant") == formats.REASONING


def test_a_tool_that_the_provider_runs_is_no_call_to_answer() -> None:
    block = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "race"}}
    assert formats.parse({"role": "assistant", "content": [block]}).calls == ()


# Field names of Message, and times


@pytest.mark.parametrize("key", ["at", "timestamp", "created_at"])
@pytest.mark.parametrize(
    "value",
    [
        NOON,
        NOON.isoformat(),
        "2026-03-01T12:00:00Z",
        "2026-03-01T12:00:00",
        "2026-03-01T14:00:00+02:00",
        NOON.timestamp(),
        int(NOON.timestamp()) * 1000,
        NOON.replace(tzinfo=None),
    ],
)
def test_a_time_is_read(key: str, value: object) -> None:
    assert formats.parse({"role": "user", "content": "hello", key: value}).at == NOON


@pytest.mark.parametrize("nothing", [None, "", 0])
def test_no_time_is_no_time(nothing: object) -> None:
    assert formats.parse({"role": "user", "content": "hello", "at": nothing}).at is None


@pytest.mark.parametrize("value", ["yesterday", [2026], {"y": 2026}, 1e300, float("nan"), True, "2026-13-01"])
def test_what_is_no_time_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match="time"):
        formats.parse({"role": "user", "content": "hello", "at": value})


# What is no message


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"content": "hello"},
        {"role": None, "content": "hello"},
        {"role": "wizard", "content": "hello"},
        {"role": ["user"], "content": "hello"},
        {"role": 1, "content": "hello"},
        {"role": "USER", "content": "hello"},
        {"role": "user"},
        {"role": "user", "content": None},
        {"role": "user", "content": ""},
        {"role": "user", "content": " \n\t\u2003"},
        {"role": "user", "content": []},
        {"role": "user", "content": [{"type": "text", "text": ""}]},
        {"role": "user", "content": 42},
        {"role": "user", "content": b"hello"},
        {"role": "user", "content": {"type": "text", "text": "hello"}},
        {"role": "user", "content": [42]},
        {"role": "user", "content": [None]},
        {"role": "user", "content": "hello", "tool_calls": [function("{}")]},
        {"role": "user", "content": "hello", "call_id": "c1"},
        {"role": "user", "content": [{"type": "tool_use", "id": "t1", "name": "find", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "content": "42"}]},
        {"role": "user", "content": [result(7, "42")]},
        {"role": "assistant", "tool_calls": [{"id": "c1", "function": "find"}]},
        {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"arguments": "{}"}}]},
        {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": 7}}]},
        {"role": "assistant", "tool_calls": [function([1, 2])]},
        {"role": "assistant", "tool_calls": [function(42)]},
        {"role": "user", "content": "hello", "meta": [1]},
        {"role": "user", "content": "hello", "raw": [1]},
        {"type": "web_search_call", "id": "w1"},
        {"role": "user", "content": results_within_results(3000)},
    ],
)
def test_what_is_no_message_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        formats.parse(fields)


@pytest.mark.parametrize("thing", [None, "hello", 7, [("role", "user")], b"{}"])
def test_what_is_no_dict_is_refused(thing: Any) -> None:
    with pytest.raises(InvalidInput, match="dict"):
        formats.parse(thing)


@pytest.mark.parametrize(
    "fields",
    [
        {"role": "wizard", "content": "hello"},
        {"role": [], "content": "hello"},
        {"role": "user", "content": ""},
        {"role": "user", "content": "\n"},
        {"role": "user", "content": None},
        {"role": "user", "content": b"hello"},
        {"role": "user", "content": ["hello"]},
        {"role": "user", "content": "hello", "calls": (ToolCall("c1", "find"),)},
        {"role": "system", "content": "hello", "call_id": "c1"},
        {"role": "user", "content": "hello", "answers": ("c1",)},
        {"role": "user", "content": "hello", "at": "2026-03-01"},
    ],
)
def test_a_message_that_does_not_fit_cannot_be_made(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Message(**fields)


@pytest.mark.parametrize("blank", ["\u200b", "\ufeff", "\x01", "."])
def test_a_message_of_anything_but_white_space_can_be_made(blank: str) -> None:
    assert Message("user", blank).content == blank


# Messages for models


def openai(*parts: object, role: str = "user") -> list[dict[str, object]]:
    return formats.to_openai(formats.parse({"role": role, "content": list(parts)}))


def test_words_are_written_for_a_model() -> None:
    message = Message("user", "hello", name="ada")
    assert formats.to_openai(message) == [{"role": "user", "content": "hello", "name": "ada"}]


def test_calls_are_written_for_a_model() -> None:
    calls = (ToolCall("c1", "find", {"q": "Zürich"}), ToolCall("c2", "find", "{broken"))
    (written,) = formats.to_openai(Message("assistant", "", calls=calls))
    assert formats.parse(written).calls == calls


def test_a_message_of_many_results_is_written_as_one_for_each_call() -> None:
    assert openai(result("t1", "41"), result("t2", [{"type": "text", "text": "42"}])) == [
        {"role": "tool", "tool_call_id": "t1", "content": "41"},
        {"role": "tool", "tool_call_id": "t2", "content": "42"},
    ]


def test_words_beside_many_results_are_written_after_them() -> None:
    written = openai(result("t1", "41"), {"type": "text", "text": "Go on."}, result("t2", "42"))
    assert written[2:] == [{"role": "user", "content": "Go on."}]


def test_thoughts_are_not_written_for_a_model() -> None:
    assert openai({"type": "thinking", "thinking": "Hm."}, role="assistant") == []


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
    Message, st.sampled_from(["system", "developer", "user"]), TEXTS, name=st.none() | NAMES, at=st.none() | TIMES, raw=RAWS, meta=OBJECTS
)  # fmt: skip
ACTS = st.builds(Message, st.just("assistant"), TEXTS | st.just(""), calls=st.lists(CALLS, min_size=1, max_size=3).map(tuple), raw=RAWS, at=st.none() | TIMES)  # fmt: skip
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
    memory.chat("monday").append(role="user", content="hello", raw={"loss": float("nan")})
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


@settings(max_examples=50, deadline=None)
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


@pytest.mark.parametrize("kind", NOT_JSON)
def test_a_payload_that_is_not_json_is_refused(kind: str) -> None:
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match="payload"):
        memory.chat("monday").append({"role": "user", "content": "hello", "x": NOT_JSON[kind]()})


@pytest.mark.parametrize("kind", NOT_JSON)
def test_meta_that_is_not_json_is_refused(kind: str) -> None:
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match="meta"):
        memory.chat("monday").append(role="user", content="hello", meta={"x": NOT_JSON[kind]()})


@pytest.mark.parametrize("kind", NOT_JSON)
def test_arguments_that_are_not_json_are_refused(kind: str) -> None:
    call = ToolCall("c1", "find", {"x": NOT_JSON[kind]()})
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match="arguments"):
        memory.chat("monday").append(role="assistant", calls=[call])


@pytest.mark.parametrize("kind", ["a tuple", "a set", "100,000 levels"])
def test_a_refused_message_leaves_nothing_behind(memory: Memory, kind: str) -> None:
    with pytest.raises(InvalidInput):
        memory.chat("monday").append(
            [Message("user", "hello"), Message("user", "x", raw={"x": NOT_JSON[kind]()})]
        )
    assert (memory.chat("monday").history(), memory.chats()) == ([], [])


def test_a_message_of_199_levels_can_be_read_from_deep_within_a_program(memory: Memory) -> None:
    memory.chat("monday").append(role="user", content="hello", raw={"x": nested(199)})

    def read(depth: int) -> list[Message]:
        return read(depth - 1) if depth else memory.chat("monday").history()

    assert len(read(600)) == 1


def test_many_values_side_by_side_are_not_deep() -> None:
    wide: dict[str, object] = {"x": [{"y": []} for _ in range(500)]}
    with Memory(":memory:") as memory:
        assert memory.chat("monday").append(role="user", content="hello", raw=wide).raw == wide


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("field", ["id", "name"])
@pytest.mark.parametrize("value", ["a\nb", "x" * 513, "日" * 171])
def test_a_name_in_a_payload_that_does_not_fit_is_refused(field: str, value: str) -> None:
    with Memory(":memory:") as memory, pytest.raises(InvalidInput):
        memory.chat("monday").append({"role": "user", "content": "hello", field: value})


@pytest.mark.parametrize(
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
    bare, full = chat.append([Message("assistant", calls=(ToolCall("c", "f", arguments),)) for arguments in ({}, {"q": "x" * 400})])  # fmt: skip
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
