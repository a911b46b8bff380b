"""The questions about the conversations of LoCoMo, with the turns that answer them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from holdfast.io.found import text_of
from holdfast.io.locomo import identity, sessions

if TYPE_CHECKING:
    from collections.abc import Mapping

_EVIDENCE = re.compile(r"D:?(\d{1,6}):(\d{1,6})")


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

    `D8:6; D9:17` becomes two turns, `D:11:26` becomes `D11:26`, `D30:05` becomes `D30:5`; turns that are not in the
    conversation are dropped, and a question whose evidence is all dropped is counted as unusable.
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
