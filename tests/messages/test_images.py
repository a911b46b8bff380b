"""Images, files and sound in a chat: they reach the model as they came in, and what they cost is counted."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from holdfast import InvalidInput, Memory, Message
from holdfast.messages.formats import parse
from holdfast.messages.media import IMAGE_TOKENS, LOW_DETAIL_TOKENS, PAGE_TOKENS
from holdfast.messages.message_tokens import message_tokens
from holdfast.messages.openai import to_openai
from holdfast.text.tokens import MESSAGE_OVERHEAD
from tables import each

DATA = "iVBORw0KGgo" * 40_000
URL = f"data:image/png;base64,{DATA}"
CAT = {"type": "image_url", "image_url": {"url": "https://x.org/cat.png", "detail": "high"}}
OWN = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}}
LOOK = {"type": "text", "text": "look"}


def user(*parts: object) -> dict[str, object]:
    return {"role": "user", "content": list(parts)}


def shown(part: Mapping[str, object]) -> object:
    """Give what a prompt makes of a part that a user sent."""
    (item,) = to_openai(parse(user(LOOK, part)))
    return item["content"]


@each(
    ("part", "written"),
    [
        (CAT, CAT),
        ({"type": "image_url", "image_url": {"url": URL}}, {"type": "image_url", "image_url": {"url": URL}}),
        ({"type": "image_url", "image_url": "https://x.org/a"}, {"type": "image_url", "image_url": {"url": "https://x.org/a"}}),
        ({"type": "input_image", "image_url": URL, "detail": "low"},
            {"type": "image_url", "image_url": {"url": URL, "detail": "low"}}),
        (OWN, {"type": "image_url", "image_url": {"url": URL}}),
        ({**OWN, "cache_control": {"type": "ephemeral"}}, {"type": "image_url", "image_url": {"url": URL}}),
        ({"type": "image", "source": {"type": "url", "url": "https://x.org/a"}},
            {"type": "image_url", "image_url": {"url": "https://x.org/a"}}),
        ({"type": "image", "data": "AAAA", "mimeType": "image/gif"},
            {"type": "image_url", "image_url": {"url": "data:image/gif;base64,AAAA"}}),
        ({"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
            {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}),
        ({"type": "file", "file": {"file_id": "f1"}}, {"type": "file", "file": {"file_id": "f1"}}),
        ({"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"}}),
        ({"type": "document", "title": "Plan",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "AA"}},
                {"type": "file",
                    "file": {"filename": "Plan", "file_data": "data:application/pdf;base64,AA"}}),
        ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "the plan"}},
            {"type": "text", "text": "the plan"}),
        ({"type": "document",
                "source": {"type": "content", "content": [{"type": "text", "text": "the plan"}]}},
                {"type": "text", "text": "the plan"}),
    ],
)  # fmt: skip
def test_a_part_goes_to_the_model_in_the_form_that_it_takes(part: dict[str, object], written: object) -> None:
    assert shown(part) == [LOOK, written]


@each(
    ("part", "placeholder"),
    [
        ({"type": "input_image", "file_id": "file-7"}, "[image: file-7]"),
        ({"type": "image", "source": {"type": "file", "file_id": "file_1"}}, "[image: file_1]"),
        ({"type": "image"}, "[image: unnamed]"),
        ({"type": "image_url", "image_url": {"detail": "low"}}, "[image: unnamed]"),
        ({"type": "input_file", "file_url": "https://x.org/plan.pdf"}, "[file: plan.pdf]"),
        ({"type": "document", "source": {"type": "url", "url": "https://x.org/plan.pdf"}},
            "[file: plan.pdf]"),
        ({"type": "input_audio"}, "[file: unnamed]"),
        ({"type": "hologram"}, "[hologram]"),
    ],
)  # fmt: skip
def test_what_the_model_cannot_read_stays_a_placeholder(part: dict[str, object], placeholder: str) -> None:
    assert shown(part) == f"look\n{placeholder}"
    (item,) = to_openai(parse(user(CAT, part)))
    assert item["content"] == [CAT, {"type": "text", "text": placeholder}]


@pytest.mark.parametrize("role", ["assistant", "system"])
def test_only_users_send_images(role: str) -> None:
    (item,) = to_openai(parse({"role": role, "content": [LOOK, CAT]}))
    assert item["content"] == "look\n[image: cat.png]"


def test_a_message_whose_payload_says_something_else_is_shown_by_its_words() -> None:
    (item,) = to_openai(Message("user", "hello", raw=user(LOOK, CAT)))
    assert item["content"] == "hello"


def test_the_newest_message_keeps_its_image(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append([user(LOOK, CAT), {"role": "assistant", "content": "A cat."}, user(OWN, LOOK)])
    prompt = chat.prompt()
    image = {"type": "image_url", "image_url": {"url": URL}}
    assert [one["content"] for one in prompt.messages] == [[LOOK, CAT], "A cat.", [image, LOOK]]
    assert prompt.tokens["total"] == prompt.window.tokens == sum(one.tokens for one in chat.history())
    with chat.run() as run:
        assert run.prompt().messages == prompt.messages


def test_models_that_read_text_only_get_placeholders(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append([user(LOOK, CAT), user(OWN)])
    prompt = chat.prompt(100, images="placeholder")
    assert [one["content"] for one in prompt.messages] == ["look\n[image: cat.png]", "[image: image/png]"]
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
    image = {"type": "image_url", "image_url": {"url": URL}}
    assert beside == {
        "role": "user",
        "content": [{"type": "text", "text": "[sent along with the result of a tool]"}, image],
    }
    assert {one["role"] for one in chat.prompt(images="placeholder").messages[2:4]} == {"tool"}


@each(
    ("part", "tokens"),
    [
        (CAT, IMAGE_TOKENS),
        (OWN, IMAGE_TOKENS),
        ({"type": "image_url", "image_url": {"url": URL, "detail": "low"}}, LOW_DETAIL_TOKENS),
        ({"type": "input_image", "image_url": URL, "detail": "low"}, LOW_DETAIL_TOKENS),
        ({"type": "input_audio", "input_audio": {"data": "A" * 6_400, "format": "wav"}}, 3),
        ({"type": "file", "file": {"file_id": "f1"}}, PAGE_TOKENS),
        ({"type": "file", "file": {"filename": "a.pdf", "file_data": "A" * 200_000}}, 3 * PAGE_TOKENS),
        ({"type": "document", "source": {"type": "text", "data": "word" * 100}}, 100),
        ({"type": "tool_result", "tool_use_id": "a", "content": [OWN, OWN]}, 2 * IMAGE_TOKENS),
        ({"type": "hologram"}, 0),
    ],
)
def test_what_is_not_text_costs_tokens(part: dict[str, object], tokens: int) -> None:
    message = parse(user(part))
    words = message_tokens(message, images=False)
    assert words < MESSAGE_OVERHEAD + 12
    assert message_tokens(message) == words + tokens


def test_images_that_do_not_fit_are_left_out_and_named(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append([user(LOOK, CAT) for _ in range(10)])
    assert chat.stats().stored_tokens == 10 * chat.history(1)[0].tokens > 10 * IMAGE_TOKENS
    for window in (chat.window(5_000), chat.prompt(5_000).window):
        assert (len(window.messages), window.tokens <= 5_000) == (3, True)
        assert [(one.first, one.last) for one in window.omitted] == [(1, 7)]
    assert len(chat.prompt(5_000, images="placeholder").window.messages) == 10
