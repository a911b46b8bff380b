"""Short forms that tests of records share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from holdfast import Hit, Memory, Record


def texts(records: Iterable[Record]) -> list[str]:
    return [record.text for record in records]


def calls(*works: Callable[[], object]) -> tuple[Callable[[], object], ...]:
    return works


def found(hits: list[Hit]) -> list[str]:
    return [hit.text for hit in hits]


def known(memory: Memory) -> str:
    """Return what a new chat of this memory sees in its prompt."""
    return memory.chat(f"at version {memory.version()} of {memory.scope.agent}").prompt().system


def fresh() -> Memory:
    """Open a memory of its own, for a row of a table."""
    return Memory(":memory:", user="ada", admin=True)


def act(memory: Memory, name: str, **arguments: object) -> Any:
    """Return what a tool of an agent answers."""
    (tool,) = (one for one in memory.tools("of the agent") if one.name == name)
    return tool(arguments).data
