"""Export of conversations as JSONL, one message a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

from holdfast.errors import InvalidInput
from holdfast.messages import formats
from holdfast.types import ChatInfo, Message

if TYPE_CHECKING:
    from holdfast.memory import Memory

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
    known = {info.id: info for info in reversed(memory.chats(archived=None))}
    ids = list(known) if chats is None else list(chats)
    for identity in ids:
        if identity not in known:
            todo = "Use an id that memory.chats(archived=None) lists."
            raise InvalidInput(f"There is no chat {identity!r} here.", todo)
    written = 0
    for identity in ids:
        for place, message in enumerate(messages_of(memory, identity)):
            stream.write(json.dumps(_line(known[identity], message, first=place == 0)) + "\n")
            written += 1
    return written


def messages_of(memory: Memory, identity: str) -> Iterator[Message]:
    """Yield the messages of a chat, oldest first."""
    chat, last = memory.chat(identity), 0
    while page := chat.history(_PAGE, after=last):
        yield from page
        last = page[-1].seq


def _line(info: ChatInfo, message: Message, *, first: bool) -> dict[str, object]:
    head: dict[str, object] = {"chat": info.id, "agent": info.agent}
    if first:
        head |= {"title": info.title, "archived": info.archived, "about": _about(info)}
    return head | formats.export(message)


def _about(info: ChatInfo) -> dict[str, object]:
    created = info.created.isoformat() if info.created else None
    label = {"created": created, "channel": info.channel, "meta": info.meta}
    return {name: value for name, value in label.items() if value}
