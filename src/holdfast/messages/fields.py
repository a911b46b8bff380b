"""A message made of fields that are named one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from holdfast.errors import InvalidInput
from holdfast.types import Message, Role, Time, ToolCall, as_time


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


def from_fields(
    *,
    role: Role | None = None,
    content: str = "",
    id: str = "",
    name: str | None = None,
    at: Time | None = None,
    calls: Sequence[ToolCall] = (),
    call_id: str | None = None,
    raw: Mapping[str, object] | None = None,
    meta: Mapping[str, object] | None = None,
) -> Message:
    """Return the message that has these fields.

    Raises:
        InvalidInput: there is no role.

    """
    if role is None:
        raise InvalidInput("There is nothing to append.", "Pass role= and content=, a message, or a list.")
    return Message(
        role,
        content,
        id=id,
        name=name,
        at=as_time(at, "at"),
        calls=tuple(calls or ()),
        call_id=call_id,
        raw=raw,
        meta=meta or {},
    )
