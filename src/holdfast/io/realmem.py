"""RealMem: hundreds of sessions of one person with an assistant, with queries that need earlier sessions."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from holdfast.io.files import File, values
from holdfast.io.found import Found, Session, Skip, dicts_of, found, stable_id, text_of
from holdfast.text.clean import clean
from holdfast.types import Message, Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_DATE = re.compile(r"([12]\d{3})-(\d\d)-(\d\d)\b.*")
_ROLES: dict[str, Role] = {"User": "user", "Assistant": "assistant"}
_TURN = timedelta(
    seconds=10
)  # the file dates sessions by the day; sessions and turns need an order in time as well
_PAUSE = timedelta(minutes=10)


def is_person(value: Mapping[str, object]) -> bool:
    """Tell a RealMem file from other JSON objects."""
    dialogues = value.get("dialogues")
    return isinstance(dialogues, list) and any(
        "dialogue_turns" in dialogue for dialogue in dicts_of(dialogues)
    )


def read(file: File) -> Iterator[Found | Skip]:
    """Read every session as a chat with its uuid as id and its identifier as title."""
    for item in values(file):
        if isinstance(item, Skip):
            yield item
        elif isinstance(item[1], dict) and is_person(item[1]):
            yield from _person(item[1], file.name)
        else:
            yield Skip(item[0], "no dialogues", problem=True)


def _person(value: Mapping[str, object], name: str) -> Iterator[Found | Skip]:
    free = datetime.min.replace(tzinfo=UTC)  # the first moment after the session before
    for number, dialogue in enumerate(dicts_of(value.get("dialogues")), start=1):
        identity = text_of(dialogue.get("session_uuid")) or f"{name}:{number}"
        session = Session(identity, text_of(dialogue.get("session_identifier")))
        turns = dicts_of(dialogue.get("dialogue_turns"))
        day = _day(text_of(dialogue.get("current_time")))
        start = max(day, free) if day and day.date() == free.date() else day
        if start:
            free = start + len(turns) * _TURN + _PAUSE
        for index, turn in enumerate(turns):
            yield found(session, number, _message, turn, start + index * _TURN if start else None, index + 1)


def _day(text: str) -> datetime | None:
    """Read a day such as "2025-12-21 (Sunday)"."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    try:
        return datetime(int(match[1]), int(match[2]), int(match[3]), tzinfo=UTC)
    except ValueError:
        return None


def _message(turn: Mapping[str, object], at: datetime | None, position: int) -> Message:
    speaker = text_of(turn.get("speaker"))
    role = _ROLES.get(speaker, "user")
    name = None if speaker in _ROLES else clean(speaker) or None
    content = clean(text_of(turn.get("content")))
    return Message(role, content, id=stable_id(position, turn), name=name, at=at, raw=turn)
