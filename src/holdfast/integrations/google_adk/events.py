"""Events of ADK as messages of a chat, without loss: `raw` has the event."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from google.adk.events.event import Event

from holdfast.errors import InvalidInput
from holdfast.integrations.framework_keys import digest
from holdfast.integrations.google_adk.app_memory import FRAMEWORK
from holdfast.integrations.opaque_items import read_message, restoring
from holdfast.port.texts import clean
from holdfast.types import Message, Role

if TYPE_CHECKING:
    from google.genai.types import FunctionResponse, Part

# The content of an event without text, such as a change of state.
_EMPTY = "[event]"
_LONGEST = 120  # characters of the id of an event that is that of the message
_TEMPORARY = "temp:"


def to_message(event: Event, meta: Mapping[str, object] | None = None) -> Message:
    """Return the message to store for an event, without what is in `temp:` state.

    Raises:
        InvalidInput: it holds what is not JSON, or its time is out of range.

    """
    try:
        raw = event.model_dump(mode="json", exclude_none=True)
        at = datetime.fromtimestamp(event.timestamp, UTC)
    except (TypeError, ValueError, OverflowError, OSError) as error:
        raise InvalidInput(
            f"An event cannot be stored: {error}.", "Let it hold JSON, and a time of the calendar."
        ) from error
    state = raw.get("actions", {}).get("state_delta", {})
    for name in [name for name in state if name.startswith(_TEMPORARY)]:
        del state[name]
    role: Role = "user" if event.author == "user" else "assistant"
    parts = list(_parts(event.content.parts or [])) if event.content else []
    message = read_message({"role": role, "content": parts}) if parts else None
    if message is None or not (message.content or message.calls):
        message = Message(role, clean(event.error_message or "") or _EMPTY)
    is_name = role != "user" and 0 < len(event.author) <= _LONGEST and event.author.isprintable()
    return replace(
        message,
        id=message_id(event.id),
        name=event.author if is_name and event.author.strip() else None,
        at=at,
        raw=raw,
        meta={FRAMEWORK: "event"} if meta is None else meta,
    )


def to_event(message: Message) -> Event:
    """Return the event of a message.

    Raises:
        Damaged: it has none.

    """
    with restoring(message, "no event of ADK", "google-adk"):
        return Event.model_validate(message.raw)


def is_event(message: Message) -> bool:
    """Return whether a message is an event of a session, and none that others appended to its chat."""
    return message.raw is not None and message.meta.get(FRAMEWORK) == "event"


def is_said(event: Event) -> bool:
    """Return whether an event has content and is complete."""
    return bool(event.content and event.content.parts) and not event.partial


def message_id(event_id: str) -> str:
    """Return the id of the message of an event; "" for a new one."""
    fine = len(event_id) <= _LONGEST and event_id.isprintable() and event_id == event_id.strip()
    return event_id if fine else digest(event_id)


def _parts(parts: list[Part]) -> Iterator[dict[str, object]]:
    """Yield the parts of an event in the forms of OpenAI and Anthropic."""
    for part in parts:
        if part.text is not None:
            kind = "thinking" if part.thought else "text"
            yield {"type": kind, kind: part.text}
        elif (call := part.function_call) is not None:
            name = call.name or "function"
            yield {"type": "tool_use", "id": call.id or name, "name": name, "input": call.args or {}}
        elif (answer := part.function_response) is not None:
            id = answer.id or answer.name or "function"
            yield {"type": "tool_result", "tool_use_id": id, "content": _result(answer)}
        elif part.executable_code is not None:
            yield {"type": "text", "text": part.executable_code.code or ""}
        elif part.code_execution_result is not None:
            yield {"type": "text", "text": part.code_execution_result.output or ""}
        elif media := part.inline_data or part.file_data:
            kind = "image" if (media.mime_type or "").startswith("image/") else "file"
            names = {"name": media.display_name, "url": getattr(media, "file_uri", None)}
            yield {"type": kind, **names, "media_type": media.mime_type}


def _result(answer: FunctionResponse) -> str:
    """Return the result of a call as text; ADK puts a value that is no dict under "result"."""
    response = answer.response or {}
    value = response["result"] if response.keys() == {"result"} else response
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
