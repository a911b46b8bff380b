"""Chats as Markdown that one can read, and that import reads back.

A heading and a comment stand above each chat and each message. The comment is what counts: it has as JSON
what the heading tells, and the lines below it are the words of the message as they are. A line of a message
that looks like such a comment has a backslash before it.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from holdfast.errors import InvalidInput
from holdfast.port import formats
from holdfast.types import Message
from holdfast_cli.formats.chat_lines import PAYLOAD, has_more
from holdfast_cli.formats.files import File, object_in
from holdfast_cli.formats.import_items import ImportedChat, Item, Skip, item_of
from holdfast_cli.formats.json_values import stable_id, text_of
from holdfast_cli.formats.jsonl import chat_in
from holdfast_cli.formats.marks import Marks, comment

START = "<!-- Holdfast chats -->"
_MARKS = Marks(headed=("chat", "message"), inner=("calls",))
_CALLS = "<!-- calls -->"
_FENCE = ("```json", "```")


def chat_parts(
    head: Mapping[str, object], messages: Iterable[Message], left_out: Counter[str]
) -> Iterator[tuple[str, int]]:
    """Yield a chat as Markdown, a message at a time, each with 1; what it cannot hold is counted."""
    yield f"\n# {_one_line(head.get('title')) or _one_line(head.get('chat'))}\n{comment('chat', head)}\n", 0
    for message in messages:
        fields = formats.export(message)
        content = str(fields.pop("content"))
        del fields["raw"]
        left_out.update([PAYLOAD] if has_more(message) else [])
        calls = fields.pop("calls", None)
        when = f", {message.at:%Y-%m-%d %H:%M:%S}" if message.at else ""
        name = f" {_one_line(message.name)}" if message.name else ""
        text = _MARKS.escape(content)
        if calls:
            text += f"\n\n{_CALLS}\n{_FENCE[0]}\n{_json(calls)}\n{_FENCE[1]}"
        yield f"\n## {message.role}{name}{when}\n{comment('message', fields)}\n\n{text}\n", 1


def _one_line(text: object) -> str:
    return " ".join(str(text or "").split())[:200]


def _json(value: object) -> str:
    readable = json.dumps(value, indent=1, ensure_ascii=False)
    # A half of a surrogate pair is in no UTF-8.
    return json.dumps(value, indent=1) if re.search("[\ud800-\udfff]", readable) else readable


def read(file: File) -> Iterator[Item]:
    """Yield the messages of an export of chats as Markdown."""
    chat = ImportedChat(file.name)
    for kind, line, fields, lines in _MARKS.blocks(file):
        if isinstance(fields, str):
            yield Skip(line, fields, problem=True)
        elif kind == "chat":
            chat = chat_in(fields, text_of(fields.get("chat")) or file.name)
        else:
            yield item_of(chat, line, _message, line, fields, "\n".join(lines[1:]))


def _message(line: int, fields: Mapping[str, object], text: str) -> Message:
    body, has_calls, tail = text.rpartition(f"\n\n{_CALLS}\n{_FENCE[0]}\n")
    whole = {**fields, "raw": None}
    if has_calls and tail.endswith(f"\n{_FENCE[1]}"):
        calls = object_in(f'{{"calls": {tail.removesuffix(_FENCE[1])}}}')
        if isinstance(calls, str):
            raise InvalidInput(f"The calls of a message are {calls}.", "Export the chat again.")
        whole |= calls
    else:
        body = text
    message = formats.parse({**whole, "content": _MARKS.unescape(body)})
    return message if message.id else replace(message, id=stable_id(line, text))
