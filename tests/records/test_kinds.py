"""Kinds: what the table of policy says of each, and rows that a user adds to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, get_args

import pytest

from holdfast import Denied, InvalidInput, Kind, Memory, Record, Writer, acting_as
from record_lists import calls, fresh, known, texts
from stored_texts import erasures_of
from tables import each

WRITERS: tuple[Writer, ...] = get_args(Writer)
NOT_THE_USER = [writer for writer in WRITERS if writer != "user"]
MANY_TEXTS = ("finding", "insight", "lesson", "fact")
CAPPED = Kind("fact", "Facts", targets=("user", "env"), cap={"user": 4_000, "env": 8_000}, merge=True)

Door = Callable[[Memory, Record, Writer | None], object]


@pytest.fixture
def capped(location: str) -> Iterator[Memory]:
    """Open a memory whose facts are limited in what is stored of them."""
    with Memory(location, user="ada", kinds=[CAPPED], admin=True) as memory:
        yield memory


# Who may write


@each("by", WRITERS)
def test_every_writer_may_write_every_kind_but_constraints_and_reflection_the_soul(by: Writer) -> None:
    quick = fresh()
    for kind in (*MANY_TEXTS, "profile", "episode", "note", "file"):
        record = quick.chat("monday").remember(f"a {kind} about tea", kind, by=by)
        assert quick.replace(record.id, f"a {kind} about coffee", by=by).by == by
        assert quick.retract(record.id, by=by).by == by
    soul = quick.remember("I am patient.", "soul", by="user")
    for write in calls(
        lambda: quick.remember("I am strict.", "soul", by=by),
        lambda: quick.replace(soul.id, "I am calm.", by=by),
        lambda: quick.retract(soul.id, by=by),
    ):
        if by == "reflect":
            with pytest.raises(Denied, match="not reflect"):
                write()
        else:
            write()
    assert (quick.get("soul") == soul) is (by == "reflect")


DOORS: dict[str, Door] = {
    "remember": lambda memory, _, by: memory.remember("Always plan on Mondays", "constraint", by=by),
    "replace by id": lambda memory, record, by: memory.replace(record.id, "Always", by=by),
    "retract by id": lambda memory, record, by: memory.retract(record.id, by=by),
    "clear the kind": lambda memory, _, by: memory.retract_all(kind="constraint", by=by),
    "clear a category": lambda memory, _, by: memory.retract_all(category="plans", by=by),
    "rollback of the record": lambda memory, record, by: memory.rollback(record.id, 1, by=by),
    "rollback of the kind": lambda memory, _, by: memory.rollback("constraint", 1, by=by),
    "undo": lambda memory, _, by: memory.undo(by=by),
    "erase the record": lambda memory, record, by: memory.erase(record=record.id, by=by),
    "erase its chat": lambda memory, _, by: memory.erase(chat="monday", by=by),
    "erase its messages": lambda memory, _, by: memory.erase(chat="monday", messages=(1, 2), by=by),
    "erase its user": lambda memory, _, by: memory.erase(user="ada", by=by),
}


def constrained(memory: Memory) -> Record:
    """Set a constraint in a chat, with two versions, as the newest changes of the user."""
    for said in ("please note", "no runs then"):
        memory.chat("monday").append(role="user", content=said)
    told: dict[str, Any] = {"by": "user", "chat": "monday", "messages": 2}
    record = memory.remember("No runs at all", "constraint", category="plans", tags=["days"], **told)
    return memory.replace(record.id, "Never plan runs on Mondays", **told)


@each("door", DOORS)
def test_nobody_but_the_user_gets_at_a_constraint(door: str) -> None:
    memory = fresh()
    record = constrained(memory)
    for writer in NOT_THE_USER:
        with pytest.raises(Denied, match=f"Only the user may.*constraint.*not .*{writer}.*by='user'"):
            DOORS[door](memory, record, writer)
        with acting_as(source=writer), pytest.raises(Denied):
            DOORS[door](memory, record, None)
    assert (memory.records(), memory.version(), erasures_of(memory)) == ([record], 2, [])
    assert record.text in known(memory)
    with acting_as(source="user"):
        DOORS[door](memory, record, None)
    assert memory.records(kind="constraint") != [record]
    memory = fresh()
    record = constrained(memory)
    DOORS[door](memory, record, "user")
    assert memory.records(kind="constraint") != [record]


def test_who_says_nothing_is_an_agent_and_a_clearing_that_meets_a_constraint_takes_nothing(
    memory: Memory,
) -> None:
    record = constrained(memory)
    tea = memory.remember("tea at four", "finding", category="plans")
    for attempt in calls(
        lambda: memory.remember("Always", "constraint"), lambda: memory.retract_all(category="plans")
    ):
        with pytest.raises(Denied):
            attempt()
    assert memory.records() == [record, tea]


# Caps of facts


@pytest.mark.parametrize(("target", "cap"), [("env", 8_000)])
def test_a_cap_counts_characters_and_is_reached_to_the_last(capped: Memory, target: str, cap: int) -> None:
    with pytest.raises(InvalidInput, match=f"{cap:,}"):
        capped.remember("x" * (cap + 1), target=target, merge=False)
    first = capped.remember("界" * (cap - 10), target=target, merge=False)
    second = capped.remember("😀" * 10, target=target, merge=False)
    with pytest.raises(InvalidInput, match=rf"{target} facts.*{cap:,}.*1\..*Shorten.*replace.*retract"):
        capped.remember("é", target=target, merge=False)
    assert (capped.records(), capped.version()) == ([first, second], 2)
    capped.retract(first.id)
    capped.remember("y" * (cap - 10), target=target, merge=False)


def test_each_user_and_agent_has_the_caps_together_with_what_is_of_no_agent(capped: Memory) -> None:
    for one in (capped, capped.scoped(user="bob"), capped.scoped(tenant="acme")):
        one.remember("u" * 1_000, target="user", merge=False)
        one.remember("e" * 8_000, target="env", merge=False)
        assert "[100%: 8,000 of 8,000 characters]" in known(one)
    for agent in ("coach", "chef"):
        one = capped.scoped(agent=agent)
        one.remember("y" * 3_000, merge=False)
        for full in (one, capped):
            with pytest.raises(InvalidInput, match="4,000"):
                full.remember("z", merge=False)


def test_a_replacement_counts_only_the_difference(capped: Memory) -> None:
    old = capped.remember("界" * 3_000, merge=False)
    capped.remember("x" * 900, merge=False)
    assert len(capped.replace(old.id, "語" * 3_100).text) == 3_100
    with pytest.raises(InvalidInput, match=r"3,101.*3,100"):
        capped.replace(old.id, "語" * 3_101)


def test_going_back_does_not_break_a_cap_whatever_lies_between(capped: Memory) -> None:
    old = capped.remember("x" * 3_000, merge=False)
    capped.retract(old.id)
    new = capped.remember("y" * 3_000, merge=False)
    with pytest.raises(InvalidInput, match="4,000"):
        capped.rollback(old.id, 1)
    assert capped.records() == [new]
    capped.rollback("fact", 1)
    assert texts(capped.records()) == ["x" * 3_000]


# What a kind takes


@each(
    ("kind", "target", "said"),
    [
        ("fact", "weather", "user, env"),
        *((kind, "user", "Leave it out") for kind in ("finding", "insight", "lesson", "profile", "soul")),
        ("constraint", "user", "Leave it out"),
        ("episode", None, "chat"),
        ("note", "session", "chat"),
        ("note", "run", "run"),
        ("note", "week", "session, plan, run"),
    ],
)
def test_a_target_or_a_place_that_a_kind_has_not_is_refused(kind: str, target: str | None, said: str) -> None:
    quick = fresh()
    with pytest.raises(InvalidInput, match=said):
        quick.remember("it rains", kind, target=target, by="user")
    assert quick.version() == 0


@each(
    ("kind", "longest"),
    [
        ("constraint", 4_000),
        ("episode", 2_000),
        ("finding", 100_000),
    ],
)
def test_a_text_has_at_most_the_characters_of_its_kind(kind: str, longest: int) -> None:
    quick = fresh()
    chat = quick.chat("monday")
    record = chat.remember("界" * longest, kind, by="user")
    assert len(record.text) == longest
    for attempt in calls(
        lambda: chat.remember("x" * (longest + 1), kind, by="user"),
        lambda: quick.replace(record.id, "x" * (longest + 1), by="user"),
    ):
        with pytest.raises(InvalidInput, match=rf"{longest + 1:,} characters.*{longest:,}"):
            attempt()
    assert (quick.records(), quick.version()) == ([record], 1)


def test_an_agent_finds_the_episode_it_wrote_of_a_chat_that_another_told_of_before(memory: Memory) -> None:
    memory.scoped(agent="coach").chat("monday").remember("We planned a run.", "episode")
    chef = memory.scoped(agent="chef")
    record = chef.chat("monday").remember("We cooked.", "episode")
    assert chef.get(record.id) == record
    assert [hit.text for hit in chef.recall("cooked")] == ["We cooked."]


# Notes


def test_notes_of_each_chat_and_target_have_a_cap_of_their_own_and_are_cleared_apart(memory: Memory) -> None:
    chats = [memory.chat("monday"), memory.chat("tuesday")]
    for chat in chats:
        for target in ("session", "plan"):
            chat.remember("界" * 10_000, "note", target=target)
            with pytest.raises(InvalidInput, match=rf"{target} notes.*10,000"):
                chat.remember("y", "note", target=target)
    with chats[0].run() as run:
        note = run.remember("of the run")
        memory.retract_all(kind="note", target="session")
        assert [len(one.notes()) for one in chats] == [1, 1]
        memory.retract_all(kind="note")
        assert run.notes() == [note]
    assert memory.records() == []


def test_a_note_counts_how_often_and_when_it_was_asked_for(tmp_path: Path) -> None:
    days = count()

    def opened() -> Memory:
        start = datetime(2024, 1, 1, tzinfo=UTC)
        return Memory(tmp_path / "memory.db", user="ada", clock=lambda: start + timedelta(next(days)))

    with opened() as memory:
        chat = memory.chat("monday")
        note, other = chat.remember("the door is red", "note"), chat.remember("the roof leaks", "note")
        finding = memory.remember("the door is red", "finding")
    used = [note.at]
    for uses in (1, 2, 3):
        with opened() as memory:
            (found,) = (one for one in [memory.get(note.id)] if one)
            used.append(found.used)
            assert (found.uses, memory.version(), memory.get(finding.id)) == (uses, 3, finding)
            assert memory.at(1).get(note.id) is not None, "looking back counts no use"
    assert used == sorted({*used}, key=str)
    with opened() as memory:
        assert {one.id: one.uses for one in memory.chat("monday").notes()} == {note.id: 4, other.id: 1}


# Rows added by the user


def test_a_row_of_ones_own_is_kept_by_its_policy(tmp_path: Path) -> None:
    location = tmp_path / "memory.db"
    decision = Kind(
        "decision",
        "Decisions",
        targets=("tech", "team"),
        cap={"tech": 30},
        longest=25,
        writers=("user", "agent"),
    )
    with Memory(location, user="ada", kinds=[decision]) as memory:
        record = memory.remember("we use PostgreSQL 16", "decision", category="tech")
        assert (record.kind, record.target) == ("decision", "tech")
        assert "Decisions" in known(memory)
        assert record.text in known(memory)
        with pytest.raises(InvalidInput, match=r"tech decisions.*30"):
            memory.remember("we use fish", "decision")
        with pytest.raises(InvalidInput, match=r"decision.*25"):
            memory.remember("x" * 26, "decision", target="team")
        with pytest.raises(Denied, match="the user or the agent"):
            memory.retract(record.id, by="tool")
        assert memory.remember("we meet at nine", "decision", target="team").target == "team"
        assert [hit.kind for hit in memory.recall("PostgreSQL", kinds=["decision"])] == ["decision"]
    with Memory(location, user="ada") as memory:
        assert memory.get(record.id) == record, "what is kept under a row that is gone is read"
        assert [hit.kind for hit in memory.recall("PostgreSQL")] == ["decision"]
        assert memory.retract_all(category="tech", by="user") != []


def test_a_row_of_ones_own_can_have_one_text_for_each_agent_or_chat() -> None:
    rows = [
        Kind("mood", "Mood", one_per="agent", targets=("work", "home")),
        Kind("title", one_per="chat"),
        Kind("clue", counts_use=True),
    ]
    with Memory(":memory:", user="ada", kinds=rows) as memory:
        coach = memory.scoped(agent="coach")
        memory.remember("glad", "mood", target="home")
        sad = memory.remember("sad", "mood", target="work")
        assert sad.target == "work", "what was said last"
        assert memory.get("mood") == coach.get("mood") == sad
        assert coach.remember("calm", "mood") != memory.get("mood")
        for chat in ("monday", "tuesday", "monday"):
            memory.chat(chat).remember(f"about {chat}", "title")
        assert [one.chat for one in memory.records(kind="title")] == ["monday", "tuesday"]
        memory.get(memory.remember("a footprint", "clue").id)
        assert [one.uses for one in memory.records(kind="clue")] == [1]


@each(
    "wrong",
    [
        *({"name": name} for name in ("", "x" * 65, "a\nb")),
        *({"targets": targets} for targets in ((), "user", 5)),
        *({"cap": cap} for cap in ({"": -1}, {"": "ten"}, 5)),
        {"longest": -1},
        *({"writers": writers} for writers in (("god",), "user", None)),
    ],
)
def test_a_wrong_row_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Kind(**{"name": "decision", **wrong})
