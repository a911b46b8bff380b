"""Versions: one counter for each space, every write a change, every read as of then, and the way back."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest

from holdfast import InvalidInput, Memory, Message, View
from learning_scripts import Clock
from programs import run
from record_lists import found, fresh, texts
from tables import each

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def times() -> list[datetime]:
    """What the clock of `timed` says: the last of these."""
    return [NOON]


@pytest.fixture
def timed(location: str, times: list[datetime]) -> Iterator[Memory]:
    with Memory(location, user="ada", admin=True, clock=lambda: times[-1]) as memory:
        yield memory


# One counter, and a change for every write


def test_a_call_that_writes_several_records_is_one_batch(memory: Memory) -> None:
    memory.remember("I am a patient coach.", "soul")
    memory.remember(["f1", "f2", "f3"], "finding")
    memory.retract_all(kind="finding")
    assert [(one.version, one.batch) for one in memory.changes()] == [
        *((version, 5) for version in (7, 6, 5)),
        *((version, 2) for version in (4, 3, 2)),
        (1, 1),
    ]


def test_a_change_tells_before_after_by_why_where_and_when(timed: Memory, times: list[datetime]) -> None:
    fact = timed.remember("Ada runs", by="tool", chat="monday", messages=3, merge=False)
    times.append(NOON + HOUR)
    timed.replace(fact.id, "Ada swims", by="user", chat="tuesday")
    timed.retract(fact.id, by="agent", why="she stopped")
    timed.rollback(fact.id, 1)
    rollback, retract, replace, add = timed.changes(id=fact.id)
    assert (add.before, add.after, add.by, add.chat, add.at) == (None, "Ada runs", "tool", "monday", NOON)
    assert (replace.before, replace.after, replace.by) == ("Ada runs", "Ada swims", "user")
    assert (replace.chat, replace.at) == ("tuesday", NOON + HOUR)
    assert (retract.before, retract.after, retract.by, retract.why) == (
        "Ada swims",
        None,
        "agent",
        "she stopped",
    )
    assert (rollback.before, rollback.after, rollback.by) == (None, "Ada runs", "user")
    assert "version 1" in rollback.why
    assert [one.action for one in (add, replace, retract, rollback)] == [
        "add",
        "replace",
        "retract",
        "rollback",
    ]
    assert {one.kind for one in timed.changes()} == {"fact"}


def test_changes_are_the_newest_first_filtered_and_limited(memory: Memory) -> None:
    first = memory.remember("f1", "finding")
    memory.remember("l1", "lesson")
    memory.replace(first.id, "f2")
    memory.remember("f3", "finding")
    assert [one.after for one in memory.changes()] == ["f3", "f2", "l1", "f1"]
    assert [one.after for one in memory.changes(kind="finding")] == ["f3", "f2", "f1"]
    assert [one.after for one in memory.changes(id=first.id)] == ["f2", "f1"]
    assert [one.after for one in memory.changes(kind="finding", limit=2)] == ["f3", "f2"]
    assert memory.changes(kind="lesson", id=first.id) == []
    assert memory.changes(id="rec_unknown") == memory.changes(limit=0) == []


def test_an_agent_sees_its_own_changes_and_those_of_no_agent(memory: Memory) -> None:
    memory.remember("for all", "soul")
    memory.scoped(agent="coach").remember("of the coach", "soul")
    memory.scoped(agent="cook").remember("of the cook", "soul")
    assert [one.after for one in memory.scoped(agent="cook").changes()] == ["of the cook", "for all"]
    assert len(memory.changes()) == 3


# Reads as of an earlier version


def grown(memory: Memory) -> str:
    """Write five versions, and give the id of the fact among them."""
    fact = memory.remember(
        "Ada runs marathons",
        category="sport",
        tags=["a"],
        source="talk",
        chat="monday",
        merge=False,
        target="user",
    )
    memory.replace(fact.id, "Ada swims lakes", category="water", tags=["b"], source="post")
    memory.remember("The soul of a coach", "soul")
    memory.remember("Marathons need a plan", "finding", tags=["a"])
    memory.retract(fact.id)
    return fact.id


@each(
    ("matching", "version_1", "version_2"),
    [
        ({"kind": "fact"}, True, True),
        ({"category": "sport"}, True, False),
        ({"category": "water"}, False, True),
        ({"tags": ["a"]}, True, False),
        ({"tags": ["b", "c"]}, False, True),
        ({"text": "MARATHON"}, True, False),
        ({"text": "lake"}, False, True),
        ({"target": "user"}, True, True),
        ({"target": "env"}, False, False),
        ({"chat": "monday"}, True, True),
        ({"source": "talk"}, True, False),
        ({"source": "post"}, False, True),
        ({"limit": 1}, True, True),
        ({"offset": 1}, False, False),
    ],
)
def test_filters_hold_as_of_then(matching: dict[str, object], version_1: bool, version_2: bool) -> None:
    memory = fresh()
    grown(memory)
    one, two = (memory.at(version).records(**matching) for version in (1, 2))  # type: ignore[arg-type]
    assert (bool(one), bool(two)) == (version_1, version_2)


@pytest.mark.parametrize("point", [0, NOON - timedelta(microseconds=1)])
def test_before_the_first_write_nothing_is_known(timed: Memory, point: int | datetime) -> None:
    timed.chat("monday").append(role="user", content="marathons on lakes", at=NOON)
    identity = grown(timed)
    view = timed.at(point)
    assert view.version() == 0
    assert (view.records(), view.changes(), view.recall("marathons lakes coach")) == ([], [], [])
    assert view.get(identity) is view.get("soul") is view.get("profile") is None


def test_an_earlier_version_of_a_space_without_records_is_empty(memory: Memory) -> None:
    memory.chat("monday").append(role="user", content="marathons")
    assert memory.at(0).recall("marathons") == []
    assert found(memory.at(datetime.now(UTC) + HOUR).recall("marathons")) == ["marathons"]


def test_version_0_shows_nothing_that_the_tenant_shares_however_old(memory: Memory) -> None:
    old = datetime(1960, 1, 1, tzinfo=UTC)
    memory.scoped(user="").chat("monday").append(role="user", content="marathon", at=old)
    assert memory.at(0).recall("marathon") == []


def test_a_time_shows_what_was_written_until_then(timed: Memory, times: list[datetime]) -> None:
    timed.remember("at noon", "finding")
    times.append(NOON + HOUR)
    timed.remember("at one", "finding")
    moments = [NOON, NOON + HOUR / 2, NOON + HOUR - timedelta(microseconds=1), NOON + HOUR, NOON + 9 * HOUR]
    assert [timed.at(moment).version() for moment in moments] == [1, 1, 1, 2, 2]
    assert found(timed.at(NOON).recall("noon one")) == ["at noon"]
    assert timed.at(NOON.replace(tzinfo=None)).version() == 1
    assert timed.at(NOON.astimezone(timezone(timedelta(hours=9)))).version() == 1


def test_messages_of_a_version_are_those_that_were_stored_then(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append(role="user", content="marathon early")
    memory.remember("First", "finding")
    chat.append(role="user", content="marathon late")
    memory.remember("Second", "finding")
    assert found(memory.at(1).recall("marathon")) == ["marathon early"]
    assert sorted(found(memory.at(2).recall("marathon"))) == ["marathon early", "marathon late"]


def test_messages_of_a_time_are_those_that_were_said_until_then(timed: Memory) -> None:
    timed.chat("monday").append(
        [Message("user", f"marathon {n}", at=NOON + n * HOUR) for n in range(3)],
    )
    assert sorted(found(timed.at(NOON + HOUR).recall("marathon"))) == ["marathon 0", "marathon 1"]


def test_what_the_tenant_shares_is_recalled_as_of_then(timed: Memory, times: list[datetime]) -> None:
    shared = timed.scoped(user="")
    policy = shared.remember("Holidays are in July", "finding")
    timed.remember("Ada likes holidays", "finding")
    times.append(NOON + HOUR)
    shared.replace(policy.id, "Holidays are in August")
    timed.remember("Ada likes July", "finding")
    assert sorted(found(timed.at(1).recall("holidays"))) == ["Ada likes holidays", "Holidays are in July"]
    assert "Holidays are in August" in found(timed.at(2).recall("holidays"))


def test_a_view_has_no_method_that_writes(memory: Memory) -> None:
    memory.remember("one", "finding")
    view = memory.at(1)
    reads = {"changes", "explain", "get", "recall", "records", "scope", "version"}
    assert {name for name in dir(view) if not name.startswith("_")} == reads
    assert type(view) is View


def test_looking_back_counts_no_use_of_a_note(memory: Memory) -> None:
    note = memory.remember("buy shoes", "note", chat="monday")
    assert memory.at(1).get(note.id) is not None
    now = memory.get(note.id)
    assert now is not None
    assert now.uses == 1


# What was recalled at a version is what is recalled as of it, to the last bit

WORDS = ("marathon", "lake", "shoe", "coach", "plan", "berlin", "monday")
KINDS = ("finding", "insight", "lesson", "soul", "profile", "episode")
QUERIES = ("marathon shoes", "who is the coach of the plan?", "berlin lake monday")
Recalled = list[tuple[str, str, str, dict[str, float]]]


def recalled(view: Memory | View) -> list[Recalled]:
    """Recall records, alone and beside messages."""
    answers = []
    for query in QUERIES:
        alone = view.recall(query, sources=["record"], limit=1_000)
        beside = [hit for hit in view.recall(query, limit=1_000) if hit.source == "record"]
        answers += [
            [(hit.id, hit.text, hit.score.hex(), dict(hit.why)) for hit in hits] for hits in (alone, beside)
        ]
    return answers


def write(memory: Memory, action: str, number: int, text: str) -> None:
    """Do one thing to what is known; what cannot be done is left out."""
    there = memory.records()
    kind = KINDS[number % len(KINDS)]
    try:
        if action == "remember":
            memory.remember(text, kind, chat=f"chat{number % 3}")
        elif action == "say":
            memory.chat(f"chat{number % 3}").append(role="user", content=text)
            memory.remember(text, "finding")
        elif action == "batch":
            memory.remember([text, f"{text} plan"], "finding")
        elif action == "undo":
            memory.undo()
        elif action == "clear":
            memory.retract_all(kind=kind)
        elif action == "rollback kind":
            memory.rollback(kind, number % (memory.version() + 1))
        elif there:
            chosen = there[number % len(there)].id
            if action == "replace":
                memory.replace(chosen, text)
            elif action == "retract":
                memory.retract(chosen)
            else:
                memory.rollback(chosen, 1 + number % memory.version())
    except InvalidInput:
        pass


ACTIONS = ("remember", "say", "batch", "undo", "clear", "rollback", "rollback kind", "replace", "retract")


RECALL_AT = """
import json, sys
from holdfast import Memory
with Memory(sys.argv[1], user="ada") as memory:
    for version in json.loads(sys.argv[2]):
        hits = memory.at(version).recall(sys.argv[3], sources=["record"], limit=1_000)
        print(json.dumps([[hit.id, hit.text, hit.score.hex()] for hit in hits]))
"""


@pytest.mark.slow
def test_a_long_history_is_recalled_the_same_after_a_rebuild_and_in_another_process(
    shared_location: str, reopen: Callable[[], Memory]
) -> None:
    memory, chance = reopen(), random.Random(7)
    then: dict[int, list[Recalled]] = {}
    while memory.version() < 600:  # several segments of the index
        text = " ".join(chance.choices(WORDS, k=chance.randint(1, 6)))
        if chance.random() < 0.2:
            write(memory, chance.choice(ACTIONS), chance.randrange(60), text)
        else:
            memory.remember([text] * chance.randint(1, 30), "finding")
        if chance.random() < 0.3:
            then[memory.version()] = recalled(memory)
    asked = sorted(then)[:: max(1, len(then) // 6)]
    assert [recalled(memory.at(version)) for version in asked] == [then[version] for version in asked]
    memory.verify(repair=True)
    assert [recalled(memory.at(version)) for version in asked] == [then[version] for version in asked]
    printed = run(RECALL_AT, shared_location, json.dumps(asked), QUERIES[0]).splitlines()
    assert [json.loads(line) for line in printed] == [
        [list(hit[:3]) for hit in then[version][0]] for version in asked
    ]


# What is true in the world, and when: the second axis


# What is no version


def test_compactions_and_erasures_are_among_the_changes(memory: Memory, clock: Clock) -> None:
    coach = memory.scoped(agent="coach")
    fact = coach.remember("Ada runs")
    clock.move(minutes=1)
    chat = coach.chat("long")
    chat.append([{"role": "user", "content": f"Line {n} of the plan says {n}. " * 30} for n in range(40)])
    made = chat.compact(full=True, budget=1_000, llm=lambda _: "The plan says its numbers.").summaries
    clock.move(minutes=1)
    memory.chat("other").append(role="user", content="x")
    receipt = memory.erase(chat="other", messages=1)
    clock.move(minutes=1)
    last = coach.remember("Likes tea", "finding")
    found = memory.changes()
    assert [one.action for one in found] == ["add", "erase", *["compact"] * len(made), "add"]
    assert [one.version for one in found] == [last.version, *[0] * (len(made) + 1), fact.version]
    assert [one.agent for one in found] == ["coach", "", *["coach"] * len(made), "coach"]
    assert [one.id for one in found[2:-1]] == [one.id for one in reversed(made)]
    assert (found[2].kind, found[2].chat, found[2].before, found[2].after) == ("summary", "long", None, None)
    assert found[-2].why.startswith("long#1-")
    assert (found[1].kind, found[1].id, found[1].by, found[1].why) == (
        *("erasure", receipt.id, "user"),
        "messages (messages: 1)",
    )
    assert coach.changes() == found
    assert [one.action for one in memory.scoped(agent="cook").changes()] == ["erase"]
    assert memory.changes(limit=2) == found[:2]
    assert memory.changes(kind="summary") == memory.changes(kind="summary", limit=99) == found[2:-1]
    assert memory.changes(kind="erasure") == memory.changes(id=receipt.id) == [found[1]]
    assert memory.changes(id=fact.id) == memory.changes(kind="fact") == [found[-1]]
    assert memory.at(fact.version).changes() == [found[-1]]
    assert memory.scoped(user="bob").changes() == []
    history = next(tool for tool in coach.tools() if tool.name == "history")
    page = history({"limit": 1}).data
    assert [one["version"] for one in page["changes"]] == [last.version]  # type: ignore[attr-defined]  # it is a list
    rest = history({"limit": 1, "cursor": page["cursor"]}).data
    assert [one["version"] for one in rest["changes"]] == [fact.version]  # type: ignore[attr-defined]  # as above
    memory.undo()
    memory.undo()
    assert memory.records() == []


@each(
    ("version", "valid_at", "true"),
    [
        (4, None, ["Lisbon", "running"]),
        (4, NOON - HOUR, ["Bern", "running"]),
        (4, NOON, ["Lisbon", "running"]),
        (4, NOON.replace(tzinfo=None), ["Lisbon", "running"]),
        (4, NOON - timedelta(microseconds=1), ["Bern", "running"]),
        (4, NOON + 9 * HOUR, ["Lisbon", "running", "racing"]),
        (1, NOON - HOUR, ["Berlin"]),
        (1, NOON, []),
        (3, NOON, ["Lisbon"]),
        (2, NOON - HOUR, ["Bern"]),
    ],
)
def test_what_is_true_at_a_time_is_asked_apart_from_what_was_known_at_a_version(
    version: int, valid_at: datetime | None, true: list[str]
) -> None:
    times = [NOON]
    with Memory(":memory:", user="ada", clock=lambda: times[-1]) as memory:
        berlin = memory.remember("Ada lives in Berlin", until=NOON, merge=False)
        memory.replace(berlin.id, "Ada lives in Bern", until=NOON)
        memory.remember("Ada lives in Lisbon", since=NOON, merge=False)
        memory.remember("Ada lives by running", "finding")
        memory.remember("Ada lives by racing", "finding", since=NOON + 9 * HOUR)
        view = memory.at(version + (version == 4))
        expected = [f"Ada lives {'by' if one[0] == 'r' else 'in'} {one}" for one in true]
        assert sorted(found(view.recall("lives", valid_at=valid_at))) == sorted(expected)
        assert texts(view.records(valid_at=valid_at or NOON)) == expected
        assert len(memory.records()) == 4, "what has passed is listed, unless a time is asked for"
        times.append(NOON - 24 * HOUR)
        assert "Ada lives in Bern" in found(memory.recall("lives")), "the clock says when now is"
