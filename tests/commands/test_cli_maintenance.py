from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from cli_runs import Cli

from holdfast_cli.commands.options import Options


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    return Cli(tmp_path, monkeypatch).with_sample()


def test_stats_of_all(cli: Cli) -> None:
    text = cli.text("stats")
    assert "chats     8\nmessages  120\n" in text
    assert "from      2026-03-02 18:04 to 2026-06-2" in text
    assert f"database  {cli.db}, " in text
    answer = cli.json("stats")
    assert set(answer) == {"chats", "archived", "messages", "tokens", "oldest", "newest", "database", "bytes"}
    assert answer["oldest"] == "2026-03-02T18:04:00+00:00"
    assert answer["bytes"] > 10_000
    assert cli.json("stats", "--user", "bob")["oldest"] is None
    assert "from      – to –" in cli.text("stats", "--user", "bob")


def test_stats_of_a_chat(cli: Cli) -> None:
    assert "messages  18\ntokens    899 stored, 899 as context" in cli.text("stats", "retry-bug")
    answer = cli.json("stats", "retry-bug")
    assert set(answer) == {
        "chat", "title", "messages", "stored_tokens", "context_tokens", "oldest", "newest", "erased",
        "summarised",
    }  # fmt: skip
    assert "There is no chat 'nobody' here." in cli.complaint("stats", "nobody")


def test_verify_says_what_it_checked(cli: Cli) -> None:
    text = cli.text("verify")
    assert "Checked: 8 sessions, 120 messages" in text
    assert "No problems." in text
    answer = cli.json("verify")
    assert set(answer) == {"ok", "checked", "problems", "unproven"}
    assert answer["ok"] is True
    assert answer["checked"]["messages"] == 120


def test_verify_fails_when_a_message_is_gone(cli: Cli) -> None:
    with sqlite3.connect(cli.db) as connection:
        connection.execute("DELETE FROM messages WHERE chat = 'retry-bug' AND seq = 3")
    connection.close()
    text = cli.text("verify", code=1)
    assert "✗ chat 'retry-bug'" in text
    assert "restore a backup" in text
    answer = cli.json("verify", code=1)
    assert answer["ok"] is False
    assert answer["problems"]


def test_rebuild_changes_no_answer(cli: Cli) -> None:
    before = cli.json("recall", "knee physio")
    assert cli.text("verify", "--repair").startswith(
        "Built the search index again.\nChecked: 8 sessions, 120 "
    )
    assert cli.json("verify", "--repair")["checked"]["messages"] == 120
    assert cli.json("recall", "knee physio") == before


def test_postgres(cli: Cli, postgres_url: str, tmp_path: Path) -> None:
    (tmp_path / "sample.jsonl").write_text(cli.run("export").stdout)
    cli.run("import", tmp_path / "sample.jsonl", "--db", postgres_url, "--user", "ada")
    words = ("recall", "which exercise did my physio give me", "--limit", "3")
    there = cli.json(*words, "--db", postgres_url, "--user", "ada")["hits"]
    here = cli.json(*words)["hits"]
    assert there == here
    stats = cli.json("stats", "--db", postgres_url, "--user", "ada")
    assert (stats["messages"], stats["bytes"]) == (120, None)
    assert cli.json("verify", "--db", postgres_url, "--user", "ada")["ok"] is True


def test_a_password_is_not_shown(cli: Cli) -> None:
    assert Options(db="postgresql://ada:secret@host/db").shown_location == "postgresql://ada:***@host/db"
    assert Options(db="postgresql://h/d?password=s&x=1").shown_location == "postgresql://h/d?password=***&x=1"
    assert "secret" not in Options(db="postgresql://ada:secret@host/db").line("chats")
    complaint = cli.complaint("chats", "--db", "postgresql://ada:secret@127.0.0.1:1/db")
    assert "→ Check the URL" in complaint
    assert "secret" not in complaint
