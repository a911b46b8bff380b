"""Sessions of the OpenAI Agents SDK, beside its SQLiteSession."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agents import SQLiteSession

from benchmarks.adapters import Call
from holdfast.integrations.openai_agents import HoldfastSession
from holdfast.memory import Memory

if TYPE_CHECKING:
    from agents import TResponseInputItem
    from agents.memory import Session

_NEWEST = 20  # items that a run reads


@contextmanager
def calls(folder: Path, size: int) -> Iterator[Sequence[Call]]:
    """Open a session of each with so many items, and return the calls of a run."""
    loop = asyncio.new_event_loop()
    with Memory(folder / "holdfast.db") as memory:
        ours = HoldfastSession(memory, "trip")
        theirs = SQLiteSession("trip", folder / "theirs.db")

        def added(session: Session, number: int) -> None:
            loop.run_until_complete(session.add_items([_item(number), _item(number + 1)]))

        def read(session: Session) -> None:
            loop.run_until_complete(session.get_items(_NEWEST))

        sessions: tuple[Session, Session] = (ours, theirs)
        for session in sessions:
            filling: Coroutine[object, object, None] = session.add_items([_item(n) for n in range(size)])
            loop.run_until_complete(filling)
        yield [
            Call("add 2 items", lambda n: added(ours, n), lambda n: added(theirs, n), "SQLiteSession"),
            Call(f"get {_NEWEST} items", lambda _: read(ours), lambda _: read(theirs), "SQLiteSession"),
        ]
        theirs.close()
    loop.close()


def _item(number: int) -> TResponseInputItem:
    role = "assistant" if number % 2 else "user"
    text = f"Message {number} about the marathon in Berlin, and how to train for it."
    # A message of the simple form, whatever its role.
    return {"role": role, "content": text}  # type: ignore[return-value, misc]
