"""Findings, insights and lessons: remembered together, all or none, and recalled grouped by kind."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Hit, InvalidInput, Kind, Memory
from holdfast.tools.presets.observations import consolidate_session, recall_fil, remember_fil
from tables import each

FIL = ("finding", "insight", "lesson")


def texts(hits: list[Hit]) -> list[str]:
    return [hit.text for hit in hits]


def studied(memory: Memory) -> None:
    """Remember what a study of an API found out."""
    remember_fil(
        memory,
        ["The API rate limit is 60 calls", "The API answers in JSON"],
        ["Most API errors come at night"],
        ["Back off when the API rate limit is hit", "Cache what does not change"],
        "GOAL:study",
    )


# Remember


def test_they_are_stored_in_order_with_their_kind_and_source(memory: Memory) -> None:
    records = remember_fil(memory, ["f1", "f2"], ["i1"], ["l1", "l2"], "GOAL:study", by="tool", chat="monday")
    assert [(one.kind, one.text) for one in records] == [
        ("finding", "f1"),
        ("finding", "f2"),
        ("insight", "i1"),
        ("lesson", "l1"),
        ("lesson", "l2"),
    ]
    assert {(one.source, one.by, one.chat) for one in records} == {("GOAL:study", "tool", "monday")}
    assert [one.version for one in records] == [1, 2, 3, 4, 5]
    assert memory.records() == records
    assert [memory.get(one.id) for one in records] == records


@each(
    "wrong",
    [
        {"lessons": ["fine", " "]},
        {"lessons": ["x" * 100_001]},
        {"insights": [None]},
        {"findings": [5]},
        {"findings": "a text is no list of texts"},
        {"insights": b"bytes"},
        {"lessons": None},
        {"lessons": 5},
        {"source": 5},
        {"source": None},
        {"source": "a\nb"},
        {"by": "god"},
        {"chat": ""},
        {"chat": 5},
        {"merge": "yes"},
    ],
)
def test_a_wrong_argument_is_refused_and_nothing_is_stored(wrong: dict[str, Any]) -> None:
    good: dict[str, Any] = {"findings": ["f"], "insights": ["i"], "lessons": ["l"]}
    with Memory(":memory:") as memory:
        with pytest.raises(InvalidInput):
            remember_fil(memory, **{**good, **wrong})
        assert (memory.records(), memory.version()) == ([], 0)


def test_if_one_cannot_be_stored_none_is(location: str) -> None:
    with Memory(location, user="ada", kinds=[Kind("lesson", cap={"": 10})]) as memory:
        for lessons in (
            ["fine", " "],
            ["fine", "x" * 100_001],
            ["fine", "over the cap"],
            ["12345", "67890", "1"],
        ):
            with pytest.raises(InvalidInput):
                remember_fil(memory, ["tea"], ["tea"], lessons)
            assert (memory.records(), memory.version(), memory.recall("tea fine")) == ([], 0, [])
        assert len(remember_fil(memory, ["tea"], ["tea"], ["12345", "67890"])) == 4


def test_nothing_to_store_is_no_error_and_any_iterable_will_do(memory: Memory) -> None:
    assert remember_fil(memory) == remember_fil(memory, [], (), []) == []
    assert memory.version() == 0
    assert len(remember_fil(memory, ("a", "b"), iter(["c"]), {"d": 1})) == 4  # type: ignore[arg-type]  # on purpose


def test_the_same_text_in_each_kind_is_three_records(memory: Memory) -> None:
    remember_fil(memory, ["the tea is cold"], ["the tea is cold"], ["the tea is cold"])
    found = recall_fil(memory, "tea")
    assert [(kind, [hit.kind for hit in found[kind]]) for kind in FIL] == [(kind, [kind]) for kind in FIL]


# Recall


def test_what_is_found_is_grouped_by_kind_best_first(memory: Memory) -> None:
    studied(memory)
    found = recall_fil(memory, "API rate limit")
    assert tuple(found) == FIL
    assert found["finding"][0].text == "The API rate limit is 60 calls"
    assert texts(found["lesson"]) == ["Back off when the API rate limit is hit"]
    for kind, hits in found.items():
        assert {hit.kind for hit in hits} == {kind}
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert all(hit.source == "record" and 0 < hit.score <= 1 for hit in hits)


def test_five_of_each_kind_are_the_default_and_the_limit_is_for_each(memory: Memory) -> None:
    findings, insights, lessons = ([f"the tea number {n} of the {kind}s" for n in range(8)] for kind in FIL)
    remember_fil(memory, findings, insights, lessons)
    for limit in (0, 1, 7, 8, 2**80):
        assert [len(hits) for hits in recall_fil(memory, "tea", limit).values()] == [min(limit, 8)] * 3
    assert [len(hits) for hits in recall_fil(memory, "tea").values()] == [5, 5, 5]


def test_only_findings_insights_and_lessons_are_grouped(memory: Memory) -> None:
    studied(memory)
    memory.remember("The API rate limit matters to Ada", merge=False)
    memory.chat("monday").append(role="user", content="What is the API rate limit?")
    assert sum(map(len, recall_fil(memory, "API rate limit", 50).values())) == 4
    assert len(memory.recall("API rate limit", limit=50)) == 6


@each(
    "wrong",
    [
        ("", 5),
        (" ", 5),
        ("?!", 5),
        (None, 5),
        (5, 5),
        ("tea", -1),
        ("tea", 1.5),
        ("tea", "5"),
        ("tea", True),
    ],
)
def test_a_wrong_question_or_limit_is_refused(wrong: tuple[Any, Any]) -> None:
    with Memory(":memory:") as memory, pytest.raises(InvalidInput):
        recall_fil(memory, *wrong)


# What a query matches, and how it scores


def test_words_beside_the_text_do_not_match(memory: Memory) -> None:
    beside: dict[str, Any] = {
        "category": "zebra",
        "tags": ["giraffe"],
        "source": "GOAL:okapi",
        "meta": {"k": "lemur"},
    }
    memory.remember("the tea is cold", "finding", chat="monday", **beside)
    for word in ("finding", "findings", "zebra", "giraffe", "okapi", "GOAL", "lemur", "monday", "agent"):
        assert memory.recall(word) == []
        assert recall_fil(memory, word) == {"finding": [], "insight": [], "lesson": []}
    assert len(memory.recall("cold zebra")) == 1
    remember_fil(memory, [], ["a finding of another kind"], ["finding out takes time"])
    assert {hit.kind for hit in memory.recall("finding")} == {"insight", "lesson"}


def test_a_text_that_is_known_stays_known_beside_one_like_it_in_the_same_call(memory: Memory) -> None:
    alike = [
        (
            "In addition to the line by line review, "
            "suggest the 2-5 most important improvements for this code review."
        ),
        (
            "In addition to the most important improvements, let's also think about new, updated or expanded "
            "unit tests."
        ),
    ]
    remember_fil(memory, insights=alike, merge=True)
    remember_fil(memory, insights=alike, merge=True)
    assert [record.text for record in memory.records(kind="insight")] == alike


# A session


def test_a_session_is_consolidated_by_its_trigger_words_once(memory: Memory) -> None:
    decided = "We decided to keep the sessions of the shop in PostgreSQL from June on."
    report = (
        "The sessions of the shop stand in PostgreSQL now, and all the tests of it pass; nothing was lost."
    )
    chat = memory.chat("monday")
    assert consolidate_session(memory, "monday") == []
    chat.append(role="user", content=f"Good morning! {decided} We agreed.")
    chat.append(role="assistant", content="The colour is unimportant to nearly everybody who buys our tea.")
    chat.append(role="assistant", content=f"{report}\n\n{report}")
    found = consolidate_session(memory, "monday")
    assert [(one.kind, one.text, one.source) for one in found] == [
        ("insight", decided, "session:monday"),
        ("insight", f"{report} {report}", "session:monday"),
    ]
    assert consolidate_session(memory, "monday") == []
    chat.append(role="assistant", content=report * 30)
    (long,) = consolidate_session(memory, "monday")
    assert len(long.text) <= 2_000
