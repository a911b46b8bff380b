"""ChatGPT: the conversations of a data export, `conversations.json` or its numbered parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast

from holdfast.io.files import File, values
from holdfast.io.found import Found, Session, Skip, found, text_of
from holdfast.messages import formats

if TYPE_CHECKING:
    from holdfast.types import Message

_HIDDEN = "hidden in ChatGPT"
_SETTINGS = "settings of the account, not conversation"
_EMPTY = "empty"
_LEFT = "on a branch that was left: the prompt was edited or the answer made anew"
_SETTINGS_TYPES = {"user_editable_context", "model_editable_context"}
_REASONING_TYPES = {"thoughts", "reasoning_recap"}
_PLAIN_TYPES = {"", "text", "multimodal_text", "code", "execution_output"}
_TEXTS = ("title", "name", "text", "result", "content")  # where the content types other than text keep theirs

_Json = Mapping[str, object]


def is_conversation(value: _Json) -> bool:
    """Tell a conversation of an export from other JSON objects."""
    return isinstance(value.get("mapping"), dict)


def read(file: File) -> Iterator[Found | Skip]:
    """Read every conversation as a session: the thread that ChatGPT shows, from `current_node` up to the root.

    Messages that ChatGPT hides, that hold settings or nothing, or that are on other branches, are left out and
    counted. A message to a tool becomes a tool call, and the tool's message its result.
    """
    for item in values(file):
        if isinstance(item, Skip):
            yield item
        elif isinstance(item[1], dict) and is_conversation(item[1]):
            yield from _conversation(item[0], item[1], file.name)
        else:
            yield Skip(item[0], "no conversation", problem=True)


def _conversation(position: int, value: _Json, name: str) -> Iterator[Found | Skip]:
    identity = text_of(value.get("conversation_id")) or text_of(value.get("id"))
    session = Session(
        identity or (f"{name}:{position}" if position else name),
        text_of(value.get("title")),
        archived=value.get("is_archived") is True,
    )
    nodes = {key: node for key, node in _dict(value.get("mapping")).items() if isinstance(node, dict)}
    thread = _thread(value.get("current_node"), nodes)
    call: _Json = {}
    at = value.get("create_time")
    for key in thread:
        message = nodes[key].get("message")
        if not isinstance(message, dict):
            continue  # the root holds none
        at = message.get("create_time") or at
        reason = _why_left_out(message)
        if reason:
            yield Skip(position, reason)
            continue
        yield found(session, position, _message, message, key, at, call)
        if _dict(message.get("author")).get("role") == "user":
            call = {}
        elif _recipient(message):
            call = {"id": text_of(message.get("id")) or key, "name": _recipient(message)}
    passed = set(thread)
    for key, node in nodes.items():
        if key not in passed and isinstance(node.get("message"), dict):
            yield Skip(position, _why_left_out(node["message"]) or _LEFT)


def _thread(current: object, nodes: Mapping[str, _Json]) -> list[str]:
    """Walk from the current node, or else the newest leaf, up to the root, and return the way down."""
    parents: dict[str, str] = {}
    for key, node in nodes.items():
        children = node.get("children")
        parents.update((child, key) for child in children if isinstance(child, str)) if isinstance(
            children, list
        ) else None
    parents.update(
        (key, text_of(node.get("parent"))) for key, node in nodes.items() if text_of(node.get("parent"))
    )
    leaf = current if isinstance(current, str) and current in nodes else _newest_leaf(nodes, parents)
    thread: dict[str, None] = {}
    while leaf in nodes and leaf not in thread:
        thread[leaf] = None
        leaf = parents.get(leaf, "")
    return list(reversed(thread))


def _newest_leaf(nodes: Mapping[str, _Json], parents: Mapping[str, str]) -> str:
    inner = {parents[key] for key in nodes if key in parents}
    leaves = [key for key in nodes if key not in inner]
    return max(reversed(leaves), key=lambda key: _created(nodes[key]), default="")


def _created(node: _Json) -> float:
    created = _dict(node.get("message")).get("create_time")
    return created if isinstance(created, int | float) else 0.0


def _dict(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _why_left_out(message: _Json) -> str:
    kind = text_of(_dict(message.get("content")).get("content_type"))
    if kind in _SETTINGS_TYPES:
        return _SETTINGS
    if (
        message.get("weight") == 0
        or _dict(message.get("metadata")).get("is_visually_hidden_from_conversation") is True
    ):
        return _HIDDEN
    if (
        not _text(message).strip()
        and not _recipient(message)
        and _dict(message.get("author")).get("role") != "tool"
    ):
        return _EMPTY
    return ""


def _recipient(message: _Json) -> str:
    """Name the tool that an assistant's message is for; empty when it is for everyone."""
    recipient = text_of(message.get("recipient"))
    is_call = recipient != "all" and _dict(message.get("author")).get("role") == "assistant"
    return recipient if is_call else ""


def _message(message: dict[str, object], key: str, at: object, call: _Json) -> Message:
    """Put a message into the chat format, with the tool calls that ChatGPT implies made plain, and parse it."""
    author = _dict(message.get("author"))
    identity = text_of(message.get("id")) or key
    fields: dict[str, object] = {
        "role": author.get("role"),
        "content": _text(message),
        "id": identity,
        "name": author.get("name"),
        "at": at,
        "raw": message,
    }
    recipient, tool = _recipient(message), text_of(author.get("name"))
    if recipient:
        fields["content"] = ""
        fields["tool_calls"] = [
            {"id": identity, "function": {"name": recipient, "arguments": _text(message)}}
        ]
    elif (
        author.get("role") == "tool"
        and call
        and tool.partition(".")[0] == text_of(call["name"]).partition(".")[0]
    ):
        fields["tool_call_id"] = call["id"]
    return formats.parse(fields)


def _text(message: _Json) -> str:
    content = message.get("content")
    if not isinstance(content, dict):
        return text_of(content)
    kind = text_of(content.get("content_type"))
    if kind in _REASONING_TYPES:
        return formats.REASONING
    parts = content.get("parts")
    texts = (
        [_part(part) for part in parts]
        if isinstance(parts, list)
        else [text_of(content.get(key)) for key in _TEXTS]
    )
    attached = _dict(message.get("metadata")).get("attachments")
    names = [text_of(_dict(file).get("name")) for file in attached] if isinstance(attached, list) else []
    texts += [f"[file: {name}]" for name in names if name]
    return "\n".join(filter(None, texts)) or ("" if kind in _PLAIN_TYPES else f"[{kind}]")


def _part(part: object) -> str:
    if not isinstance(part, dict):
        return text_of(part)
    kind = text_of(part.get("content_type")) or "part"
    if text_of(part.get("text")):
        return cast("str", part["text"])
    if kind != "image_asset_pointer":
        return f"[{kind}]"
    painted = text_of(_dict(_dict(part.get("metadata")).get("dalle")).get("prompt"))
    return f"[image: {painted or text_of(part.get('asset_pointer')).rsplit('/', 1)[-1] or 'unnamed'}]"
