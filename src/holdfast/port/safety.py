"""Credentials masked in what is displayed, and what the guard finds in a text."""

from dataclasses import fields, replace
from typing import Any, TypeVar, cast

from holdfast.safety import guard
from holdfast.safety.guard import mask_name, replace_invisible, scan
from holdfast.types import Description, Expansion, Message, Prompt, Summary, Window

T = TypeVar("T")


def mask(value: T) -> T:
    """Return a text, JSON values or a result with its credentials masked, and those of what it is made of."""
    return cast("T", _masked(value))


# Any: results of many types.
def _masked(value: Any) -> Any:
    match value:
        case str():
            return guard.mask(value)
        case Message():
            return guard.masked_message(value)
        case Summary():
            return guard.masked_summary(value)
        case Prompt():  # its messages are also those of the chat itself
            parts = {"messages": _masked(value.messages), "window": _masked(value.window)}
            return replace(value, **parts, recalled=guard.mask(value.recalled))
        case list() | tuple():
            return type(value)(map(_masked, value))
        case dict():
            return guard.mask_values(value)
        case Window() | Expansion() | Description():
            return replace(
                cast("Any", value), **{one.name: _masked(getattr(value, one.name)) for one in fields(value)}
            )
    return value
