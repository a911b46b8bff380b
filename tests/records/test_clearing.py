"""Clearing: all records that meet some conditions are retracted at once."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from holdfast import InvalidInput, Memory
from record_lists import texts, three

# Clear


CLEARINGS: list[tuple[str | None, str | None, list[str] | None, list[int]]] = [
    ("finding", "a", ["x", "y"], [0, 1]),
    (None, "b", ["z", "nothing"], [5, 11]),
    ("lesson", None, None, [6, 7, 8, 9, 10]),
    (None, None, ["all"], [2, 3, 4]),
]


def test_clearing_takes_what_meets_all_conditions_and_nothing_else(memory: Memory) -> None:
    for n, (of, about, tag) in enumerate(product(("finding", "lesson"), ("a", "b"), ("x", "y", "z"))):
        memory.remember(f"number {n}", of, category=about, tags=[tag, "all"])
    for kind, category, tags, meant in CLEARINGS:
        before = memory.records()
        cleared = memory.retract_all(kind=kind, category=category, tags=tags)
        assert texts(cleared) == [f"number {n}" for n in meant]
        assert memory.records() == [one for one in before if one.text not in texts(cleared)]
    assert memory.records() == []


def test_clearing_can_be_limited_to_a_target_and_a_chat(memory: Memory) -> None:
    for chat, target in product(("monday", "tuesday"), ("session", "plan")):
        memory.chat(chat).remember(f"{chat} {target}", "note", target=target)
    assert texts(memory.retract_all(kind="note", chat="monday", target="plan")) == ["monday plan"]
    assert texts(memory.records()) == ["monday session", "tuesday session", "tuesday plan"]


def test_what_was_cleared_is_not_recalled(memory: Memory) -> None:
    three(memory)
    memory.retract_all(kind="finding")
    assert memory.recall("garden shed") == []


def test_clearing_where_nothing_meets_the_conditions_writes_nothing(memory: Memory) -> None:
    records = three(memory)
    assert (
        memory.retract_all(kind="lesson")
        == memory.retract_all(category="x")
        == memory.retract_all(tags=[])
        == []
    )
    assert (memory.records(), memory.version()) == (records, 3)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"target": "user"},
        {"chat": "monday"},
        {"kind": "bogus"},
        {"kind": 5},
        {"category": 5},
        {"tags": b"x"},
        {"tags": [5]},
        {"tags": 5},
        {"kind": "finding", "target": ["user"]},
        {"kind": "finding", "target": 5},
        {"kind": "finding", "chat": ["monday"]},
        {"kind": "finding", "chat": 5},
        {"kind": "finding", "chat": "a\x00"},
        {"kind": "finding", "by": "god"},
    ],
)
def test_clearing_on_a_wrong_condition_is_refused(quick: Memory, wrong: dict[str, Any]) -> None:
    records = three(quick)
    with pytest.raises(InvalidInput):
        quick.retract_all(**wrong)
    assert quick.records() == records
