"""A set of one's own: `{"sessions": […], "questions": […]}`.

A session is `{"id": "monday", "messages": [{"role": "user", "content": "…", "id"?, "name"?, "at"?}]}`; a
message without an id has that of its session and its place, `monday:0`. A question is `{"question": "…",
"gold": […], "kind"?, "outdated"?}`; what answers it are ids of messages, or of sessions when all of them are.
All sessions are one memory; times are ISO 8601.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.datasets import (
    Corpus,
    Question,
    Reader,
    Session,
    dicts_of,
    is_dict_with,
    said,
    texts_of,
    unknown_gold,
)
from holdfast.errors import InvalidInput
from holdfast.types import Message
from holdfast_cli.formats.json_values import dict_of, text_of


def _knows(value: object) -> bool:
    return is_dict_with(value, "sessions", "questions")


def _read(path: Path, value: object) -> Iterator[Corpus]:
    given = dict_of(value)
    sessions = tuple(
        Session(id, tuple(_messages(id, dicts_of(one.get("messages")), path)))
        for place, one in enumerate(dicts_of(given["sessions"]))
        for id in [text_of(one.get("id")) or str(place)]
    )
    questions = tuple(
        Question(
            text_of(one.get("question")),
            text_of(one.get("kind")) or "question",
            texts_of(one.get("gold")),
            outdated=texts_of(one.get("outdated")),
        )
        for one in dicts_of(given["questions"])
    )
    named = {id for question in questions for id in question.gold}
    whole = named <= {session.id for session in sessions}
    corpus = Corpus(path.stem, sessions, questions, "session" if whole else "message", (path,))
    if unknown := unknown_gold(corpus):
        what = f"{path} names {unknown!r}, which is no {corpus.unit}."
        raise InvalidInput(what, "Name ids of messages, or ids of sessions alone.")
    yield corpus


def _messages(session: str, given: list[dict[str, object]], path: Path) -> Iterator[Message]:
    for place, one in enumerate(given):
        id, at = text_of(one.get("id")) or f"{session}:{place}", text_of(one.get("at"))
        yield from said(
            one.get("role"), text_of(one.get("content")), id, name=one.get("name"), at=_time(at, path)
        )


def _time(text: str, path: Path) -> datetime | None:
    try:
        time = datetime.fromisoformat(text) if text else None
    except ValueError as error:
        raise InvalidInput(
            f"{path} has {text!r} as a time.", "Write times as 2026-01-06T09:15:59Z."
        ) from error
    return time.replace(tzinfo=time.tzinfo or UTC) if time else None


READER = Reader("own", _knows, _read)
