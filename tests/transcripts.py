"""Making small transcripts, and reading them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast import ChatInfo, Memory, Message
from holdfast_cli.formats.import_items import ImportedMessage, Item
from holdfast_cli.formats.import_report import ImportReport
from holdfast_cli.formats.importing import import_paths
from holdfast_cli.formats.sources import FORMATS, Format, SourceFile, sources

Json = dict[str, Any]


@dataclass(frozen=True)
class Taken:
    """What an import of some paths into a memory of their own has stored, and its report."""

    report: ImportReport
    chats: dict[str, ChatInfo]
    messages: list[tuple[str, Message]]
    """Each with its chat, of one chat after the other."""

    @property
    def said(self) -> list[tuple[str, str]]:
        """The role and content of each message."""
        return [(message.role, message.content) for _, message in self.messages]

    @property
    def contents(self) -> list[str]:
        return [message.content for _, message in self.messages]

    @property
    def ids(self) -> list[str]:
        return [message.id for _, message in self.messages]

    @property
    def by_chat(self) -> dict[str, list[str]]:
        return {chat: [one.content for name, one in self.messages if name == chat] for chat in self.chats}

    @property
    def left(self) -> list[tuple[int, str]]:
        """What was left out: its line, and why."""
        return sorted((line, one.reason) for one in self.report.skipped for line in one.lines)


def take(*paths: Path) -> Taken:
    """Import paths into a new memory, in which all must be proven then."""
    with Memory(":memory:") as memory:
        report = import_paths(memory, paths if len(paths) > 1 else paths[0])
        assert memory.verify().ok
        chats = {chat.id: chat for chat in reversed(memory.chats(archived=None, limit=None))}
        said = [(chat, message) for chat in chats for message in memory.chat(chat).history()]
    return Taken(report, chats, said)


def write_lines(path: Path, values: Iterable[object]) -> Path:
    """Write JSONL; text is written as it is, to have broken lines as well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = (value if isinstance(value, str) else json.dumps(value) for value in values)
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def write_json(path: Path, value: object, indent: int | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=indent), encoding="utf-8")
    return path


def only_source(path: Path, *formats: Format) -> SourceFile:
    (source,) = sources(path, formats or FORMATS)
    assert isinstance(source, SourceFile)
    return source


def read(path: Path, *formats: Format) -> list[Item]:
    return list(only_source(path, *formats).read())


def messages(items: Sequence[Item]) -> list[tuple[str, str, str]]:
    """Give chat, role and content of each message."""
    return [(i.chat.id, i.message.role, i.message.content) for i in items if isinstance(i, ImportedMessage)]


def contents(items: Sequence[Item]) -> list[str]:
    return [content for _, _, content in messages(items)]


def claude(kind: str, uuid: str, parent: str | None, content: object, **more: object) -> Json:
    """Make a user or assistant line of Claude Code."""
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "s1",
        "isSidechain": False,
        "timestamp": "2026-01-06T09:15:59.901Z",
        "message": {"role": kind, "content": content},
        **more,
    }


def use(call: str, name: str = "Bash") -> list[Json]:
    return [{"type": "tool_use", "id": call, "name": name, "input": {"command": call}}]


def result(call: str, text: str = "done") -> list[Json]:
    return [{"type": "tool_result", "tool_use_id": call, "content": text}]


def chatgpt(
    nodes: Sequence[tuple[str, str | None, Json | None]], current: str | None, **more: object
) -> Json:
    """Make a ChatGPT conversation of (id, parent, message)."""
    mapping: Json = {
        key: {
            "id": key,
            "parent": parent,
            "message": message,
            "children": [k for k, p, _ in nodes if p == key],
        }
        for key, parent, message in nodes
    }
    conversation: Json = {
        "title": "A title",
        "create_time": 1700000000.5,
        "conversation_id": "c1",
        "mapping": mapping,
    }
    return conversation | ({"current_node": current} if current else {}) | more


def said(key: str, role: str, content: object, **more: object) -> Json:
    """Make a message of ChatGPT; text becomes content of the type text."""
    if isinstance(content, str):
        content = {"content_type": "text", "parts": [content]}
    return {
        "id": key,
        "author": {"role": role, "name": None},
        "content": content,
        "recipient": "all",
        "weight": 1.0,
        **more,
    }


def codex(kind: str, **payload: object) -> Json:
    """Make a line of a rollout of Codex."""
    return {"timestamp": "2026-01-06T09:15:59.901Z", "type": kind, "payload": payload}


def gemini(identity: str, kind: str, text: str, *, calls: int = 0) -> Json:
    """Make a record of a chat of Gemini CLI, with calls that have results."""
    record: Json = {
        "id": identity,
        "timestamp": "2026-01-06T09:15:59.901Z",
        "type": kind,
        "content": [{"text": text}],
    }
    made = [gemini_call(f"{identity}-{number}") for number in range(calls)]
    return record | ({"toolCalls": made} if calls else {})


def gemini_call(identity: str) -> Json:
    answer = {"id": identity, "name": "ls", "response": {"output": "plan.txt"}}
    return {
        "id": identity,
        "name": "ls",
        "args": {"path": "."},
        "result": [{"functionResponse": answer}],
        "status": "success",
    }
