"""Findings, insights and lessons: remembered together, all or none, and recalled grouped by kind."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import InvalidInput, Kind, Memory
from holdfast.tools.presets.observations import consolidate_session, recall_fil, remember_fil
from tables import each

FIL = ("finding", "insight", "lesson")


# Remember


@each(
    "wrong",
    [
        *({"lessons": lessons} for lessons in (["fine", " "], ["fine", "over the cap"], None, 5)),
        {"insights": [None]},
        {"findings": "a text is no list of texts"},
        {"insights": b"bytes"},
        {"source": "a\nb"},
        {"by": "god"},
        {"chat": ""},
    ],
)
def test_a_wrong_argument_is_refused_and_nothing_is_stored(wrong: dict[str, Any]) -> None:
    good: dict[str, Any] = {"findings": ["f"], "insights": ["i"], "lessons": ["l"]}
    with Memory(":memory:", kinds=[Kind("lesson", cap={"": 10})]) as memory:
        with pytest.raises(InvalidInput):
            remember_fil(memory, **{**good, **wrong})
        assert (memory.records(), memory.version(), memory.recall("f i")) == ([], 0, [])


# Recall


def test_of_each_kind_so_many_are_found_best_first(memory: Memory) -> None:
    findings, insights, lessons = ([f"the tea number {n} of the {kind}s" for n in range(8)] for kind in FIL)
    remember_fil(memory, findings, insights, lessons)
    memory.remember("tea matters to Ada", merge=False)
    memory.chat("monday").append(role="user", content="Where is the tea?")
    for limit in (0, 1, 8, 2**80):
        assert [len(hits) for hits in recall_fil(memory, "tea", limit).values()] == [min(limit, 8)] * 3
    for kind, hits in recall_fil(memory, "tea number").items():
        assert [hit.kind for hit in hits] == [kind] * 5
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for wrong in (("?!", 5), ("tea", -1), ("tea", True)):
        with pytest.raises(InvalidInput):
            recall_fil(memory, *wrong)


# What a query matches, and how it scores


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
