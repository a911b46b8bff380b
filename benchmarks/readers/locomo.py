"""LoCoMo: long conversations of two people over months, and questions with the turns that answer them.

`snap-research/LoCoMo`, `locomo10.json`: `conversation.session_3` is a list of `{speaker, dia_id: "D3:7",
text, blip_caption?}`, `session_3_date_time` its time, `qa` a list of `{question, answer, evidence: ["D1:3"],
category}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import chain
from pathlib import Path

from benchmarks.datasets import Corpus, Question, Reader, Session, dicts_of, moment, parsed, said
from holdfast.types import Message
from holdfast_cli.formats.json_values import dict_of, list_of, text_of

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
MAIN = ("multi-hop", "temporal", "open-domain", "single-hop")
# The file dates sessions; turns need an order in time as well.
TURN = timedelta(seconds=10)
_EVIDENCE = re.compile(r"D:?(\d{1,6}):(\d{1,6})(?:\s*-\s*D:?(\d{1,6}):(\d{1,6}))?")
_SESSION = re.compile(r"session_(\d{1,6})")
_TIME = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d) (?P<half>[ap])m on "
    r"(?P<day>\d{1,2}) (?P<month>[a-z]{3})[a-z]*,? (?P<year>[12]\d{3})",
    re.IGNORECASE,
)


def _knows(value: object) -> bool:
    return any(
        any(map(_SESSION.fullmatch, dict_of(one.get("conversation")))) for one in _conversations(value)
    )


def _conversations(value: object) -> list[dict[str, object]]:
    return dicts_of(value if isinstance(value, list) else [value])


def _read(path: Path, value: object) -> Iterator[Corpus]:
    for number, one in enumerate(_conversations(value), 1):
        said_in = dict_of(one.get("conversation"))
        name = text_of(one.get("sample_id")) or f"{path.stem}:{number}"
        sessions = tuple(
            Session(f"{name}/{key}", _turns(turns, text_of(said_in.get(f"{key}_date_time"))))
            for key, turns in sessions_in(said_in)
        )
        yield Corpus(name, sessions, questions_in(one.get("qa"), sessions, CATEGORIES), files=(path,))


def sessions_in(value: Mapping[str, object]) -> list[tuple[str, list[dict[str, object]]]]:
    """List the sessions of a conversation, `session_1` and on, in their order: name and turns."""
    names = [name for name in value if _SESSION.fullmatch(name) and isinstance(value[name], list)]
    return [(name, dicts_of(value[name])) for name in sorted(names, key=lambda name: int(name[8:]))]


def _turns(turns: list[dict[str, object]], time: str) -> tuple[Message, ...]:
    start = moment(_TIME, time)
    return tuple(
        message
        for index, turn in enumerate(turns)
        for message in said(
            "user",
            "\n".join(filter(None, (text_of(turn.get("text")), caption(turn)))),
            text_of(turn.get("dia_id")),
            name=turn.get("speaker"),
            at=start + index * TURN if start else None,
        )
    )


def caption(turn: Mapping[str, object]) -> str:
    """Return what is in the image of a turn, as text."""
    text = text_of(turn.get("blip_caption"))
    return f"[image: {text}]" if text else ""


def questions_in(
    value: object, sessions: Iterable[Session], categories: Mapping[int, str]
) -> tuple[Question, ...]:
    """List the questions about some sessions with their evidence mended.

    `D8:6; D9:17` becomes two turns, `D:11:26` becomes `D11:26`, `D30:05` becomes `D30:5`, `D12:3-D12:5` three
    turns; turns that are not in the conversation are dropped.
    """
    known = {message.id: None for session in sessions for message in session.messages}
    return tuple(
        Question(
            text_of(one["question"]),
            _kind(one.get("category"), categories),
            tuple(turn for turn in _mended(one.get("evidence")) if turn in known),
            answer="" if one.get("answer") is None else str(one["answer"]),
        )
        for one in dicts_of(value)
        if text_of(one.get("question"))
    )


def _kind(category: object, categories: Mapping[int, str]) -> str:
    return categories.get(category, "other") if isinstance(category, int) else "other"


def _mended(evidence: object) -> dict[str, None]:
    turns: dict[str, None] = {}
    for text in map(text_of, list_of(evidence)):
        for session, first, other, last in _EVIDENCE.findall(text):
            end = int(last) if other and int(other) == int(session) else int(first)
            turns |= dict.fromkeys(f"D{int(session)}:{turn}" for turn in range(int(first), end + 1))
    return turns


def facts(path: Path) -> dict[str, dict[str, frozenset[str]]]:
    """Return the observations that come with each conversation, and the turns that each was made of."""
    value = parsed(path)
    found: dict[str, dict[str, frozenset[str]]] = {}
    for one in _conversations(value) if _knows(value) else []:
        noted = found.setdefault(text_of(one.get("sample_id")), {})
        for by_speaker in map(dict_of, dict_of(one.get("observation")).values()):
            for pair in chain.from_iterable(map(list_of, by_speaker.values())):
                text, evidence = (*list_of(pair), None, None)[:2]
                turns = _mended(evidence if isinstance(evidence, list) else [evidence])
                if text_of(text):
                    noted[text_of(text)] = noted.get(text_of(text), frozenset()).union(turns)
    return found


READER = Reader("LoCoMo", _knows, _read, MAIN)
