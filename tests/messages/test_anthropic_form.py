"""Prompts in Anthropic's form: what its Messages API accepts, and what came in stays as it was."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from anthropic.types import MessageParam
from anthropic.types.content_block_param import ContentBlockParam
from anthropic.types.tool_result_block_param import Content
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from holdfast import InvalidInput, Memory, Message
from holdfast.messages.formats import parse
from holdfast.prompt.build import PromptOptions, build
from holdfast.prompt.selector import selector
from holdfast.prompt.window import TokenBudget
from holdfast.types import ChatStats, Hit, Prompt, Why
from window_logs import LOGS

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
    """Give the turns of a prompt of a chat, which the SDK takes."""
    chat = memory.chat("monday")
    for one in payloads:
        chat.append(cast("Mapping[str, object]", one))
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
    made = parse({"role": "user" if message.answers else message.role, "content": parts})
    return replace(made, seq=message.seq, tokens=message.tokens, answers=message.answers)


def made(log: list[Message], budget: int = 8_000, *, images: bool = True, hits: Sequence[Hit] = ()) -> Prompt:
    tokens = sum(message.tokens for message in log)
    select = selector(TokenBudget(budget, 1), reversed(log), ChatStats(len(log), tokens, tokens))
    options = PromptOptions(images="keep" if images else "placeholder", format="anthropic")
    return build(select, hits, chat="here", budget=budget, options=options)


@given(LOGS, st.lists(st.integers(0, 3), min_size=24, max_size=24), st.integers(0, 800), st.booleans())
def test_every_window_is_accepted(log: list[Message], forms: list[int], budget: int, images: bool) -> None:
    said = Hit(
        "message",
        "said",
        0.5,
        id="",
        chat="there",
        seq=7,
        role="user",
        name=None,
        at=datetime(2026, 5, 8, tzinfo=UTC),
        why=Why({}),
    )
    log = [dressed(message, form) for message, form in zip(log, forms, strict=False)]
    for hits in ((), (said,)):
        prompt = made(log, budget, images=images, hits=hits)
        check(prompt.messages)
        told = [one for one in prompt.window.messages if one.role == "system"]
        assert prompt.system == "\n\n".join(one.content for one in told)
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


@pytest.mark.parametrize(
    ("part", "written"),
    [
        (DATA_URL, OWN),
        (CAT, {"type": "image", "source": {"type": "url", "url": "https://x.org/cat.png"}}),
        ({"type": "input_image", "image_url": "https://x.org/a"},
            {"type": "image", "source": {"type": "url", "url": "https://x.org/a"}}),
        ({"type": "image", "data": "AAAA", "mimeType": "image/jpg"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "AAAA"}}),
        ({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0"}},
            {**PLAN, "title": "a.pdf"}),
        ({"type": "input_file", "file_url": "https://x.org/plan.pdf"},
            {"type": "document", "source": {"type": "url", "url": "https://x.org/plan.pdf"}}),
        ({"type": "document", "source": {"type": "content", "content": [LOOK, OWN, DATA_URL]}},
            {"type": "document", "source": {"type": "content", "content": [LOOK, OWN, OWN]}}),
    ],
)  # fmt: skip
def test_what_came_in_another_form_is_converted(memory: Memory, part: object, written: object) -> None:
    assert turns(memory, user(LOOK, part)) == [user(LOOK, written)]


@pytest.mark.parametrize(
    ("part", "placeholder"),
    [
        ({"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}, "[file: wav]"),
        ({"type": "input_image", "file_id": "file-7"}, "[image: file-7]"),
        ({"type": "file", "file": {"file_id": "f1"}}, "[file: f1]"),
        ({"type": "image_url", "image_url": {"url": "data:image/tiff;base64,AA"}}, "[image: unnamed]"),
        ({"type": "image_url", "image_url": {"detail": "low"}}, "[image: unnamed]"),
        ({"type": "document", "title": "x", "source": {"type": "text", "data": " "}}, "[file: x]"),
        ({"type": "hologram"}, "[hologram]"),
    ],
)  # fmt: skip
def test_what_it_takes_from_nobody_stays_a_placeholder(
    memory: Memory, part: object, placeholder: str
) -> None:
    assert turns(memory, user(LOOK, part)) == [user(LOOK, {"type": "text", "text": placeholder})]


@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
@pytest.mark.parametrize(
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


def test_models_that_read_text_only_get_placeholders(memory: Memory) -> None:
    sent = (user(LOOK, CAT, PLAN), model(SEE), user(result(content=[OWN])))
    first, _, last = turns(memory, *sent, images="placeholder")
    assert [one["text"] for one in first["content"]] == [
        "look",
        "[image: cat.png]",
        "[file: application/pdf]",
    ]
    assert last["content"] == [result(content=[{"type": "text", "text": "[image: image/png]"}])]


def test_calls_and_results_of_openai_become_blocks(memory: Memory) -> None:
    calls = [
        {"id": one, "type": "function", "function": {"name": "see", "arguments": arguments}}
        for one, arguments in (("a", '{"x": 1}'), ("b", "not JSON"))
    ]
    asked = {"role": "assistant", "content": "", "tool_calls": calls}
    answers = [
        {"role": "tool", "tool_call_id": one, "content": said} for one, said in (("b", "two"), ("a", ""))
    ]
    _, call, last = turns(memory, user(LOOK), asked, *answers, {"role": "user", "content": "and?"})
    assert [one["input"] for one in call["content"]] == [{"x": 1}, {"arguments": "not JSON"}]
    assert last["content"] == [result("b", content="two"), result("a"), {"type": "text", "text": "and?"}]


def test_a_result_of_many_calls_keeps_each_with_its_own_and_the_words_behind(memory: Memory) -> None:
    other = {**SEE, "id": "toolu_2"}
    both = [result(content="one"), LOOK, result("toolu_2", content=[DATA_URL], is_error=True)]
    *_, last = turns(memory, user(LOOK), model(SEE, other), user(*both))
    failed = result("toolu_2", content=[{"type": "text", "text": "[image: unnamed]"}], is_error=True)
    assert last["content"] == [result(content="one"), failed, LOOK]


def test_reasoning_is_sent_back_in_the_turn_that_goes_on_only(memory: Memory) -> None:
    unsigned = {"type": "thinking", "thinking": "Hm."}
    running = (user(LOOK), model(THOUGHT, unsigned, SEE), user(result(content="a cat")))
    assert turns(memory, *running)[1] == model(THOUGHT, SEE)
    assert turns(memory, model(THOUGHT, LOOK), user(LOOK))[1::2] == [model(SEE), model(LOOK)]


def test_reasoning_that_came_as_a_message_of_its_own_begins_its_turn(memory: Memory) -> None:
    sent = (user(LOOK), model(THOUGHT), model(SEE), user(result(content="a cat")))
    assert turns(memory, *sent)[1] == model(THOUGHT, SEE)


def test_ids_that_the_api_refuses_are_changed_with_their_results(memory: Memory) -> None:
    used = [user(LOOK)]
    for _ in range(2):
        used += [model({**SEE, "id": "see.it", "name": "the eye"}), user(result("see.it", content="a cat"))]
    messages = turns(memory, *used)
    calls = [one for one in blocks(messages) if one["type"] == "tool_use"]
    assert [(one["id"], one["name"]) for one in calls] == [("see_it", "the_eye"), ("see_it_2", "the_eye")]


def test_a_call_that_is_there_twice_is_answered_twice(memory: Memory) -> None:
    """Models that do it are rare, but the chat must not be refused for ever."""
    sent = (model(SEE, SEE), user(result(content="a cat")), user(result(content=[LOOK])))
    *_, call, last = turns(memory, user(LOOK), *sent)
    assert [one["id"] for one in call["content"]] == ["toolu_1", "toolu_1_2"]
    assert last["content"] == [result(content="a cat"), result("toolu_1_2", content=[LOOK])]


def test_results_of_one_call_are_joined_and_are_an_error_if_all_are(memory: Memory) -> None:
    failed = result(content="timed out", is_error=True)
    *_, last = turns(memory, user(LOOK), model(SEE), user(failed), user(result(content=[OWN])))
    assert last["content"] == [result(content=[{"type": "text", "text": "timed out"}, OWN])]


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


def test_an_unknown_format_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="`format` is 'gemini'"):
        memory.chat("monday").prompt(format="gemini")  # type: ignore[arg-type]  # allowed - the mistake that is tested
