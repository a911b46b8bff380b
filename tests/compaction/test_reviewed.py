"""Hostile sizes: each of these was once slow."""

from __future__ import annotations

import pytest
from compaction_chats import policy

from holdfast import Memory, Message, ToolCall
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
        *("x" + unit * (MEGABYTE // len(unit))
            for unit in ("- ", "1.", "|", "[ ]", "oh, ", "漢", "🎉", "{", "a\n", "word ")),
    ],
)  # fmt: skip
def test_a_hostile_megabyte_costs_little(text: str) -> None:
    """Quadratic, each of these would take minutes to hours."""
    message = Message("user", text)
    with Memory(":memory:", user="ada", admin=True) as memory:
        chat = memory.chat("c")
        call = ToolCall("1", "bash", {"command": text, "path": text})
        used = [Message("assistant", calls=(call,)), Message("tool", text, call_id="1")]
        chat.append([message, *used, *(Message("user", "And then?") for _ in range(40))])
        assert all(len(hit.text) <= 502 for hit in chat.search("running x"))
        assert chat.compact(full=True, budget=1_000, policy=policy(1_000, turns=1)).messages
        assert all(one.text and one.tokens <= 200 for one in chat.tree())
