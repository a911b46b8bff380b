from __future__ import annotations

import pytest
from cli_runs import Cli, with_database

from holdfast_cli.demo import questions

cli = pytest.fixture(with_database)


def test_demo_answers_and_leaves_nothing_behind(cli: Cli) -> None:
    text = cli.text("demo")
    told = (
        "8 conversations, 120 messages", "8 of 8 answers come first", "why: ", "Left out: delivery-queue#1-",
        "of 300 tokens.", "of 800 tokens: system", "holdfast import ~/.claude/projects",
    )  # fmt: skip
    assert [one for one in told if one not in text] == []
    assert all(one.question in text and one.expect in text for one in questions())
    assert len(text.splitlines()) < 80
    answer = cli.json("demo")
    assert set(answer) == {"chats", "messages", "questions", "window", "prompt"}
    assert [one["rank"] for one in answer["questions"]] == [1] * 8
    assert set(answer["questions"][0]) == {"question", "answer_in", "expect", "rank", "hits"}
    assert not cli.db.exists()
    assert list(cli.home.iterdir()) == []
