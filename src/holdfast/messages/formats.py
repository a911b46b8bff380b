"""Messages from and to dicts: the formats of OpenAI and Anthropic, and our own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

from holdfast.errors import InvalidInput, shown
from holdfast.messages.media import FILE_PARTS, IMAGE_PARTS
from holdfast.text.clean import clean, each_text, whole
from holdfast.types import Dumpable, Message, Role, ToolCall
from holdfast.types.messages import check_words

# The content of a message that only reasons: the thoughts stay in `raw`, out of prompts.
REASONING = "[reasoning]"
_TIME_FORMS = "Use a datetime, ISO 8601 text or seconds since the epoch."
_SPEAKING = ("user", "assistant", "system", "developer")
_TIMES = ("at", "timestamp", "created_at")
_TEXT_PARTS = {"text", "input_text", "output_text", "summary_text"}
_REASONING_PARTS = {"thinking", "redacted_thinking", "reasoning"}
_REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "thinking")


def parse(payload: Mapping[str, object] | Dumpable, *, may_say_nothing: bool = False) -> Message:
    """Return the message of a dict in the format of OpenAI or Anthropic, or with the fields of `Message`.

    An object with `model_dump`, such as the message in a client's response, is read by that. The dict becomes
    `raw`, except where it has a field `raw`: that is an exported message. Content parts become text, with the
    placeholders `[image: …]` and `[file: …]` for other media; reasoning stays in `raw` only. The keys `at`,
    `timestamp` and `created_at` hold the time. `may_say_nothing`: also an assistant's, as in our export.

    Raises:
        InvalidInput: no role or an unknown one, nothing in it, or parts of a shape that neither format has.

    """
    payload = _with_text_for_times(_dump(payload))
    if plain := _plain(payload):
        return plain
    item = _from_response_item(payload)
    role = _role(item.get("role"))
    texts, calls, answers = read_parts(item.get("content"))
    calls += _read_tool_calls(item)
    if not any(text.strip() for text in texts):
        texts = _beside_content(item, silent=not calls and not answers) or texts
    if answers or role == "tool":
        role, answers = "tool", answers or _answered_calls(item)
    may_be_blank = "content" in item and (may_say_nothing or item.get("raw") is not None)
    if role == "assistant" and not calls and not may_be_blank:
        check_words("".join(texts))
    call_id = item.get("call_id", answers[0] if answers else None)
    name, identity, raw = item.get("name"), item.get("id"), item.get("raw", payload)
    return Message(
        role,
        clean("\n".join(texts)),
        id=clean(identity) if isinstance(identity, str) else _number_as_text(identity),
        name=clean(name) if isinstance(name, str) and name else None,
        at=read_time(next((item[key] for key in _TIMES if item.get(key)), None)),
        calls=tuple(calls),
        call_id=clean(call_id) if isinstance(call_id, str) else None,
        answers=tuple(clean(answer) for answer in answers),
        raw=None if raw is None else _dict(raw, "`raw`", "Pass the original payload, or omit it."),
        meta=_dict(item.get("meta", {}), "`meta`", "Pass a dict of JSON values."),
    )


def _plain(payload: Mapping[str, object]) -> Message | None:
    """Return the message of a dict that has a role and a text alone, as most do; None of any other."""
    role, content = payload.get("role"), payload.get("content")
    if len(payload) > 2 or role not in _SPEAKING or not isinstance(content, str) or not content.strip():
        return None
    return Message(cast("Role", role), clean(content), raw=payload)


def _dict(value: object, field: str, todo: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{field} of a message must be a dict.", todo)
    return value


def _dump(payload: Mapping[str, object] | Dumpable) -> Mapping[str, object]:
    dump = getattr(payload, "model_dump", None)
    if callable(dump):
        try:
            payload = dump(mode="json")
        except Exception as error:
            raise InvalidInput(
                f"The `model_dump` of {type(payload).__name__} failed: {error}.", "Pass a dict."
            ) from error
    if not isinstance(payload, Mapping):
        raise InvalidInput(
            f"A message must be a Message or a dict, not {type(payload).__name__}.", "Pass one of these."
        )
    return payload


def _with_text_for_times(payload: Mapping[str, object]) -> Mapping[str, object]:
    """Return the payload with times as text: JSON has no datetime."""
    times = {key: time.isoformat() for key in _TIMES if isinstance(time := payload.get(key), datetime)}
    return {**payload, **times} if times else payload


def _number_as_text(identity: object) -> str:
    """Return a number that serves as an id as text, "" for anything else."""
    try:
        return str(identity) if type(identity) is int else ""
    except ValueError as error:
        raise InvalidInput("The id of a message has more than 4,300 digits.", "Use a shorter one.") from error


def cleaned(message: Message) -> Message:
    """Return the message with clean content and calls; where that loses text, the original is in `raw`."""
    for name, items in (("calls", "ToolCalls"), ("answers", "ids")):
        if not isinstance(getattr(message, name), tuple):
            raise InvalidInput(f"The `{name}` of a Message must be a tuple.", f"Pass a tuple of {items}.")
    content, calls = clean(message.content), tuple(map(_cleaned_call, message.calls))
    if content == message.content and calls == message.calls:
        return message
    original: dict[str, object] = {"role": message.role, "content": whole(message.content)}
    given = [each_text(call.arguments, whole) for call in message.calls]
    if calls:
        original["calls"] = [
            {"id": call.id, "name": call.name, "arguments": arguments}
            for call, arguments in zip(message.calls, given, strict=True)
        ]
    is_lost = original["content"] != content or given != [call.arguments for call in calls]
    return replace(
        message, content=content, calls=calls, raw=(message.raw or original) if is_lost else message.raw
    )


def _cleaned_call(call: ToolCall) -> ToolCall:
    if not isinstance(call, ToolCall):
        raise InvalidInput(f"A tool call is {type(call).__name__}.", "Pass a ToolCall.")
    try:
        arguments = each_text(call.arguments, clean)
    except RecursionError as error:
        raise InvalidInput(
            "The arguments of a tool call are nested too deeply.", "Make them flatter."
        ) from error
    return replace(call, arguments=cast("Mapping[str, object] | str", arguments))


def read_time(value: object) -> datetime | None:
    """Return a time from a datetime (naive is UTC), ISO 8601 text, or (milli)seconds since the epoch.

    Raises:
        InvalidInput: it is none of these.

    """
    if value is None:
        return None
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            value = datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInput(f"Invalid time {shown(value)}.", _TIME_FORMS) from error
    if not isinstance(value, datetime):
        raise InvalidInput(f"Invalid time {shown(value)}.", _TIME_FORMS)
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def export(message: Message) -> dict[str, object]:
    """Return a stored message as a JSON-compatible dict that `parse` reads back into an equal message."""
    optional: dict[str, object] = {
        "at": message.at and message.at.isoformat(),
        "name": message.name or None,
        "calls": [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in message.calls],
        "call_id": message.call_id,
        "answers": [] if message.answers == (message.call_id,) else list(message.answers),
        "meta": dict(message.meta),
    }
    return {
        "role": message.role,
        "content": message.content,
        "id": message.id,
        **{name: value for name, value in optional.items() if value not in (None, [], {})},
        "raw": dict(message.raw) if message.raw is not None else None,
    }


def texts_of(content: object) -> str:
    """Return the text of content as in a message, with placeholders for media.

    Raises:
        InvalidInput: parts of a shape that no format has.

    """
    return clean("\n".join(read_parts(content)[0]))


def _role(value: object) -> Role:
    if value is None:
        raise InvalidInput("The message has no role.", "Add 'role': 'user', 'assistant', 'system' or 'tool'.")
    return cast("Role", "tool" if value == "function" else value)


def _from_response_item(payload: Mapping[str, object]) -> Mapping[str, object]:
    """Return an item of OpenAI's Responses format (call, output, reasoning) in the shape of a message."""
    kind = payload.get("type")
    if "role" in payload or not isinstance(kind, str):
        return payload
    if kind in {"function_call", "custom_tool_call"}:
        call = {"id": payload.get("call_id"), "function": payload}
        moved: dict[str, object] = {"content": "", "tool_calls": [call], "name": None, "call_id": None}
        return {**payload, "role": "assistant", **moved}
    if kind in {"function_call_output", "custom_tool_call_output"}:
        moved = {"content": payload.get("output"), "tool_call_id": payload.get("call_id")}
        return {**payload, "role": "tool", **moved}
    if kind == "reasoning":
        return {**payload, "role": "assistant", "content": REASONING}
    return payload


def _beside_content(item: Mapping[str, object], *, silent: bool) -> list[str]:
    """Return the text beside an empty content: a refusal, a transcript of speech, or `REASONING`."""
    refusal, audio = item.get("refusal"), item.get("audio")
    if isinstance(refusal, str) and refusal:
        return [refusal]
    if isinstance(audio, Mapping):
        return [_string(audio.get("transcript")) or f"[file: {_part_name(audio)}]"]
    return [REASONING] if silent and any(item.get(field) for field in _REASONING_FIELDS) else []


def _answered_calls(item: Mapping[str, object]) -> list[str]:
    """Return the ids of the calls that a result answers."""
    answers, call = item.get("answers"), item.get("tool_call_id")
    # Our own export of a message that answers many calls.
    if isinstance(answers, list) and all(isinstance(text, str) for text in answers):
        return [*answers]
    # The legacy format names the function instead of the call.
    if not isinstance(call, str) and item.get("role") == "function":
        call = item.get("name")
    return [call] if isinstance(call, str) else []


def _string(value: object) -> str:
    """Return text, also that of OpenAI's `{"value": …}`, or nothing."""
    if isinstance(value, Mapping):
        value = value.get("value")
    return value if isinstance(value, str) else ""


def blocks_of(content: object) -> Iterator[Mapping[str, object]]:
    """Yield the parts of content that are dicts."""
    if isinstance(content, Sequence) and not isinstance(content, str | bytes):
        for part in content:
            if isinstance(part, Mapping):
                yield part


def read_parts(content: object) -> tuple[list[str], list[ToolCall], list[str]]:
    """Return the texts, the tool calls and the ids of answered calls in content.

    Raises:
        InvalidInput: a part has a shape that no format has, or is nested too deeply.

    """
    try:
        return _read_parts(content)
    except RecursionError as error:
        raise InvalidInput("The content of the message is nested too deeply.", "Make it flatter.") from error


def _read_parts(content: object) -> tuple[list[str], list[ToolCall], list[str]]:
    if content is None or isinstance(content, str):
        return ([content] if content else []), [], []
    if not isinstance(content, Sequence) or isinstance(content, bytes):
        raise InvalidInput(
            f"The content of a message must be text or a list of parts, not {type(content).__name__}.",
            "Pass either.",
        )
    texts: list[str] = []
    calls: list[ToolCall] = []
    answers: list[str] = []
    reasoned = False
    for part in content:
        if isinstance(part, str):
            texts.append(part)
            continue
        if not isinstance(part, Mapping):
            raise InvalidInput(
                f"A part of the content is {type(part).__name__}.", "Use text or a dict with a 'type'."
            )
        kind = str(part.get("type") or ("text" if "text" in part else "part"))
        if kind == "tool_use":
            calls.append(_call(part.get("id"), part.get("name"), part.get("input")))
        elif kind == "tool_result":
            if not isinstance(part.get("tool_use_id"), str):
                raise InvalidInput("A tool result does not name its call.", "Give it a 'tool_use_id'.")
            answers.append(part["tool_use_id"])
            texts.extend(_read_parts(part.get("content"))[0])
        elif kind in _REASONING_PARTS:
            reasoned = True
        else:
            text = _part_text(kind, part)
            if text:
                texts.append(text)
    if reasoned and not texts and not calls and not answers:
        texts.append(REASONING)
    return texts, calls, answers


def _part_text(kind: str, part: Mapping[str, object]) -> str:
    if kind in _TEXT_PARTS:
        return _string(part.get("text"))
    if kind == "refusal":
        return _string(part.get("refusal"))
    if kind in IMAGE_PARTS:
        return f"[image: {_part_name(part)}]"
    if kind in FILE_PARTS:
        return f"[file: {_part_name(part)}]"
    # Such as a tool that the provider itself runs: its result is in the same message.
    name = part.get("name")
    return f"[{kind}: {name}]" if isinstance(name, str) and name else f"[{kind}]"


def _part_name(part: Mapping[str, object]) -> str:
    """Return the best name of an image or a file: its name, title, address or type."""
    objects = [part, *(value for value in part.values() if isinstance(value, Mapping))]

    def texts(*keys: str) -> Iterator[str]:
        values = (fields.get(key) for fields in objects for key in keys)
        return (value for value in values if isinstance(value, str))

    if name := next(filter(None, texts("filename", "name", "title", "alt", "caption", "file_id")), ""):
        return name
    for address in filter(None, texts("url", "image_url", "file_url")):
        if not address.startswith("data:"):
            return address.split("?")[0].rstrip("/").rsplit("/", 1)[-1] or address
    return next(texts("media_type", "format", "mime_type"), "unnamed")


def _read_tool_calls(item: Mapping[str, object]) -> list[ToolCall]:
    calls = []
    for entry in blocks_of(item.get("tool_calls")):
        function = entry.get("function", entry.get("custom", entry))
        if not isinstance(function, Mapping):
            raise InvalidInput(
                "A tool call has no function.", "Use {'id': …, 'function': {'name': …, 'arguments': …}}."
            )
        arguments = function.get("arguments", function.get("input"))
        calls.append(_call(entry.get("id"), function.get("name"), arguments))
    for entry in blocks_of(item.get("calls")):
        arguments = cast("Mapping[str, object] | str", entry.get("arguments", {}))
        calls.append(replace(_call(entry.get("id"), entry.get("name"), {}), arguments=arguments))
    legacy = item.get("function_call")
    if isinstance(legacy, Mapping):
        calls.append(_call(legacy.get("name"), legacy.get("name"), legacy.get("arguments")))
    return calls


def _call(identity: object, name: object, arguments: object) -> ToolCall:
    if not isinstance(name, str) or not name:
        raise InvalidInput("A tool call has no name.", "Name the tool that it calls.")
    if isinstance(arguments, str):
        try:
            parsed = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError):
            # Text that is not JSON is kept as it is.
            parsed = None
        arguments = parsed if isinstance(parsed, dict) else arguments
    elif arguments is None:
        arguments = {}
    if not isinstance(arguments, Mapping | str):
        raise InvalidInput(
            f"The arguments of {name!r} are {type(arguments).__name__}.", "Use a dict or JSON text."
        )
    return ToolCall(clean(str(identity or name)), clean(name), arguments)
