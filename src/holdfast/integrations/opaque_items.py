"""What frameworks keep of a session is opaque to us: it is kept whole, and read as far as it can be. What they show of ours."""

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


def told(entry: Mapping[str, object]) -> Message | None:
    """Read what was said or called in an entry that is like a message of OpenAI or Anthropic; None if that is not clear.

    Its ids, times and names are not taken over: they are those of the framework, which may repeat them.
    """
    if not isinstance(entry.get("type"), str | None):
        return None
    try:
        said = formats.parse(entry)
        message = Message(
            said.role, said.content, calls=said.calls, call_id=said.call_id, answers=said.answers
        )
        # Only calls can hold what cannot be stored. Of the rest, the check would scan the text, which append
        # does anyway.
        return ready(message) if message.calls else message
    except (InvalidInput, RecursionError):
        return None


def recalled(prompt: Prompt) -> str:
    """Return the text of what was recalled: the one message of a prompt that its window does not have."""
    window = prompt.window
    plain = [*prompt.messages[: len(window.summaries)], *to_chat(window.messages), None]
    different = (one for one, other in zip(prompt.messages, plain, strict=False) if one != other)
    return str(next(different)["content"]) if prompt.hits else ""
