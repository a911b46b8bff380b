"""Sessions that the OpenAI Agents SDK itself stored."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast import Memory
from holdfast_cli.formats.importing import import_paths

agents = pytest.importorskip("agents", reason="needs: pip install '.[openai-agents]'")

ANSWER = {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed"}
ITEMS: list[Any] = [
    {"role": "user", "content": "Find it"},
    {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"id": 7}'},
    {"type": "function_call_output", "call_id": "c1", "output": "found"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    ANSWER | {"content": [{"type": "output_text", "text": "Here it is.", "annotations": []}]},
]
STORED = [
    ("user", "Find it"),
    ("assistant", ""),
    ("tool", "found"),
    ("assistant", "[web_search_call]"),
    ("assistant", "Here it is."),
]


def add(session: Any, items: list[Any]) -> None:
    asyncio.run(session.add_items(items))
    session.close()


def told(memory: Memory) -> dict[str, list[tuple[str, str]]]:
    chats = reversed(memory.chats())
    return {chat.id: [(m.role, m.content) for m in memory.chat(chat.id).history()] for chat in chats}


def test_sessions_are_chats_and_grow(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    add(agents.SQLiteSession("one", path), ITEMS)
    add(agents.SQLiteSession("two", path), ITEMS[:1])
    report = import_paths(memory, path)
    assert (report.sessions, report.added, report.skipped) == (2, 6, ())
    assert told(memory) == {"one": STORED, "two": STORED[:1]}
    assert [m.raw for m in memory.chat("one").history()] == ITEMS
    assert import_paths(memory, path).unchanged == 1
    add(agents.SQLiteSession("one", path), ITEMS[:1])
    assert (import_paths(memory, path).added, len(told(memory)["one"])) == (1, 6)


def test_branches_are_chats_without_what_they_repeat(quick: Memory, tmp_path: Path) -> None:
    extension = pytest.importorskip("agents.extensions.memory")
    path = tmp_path / "advanced.db"

    async def branch() -> None:
        session = extension.AdvancedSQLiteSession(session_id="s", db_path=path, create_tables=True)
        await session.add_items([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
        await session.add_items([{"role": "user", "content": "c"}])
        await session.create_branch_from_turn(2, "other")
        await session.add_items([{"role": "user", "content": "d"}])
        session.close()

    asyncio.run(branch())
    import_paths(quick, path)
    assert told(quick) == {
        "s": [("user", "a"), ("assistant", "b"), ("user", "c")],
        "s/other": [("user", "d")],
    }


NO_ITEMS = ("{", "[]", '{"role": "user"}', b"\xff", "[" * 99_999)


def test_what_is_no_item_is_reported(quick: Memory, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    add(agents.SQLiteSession("one", path), ITEMS[:1])
    with closing(sqlite3.connect(path)) as database:
        insert = "INSERT INTO agent_messages (session_id, message_data) VALUES ('one', ?)"
        database.executemany(insert, [(data,) for data in (*NO_ITEMS, '{"role":"user","content":"\\ud800"}')])
        database.commit()
    report = import_paths(quick, path)
    assert (report.added, sum(one.count for one in report.problems)) == (2, 5)
