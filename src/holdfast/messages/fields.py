"""A message made of fields that are named one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from holdfast.errors import InvalidInput
from holdfast.types import Message, Role, Time, ToolCall, as_time

if TYPE_CHECKING:
    from typing import Unpack


class MessageFields(TypedDict, total=False):
    """The fields of one message, as `Chat.append` takes them by name; see `Message`."""

    role: Role
    content: str
    id: str
    name: str | None
    at: Time | None
    calls: Sequence[ToolCall]
    call_id: str | None
    raw: Mapping[str, object] | None
    meta: Mapping[str, object] | None


def from_fields(**fields: Unpack[MessageFields]) -> Message:
    """Return the message that has these fields.

    Raises:
        InvalidInput: there is no role.
        TypeError: there is no such field.

    """
    if fields.get("role") is None:
        raise InvalidInput("There is nothing to append.", "Pass role= and content=, a message, or a list.")
    if unknown := sorted(fields.keys() - MessageFields.__annotations__.keys()):
        raise TypeError(f"unexpected keyword argument {unknown[0]!r}")
    values: dict[str, Any] = {"content": "", **fields, "at": as_time(fields.get("at"), "at")}
    return Message(**{**values, "calls": tuple(fields.get("calls") or ()), "meta": fields.get("meta") or {}})
