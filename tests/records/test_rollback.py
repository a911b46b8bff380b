"""The way back: what `test_any_records.py` does not roll back or undo."""

from __future__ import annotations

import pytest

from holdfast import InvalidInput, Memory
from record_lists import fresh, texts
from stored_texts import text_of
from tables import each


def test_a_record_is_rolled_back_as_a_new_version_by_the_user(memory: Memory) -> None:
    fact = memory.remember("Ada runs", category="sport", tags=["a"], priority=7, by="tool", merge=False)
    memory.replace(fact.id, "Ada swims", category="water", tags=["b"], priority=2)
    (again,) = memory.rollback(fact.id, 1)
    assert (again.id, again.version, again.by, again.action) == (fact.id, 3, "tool", "rollback")
    newest = memory.changes(limit=1)[0]
    assert (newest.by, newest.why) == ("user", "to version 1"), "who rolled back, not who wrote the text"
    assert (again.text, again.category, again.tags, again.priority) == ("Ada runs", "sport", ("a",), 7)
    memory.undo()
    assert memory.changes(limit=1)[0].why == "of version 3"


def test_a_single_text_of_one_agent_is_rolled_back_alone(memory: Memory) -> None:
    coach, cook = memory.scoped(agent="coach"), memory.scoped(agent="cook")
    for agent in (coach, cook):
        agent.remember("old", "soul")
        agent.remember("new", "soul")
    coach.rollback("soul", 1)
    assert [text_of(agent.get("soul")) for agent in (coach, cook)] == ["old", "new"]


def test_one_text_for_each_chat_is_rolled_back_in_all_chats(memory: Memory) -> None:
    for text in ("old", "new"):
        for chat in ("monday", "tuesday"):
            memory.remember(f"{text} {chat}", "episode", chat=chat)
    memory.rollback("episode", 2)
    assert texts(memory.records(kind="episode")) == ["old monday", "old tuesday"]


@each("version", [0, 1])
def test_one_text_goes_back_to_where_there_was_none(version: int) -> None:
    memory = fresh()
    memory.remember("lesson", "lesson")
    memory.remember("soul", "soul")
    finding = memory.remember("finding", "finding")
    for what in ("profile", "rec_unknown", finding.id):
        with pytest.raises(InvalidInput):
            memory.rollback(what, version)
    (gone,) = memory.rollback("soul", version)
    assert (gone.retracted, gone.action, memory.get("soul")) == (True, "rollback", None)
    memory.undo()
    assert text_of(memory.get("soul")) == "soul"
