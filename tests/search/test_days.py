"""What was said on a day or in a span that a question names, in the zone of the user."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast import InvalidInput, Memory
from recall_corpora import found
from tables import each

NOW = datetime(2026, 6, 17, 9, tzinfo=UTC)  # a Wednesday
HERE = "America/Los_Angeles"
DIARY = [
    ("2025-11-03", "Adopted Pixel."),
    ("2026-03-27", "Planted tulips."),
    ("2026-05-20", "Signed the lease."),
    ("2026-06-09", "Booked the ferry."),
    ("2026-06-13", "Sailed to Samso."),
    ("2026-06-14", "Fixed the gutter."),
    ("2026-06-15", "Sold the kayak."),
    ("2026-06-16", "Baked a rhubarb cake."),
]


def told(location: str, zone: str = "UTC", now: datetime = NOW) -> Memory:
    memory = Memory(location, user="ada", clock=lambda: now, zone=zone)
    days = [{"role": "user", "content": text, "at": f"{day}T18:00:00Z"} for day, text in DIARY]
    memory.chat("diary").append(days)
    return memory


@pytest.fixture(scope="module")
def diary() -> Iterator[Memory]:
    """Tell one thing on each of some days."""
    with told(":memory:") as memory:
        yield memory


@each(
    ("query", "text"),
    [
        ("What did I do on 3 November 2025?", "Adopted Pixel."),
        ("What did I do on 11/3/2025?", "Adopted Pixel."),
        ("Was war am 27.3.2026?", "Planted tulips."),
        ("2026年3月27日我做了什么？", "Planted tulips."),
        ("What did I do yesterday?", "Baked a rhubarb cake."),
        ("¿Qué hice ayer?", "Baked a rhubarb cake."),
        ("昨天我做了什么？", "Baked a rhubarb cake."),
        ("Что я делал вчера?", "Baked a rhubarb cake."),
        ("What happened the day before yesterday?", "Sold the kayak."),
        ("What did I do two days ago?", "Sold the kayak."),
        ("Was war vor 3 Tagen?", "Fixed the gutter."),
        ("What did I do last Saturday?", "Sailed to Samso."),
        ("What did I do last year?", "Adopted Pixel."),
    ],
)
def test_a_question_that_names_a_day_finds_what_was_said_then(diary: Memory, query: str, text: str) -> None:
    hit = diary.recall(query, limit=1)[0]
    assert (hit.text, "date" in hit.why) == (text, True)


@each(
    ("query", "texts"),
    [
        ("What did I do last week?", {text for _, text in DIARY[3:6]}),
        ("上周我做了什么？", {text for _, text in DIARY[3:6]}),
        ("What did I do in spring?", {text for _, text in DIARY[1:3]}),
        ("What did I do today?", set()),
    ],
)
def test_a_question_that_names_a_span_finds_all_of_it(diary: Memory, query: str, texts: set[str]) -> None:
    assert set(found(diary.recall(query))) == texts


def test_a_shared_word_counts_for_more_than_the_day(diary: Memory) -> None:
    assert found(diary.recall("the kayak yesterday"))[:2] == ["Sold the kayak.", "Baked a rhubarb cake."]


@each(("query", "since"), [("What did I do yesterday?", None), ("*", "2026-06-16")])
def test_what_a_day_finds_is_explained_as_a_hit(diary: Memory, query: str, since: str | None) -> None:
    (hit,) = diary.recall(query, since=since)
    assert diary.explain(query, hit, since=since).rank == 1


# Everything of a span


@pytest.mark.parametrize(
    ("filters", "first", "last"),
    [
        ({"since": "2026-06-13", "until": "2026-06-15"}, 4, 7),
        ({"until": "2026-03-27"}, 0, 2),
        ({"since": "2026-06-15T18:00Z", "until": "2026-06-16T18:00Z"}, 6, 7),
        ({"since": "2026-06-13", "roles": ["tool"]}, 0, 0),
    ],
)
def test_a_star_finds_everything_of_a_span(
    location: str, filters: dict[str, Any], first: int, last: int
) -> None:
    with told(location) as memory:
        assert set(found(memory.recall("*", **filters))) == {text for _, text in DIARY[first:last]}


@each(
    ("query", "filters"),
    [("*", {}), ("**", {"since": NOW}), ("?", {"until": NOW})],
)
def test_a_star_without_a_span_is_refused(diary: Memory, query: str, filters: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="no letters or digits"):
        diary.recall(query, **filters)


# The zone


def test_days_are_those_of_the_zone(location: str) -> None:
    with Memory(location, user="ada", clock=lambda: NOW, zone=HERE) as memory:
        at = "2026-06-16T05:30:00Z"
        memory.chat("log").append(role="user", content="Late at sea.", at=at)
        memory.chat("log").append(role="user", content="Early at sea.", at="2026-06-16T15:00:00Z")
        for query in ("What happened on 15 June?", "What happened two days ago?"):
            assert found(memory.recall(query))[0] == "Late at sea."
        for since, until in (
            ("2026-06-15", "2026-06-15"),
            ("2026-06-15T22:30", "2026-06-15T22:31"),
            (at, "2026-06-16T05:31Z"),
        ):
            assert found(memory.recall("sea", since=since, until=until)) == ["Late at sea."]
        (recall,) = memory.tools("now", allow=["recall"])
        page = recall({"query": "sea", "since": "2026-06-15", "until": "2026-06-15"})
        assert "2026-06-15T22:30-07:00" in page.text
        shown = str(memory.chat("now").prompt(2_000, "Who was late at sea?").messages)
        assert "[2026-06-15 22:30, chat log]" in shown
        assert shown.count(f"Times are those of {HERE}.") == 1


def test_a_day_on_which_clocks_change_has_its_hours() -> None:
    with Memory(":memory:", clock=lambda: NOW, zone="Europe/Berlin") as memory:
        for at, text in (("03-28T23:30", "first"), ("03-29T21:30", "last"), ("03-29T22:30", "next")):
            memory.chat("log").append(role="user", content=text, at=f"2026-{at}:00Z")
        day = "2026-03-29"
        assert set(found(memory.recall("*", since=day, until=day))) == {"first", "last"}
        scores = {hit.text: hit.score for hit in memory.recall("What was on 29 March 2026?")}
        assert scores["first"] == scores["last"] > scores["next"]


def test_the_zone_is_that_of_the_machine_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", HERE)
    with Memory(":memory:", clock=lambda: NOW) as memory:
        memory.chat("log").append(role="user", content="At sea.", at="2026-06-16T05:30:00Z")
        assert found(memory.recall("sea", until="2026-06-15")) == ["At sea."]


@each(
    "zone",
    ["Nowhere", "../../etc/passwd", "\x00", "\ud800", "x" * 100_000, "Europe", 5, b"UTC"],
)
def test_what_names_no_zone_is_refused(zone: Any) -> None:
    with pytest.raises(InvalidInput, match="zone"):
        Memory(":memory:", zone=zone)


# What the calendar does not have


@each("query", ["3000 years ago", "9999 years ago", "٩٩٩٩ years ago", "9999 months ago", "99999999 days ago"])
def test_a_day_before_the_calendar_finds_nothing(diary: Memory, query: str) -> None:
    assert diary.recall(query) == []


@each(
    "query", ["31/4/2026 kayak", "99/99/2026 kayak", "0/0/2026 kayak", "29/2/2023 kayak", "9999-12-31 kayak"]
)
def test_what_is_no_day_is_no_more_than_its_words(diary: Memory, query: str) -> None:
    assert found(diary.recall(query))[0] == "Sold the kayak."


@each("now", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
@each(
    "query",
    ["today", "yesterday", "this week", "last week", "this month", "last month", "this year", "last year"],
)
def test_at_an_end_of_the_calendar_a_day_is_asked_for_without_an_error(now: datetime, query: str) -> None:
    with Memory(":memory:", clock=lambda: now, zone="UTC") as memory:
        memory.chat("a").append(role="user", content="Sold the kayak.")
        assert found(memory.recall(f"{query} kayak")) == ["Sold the kayak."]


def test_a_time_at_an_end_of_the_calendar_is_shown_as_it_is() -> None:
    with Memory(":memory:", user="ada", zone=HERE) as memory:
        memory.chat("a").append(role="user", content="The garden is old.", at="0001-01-01T00:00:00Z")
        tools = {tool.name: tool for tool in memory.tools(memory.chat("b"))}
        assert '"0001-01-01T00:00' in tools["recall"]('{"query": "garden"}').text
        prompt = memory.chat("b").prompt(budget=2_000, query="garden")
        assert "0001-01-01 00:00" in str(prompt.messages)
