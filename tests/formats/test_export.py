from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast import InvalidInput, Memory, ToolCall
from holdfast_cli.formats.export import export_chats
from holdfast_cli.formats.importing import import_paths


def fill(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append(
        role="user",
        content="Grüße \U0001f600 \u2028 \x00",
        name="ada",
        at=datetime(2026, 1, 2, 3, 4, 5, 678, UTC),
    )
    chat.append(
        role="assistant",
        calls=[ToolCall("t1", "a", {"x": [1, None]}), ToolCall("t2", "b", "not {json")],
        meta={"k": {}},
    )
    results = [
        {"type": "tool_result", "tool_use_id": call, "content": f"result of {call}"} for call in ("t1", "t2")
    ]
    chat.append({"role": "user", "content": results})
    chat.append({"role": "tool", "tool_call_id": "t1", "content": ""})
    chat.append({"role": "tool", "tool_call_id": "elsewhere", "content": "an answer to nothing here"})
    chat.append({"role": "assistant", "content": [{"type": "thinking", "thinking": "\ud800 alone"}], "at": 5})
    chat.rename("The plan")
    memory.scoped(agent="coach").chat("tuesday").append(
        [{"role": "user", "content": f"{n}"} for n in range(2345)]
    )
    memory.chat("tuesday").archive()


def everything(memory: Memory) -> dict[str, object]:
    return {info.id: (info, memory.chat(info.id).history()) for info in memory.chats(archived=None)}


@pytest.mark.slow
def test_an_export_comes_back_equal_on_every_database(memory: Memory, tmp_path: Path) -> None:
    fill(memory)
    path = tmp_path / "backup.jsonl"
    with path.open("w", encoding="ascii") as stream:
        assert export_chats(memory, stream) == 2351
    with Memory(":memory:", user="ada") as copy:
        report = import_paths(copy, path)
        assert (report.sessions, report.added, report.problems) == (2, 2351, ())
        assert everything(copy) == everything(memory)
        again = io.StringIO()
        export_chats(copy, again)
        assert again.getvalue() == path.read_text(encoding="ascii")


def test_some_chats_are_exported_on_request_and_only_those_of_the_agent() -> None:
    with Memory(":memory:") as memory:
        fill(memory)
        stream = io.StringIO()
        assert export_chats(memory, stream, ["monday"]) == 6
        lines = [json.loads(line) for line in stream.getvalue().splitlines()]
        assert {line["chat"] for line in lines} == {"monday"}
        assert [line.get("title") for line in lines] == ["The plan", None, None, None, None, None]
        assert export_chats(memory.scoped(agent="coach"), io.StringIO()) == 2345
        assert export_chats(memory, io.StringIO(), []) == 0
        with pytest.raises(InvalidInput):
            export_chats(memory, io.StringIO(), ["monday", "never"])
