"""The runs that the code of a thread or task is within, in a context variable."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol


class RunOfChat(Protocol):
    """A run, as far as it is known here: its chat."""

    @property
    def chat(self) -> object:
        """The chat that it is a run of."""


# Each with the agent that sees it, None for all agents.
_RUNS: ContextVar[tuple[tuple[RunOfChat, str | None], ...]] = ContextVar("holdfast_run", default=())


def enter(run: RunOfChat, agent: str | None) -> None:
    """Make a run, which an agent sees, the innermost of the current thread or task; None for all agents."""
    _RUNS.set((*_RUNS.get(), (run, agent)))


def leave(run: RunOfChat) -> None:
    """Take a run off those of the current thread or task."""
    _RUNS.set(tuple(entry for entry in _RUNS.get() if entry[0] is not run))


def current_run(chat: object, agent: str) -> RunOfChat | None:
    """Return the innermost run of this chat in the current thread or task that an agent sees, if any.

    "" stands for all agents.
    """
    for run, sees in reversed(_RUNS.get()):
        if run.chat == chat and (sees is None or agent in ("", sees)):
            return run
    return None
