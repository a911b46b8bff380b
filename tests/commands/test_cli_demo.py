from __future__ import annotations

from pathlib import Path

import pytest
from cli_runs import Cli

from holdfast_cli.commands import demo
from holdfast_cli.demo import Question, questions


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    return Cli(tmp_path, monkeypatch).with_database()


def test_demo_answers_and_leaves_nothing_behind(cli: Cli) -> None:
    text = cli.text("demo")
    assert "8 conversations, 120 messages" in text
    assert "8 of 8 answers come first" in text
    for question in questions():
        assert question.question in text
        assert question.expect in text
    assert "why: " in text
    assert "flags: " not in text
    assert "Left out: delivery-queue#1-" in text
    assert "of 300 tokens." in text
    assert "of 800 tokens: system" in text
    assert "holdfast import ~/.claude/projects" in text
    assert len(text.splitlines()) < 80
    assert not cli.db.exists()
    assert list(cli.home.iterdir()) == []


def test_demo_as_json(cli: Cli) -> None:
    answer = cli.json("demo")
    assert set(answer) == {"chats", "messages", "questions", "window", "prompt"}
    assert [one["rank"] for one in answer["questions"]] == [1] * 8
    assert set(answer["questions"][0]) == {"question", "answer_in", "expect", "rank", "hits"}


def test_demo_keeps_the_sample_where_it_is_told(cli: Cli, tmp_path: Path) -> None:
    kept = tmp_path / "demo.db"
    text = cli.text("demo", "--db", kept)
    assert str(kept) in text
    assert f"holdfast recall 'what did we decide about Redis' --db {kept}" in text
    assert cli.json("stats", "--db", kept)["messages"] == 120
    assert "has chats already" in cli.complaint("demo", "--db", kept)
    assert cli.json("stats", "--db", kept)["messages"] == 120


def test_an_answer_that_is_not_found_is_said_so(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    second, missing = questions()[5], questions()[0]
    changed = [
        Question("carrier limit for retries attempts", second.answer_in, second.expect),
        Question("When is the talk?", missing.answer_in, missing.expect),
    ]
    monkeypatch.setattr(demo, "questions", lambda: changed)
    text = cli.text("demo")
    assert "The answer is not among the first 5." in text
    assert cli.json("demo")["questions"][1]["rank"] is None


@pytest.mark.slow
def test_the_demo_runs_as_a_program(cli: Cli) -> None:
    assert cli.process("demo").returncode == 0
