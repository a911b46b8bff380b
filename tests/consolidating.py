"""What learning has for a memory, and answers of a model to what it is asked about pairs and facts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from holdfast import Memory, Record
from holdfast.events import Events
from holdfast.learning.job_context import JobContext, UnitResult, WorkUnit
from holdfast.settings import Learning
from holdfast.types import Job


def context_of(memory: Memory, events: Events | None = None, **policy: int) -> JobContext:
    """Give what learning has for a memory."""
    opened = memory._runtime
    return JobContext(
        opened.database,
        memory.scope,
        opened.kinds,
        lambda text: len(text) // 4,
        opened.now,
        Learning(**policy),  # type: ignore[arg-type]  # only whole numbers are passed
        events or Events(),
        lambda scope: opened.intake(scope, "reflect"),
        opened.search,
        model="tiny",
    )


def answered(unit: WorkUnit, *items: Mapping[str, object]) -> UnitResult:
    """Answer a question with items."""
    assert unit.request is not None
    return unit.apply(json.dumps({"changes": items}))


def job(new: Record, old: Record) -> Job:
    return Job(f"job_{new.id}", "tidy", (new.id, old.id), datetime(2026, 3, 1, tzinfo=UTC))


def texts(memory: Memory, kind: str = "fact") -> list[str]:
    return [one.text for one in memory.records(kind=kind)]
