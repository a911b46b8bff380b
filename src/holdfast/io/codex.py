"""Codex CLI: the rollouts under `~/.codex/sessions` and `~/.codex/archived_sessions`."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.errors import InvalidInput
from holdfast.io.files import File, lines
from holdfast.io.import_items import (
    ImportedChat,
    Item,
    Skip,
    dict_of,
    list_of,
    parsed,
    stable_id,
    text_of,
)
from holdfast.messages import formats
from holdfast.text.clean import clean
from holdfast.types import Message

_LINES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"}
_CALLS = {"function_call", "custom_tool_call", "local_shell_call", "web_search_call"}
_OUTPUTS = {"function_call_output", "custom_tool_call_output"}
_SPOKEN = {"message", "reasoning"} | _CALLS | _OUTPUTS
_ARCHIVE = "archived_sessions"
_LEFT = "on a branch that was left: the user went back behind it"
# What earlier versions write as a user's message, and mark by its beginning only.
_ADDED = re.compile(
    r"\s*(?:# AGENTS\.md instructions|<(?:environment_context|user_instructions|INSTRUCTIONS|turn_aborted"
    r"|skill|subagent_notification|model_switch|permissions[ _]instructions|collaboration_mode"
    r"|personality_spec)\b)"
)

_Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Line:
    """A line: its number, kind and time, and what it is about."""

    number: int
    kind: str
    payload: dict[str, object]
    time: object


def is_line(value: _Json) -> bool:
    """Return whether an object is a line of a rollout, or the first line of one of before September 2025."""
    if "type" in value:
        return text_of(value["type"]) in _LINES and isinstance(value.get("payload"), dict)
    return "instructions" in value and {"id", "timestamp"} <= value.keys()


def read(file: File) -> Iterator[Item]:
    """Yield the messages, calls and results of a rollout, in the order of the file.

    Left out and counted are what the program adds to a conversation (instructions, the environment, events
    that repeat it), its compactions, as what they replace is there, and turns that the user took back. The
    session of a sub-agent is a chat of its own, `<session>/agent-<id>`.
    """
    left = _left_behind(file)
    chat = ImportedChat(file.name, archived=_ARCHIVE in file.path.replace("\\", "/").split("/"))
    is_named = False
    for item in lines(file):
        if isinstance(item, Skip):
            yield item
            continue
        line = _line(*item)
        if line.kind == "session_meta" and not is_named:
            chat, is_named = replace(chat, id=_chat_id(line.payload) or chat.id), True
        if folder := text_of(line.payload.get("cwd")):
            chat = replace(chat, folder=folder)
        if reason := _why_left_out(line) or (_LEFT if _is_in(line.number, left) else ""):
            yield Skip(line.number, reason)
        else:
            yield parsed(chat, line.number, _message, line)


def _line(number: int, value: dict[str, object]) -> _Line:
    kind, payload = text_of(value.get("type")), value.get("payload")
    if isinstance(payload, dict):
        return _Line(number, kind, payload, value.get("timestamp"))
    # Until September 2025 a line is the item itself.
    is_first = "type" not in value and "instructions" in value
    return _Line(number, "session_meta" if is_first else "response_item", value, value.get("timestamp"))


def _chat_id(meta: _Json) -> str:
    identity, source = text_of(meta.get("id")), dict_of(meta.get("source"))
    spawn = dict_of(dict_of(source.get("subagent")).get("thread_spawn"))
    parent = text_of(spawn.get("parent_thread_id"))
    return f"{parent}/agent-{identity}" if parent and identity else identity


def _why_left_out(line: _Line) -> str:
    payload = line.payload
    kind, role = text_of(payload.get("type")), text_of(payload.get("role"))
    if line.kind == "compacted":
        return "a summary of messages that come before it (compacted)"
    if line.kind != "response_item" or kind not in _SPOKEN:
        name = kind if line.kind == "response_item" else line.kind
        return f"not conversation: {clean(name)[:40] or 'no type'}"
    if kind == "message" and role not in {"user", "assistant"}:
        return f"not conversation: instructions of the program ({clean(role)[:40]})"
    if kind == "message" and role == "user" and not _is_prompt(payload):
        return "not conversation: context that the program added"
    return ""


def _is_prompt(payload: _Json) -> bool:
    """Return whether a user's message is of the user."""
    noted = dict_of(payload.get("internal_chat_message_metadata_passthrough"))
    if kinds := list_of(noted.get("content_item_kinds")):
        return any(text_of(kind).startswith("user.") for kind in kinds)
    first = next(iter(list_of(payload.get("content"))), None)
    return not _ADDED.match(text_of(dict_of(first).get("text")))


def _left_behind(file: File) -> list[tuple[int, int]]:
    """Return the first and the last lines of the turns that the user took back, in order and apart."""
    prompts: list[int] = []
    left: list[tuple[int, int]] = []
    for item in lines(file):
        if isinstance(item, Skip):
            continue
        line = _line(*item)
        kind, turns = line.payload.get("type"), line.payload.get("num_turns")
        if line.kind == "event_msg" and kind == "thread_rolled_back":
            if isinstance(turns, int) and turns > 0 and prompts:
                start = prompts[-turns:][0]
                del prompts[-turns:]
                while left and left[-1][0] >= start:
                    left.pop()
                left.append((start, line.number))
        elif kind == "message" and line.payload.get("role") == "user" and not _why_left_out(line):
            prompts.append(line.number)
    return left


def _is_in(number: int, ranges: Sequence[tuple[int, int]]) -> bool:
    place = bisect_right(ranges, (number, math.inf)) - 1
    return place >= 0 and number <= ranges[place][1]


def _message(line: _Line) -> Message:
    payload = line.payload
    kind, output = text_of(payload.get("type")), payload.get("output")
    if kind in _OUTPUTS and isinstance(output, dict):
        item = {**payload, "output": output.get("content")}
    elif kind in {"local_shell_call", "web_search_call"}:
        item = {**payload, "type": "function_call", "name": kind.removesuffix("_call")}
        item |= {"arguments": payload.get("action"), "call_id": payload.get("call_id") or payload.get("id")}
    else:
        item = payload
    if kind in _CALLS and not text_of(item.get("call_id")):
        raise InvalidInput("A call has no id.", "Skip it.")
    message = formats.parse(item)
    return replace(
        message,
        id=clean(text_of(payload.get("id"))) or stable_id(line.number, payload),
        at=formats.read_time(line.time),
        raw={**payload, "timestamp": line.time} if line.time else payload,
    )
