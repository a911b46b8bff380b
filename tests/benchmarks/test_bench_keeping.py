"""What summaries keep of a conversation: on a small file, and what it must be on the real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import keeping
from holdfast.compaction.extract import extract
from holdfast.errors import InvalidInput
from holdfast.messages.passages import passages
from holdfast.text.tokens import estimate_tokens
from holdfast.types import Message

SYSTEMS = ("Holdfast", "the beginning", "evenly spaced sentences", "sumy LexRank", "sumy TextRank")
TURNS = [
    text
    for number in range(12)
    for text in (
        "Wow, that is so great to hear! Tell me more about it!",
        f"I sold {number + 3} pots at the market in town number {number}. It was a lot of fun, really.",
        "That's amazing! You must be so happy! What a wonderful thing to do!",
    )
]
LOCOMO = {
    "sample_id": "conv-1",
    "conversation": {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": f"D1:{number}", "text": text} for number, text in enumerate(TURNS, 1)
        ],
    },
    "qa": [
        {"question": "What did Ann sell?", "answer": "pots", "evidence": ["D1:2"], "category": 4},
        {"question": "When?", "answer": "8 May 2023", "evidence": ["D1:2"], "category": 2},
        {"question": "Where?", "answer": "Atlantis", "evidence": ["D1:2"], "category": 1},
        {"question": "Who?", "answer": "she", "evidence": ["D1:2"], "category": 4},
        {"question": "Why?", "answer": "money", "evidence": ["D1:2"], "category": 3},
        {"question": "Which car?", "adversarial_answer": "red", "evidence": [], "category": 5},
    ],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([LOCOMO]))
    return path


@pytest.mark.slow
def test_every_system_is_measured_on_the_same_questions(file: Path) -> None:
    told: list[str] = []
    # A conversation of a few lines is not worth a summary to `compact`, so its sentences are chosen directly.
    numbers, tables = keeping.run_keeping(
        [file], told.append, summarise=lambda messages, target: extract(passages(messages), target)
    )
    assert told == ["LoCoMo: what summaries keep of conv-1"]
    assert (numbers["questions"], numbers["left_out"]) == (3, 1)
    assert set(SYSTEMS) <= numbers.keys()
    ours: Any = numbers["Holdfast"]
    assert ours == {"all": 66.67, "multi-hop": 0.0, "temporal": 100.0, "single-hop": 100.0}
    assert all(len(row) == len(tables[0].columns) for row in tables[0].rows)
    json.dumps(numbers)


def test_a_conversation_may_stand_alone(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(LOCOMO))
    assert keeping.run_keeping([tmp_path / "one.json"])[0]["questions"] == 3


def test_any_summary_can_be_measured(file: Path) -> None:
    def everything(messages: object, target: int) -> str:
        return "pots on 8 May 2023 in Atlantis"

    ours: Any = keeping.run_keeping([file], summarise=everything)[0]["Holdfast"]
    assert ours["all"] == 100.0


def test_the_others_keep_to_the_target_and_name_who_spoke_when() -> None:
    texts = keeping.others(passages([Message("user", text, name="Ann") for text in TURNS]), 100)
    for text in texts.values():
        assert 60 < estimate_tokens(text) <= 100
        assert text.startswith("Undated\nAnn: ")


def test_a_missing_package_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "installed", lambda: False)
    numbers, tables = keeping.run_keeping([file])
    assert numbers["sumy LexRank"] == "not measured: pip install '.[bench]' in a checkout"
    assert tables[0].rows[-1][:2] == ("sumy TextRank", "not measured: pip install '.[bench]' in a checkout")


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_text('{"role": "user", "content": "hello"}\n')
    with pytest.raises(InvalidInput, match="None of these files has answers"):
        keeping.run_keeping([tmp_path / "chat.jsonl"])


@pytest.mark.slow
def test_real_conversations_keep_a_fifth_more_than_the_others(shared_data: Path) -> None:
    numbers: Any = keeping.run_keeping([shared_data / "locomo"])[0]
    assert numbers["questions"] == 715
    assert all(numbers["Holdfast"]["all"] >= 1.2 * numbers[name]["all"] for name in SYSTEMS[1:])
