"""Conversion between messages of pydantic-ai and those of a chat, without loss in either direction."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from operator import attrgetter
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

from holdfast.port import formats
from holdfast.port.texts import clean

if TYPE_CHECKING:
    from holdfast.types import Message

EMPTY = "[empty]"  # the content of a message without text; `raw` has the original
_DEEP = 100  # brackets in the arguments of a call; with more they are stored as text
# Parts by which the framework records its own settings; they are not part of the conversation.
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
    """Return messages of pydantic-ai as messages that a chat can store; `to_model_messages` is the inverse.

    A response becomes one message. A request becomes one for each of its parts; parts about settings of the
    framework go with the part before them. Files become `[image: …]` and `[file: …]`; `raw` has the original.
    """
    made = []
    for message in messages:
        slices: list[ModelMessage] = [message] if isinstance(message, ModelResponse) else [*_slices(message)]
        made += [write(part, number) for number, part in enumerate(slices)]
    return made


def to_model_messages(messages: Iterable[Message]) -> list[ModelMessage]:
    """Return messages of a chat as messages of pydantic-ai, whichever framework they came from.

    Those of `to_messages` are restored. Others are made of their text and calls; a message of reasoning alone
    is left out.
    """
    names: dict[str, str] = {}
    made: list[ModelMessage] = []
    last = -1  # the number of the last message among the slices of its request; -1 if it is none of them
    for message in messages:
        names |= {call.id: call.name for call in message.calls}
        original = _original(message)
        if original is None:
            made += _from_words(message, names)
            last = -1
        elif isinstance(original.message, ModelResponse):
            made.append(original.message)
            last = -1
        else:
            before = made[-1] if 0 <= last < original.number else None
            if isinstance(before, ModelRequest) and _is_same_request(before, original.message):
                made[-1] = replace(before, parts=[*before.parts, *original.message.parts])
            else:
                made.append(original.message)
            last = original.number
    return made


def restore_message(messages: Sequence[Message]) -> ModelMessage | None:
    """Return the message that `to_messages` split into these, or what is left of it; None for any others."""
    pieces = [original.message for original in map(_original, messages) if original is not None]
    if len(pieces) < len(messages) or not pieces:
        return None
    first, requests = pieces[0], [piece for piece in pieces if isinstance(piece, ModelRequest)]
    if len(pieces) == 1 or not isinstance(first, ModelRequest):
        return first if len(pieces) == 1 else None
    same = len(requests) == len(pieces) and all(_is_same_request(first, request) for request in requests)
    return replace(first, parts=[part for request in requests for part in request.parts]) if same else None


def user(text: str) -> ModelRequest:
    """Return a message of the user."""
    return ModelRequest(parts=[UserPromptPart(text)])


def _is_same_request(first: ModelRequest, other: ModelRequest) -> bool:
    return replace(first, parts=[]) == replace(other, parts=[])


def _slices(request: ModelRequest) -> list[ModelRequest]:
    """Return a request in slices with one part of the conversation each."""
    cuts = [place for place, part in enumerate(request.parts) if place and part.part_kind not in NOTED]
    if cuts and all(part.part_kind in NOTED for part in request.parts[: cuts[0]]):
        cuts = cuts[1:]
    return [
        replace(request, parts=list(request.parts[start:end]))
        for start, end in zip([0, *cuts], [*cuts, len(request.parts)], strict=True)
    ]


def write(message: ModelMessage, number: int = 0) -> Message:
    """Return a response, or a slice of a request, as a message."""
    # As text, since depth or broken characters could prevent storing it as JSON.
    dumped = ModelMessagesTypeAdapter.dump_python([message], mode="json", fallback=repr)[0]
    raw = {"pydantic_ai": json.dumps(dumped), "part": number}
    if isinstance(message, ModelResponse):
        return formats.parse({**_response(message), "at": message.timestamp, "raw": raw})
    part = next((part for part in message.parts if part.part_kind not in NOTED), None)
    at = getattr(part, "timestamp", None) or message.timestamp
    item = {"role": "developer", "content": EMPTY} if part is None else _request(part)
    return formats.parse({**item, "at": at, "raw": raw})


def _request(part: ModelRequestPart) -> dict[str, object]:
    """Return a part of a request in the OpenAI chat format."""
    if isinstance(part, ToolReturnPart):
        content = [_text(_result(part)), *map(_content, part.files)]
        return {"role": "tool", "tool_call_id": answered_call(part), "content": content}
    if isinstance(part, UserPromptPart):
        items = [part.content] if isinstance(part.content, str) else part.content
        return {"role": "user", "content": _with_placeholder([*map(_content, items)])}
    if isinstance(part, SpeechPart):
        return {"role": "user", "content": _with_placeholder([_text(part.content)])}
    if (call := answered_call(part)) is not None:
        return {"role": "tool", "tool_call_id": call, "content": _feedback(part)}
    role = "system" if isinstance(part, SystemPromptPart) else "developer"
    return {"role": role, "content": _with_placeholder([_text(_feedback(part))])}


def _result(part: ToolReturnPart) -> str:
    try:
        return part.model_response_str()
    except ValueError:
        # It has broken characters and is not text.
        return json.dumps(part.content, default=repr)


def answered_call(part: ModelRequestPart | ModelResponsePart) -> str | None:
    """Return the id of the call that a part answers; None if it answers none."""
    if isinstance(part, ToolReturnPart) or (isinstance(part, RetryPromptPart) and part.tool_name):
        return part.tool_call_id or part.tool_name or "?"
    return None


def _feedback(part: ModelRequestPart) -> str:
    """Return the text by which the framework or the application instructs the model."""
    written = getattr(part, "model_response", None)
    text = written() if callable(written) else getattr(part, "content", None)
    return text if isinstance(text, str) else ""


def _response(message: ModelResponse) -> dict[str, object]:
    """Return a response in the OpenAI chat format; arguments that are not a JSON object stay text."""
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
    if calls:
        # A message of calls needs no placeholder for its reasoning.
        content = [part for part in content if part["type"] != "thinking"]
    return {"role": "assistant", "content": content if calls else _with_placeholder(content), "calls": calls}


def _part(part: ModelResponsePart) -> dict[str, object]:
    if isinstance(part, TextPart | SpeechPart):
        return _text(part.content)
    if isinstance(part, ThinkingPart):
        return {"type": "thinking"}
    if isinstance(part, FilePart):
        return _content(part.content)
    return {"type": part.part_kind, "name": getattr(part, "tool_name", None)}


def _content(item: object) -> dict[str, object]:
    """Return what a user or a tool sent as a part of a message in the chat format."""
    if isinstance(item, str | TextContent):
        return _text(item if isinstance(item, str) else item.content)
    if isinstance(item, FileUrl):
        return {"type": "image" if isinstance(item, ImageUrl) else "file", "url": item.url}
    if isinstance(item, BinaryContent):
        return {"type": "image" if item.is_image else "file", "media_type": item.media_type}
    return {"type": "file", "file_id": item.file_id} if isinstance(item, UploadedFile) else _text("")


def _text(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


def _with_placeholder(content: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return content with a placeholder where it has no text: a message must not be empty."""
    if any(clean(str(part["text"])).strip() for part in content if part["type"] == "text"):
        return content
    return [part for part in content if part["type"] != "text"] or [_text(EMPTY)]


def _arguments(part: ToolCallPart) -> dict[str, object] | str:
    text = part.args if isinstance(part.args, str) else json.dumps(part.args or {}, default=repr)
    if text.count("{") + text.count("[") > _DEEP:
        return text
    try:
        arguments = json.loads(text or "{}")
    except ValueError:
        # The model wrote invalid JSON, which is stored as it is.
        return text
    return arguments if isinstance(arguments, dict) else text


_said = attrgetter("role", "content", "calls", "call_id")


class _Original(NamedTuple):
    """The original of a message, and its number among the slices of its request."""

    message: ModelMessage
    number: int


def _original(message: Message) -> _Original | None:
    """Return the original of a message if it agrees with it; only the message's own text was checked."""
    raw = message.raw or {}
    text, number = raw.get("pydantic_ai"), raw.get("part")
    if not isinstance(text, str) or not isinstance(number, int):
        return None
    try:
        (original,) = ModelMessagesTypeAdapter.validate_python([json.loads(text)])
        same, there = formats.ready(write(original, number)), formats.ready(message)
    except (ValueError, RecursionError):
        # Another version of the framework wrote it.
        return None
    return _Original(original, number) if _said(same) == _said(there) else None


def _from_words(message: Message, names: dict[str, str]) -> Iterator[ModelMessage]:
    """Yield messages of the framework made of one from elsewhere."""
    for item in formats.to_openai(message):
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


# What is stored of a run


class PartIndex(NamedTuple):
    """The index of a message, and of a part of a request."""

    message: int
    part: int = 0


class PlacedMessage(NamedTuple):
    """A message to store, and the place in the framework's messages that it was made of."""

    place: PartIndex
    message: Message


def placed_messages(messages: Sequence[ModelMessage]) -> Iterator[PlacedMessage]:
    """Yield the messages to store, each with an id that is the same whenever the framework passes it.

    The framework merges and splits requests, and fills in fields of the run. So each part of a request
    becomes a message of its own, without those fields. Parts have a time, so that a text which is repeated
    later is another message.
    """
    first = first_request(messages)
    twins: Counter[str] = Counter()
    for number, message in enumerate(messages):
        if isinstance(message, ModelResponse):
            if message.state == "suspended":
                # It is passed again when it is complete.
                continue
            own: list[tuple[int, ModelMessage]] = [
                (0, replace(message, run_id=None, conversation_id=None, metadata=None))
            ]
        else:
            own = [
                (place, ModelRequest(parts=[part]))
                for place, part in enumerate(message.parts)
                if _lasts(part, is_first=number == first)
            ]
        for place, piece in own:
            written, lasting = write(piece), _without_objects(piece)
            known = written.raw if lasting is piece else write(lasting).raw
            key = blake2b(json.dumps(known).encode(), digest_size=16).hexdigest()
            twins[key] += 1
            name = key if twins[key] == 1 else f"{key}-{twins[key]}"
            yield PlacedMessage(PartIndex(number, place), replace(written, id=name))


def _without_objects(message: ModelMessage) -> ModelMessage:
    """Return a message without arguments and results of tools: objects that may change during the run."""
    if isinstance(message, ModelResponse):
        if not calls_of(message):
            return message
        return replace(
            message,
            parts=[
                ToolCallPart(part.tool_name, tool_call_id=part.tool_call_id)
                if isinstance(part, ToolCallPart)
                else part
                for part in message.parts
            ],
        )
    (part,) = message.parts
    if not isinstance(part, ToolReturnPart):
        return message
    same = ToolReturnPart(part.tool_name, "", part.tool_call_id, timestamp=part.timestamp)
    return ModelRequest(parts=[same])


def _lasts(part: ModelRequestPart, *, is_first: bool) -> bool:
    """Return whether a part belongs to the conversation, not to the settings of the agent."""
    if isinstance(part, SystemPromptPart):
        return not is_first and part.scope == "conversation"
    return part.part_kind not in NOTED


def calls_of(message: ModelMessage) -> list[str]:
    """Return the ids of the calls of a message."""
    return [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]


def answered_calls(messages: Iterable[ModelMessage]) -> set[str]:
    """Return the ids of the calls that messages answer."""
    calls = (answered_call(part) for message in messages for part in message.parts)
    return {call for call in calls if call is not None}


def first_request(messages: Sequence[ModelMessage]) -> int:
    """Return the index of the request with the agent's system prompt, if it has one; -1 without a request."""
    return next((n for n, message in enumerate(messages) if isinstance(message, ModelRequest)), -1)
