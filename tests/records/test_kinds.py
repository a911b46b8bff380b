"""Kinds: what the table of policy says of each, and rows added by the user."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, get_args

import pytest

from holdfast import Denied, InvalidInput, Kind, Memory, Record, Writer, acting_as
from record_lists import calls, fresh, known
from stored_texts import erasures_of
from tables import each

WRITERS: tuple[Writer, ...] = get_args(Writer)
NOT_THE_USER = [writer for writer in WRITERS if writer != "user"]
ONE_TEXT = ("profile", "soul")
MANY_TEXTS = ("finding", "insight", "lesson", "fact")
CAPS = [("user", 4_000), ("env", 8_000)]

CAPPED = Kind("fact", "Facts", targets=("user", "env"), cap=dict(CAPS), merge=True)

Door = Callable[[Memory, Record, Writer], object]


@pytest.fixture
def capped(location: str) -> Iterator[Memory]:
    """Open a memory whose facts are limited in what is stored of them."""
    with Memory(location, user="ada", kinds=[CAPPED], admin=True) as memory:
        yield memory


# Who may write


@each("by", WRITERS)
def test_every_writer_may_write_every_kind_but_constraints_and_the_soul(by: Writer) -> None:
    quick = fresh()
    for kind in (*MANY_TEXTS, "profile", "episode", "note", "file"):
        record = quick.chat("monday").remember(f"a {kind} about tea", kind, by=by)
        assert quick.replace(record.id, f"a {kind} about coffee", by=by).by == by
        assert quick.retract(record.id, by=by).by == by


@each("by", WRITERS)
def test_all_but_reflection_may_write_the_soul(by: Writer) -> None:
    quick = fresh()
    soul = quick.remember("I am patient.", "soul", by="user" if by == "reflect" else by)
    if by != "reflect":
        assert quick.remember("I am strict.", "soul", by=by).by == by
        assert quick.retract(soul.id, by=by).by == by
        return
    for write in calls(
        lambda: quick.remember("I am strict.", "soul", by=by),
        lambda: quick.replace(soul.id, "I am strict.", by=by),
        lambda: quick.retract(soul.id, by=by),
    ):
        with pytest.raises(Denied, match="not reflect"):
            write()
    assert quick.get("soul") == soul


DOORS: dict[str, Door] = {
    "remember": lambda memory, _, by: memory.remember("Always plan on Mondays", "constraint", by=by),
    "remember in a chat": lambda memory, _, by: memory.chat("c").remember("Always", "constraint", by=by),
    "replace by id": lambda memory, record, by: memory.replace(record.id, "Always", by=by),
    "replace by text": lambda memory, _, by: memory.replace("mondays", "Always", by=by),
    "retract by id": lambda memory, record, by: memory.retract(record.id, by=by),
    "retract by text": lambda memory, _, by: memory.retract("mondays", by=by),
    "clear the kind": lambda memory, _, by: memory.retract_all(kind="constraint", by=by),
    "clear a category": lambda memory, _, by: memory.retract_all(category="plans", by=by),
    "clear a tag": lambda memory, _, by: memory.retract_all(tags=["days"], by=by),
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
    memory.chat("monday").append(role="user", content="please note")
    memory.chat("monday").append(role="user", content="no runs then")
    told: dict[str, Any] = {"by": "user", "chat": "monday", "messages": 2}
    record = memory.remember("No runs at all", "constraint", category="plans", tags=["days"], **told)
    return memory.replace(record.id, "Never plan runs on Mondays", **told)


@each("door", DOORS)
def test_an_agent_does_not_get_at_a_constraint(door: str) -> None:
    memory = fresh()
    record = constrained(memory)
    with pytest.raises(Denied, match="user"):
        DOORS[door](memory, record, "agent")
    assert (memory.records(kind="constraint"), memory.version(), erasures_of(memory)) == ([record], 2, [])
    assert record.text in known(memory)


@each("door", DOORS)
def test_the_user_gets_at_a_constraint_through_every_door(door: str) -> None:
    quick = fresh()
    record = constrained(quick)
    DOORS[door](quick, record, "user")
    assert quick.records(kind="constraint") != [record]


@each("by", NOT_THE_USER)
def test_no_other_writer_may_set_or_remove_a_constraint(by: Writer) -> None:
    quick = fresh()
    record = constrained(quick)
    for door in (
        "remember",
        "replace by id",
        "retract by id",
        "clear the kind",
        "rollback of the kind",
        "undo",
    ):
        with pytest.raises(Denied):
            DOORS[door](quick, record, by)
    assert quick.records(kind="constraint") == [record]


def test_quarantine_is_no_way_around_the_user(quick: Memory) -> None:
    record = constrained(quick)
    for attempt in calls(
        lambda: quick.quarantine.release(record.id, by="agent"),
        lambda: quick.quarantine.discard(record.id, by="agent"),
    ):
        with pytest.raises(Denied):
            attempt()
    assert quick.records(kind="constraint") == [record]


def test_without_a_word_who_writes_it_is_the_agent_who_may_not(quick: Memory) -> None:
    record = constrained(quick)
    for attempt in calls(
        lambda: quick.remember("Always", "constraint"),
        lambda: quick.replace(record.id, "Always"),
        lambda: quick.retract(record.id),
        lambda: quick.retract_all(kind="constraint"),
    ):
        with pytest.raises(Denied):
            attempt()
    assert quick.records(kind="constraint") == [record]


@each("door", ["rollback of the kind", "undo", "erase the record"])
def test_what_is_the_users_by_default_is_denied_to_the_agent_that_acts(door: str) -> None:
    quick = fresh()
    record = constrained(quick)
    calls: dict[str, Callable[[], object]] = {
        "rollback of the kind": lambda: quick.rollback("constraint", 1),
        "undo": quick.undo,
        "erase the record": lambda: quick.erase(record=record.id),
    }
    with acting_as(source="agent"), pytest.raises(Denied):
        calls[door]()
    assert quick.records(kind="constraint") == [record]


def test_a_clearing_that_meets_a_constraint_takes_nothing(memory: Memory) -> None:
    constrained(memory)
    memory.remember("tea at four", "finding", category="plans")
    with pytest.raises(Denied):
        memory.retract_all(category="plans", by="agent")
    assert len(memory.records(category="plans")) == 2
    assert len(memory.retract_all(category="plans", by="user")) == 2


def test_a_denial_says_who_may_and_how(quick: Memory) -> None:
    with pytest.raises(Denied, match=r"user.*constraint.*tool.*by='user'"):
        quick.remember("Always", "constraint", by="tool")


# Caps of facts


@pytest.mark.parametrize(("target", "cap"), CAPS)
def test_a_cap_counts_characters_and_is_reached_to_the_last(capped: Memory, target: str, cap: int) -> None:
    first = capped.remember("界" * (cap - 10), target=target, merge=False)
    second = capped.remember("😀" * 10, target=target, merge=False)
    with pytest.raises(InvalidInput) as caught:
        capped.remember("é", target=target, merge=False)
    assert f"{target} facts" in caught.value.what
    assert f"{cap:,}" in caught.value.what
    assert "1." in caught.value.what
    for todo in ("Shorten", "replace", "retract"):
        assert todo in caught.value.todo
    assert (capped.records(), capped.version(), capped.changes()[0].id) == ([first, second], 2, second.id)


def test_the_caps_of_the_targets_and_the_users_are_their_own(capped: Memory) -> None:
    for one in (capped, capped.scoped(user="bob"), capped.scoped(tenant="acme")):
        one.remember("u" * 4_000, target="user", merge=False)
        one.remember("e" * 8_000, target="env", merge=False)
        assert "[100%: 8,000 of 8,000 characters]" in known(one)


def test_a_text_longer_than_its_cap_is_refused_whatever_is_there(capped: Memory) -> None:
    for target, cap in CAPS:
        with pytest.raises(InvalidInput, match=f"{cap:,}"):
            capped.remember("x" * (cap + 1), target=target, merge=False)
    assert capped.version() == 0


def test_a_replacement_counts_only_the_difference(capped: Memory) -> None:
    old = capped.remember("界" * 3_000, merge=False)
    capped.remember("x" * 900, merge=False)
    assert len(capped.replace(old.id, "語" * 3_100).text) == 3_100
    with pytest.raises(InvalidInput, match=r"3,101.*3,100"):
        capped.replace(old.id, "語" * 3_101)
    assert len(capped.replace(old.id, "y" * 3_100).text) == 3_100
    assert len(capped.replace(old.id, "short").text) == 5


def test_a_retraction_makes_room(capped: Memory) -> None:
    capped.remember("x" * 4_000, merge=False)
    capped.retract("xxx")
    assert len(capped.remember("y" * 4_000, merge=False).text) == 4_000


def test_going_back_does_not_break_a_cap(capped: Memory) -> None:
    old = capped.remember("x" * 3_000, merge=False)
    capped.retract(old.id)
    new = capped.remember("y" * 3_000, merge=False)
    with pytest.raises(InvalidInput, match="4,000"):
        capped.rollback(old.id, 1)
    assert capped.records() == [new]


def test_each_agent_has_its_caps_together_with_what_is_of_none(capped: Memory) -> None:
    coach, chef = capped.scoped(agent="coach"), capped.scoped(agent="chef")
    capped.remember("x" * 1_000, merge=False)
    for one in (coach, chef):
        one.remember("y" * 3_000, merge=False)
        with pytest.raises(InvalidInput, match="4,000"):
            one.remember("z", merge=False)


def test_no_prompt_ever_holds_more_facts_than_the_cap(capped: Memory) -> None:
    coach = capped.scoped(agent="coach")
    coach.remember("x" * 3_000, merge=False)
    with pytest.raises(InvalidInput, match="4,000"):
        capped.remember("y" * 3_000, merge=False)
    assert "[75%: 3,000 of 4,000 characters]" in known(coach)


def test_a_fact_is_about_the_user_or_the_environment(quick: Memory) -> None:
    assert quick.remember("the user is Ada", merge=False).target == "user"
    assert quick.remember("the shell is fish", target="env", merge=False).target == "env"
    with pytest.raises(InvalidInput, match="user, env"):
        quick.remember("it rains", target="weather")


def test_other_kinds_have_no_target(quick: Memory) -> None:
    for kind in ("finding", "insight", "lesson", "profile", "soul", "constraint"):
        with pytest.raises(InvalidInput, match="Leave it out"):
            quick.remember("it rains", kind, target="user", by="user")


# Profile and soul


@each("kind", ONE_TEXT)
def test_a_new_text_takes_the_place_of_the_whole_former(kind: str) -> None:
    memory = fresh()
    first = memory.remember("Ada likes tea and runs.", kind)
    second = memory.remember("Ada sleeps.", kind)
    assert (first.action, second.action, second.id) == ("add", "replace", first.id)
    assert (memory.get(kind), memory.records(kind=kind)) == (second, [second])
    assert memory.recall("tea runs", kinds=[kind]) == []
    assert "Ada sleeps." in known(memory)
    assert "tea" not in known(memory)


@each("kind", ONE_TEXT)
def test_there_is_one_for_each_user_and_agent(kind: str) -> None:
    memory = fresh()
    handles = [memory, memory.scoped(agent="coach"), memory.scoped(agent="chef"), memory.scoped(user="bob")]
    records = [one.remember(f"text of handle {n}", kind) for n, one in enumerate(handles)]
    assert len({record.id for record in records}) == 4
    assert [one.get(kind) for one in handles] == records
    for n, one in enumerate(handles):
        assert f"text of handle {n}" in known(one)
        assert known(one).count("text of handle") == 1


def test_profile_and_soul_do_not_touch_each_other(memory: Memory) -> None:
    profile, soul = memory.remember("Ada is a runner.", "profile"), memory.remember("I am calm.", "soul")
    memory.retract(profile.id)
    assert (memory.get("profile"), memory.get("soul")) == (None, soul)


# The longest text of a kind


@each(
    ("kind", "longest"),
    [
        ("constraint", 4_000),
        ("soul", 20_000),
        ("profile", 20_000),
        ("episode", 2_000),
        ("finding", 100_000),
        ("file", 100_000),
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


# Episodes


def test_there_is_one_episode_for_each_chat(memory: Memory) -> None:
    monday, tuesday = memory.chat("monday"), memory.chat("tuesday")
    first = monday.remember("We planned a run.", "episode")
    other = tuesday.remember("We cooked.", "episode")
    second = monday.remember("We planned a long run.", "episode")
    assert (second.id, second.action) == (first.id, "replace")
    assert memory.records(kind="episode") == [second, other]
    assert memory.records(kind="episode", chat="tuesday") == [other]
    assert [hit.id for hit in memory.recall("planned")] == [first.id]


def test_an_agent_finds_the_episode_it_wrote_of_a_chat_that_another_told_of_before(memory: Memory) -> None:
    memory.scoped(agent="coach").chat("monday").remember("We planned a run.", "episode")
    chef = memory.scoped(agent="chef")
    record = chef.chat("monday").remember("We cooked.", "episode")
    assert chef.get(record.id) == record
    assert [hit.text for hit in chef.recall("cooked")] == ["We cooked."]


def test_an_episode_without_a_chat_is_refused(quick: Memory) -> None:
    with pytest.raises(InvalidInput, match="chat"):
        quick.remember("We planned a run.", "episode")


# Notes


def test_a_note_belongs_to_the_session_unless_it_says_the_plan(memory: Memory) -> None:
    chat = memory.chat("monday")
    note, plan = (
        chat.remember("the door is red", "note"),
        chat.remember("first the roof", "note", target="plan"),
    )
    assert (note.target, note.chat, note.priority, note.uses, note.used) == ("session", "monday", 5, 0, None)
    assert memory.records(kind="note", target="session") == [note]
    assert [one.id for one in chat.notes("plan")] == [plan.id]
    assert memory.chat("tuesday").notes() == []
    assert known(memory) == ""


@each(("target", "why"), [("session", "chat"), ("run", "run"), ("week", "session, plan, run")])
def test_a_note_without_its_place_is_refused(target: str, why: str) -> None:
    quick = fresh()
    with pytest.raises(InvalidInput, match=why):
        quick.remember("the door is red", "note", target=target)
    assert quick.version() == 0


def test_every_compartment_of_notes_has_its_own_cap(memory: Memory) -> None:
    monday, tuesday = memory.chat("monday"), memory.chat("tuesday")
    for chat in (monday, tuesday):
        for target in ("session", "plan"):
            chat.remember("界" * 9_999, "note", target=target)
            chat.remember("x", "note", target=target)
            with pytest.raises(InvalidInput, match=rf"{target} notes.*10,000"):
                chat.remember("y", "note", target=target)
        with chat.run() as run, chat.run() as beside:
            for one in (run, beside):
                one.remember("界" * 10_000)
                with pytest.raises(InvalidInput, match=r"run notes.*10,000"):
                    one.remember("y")
    assert len(memory.records()) == 8


def test_clearing_one_compartment_leaves_the_others(memory: Memory) -> None:
    chat = memory.chat("monday")
    with chat.run() as run:
        noted = run.remember("in the run")
        for target in ("session", "plan"):
            chat.remember(f"in the {target}", "note", target=target)
        memory.retract_all(kind="note", target="session")
        assert [one.text for one in chat.notes()] == ["in the plan"]
        memory.retract_all(kind="note")
        assert (chat.notes(), run.notes()) == ([], [noted])


def test_a_note_counts_how_often_and_when_it_was_asked_for() -> None:
    days = count()
    with Memory(":memory:", clock=lambda: datetime(2024, 1, 1, tzinfo=UTC) + timedelta(next(days))) as memory:
        chat = memory.chat("monday")
        note, other = chat.remember("the door is red", "note"), chat.remember("the roof leaks", "note")
        first, second = memory.get(note.id), memory.get(note.id)
        assert first is not None
        assert second is not None
        assert first.used is not None
        assert second.used is not None
        assert (first.uses, second.uses) == (1, 2)
        assert note.at is not None
        assert note.at < first.used < second.used
        assert {one.id: one.uses for one in chat.notes()} == {note.id: 3, other.id: 1}


def test_uses_are_kept_and_do_not_make_versions(reopen: Callable[[], Memory]) -> None:
    note = reopen().chat("monday").remember("the door is red", "note")
    for expected in (1, 2, 3):
        memory = reopen()
        found = memory.get(note.id)
        assert found is not None
        assert (found.uses, memory.version()) == (expected, 1)


def test_other_kinds_do_not_count_their_uses(memory: Memory) -> None:
    record = memory.remember("the door is red", "finding")
    for _ in range(2):
        assert memory.get(record.id) == record


def test_notes_are_shown_by_priority_then_by_use(memory: Memory) -> None:
    chat = memory.chat("monday")
    notes = {
        text: chat.remember(text, "note", priority=priority)
        for text, priority in (("low", 1), ("a", 5), ("b", 5), ("high", 10))
    }
    for _ in range(3):
        memory.get(notes["b"].id)
    assert [one.text for one in chat.notes()] == ["high", "b", "a", "low"]


def test_notes_are_filtered_as_records_are(memory: Memory) -> None:
    chat = memory.chat("monday")
    for text, category, tags in (
        ("red door", "house", ["a"]),
        ("roof", "house", ["b"]),
        ("garden", "door", ["a", "b"]),
    ):
        chat.remember(text, "note", category=category, tags=tags)
    assert [one.text for one in chat.notes(text="DOOR")] == ["red door", "garden"]
    assert [one.text for one in chat.notes(category="house", tags=["b", "c"])] == ["roof"]
    assert chat.notes(category="") == []


# What is in every prompt


def test_kinds_with_a_heading_are_in_every_prompt_and_the_others_are_not(memory: Memory) -> None:
    chat = memory.chat("monday")
    on_request = ("finding", "insight", "lesson", "episode", "note", "file")
    for kind in ("constraint", "soul", "profile", "fact", *on_request):
        chat.remember(f"this is the {kind}", kind, by="user")
    shown = known(memory)
    places = [shown.find(f"this is the {kind}") for kind in ("constraint", "soul", "profile", "fact")]
    assert places == sorted(places)
    assert -1 not in places
    for kind in on_request:
        assert f"this is the {kind}" not in shown
