"""What an importer finds in a file: messages that belong to sessions, and what it leaves out, each with its place."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, ParamSpec

from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.store.sessions import ChatLabel
    from holdfast.types import Message

TOO_DEEP = "nested too deeply"
_P = ParamSpec("_P")


@dataclass(frozen=True, slots=True)
class Session:
    """Name the chat that messages belong to; an empty title or agent leaves that to the memory."""

    id: str
    title: str = ""
    agent: str = ""
    archived: bool = False
    label: ChatLabel | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Found:
    """Hold one message, its session and its place: a line of JSONL, or the position in a JSON array (0: all of it)."""

    session: Session
    line: int
    message: Message


@dataclass(frozen=True, slots=True)
class Skip:
    """Say what is left out and why; `problem` when it should have been a message and could not be read as one."""

    line: int
    reason: str
    problem: bool = False


def found(
    session: Session, line: int, make: Callable[_P, Message], /, *args: _P.args, **kwargs: _P.kwargs
) -> Found | Skip:
    """Make a message, or say why what stands there is none."""
    try:
        return Found(session, line, make(*args, **kwargs))
    except InvalidInput as error:
        return Skip(line, error.what, problem=True)
    except RecursionError:
        return Skip(line, TOO_DEEP, problem=True)


def stable_id(position: int, payload: object) -> str:
    """Name a message that has no id, the same at every import: by its position in the session and its content."""
    text = json.dumps(payload, sort_keys=True, separators=(",", ":"))
    return f"{position}-{blake2b(text.encode(), digest_size=4).hexdigest()}"


def text_of(value: object) -> str:
    """Return the value if it is text, else no text."""
    return value if isinstance(value, str) else ""


def dicts_of(value: object) -> list[dict[str, object]]:
    """Return the items of a list, each that is no dict as an empty one; none of what is no list."""
    return [entry if isinstance(entry, dict) else {} for entry in value] if isinstance(value, list) else []
