"""Who acts, for code that has no handle: `acting_as` names them for all that is called within a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.safety.guard import check_name_is_open
from holdfast.types import Scope, Writer, check_name
from holdfast.types.acting import Acting, acting, check_writer, current


@contextmanager
def acting_as(
    *,
    user: str | None = None,
    agent: str | None = None,
    chat: str | None = None,
    source: Writer | None = None,
) -> Iterator[Acting]:
    """Name who acts, for everything that is called within the block, in this thread or task.

    A `Memory` that was opened without a user or an agent acts for those named here; one that has its own
    keeps it. `chat` is the chat that `memory.chat()` opens and in which records are learned, `source` the
    writer that changes are signed with. Without it that is the agent. Blocks nest; None keeps what the outer
    block says.

    >>> with acting_as(user="ada", source="user"):
    ...     memory.remember("Never plan runs on Mondays", kind="constraint")

    Raises:
        InvalidInput: a name is not usable, or the writer is unknown.

    """
    names = {"user": user, "agent": agent, "chat": chat}
    for name, value in names.items():
        if value is not None:
            check_name(value, name, empty=name != "chat")
    # Its names have a limit of their own.
    Scope("", user or "", agent or "")
    check_name_is_open(agent or "", "The name of the agent")
    outer = current()
    inner = Acting(
        user=outer.user if user is None else user,
        agent=outer.agent if agent is None else agent,
        chat=outer.chat if chat is None else chat,
        source=outer.source if source is None else check_writer(source),
    )
    with acting(inner):
        yield inner
