"""Uses of tools in a chat, as calls or as text of messages: their files, and the commands of shells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from holdfast.types import Message, ToolCall

_HEAD = 600  # characters of rendered tool use that name what it was used on
_PATH_KEYS = frozenset(
    "path paths file files file_path filepath filename file_name notebook_path "
    "target_file relative_path".split()
)
_COMMAND_KEYS = frozenset("command cmd commands script args".split())
_PATCH_KEYS = frozenset("patch diff input".split())
_PATCHED = re.compile(r"^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b/)?)(\S{1,300})", re.MULTILINE)
_EDITING = re.compile(r"edit|write|create|patch|replace|insert", re.IGNORECASE)
_RENDERED = re.compile(
    r"\s{0,40}<tool[-_]use\b[^<>]{0,80}? data-tool-type=\"([^\"<>]{0,40})\""
    r" data-tool-name=\"([^\"<>]{1,80})\">"
)
_WRITTEN = re.compile(r"(?:\bThe file|\bFile created successfully at:|\bPath:) `?([^\s`]{1,300})")


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One use of a tool.

    `paths` are its arguments for files, `texts` other arguments that may name files, `commands` those of a
    shell.
    """

    name: str
    edits: bool
    paths: tuple[str, ...]
    texts: tuple[str, ...]
    commands: tuple[str, ...]


def tool_uses(messages: Iterable[Message]) -> Iterator[ToolUse]:
    """Yield the uses of tools in messages, in their order."""
    for message in messages:
        yield from map(_use_of_call, message.calls)
        if use := rendered(message):
            yield use


def rendered(message: Message) -> ToolUse | None:
    """Return the tool use that is written into an assistant's message, arguments before the result."""
    match = _RENDERED.match(message.content) if message.role == "assistant" else None
    if match is None:
        return None
    kind, name = match.groups()
    head = message.content[match.end() : match.end() + _HEAD].partition("\n```")[0]
    edits = kind == "write" or _EDITING.search(name) is not None
    paths = _WRITTEN.findall(message.content[-_HEAD:]) if edits else []
    return ToolUse(name, edits, tuple(paths), (head,), tuple(re.findall(r"`([^`]+)`", head)))


def _use_of_call(call: ToolCall) -> ToolUse:
    arguments = call.arguments if isinstance(call.arguments, Mapping) else {"input": call.arguments}
    texts = {key.lower(): tuple(_strings(value)) for key, value in arguments.items()}
    paths = [text for key in sorted(_PATH_KEYS & texts.keys()) for text in texts[key]]
    patches = [text for key in sorted(_PATCH_KEYS & texts.keys()) for text in texts[key]]
    paths += [path for text in patches for path in _PATCHED.findall(text)]
    commands = tuple(" ".join(texts[key]) for key in sorted(_COMMAND_KEYS & texts.keys()))
    heads = tuple(command[:_HEAD] for command in commands)
    return ToolUse(call.name, _EDITING.search(call.name) is not None, tuple(paths), heads, commands)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        yield from (text for text in value if isinstance(text, str))
