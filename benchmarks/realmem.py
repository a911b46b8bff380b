"""RealMem: hundreds of sessions of one person with an assistant, and queries that need earlier sessions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from benchmarks.locomo import dicts_of
from holdfast.io.files import File, values
from holdfast.io.import_items import ImportedChat, Item, parsed, read_objects, stable_id, text_of
from holdfast.io.sources import Format
from holdfast.text.clean import clean
from holdfast.types import Message, Role

_DATE = re.compile(r"([12]\d{3})-(\d\d)-(\d\d)\b.*")
_ROLES: dict[str, Role] = {"User": "user", "Assistant": "assistant"}
# The file dates sessions by the day; sessions and turns need an order in time as well.
_TURN = timedelta(seconds=10)
_PAUSE = timedelta(minutes=10)


def is_person(value: Mapping[str, object]) -> bool:
    """Return whether an object is a RealMem file."""
    dialogues = value.get("dialogues")
    return isinstance(dialogues, list) and any(
        "dialogue_turns" in dialogue for dialogue in dicts_of(dialogues)
    )


def read(file: File) -> Iterator[Item]:
    """Read every session as a chat with its uuid as id and its identifier as title."""

    def person(_: int, value: Mapping[str, object]) -> Iterator[Item] | None:
        return _person(value, file.name) if is_person(value) else None

    return read_objects(values(file), person, "no dialogues")


def _person(value: Mapping[str, object], name: str) -> Iterator[Item]:
    free = datetime.min.replace(tzinfo=UTC)  # the first moment after the session before
    for number, dialogue in enumerate(dicts_of(value.get("dialogues")), start=1):
        identity = text_of(dialogue.get("session_uuid")) or f"{name}:{number}"
        chat = ImportedChat(identity, text_of(dialogue.get("session_identifier")))
        turns = dicts_of(dialogue.get("dialogue_turns"))
        day = _day(text_of(dialogue.get("current_time")))
        start = max(day, free) if day and day.date() == free.date() else day
        if start:
            free = start + len(turns) * _TURN + _PAUSE
        for index, turn in enumerate(turns):
            at = start + index * _TURN if start else None
            yield parsed(chat, number, _message, turn, at, index + 1)


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


FORMAT = Format("RealMem", read, is_value=is_person)


class Query(NamedTuple):
    """Hold a query: its place (indices of session and turn), its text, and the sessions that it needs."""

    session: int
    turn: int
    text: str
    gold: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Hold the queries of one person, and how many more name no session that came before them."""

    queries: tuple[Query, ...]
    unusable: int


def queries(data: object) -> QuerySet:
    """List the queries of a parsed RealMem file with the earlier sessions that their answers need.

    These are the `memory_session_uuids` on the reply, the turn after the query, that belong to earlier
    sessions of the file; a query without any is counted as unusable.
    """
    dialogues = dicts_of(data.get("dialogues")) if isinstance(data, dict) else []
    usable: list[Query] = []
    asked = 0
    earlier: set[str] = set()
    for session, dialogue in enumerate(dialogues):
        turns = dicts_of(dialogue.get("dialogue_turns"))
        for index, turn in enumerate(turns):
            if turn.get("is_query") is not True:
                continue
            asked += 1
            named = turns[index + 1].get("memory_session_uuids") if index + 1 < len(turns) else None
            gold = [text_of(uuid) for uuid in named] if isinstance(named, list) else []
            gold = [uuid for uuid in dict.fromkeys(gold) if uuid in earlier]
            if gold and text_of(turn.get("content")):
                usable.append(Query(session, index, text_of(turn.get("content")), tuple(gold)))
        earlier.add(text_of(dialogue.get("session_uuid")))
    return QuerySet(tuple(usable), asked - len(usable))
