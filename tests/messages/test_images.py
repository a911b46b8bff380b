"""Images, files and sound in a chat: they reach the model as they came in, and what they cost is counted."""

from __future__ import annotations

import pytest

from holdfast import InvalidInput, Memory, Message
from holdfast.port.formats import message_tokens, parse, to_openai
from tables import each

DATA = "iVBORw0KGgo" * 40_000
URL = f"data:image/png;base64,{DATA}"
IMAGE = {"type": "image_url", "image_url": {"url": URL}}
CAT = {"type": "image_url", "image_url": {"url": "https://x.org/cat.png", "detail": "high"}}
OWN = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}}
LOOK = {"type": "text", "text": "look"}
AN_IMAGE, LOW_DETAIL, A_PAGE = 1_600, 85, 3_000  # tokens


def user(*parts: object) -> dict[str, object]:
    return {"role": "user", "content": list(parts)}


@each(
    ("part", "written"),
    [
        (CAT, CAT),
        (IMAGE, IMAGE),
        ({"type": "image_url", "image_url": "https://x.org/a"}, {"type": "image_url", "image_url": {"url": "https://x.org/a"}}),
        ({"type": "input_image", "image_url": URL, "detail": "low"},
            {"type": "image_url", "image_url": {"url": URL, "detail": "low"}}),
        ({**OWN, "cache_control": {"type": "ephemeral"}}, IMAGE),
        ({"type": "image", "data": "AAAA", "mimeType": "image/gif"},
            {"type": "image_url", "image_url": {"url": "data:image/gif;base64,AAAA"}}),
        ({"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
            {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}),
        ({"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"}}),
        ({"type": "document", "title": "Plan",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "AA"}},
                {"type": "file",
                    "file": {"filename": "Plan", "file_data": "data:application/pdf;base64,AA"}}),
        ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "the plan"}},
            {"type": "text", "text": "the plan"}),
    ],
)  # fmt: skip
def test_a_part_goes_to_the_model_in_the_form_that_it_takes(part: dict[str, object], written: object) -> None:
    assert to_openai(parse(user(LOOK, part)))[0]["content"] == [LOOK, written]
    # Only users send them.
    for role in ("assistant", "system"):
        (item,) = to_openai(parse({"role": role, "content": [LOOK, part]}))
        assert str(item["content"]).startswith("look\n[")


@each(
    ("part", "placeholder"),
    [
        ({"type": "input_image", "file_id": "file-7"}, "[image: file-7]"),
        ({"type": "image_url", "image_url": {"detail": "low"}}, "[image: unnamed]"),
        ({"type": "document", "source": {"type": "url", "url": "https://x.org/plan.pdf"}},
            "[file: plan.pdf]"),
    ],
)  # fmt: skip
def test_what_the_model_cannot_read_stays_a_placeholder(part: dict[str, object], placeholder: str) -> None:
    assert to_openai(parse(user(LOOK, part)))[0]["content"] == f"look\n{placeholder}"
    (item,) = to_openai(parse(user(CAT, part)))
    assert item["content"] == [CAT, {"type": "text", "text": placeholder}]


def test_a_message_whose_payload_says_something_else_is_shown_by_its_words() -> None:
    (item,) = to_openai(Message("user", "hello", raw=user(LOOK, CAT)))
    assert item["content"] == "hello"


def test_images_reach_the_model_and_those_that_read_text_only_get_placeholders(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append([user(LOOK, CAT), {"role": "assistant", "content": "A cat."}, user(OWN, LOOK)])
    prompt = chat.prompt()
    assert [one["content"] for one in prompt.messages] == [[LOOK, CAT], "A cat.", [IMAGE, LOOK]]
    assert prompt.tokens["total"] == prompt.window.tokens == sum(one.tokens for one in chat.history())
    with chat.run() as run:
        assert run.prompt().messages == prompt.messages
    prompt = chat.prompt(100, images="placeholder")
    shown = [one["content"] for one in prompt.messages]
    assert shown == ["look\n[image: cat.png]", "A cat.", "[image: image/png]\nlook"]
    assert prompt.tokens["total"] < 100
    with pytest.raises(InvalidInput, match="`images` is 'none'"):
        chat.prompt(images="none")  # type: ignore[arg-type]  # allowed - the mistake that is tested


def test_images_in_results_follow_them(memory: Memory) -> None:
    calls = [{"id": one, "type": "function", "function": {"name": "see", "arguments": "{}"}} for one in "ab"]
    answer = {"type": "tool_result", "tool_use_id": "a", "content": [LOOK, OWN]}
    chat = memory.chat("monday")
    chat.append([user(LOOK), {"role": "assistant", "content": None, "tool_calls": calls}])
    chat.append([user(answer), {"role": "tool", "tool_call_id": "b", "content": "nothing"}])
    chat.append({"role": "assistant", "content": "A screen."})
    *_, call, first, second, beside, last = chat.prompt().messages
    assert call["role"] == "assistant"
    assert (first["tool_call_id"], first["content"]) == ("a", "look\n[image: image/png]")
    assert (second["tool_call_id"], last["content"]) == ("b", "A screen.")
    assert beside == user({"type": "text", "text": "[sent along with the result of a tool]"}, IMAGE)
    assert {one["role"] for one in chat.prompt(images="placeholder").messages[2:4]} == {"tool"}


@each(
    ("part", "tokens"),
    [
        (CAT, AN_IMAGE),
        (OWN, AN_IMAGE),
        ({"type": "image_url", "image_url": {"url": URL, "detail": "low"}}, LOW_DETAIL),
        ({"type": "input_audio", "input_audio": {"data": "A" * 6_400, "format": "wav"}}, 3),
        ({"type": "file", "file": {"file_id": "f1"}}, A_PAGE),
        ({"type": "file", "file": {"filename": "a.pdf", "file_data": "A" * 200_000}}, 3 * A_PAGE),
        ({"type": "document", "source": {"type": "text", "data": "word" * 100}}, 100),
        ({"type": "tool_result", "tool_use_id": "a", "content": [OWN, OWN]}, 2 * AN_IMAGE),
    ],
)
def test_what_is_not_text_costs_tokens(part: dict[str, object], tokens: int) -> None:
    message = parse(user(part))
    words = message_tokens(message, images=False)
    assert words < 16
    assert message_tokens(message) == words + tokens


def test_images_that_do_not_fit_are_left_out_and_named(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append([user(LOOK, CAT) for _ in range(10)])
    assert chat.stats().stored_tokens == 10 * chat.history(1)[0].tokens > 10 * AN_IMAGE
    for window in (chat.window(5_000), chat.prompt(5_000).window):
        assert (len(window.messages), window.tokens <= 5_000) == (3, True)
        assert [(one.first, one.last) for one in window.omitted] == [(1, 7)]
    assert len(chat.prompt(5_000, images="placeholder").window.messages) == 10
