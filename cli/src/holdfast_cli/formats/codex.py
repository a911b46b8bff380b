"""Codex CLI: the rollouts under `~/.codex/sessions` and `~/.codex/archived_sessions`."""

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from holdfast.port import formats, texts
from holdfast.types import Message
from holdfast_cli.formats.files import File, lines
from holdfast_cli.formats.import_items import ImportedChat, Item, Skip, item_of
from holdfast_cli.formats.json_values import Json, dict_of, list_of, output_of, repeat_id, text_of, time_of

_LINES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"}
_CALL, _OUTPUT = "_call", "_output"  # how the kinds of calls and of their outputs end
_RESULTS = ("output", "outputs", "result", "results")  # what a call has that the provider itself ran
# What a call or an output has besides what it is about.
_FRAME = {"type", "id", "call_id", "name", "status", "execution", "metadata", *_RESULTS}
_PASSED = "internal_chat_message_metadata_passthrough"
_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7")
_BURST = timedelta(seconds=1)  # between lines that a fork copies
_ARCHIVE = "archived_sessions"
_LEFT = "on a branch that was left: the user went back behind it"
# What earlier versions write as a user's message, and mark by its beginning only.
_ADDED = re.compile(
    r"\s*(?:# AGENTS\.md instructions|<(?:environment_context|user_instructions|INSTRUCTIONS|turn_aborted"
    r"|skill|subagent_notification|model_switch|permissions[ _]instructions|collaboration_mode"
    r"|personality_spec)\b)"
)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line: its number, kind and time, and what it is about."""

    number: int
    kind: str
    payload: dict[str, object]
    time: object


def is_line(value: Json) -> bool:
    """Return whether an object is a line of a rollout, or the first line of one of before September 2025."""
    if "type" in value:
        return text_of(value["type"]) in _LINES and isinstance(value.get("payload"), dict)
    return "instructions" in value and {"id", "timestamp"} <= value.keys()


def read(file: File) -> Iterator[Item]:
    """Yield the messages, calls and results of a rollout, in the order of the file.

    Left out and counted are what the program adds to a conversation (instructions, the environment, events
    that repeat it), its compactions, as what they replace is there, and turns that the user took back. The
    session of a sub-agent is a chat of its own, `<session>/agent-<id>`. What a fork repeats of the session
    that it was made from belongs to the chat of that one, which has it already or is gone.
    """
    ranges, threads, counts = _rewound_ranges(file), _Threads(file.name), Counter[str]()
    chat = ImportedChat(file.name, archived=_ARCHIVE in file.path.replace("\\", "/").split("/"))
    for item in lines(file):
        if isinstance(item, Skip):
            yield item
            continue
        line = _line(*item)
        chat = replace(chat, id=threads.chat_of(line), folder=text_of(line.payload.get("cwd")) or chat.folder)
        if reason := _why_left_out(line) or (_LEFT if _is_in(line.number, ranges) else ""):
            yield Skip(line.number, reason)
        else:
            yield from _messages(chat, line, counts)


class _Threads:
    """The session of each line: the file's own, or for copied lines the one that it was forked from."""

    def __init__(self, name: str) -> None:
        self._chats: dict[str, str] = {}
        self._own = self._now = ""
        self._name, self._is_fork = name, False
        self._at: datetime | None = None

    def chat_of(self, line: _Line) -> str:
        """Return the chat of a line; lines are passed in their order."""
        payload, at = line.payload, time_of(line.time)
        identity, turn = text_of(payload.get("id")), text_of(payload.get("turn_id"))
        if line.kind == "session_meta" and identity and (self._is_fork or not self._own):
            self._chats[identity], self._now = _chat_id(payload), identity
            if not self._own:
                self._own, self._is_fork = identity, bool(payload.get("forked_from_id"))
        elif _UUID7.match(turn):
            # Ids of this kind are in the order of time: a turn is of the last session that began before it.
            begun = (session for session in self._chats if _UUID7.match(session) and session <= turn)
            self._now = max(begun, default=self._now)
        elif self._now != self._own and at and self._at and at - self._at > _BURST:
            self._now = self._own
        self._at = at or self._at
        return self._chats.get(self._now, self._name)


def _line(number: int, value: dict[str, object]) -> _Line:
    kind, payload = text_of(value.get("type")), value.get("payload")
    if isinstance(payload, dict):
        return _Line(number, kind, payload, value.get("timestamp"))
    # Until September 2025 a line is the item itself.
    is_first = "type" not in value and "instructions" in value
    return _Line(number, "session_meta" if is_first else "response_item", value, value.get("timestamp"))


def _chat_id(meta: Json) -> str:
    identity, source = text_of(meta.get("id")), dict_of(meta.get("source"))
    spawn = dict_of(dict_of(source.get("subagent")).get("thread_spawn"))
    parent = text_of(spawn.get("parent_thread_id"))
    return f"{parent}/agent-{identity}" if parent and identity else identity


def _why_left_out(line: _Line) -> str:
    payload = line.payload
    kind, role = text_of(payload.get("type")), text_of(payload.get("role"))
    if line.kind == "compacted":
        return "a summary of messages that come before it (compacted)"
    is_spoken = kind in {"message", "reasoning"} or kind.endswith((_CALL, _OUTPUT))
    if line.kind != "response_item" or not is_spoken:
        name = kind if line.kind == "response_item" else line.kind
        return f"not conversation: {texts.clean(name)[:40] or 'no type'}"
    if kind == "message" and role not in {"user", "assistant"}:
        return f"not conversation: instructions of the program ({texts.clean(role)[:40]})"
    if kind == "message" and role == "user" and not _is_prompt(payload):
        return "not conversation: context that the program added"
    return ""


def _is_prompt(payload: Json) -> bool:
    """Return whether the user wrote a message with the role of the user."""
    metadata = dict_of(payload.get(_PASSED))
    if kinds := list_of(metadata.get("content_item_kinds")):
        return any(text_of(kind).startswith("user.") for kind in kinds)
    first = next(iter(list_of(payload.get("content"))), None)
    return not _ADDED.match(text_of(dict_of(first).get("text")))


def _rewound_ranges(file: File) -> list[tuple[int, int]]:
    """Return the first and the last lines of the turns that the user took back, in order and apart."""
    prompts: list[int] = []
    ranges: list[tuple[int, int]] = []
    for item in lines(file):
        if isinstance(item, Skip):
            continue
        line = _line(*item)
        kind, turns = line.payload.get("type"), line.payload.get("num_turns")
        if line.kind == "event_msg" and kind == "thread_rolled_back":
            if isinstance(turns, int) and turns > 0 and prompts:
                start = prompts[-turns:][0]
                del prompts[-turns:]
                while ranges and ranges[-1][0] >= start:
                    ranges.pop()
                ranges.append((start, line.number))
        elif kind == "message" and line.payload.get("role") == "user" and not _why_left_out(line):
            prompts.append(line.number)
    return ranges


def _is_in(number: int, ranges: Sequence[tuple[int, int]]) -> bool:
    place = bisect_right(ranges, (number, math.inf)) - 1
    return place >= 0 and number <= ranges[place][1]


def _messages(chat: ImportedChat, line: _Line, counts: Counter[str]) -> Iterator[Item]:
    payload, kind = line.payload, text_of(line.payload.get("type"))
    spoken = {key: value for key, value in payload.items() if key not in {"status", "metadata", _PASSED}}
    identity = text_of(payload.get("id")) or repeat_id(counts, [chat.id, spoken])
    about = {key: value for key, value in spoken.items() if key not in _FRAME}
    call, item = text_of(payload.get("call_id")) or identity, payload
    if kind in {"function_call", "custom_tool_call"}:
        item = {**payload, "call_id": call}
    elif kind.endswith(_CALL):
        args = next((about[key] for key in ("arguments", "action", "input") if key in about), about)
        name = text_of(payload.get("name")) or kind.removesuffix(_CALL)
        item = {**payload, "type": "function_call", "call_id": call, "name": name, "arguments": args}
    elif kind.endswith(_OUTPUT):
        item = {**payload, "type": "function_call_output", "output": payload.get("output", about or None)}
    yield item_of(chat, line.number, _message, line, identity, item)
    if kind.endswith(_CALL) and (result := next(filter(None, map(payload.get, _RESULTS)), None)):
        image = f"[image: {payload.get('revised_prompt') or 'unnamed'}]"
        output = image if "image" in kind else output_of(result)
        answer = {"type": "function_call_output", "call_id": call, "output": output}
        yield item_of(chat, line.number, _message, line, f"{identity}/result", answer)


def _message(line: _Line, identity: str, item: dict[str, object]) -> Message:
    raw = {**line.payload, "timestamp": line.time} if line.time else line.payload
    fields = {"id": identity, "at": line.time, "output": output_of(item.get("output")), "raw": raw}
    return formats.parse({**item, **fields})
