"""Messages before they are stored: read from any format, checked and cleaned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.errors import InvalidInput, shown
from holdfast.messages import formats
from holdfast.text.clean import clean
from holdfast.text.json_text import dump
from holdfast.types import AnyMessage, Message, check_name


def check_list(messages: object) -> Sequence[AnyMessage]:
    """Return `messages` if it is a list, or raise InvalidInput."""
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise InvalidInput(
            f"Cannot append {type(messages).__name__}.",
            "Pass role= and content=, a Message, a dict, or a list.",
        )
    return messages


def ready(item: AnyMessage) -> Message:
    """Return a message that can be stored, from any of the formats that `Chat.append` takes.

    Raises:
        InvalidInput: it is not a message, or a part of it cannot be stored.

    """
    message = item if isinstance(item, Message) else formats.parse(item, may_say_nothing=True)
    message = formats.cleaned(message)
    _check(message)
    return message


def _check(message: Message) -> None:
    """Raise InvalidInput where a part of a message has the wrong type, or fits only one of the databases."""
    for name in (message.id, message.name):
        if name not in ("", None):
            check_name(name, "An id or a name in a message")
    for value, what in ((message.raw, "raw"), (message.meta, "meta")):
        if value is not None and not isinstance(value, Mapping):
            raise InvalidInput(
                f"`{what}` must be a dict, not {type(value).__name__}.", "Pass a dict of JSON values."
            )
    for identity in (*message.answers, *([] if message.call_id is None else [message.call_id])):
        _check_call_text(identity)
    for call in message.calls:
        if not isinstance(call.arguments, Mapping | str):
            raise InvalidInput(
                f"The arguments of a tool call are {type(call.arguments).__name__}.",
                "Use a dict or JSON text.",
            )
        _check_call_text(call.id)
        _check_call_text(call.name)
        # Before their tokens are counted.
        dump(call.arguments, "The arguments of a tool call")


def _check_call_text(text: object) -> None:
    if not isinstance(text, str) or clean(text) != text:
        raise InvalidInput(
            f"{shown(text)} cannot be the id or the name of a tool call.",
            "Use text without NUL or lone surrogates.",
        )
