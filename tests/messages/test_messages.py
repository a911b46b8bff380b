"""Messages: what goes in, in any format, comes out word for word."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from payloads import function, result

from holdfast import InvalidInput, Message, ToolCall
from holdfast.messages import formats
from holdfast.messages.openai import to_openai
from tables import each

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def content(*parts: object, role: str = "user") -> str:
    return formats.parse({"role": role, "content": list(parts)}).content


def calls(**fields: object) -> tuple[ToolCall, ...]:
    return formats.parse({"role": "assistant", "content": None, **fields}).calls


def results_within_results(levels: int) -> object:
    said: object = "42"
    for _ in range(levels):
        said = [result("t1", said)]
    return said


# The OpenAI chat format


@each("role", ["system", "developer", "user", "assistant", "tool"])
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


@each(
    ("part", "placeholder"),
    [
        ({"type": "image_url", "image_url": {"url": "https://x.org/a/cat.png?size=2"}}, "[image: cat.png]"),
        ({"type": "image_url", "image_url": {"url": "https://x.org/"}}, "[image: x.org]"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, "[image: unnamed]"),
        ({"type": "input_image", "image_url": "https://x.org/dog.jpg"}, "[image: dog.jpg]"),
        ({"type": "input_image", "file_id": "file-7"}, "[image: file-7]"),
        ({"type": "file", "file": {"filename": "plan.pdf", "file_data": "data:;base64,AA"}},
            "[file: plan.pdf]"),
        ({"type": "input_file", "file_url": "https://x.org/plan.pdf"}, "[file: plan.pdf]"),
        ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}, "[file: wav]"),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}},
            "[image: image/png]"),
        ({"type": "image", "source": {"type": "url", "url": "https://x.org/cat.png"}}, "[image: cat.png]"),
        ({"type": "image", "source": {"type": "file", "file_id": "file_1"}}, "[image: file_1]"),
        ({"type": "document", "title": "Plan", "source": {"type": "text", "data": "…"}}, "[file: Plan]"),
        ({"type": "document", "source": {"media_type": "application/pdf"}}, "[file: application/pdf]"),
        ({"type": "image"}, "[image: unnamed]"),
        ({"type": "hologram"}, "[hologram]"),
        ({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
            "[server_tool_use: web_search]"),
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


@each("text", ['{"q": ', "race", "[1, 2]", '"race"', "[" * 100_000, "1" * 10_000])
def test_arguments_that_are_no_object_stay_as_the_model_wrote_them(text: str) -> None:
    assert calls(tool_calls=[function(text)])[0].arguments == text


@each("nothing", [None, "", "  ", "{}", {}])
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


@each("field", ["reasoning_content", "reasoning", "reasoning_details", "thinking"])
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


@each("kind", ["function_call_output", "custom_tool_call_output"])
@each("output", ["42", [{"type": "output_text", "text": "42"}]])
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


@each("key", ["at", "timestamp", "created_at"])
@each(
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


@each("value", ["yesterday", [2026], {"y": 2026}, 1e300, float("nan"), True, "2026-13-01"])
def test_what_is_no_time_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match="time"):
        formats.parse({"role": "user", "content": "hello", "at": value})


# What is no message


@each(
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


@each("thing", [None, "hello", 7, [("role", "user")], b"{}"])
def test_what_is_no_dict_is_refused(thing: Any) -> None:
    with pytest.raises(InvalidInput, match="dict"):
        formats.parse(thing)


@each(
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


@each("blank", ["\u200b", "\ufeff", "\x01", "."])
def test_a_message_of_anything_but_white_space_can_be_made(blank: str) -> None:
    assert Message("user", blank).content == blank


# Messages for models


def openai(*parts: object, role: str = "user") -> list[dict[str, object]]:
    return to_openai(formats.parse({"role": role, "content": list(parts)}))


def test_words_are_written_for_a_model() -> None:
    message = Message("user", "hello", name="ada")
    assert to_openai(message) == [{"role": "user", "content": "hello", "name": "ada"}]


def test_calls_are_written_for_a_model() -> None:
    calls = (ToolCall("c1", "find", {"q": "Zürich"}), ToolCall("c2", "find", "{broken"))
    (written,) = to_openai(Message("assistant", "", calls=calls))
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
