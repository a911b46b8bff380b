"""LoCoMo: long conversations of two people over months, with questions about them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from holdfast.io.files import File, values
from holdfast.io.found import Found, Session, Skip, dicts_of, found, stable_id, text_of
from holdfast.text.clean import clean
from holdfast.types import Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SESSION = re.compile(r"session_(\d{1,6})")
_TIME = re.compile(r"(\d{1,2}):(\d\d) ([ap])m on (\d{1,2}) (\w{3})\w*,? ([12]\d{3})", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TURN = timedelta(seconds=10)  # the file dates sessions; turns need an order in time as well


def is_conversation(value: Mapping[str, object]) -> bool:
    """Tell a LoCoMo conversation from other JSON objects."""
    conversation = value.get("conversation")
    return isinstance(conversation, dict) and any(map(_SESSION.fullmatch, conversation))


def read(file: File) -> Iterator[Found | Skip]:
    """Read every session of every conversation as a chat, such as `conv-26/session_3`; both speakers are users."""
    for item in values(file):
        if isinstance(item, Skip):
            yield item
        elif isinstance(item[1], dict) and is_conversation(item[1]):
            yield from _conversation(item[0], item[1], file.name)
        else:
            yield Skip(item[0], "no conversation", problem=True)


def _conversation(position: int, value: Mapping[str, object], name: str) -> Iterator[Found | Skip]:
    chats = identity(value, f"{name}:{position}")
    for session, start, turns in sessions(value):
        for index, turn in enumerate(turns):
            at = start + index * _TURN if start else None
            yield found(Session(f"{chats}/{session}"), position, _message, turn, at, index + 1)


def identity(value: Mapping[str, object], otherwise: str) -> str:
    """Return what a conversation is called."""
    return text_of(value.get("sample_id")) or otherwise


def sessions(
    value: Mapping[str, object],
) -> Iterator[tuple[str, datetime | None, list[dict[str, object]]]]:
    """List the sessions of a conversation in order: name, time, turns."""
    conversation = value.get("conversation")
    if not isinstance(conversation, dict):
        return
    names = [name for name in conversation if _SESSION.fullmatch(name)]
    for name in sorted(names, key=lambda name: int(name.removeprefix("session_"))):
        turns = conversation[name]
        if isinstance(turns, list):
            start = _time(text_of(conversation.get(f"{name}_date_time")))
            yield name, start, dicts_of(turns)


def _time(text: str) -> datetime | None:
    """Read a time such as "1:56 pm on 8 May, 2023" in any locale."""
    match = _TIME.fullmatch(text.strip())
    if match is None or match[5].lower() not in _MONTHS:
        return None
    hour = int(match[1]) % 12 + 12 * (match[3].lower() == "p")
    try:
        return datetime(
            int(match[6]), _MONTHS.index(match[5].lower()) + 1, int(match[4]), hour, int(match[2]), tzinfo=UTC
        )
    except ValueError:
        return None


def _message(turn: Mapping[str, object], at: datetime | None, position: int) -> Message:
    content, caption = text_of(turn.get("text")), text_of(turn.get("blip_caption"))
    if caption:
        content = f"{content}\n[image: {caption}]".lstrip("\n")
    return Message(
        "user",
        clean(content),
        id=clean(text_of(turn.get("dia_id"))) or stable_id(position, turn),
        name=clean(text_of(turn.get("speaker"))) or None,
        at=at,
        raw=turn,
    )
