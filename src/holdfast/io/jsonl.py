"""Chat-format messages in JSONL and JSON files: plain, OpenAI, fine-tuning sets, and Holdfast's own export."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.errors import InvalidInput
from holdfast.io.files import File, lines, values
from holdfast.io.found import Found, Session, Skip, found, stable_id, text_of
from holdfast.messages import formats
from holdfast.store.sessions import check_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from holdfast.store.sessions import ChatLabel
    from holdfast.types import Message

_ITEMS = {"message", "function_call", "function_call_output", "reasoning"}  # of OpenAI's Responses format
_NO_MESSAGE = "neither a message nor a session"


def is_message(value: Mapping[str, object]) -> bool:
    """Tell a message in a chat format from other JSON objects."""
    return isinstance(value.get("role"), str) or text_of(value.get("type")) in _ITEMS


def is_session(value: Mapping[str, object]) -> bool:
    """Tell an object that holds the messages of a whole session."""
    return isinstance(value.get("messages"), list)


def read(file: File) -> Iterator[Found | Skip]:
    """Read one message or one whole session a line.

    A message belongs to the chat that it names (`chat`, `session_id` or `conversation_id`), else to the one named
    after the file; a session without an id is named after the file and its line.
    """
    return _read(lines(file), file.name)


def read_document(file: File) -> Iterator[Found | Skip]:
    """Read a JSON file: a list of messages, a list of sessions, or one session."""
    return _read(values(file), file.name)


def _read(items: Iterable[tuple[int, object] | Skip], name: str) -> Iterator[Found | Skip]:
    for item in items:
        if isinstance(item, Skip):
            yield item
            continue
        line, value = item
        if not isinstance(value, dict):
            yield Skip(line, _NO_MESSAGE, problem=True)
        elif isinstance(messages := value.get("messages"), list):
            identity = _first(value, "id", "session_id", "conversation_id", "chat")
            session = _session(value, identity or (f"{name}:{line}" if line else name))
            for position, message in enumerate(messages, start=1):
                yield found(session, line, _message, message, position)
        elif is_message(value):
            session = _session(value, _first(value, "chat", "session_id", "conversation_id") or name)
            yield found(session, line, _message, value, line)
        else:
            yield Skip(line, _NO_MESSAGE, problem=True)


def _first(value: Mapping[str, object], *keys: str) -> str:
    return next((text for key in keys if (text := text_of(value.get(key)))), "")


def _session(value: Mapping[str, object], identity: str) -> Session:
    return Session(
        identity,
        text_of(value.get("title")),
        text_of(value.get("agent")),
        archived=value.get("archived") is True,
        label=_label(value.get("about")),
    )


def _label(about: object) -> ChatLabel | None:
    """Read what an export says about a chat; what is not of that form is somebody else's."""
    if not isinstance(about, dict):
        return None
    created = text_of(about.get("created"))
    try:
        when = datetime.fromisoformat(created) if created else None
        return check_label(about.get("channel"), about.get("meta"), when)
    except (ValueError, InvalidInput):
        return None


def _message(value: dict[str, object], position: int) -> Message:
    message = formats.parse(value)
    return message if message.id else replace(message, id=stable_id(position, value))
