"""The memory tool of the Anthropic SDK on ours: the answers of the SDK's own, and what ours adds."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool
from anthropic.tools import ToolError
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Damaged, Memory
from holdfast.integrations.anthropic import MemoryTool
from holdfast.tools.files import TOOL
from soak import cases

PLAN = "/memories/plan.md"


@pytest.fixture
def tool() -> Iterator[MemoryTool]:
    with Memory(":memory:", user="ada") as memory:
        yield MemoryTool(memory)


def command(name: str, **arguments: object) -> dict[str, object]:
    return {"command": name, **arguments}


# Beside the tool of the SDK

PATHS = st.sampled_from(
    [
        "/memories",
        "/memories/a",
        "/memories/b.md",
        "/memories/d/a",
        "/memories/d/e/f",
        "/memories/d",
        "/memories/.x",
        "/memories/../../b",
        "/elsewhere",
    ]
)
TEXTS = st.text("ab \n\r\té", max_size=12)
PARTS = st.text("ab \né", min_size=1, max_size=3)
LINES = st.integers(-1, 6)
COMMANDS = st.one_of(
    st.builds(partial(command, "view"), path=PATHS),
    st.builds(partial(command, "view"), path=PATHS, view_range=st.lists(LINES, min_size=2, max_size=2)),
    st.builds(partial(command, "create"), path=PATHS, file_text=TEXTS),
    st.builds(partial(command, "str_replace"), path=PATHS, old_str=PARTS, new_str=TEXTS),
    st.builds(partial(command, "insert"), path=PATHS, insert_line=LINES, insert_text=TEXTS),
    st.builds(partial(command, "delete"), path=PATHS),
    st.builds(partial(command, "rename"), old_path=PATHS, new_path=PATHS),
)


def answer(tool: MemoryTool | BetaLocalFilesystemMemoryTool, given: dict[str, object]) -> str:
    try:
        return str(tool.call(given))
    except ToolError as error:
        return f"refused: {error.content}"
    except OSError:
        return "refused: by the disk"


def alike(said: str) -> list[str]:
    """Take out of an answer what a disk has of its own: the sizes of folders."""
    header, *lines = said.split("\n")
    if not header.startswith("Here're the files"):
        return [header, *lines]
    folder, *inside = lines
    return [
        header,
        folder.partition("\t")[2],
        *(line.partition("\t")[2] if line.endswith("/") else line for line in inside),
    ]


def sweep(folder: Path) -> None:
    """Remove the folders that a command has left empty: ours are there as long as files lie in them."""
    for place in sorted((one for one in folder.rglob("*") if one.is_dir()), reverse=True):
        with suppress(OSError):
            place.rmdir()


@settings(max_examples=cases(15, 180))
@given(st.lists(COMMANDS, max_size=10))
def test_answers_are_those_of_the_tool_that_writes_to_disk(commands: list[dict[str, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder, Memory(":memory:") as memory:
        theirs, ours = BetaLocalFilesystemMemoryTool(folder), MemoryTool(memory)
        for one in commands:
            expected, said = answer(theirs, one), answer(ours, one)
            sweep(theirs.memory_root)
            if expected == "refused: by the disk":
                assert said.startswith("refused: ")
            else:
                assert alike(said) == alike(expected), one
        found = {
            f"/memories/{file.relative_to(theirs.memory_root)}": file.read_bytes().decode()
            for file in theirs.memory_root.rglob("*")
            if file.is_file()
        }
        assert {path: ours.files.read(path) for path in ours.files.paths()} == found


# The tool as the SDK takes it


def test_the_sdk_is_told_of_it_and_can_clear_it() -> None:
    with Memory(":memory:") as memory:
        tool = MemoryTool(memory, by="user", cache_control={"type": "ephemeral"})
        assert tool.name == "memory"
        assert tool.to_dict() == {**TOOL, "cache_control": {"type": "ephemeral"}}
        tool.call(command("create", path=PLAN, file_text="Berlin"))
        assert memory.changes()[0].by == "user"
        assert tool.clear_all_memory() == "All memory cleared"
        assert tool.files.paths() == []


def test_a_model_is_not_told_what_is_wrong_with_a_database(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db") as memory:
        tool = MemoryTool(memory)
        with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
            connection.execute("DROP TABLE records")
        with pytest.raises(ToolError) as caught:
            tool.call(command("view", path="/memories"))
        assert str(caught.value) == "The memory is not available at the moment. Go on without it, and say so."
        assert isinstance(caught.value.__cause__, Damaged)


def said(*content: Mapping[str, object], stop: str) -> str:
    usage = {"input_tokens": 1, "output_tokens": 1}
    more = {"id": "msg", "type": "message", "role": "assistant", "model": "served", "stop_sequence": None}
    return json.dumps({**more, "content": content, "stop_reason": stop, "usage": usage})
