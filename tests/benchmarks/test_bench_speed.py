"""The speed benchmark on a few messages: that it runs, and says what it says. No test looks at a time."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from benchmarks import speed
from benchmarks.baselines import BASELINES, installed
from benchmarks.clock import Cost, each, high, middle
from benchmarks.measurement import (
    COLUMNS,
    Measurement,
    SpeedLab,
    SpeedPlan,
    at_least,
    at_most,
    fill,
    measured,
)
from benchmarks.peers import PEERS, is_there
from benchmarks.words import MAX_QUESTION, Words, made_up_name
from holdfast import Memory

TINY = SpeedPlan(
    sizes=(50,),
    spaces=2,
    per_space=20,
    session=60,
    short_session=20,
    compacted=(60, 20),
    rounds=2,
    block=3,
    batch=5,
    threads=2,
    queries=3,
    slow_queries=2,
    repeats=1,
    added=3,
    starts=1,
    hostile=4_000,
)


@pytest.mark.slow
def test_report_names_everything_that_was_asked_for(tmp_path: Path) -> None:
    told: list[str] = []
    report = speed.run(plan=TINY, folder=tmp_path, progress=told.append)
    numbers: Any = report.to_json()
    names = [one["name"] for one in numbers["measurements"]]
    for part in (
        "append, then recall",
        "recall over 3 spaces",
        "guard of a text twice as long",
        "append 4,000 bytes",
        "window of 8,000",
        "compact of 8,000 tokens, 60 messages compacted",
        "import holdfast",
        "resident memory",
        "index per message",
        "recall where 1 % pass, declared",
        "first recall where 50 % pass, not declared, 50 messages: rows read",
    ):
        assert any(part in name for name in names), part
    assert numbers["missed"] == [one["name"] for one in numbers["measurements"] if one["ok"] is False]
    assert told
    json.dumps(numbers)
    (table,) = report.tables()
    assert table.columns == COLUMNS
    assert all(len(row) == len(COLUMNS) for row in table.rows)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_everything_that_is_installed_stands_beside(tmp_path: Path) -> None:
    report = speed.run(speed.SIDE_BY_SIDE, plan=TINY, folder=tmp_path)
    numbers: Any = report.to_json()
    beside: dict[str, set[str]] = {}
    for one in numbers["measurements"]:
        beside.setdefault(one["name"], set()).add(one["against"])
    stores = {name for name, (_, module) in PEERS.items() if is_there(module)}
    searches = {name for name in installed() if name != "rank_bm25"}
    assert beside["recall in 50 messages, p50"] == searches
    assert beside["append one message, durability full"] == stores
    assert beside["append one message, durability normal"] == {"bare INSERT", "INSERT + FTS5"}
    assert beside["append a batch of 5, a message"] == stores
    assert {"bare INSERT", "INSERT + FTS5"} <= beside["append from 2 threads, a message"] <= stores
    assert beside["first question in a new process, 50 messages, over bare Python"] == {
        "",
        *(name for name in searches if name != "bm25s"),
    }
    for part in ("prompt of 8,000", "warm", "cold", "first ever", "checksum of one message, durability full"):
        assert any(part in name for name in beside), part
    assert set(numbers["not installed"]) == {*BASELINES, *PEERS} - stores - set(installed())
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    report = speed.run(speed.SIDE_BY_SIDE, plan=TINY, only=["recall"])
    assert {("tantivy",), ("LangGraph SqliteStore",)} <= set(report.tables()[1].rows)
    assert not is_there("langgraph.nothing.here")


@pytest.mark.parametrize("name", [name for name, (_, module) in PEERS.items() if is_there(module)])
def test_a_peer_keeps_what_is_appended(tmp_path: Path, name: str) -> None:
    path = tmp_path / "peer.db"
    peer = PEERS[name][0](path, "full")
    peer.append([peer.made("alpha")])
    peer.append([peer.made("beta"), peer.made("gamma")])
    peer.close()
    with closing(sqlite3.connect(path)) as database:
        stored = "\n".join(database.iterdump())
    words = ("alpha", "beta", "gamma")
    kept = [word in stored or word.encode().hex().upper() in stored for word in words]
    assert kept == [True, True, True]


def test_parts_can_be_chosen() -> None:
    numbers: Any = speed.run(plan=TINY, only=["window"]).to_json()
    assert {one["name"] for one in numbers["measurements"]} == {"window of 8,000 tokens from 60 messages"}


def test_bars_are_judged() -> None:
    assert at_most(2.0, 2, "ms").ok
    assert not at_most(2.1, 2, "ms").ok
    assert at_least(0.5, 0.5, "×").text == "≥ 0.5 ×"
    assert not at_least(0.49, 0.5, "×").ok


def test_measurement_reads_as_a_row() -> None:
    cost, theirs = Cost(0.5, 1.0), Cost(0.25, 123.4)
    one = measured(
        "thing",
        cost,
        "µs",
        against="other",
        theirs=theirs,
        ratio=0.5,
        ratio_of="× as fast",
        bar=at_least(0.5, 1, "×"),
    )
    assert one.row() == (
        "thing",
        "µs",
        "500",
        "1,000",
        "other",
        "250",
        "123,400",
        "0.5 × as fast",
        "≥ 1 ×",
        "NO",
    )
    assert Measurement("size", 1.25, "MB").row()[2:] == ("1.25", "", "", "", "", "", "", "")


def test_contenders_take_turns_and_give_their_median() -> None:
    order: list[str] = []
    first, second = each([lambda x: order.append(f"1{x}"), lambda x: order.append(f"2{x}")], ["a", "b"], 3)
    assert order == ["1a", "1b", "2a", "2b"] * 3
    assert len(first) == len(second) == 2


def test_costs_are_summed_up() -> None:
    costs = [Cost(float(n), 2.0 * n) for n in range(1, 101)]
    assert middle(costs) == Cost(50.5, 101.0)
    assert high(costs) == Cost(96.0, 192.0)
    assert high(costs[:1]) == costs[0]
    assert Cost(4.0, 2.0) / 2 - Cost(1.0, 1.0) == Cost(1.0, 0.0)


def test_texts_are_the_same_in_every_run_and_of_the_right_length() -> None:
    texts = list(Words().messages(5_000))
    assert texts == list(Words().messages(5_000))
    assert texts != list(Words().messages(5_000, stream=1))
    assert 29 < sum(len(text.split()) for text in texts) / 5_000 < 30
    questions = Words().questions(20)
    assert questions == Words().questions(20)
    assert all(4 < len(question.split()) <= MAX_QUESTION for question in questions)


def test_made_up_names_differ() -> None:
    assert len({made_up_name(rank) for rank in range(5_000)}) == 5_000


def test_words_and_questions_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    turns = [{"speaker": "Ann", "dia_id": "D1:1", "text": "blue"}]
    asked = [{"question": " ".join(["why"] * 20), "evidence": ["D1:1"], "category": 1}]
    path.write_text(json.dumps([{"sample_id": "c", "conversation": {"session_1": turns}, "qa": asked}]))
    words = Words(path)
    assert words.questions(1) == [" ".join(["why"] * 12)]
    assert "blue" in " ".join(words.messages(2))


def test_stores_are_filled_chat_by_chat(tmp_path: Path) -> None:
    with Memory(":memory:", user="all") as memory:
        fill(memory, Words(), 25, 10)
        assert sorted(chat.messages for chat in memory.chats()) == [5, 10, 10]
    lab = SpeedLab(TINY, Words(), tmp_path, lambda _: None)
    assert lab.store(30) == lab.store(30)


@pytest.mark.parametrize("size", [[5], [5, 10]])
def test_sizes_can_be_chosen(size: list[int]) -> None:
    numbers: Any = speed.run(speed.SIDE_BY_SIDE, plan=TINY, sizes=size, only=["recall"]).to_json()
    assert {one["name"] for one in numbers["measurements"]} >= {f"recall in {n} messages, p50" for n in size}
