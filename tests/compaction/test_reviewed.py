"""Hostile sizes, and damaged rows: each of these was once slow, or not named."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from compaction_chats import policy, tell

from holdfast import Damaged, Memory, Message, ToolCall
from holdfast.compaction.recent_turns import RingBuffer
from soak import cases
from tables import each

MEGABYTE = cases(100_000, 1_000_000)


@pytest.mark.scaled
@pytest.mark.slow
@each(
    "text",
    [
        "`" * MEGABYTE,
        "~" * MEGABYTE,
        "~" * MEGABYTE + "`",
        "!" * MEGABYTE + "x",
        "." * (MEGABYTE // 2) + ")" * (MEGABYTE // 2) + "x",
        "data:" + "a" * 80 + ";" * MEGABYTE,
        "he ran " * (MEGABYTE // 7),
        "x" + " " * MEGABYTE + "x",
        "\n" * MEGABYTE + "x",
        "'\n" * (MEGABYTE // 2),
        "<<X\n" * (MEGABYTE // 4),
        "<a-b " * (MEGABYTE // 5),
        "<tool-use>" * (MEGABYTE // 10),
        "a/" * (MEGABYTE // 2),
    ],
)  # fmt: skip
def test_a_hostile_megabyte_costs_little(text: str) -> None:
    """Quadratic, each of these would take minutes to hours."""
    message = Message("user", text)
    assert len(RingBuffer.of([message])) <= 1
    with Memory(":memory:", user="ada", admin=True) as memory:
        chat = memory.chat("c")
        call = ToolCall("1", "bash", {"command": text, "path": text})
        used = [Message("assistant", calls=(call,)), Message("tool", text, call_id="1")]
        chat.append([message, *used, *(Message("user", "And then?") for _ in range(40))])
        assert all(len(hit.text) <= 502 for hit in chat.search("running x"))
        assert chat.compact(full=True, budget=1_000, policy=policy(1_000, turns=1)).messages


@pytest.mark.parametrize(
    ("sql", "call"),
    [
        ("UPDATE messages SET calls = '{' WHERE seq = 30", "compact"),
        ("UPDATE messages SET calls = '[1]' WHERE seq = 30", "needs_compaction"),
        ("UPDATE summaries SET since = 'soon'", "tree"),
        ("UPDATE summaries SET since = 'soon'", "verify"),
        ("UPDATE messages SET at = 9223372036854775807 WHERE seq = 1", "verify"),
    ],
)
def test_damage_is_named(tmp_path: Path, sql: str, call: str) -> None:
    path = tmp_path / "a.db"
    with Memory(path, user="ada") as memory:
        tell(memory.chat("c"), 40)
        memory.chat("c").compact(full=True, policy=policy(2_000, target=0.7))
        tell(memory.chat("c"), 40, first=41)
    with sqlite3.connect(path) as connection:
        connection.execute(sql)
    connection.close()
    with Memory(path, user="ada") as memory:
        chat = memory.chat("c")
        if call == "verify":
            assert not memory.verify().ok
            return
        with pytest.raises(Damaged):
            {
                "compact": lambda: chat.compact(full=True, budget=300),
                "needs_compaction": lambda: chat.needs_compaction(300),
                "tree": chat.tree,
            }[call]()
