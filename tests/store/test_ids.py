"""Ids by their beginnings, on both databases."""

from __future__ import annotations

from holdfast import Memory
from holdfast.port.handles import ids_beginning


def test_ids_are_found_by_their_beginnings_in_the_own_space(memory: Memory) -> None:
    for chat in ("vane", "van_", "van%", "mill"):
        memory.chat(chat).append([{"role": "user", "content": "Mend it. " * 40}] * 9)
    memory.scoped(user="bob").chat("vandal").append(role="user", content="Hello")
    record = memory.remember("The vane is of tin")
    memory.replace(record.id, "The vane is of copper")
    memory.chat("vane").compact(full=True, budget=300)
    summaries = sorted(summary.id for summary in memory.chat("vane").tree())
    assert ids_beginning(memory, "chat", "van") == ["van%", "van_", "vane"]
    assert ids_beginning(memory, "chat", "van_") == ["van_"]
    assert ids_beginning(memory, "chat") == ["mill", "van%", "van_", "vane"]
    assert ids_beginning(memory, "record", "rec_") == [record.id]
    assert ids_beginning(memory, "summary", "sum_") == summaries != []
    assert ids_beginning(memory, "job", "embed") == []
