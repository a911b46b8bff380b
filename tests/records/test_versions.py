"""Versions beside what `test_any_records.py` looks back at: changes, messages, times, and a long history."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest

from holdfast import Memory, Message
from learning_scripts import Clock
from record_lists import found
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


def test_a_change_tells_by_whom_and_where_it_was_said(memory: Memory) -> None:
    fact = memory.remember("Ada runs", by="tool", chat="monday", messages=3, merge=False)
    memory.replace(fact.id, "Ada swims", by="user", chat="tuesday")
    assert [(one.by, one.chat) for one in memory.changes()] == [("user", "tuesday"), ("tool", "monday")]
    assert memory.changes(kind="lesson") == memory.changes(id="rec_unknown") == memory.changes(limit=0) == []


# Reads as of an earlier version


def test_a_time_is_one_in_any_zone(timed: Memory, times: list[datetime]) -> None:
    timed.remember("at noon", "finding")
    times.append(NOON + HOUR)
    timed.remember("at one", "finding")
    moments = [NOON, NOON + HOUR - timedelta(microseconds=1), NOON + HOUR, NOON + 9 * HOUR]
    assert [timed.at(moment).version() for moment in moments] == [1, 1, 2, 2]
    assert timed.at(NOON.replace(tzinfo=None)).version() == 1
    assert timed.at(NOON.astimezone(timezone(timedelta(hours=9)))).version() == 1


def test_messages_are_those_that_were_stored_at_a_version_and_said_until_a_time(timed: Memory) -> None:
    for n in range(3):
        timed.chat("monday").append(Message("user", f"marathon {n}", at=NOON + n * HOUR))
        timed.remember(f"Known {n}", "finding")
    for view in (timed.at(2), timed.at(NOON + HOUR)):
        assert sorted(found(view.recall("marathon"))) == ["marathon 0", "marathon 1"]


def test_what_the_tenant_shares_is_recalled_as_of_then(timed: Memory, times: list[datetime]) -> None:
    shared = timed.scoped(user="")
    policy = shared.remember("Holidays are in July", "finding")
    timed.remember("Ada likes holidays", "finding")
    times.append(NOON + HOUR)
    shared.replace(policy.id, "Holidays are in August")
    timed.remember("Ada likes July", "finding")
    assert sorted(found(timed.at(1).recall("holidays"))) == ["Ada likes holidays", "Holidays are in July"]
    assert "Holidays are in August" in found(timed.at(2).recall("holidays"))


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
    assert memory.changes(kind="summary") == found[2:-1]
    assert memory.changes(kind="erasure") == memory.changes(id=receipt.id) == [found[1]]
    assert memory.changes(id=fact.id) == memory.changes(kind="fact") == [found[-1]]
    assert memory.at(fact.version).changes() == [found[-1]]
    assert memory.scoped(user="bob").changes() == []
    memory.undo()
    memory.undo()
    assert memory.records() == []


@each(
    ("version", "valid_at", "true"),
    [
        (4, None, ["Lisbon", "running"]),
        (4, NOON - HOUR, ["Bern", "running"]),
        (4, NOON - timedelta(microseconds=1), ["Bern", "running"]),
        (4, NOON + 9 * HOUR, ["Lisbon", "running", "racing"]),
        (1, NOON - HOUR, ["Berlin"]),
        (3, NOON, ["Lisbon"]),
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
        assert [one.text for one in view.records(valid_at=valid_at or NOON)] == expected
        assert len(memory.records()) == 4, "what has passed is listed, unless a time is asked for"
        times.append(NOON - 24 * HOUR)
        assert "Ada lives in Bern" in found(memory.recall("lives")), "the clock says when now is"
