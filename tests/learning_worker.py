"""Memories with settings of learning, and models, for tests of the worker."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from holdfast import Job, Learning, Memory, WorkResult
from learning_scripts import Clock, Model, finds, offers

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
EXTRACTED = "The sessions of the shop are kept in PostgreSQL."
TEXT = "The nightly backup of the shop takes 40 minutes and is kept for 30 days in Frankfurt."


def opened(clock: Clock, **learning: Any) -> Memory:
    return Memory(":memory:", user="ada", admin=True, clock=clock, learning=Learning(**learning))


def extracting(*texts: str) -> Model:
    """Make a model that finds some texts, tells episodes, and has nothing to save otherwise."""
    return Model({"observe": finds(*texts), "reflect": offers()})


def kinds(jobs: Sequence[Job]) -> list[str]:
    return [job.kind for job in jobs]


def costs(result: WorkResult) -> tuple[int, int]:
    return result.calls, result.prompt_tokens
