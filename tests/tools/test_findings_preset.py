"""Findings, insights and lessons: remembered together, all or none, and recalled grouped by kind."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import InvalidInput, Kind, Memory
from holdfast.types import Hit, Record
from tables import each

FIL = ("finding", "insight", "lesson")


def remember(
    memory: Memory,
    findings: Any = (),
    insights: Any = (),
    lessons: Any = (),
    *,
    merge: bool = False,
    **more: Any,
) -> list[Record]:
    texts = zip(FIL, (findings, insights, lessons), strict=True)
    records: list[Any] = [{"text": text, "kind": kind} for kind, of in texts for text in of]
    return memory.remember(records, merge=merge, **more)


def recalled(memory: Memory, query: str, limit: int = 5) -> list[list[Hit]]:
    hits = memory.recall(query, kinds=FIL, per_kind=limit)
    return [[hit for hit in hits if hit.kind == kind] for kind in FIL]


# Remember


@each(
    "wrong",
    [
        *({"lessons": ["fine", wrong]} for wrong in (" ", "over the cap", None, 5, b"bytes")),
        {"source": "a\nb"},
        {"by": "god"},
        {"chat": ""},
    ],
)
def test_a_wrong_argument_is_refused_and_nothing_is_stored(wrong: dict[str, Any]) -> None:
    good: dict[str, Any] = {"findings": ["f"], "insights": ["i"], "lessons": ["l"]}
    with Memory(":memory:", kinds=[Kind("lesson", cap={"": 10})]) as memory:
        with pytest.raises(InvalidInput):
            remember(memory, **{**good, **wrong})
        assert (memory.records(), memory.version(), memory.recall("f i")) == ([], 0, [])


# Recall


def test_of_each_kind_so_many_are_found_best_first(memory: Memory) -> None:
    findings, insights, lessons = ([f"the tea number {n} of the {kind}s" for n in range(8)] for kind in FIL)
    remember(memory, findings, insights, lessons)
    memory.remember("tea matters to Ada", merge=False)
    memory.chat("monday").append(role="user", content="Where is the tea?")
    for limit in (0, 1, 8, 2**80):
        assert [len(hits) for hits in recalled(memory, "tea", limit)] == [min(limit, 8)] * 3
    for kind, hits in zip(FIL, recalled(memory, "tea number"), strict=True):
        assert [hit.kind for hit in hits] == [kind] * 5
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for wrong in (("?!", 5), ("tea", -1), ("tea", True)):
        with pytest.raises(InvalidInput):
            recalled(memory, *wrong)


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
    remember(memory, insights=alike, merge=True)
    remember(memory, insights=alike, merge=True)
    assert [record.text for record in memory.records(kind="insight")] == alike
