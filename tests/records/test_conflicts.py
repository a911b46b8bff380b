"""Records that contradict each other and are both kept: listed, shown once, and settled by a change."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast import Denied, InvalidInput, Kind, Memory, Record, Writer
from record_lists import fresh, known, texts
from tables import each

BERLIN, LISBON = "User lives in Berlin", "User lives in Lisbon"
MAY, JULY = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)


def contradicted(memory: Memory) -> tuple[Record, Record]:
    """Store what the user said, and what a tool says against it."""
    return memory.remember(BERLIN, by="user"), memory.remember(LISBON, by="tool")


def pairs(memory: Memory) -> list[tuple[str, str]]:
    return [(pair.shown.text, pair.other.text) for pair in memory.conflicts()]


def test_a_pair_names_who_has_more_right_first() -> None:
    memory = fresh()
    berlin, lisbon = contradicted(memory)
    (pair,) = memory.conflicts(kind="fact")
    assert (pair.shown, pair.other) == (berlin, lisbon)
    assert pair.why == "it contradicts what the user said"
    assert lisbon.conflicts == (berlin.id,)
    assert memory.conflicts(kind="note") == []
    bob = fresh()
    bob.remember(LISBON, by="tool", at=JULY)
    bob.remember(BERLIN, by="user", at=MAY)
    assert pairs(bob) == [(BERLIN, LISBON)], "whichever came first"


def test_a_database_lists_settles_and_erases_pairs(memory: Memory) -> None:
    berlin, lisbon = contradicted(memory)
    assert pairs(memory) == [(BERLIN, LISBON)]
    assert LISBON not in known(memory)
    memory.resolve(keep=lisbon)
    assert (texts(memory.records()), memory.conflicts()) == ([LISBON], [])
    memory.undo(by="user")
    assert pairs(memory) == [(BERLIN, LISBON)]
    memory.erase(record=berlin.id)
    assert (memory.conflicts(), memory.verify().ok) == ([], True)


def test_a_prompt_shows_one_and_says_that_there_is_another() -> None:
    memory = fresh()
    contradicted(memory)
    assert f"[another record contradicts it] {BERLIN}" in known(memory)
    assert LISBON not in known(memory)
    memory.retract(LISBON)
    assert f"- {BERLIN}" in known(memory)


def test_who_is_alone_is_shown_without_a_mark() -> None:
    memory = fresh()
    contradicted(memory)
    memory.retract(BERLIN, by="user")
    assert f"- {LISBON}" in known(memory)
    memory.undo(by="user")
    assert pairs(memory) == [(BERLIN, LISBON)]


@each("ends", ("replace first", "replace second", "retract", "erase", "another value"))
def test_a_pair_ends_with_either_of_its_records(ends: str) -> None:
    memory = fresh()
    berlin, lisbon = contradicted(memory)
    if ends == "replace first":
        memory.replace(berlin.id, "User lives in Oslo", by="user")
    elif ends == "replace second":
        memory.replace(lisbon.id, "User lives in Oslo", by="user")
    elif ends == "retract":
        memory.retract(berlin.id, by="user")
    elif ends == "erase":
        memory.erase(record=berlin.id)
    else:
        memory.remember(LISBON, by="user")
    assert memory.conflicts() == []
    assert memory.verify().ok


def test_a_repetition_ends_no_pair_and_the_past_has_it() -> None:
    memory = fresh()
    contradicted(memory)
    memory.remember(BERLIN, by="user")
    memory.remember(LISBON, by="tool")
    before = memory.version()
    assert pairs(memory) == [(BERLIN, LISBON)]
    assert memory.conflicts()[0].why == "it contradicts what the user said"
    memory.retract(LISBON)
    assert [pair.shown.text for pair in memory.at(before).conflicts()] == [BERLIN]
    assert memory.at(1).conflicts() == []


@each("keep", (BERLIN, LISBON))
def test_what_is_kept_settles_it_in_one_change(keep: str) -> None:
    memory = fresh()
    both = {record.text: record for record in contradicted(memory)}
    memory.resolve(keep=both[keep])
    assert texts(memory.records()) == [keep]
    assert (memory.conflicts(), memory.records()[0].flags) == ([], ())
    memory.undo(by="user")
    assert pairs(memory) == [(BERLIN, LISBON)]


def test_both_may_be_true() -> None:
    memory = fresh()
    both = contradicted(memory)
    memory.resolve(keep=both)
    assert texts(memory.records()) == [BERLIN, LISBON]
    assert memory.conflicts() == []
    assert all(record.flags == () for record in memory.records())
    with pytest.raises(InvalidInput, match="in no such conflict"):
        memory.resolve(keep=both)


def test_who_may_not_remove_a_record_may_not_settle_its_conflict() -> None:
    kind = Kind("home", merge=True, writers=("user", "tool"))
    with Memory(":memory:", user="ada", kinds=[kind]) as memory:
        memory.remember(BERLIN, "home", by="user")
        lisbon = memory.remember(LISBON, "home", by="tool")
        with pytest.raises(Denied):
            memory.resolve(keep=lisbon, by="agent")
        assert pairs(memory) == [(BERLIN, LISBON)]


@each("keep", ("rec_none", "", [], 3, [3]))
def test_what_is_in_no_conflict_settles_none(keep: Any) -> None:
    memory = fresh()
    contradicted(memory)
    with pytest.raises(InvalidInput):
        memory.resolve(keep=keep)


@each(("other", "by"), [("User works in Lisbon", "tool"), ("User likes Berlin", "tool"), (BERLIN, "tool")])
def test_what_contradicts_nothing_is_in_no_pair(other: str, by: Writer) -> None:
    memory = fresh()
    memory.remember(BERLIN, by="user")
    memory.remember(other, by=by)
    assert memory.conflicts() == []
