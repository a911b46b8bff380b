"""Prompts in Anthropic's form: what its Messages API accepts, and what came in stays as it was."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast
from uuid import uuid4

from anthropic.types import MessageParam
from anthropic.types.content_block_param import ContentBlockParam
from anthropic.types.tool_result_block_param import Content
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from holdfast import Memory, Message
from holdfast.port.formats import parse
from tables import each
from window_logs import LOGS, make

Turns = Sequence[Mapping[str, Any]]  # as a model's API has them

MESSAGES = TypeAdapter[list[MessageParam]](list[MessageParam])
BLOCKS = TypeAdapter[ContentBlockParam](ContentBlockParam)
INNER = TypeAdapter[Content](Content)

MARK: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
LOOK = {"type": "text", "text": "look"}
OWN = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo"}}
DATA_URL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo"}}
CAT = {"type": "image_url", "image_url": {"url": "https://x.org/cat.png", "detail": "low"}}
PLAN = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0"}}
THOUGHT = {"type": "thinking", "thinking": "A cat?", "signature": "EqQB"}
SEE = {"type": "tool_use", "id": "toolu_1", "name": "see", "input": {"path": "a.png"}}


def user(*parts: object) -> dict[str, object]:
    return {"role": "user", "content": list(parts)}


def model(*parts: object) -> dict[str, object]:
    return {"role": "assistant", "content": list(parts)}


def result(call: str = "toolu_1", **fields: Any) -> dict[str, object]:
    return {"type": "tool_result", "tool_use_id": call, **fields}


def turns(memory: Memory, *payloads: object, images: str = "keep") -> Turns:
    """Give the turns of a prompt of a fresh chat, which the SDK takes."""
    chat = memory.chat(uuid4().hex)
    chat.append([cast("Mapping[str, object]", one) for one in payloads])
    prompt = chat.prompt(50_000, format="anthropic", images=images)  # type: ignore[arg-type]  # allowed - a test passes either
    assert prompt.tokens == {**chat.prompt(50_000, images=images).tokens, "unchanged": 0}  # type: ignore[arg-type]  # as above
    check(prompt.messages)
    return prompt.messages


def blocks(messages: Turns) -> Iterator[dict[str, Any]]:
    for message in messages:
        yield from message["content"]


def check(messages: Turns) -> None:
    """Hold messages against the types of the SDK and the rules of the API."""
    MESSAGES.validate_python(messages)
    assert [one["role"] for one in messages] == (["user", "assistant"] * len(messages))[: len(messages)]
    called: list[str] = []
    seen: set[str] = set()
    for message in messages:
        kinds = [block["type"] for block in message["content"]]
        assert kinds
        answered = [one["tool_use_id"] for one in message["content"] if one["type"] == "tool_result"]
        assert sorted(answered) == sorted(called)
        assert set(kinds[: len(answered)]) <= {"tool_result"}
        called = [one["id"] for one in message["content"] if one["type"] == "tool_use"]
        assert kinds[len(kinds) - len(called) :] == ["tool_use"] * len(called)
        assert len({*called} | seen) == len(called) + len(seen)
        seen |= {*called}
        if "thinking" in kinds or "redacted_thinking" in kinds:
            assert (message["role"], kinds[0] in ("thinking", "redacted_thinking")) == ("assistant", True)
            assert kinds[-1] in ("text", "tool_use")
    assert all(re.fullmatch("[a-zA-Z0-9_-]+", one) for one in seen)
    assert sum("cache_control" in block for block in blocks(messages)) <= 4
    for block in blocks(messages):
        BLOCKS.validate_python(block)
        inner = block["content"] if isinstance(block.get("content"), list) else []
        for one in inner:
            INNER.validate_python(one)
        assert all(one["text"].strip() for one in (block, *inner) if one["type"] == "text")


# What a window can hold -------------------------------------------------------------------------------------


def dressed(message: Message, form: int) -> Message:
    """Make a message of a log one that came in Anthropic's form, or in OpenAI's with more than text."""
    said = {"type": "text", "text": message.content or "well"}
    if form == 0 or message.role == "system" or (message.role == "tool" and not message.answers):
        return message
    if message.role == "user":
        parts: list[object] = (
            [{**said, **MARK}, OWN, PLAN] if form == 1 else [CAT, said, {"type": "text", "text": " "}]
        )
    elif message.answers:
        of: list[object] = [
            result(one, content=[said, OWN, PLAN], is_error=form == 1, **MARK) for one in message.answers
        ]
        parts = of if form == 1 else [LOOK, *of]
    else:
        calls: list[object] = [
            {"type": "tool_use", "id": one.id, "name": "a tool", "input": {}} for one in message.calls
        ]
        parts = (
            [THOUGHT, said, *calls]
            if form == 1
            else [*calls, said, {"type": "redacted_thinking", "data": "E"}]
        )
        parts = [THOUGHT] if form == 3 and not calls else parts
    return parse({"role": "user" if message.answers else message.role, "content": parts})


# The window begins behind the system message.
@example(make([("system", (), 1), *[("user", (), 1)] * 4]), [0, 0, 0, 0, 1], 100, False)
@given(
    LOGS,
    st.lists(st.integers(0, 3), min_size=24, max_size=24),
    st.sampled_from([0, 100, 1_000, 4_000, 16_000]),
    st.booleans(),
)
def test_every_window_is_accepted(log: list[Message], forms: list[int], budget: int, images: bool) -> None:
    with Memory(":memory:", user="ada") as memory:
        memory.chat("there").append(role="user", content="Look, all is well.")
        chat = memory.chat("here")
        chat.append([dressed(message, form) for message, form in zip(log, forms, strict=False)])
        for query in (None, "look well"):
            shown = "keep" if images else "placeholder"
            prompt = chat.prompt(budget, query, format="anthropic", images=shown)  # type: ignore[arg-type]  # one of the two
            check(prompt.messages)
            shown_messages = prompt.window.messages
            told = [one.content for one in shown_messages if one.role == "system"]
            first = shown_messages[0].seq if shown_messages else None
            earlier = [one.content for one in chat.history(before=first) if one.role == "system"]
            assert prompt.system in ("\n\n".join(told), *(earlier[-1:] if not told else ()))
            kept = {block["id"] for block in blocks(prompt.messages) if block["type"] == "tool_use"}
            assert len(kept) == sum(len(one.calls) for one in prompt.window.messages)


# What came in -----------------------------------------------------------------------------------------------


def test_blocks_of_its_own_form_go_out_as_they_came_in(memory: Memory) -> None:
    text = {"type": "document", "title": "Notes",
        "source": {"type": "text", "media_type": "text/plain", "data": "the plan"}}  # fmt: skip
    kept = {"type": "image", "source": {"type": "file", "file_id": "file_1"}}
    inside = result(content=[LOOK, OWN, PLAN], **MARK)
    sent = [user(LOOK, {**OWN, **MARK}, PLAN, text, kept), model(THOUGHT, LOOK, SEE), user(inside)]
    assert turns(memory, *sent) == sent


@each(
    ("part", "written"),
    [
        (DATA_URL, OWN),
        (CAT, {"type": "image", "source": {"type": "url", "url": "https://x.org/cat.png"}}),
        ({"type": "image", "data": "AAAA", "mimeType": "image/jpg"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "AAAA"}}),
        ({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0"}},
            {**PLAN, "title": "a.pdf"}),
        ({"type": "document", "source": {"type": "content", "content": [LOOK, OWN, DATA_URL]}},
            {"type": "document", "source": {"type": "content", "content": [LOOK, OWN, OWN]}}),
    ],
)  # fmt: skip
def test_what_came_in_another_form_is_converted(memory: Memory, part: object, written: object) -> None:
    assert turns(memory, user(LOOK, part)) == [user(LOOK, written)]


@each(
    ("part", "placeholder"),
    [
        ({"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}, "[file: wav]"),
        ({"type": "file", "file": {"file_id": "f1"}}, "[file: f1]"),
        ({"type": "image_url", "image_url": {"url": "data:image/tiff;base64,AA"}}, "[image: unnamed]"),
        ({"type": "document", "title": "x", "source": {"type": "text", "data": " "}}, "[file: x]"),
    ],
)  # fmt: skip
def test_what_it_takes_from_nobody_stays_a_placeholder(
    memory: Memory, part: object, placeholder: str
) -> None:
    assert turns(memory, user(LOOK, part)) == [user(LOOK, {"type": "text", "text": placeholder})]


@each("role", ["user", "assistant", "tool"])
@each(
    "part",
    [
        {"type": [], "text": "x"},
        {"type": "image", "source": 5},
        {"type": "file", "file": {"file_data": 7}},
        {"type": "document", "title": 7, "source": {"type": "url", "url": "https://x.org/a"}},
        {"type": "document", "source": {"type": "content", "content": [5, {"type": "text", "text": 7}, {}]}},
        {"type": "thinking", "thinking": "x", "signature": "y"},
    ],
)
def test_parts_of_any_shape_are_accepted(memory: Memory, role: str, part: object) -> None:
    assert turns(memory, {"role": role, "content": [LOOK, part]})


def asked(**arguments: str) -> dict[str, object]:
    calls = [
        {"id": one, "type": "function", "function": {"name": "see", "arguments": text}}
        for one, text in arguments.items()
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def told(call: str, said: str) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": call, "content": said}


UNNAMED = {"type": "text", "text": "[image: unnamed]"}
UNSIGNED = {"type": "thinking", "thinking": "Hm."}
TIMED_OUT = {"type": "text", "text": "timed out"}
ODD = {**SEE, "id": "see.it", "name": "the eye"}
RESULTS = [result(content="one"), LOOK, result("toolu_2", content=[DATA_URL], is_error=True)]
WRITTEN: list[tuple[list[object], list[object]]] = [
    # Calls and results of OpenAI become blocks.
    (
        [asked(a='{"x": 1}', b="not JSON"), told("b", "two"), told("a", ""), user(LOOK)],
        [
            model(
                {"type": "tool_use", "id": "a", "name": "see", "input": {"x": 1}},
                {"type": "tool_use", "id": "b", "name": "see", "input": {"arguments": "not JSON"}},
            ),
            user(result("b", content="two"), result("a"), LOOK),
        ],
    ),
    # A result of many calls keeps each with its own, and the words behind.
    (
        [model(SEE, {**SEE, "id": "toolu_2"}), user(*RESULTS)],
        [user(result(content="one"), result("toolu_2", content=[UNNAMED], is_error=True), LOOK)],
    ),
    # Reasoning is sent back in the turn that goes on only, and begins it.
    (
        [model(THOUGHT, UNSIGNED, SEE), user(result(content="a cat"))],
        [model(THOUGHT, SEE), user(result(content="a cat"))],
    ),
    (
        [model(THOUGHT, SEE), user(result(content="a cat")), model(THOUGHT, LOOK), user(LOOK)],
        [model(SEE), user(result(content="a cat")), model(LOOK), user(LOOK)],
    ),
    (
        [model(THOUGHT), model(SEE), user(result(content="a cat"))],
        [model(THOUGHT, SEE), user(result(content="a cat"))],
    ),
    # Ids that the API refuses are changed with their results.
    (
        [model(ODD), user(result("see.it", content="a")), model(ODD), user(result("see.it", content="b"))],
        [
            model({**SEE, "id": "see_it", "name": "the_eye"}),
            user(result("see_it", content="a")),
            model({**SEE, "id": "see_it_2", "name": "the_eye"}),
            user(result("see_it_2", content="b")),
        ],
    ),
    # A call that is there twice is answered twice: the chat must not be refused for ever.
    (
        [model(SEE, SEE), user(result(content="a cat")), user(result(content=[LOOK]))],
        [
            model(SEE, {**SEE, "id": "toolu_1_2"}),
            user(result(content="a cat"), result("toolu_1_2", content=[LOOK])),
        ],
    ),
    # Results of one call are joined, and are an error if all are.
    (
        [model(SEE), user(result(content="timed out", is_error=True)), user(result(content=[OWN]))],
        [user(result(content=[TIMED_OUT, OWN]))],
    ),
]


@each(("sent", "written"), WRITTEN)
def test_what_was_sent_is_written_as_the_api_takes_it(
    memory: Memory, sent: list[object], written: list[object]
) -> None:
    assert list(turns(memory, user(LOOK), *sent)[-len(written) :]) == written


def test_only_the_newest_marks_for_the_cache_stay(memory: Memory) -> None:
    messages = turns(memory, *(user({**LOOK, **MARK}) for _ in range(6)))
    assert ["cache_control" in one for one in blocks(messages)] == [False] * 4 + [True] * 2


def test_system_messages_end_the_system_text_and_the_user_begins(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append([{"role": "assistant", "content": "Hello. "}, {"role": "developer", "content": "Be brief."}])
    prompt = chat.prompt(format="anthropic", system="Be kind.")
    assert prompt.system == "Be kind.\n\nBe brief."
    assert [one["content"] for one in prompt.messages] == [
        [{"type": "text", "text": "[…]"}],
        [{"type": "text", "text": "Hello."}],
    ]


def test_what_was_recalled_and_the_account_are_the_same_in_both_forms(memory: Memory) -> None:
    memory.chat("sunday").append(user({"type": "text", "text": "The cat is called Miez."}))
    chat = memory.chat("monday")
    chat.append([user(LOOK, CAT), {"role": "assistant", "content": "A cat."}, user(LOOK, OWN)])
    plain = chat.prompt(query="What is the cat called?")
    own = chat.prompt(query="What is the cat called?", format="anthropic")
    assert {**own.tokens, "unchanged": 0} == {**plain.tokens, "unchanged": 0}
    assert plain.hits == own.hits
    assert own.messages[-1]["content"] == [{"type": "text", "text": plain.messages[-2]["content"]}, LOOK, OWN]
    assert plain.hits
    with chat.run() as run:
        assert run.prompt(format="anthropic").messages == chat.prompt(format="anthropic").messages
    chat.append({"role": "assistant", "content": "Miez."})
    again = chat.prompt(format="anthropic").tokens
    assert again["unchanged"] > again["window"] / 2
