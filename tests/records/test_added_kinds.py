"""Kinds that a user adds to the table of policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import Denied, InvalidInput, Kind, Memory
from record_lists import known
from tables import each

# Rows added by the user


def test_a_row_of_ones_own_is_kept_by_its_policy(location: str) -> None:
    decision = Kind(
        "decision",
        "Decisions",
        targets=("tech", "team"),
        cap={"tech": 30},
        longest=25,
        writers=("user", "agent"),
    )
    with Memory(location, user="ada", kinds=[decision]) as memory:
        record = memory.remember("we use PostgreSQL 16", "decision")
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
        assert len(memory.records(kind="decision")) == 2


def test_a_row_of_ones_own_can_have_one_text_for_each_agent_or_chat() -> None:
    rows = [
        Kind("mood", "Mood", one_per="agent"),
        Kind("title", one_per="chat"),
        Kind("clue", counts_use=True),
    ]
    with Memory(":memory:", user="ada", kinds=rows) as memory:
        memory.remember("glad", "mood")
        assert memory.remember("sad", "mood") == memory.get("mood")
        assert memory.scoped(agent="coach").get("mood") == memory.get("mood")
        assert memory.scoped(agent="coach").remember("calm", "mood") != memory.get("mood")
        for chat in ("monday", "tuesday", "monday"):
            memory.chat(chat).remember(f"about {chat}", "title")
        assert [one.chat for one in memory.records(kind="title")] == ["monday", "tuesday"]
        found = memory.get(memory.remember("a footprint", "clue").id)
        assert found is not None
        assert found.uses == 1


def test_the_one_text_of_a_row_is_about_what_was_said_last() -> None:
    with Memory(":memory:", kinds=[Kind("mood", one_per="agent", targets=("work", "home"))]) as memory:
        assert memory.remember("glad", "mood", target="work").target == "work"
        assert memory.remember("sad", "mood", target="home").target == "home"


def test_a_row_can_take_the_place_of_one_of_ours() -> None:
    with Memory(":memory:", kinds=[Kind("fact", targets=("user",), cap={"user": 10})]) as memory:
        with pytest.raises(InvalidInput, match="10"):
            memory.remember("x" * 11)
        with pytest.raises(InvalidInput, match="target"):
            memory.remember("x", target="env")
        assert known(memory) == ""
        assert memory.remember("x", "finding").kind == "finding"


def test_what_is_kept_under_a_row_that_is_gone_is_read_and_taken_back(tmp_path: Path) -> None:
    location = tmp_path / "memory.db"
    with Memory(location, user="ada", kinds=[Kind("decision", "Decisions")]) as memory:
        record = memory.remember("we use PostgreSQL", "decision", category="tech")
        memory.remember("it is fast", "finding", category="tech")
    with Memory(location, user="ada") as memory:
        assert memory.get(record.id) == record
        assert [hit.kind for hit in memory.recall("PostgreSQL")] == ["decision"]
        assert memory.retract_all(category="tech", by="user") != []
        assert memory.records() == []


@each(
    "wrong",
    [
        {"name": ""},
        {"name": 5},
        {"name": "x" * 65},
        {"name": "a\nb"},
        {"one_per": "user"},
        {"targets": ()},
        {"targets": "user"},
        {"targets": 5},
        {"targets": ("",), "cap": {"user": 5}},
        {"cap": {"": -1}},
        {"cap": {"": "ten"}},
        {"cap": 5},
        {"longest": -1},
        {"longest": "10"},
        {"writers": ("god",)},
        {"writers": "user"},
        {"writers": None},
        {"writers": ([],)},
        {"heading": 5},
        {"merge": "no"},
        {"counts_use": 1},
    ],
)
def test_a_wrong_row_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Kind(**{"name": "decision", **wrong})


@pytest.mark.parametrize("kinds", [5, None, ["decision"], [None]], ids=lambda kinds: type(kinds).__name__)
def test_rows_that_are_none_are_refused(tmp_path: Path, kinds: Any) -> None:
    with pytest.raises(InvalidInput):
        Memory(tmp_path / "memory.db", kinds=kinds)
    assert list(tmp_path.iterdir()) == []
