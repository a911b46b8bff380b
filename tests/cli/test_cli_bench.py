from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runs import Cli, usage

from holdfast.bench.report import Report, Table


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    return Cli(tmp_path, monkeypatch)


@pytest.fixture
def conversation(tmp_path: Path) -> Path:
    """Write the smallest LoCoMo file."""
    path = tmp_path / "locomo.json"
    turns = [
        {"speaker": "Ann", "dia_id": "D1:1", "text": "I have a parrot named Coco."},
        {"speaker": "Ben", "dia_id": "D1:2", "text": "Lovely weather today."},
    ]
    said = {
        "speaker_a": "Ann",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": turns,
    }
    asked = [
        {"question": "What is the parrot called?", "answer": "Coco", "evidence": ["D1:1"], "category": 4}
    ]
    path.write_text(json.dumps([{"sample_id": "conv-1", "conversation": said, "qa": asked}]))
    return path


def test_bench_recall(cli: Cli, conversation: Path) -> None:
    result = cli.run("bench", "recall", conversation)
    assert "Holdfast" in result.stdout
    assert "R@10" in result.stdout
    assert "conv-1" in result.stderr  # what it is doing
    assert json.loads(cli.run("bench", "recall", conversation, "--json").stdout)["locomo"]["unit"] == "turn"


def test_bench_recall_needs_questions(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_text('{"role": "user", "content": "hello"}')
    assert "→ Give LoCoMo or RealMem files" in cli.complaint("bench", "recall", tmp_path / "chat.jsonl")
    cli.complaint("bench", "recall", code=2)


def test_bench_speed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}

    def run(**given: object) -> Report:
        asked.update(given)
        return Report({"fast": True}, (Table("Speed", ("what", "ms"), (("append", "0.1"),)),))

    monkeypatch.setattr("holdfast.bench.speed.run", run)
    text = cli.text("bench", "speed", "--size", "1000", "--size", "2000", "--only", "append", "--full")
    assert text == "Speed\nwhat     ms\nappend  0.1\n\n"
    assert (asked["sizes"], asked["only"], asked["full"]) == ([1000, 2000], ["append"], True)
    assert cli.json("bench", "speed") == {"fast": True}
    assert "none of append" in usage(cli.complaint("bench", "speed", "--only", "x", code=2))
