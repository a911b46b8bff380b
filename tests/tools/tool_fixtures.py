"""Memories, chats and files for the tests of tools; a module assigns the fixtures that it uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from holdfast import Memory
from holdfast.chat import Chat
from holdfast.port.tools import Files
from holdfast.tools.file_commands import FileCommandError
from holdfast.tools.tool import ToolResult

KEY = "AKIAQ3EGRGB2M4XPIX5T"
PLAN = "/memories/plan.md"


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", user="ada", admin=True) as opened:
        yield opened


@pytest.fixture
def memory_of_agent() -> Iterator[Memory]:
    with Memory(":memory:", user="ada", agent="coach") as opened:
        yield opened


@pytest.fixture
def chat(memory: Memory) -> Chat:
    return memory.chat("monday")


@pytest.fixture
def files(memory: Memory) -> Files:
    """Return the files of a fresh memory, on each kind of database."""
    return Files(memory)


@pytest.fixture
def quick() -> Files:
    """Return files for what no database has a part in."""
    return Files(Memory(":memory:", user="ada"))


def refusal(call: Callable[[], object]) -> str:
    """Return the answer to a command that is refused."""
    with pytest.raises(FileCommandError) as caught:
        call()
    assert caught.value.what
    assert caught.value.todo.endswith(".")
    return caught.value.answer


def problem(found: ToolResult) -> str:
    """Return the error of a failed result."""
    assert not found.ok
    return str(found.data["error"])
