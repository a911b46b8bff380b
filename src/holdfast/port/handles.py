"""What handles are and return beyond the public names, for those who stand in for them or tell them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, get_args

from holdfast.records.options import NewRecord, RecallOptions
from holdfast.types.late import importer

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from holdfast.aio import AsyncMemory
    from holdfast.chat import Chat
    from holdfast.learning.service import Learner
    from holdfast.llm.adapters import resolve
    from holdfast.llm.model import LLM
    from holdfast.memory import Memory
    from holdfast.prompt.build import build
    from holdfast.records.grants import Grants
    from holdfast.records.quarantine import Quarantine
    from holdfast.tools.memory_internals import further_memories
    from holdfast.types import Job

# Each is a room of its own.
__getattr__ = importer(
    "holdfast.port.handles",
    {
        "aio": "AsyncMemory",
        "learning.service": "Learner",
        "llm.adapters": "resolve",
        "llm.model": "LLM",
        "prompt.build": "build",
        "records.grants": "Grants",
        "records.quarantine": "Quarantine",
        "tools.memory_internals": "further_memories",
    },
    "holdfast",
)
R = TypeVar("R")


def submit(handle: Memory | Chat, work: Callable[[], R]) -> asyncio.Future[R]:
    """Start some work on a thread of a memory, or of the loop, and return its future.

    Raises:
        Closed: it is closed.

    """
    from holdfast import awaiting
    from holdfast.runtime import runtime_of

    runtime = runtime_of(handle)
    return awaiting.submit(None if runtime is None else runtime.executor(), work)


def ids_beginning(memory: Memory, sort: str, beginning: str = "") -> list[str]:
    """Return the ids of chats, records, summaries or jobs of the space of a memory that begin with a text."""
    from holdfast.runtime import runtime_of
    from holdfast.store.ids import beginning_with

    runtime, scope = runtime_of(memory), memory.scope
    return beginning_with(runtime.database_of(scope), scope.space, sort, beginning) if runtime else []


def needs_model(job: Job) -> bool:
    """Return whether a job needs a language model, by its kind or because it failed with one."""
    from holdfast.errors import Reason
    from holdfast.learning.job_queue import OWN
    from holdfast.learning.worker import NEED_A_MODEL

    # A guard or an embedder that failed is none.
    return job.kind in NEED_A_MODEL or (job.reason in get_args(Reason) and job.kind not in OWN)
