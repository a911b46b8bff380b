"""Messages of pydantic-ai, and ours: each written as the other, and back without loss."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pydantic_ai.messages import (
    BinaryContent,
    FilePart,
    FileUrl,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    RetryPromptPart,
    SpeechPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UploadedFile,
    UserPromptPart,
)

from holdfast.messages.formats import cleaned, parse
from holdfast.messages.openai import to_openai
from holdfast.text.clean import clean

if TYPE_CHECKING:
    from holdfast.types import Message

EMPTY = "[empty]"  # stands for a message without words; what it is instead is in `raw`
_DEEP = 100  # brackets in the arguments of a call, from which on they are kept as text
# What the framework notes of its own settings: no part of what was said.
NOTED = frozenset(
    (
        "instruction-delta",
        "instruction-baseline",
        "tool-availability-delta",
        "capability-load-delta",
        "model-settings-delta",
    )
)


def to_messages(messages: Iterable[ModelMessage]) -> list[Message]:
    """Write messages of pydantic-ai as messages that a chat can store; `to_model_messages` reads them back, equal.

    A response is one message. A request is one for each of its parts; what the framework notes of its own
    settings goes with the part before it. Files become `[image: …]` and `[file: …]`; `raw` has all of it.
    """
    made = []
    for message in messages:
        slices: list[ModelMessage] = [message] if isinstance(message, ModelResponse) else [*_slices(message)]
        made += [write(one, number) for number, one in enumerate(slices)]
    return made


def to_model_messages(messages: Iterable[Message]) -> list[ModelMessage]:
    """Write messages of a chat as messages of pydantic-ai, whichever framework they came from.

    Those of `to_messages` are as they were. Others are made of their words and calls; a message of nothing
    but reasoning becomes none.
    """
    names: dict[str, str] = {}
    made: list[ModelMessage] = []
    last = -1  # which slice of its request the last message is; -1 if it is none
    for message in messages:
        names |= {call.id: call.name for call in message.calls}
        found = _original(message)
        if found is None:
            made += _from_words(message, names)
            last = -1
        elif isinstance(found.message, ModelResponse):
            made.append(found.message)
            last = -1
        else:
            before = made[-1] if 0 <= last < found.number else None
            if isinstance(before, ModelRequest) and _of_one(before, found.message):
                made[-1] = replace(before, parts=[*before.parts, *found.message.parts])
            else:
                made.append(found.message)
            last = found.number
    return made


def user(text: str) -> ModelRequest:
    """Return a message of the user."""
    return ModelRequest(parts=[UserPromptPart(text)])


def _of_one(one: ModelRequest, other: ModelRequest) -> bool:
    return replace(one, parts=[]) == replace(other, parts=[])


def _slices(request: ModelRequest) -> list[ModelRequest]:
    """Cut a request before each part that says something, but for the first."""
    cuts = [place for place, part in enumerate(request.parts) if place and part.part_kind not in NOTED]
    if cuts and all(part.part_kind in NOTED for part in request.parts[: cuts[0]]):
        cuts = cuts[1:]
    return [
        replace(request, parts=list(request.parts[start:end]))
        for start, end in zip([0, *cuts], [*cuts, len(request.parts)], strict=True)
    ]


def write(message: ModelMessage, number: int = 0) -> Message:
    """Write a response, or a request with one part that says something, as a message."""
    # Text, so that neither depth nor broken characters keep it from being stored.
    dumped = ModelMessagesTypeAdapter.dump_python([message], mode="json", fallback=repr)[0]
    raw = {"pydantic_ai": json.dumps(dumped), "part": number}
    if isinstance(message, ModelResponse):
        return parse({**_response(message), "at": message.timestamp, "raw": raw})
    said = next((part for part in message.parts if part.part_kind not in NOTED), None)
    at = getattr(said, "timestamp", None) or message.timestamp
    item = {"role": "developer", "content": EMPTY} if said is None else _request(said)
    return parse({**item, "at": at, "raw": raw})


def _request(part: ModelRequestPart) -> dict[str, object]:
    """Write a part of a request in the OpenAI chat format."""
    if isinstance(part, ToolReturnPart):
        content = [_text(_result(part)), *map(_content, part.files)]
        return {"role": "tool", "tool_call_id": answered_call(part), "content": content}
    if isinstance(part, UserPromptPart):
        content = (
            [_content(part.content)] if isinstance(part.content, str) else [*map(_content, part.content)]
        )
        return {"role": "user", "content": _worded(content)}
    if isinstance(part, SpeechPart):
        return {"role": "user", "content": _worded([_text(part.content)])}
    if (call := answered_call(part)) is not None:
        return {"role": "tool", "tool_call_id": call, "content": _feedback(part)}
    role = "system" if isinstance(part, SystemPromptPart) else "developer"
    return {"role": role, "content": _worded([_text(_feedback(part))])}


def _result(part: ToolReturnPart) -> str:
    try:
        return part.model_response_str()
    except ValueError:  # broken characters within what is no text
        return json.dumps(part.content, default=repr)


def answered_call(part: ModelRequestPart | ModelResponsePart) -> str | None:
    """Return the id of the call that a part answers; None for one that answers none."""
    if isinstance(part, ToolReturnPart) or (isinstance(part, RetryPromptPart) and part.tool_name):
        return part.tool_call_id or part.tool_name or "?"
    return None


def _feedback(part: ModelRequestPart) -> str:
    """Return what the framework or the application tells the model; some parts know how they are written."""
    written = getattr(part, "model_response", None)
    text = written() if callable(written) else getattr(part, "content", None)
    return text if isinstance(text, str) else ""


def _response(message: ModelResponse) -> dict[str, object]:
    """Write a response in the OpenAI chat format; arguments that are no object stay text."""
    calls = [
        {
            "id": part.tool_call_id or part.tool_name or "?",
            "name": part.tool_name or "?",
            "arguments": _arguments(part),
        }
        for part in message.parts
        if isinstance(part, ToolCallPart)
    ]
    content = [_part(part) for part in message.parts if not isinstance(part, ToolCallPart)]
    if calls:  # which say enough
        content = [part for part in content if part["type"] != "thinking"]
    return {"role": "assistant", "content": content if calls else _worded(content), "calls": calls}


def _part(part: ModelResponsePart) -> dict[str, object]:
    if isinstance(part, TextPart | SpeechPart):
        return _text(part.content)
    if isinstance(part, ThinkingPart):
        return {"type": "thinking"}
    if isinstance(part, FilePart):
        return _content(part.content)
    return {"type": part.part_kind, "name": getattr(part, "tool_name", None)}


def _content(item: object) -> dict[str, object]:
    """Write what a user or a tool sent as a part of a message in the chat format."""
    if isinstance(item, str | TextContent):
        return _text(item if isinstance(item, str) else item.content)
    if isinstance(item, FileUrl):
        return {"type": "image" if isinstance(item, ImageUrl) else "file", "url": item.url}
    if isinstance(item, BinaryContent):
        return {"type": "image" if item.is_image else "file", "media_type": item.media_type}
    return {"type": "file", "file_id": item.file_id} if isinstance(item, UploadedFile) else _text("")


def _text(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


def _worded(content: list[dict[str, object]]) -> list[dict[str, object]]:
    """Put words in the place of none: a message that says nothing is none."""
    if any(clean(str(part["text"])).strip() for part in content if part["type"] == "text"):
        return content
    return [part for part in content if part["type"] != "text"] or [_text(EMPTY)]


def _arguments(part: ToolCallPart) -> dict[str, object] | str:
    text = part.args if isinstance(part.args, str) else json.dumps(part.args or {}, default=repr)
    if text.count("{") + text.count("[") > _DEEP:
        return text
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return text  # what a model wrote is kept as it is, also when it is not JSON
    return found if isinstance(found, dict) else text


class _Original(NamedTuple):
    """What a message was made of, and which slice of its request that is."""

    message: ModelMessage
    number: int


def _original(message: Message) -> _Original | None:
    """Read back what a message was made of, if it says the same as the message: words are what was checked."""
    raw = message.raw or {}
    text, number = raw.get("pydantic_ai"), raw.get("part")
    if not isinstance(text, str) or not isinstance(number, int):
        return None
    try:
        (found,) = ModelMessagesTypeAdapter.validate_python([json.loads(text)])
        same, there = cleaned(write(found, number)), cleaned(message)
    except (ValueError, RecursionError):
        return None  # of another version: its words are there all the same
    if (same.role, same.content, same.calls, same.call_id) != (
        there.role,
        there.content,
        there.calls,
        there.call_id,
    ):
        return None
    return _Original(found, number)


def _from_words(message: Message, names: dict[str, str]) -> Iterator[ModelMessage]:
    """Make messages of the framework of one that came from elsewhere."""
    for item in to_openai(message):
        text = str(item["content"])
        if item["role"] == "tool":
            call = str(item["tool_call_id"])
            part = ToolReturnPart(tool_name=names.get(call, "?"), content=text, tool_call_id=call)
            yield ModelRequest(parts=[part])
        elif item["role"] == "assistant":
            calls = [
                ToolCallPart(
                    call.name,
                    dict(call.arguments) if not isinstance(call.arguments, str) else call.arguments,
                    call.id,
                )
                for call in message.calls
            ]
            yield ModelResponse(parts=[*([TextPart(text)] if text else []), *calls])
        elif item["role"] == "user":
            yield user(text)
        else:
            yield ModelRequest(parts=[SystemPromptPart(text)])
