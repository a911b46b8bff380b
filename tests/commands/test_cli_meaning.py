"""An embedder on the command line: what `work`, `recall`, `why` and `learn jobs` say of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runs import Cli

from embedders import built_model2vec
from holdfast import Memory


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    made = Cli(tmp_path, monkeypatch).with_database()
    monkeypatch.setenv("HOLDFAST_EMBED", f"model2vec:{built_model2vec(tmp_path / 'model')}")
    with Memory(made.db) as memory:
        memory.chat("monday").append(role="user", content="I like tea.")
        memory.chat("tuesday").append(role="user", content="Walk the dog.")
    return made


def test_what_was_embedded_is_said(cli: Cli) -> None:
    assert "Run `holdfast work`." in cli.text("recall", "bevvy tea")
    text = cli.text("work")
    assert "nothing new" not in text
    assert "embedded  2 of 2, by model2vec:" in text


def test_why_goes_by_meaning_as_recall_does(cli: Cli) -> None:
    cli.run("work")
    (hit, *_) = cli.json("recall", "bevvy")["hits"]
    explained = cli.json("why", "bevvy", "monday#1")
    assert "meaning" in hit["why"]["shares"]
    assert explained["hit"] == {name: value for name, value in hit.items() if name != "title"}


def test_an_embedder_that_fails_is_not_said_to_need_a_model(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("HOLDFAST_EMBED", "openai:text-embedding-3-small")
    text = cli.text("work")
    assert "1 job waits until" in text
    assert "--llm" not in text
    assert "\nembed: The model" in cli.text("learn", "jobs")
    assert "--llm" not in cli.text("learn", "jobs", "--retry", "embed:")


def test_why_takes_the_latest(cli: Cli) -> None:
    assert "monday#1 is hit 1." in cli.text("why", "tea", "monday#1", "--latest")
