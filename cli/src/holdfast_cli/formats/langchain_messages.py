"""Messages in LangChain's own form, `message_to_dict`, without LangChain."""

from collections.abc import Mapping
from typing import NamedTuple

from holdfast.errors import InvalidInput
from holdfast.port import formats
from holdfast.types import Message
from holdfast_cli.formats.json_values import dict_of, list_of, text_of

_ROLES = {
    "human": "user", "user": "user", "ai": "assistant", "assistant": "assistant", "system": "system",
    "developer": "developer", "tool": "tool", "function": "tool",
}  # fmt: skip
_TYPES = {"user": "human", "assistant": "ai", "developer": "system"}
# Where LangChain keeps the role of what it has as a system message.
_ROLE = "__openai_role__"


class Extension(NamedTuple):
    """A value of a type that a program made, by its code, undecoded."""

    code: int
    data: bytes


def is_langchain(value: object) -> bool:
    """Return whether a value is a message as `message_to_dict` returns it."""
    entry = dict_of(value)
    return isinstance(entry.get("data"), Mapping) and entry.get("type") in _ROLES


def to_langchain(message: Message) -> list[dict[str, object]]:
    """Return a message as LangChain has it; one that answers several calls becomes one dict per call.

    What LangChain's messages were stored from is returned as it was, but for the id.
    """
    if own := own_form(message.raw):
        return [{**own, "data": {**dict_of(own["data"]), "id": message.id}}]
    calls: dict[str, object] = {"tool_calls": [], "invalid_tool_calls": []} if message.calls else {}
    for call in message.calls:
        is_whole = isinstance(call.arguments, Mapping)
        fields = {"name": call.name, "args": call.arguments, "id": call.id}
        kind = "tool_call" if is_whole else "invalid_tool_call"
        list_of(calls[f"{kind}s"]).append({**fields, "type": kind} | ({} if is_whole else {"error": None}))
    return [_entry(item, calls, message.id, n) for n, item in enumerate(formats.to_openai(message), 1)]


def own_form(raw: Mapping[str, object] | None) -> Mapping[str, object] | None:
    """Return a payload in LangChain's own form, None of any other; `read_langchain` stores the inner dict."""
    if raw is not None and {"type", "content", "id"} <= raw.keys() and "role" not in raw:
        raw = {"type": raw["type"], "data": raw}
    return raw if is_langchain(raw) else None


def _entry(
    item: Mapping[str, object], calls: Mapping[str, object], identity: str, place: int
) -> dict[str, object]:
    role = str(item["role"])
    kind = _TYPES.get(role, role)
    # LangGraph replaces a message by one of the same id.
    data = {"content": item["content"], "type": kind, "id": identity if place == 1 else f"{identity}/{place}"}
    data |= {key: item[key] for key in ("name", "tool_call_id") if key in item}
    extra: dict[str, object] = {"additional_kwargs": {_ROLE: role}} if role == "developer" else {}
    return {"type": kind, "data": {**data, **extra, **(calls if kind == "ai" else {})}}


def read_langchain(fields: Mapping[str, object], identity: str, at: object = None) -> Message:
    """Return the message that has these fields of one of LangChain's classes, under an id.

    Raises:
        InvalidInput: its type is unknown, or it is none for another reason.

    """
    kind = text_of(fields.get("type")).removesuffix("MessageChunk").lower()
    role = _ROLES.get(kind) or text_of(fields.get("role"))
    if not role:
        raise InvalidInput(f"No role is known for a message of the type {kind[:40]!r}.", "Skip it.")
    content = fields.get("content")
    has_calls = any(part.get("type") == "tool_use" for part in formats.blocks_of(content))
    entries = [*list_of(fields.get("tool_calls")), *list_of(fields.get("invalid_tool_calls"))]
    calls = [
        {"id": call.get("id"), "function": {"name": call.get("name"), "arguments": call.get("args")}}
        for call in map(dict_of, entries)
    ]
    is_developer = dict_of(fields.get("additional_kwargs")).get(_ROLE) == "developer"
    return formats.parse(
        {
            "role": "developer" if role == "system" and is_developer else role,
            "content": content,
            "id": identity,
            "name": fields.get("name"),
            "tool_calls": [] if has_calls else calls,
            "tool_call_id": fields.get("tool_call_id"),
            "at": at,
            "raw": readable(fields),
        }
    )


def readable(value: object) -> object:
    """Return a value as JSON has it: bytes, and what a program would construct, by their sizes only."""
    if isinstance(value, Mapping):
        return {str(key): readable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [readable(item) for item in value]
    if isinstance(value, bytes | Extension):
        data = value if isinstance(value, bytes) else value.data
        return f"[{len(data):,} bytes]"
    return value
