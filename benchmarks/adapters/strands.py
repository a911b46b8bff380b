"""Sessions of Strands Agents, beside its FileSessionManager."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from strands.session.file_session_manager import FileSessionManager
from strands.session.session_repository import SessionRepository
from strands.types.session import SessionAgent, SessionMessage

from benchmarks.adapters import Call
from holdfast.integrations.strands import HoldfastSessionManager
from holdfast.memory import Memory

_SESSION, _AGENT = "trip", "default"
_NEWEST = 20  # messages of a window that is restored


@contextmanager
def calls(folder: Path, size: int) -> Iterator[Sequence[Call]]:
    """Open a session of each with so many messages, and return the calls of a turn."""
    file = folder / "holdfast.db"
    theirs = FileSessionManager(_SESSION, str(folder / "theirs"))
    _fill(theirs, size)
    # What is stored is the same, and filling does not wait for the disk.
    with Memory(file, durability="normal") as memory:
        _fill(HoldfastSessionManager(memory, _SESSION).session_repository, size)
    with Memory(file) as memory:
        ours = HoldfastSessionManager(memory, _SESSION).session_repository

        def compared(name: str, call: Callable[[SessionRepository, int], object]) -> Call:
            return Call(name, lambda n: call(ours, n), lambda n: call(theirs, n), "FileSessionManager")

        yield [
            compared("add 2 messages, update the agent", lambda one, n: _turn(one, size + 2 * n)),
            compared(f"restore {_NEWEST} messages", lambda one, _: _listed(one, size - _NEWEST)),
            compared("restore all messages", lambda one, _: _listed(one, 0)),
            compared("read a message", lambda one, n: one.read_message(_SESSION, _AGENT, n)),
        ]


def _fill(repository: SessionRepository, size: int) -> None:
    repository.create_agent(_SESSION, SessionAgent(_AGENT, {}, {}))
    for number in range(size):
        repository.create_message(_SESSION, _AGENT, _message(number))


def _turn(repository: SessionRepository, number: int) -> None:
    for one in (number, number + 1):
        repository.create_message(_SESSION, _AGENT, _message(one))
    repository.update_agent(_SESSION, SessionAgent(_AGENT, {"messages": number}, {}))


def _listed(repository: SessionRepository, offset: int) -> object:
    return repository.list_messages(_SESSION, _AGENT, _NEWEST if offset else None, offset)


def _message(number: int) -> SessionMessage:
    role = "assistant" if number % 2 else "user"
    text = f"Message {number} about the marathon in Berlin, and how to train for it."
    return SessionMessage({"role": role, "content": [{"text": text}]}, number)
