"""`stats` and `verify`, and all commands on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_learning import tell
from cli_runs import Cli, with_sample
from cli_voyage import assert_all_is_reached, fill

from holdfast import Memory

cli = pytest.fixture(with_sample)


def test_verify_says_what_it_checked_and_fails_when_a_message_is_gone(cli: Cli) -> None:
    text = cli.text("verify")
    assert "Checked: 8 sessions, 120 messages" in text
    assert "No problems." in text
    answer = cli.json("verify")
    assert set(answer) == {"ok", "checked", "problems", "unproven"}
    assert (answer["ok"], answer["checked"]["messages"]) == (True, 120)
    cli.execute("DELETE FROM messages WHERE chat = 'retry-bug' AND seq = 3")
    text = cli.text("verify", code=1)
    assert "✗ chat 'retry-bug'" in text
    assert "restore a backup" in text
    answer = cli.json("verify", code=1)
    assert answer["ok"] is False
    assert answer["problems"]


def test_rebuild_changes_no_answer(cli: Cli) -> None:
    before = cli.json("recall", "knee physio")
    told = cli.text("verify", "--repair")
    assert told.startswith("Built the search index again.\nChecked: 8 sessions, 120 ")
    assert cli.json("verify", "--repair")["checked"]["messages"] == 120
    assert cli.json("recall", "knee physio") == before


@pytest.fixture
def there(cli: Cli, postgres_url: str, tmp_path: Path) -> Cli:
    """Import the sample for a user on PostgreSQL, whose URL has a password."""
    (tmp_path / "sample.jsonl").write_text(cli.run("export").stdout)
    cli.monkeypatch.setenv("HOLDFAST_DB", f"{postgres_url}&password=secret")
    cli.monkeypatch.setenv("HOLDFAST_USER", "ada")
    cli.run("import", tmp_path / "sample.jsonl")
    return cli


def test_postgres_finds_and_checks_the_same(there: Cli) -> None:
    words = ("recall", "which exercise did my physio give me", "--limit", "3")
    assert there.json(*words)["hits"] == there.json(*words, "--db", there.db, "--user", "")["hits"]
    stats = there.json("stats")
    assert (stats["messages"], stats["bytes"]) == (120, None)
    assert there.json("verify")["ok"] is True
    assert "pg_dump" in there.complaint("backup", there.folder / "copy.db")


def test_postgres_keeps_records_summaries_and_episodes(there: Cli, postgres_url: str) -> None:
    one = there.json("remember", "Tea at five", "--kind", "finding")["record"]["id"]
    there.run("replace", one, "Tea at six")
    assert [change["version"] for change in there.json("records", one)["versions"]] == [2, 1]
    changed = {"id": one, "kind": "finding", "before": "Tea at five", "after": "Tea at six"}
    assert there.json("changes", "--diff", "1")["changed"] == [changed]
    counts = there.json("erase", "--record", one, "--yes")["receipt"]["counts"]
    assert counts == {"records": 1, "versions": 2}
    with Memory(postgres_url, user="ada") as memory:
        fill(memory.chat("voyage"))
        tell(memory)
    assert there.json("compact", "voyage", "--full", "--budget", "800")["nodes"]
    assert_all_is_reached(there, "voyage", 300)
    assert "not summarised" in there.text("tree", "voyage")
    there.run("work")
    assert "queue" in {one["chat"] for one in there.json("learn", "episodes", "delivery queue")["episodes"]}
    assert there.json("learn", "usage")["calls"] == 0


def test_a_password_is_not_shown(there: Cli) -> None:
    for words in (("stats",), ("chats", "--limit", "1"), ("recall", "knee physio"), ("verify",)):
        output = there.run(*words).output
        assert "secret" not in output
    assert "password=***" in there.text("stats")
    complaint = there.complaint("chats", "--db", "postgresql://ada:secret@127.0.0.1:1/db")
    assert "→ Check the URL" in complaint
    assert "secret" not in complaint
