"""LoCoMo: long conversations of two people over months, and questions with the turns that answer them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from holdfast.io.files import File, values
from holdfast.io.import_items import ImportedChat, Item, parsed, read_objects, stable_id, text_of
from holdfast.io.sources import Format
from holdfast.text.clean import clean
from holdfast.types import Message

_EVIDENCE = re.compile(r"D:?(\d{1,6}):(\d{1,6})")
_SESSION = re.compile(r"session_(\d{1,6})")
_TIME = re.compile(r"(\d{1,2}):(\d\d) ([ap])m on (\d{1,2}) (\w{3})\w*,? ([12]\d{3})", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# The file dates sessions; turns need an order in time as well.
_TURN = timedelta(seconds=10)


def is_conversation(value: Mapping[str, object]) -> bool:
    """Return whether an object is a LoCoMo conversation."""
    conversation = value.get("conversation")
    return isinstance(conversation, dict) and any(map(_SESSION.fullmatch, conversation))


def read(file: File) -> Iterator[Item]:
    """Read each session of a conversation as a chat, such as `conv-26/session_3`; both speakers are users."""

    def conversation(position: int, value: Mapping[str, object]) -> Iterator[Item] | None:
        return _conversation(position, value, file.name) if is_conversation(value) else None

    return read_objects(values(file), conversation, "no conversation")


def _conversation(position: int, value: Mapping[str, object], name: str) -> Iterator[Item]:
    chats = identity(value, f"{name}:{position}")
    for session, start, turns in sessions(value):
        for index, turn in enumerate(turns):
            at = start + index * _TURN if start else None
            yield parsed(ImportedChat(f"{chats}/{session}"), position, _message, turn, at, index + 1)


def identity(value: Mapping[str, object], otherwise: str) -> str:
    """Return what a conversation is called."""
    return text_of(value.get("sample_id")) or otherwise


def sessions(value: Mapping[str, object]) -> Iterator[tuple[str, datetime | None, list[dict[str, object]]]]:
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


def dicts_of(value: object) -> list[dict[str, object]]:
    """Return the items of a list, each that is no dict as an empty one; none of what is no list."""
    return [entry if isinstance(entry, dict) else {} for entry in value] if isinstance(value, list) else []


FORMAT = Format("LoCoMo", read, is_value=is_conversation)


class Question(NamedTuple):
    """Hold a question, its category (1 to 5), and the ids of the turns that answer it."""

    text: str
    category: int
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Hold the questions about one conversation, and how many more had no usable evidence."""

    conversation: str
    questions: tuple[Question, ...]
    unusable: int


def questions(data: object) -> list[QuestionSet]:
    """List the questions of a parsed LoCoMo file with their evidence mended, one set per conversation.

    `D8:6; D9:17` becomes two turns, `D:11:26` becomes `D11:26`, `D30:05` becomes `D30:5`; turns that are not
    in the conversation are dropped, and a question whose evidence is all dropped is counted as unusable.
    """
    conversations = data if isinstance(data, list) else [data]
    return [
        _question_set(value, identity(value, str(position)))
        for position, value in enumerate(conversations, start=1)
        if isinstance(value, dict)
    ]


def _question_set(value: Mapping[str, object], identity: str) -> QuestionSet:
    known = {text_of(turn.get("dia_id")) for _, _, turns in sessions(value) for turn in turns}
    asked = value.get("qa")
    items = [item for item in asked if isinstance(item, dict)] if isinstance(asked, list) else []
    usable = []
    for item in items:
        evidence = tuple(turn for turn in _mend(item.get("evidence")) if turn in known)
        category = item.get("category")
        if evidence and isinstance(item.get("question"), str) and isinstance(category, int):
            usable.append(Question(item["question"], category, evidence))
    return QuestionSet(identity, tuple(usable), len(items) - len(usable))


def _mend(evidence: object) -> list[str]:
    texts = [text_of(entry) for entry in evidence] if isinstance(evidence, list) else []
    turns = [f"D{int(session)}:{int(turn)}" for text in texts for session, turn in _EVIDENCE.findall(text)]
    return list(dict.fromkeys(turns))
