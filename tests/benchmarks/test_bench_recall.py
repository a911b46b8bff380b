"""The recall benchmark: on small files of both kinds, and what it must give on the real ones."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import recall
from benchmarks.baselines import BASELINES, Baseline, FullText, PlainBM25, installed
from holdfast.errors import InvalidInput

LOCOMO: list[dict[str, object]] = [
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
FTS5 = "SQLite FTS5 (porter, any word)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "locomo.json").write_text(json.dumps(LOCOMO))
    (tmp_path / "realmem.json").write_text(json.dumps(REALMEM))
    return tmp_path


def _groups(path: Path, name: str) -> Any:
    numbers: Any = recall.run([path]).to_json()
    return numbers["sets"][name]["groups"]


def test_kinds_of_files_are_told_by_their_content_and_named_with_their_checksums(folder: Path) -> None:
    told: list[str] = []
    numbers: Any = json.loads(json.dumps(recall.run([folder], progress=told.append).to_json()))
    assert set(numbers["sets"]) == {"LoCoMo, messages", "RealMem, sessions"}
    assert len(told) == 2
    assert {name: len(digest) for name, digest in numbers["files"].items()} == {
        str(folder / "locomo.json"): 64,
        str(folder / "realmem.json"): 64,
    }
    assert numbers["machine"]["cores"]
    assert "commit" in numbers


def test_locomo_has_the_main_figure_and_each_type_of_question(folder: Path) -> None:
    numbers: Any = recall.run([folder / "locomo.json"]).to_json()["sets"]
    found = numbers["LoCoMo, messages"]
    assert (found["unit"], found["left_out"]) == ("message", 1)
    assert set(found["groups"]) == {"main", "multi-hop", "single-hop", "adversarial"}
    main = found["groups"]["main"]
    assert set(main["systems"]) == {"Holdfast", *installed()}
    assert main["questions"] == 2
    assert main["systems"]["Holdfast"]["R@5"] == (100.0, 100.0, 100.0)
    assert main["systems"]["Holdfast"]["MRR"].mean == 100.0
    assert set(main["differences"]) == set(installed())
    assert main["differences"][FTS5]["all@10"] == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("data", [ONE_WITHOUT_NAME, [ONE_WITHOUT_NAME]])
def test_conversations_need_no_name(data: object, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(data))
    main = _groups(tmp_path / "one.json", "LoCoMo, messages")["main"]
    assert main["systems"]["Holdfast"]["R@5"].mean == 100.0


def test_realmem_ranks_earlier_sessions_only(folder: Path) -> None:
    main = _groups(folder / "realmem.json", "RealMem, sessions")["main"]
    assert set(main["systems"]) == {
        "Holdfast, 3 best turns",
        "Holdfast, best turn",
        "BM25 of sessions (stems, stop words)",
        *installed(),
    }
    assert main["questions"] == 1
    assert {system["MRR"].mean for system in main["systems"].values()} == {100.0}


def test_tables_have_a_cell_for_every_column(folder: Path) -> None:
    tables = recall.run([folder]).tables()
    assert tables[0].title.startswith("LoCoMo, messages: 2 questions; 1 without a known answer left out; of")
    assert all(len(row) == len(table.columns) for table in tables for row in table.rows)


def test_parts_are_shown_alone_and_left_out(tmp_path: Path) -> None:
    both = [LOCOMO[0], LOCOMO[0] | {"sample_id": "conv-2"}]
    (tmp_path / "two.json").write_text(json.dumps(both))
    report = recall.run([tmp_path / "two.json"])
    numbers: Any = report.to_json()["sets"]
    assert {name: part["questions"] for name, part in numbers["LoCoMo, messages"]["parts"].items()} == {
        "conv-1": 2,
        "conv-2": 2,
    }
    assert report.tables()[-1].rows[0][:4] == ("conv-1", "2", "Holdfast", "100.0 / 100.0")


def test_untried_readers_and_stripped_markup_are_named(tmp_path: Path) -> None:
    history = {"haystack_session_ids": ["s"], "haystack_sessions": [[{"role": "user", "content": "tea"}]]}
    asked = {"question": "Tea?", "question_type": "x", "answer_session_ids": ["s"]}
    (tmp_path / "s.json").write_text(json.dumps([history | asked]))
    assert "never the real ones" in recall.run([tmp_path]).tables()[0].title
    said = {"role": "assistant", "content": "<tool-use><details>\nport 8080\n</details></tool-use>"}
    question = {"question": "Which port?", "kind": "value", "gold": [["one", 0]]}
    folder = tmp_path / "sessions"
    folder.mkdir()
    (folder / "one.jsonl").write_text(json.dumps(said))
    (folder / "questions.jsonl").write_text(json.dumps(question))
    report = recall.run([folder], strip_markup=True)
    assert "markup of tools stripped" in report.tables()[0].title
    numbers: Any = report.to_json()["sets"]
    assert numbers["agent sessions, messages"]["groups"]["main"]["systems"]["Holdfast"]["MRR"].mean == 100.0


def test_a_set_without_a_known_answer_has_no_figures(tmp_path: Path) -> None:
    nothing = {"sessions": [], "questions": [{"question": "Why?"}]}
    (tmp_path / "own.json").write_text(json.dumps(nothing))
    report = recall.run([tmp_path])
    assert report.tables() == []
    numbers: Any = report.to_json()["sets"]
    assert next(iter(numbers.values()))["left_out"] == 1


def test_missing_packages_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    report = recall.run([folder / "locomo.json"])
    missing = [name for name in BASELINES if name != FTS5]
    assert report.to_json()["not installed"] == missing
    assert [row[:2] for row in report.tables()[0].rows[-len(missing) :]] == [
        (name, "not measured: pip install '.[bench,peers]' in a checkout") for name in missing
    ]


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_text('{"role": "user", "content": "hello"}\n')
    with pytest.raises(InvalidInput, match="None of these files has questions"):
        recall.run([tmp_path / "chat.jsonl"])


@pytest.mark.parametrize("make", [*installed().values(), PlainBM25])
def test_baselines_rank_what_has_the_rarer_words_first(make: Callable[[], Baseline]) -> None:
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
    baseline.add("g", "a cat that runs and runs")
    assert "g" in baseline.rank("runs", 2)


def test_operators_in_a_question_are_plain_text_to_full_text_search() -> None:
    baseline = FullText()
    baseline.add("a", "near the sea")
    assert baseline.rank('"NEAR" AND (sea* OR', 5) == ["a"]
    assert baseline.rank("?!", 5) == []


@pytest.mark.slow
def test_real_conversations_reach_what_was_asked_for(shared_data: Path) -> None:
    main = _groups(shared_data / "locomo" / "locomo_dev.json", "LoCoMo, messages")["main"]
    ours = main["systems"]["Holdfast"]
    assert main["questions"] == 760
    assert ours["R@10"].mean >= 81.0
    assert ours["nDCG@10"].mean >= 64.7
    assert all(apart["R@10"].low > 0 for apart in main["differences"].values())


@pytest.mark.slow
def test_real_sessions_are_found_better_than_by_their_words_alone(shared_data: Path) -> None:
    main = _groups(shared_data / "realmem", "RealMem, sessions")["main"]
    assert main["questions"] == 286
    assert main["differences"]["BM25 of sessions (stems, stop words)"]["R@10"].mean > 0


@pytest.mark.slow
def test_real_sessions_of_agents_are_asked(shared_data: Path) -> None:
    main = _groups(shared_data / "agent_sessions", "agent sessions, messages")["main"]
    assert main["questions"] == 80
    assert main["systems"]["Holdfast"]["hit@5"].mean >= 78.0
    assert main["differences"][FTS5]["MRR"].mean > 0
