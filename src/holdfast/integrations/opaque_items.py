"""Items of other frameworks' sessions: stored whole, and read as messages where their form is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.errors import InvalidInput
from holdfast.messages import formats
from holdfast.messages.normalize import ready
from holdfast.prompt.build import to_chat
from holdfast.types import Message

if TYPE_CHECKING:
    from holdfast.types import Prompt


def read_message(
    entry: Mapping[str, object],
    raw: Mapping[str, object] | None = None,
    meta: Mapping[str, object] | None = None,
) -> Message | None:
    """Return the message in an item that has the form of OpenAI's or Anthropic's; None for any other.

    It has the `raw` and `meta` that are given, and no id, time and name: those are the framework's, which may
    repeat them.
    """
    if not isinstance(entry.get("type"), str | None):
        return None
    try:
        found = formats.parse(entry)
        message = Message(
            found.role,
            found.content,
            calls=found.calls,
            call_id=found.call_id,
            answers=found.answers,
            raw=raw,
            meta=meta or {},
        )
        # Only calls can hold values that cannot be stored; checking others would scan their text twice.
        return ready(message) if message.calls else message
    except (InvalidInput, RecursionError):
        return None


def recalled(prompt: Prompt) -> str:
    """Return the text of the recall block: the one message of a prompt that is not in its window."""
    window = prompt.window
    plain = [*prompt.messages[: len(window.summaries)], *to_chat(window.messages), None]
    different = (one for one, other in zip(prompt.messages, plain, strict=False) if one != other)
    return str(next(different)["content"]) if prompt.hits else ""
