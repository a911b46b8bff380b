"""The way back: a record or a kind is rolled back, a call is undone."""

from __future__ import annotations

import pytest

from holdfast import Denied, InvalidInput, Memory, Writer, acting_as
from record_lists import fresh, texts
from stored_texts import text_of
from tables import each

# The way back: rollback


def test_a_record_is_rolled_back_as_a_new_version_by_the_user(memory: Memory) -> None:
    fact = memory.remember("Ada runs", category="sport", tags=["a"], priority=7, by="tool", merge=False)
    memory.replace(fact.id, "Ada swims", category="water", tags=["b"], priority=2)
    (again,) = memory.rollback(fact.id, 1)
    assert (again.id, again.version, again.by, again.action) == (fact.id, 3, "tool", "rollback")
    assert memory.changes(limit=1)[0].by == "user", "who rolled back, not who wrote the text"
    assert (again.text, again.category, again.tags, again.priority) == ("Ada runs", "sport", ("a",), 7)
    assert texts(memory.records()) == ["Ada runs"]
    assert texts(memory.at(2).records()) == ["Ada swims"]


def test_a_single_text_of_one_agent_is_rolled_back_alone(memory: Memory) -> None:
    coach, cook = memory.scoped(agent="coach"), memory.scoped(agent="cook")
    for agent in (coach, cook):
        agent.remember("old", "soul")
        agent.remember("new", "soul")
    coach.rollback("soul", 1)
    souls = [agent.get("soul") for agent in (coach, cook)]
    assert [one and one.text for one in souls] == ["old", "new"]


def test_a_kind_that_fits_its_cap_then_and_now_is_rolled_back_whatever_lies_between(memory: Memory) -> None:
    first = memory.remember("a" * 3_900, merge=False)
    memory.replace(first.id, "short")
    memory.remember("b" * 3_900, merge=False)
    memory.rollback("fact", 1)
    assert texts(memory.records(kind="fact")) == ["a" * 3_900]


def test_one_text_for_each_chat_is_rolled_back_in_all_chats(memory: Memory) -> None:
    for text in ("old", "new"):
        for chat in ("monday", "tuesday"):
            memory.remember(f"{text} {chat}", "episode", chat=chat)
    memory.rollback("episode", 2)
    assert texts(memory.records(kind="episode")) == ["old monday", "old tuesday"]


def test_rollback_to_where_there_was_nothing_is_refused(memory: Memory) -> None:
    memory.remember("lesson", "lesson")
    finding = memory.remember("finding", "finding")
    memory.remember("soul", "soul")
    for what in (finding.id, "rec_unknown", "profile"):
        for version in (0, 1):
            with pytest.raises(InvalidInput):
                memory.rollback(what, version)
    assert memory.version() == 3


@each("version", [0, 1])
def test_one_text_goes_back_to_where_there_was_none(version: int) -> None:
    memory = fresh()
    memory.remember("lesson", "lesson")
    memory.remember("soul", "soul")
    (gone,) = memory.rollback("soul", version)
    assert (gone.retracted, gone.action, memory.get("soul")) == (True, "rollback", None)
    memory.undo()
    assert text_of(memory.get("soul")) == "soul"


@each("writer", ["agent", "tool", "reflect", "system", "import"])
def test_nobody_but_the_user_rolls_back_or_undoes_a_constraint(writer: Writer) -> None:
    memory = fresh()
    constraint = memory.remember("Never on Mondays", "constraint", by="user")
    memory.replace(constraint.id, "Never on Sundays", by="user")
    for by in (writer, None):
        with acting_as(source=writer):
            with pytest.raises(Denied):
                memory.rollback(constraint.id, 1, by=by)
            with pytest.raises(Denied):
                memory.rollback("constraint", 1, by=by)
            with pytest.raises(Denied):
                memory.undo(by=by)
    assert texts(memory.records()) == ["Never on Sundays"]
    assert memory.version() == 2
    memory.rollback("constraint", 1)
    assert texts(memory.records()) == ["Never on Mondays"]


def test_an_agent_does_not_roll_back_what_is_of_another_agent(memory: Memory) -> None:
    finding = memory.scoped(agent="cook").remember("old", "finding")
    memory.scoped(agent="cook").replace(finding.id, "new")
    with pytest.raises(InvalidInput):
        memory.scoped(agent="coach").rollback(finding.id, 1)
    assert memory.scoped(agent="coach").rollback("finding", 1) == []
    assert texts(memory.records()) == ["new"]


# The way back: undo


def test_an_undo_is_a_change_by_the_user_that_says_of_what(memory: Memory) -> None:
    memory.remember("one", "finding", by="agent")
    memory.undo()
    newest = memory.changes(limit=1)[0]
    assert (newest.action, newest.by, newest.before, newest.after) == ("undo", "user", "one", None)
    assert "version 1" in newest.why


def test_an_agent_undoes_its_own_calls_only(memory: Memory) -> None:
    coach, cook = memory.scoped(agent="coach"), memory.scoped(agent="cook")
    coach.remember("of the coach", "finding")
    cook.remember("of the cook", "finding")
    coach.undo()
    assert texts(memory.records()) == ["of the cook"]
    with pytest.raises(InvalidInput):
        coach.undo()


def test_another_user_has_nothing_to_undo(memory: Memory) -> None:
    memory.remember("one", "finding")
    with pytest.raises(InvalidInput):
        memory.scoped(user="bob").undo()
    assert texts(memory.records()) == ["one"]
