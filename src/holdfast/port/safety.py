"""Credentials masked in what is displayed, and what the guard finds in a text."""

from dataclasses import fields, replace
from typing import Any, TypeVar, cast

from holdfast.safety import guard
from holdfast.safety.guard import mask_name, replace_invisible, scan
from holdfast.types import Description, Expansion, Message, Prompt, Summary, Window

T = TypeVar("T")


def mask(value: T) -> T:
    """Return a text, JSON values or a result, with the credentials in it and in its parts masked."""
    return cast("T", _mask_parts(value))


# Any: results of many types.
def _mask_parts(value: Any) -> Any:
    match value:
        case str():
            return guard.mask(value)
        case Message():
            return guard.masked_message(value)
        case Summary():
            return guard.masked_summary(value)
        case Prompt():  # its messages are also those of the chat itself
            parts = {"messages": _mask_parts(value.messages), "window": _mask_parts(value.window)}
            return replace(value, **parts, recalled=guard.mask(value.recalled))
        case list() | tuple():
            return type(value)(map(_mask_parts, value))
        case dict():
            return guard.mask_values(value)
        case Window() | Expansion() | Description():
            parts = {field.name: _mask_parts(getattr(value, field.name)) for field in fields(value)}
            return replace(cast("Any", value), **parts)
    return value
