"""Results with the credentials in messages and summaries masked."""

from dataclasses import fields, replace
from typing import Any, cast

from holdfast.safety.guard import mask_values, masked_message, masked_summary
from holdfast.types import Description, Expansion, Message, Prompt, Summary, Window


# Any: results of many types.
def masked(value: Any) -> Any:
    """Return a result with its credentials masked, and those of what it is made of."""
    match value:
        case Message():
            return masked_message(value)
        case Summary():
            return masked_summary(value)
        case Prompt():  # its messages are also those of the chat itself
            messages = list(map(mask_values, value.messages))
            return replace(value, messages=messages, window=masked(value.window))
        case list() | tuple():
            return type(value)(map(masked, value))
        case Window() | Expansion() | Description():
            parts = {one.name: masked(getattr(value, one.name)) for one in fields(value)}
            return replace(cast("Any", value), **parts)
    return value
