"""Items of other frameworks' sessions: stored whole, and read as messages where their form is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from holdfast.errors import Damaged, InvalidInput
from holdfast.port import formats
from holdfast.types import Message

if TYPE_CHECKING:
    from holdfast.port.items import Payload

T = TypeVar("T")


def check_type(value: object, kind: type[T], what: str, todo: str) -> T:
    """Return a value that is of a type of a framework; raise InvalidInput for any other."""
    if not isinstance(value, kind):
        raise InvalidInput(f"{what} is of the type {type(value).__name__!r}.", todo)
    return value


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
        draft = formats.parse(entry)
        message = Message(
            draft.role,
            draft.content,
            calls=draft.calls,
            call_id=draft.call_id,
            answers=draft.answers,
            raw=raw,
            meta=meta or {},
        )
        # Only calls can hold values that cannot be stored; checking others would scan their text twice.
        return formats.ready(message) if message.calls else message
    except (InvalidInput, RecursionError):
        return None


@contextmanager
def restoring(message: Message | Payload, what: str, package: str) -> Iterator[None]:
    """Raise Damaged if the block fails to convert a stored message back to that of a framework."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise Damaged(
            f"Message {message.seq} of the chat is {what}: {error}.",
            f"Update {package}, or erase the message.",
        ) from error
