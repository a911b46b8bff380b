"""Hostile and wrong input of records: stored to the letter, or refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from holdfast import InvalidInput, Memory, Record
from tables import each

HOSTILE = [
    "%_\\",
    "'; DROP TABLE records; --",
    "line\r\nbreaks\u2028of every\x0bkind",
    "~" * 5_000,
]


DEEP: list[object] = []
for _ in range(5_000):
    DEEP = [DEEP]
CYCLE: dict[str, object] = {}
CYCLE["again"] = CYCLE

# Values that are of no type of a parameter are refused in `test_wrong_types.py`.
WRONG: list[dict[str, Any]] = [
    *({"kind": kind} for kind in ("bogus", "")),
    {"target": "bogus"},
    *({"category": category} for category in ("a\nb", "x" * 201, "\ud800")),
    *({"tags": tags} for tags in (b"one", [""], [" "], ["a\x00"], ["x" * 201], [["a"]])),
    *({"meta": meta} for meta in ({"a": {1, 2}}, {"a": b"x"}, {(1,): 2}, {"a": (1, 2)})),
    *({"priority": priority} for priority in (0, 11, 5.0, True)),
    *({"source": source} for source in ("a\nb", "x" * 513)),
    *({"since": since} for since in ("last year", date(2024, 1, 1))),
    {"until": "soon"},
    *({"by": by} for by in ("", "god")),
    *({"chat": chat} for chat in ("", "a\x00", "x" * 513)),
    *({"messages": some, "chat": "c"} for some in (0, True, "1", (2, 1), (1, 2, 3))),
    {"messages": 1},
]


MAY, JUNE = datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 6, 1, tzinfo=UTC)
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
META = {"sure": 0.9, "seen": ["a", {"b": None}], "语": "\x00\ud800 😀"}
EVERYTHING: dict[str, Any] = {
    "text": "the user moved to Lisbon",
    "kind": "fact",
    "target": "env",
    "category": "places",
    "tags": ["city", "home"],
    "meta": META,
    "priority": 8,
    "source": "GOAL:plan the trip",
    "since": MAY,
    "until": JUNE,
    "by": "reflect",
    "chat": "monday",
    "messages": (3, 5),
}
DEFAULTS: dict[str, Any] = {
    "target": "user",
    "priority": 5,
    "by": "agent",
    "since": None,
    "until": None,
    "evidence": 1,
    "action": "add",
    "at": JUNE,
    "created": JUNE,
}


@each(
    ("told", "kept"),
    [
        (EVERYTHING, {name: value for name, value in EVERYTHING.items() if name not in ("tags", "meta")}),
        ({"kind": "fact", "by": "agent"}, DEFAULTS),
        ({"since": MAY.astimezone(timezone(timedelta(hours=9)))}, {"since": MAY}),
        ({"since": FIRST, "until": LAST}, {"since": FIRST, "until": LAST}),
        ({"tags": iter(["b", "a", "b"])}, {"tags": ("b", "a")}),
        ({"text": " \n the sky\n  is blue \t"}, {"text": "the sky\n  is blue"}),
        ({"text": f"{'filler ' * 14_284}apricot".rjust(100_000, "x")}, {}),
        *(({"text": text}, {"text": text}) for text in HOSTILE),
        # What no database can store is replaced visibly.
        ({"text": "a\x00b"}, {"text": "a\ufffdb"}),
        ({"text": "\udc00\ud800b"}, {"text": "\ufffd\ufffdb"}),
        ({"text": "\ud83d\ude00"}, {"text": "😀"}),
    ],
)
def test_a_record_is_read_back_as_it_was_returned(told: dict[str, Any], kept: dict[str, Any]) -> None:
    with Memory(":memory:", user="ada", clock=lambda: JUNE) as memory:
        usual: dict[str, Any] = {"text": "it rains", "kind": "finding", "by": "user", "merge": False}
        told = usual | told
        record: Record = memory.remember(**told)
        assert {name: getattr(record, name) for name in kept} == kept
        assert memory.get(record.id) == record
        assert memory.records() == memory.records(text=told["text"].strip()) == [record]
        assert memory.records(target="no such") == []
        assert "apricot" not in record.text or [hit.id for hit in memory.recall("apricot")] == [record.id]
        new = memory.replace(told["text"], "coffee", category="drinks", tags=["c"], meta={"n": 2}, priority=5)
        assert (new.id, new.action, new.version, new.target) == (record.id, "replace", 2, record.target)
        assert (new.category, new.tags, new.meta, new.priority) == ("drinks", ("c",), {"n": 2}, 5)
        again = memory.replace("coffee", "tea", source="me", since=MAY, by="user")
        assert (again.category, again.tags, again.priority) == ("drinks", ("c",), 5)
        assert (again.source, again.since, again.by) == ("me", MAY, "user")
        gone = memory.retract(record.id, by="user", why="it dried")
        assert (gone.id, gone.retracted, memory.get(record.id), memory.records()) == (
            record.id,
            True,
            None,
            [],
        )
        assert [(one.before, one.after) for one in memory.changes(id=record.id)] == [
            ("tea", None),
            ("coffee", "tea"),
            (record.text, "coffee"),
            (None, record.text),
        ]
        assert (memory.changes()[0].why, memory.changes()[0].by) == ("it dried", "user")
        assert memory.get("rec_nobody") is None


BLANKS = ["", "\n\t\r", "\u00a0", "\u3000\u2003", "\u2028", "\u200b", "\ufeff", "\u2060\u200d"]
Call = Callable[..., object]
REMEMBER: Call = lambda memory, **told: memory.remember(**{"text": "it rains", "merge": False} | told)  # noqa: E731
REPLACE: Call = lambda memory, **told: memory.replace(**{"what": "it pours", "text": "it snows"} | told)  # noqa: E731
RECALL: Call = lambda memory, **told: memory.recall(**{"query": "it pours"} | told)  # noqa: E731
REFUSED: list[tuple[Call, list[dict[str, Any]]]] = [
    (REMEMBER, WRONG),
    (REMEMBER, [{"text": text} for text in BLANKS]),
    (REMEMBER, [{"merge": 1}, {"meta": {"deep": DEEP}}, {"meta": CYCLE}, {"expected_version": -1}]),
    (REMEMBER, [{"since": JUNE, "until": until} for until in (JUNE, MAY)]),
    (
        REPLACE,
        [{"text": "x"} | one for one in ({"expected_version": True}, {"what": "\n"}, {"kind": "lesson"})],
    ),
    (Memory.retract, [{"what": "  "}, {"what": "pours", "kind": "lesson"}, {"what": "pours", "by": "god"}]),
    (Memory.retract_all, [{}, {"target": "user"}, {"chat": "monday"}, {"kind": "bogus"}, {"tags": b"x"}]),
    (Memory.records, [{"kind": "bogus"}, {"valid_at": "March"}, {"limit": -1}, {"offset": -1}, {"chat": ""}]),
    (
        RECALL,
        [
            *({"sources": sources} for sources in ([], "recrd", ["file"])),
            {"sources": ["record"], "roles": ["user"]},
            *({"kinds": kinds} for kinds in ("fct", ["bogus"])),
            *({"valid_at": time} for time in ("now", MAY.date(), 1_700_000_000, "")),
        ],
    ),
    (Memory.get, [{"what": identity} for identity in ("", " ", "a\nb", "x" * 513, "finding")]),
    (Memory.changes, [{"kind": "unknown"}, {"limit": -1}, {"id": ""}]),
    (Memory.at, [{"version": version} for version in (-1, 3, 10**30, True)]),
    (Memory.rollback, [{"what": "finding", "version": version} for version in (-1, 3, True)]),
]


@each(("call", "rows"), REFUSED)
def test_what_is_wrong_is_refused_and_nothing_is_written(call: Call, rows: list[dict[str, Any]]) -> None:
    with Memory(":memory:", user="ada") as memory:
        records = [memory.remember("it pours", "finding")]
        for wrong in rows:
            with pytest.raises(InvalidInput) as caught:
                call(memory, **wrong)
            assert caught.value.what, wrong
            assert caught.value.todo, wrong
            assert (memory.records(), memory.version()) == (records, 1), wrong


def test_items_of_a_list_have_fields_of_their_own(quick: Memory) -> None:
    told: list[Any] = [{"text": "water the garden", "kind": "lesson", "tags": ["wet"]}, "the garden is dry"]
    lesson, finding = quick.remember(told, "finding", category="garden")
    assert (lesson.kind, lesson.tags, lesson.category) == ("lesson", ("wet",), "garden")
    assert (finding.kind, finding.tags, finding.category) == ("finding", (), "garden")
    quick.remember([f"garden {n}" for n in range(5)], "finding")
    hits = quick.recall("garden", kinds=["finding", "lesson"], per_kind=2)
    assert sorted(hit.kind for hit in hits) == ["finding", "finding", "lesson"]
    for wrong in ({"text": "x", "colour": "red"}, {"kind": "finding"}):
        items: list[Any] = ["fine", wrong]
        with pytest.raises(InvalidInput):
            quick.remember(items, "finding")
    assert quick.version() == 7
