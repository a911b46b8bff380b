"""The runs that the code of a thread or task is within, in a context variable."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

_RUNS: ContextVar[tuple[Any, ...]] = ContextVar("holdfast_run", default=())


def enter(run: object) -> None:
    """Make a run the innermost of the current thread or task."""
    _RUNS.set((*_RUNS.get(), run))


def leave(run: object) -> None:
    """Make a run no longer one of the current thread or task; another one than that of `enter` never had it."""
    _RUNS.set(tuple(one for one in _RUNS.get() if one is not run))


def current_run(chat: object) -> Any:
    """Return the innermost `Run` of this chat in the current thread or task; None outside of any."""
    return next((run for run in reversed(_RUNS.get()) if run.chat == chat), None)
