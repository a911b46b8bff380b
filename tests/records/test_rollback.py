"""The way back: a record or a kind is rolled back, a call is undone."""

from __future__ import annotations

import pytest

from holdfast import Denied, InvalidInput, Memory, Writer, acting_as
from holdfast.tools.presets.observations import remember_fil
from record_lists import found, texts
from stored_texts import text_of

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


def test_what_was_retracted_comes_back_in_its_place(memory: Memory) -> None:
    first = memory.remember("first", "finding")
    memory.remember("second", "finding")
    memory.retract(first.id)
    memory.rollback(first.id, 1)
    assert texts(memory.records()) == ["first", "second"]
    assert "first" in found(memory.recall("first"))


def test_a_single_text_is_rolled_back_by_its_kind(memory: Memory) -> None:
    memory.remember("I am strict.", "soul")
    memory.remember("I am kind.", "soul")
    memory.remember("Ada, 36", "profile")
    memory.rollback("soul", 1)
    soul, profile = memory.get("soul"), memory.get("profile")
    assert soul is not None
    assert profile is not None
    assert (soul.text, soul.version, profile.text) == ("I am strict.", 4, "Ada, 36")


def test_a_single_text_of_one_agent_is_rolled_back_alone(memory: Memory) -> None:
    coach, cook = memory.scoped(agent="coach"), memory.scoped(agent="cook")
    for agent in (coach, cook):
        agent.remember("old", "soul")
        agent.remember("new", "soul")
    coach.rollback("soul", 1)
    souls = [agent.get("soul") for agent in (coach, cook)]
    assert [one and one.text for one in souls] == ["old", "new"]


def test_a_kind_with_many_records_becomes_what_it_was(memory: Memory) -> None:
    ids = [memory.remember(f"finding {n}", "finding").id for n in range(6)]
    memory.remember("lesson", "lesson")
    before = memory.version()
    then = texts(memory.records(kind="finding"))
    memory.replace(ids[0], "another 0")
    memory.retract(ids[1])
    memory.remember("too much", "finding")
    memory.remember("lesson 2", "lesson")
    written = memory.rollback("finding", before)
    assert len(written) == 3, "what is the same as then needs no new version"
    assert texts(memory.records(kind="finding")) == then
    assert texts(memory.records(kind="lesson")) == ["lesson", "lesson 2"]
    memory.undo()
    assert texts(memory.records(kind="finding")) == [
        "another 0",
        *(f"finding {n}" for n in range(2, 6)),
        "too much",
    ]


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


def test_a_kind_can_be_rolled_back_to_a_version_before_it_had_records(memory: Memory) -> None:
    memory.remember("lesson", "lesson")
    remember_fil(memory, ["f1", "f2"])
    memory.rollback("finding", 1)
    assert texts(memory.records()) == ["lesson"]


@pytest.mark.parametrize("version", [-1, 3, True, "1", 1.0, None])
def test_rollback_to_a_version_that_does_not_exist_is_refused(memory: Memory, version: object) -> None:
    record = memory.remember("one", "finding")
    memory.replace(record.id, "two")
    for what in (record.id, "finding"):
        with pytest.raises(InvalidInput):
            memory.rollback(what, version)  # type: ignore[arg-type]
    assert memory.version() == 2


def test_rollback_to_where_there_was_nothing_is_refused(memory: Memory) -> None:
    memory.remember("lesson", "lesson")
    finding = memory.remember("finding", "finding")
    memory.remember("soul", "soul")
    for what in (finding.id, "rec_unknown", "profile"):
        for version in (0, 1):
            with pytest.raises(InvalidInput):
                memory.rollback(what, version)
    assert memory.version() == 3


@pytest.mark.parametrize("version", [0, 1])
def test_one_text_goes_back_to_where_there_was_none(memory: Memory, version: int) -> None:
    memory.remember("lesson", "lesson")
    memory.remember("soul", "soul")
    (gone,) = memory.rollback("soul", version)
    assert (gone.retracted, gone.action, memory.get("soul")) == (True, "rollback", None)
    memory.undo()
    assert text_of(memory.get("soul")) == "soul"


@pytest.mark.parametrize("writer", ["agent", "tool", "reflect", "system", "import"])
def test_nobody_but_the_user_rolls_back_or_undoes_a_constraint(memory: Memory, writer: Writer) -> None:
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


def test_undo_takes_back_one_call_after_the_other(memory: Memory) -> None:
    fact = memory.remember("Ada runs", "finding")
    memory.replace(fact.id, "Ada swims")
    memory.retract(fact.id)
    states = []
    for _ in range(3):
        memory.undo()
        states.append(texts(memory.records()))
    assert states == [["Ada swims"], ["Ada runs"], []]
    assert memory.version() == 6
    with pytest.raises(InvalidInput, match="nothing to undo"):
        memory.undo()


def test_without_a_write_there_is_nothing_to_undo(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="nothing to undo"):
        memory.undo()
    assert memory.version() == 0


def test_after_an_undo_a_new_write_is_undone_first(memory: Memory) -> None:
    memory.remember("one", "finding")
    memory.remember("two", "finding")
    memory.undo()
    memory.remember("three", "finding")
    memory.undo()
    assert texts(memory.records()) == ["one"]
    memory.undo()
    assert memory.records() == []


def test_a_batch_is_undone_as_a_whole(memory: Memory) -> None:
    memory.remember("kept", "finding")
    remember_fil(memory, ["f1", "f2"], ["i1"], ["l1"])
    assert len(memory.undo()) == 4
    assert texts(memory.records()) == ["kept"]


def test_what_was_cleared_comes_back_as_it_was(memory: Memory) -> None:
    for n in range(5):
        memory.remember(
            f"finding {n}", "finding", category="a" if n % 2 else "b", tags=[f"t{n}"], priority=n + 1
        )
    before = [(one.id, one.text, one.category, one.tags, one.priority) for one in memory.records()]
    assert len(memory.retract_all(kind="finding", category="b")) == 3
    memory.undo()
    assert [(one.id, one.text, one.category, one.tags, one.priority) for one in memory.records()] == before


def test_the_undo_of_a_rollback_brings_the_later_text_back(memory: Memory) -> None:
    memory.remember("old", "profile")
    memory.remember("new", "profile")
    memory.rollback("profile", 1)
    memory.undo()
    profile = memory.get("profile")
    assert profile is not None
    assert profile.text == "new"


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
