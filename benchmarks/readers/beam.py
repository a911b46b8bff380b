"""BEAM: chats of a user with an assistant of 100,000 tokens to millions, and ten types of questions.

`mohammadtavakoli78/BEAM`, `chats/100K/1/`: `chat.json` is a list of batches `{time_anchor?, turns: [[{role,
id, content, time_anchor?}]]}`; where there is a `chat_trunecated.json`, it is that which is asked.
`probing_questions/probing_questions.json` has lists of questions by type, with `source_chat_ids`: ids of
messages, in lists or in a dict of lists. Five types ask for what a few messages say, and are the main figure;
chats of 10M tokens have another form, which is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from benchmarks.datasets import Corpus, Question, Reader, Session, dicts_of, moment, parsed, said
from holdfast.errors import InvalidInput
from holdfast.types import Message
from holdfast_cli.formats.json_values import dict_of, list_of, text_of

NEEDLES = (
    "information_extraction",
    "knowledge_update",
    "multi_session_reasoning",
    "temporal_reasoning",
    "contradiction_resolution",
)
_DAY = re.compile(r"(?P<month>[A-Za-z]{3,9})-(?P<day>\d\d?)-(?P<year>\d{4})")
_TURN = timedelta(seconds=10)
_MARK = re.compile(r"\s*->->\s*[\d,]+\s*$")  # the place in the plan that the chat was generated from


def _knows(value: object) -> bool:
    return isinstance(value, dict) and any(
        "rubric" in one for kind in NEEDLES for one in dicts_of(value.get(kind))
    )


def _read(path: Path, value: object) -> Iterator[Corpus]:
    folder = path.parent.parent
    chats = [folder / f"{name}.json" for name in ("chat_trunecated", "chat")]
    chat = next((file for file in chats if file.is_file()), None)
    if chat is None:
        raise InvalidInput(f"There is no chat.json for {path}.", "Keep the folders as BEAM has them.")
    sessions = tuple(_sessions(parsed(chat)))
    known = {message.id for session in sessions for message in session.messages}
    questions = tuple(
        Question(text_of(one["question"]), kind, tuple(id for id in _ids(one) if id in known))
        for kind, listed in dict_of(value).items()
        for one in dicts_of(listed)
        if text_of(one.get("question"))
    )
    yield Corpus(f"{folder.parent.name}/{folder.name}", sessions, questions, files=(chat, path))


def _sessions(value: object) -> Iterator[Session]:
    """Yield each batch as a session; the day of a message is that of the last time anchor."""
    day: datetime | None = None
    for number, batch in enumerate(dicts_of(value), 1):
        messages: list[Message] = []
        for turn in (turn for turns in list_of(batch.get("turns")) for turn in dicts_of(turns)):
            anchored = moment(_DAY, text_of(turn.get("time_anchor")) or text_of(batch.get("time_anchor")))
            day = anchored if anchored and (day is None or anchored.date() != day.date()) else day
            text = _MARK.sub("", text_of(turn.get("content")))
            messages += said(turn.get("role"), text, str(turn.get("id", "")), at=day)
            day = day + _TURN if day else None
        yield Session(f"batch-{number}", tuple(messages))


def _ids(question: dict[str, object]) -> dict[str, None]:
    def flat(value: object) -> Iterator[str]:
        if isinstance(value, dict | list):
            for inner in value.values() if isinstance(value, dict) else value:
                yield from flat(inner)
        elif isinstance(value, int):
            yield str(value)

    return dict.fromkeys(flat(question.get("source_chat_ids")))


READER = Reader("BEAM", _knows, _read, NEEDLES)
