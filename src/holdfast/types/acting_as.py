"""Who acts, for code that has no handle: context variables that a handle without a user or an agent of its own follows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from holdfast.errors import InvalidInput, shown
from holdfast.safety.guard import check_name_is_open
from holdfast.types import WRITERS, Scope, Writer, check_name


@dataclass(frozen=True, slots=True)
class Acting:
    """Who acts; "" and None where nobody is named."""

    user: str = ""
    agent: str = ""
    chat: str = ""
    source: Writer | None = None


_NOBODY = Acting()
_ACTING: ContextVar[Acting] = ContextVar("holdfast_acting", default=_NOBODY)


@contextmanager
def acting_as(
    *,
    user: str | None = None,
    agent: str | None = None,
    chat: str | None = None,
    source: Writer | None = None,
) -> Iterator[Acting]:
    """Name who acts, for everything that is called within the block, in this thread or task.

    A `Memory` that was opened without a user or an agent acts for those named here; one that has its own keeps it.
    `chat` is the chat that `memory.chat()` opens and in which records are learned, `source` the writer that changes
    are signed with. Without it that is the agent. Blocks nest; None keeps what the outer block says.

    >>> with acting_as(user="ada", source="user"):
    ...     memory.remember("Never plan runs on Mondays", kind="constraint")

    Raises:
        InvalidInput: a name is not usable, or the writer is unknown.

    """
    names = {"user": user, "agent": agent, "chat": chat}
    for name, value in names.items():
        if value is not None:
            check_name(value, name, empty=name != "chat")
    Scope("", user or "", agent or "")  # its names have a limit of their own
    check_name_is_open(agent or "", "The name of the agent")
    outer = _ACTING.get()
    inner = Acting(
        user=outer.user if user is None else user,
        agent=outer.agent if agent is None else agent,
        chat=outer.chat if chat is None else chat,
        source=outer.source if source is None else check_writer(source),
    )
    token = _ACTING.set(inner)
    try:
        yield inner
    finally:
        _ACTING.reset(token)


def current() -> Acting:
    """Return who acts here and now."""
    return _ACTING.get()


def check_writer(value: object) -> Writer:
    """Return `value` if it is a writer, or raise InvalidInput."""
    for writer in WRITERS:
        if value == writer:
            return writer
    raise InvalidInput(f"{shown(value)} is not a writer.", f"Use one of {', '.join(WRITERS)}.")
