"""A chat, and answers of a model about it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from holdfast import Message
from holdfast.kinds import FIL
from holdfast.learning.grounding import Observation, ReadObservations, read_observations
from holdfast.learning.question import TranscriptPart, split_messages
from holdfast.llm.json_answers import parse
from holdfast.text.tokens import estimate_tokens

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
CHAT = [
    Message("user", "I moved to Lisbon in May.", at=NOON, seq=4),
    Message("assistant", "Noted: you moved to Lisbon in May. Shall we deploy on Friday?", at=NOON, seq=5),
    Message("user", "Yes, deploy on Friday.", at=NOON, seq=6, name="Ada"),
    Message("assistant", "The build failed because the disk was full.", at=NOON, seq=7),
]
MANY = 100_000


def whole(messages: Sequence[Message]) -> TranscriptPart:
    (part,) = split_messages(messages, estimate_tokens, MANY)
    return part


def answer(*items: object, kind: str = "findings") -> str:
    return json.dumps({"findings": [], "insights": [], "lessons": [], kind: items})


def read(given: str, part: TranscriptPart, messages: Sequence[Message]) -> ReadObservations:
    return read_observations(parse(given), part, messages, FIL)


def observed(*items: object, kind: str = "findings") -> tuple[Observation, ...]:
    return read(answer(*items, kind=kind), whole(CHAT), CHAT).observations
