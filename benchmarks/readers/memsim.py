"""MemSim (MemDaily): what people note down in Chinese, a few messages a trajectory, with one question each.

`nuster1128/MemSim`, `messages_and_QAs/01_simple_events.json`: a list of `{tid, message_list: [{mid, message,
time, place}], question_list: [{question, target_step_id: [3], …}]}`, the type of the question in the file's
name; or `memdaily.json`, where such lists stand under type and scenario, with the question as `QA`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.datasets import Corpus, Question, Reader, Session, dicts_of, is_dict_with, moment, said
from holdfast.types import Message
from holdfast_cli.formats.json_values import dict_of, list_of, text_of

_TIME = re.compile(
    r"(?P<year>\d{4})年(?P<month>\d\d?)月(?P<day>\d\d?)日(?:.*?(?P<hour>\d\d?):(?P<minute>\d\d))?"
)
_NAME = re.compile(r"\d\d_(\w+)_[a-z]+")  # number, type, scenario
_INVALID = ("[ERRORQ]", "[ERRORA]")  # left by the generator, and left out there


def _knows(value: object) -> bool:
    return any(is_dict_with(next(iter(some), None), "message_list") for _, _, some in _lists(value, ""))


def _lists(value: object, stem: str) -> Iterator[tuple[str, str, list[dict[str, object]]]]:
    """Yield type, name and trajectories."""
    if isinstance(value, list):
        named = _NAME.fullmatch(stem)
        yield named[1] if named else "question", stem, dicts_of(value)
    for kind, scenarios in dict_of(value).items():
        for scenario, some in dict_of(scenarios).items():
            yield kind, f"{kind}/{scenario}", dicts_of(some)


def _read(path: Path, value: object) -> Iterator[Corpus]:
    for kind, name, some in _lists(value, path.stem):
        for number, one in enumerate(some):
            notes = dicts_of(one.get("message_list"))
            messages = tuple(message for note in notes for message in _said(note))
            known = {message.id for message in messages}
            asked = dicts_of(one.get("question_list")) or dicts_of([one.get("QA")])
            questions = tuple(
                Question(text_of(each.get("question")), kind, _gold(each, known))
                for each in asked
                if text_of(each.get("question")) not in ("", *_INVALID) and each.get("answer") not in _INVALID
            )
            session = Session(f"{name}/{one.get('tid', number)}", messages)
            yield Corpus(session.id, (session,), questions, files=(path,))


def _said(note: dict[str, object]) -> tuple[Message, ...]:
    at = moment(_TIME, text_of(note.get("time")))
    return said("user", text_of(note.get("message")), str(note.get("mid", "")), at=at)


def _gold(question: dict[str, object], known: set[str]) -> tuple[str, ...]:
    ids = dict.fromkeys(str(id) for id in list_of(question.get("target_step_id")))
    return tuple(id for id in ids if id in known)


READER = Reader("MemSim", _knows, _read)
