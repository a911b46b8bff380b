"""Export of conversations as JSONL, one message a line, or in the formats of others."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TextIO

from holdfast import Memory
from holdfast.errors import InvalidInput, shown
from holdfast.port import formats
from holdfast.types import ChatInfo, Message
from holdfast_cli.formats import chat_lines, chat_markdown

FORMATS = (*chat_lines.WRITERS, "markdown")
"""The formats of others that chats are exported in."""
_PAGE = 1000  # messages in memory at once


def export_chats(memory: Memory, stream: TextIO, chats: Iterable[str] | None = None) -> int:
    """Write the messages of chats as JSONL and return their number; `import_paths` restores equal chats.

    Each line has the fields of one message, its original payload included, with `chat` and `agent`; the first
    line of a chat also has its `title`, whether it is `archived`, and its label (`about`). The text is ASCII.

    Args:
        memory: the memory of the chats.
        stream: the stream to write to.
        chats: the ids of the chats; None for all that the handle lists, archived ones included.

    Raises:
        InvalidInput: there is no such chat.

    """
    written = 0
    for info in _chosen(memory, chats):
        for place, message in enumerate(messages_of(memory, info.id)):
            head = _head(info) if place == 0 else {"chat": info.id, "agent": info.agent}
            stream.write(json.dumps({**head, **formats.export(message)}) + "\n")
            written += 1
    return written


@dataclass(slots=True)
class ExportedChats:
    """The number of messages written, and the number of losses of their format, by reason."""

    messages: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


def export_chats_as(
    memory: Memory, stream: TextIO, format: str, chats: Iterable[str] | None = None
) -> ExportedChats:
    """Write chats in a format of others, from which `import_paths` restores all that the format can hold.

    A line of "openai", "anthropic" or "langgraph" is a chat: its `id`, its `messages` as the chat completions
    of OpenAI, the Messages API of Anthropic (with `system`), or LangChain's `messages_from_dict` take them,
    and `holdfast`, with what these have no place for: ids, times, metadata. "markdown" is to be read.
    Messages stay as they were said, one by one, in constant memory; credentials are not masked.

    Args:
        memory: the memory of the chats.
        stream: the stream to write to, in UTF-8.
        format: one of the names above.
        chats: the ids of the chats; None for all that the handle lists, archived ones included.

    Raises:
        InvalidInput: there is no such chat or format.

    """
    if format not in FORMATS:
        raise InvalidInput(f"Unknown format {shown(format)}.", f"Use one of {', '.join(FORMATS)}.")
    report = ExportedChats()
    chosen = _chosen(memory, chats)
    if format == "markdown":
        stream.write(f"{chat_markdown.START}\n")
    for info in chosen:
        messages = messages_of(memory, info.id)
        if format == "markdown":
            parts = chat_markdown.chat_parts(_head(info), messages, report.left_out)
        else:
            head = {"id": info.id, **_head(info)}
            del head["chat"]
            parts = chat_lines.lines_of(head, messages, format, report.left_out)
        for text, count in parts:
            stream.write(text)
            report.messages += count
    return report


def _chosen(memory: Memory, chats: Iterable[str] | None) -> list[ChatInfo]:
    infos = {info.id: info for info in reversed(memory.chats(archived=None))}
    ids = list(infos) if chats is None else list(chats)
    for identity in ids:
        if identity not in infos:
            todo = "Use an id that memory.chats(archived=None) lists."
            raise InvalidInput(f"There is no chat {identity!r} here.", todo)
    return [infos[identity] for identity in ids]


def messages_of(memory: Memory, identity: str) -> Iterator[Message]:
    """Yield the messages of a chat, oldest first."""
    chat, last = memory.chat(identity), 0
    while page := chat.history(_PAGE, after=last):
        yield from page
        last = page[-1].seq


def _head(info: ChatInfo) -> dict[str, object]:
    created = info.created.isoformat() if info.created else None
    label = {"created": created, "channel": info.channel, "meta": info.meta}
    about = {name: value for name, value in label.items() if value}
    fields: dict[str, object] = {"chat": info.id, "agent": info.agent}
    return {**fields, "title": info.title, "archived": info.archived, "about": about}
