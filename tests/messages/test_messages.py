"""Messages: what goes in, in any format, comes out word for word."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from payloads import function, result

from holdfast import InvalidInput, Message, ToolCall
from holdfast.port.formats import REASONING, parse, to_openai
from tables import each

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOTHING: list[Any] = [None, "", {}]
HELLO = {"type": "text", "text": "hello"}
FIND = ToolCall("c1", "find", {"q": 1})
USE = {"type": "tool_use", "id": "c1", "name": "find", "input": {"q": 1}}
CALL_ITEM = {"type": "function_call", "id": "f1", "call_id": "c1", "name": "find", "arguments": '{"q": 1}'}


def content(*parts: object, role: str = "user") -> str:
    return parse({"role": role, "content": list(parts)}).content


def results_within_results(levels: int) -> object:
    said: object = "42"
    for _ in range(levels):
        said = [result("t1", said)]
    return said


# What is read


@each(
    ("parts", "text"),
    [
        ([HELLO, {"type": "text", "text": "two"}], "hello\ntwo"),
        ([{"type": "text", "text": {"value": "hello", "annotations": []}}], "hello"),
        *(([{"type": "text", "text": text}, HELLO], "hello") for text in NOTHING),
        ([HELLO, {"type": "image"}, {"type": "text", "text": "nice?"}], "hello\n[image: unnamed]\nnice?"),
        ([result("t1", "42"), HELLO], "42\nhello"),
        # Thoughts stay out of the content, where there is any.
        *(([{"type": kind, "data": "…"}, HELLO], "hello") for kind in ("thinking", "redacted_thinking")),
        *(([{"type": kind, "data": "…"}], REASONING) for kind in ("thinking", "redacted_thinking")),
    ],
)
def test_the_parts_of_a_content_become_lines(parts: list[object], text: str) -> None:
    assert content(*parts) == text
    assert content(*parts, role="assistant") == text


@each(
    ("part", "placeholder"),
    [
        ({"type": "image_url", "image_url": {"url": "https://x.org/a/cat.png?size=2"}}, "[image: cat.png]"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, "[image: unnamed]"),
        ({"type": "file", "file": {"filename": "plan.pdf", "file_data": "data:;base64,AA"}},
            "[file: plan.pdf]"),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}},
            "[image: image/png]"),
        ({"type": "document", "title": "Plan", "source": {"type": "text", "data": "…"}}, "[file: Plan]"),
        ({"type": "document", "source": {"media_type": "application/pdf"}}, "[file: application/pdf]"),
        ({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
            "[server_tool_use: web_search]"),
        ({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}, "[web_search_tool_result]"),
        ({"no": "type"}, "[part]"),
    ],
)  # fmt: skip
def test_what_is_not_text_becomes_a_placeholder(part: dict[str, object], placeholder: str) -> None:
    assert content(part) == placeholder
    assert content(result("t1", [part])) == placeholder
    assert parse({"role": "assistant", "content": [part]}).calls == ()


def asks(**fields: object) -> dict[str, object]:
    return {"role": "assistant", "content": None, **fields}


READ: list[tuple[Any, dict[str, Any]]] = [
    *(({"role": role, "content": "x"}, {"role": role}) for role in "system developer user assistant".split()),
    ({"role": "user", "name": "ada", "content": "hello"}, {"actor": "ada"}),
    # Calls
    (asks(tool_calls=[function('{"q": 1}')]), {"calls": (FIND,), "content": ""}),
    *(
        (asks(tool_calls=[function(text)]), {"calls": (ToolCall("c1", "find", text),)})
        for text in ('{"q": ', "race", "[1, 2]", '"race"', "[" * 100_000, "1" * 10_000)
    ),
    *(
        (asks(tool_calls=[function(nothing)]), {"calls": (ToolCall("c1", "find", {}),)})
        for nothing in (*NOTHING, "  ", "{}")
    ),
    (asks(tool_calls=[function("{}", id=None)]), {"calls": (ToolCall("find", "find", {}),)}),
    (
        asks(tool_calls=[{"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}]),
        {"calls": (ToolCall("c1", "patch", "*** Begin"),)},
    ),
    (asks(function_call={"name": "find", "arguments": "{}"}), {"calls": (ToolCall("find", "find", {}),)}),
    (asks(content=[HELLO, USE]), {"content": "hello", "calls": (FIND,)}),
    (CALL_ITEM, {"id": "f1", "role": "assistant", "actor": "assistant", "calls": (FIND,)}),
    # Results
    *(
        (
            {"role": "tool", "tool_call_id": "c1", "content": said},
            {"role": "tool", "content": text, "call_id": "c1"},
        )
        for said, text in (("42", "42"), ("", ""), ([HELLO], "hello"))
    ),
    ({"role": "function", "name": "find", "content": "42"}, {"role": "tool", "call_id": "find"}),
    *(
        (
            {"type": kind, "call_id": "c1", "output": output},
            {"role": "tool", "content": "42", "call_id": "c1"},
        )
        for kind in ("function_call_output", "custom_tool_call_output")
        for output in ("42", [{"type": "output_text", "text": "42"}])
    ),
    (
        {"role": "user", "content": [result("t1", "41"), result("t2", "42")]},
        {"role": "tool", "content": "41\n42", "call_id": "t1", "answers": ("t1", "t2")},
    ),
    ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]}, {"content": ""}),
    ({"role": "user", "content": results_within_results(3)}, {"content": "42", "answers": ("t1",)}),
    # What stands beside the content
    (asks(refusal="I can't."), {"content": "I can't."}),
    (asks(audio={"id": "a1", "data": "AAAA", "transcript": "Sure."}), {"content": "Sure."}),
    (asks(audio={"id": "a1"}), {"content": "[file: unnamed]"}),
    *(
        (asks(content="\n\n", **{field: "Hm."}), {"content": REASONING})
        for field in ("reasoning_content", "reasoning", "reasoning_details", "thinking")
    ),
    (asks(content="", reasoning="Hm.", tool_calls=[function("{}")]), {"content": ""}),
    (
        {
            "type": "message",
            "id": "m1",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "42"}],
        },
        {"id": "m1", "role": "assistant", "content": "42"},
    ),
]


@each(("payload", "fields"), READ)
def test_a_message_is_read_and_its_payload_stays_as_raw(
    payload: dict[str, object], fields: dict[str, object]
) -> None:
    message = parse(payload)
    assert {name: getattr(message, name) for name in fields} == fields
    assert message.raw == payload


@each("key", ["at", "timestamp", "created_at"])
@each(
    ("value", "at"),
    [
        *(
            (value, NOON)
            for value in [
                NOON,
                "2026-03-01T12:00:00Z",
                "2026-03-01T14:00:00+02:00",
                NOON.timestamp(),
                NOON.replace(tzinfo=None),
            ]
        ),
        *((nothing, None) for nothing in (None, "", 0)),
    ],
)
def test_a_time_is_read(key: str, value: object, at: datetime | None) -> None:
    assert parse({"role": "user", "content": "hello", key: value}).at == at


# What is no message


@each(
    ("payload", "what"),
    [
        *(({"role": "user", "content": "hello", "at": no}, "time")
            for no in ["yesterday", [2026], {"y": 2026}, 1e300, float("nan"), True, "2026-13-01"]),
        *((thing, "dict") for thing in [None, "hello", 7, [("role", "user")], b"{}"]),
        *(({"type": kind}, "has no role") for kind in [[], {}, 5, "web_search_call"]),
        ({}, "has no role"),
        *(({"role": role, "content": "hello"}, None) for role in [None, "wizard", ["user"], 1, "USER"]),
        ({"role": "user"}, None),
        *(({"role": "user", "content": no}, None)
            for no in [None, "", " \n\t\u2003", [], [{"text": ""}], 42, b"hello", HELLO, [42], [None]]),
        ({"role": "user", "content": "hello", "tool_calls": [function("{}")]}, None),
        ({"role": "user", "content": "hello", "call_id": "c1"}, None),
        ({"role": "user", "content": [USE]}, None),
        ({"role": "user", "content": [{"type": "tool_result", "content": "42"}]}, None),
        ({"role": "user", "content": [result(7, "42")]}, None),
        *((asks(tool_calls=[{"id": "c1", "function": no}]), None)
            for no in ["find", {"arguments": "{}"}, {"name": 7}]),
        *((asks(tool_calls=[function(no)]), None) for no in [[1, 2], 42]),
        ({"role": "user", "content": "hello", "meta": [1]}, None),
        ({"role": "user", "content": "hello", "raw": [1]}, None),
        ({"role": "user", "content": results_within_results(3000)}, None),
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused(payload: Any, what: str | None) -> None:
    with pytest.raises(InvalidInput, match=what):
        parse(payload)


@each(
    "fields",
    [
        *({"role": role} for role in ("wizard", ["user"])),
        *({"content": content} for content in ("", "\n", None, b"hello", ["hello"])),
        {"calls": (ToolCall("c1", "find"),)},
        {"role": "system", "call_id": "c1"},
        {"answers": ("c1",)},
        {"at": "2026-03-01"},
    ],
)
def test_a_message_that_does_not_fit_cannot_be_made(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Message(**({"role": "user", "content": "hello"} | fields))


# Messages for models


CALLS = (ToolCall("c1", "find", {"q": "Zürich"}), ToolCall("c2", "find", "{broken"))
OPEN = {"role": "tool", "tool_call_id": "t1", "content": "41"}


@each(
    ("message", "written"),
    [
        (Message("user", "hello", name="ada"), [{"role": "user", "content": "hello", "name": "ada"}]),
        # Words beside results are written after them.
        (
            parse({"role": "user", "content": [result("t1", "41"), HELLO, result("t2", [HELLO])]}),
            [OPEN, {**OPEN, "tool_call_id": "t2", "content": "hello"}, {"role": "user", "content": "hello"}],
        ),
        (parse(asks(content=[{"type": "thinking", "thinking": "Hm."}])), []),
    ],
)
def test_a_message_is_written_for_a_model(message: Message, written: list[dict[str, object]]) -> None:
    assert to_openai(message) == written


def test_calls_that_are_written_for_a_model_are_read_back() -> None:
    (written,) = to_openai(Message("assistant", "", calls=CALLS))
    assert parse(written).calls == CALLS
