"""Sessions of coding agents: JSON lines, and questions that a person would ask of them months later.

`questions.jsonl` has `{id, question, kind, answer, gold: [[session, index]], outdated: [[session, index]]}` a
line; beside it lie the sessions, plain or gzip, with `{role, content, timestamp}` a line, or logs of Claude
Code, of which the lines of `user` and `assistant` count. A session's id is its file's name, a message's index
its place from 0. All sessions are one memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from benchmarks.datasets import Corpus, Question, Reader, Session, is_dict_with, lines, said, unknown_gold
from holdfast.errors import InvalidInput
from holdfast.types import Message
from holdfast_cli.formats.json_values import dict_of, list_of, text_of

_EMPTY = "…"  # a message without text keeps its place


def _knows(value: object) -> bool:
    return is_dict_with(value, "question", "gold", "kind")


def _read(path: Path, _: object) -> Iterator[Corpus]:
    files = [file for file in sorted(path.parent.glob("*.jsonl*")) if file != path]
    sessions = tuple(session for file in files if (session := _session(file)).messages)
    asked = tuple(
        Question(
            text_of(one.get("question")),
            text_of(one.get("kind")),
            _places(one.get("gold")),
            text_of(one.get("answer")),
            _places(one.get("outdated")),
        )
        for one in map(dict_of, lines(path))
    )
    corpus = Corpus(path.parent.name, sessions, asked, files=(path, *files))
    if unknown := unknown_gold(corpus):
        raise InvalidInput(f"{path} names {unknown}, which is no message.", "Put the sessions beside it.")
    yield corpus


def _session(file: Path) -> Session:
    name, at, index = file.name.split(".jsonl")[0], None, 0
    found: list[Message] = []
    for row in map(dict_of, lines(file)):
        if "content" not in row and row.get("type") not in ("user", "assistant"):
            continue
        if stamp := text_of(row.get("timestamp")):
            at = datetime.fromisoformat(stamp)
        message = dict_of(row.get("message")) or row
        text = _text(message.get("content"))
        found += said(_role(message), text if text.strip() else _EMPTY, f"{name}:{index}", at=at)
        index += 1
    return Session(name, tuple(found))


def _role(message: object) -> str:
    content = list_of(dict_of(message).get("content"))
    result = any(dict_of(block).get("type") == "tool_result" for block in content)
    return "tool" if result else text_of(dict_of(message).get("role"))


def _text(content: object) -> str:
    """Return prose, reasoning, tool calls and tool results, as they stand."""
    if isinstance(content, str):
        return content
    parts = []
    for block in map(dict_of, list_of(content)):
        kind = text_of(block.get("type"))
        if kind == "tool_use":
            parts.append(f"{block.get('name')} {json.dumps(block.get('input'), ensure_ascii=False)}")
        else:
            parts.append(_text(block.get("content" if kind == "tool_result" else kind)))
    return "\n".join(parts)


def _places(value: object) -> tuple[str, ...]:
    pairs = (list_of(pair) for pair in list_of(value))
    return tuple(dict.fromkeys(":".join(map(str, pair)) for pair in pairs))


READER = Reader("agent sessions", _knows, _read)
