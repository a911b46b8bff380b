"""The runs that the code of a thread or task is within, in a context variable."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol


class RunOfChat(Protocol):
    """A run, as far as it is known here: its chat."""

    @property
    def chat(self) -> object:
        """The chat that it is a run of."""


_RUNS: ContextVar[tuple[RunOfChat, ...]] = ContextVar("holdfast_run", default=())


def enter(run: RunOfChat) -> None:
    """Make a run the innermost of the current thread or task."""
    _RUNS.set((*_RUNS.get(), run))


def leave(run: RunOfChat) -> None:
    """Take a run off those of the current thread or task."""
    _RUNS.set(tuple(other for other in _RUNS.get() if other is not run))


def current_run(chat: object) -> RunOfChat | None:
    """Return the innermost run of this chat in the current thread or task; None outside of any."""
    return next((run for run in reversed(_RUNS.get()) if run.chat == chat), None)
