"""The command line of the benchmarks: what it prints, what it takes, what it says of itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from benchmarks import CHECKOUT
from benchmarks.__main__ import app
from benchmarks.report import Report, Table


def run(*words: str | Path, code: int = 0) -> Result:
    """Run a command, and check how it ends."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


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


def test_recall_prints_tables_or_json(conversation: Path) -> None:
    result = run("recall", conversation)
    assert "Holdfast" in result.stdout
    assert "R@10" in result.stdout
    assert "conv-1" in result.stderr  # what it is doing
    out = conversation.with_name("out.json")
    sets = json.loads(run("recall", conversation, "--json", "--out", out).stdout)["sets"]
    assert sets["LoCoMo, messages"]["unit"] == "message"
    assert json.loads(out.read_text())["sets"].keys() == sets.keys()


def test_recall_needs_questions(tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_text('{"role": "user", "content": "hello"}')
    complaint = run("recall", tmp_path / "chat.jsonl", code=1)
    assert complaint.stdout == ""
    assert "→ Give files of LoCoMo, RealMem" in complaint.stderr
    run("recall", code=2)


def test_speed_takes_options(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}

    def measure(**given: object) -> Report:
        asked.update(given)
        return Report({"fast": True}, (Table("Speed", ("what", "ms"), (("append", "0.1"),)),))

    monkeypatch.setattr("benchmarks.speed.run", measure)
    done = run("speed", "--size", "1000", "--size", "2000", "--only", "window", "--full")
    assert done.stdout == "Speed\nwhat     ms\nappend  0.1\n\n"
    assert (asked["sizes"], asked["only"], asked["full"]) == ([1000, 2000], ["window"], True)
    assert json.loads(run("speed", "--json").stdout) == {"fast": True}
    assert "none of append and recall" in " ".join(
        run("speed", "--only", "x", code=2).stderr.replace("│", " ").split()
    )


def test_help_explains_itself_and_each_command_has_an_example() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "-h"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert "Usage: python -m benchmarks" in done.stdout
    assert "make bench" in done.stdout
    names = [
        command.callback.__name__.replace("_", "-") for command in app.registered_commands if command.callback
    ]
    assert names == [
        "recall",
        "meaning",
        "calibration",
        "side-by-side",
        "speed",
        "context",
        "records",
        "learn",
        "worth",
        "agents",
        "hooks",
        "adapters",
    ]
    for name in names:
        assert f"│ {name} " in done.stdout
        assert f"python -m benchmarks {name} " in run(name, "-h").stdout
