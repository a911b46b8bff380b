"""RealMem: hundreds of sessions of one person with an assistant, and queries that need earlier sessions.

`AvatarMemory/RealMemBench`: `dialogues` is a list of `{session_uuid, current_time, dialogue_turns: [{speaker,
content, is_query?, memory_session_uuids?}]}`. The sessions that a query needs stand on the reply, the turn
after it; those count that belong to earlier sessions of the file, and nothing of its own session or of later
ones is there when it is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path

from benchmarks.datasets import Corpus, Question, Reader, Session, dicts_of, moment, said, texts_of
from holdfast.types import Message
from holdfast_cli.formats.json_values import dict_of, text_of

_DATE = re.compile(r"(?P<year>[12]\d{3})-(?P<month>\d\d)-(?P<day>\d\d)\b")
# The file dates sessions by the day; sessions and turns need an order in time as well.
_TURN = timedelta(seconds=10)
_PAUSE = timedelta(minutes=10)


def _knows(value: object) -> bool:
    return any("dialogue_turns" in dialogue for dialogue in dicts_of(dict_of(value).get("dialogues")))


def _read(path: Path, value: object) -> Iterator[Corpus]:
    sessions: list[Session] = []
    questions: list[Question] = []
    free = datetime.min.replace(tzinfo=UTC)  # the first moment after the session before
    for number, dialogue in enumerate(dicts_of(dict_of(value).get("dialogues")), 1):
        turns = dicts_of(dialogue.get("dialogue_turns"))
        day = moment(_DATE, text_of(dialogue.get("current_time")))
        start = max(day, free) if day and day.date() == free.date() else day
        if start:
            free = start + len(turns) * _TURN + _PAUSE
        earlier = {session.id for session in sessions}
        questions += _asked(turns, earlier, len(sessions))
        id = text_of(dialogue.get("session_uuid")) or f"{path.stem}:{number}"
        sessions.append(Session(id, tuple(_said(turns, start))))
    yield Corpus(path.stem, tuple(sessions), tuple(questions), "session", (path,))


def _said(turns: list[dict[str, object]], start: datetime | None) -> Iterator[Message]:
    for index, turn in enumerate(turns):
        speaker = text_of(turn.get("speaker"))
        role = "assistant" if speaker == "Assistant" else "user"
        name = speaker if speaker not in ("User", "Assistant") else None
        at = start + index * _TURN if start else None
        yield from said(role, text_of(turn.get("content")), name=name, at=at)


def _asked(turns: list[dict[str, object]], earlier: set[str], before: int) -> Iterator[Question]:
    nothing: dict[str, object] = {}
    for turn, reply in zip_longest(turns, turns[1:], fillvalue=nothing):
        if turn.get("is_query") is True and text_of(turn.get("content")):
            gold = tuple(id for id in texts_of(reply.get("memory_session_uuids")) if id in earlier)
            yield Question(text_of(turn["content"]), _kind(turn), gold, before=before)


def _kind(turn: Mapping[str, object]) -> str:
    return text_of(turn.get("category")) or "query"


READER = Reader("RealMem", _knows, _read)
