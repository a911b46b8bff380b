"""Contexts, units and answers of reflections."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from hypothesis import strategies as st

from holdfast import Memory, Message, Scope
from holdfast.events import Events
from holdfast.learning import reflect
from holdfast.learning.job_context import JobContext, UnitResult, WorkUnit
from holdfast.llm.llm_request import LLMRequest
from holdfast.records.intake import Intake
from holdfast.settings import Learning
from holdfast.store import watermarks

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
PROFILE = "Ada is a nurse. She lives in Porto and runs marathons."
QUOTE = "I moved to Porto"
KINDS = ("finding", "lesson", "constraint", "soul", "fact")
RUBBISH = (
    "", "I cannot help with that.", "[]", "{}", '{"answer": 42}', '{"profile": true}',
    '{"profile": ["a", 7]}', '"x"', "{",
)  # fmt: skip
_LEAF = st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.sampled_from([*KINDS, PROFILE])
_KEYS = st.sampled_from(
    ["profile", "observations", "why", "kind", "text", "messages", "rules", *KINDS, "souls"]
)
JSON = st.recursive(
    _LEAF,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=12,
)


def context(memory: Memory, **changed: Any) -> JobContext:
    """Make what the worker would hand over for the agent of a handle."""
    opened = memory._runtime
    ticks = count(1)

    def intake(scope: Scope) -> Intake:
        return Intake(
            database=opened.database,
            scope=scope,
            kinds=opened.kinds,
            now=opened.now(),
            by="reflect",
            similar=lambda draft, limit: opened.search().similar(scope, draft, limit),
        )

    made = JobContext(
        database=opened.database,
        scope=memory.scope,
        kinds=opened.kinds,
        count_tokens=opened.count_tokens,
        now=lambda: opened.now() + next(ticks),  # so that no two watermarks are of the same time
        settings=Learning(),
        events=Events(),
        intake_of=intake,
        search=opened.search,
        model="canned",
    )
    return replace(made, **changed)


def units(made: JobContext) -> Iterator[WorkUnit]:
    return reflect.plan(made)


def only(made: JobContext) -> WorkUnit:
    (unit,) = units(made)
    return unit


def asked(unit: WorkUnit) -> LLMRequest:
    assert unit.request is not None
    return unit.request


def tell(memory: Memory, chat: str, *texts: str, at: datetime = START) -> None:
    """Append messages of a user and an assistant in turn, one for each minute."""
    memory.chat(chat).append(
        [
            Message("assistant" if n % 2 else "user", text, at=at + timedelta(minutes=n))
            for n, text in enumerate(texts)
        ]
    )


def offers(profile: object = None, *observations: object, quotes: object = (QUOTE,), **more: object) -> str:
    """Write the answer of a model."""
    answer = {"profile": profile, "profile_quotes": quotes, "observations": observations, "why": "", **more}
    return json.dumps(answer)


def learned(
    text: str, kind: str = "finding", messages: Sequence[int] = (1, 1), quote: object = QUOTE
) -> dict[str, object]:
    return {"kind": kind, "text": text, "messages": list(messages), "quote": quote}


def seen(memory: Memory, chat: str) -> int:
    return watermarks.read(memory._runtime.database, memory.scope.space, chat, "reflect")


def profile(memory: Memory) -> str:
    found = memory.get("profile")
    return found.text if found else ""


def told(memory: Memory, answer: str, **changed: Any) -> UnitResult:
    """Tell one session of Porto, and reflect on it."""
    tell(memory, "monday", "I moved to Porto.", "Noted.", "I run marathons, too.")
    return only(context(memory, **changed)).apply(answer)
