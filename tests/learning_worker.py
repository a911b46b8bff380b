"""Memories with settings of learning, for tests of the worker."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from holdfast import Job, Learning, Memory
from learning_scripts import Clock

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
EXTRACTED = "The sessions of the shop are kept in PostgreSQL."


def opened(clock: Clock, **learning: Any) -> Memory:
    return Memory(":memory:", user="ada", admin=True, clock=clock, learning=Learning(**learning))


def kinds(jobs: Sequence[Job]) -> list[str]:
    return [job.kind for job in jobs]
