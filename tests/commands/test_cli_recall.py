"""`recall` and `why`: what is found, by which filters, and how it is told."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from cli_runs import Cli, with_sample

from embedders import built_model2vec
from holdfast import Memory

cli = pytest.fixture(with_sample)


def test_recall_finds_and_says_why(cli: Cli) -> None:
    text = cli.text("recall", "which", "exercise", "for", "the", "knee", "did", "my", "physio", "give", "me?")
    first = text.split("\n\n")[0].splitlines()
    assert first[0].startswith("1. 0.")
    assert "2026-03-02 18:14" in first[0]
    assert "user  in Training plan for the Auenfeld marathon  (marathon-plan#5)" in first[0]
    assert "step-downs" in first[1]
    assert first[2].startswith("   why: ")
    assert "physio" in first[2]
    assert "holdfast show 'marathon-plan#1-8'" in text
    (hit,) = cli.json("recall", "ERR_4312", "--limit", "1")["hits"]
    assert set(hit) == {
        "source", "text", "score", "id", "chat", "seq", "last_seq", "role", "name", "at", "why", "title",
        "kind", "flags",
        "wordings", "ref", "times", "last",
    }  # fmt: skip
    assert hit["chat"] == "retry-bug"
    assert set(hit["why"]) == {"shares", "words"}
    assert sum(hit["why"]["shares"].values()) == pytest.approx(1)


def test_why_says_what_a_message_has_and_what_excludes_it(cli: Cli) -> None:
    question = "which exercise for the knee did my physio give me?"
    lines = cli.text("why", question, "marathon-plan#5").splitlines()
    assert lines[0] == "marathon-plan#5 is hit 1."
    assert lines[1].startswith("Score 0.")
    assert lines[2].startswith("It has: exercise (in ")
    text = cli.text("why", question, "marathon-plan#5", "--role", "assistant", "--limit", "1")
    assert text.startswith("marathon-plan#5 is no hit, because of: roles.")
    assert "The last of the first 1 hits has 0." in text
    assert "was not found in this scope" in cli.complaint("why", question, "marathon-plan#5000")
    answer = cli.json("why", "physio unicorn", "marathon-plan#5", "--role", "tool")
    assert (answer["excluded"], answer["rank"], answer["found"]) == (["roles"], None, False)
    assert (answer["hit"]["ref"], answer["hit"]["score"]) == ("marathon-plan#5", 0.0)
    assert answer["words"][1] == {"word": "unicorn", "places": [], "documents": 0}
    assert answer["lacks"] == ["unicorn"]


def test_the_next_command_is_safe_to_paste(cli: Cli) -> None:
    with Memory(cli.db, user="ada o") as memory:
        memory.chat("a; rm -rf ~").append(role="user", content="an unusual quokka")
    text = cli.text("recall", "quokka", "--user", "ada o", "--db", cli.db)
    assert f"holdfast show 'a; rm -rf ~#1-4' --db {cli.db} --user 'ada o'" in text


def test_recall_filters(cli: Cli) -> None:
    def found(field: str, *words: str) -> list[str]:
        return [hit[field] for hit in cli.json("recall", *words, "--limit", "50")["hits"]]

    assert min(found("at", "marathon", "--since", "2026-04-01")) >= "2026-04-01"
    until = found("at", "marathon", "--until", "2026-03-02")
    assert max(until)[:10] == "2026-03-02"  # the end of a period is a part of it
    assert found("at", "marathon", "--until", "2026-03-02T00:00:00Z") == []
    assert set(found("role", "test", "--role", "tool", "--role", "user")) == {"tool", "user"}
    assert set(found("chat", "test", "--chat", "retry-bug")) == {"retry-bug"}
    assert cli.json("recall", "knee", "--limit", "0")["hits"] == []
    with Memory(cli.db) as memory:
        ends = datetime(2026, 6, 1, tzinfo=UTC)
        memory.remember("The marathon is in the north", "finding", tags=["race"], until=ends, by="user")
    for words in (("--kind", "finding"), ("--tag", "race"), ("--source", "record")):
        assert found("kind", "marathon", *words, "--valid-at", "2026-05-31") == ["finding"]
        assert found("kind", "marathon", *words, "--valid-at", "2026-06-01") == []
    assert set(found("source", "marathon", "--source", "message")) == {"message"}


# An embedder


@pytest.fixture
def tea(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Have an embedder, and two chats of a user that wait for it."""
    monkeypatch.setenv("HOLDFAST_EMBED", f"model2vec:{built_model2vec(tmp_path / 'model')}")
    monkeypatch.setenv("HOLDFAST_USER", "mia")
    with Memory(cli.db, user="mia") as memory:
        memory.chat("monday").append(role="user", content="I like tea.")
        memory.chat("tuesday").append(role="user", content="Walk the dog.")
    return cli


@pytest.mark.slow
def test_why_goes_by_meaning_as_recall_does(tea: Cli) -> None:
    assert "Run `holdfast work`." in tea.text("recall", "bevvy tea")
    assert "embedded  2 of 2, by model2vec:" in tea.text("work")
    for latest in ((), ("--latest",)):
        (hit, *_) = tea.json("recall", "bevvy", *latest)["hits"]
        assert "meaning" in hit["why"]["shares"]
        explained = tea.json("why", "bevvy", "monday#1", *latest)
        assert explained["rank"] == 1
        assert explained["hit"] == {name: value for name, value in hit.items() if name != "title"}
