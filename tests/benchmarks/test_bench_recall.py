"""The recall benchmark: on small files of both kinds, and what it must give on the real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import recall
from benchmarks.baselines import FullText, Okapi, PlainBM25
from benchmarks.metrics import METRICS
from holdfast.errors import InvalidInput

LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ann", "dia_id": "D1:1", "text": "I adopted a grey cat last week."},
                {"speaker": "Bob", "dia_id": "D1:2", "text": "My train to Porto leaves tomorrow."},
            ],
            "session_2_date_time": "1:56 pm on 9 May, 2023",
            "session_2": [{"speaker": "Bob", "dia_id": "D2:1", "text": "The harbour was beautiful."}],
        },
        "qa": [
            {"question": "Which cat did Ann adopt?", "evidence": ["D1:1"], "category": 4},
            {"question": "Where does Bob go by train?", "evidence": ["D1:2"], "category": 1},
            {"question": "What did Ann say of the harbour?", "evidence": ["D2:1"], "category": 5},
            {"question": "Which car?", "evidence": [], "category": 4},
        ],
    }
]
REALMEM = {
    "dialogues": [
        {
            "session_uuid": uuid,
            "current_time": f"2025-12-0{day} (Monday)",
            "dialogue_turns": [
                {"speaker": "User", "content": text, "is_query": uuid == "three"},
                {"speaker": "Assistant", "content": "Noted.", "memory_session_uuids": named},
            ],
        }
        for day, (uuid, text, named) in enumerate(
            [
                ("one", "My kayak is red and has a leak.", []),
                ("two", "I bake bread with rye flour.", []),
                ("three", "How do I mend my red kayak?", ["one", "three"]),
            ],
            1,
        )
    ]
}


ONE_WITHOUT_NAME = {key: value for key, value in LOCOMO[0].items() if key != "sample_id"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "locomo.json").write_text(json.dumps(LOCOMO))
    (tmp_path / "realmem.json").write_text(json.dumps(REALMEM))
    return tmp_path


def test_kinds_of_files_are_told_by_their_content(folder: Path) -> None:
    told: list[str] = []
    numbers: Any = recall.run([folder], progress=told.append).to_json()
    assert set(numbers) == {"locomo", "realmem"}
    assert len(told) == 2
    json.dumps(numbers)


def test_locomo_has_the_main_figure_and_each_category(folder: Path) -> None:
    numbers: Any = recall.run([folder / "locomo.json"]).to_json()["locomo"]
    assert numbers["left_out"] == 1
    assert set(numbers) == {"unit", "left_out", *(f"categories {key}" for key in ("1-4", "1", "4", "5"))}
    main = numbers["categories 1-4"]
    assert set(main) == {"Holdfast", "SQLite FTS5 (porter, any word)", "rank_bm25"}
    assert main["Holdfast"]["questions"] == 2
    assert main["Holdfast"]["R@5"] == 100.0
    assert main["Holdfast"]["MRR"] == 100.0


@pytest.mark.parametrize("data", [ONE_WITHOUT_NAME, [ONE_WITHOUT_NAME]])
def test_conversations_need_no_name(data: object, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(data))
    numbers: Any = recall.run([tmp_path / "one.json"]).to_json()["locomo"]
    assert numbers["categories 1-4"]["Holdfast"]["R@5"] == 100.0


def test_realmem_ranks_earlier_sessions_only(folder: Path) -> None:
    numbers: Any = recall.run([folder / "realmem.json"]).to_json()["realmem"]
    assert len(numbers["all"]) == 5
    assert {system["questions"] for system in numbers["all"].values()} == {1}
    assert {system["MRR"] for system in numbers["all"].values()} == {100.0}


def test_tables_have_a_cell_for_every_column(folder: Path) -> None:
    tables = recall.run([folder]).tables()
    assert tables[0].title.startswith(
        "LoCoMo, turns, categories 1–4: 2 questions, 1 without usable evidence left out"
    )
    assert all(len(row) == len(table.columns) == 1 + len(METRICS) for table in tables for row in table.rows)


def test_missing_package_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Okapi, "installed", lambda: False)
    report = recall.run([folder / "locomo.json"])
    assert report.tables()[0].rows[-1][:2] == (
        "rank_bm25",
        "not measured: pip install '.[bench]' in a checkout",
    )


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_text('{"role": "user", "content": "hello"}\n')
    with pytest.raises(InvalidInput, match="None of these files has questions"):
        recall.run([tmp_path / "chat.jsonl"])


@pytest.mark.parametrize("make", [FullText, Okapi, PlainBM25])
def test_baselines_rank_what_has_the_rarer_words_first(make: type[FullText | Okapi | PlainBM25]) -> None:
    baseline = make()
    for key, text in {
        "a": "the dog sleeps",
        "b": "the cat sleeps",
        "c": "the cat runs",
        "d": "the end",
        "e": "the sun",
        "f": "the moon",
    }.items():
        baseline.add(key, text)
    assert baseline.rank("runs cat", 2) == ["c", "b"]


def test_operators_in_a_question_are_plain_text_to_full_text_search() -> None:
    baseline = FullText()
    baseline.add("a", "near the sea")
    assert baseline.rank('"NEAR" AND (sea* OR', 5) == ["a"]
    assert baseline.rank("?!", 5) == []


def _numbers(path: Path, kind: str, part: str) -> Any:
    numbers: Any = recall.run([path]).to_json()
    return numbers[kind][part]


@pytest.mark.slow
def test_real_conversations_reach_what_was_asked_for(shared_data: Path) -> None:
    numbers = _numbers(shared_data / "locomo" / "locomo_dev.json", "locomo", "categories 1-4")
    ours = numbers["Holdfast"]
    assert ours["questions"] == 760
    assert ours["R@10"] >= 79.4
    assert ours["nDCG@10"] >= 64.7
    assert all(ours["R@10"] > other["R@10"] for name, other in numbers.items() if name != "Holdfast")


@pytest.mark.slow
def test_real_sessions_are_found_better_than_by_their_words_alone(shared_data: Path) -> None:
    numbers = _numbers(shared_data / "realmem", "realmem", "all")
    ours, plain = numbers["Holdfast, 3 best turns"], numbers["BM25 of sessions (stems, stop words)"]
    assert ours["questions"] == 286
    assert ours["R@10"] > plain["R@10"]
