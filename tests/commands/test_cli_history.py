from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cli_runs import Cli

from holdfast import Memory


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Make five versions: a profile, a finding, both changed, and a constraint."""
    cli = Cli(tmp_path, monkeypatch).with_database()
    with Memory(cli.db) as memory:
        memory.remember("Ada, a runner.\nLives in Berlin.\nHas a dog.", "profile", by="user")
        memory.remember("Tea at five", "finding", chat="c", by="agent")
        memory.remember("Ada, a runner.\nLives in Munich.\nHas a dog.", "profile", by="user")
        memory.retract("tea", why="it is six", by="user")
        memory.remember("Never on Mondays", "constraint", by="user")
    return cli


def test_changes_are_listed_newest_first(cli: Cli) -> None:
    text = cli.text("changes")
    heads = [line.split() for line in text.splitlines() if not line.startswith("      ")]
    assert [head[0] for head in heads] == ["5", "4", "3", "2", "1"]
    assert heads[0][3:6] == ["user", "add", "constraint"]
    assert heads[1][3:6] == ["user", "retract", "finding"]
    assert "agent  add finding in c  (rec_" in text
    assert "      + Never on Mondays\n" in text
    assert "      − Tea at five\n      why: it is six\n" in text
    assert "Ada, a runner. Lives in Berlin. Has a dog. → Ada, a runner. Lives in Munich. Has a dog." in text


def test_diff_between_two_versions(cli: Cli) -> None:
    answer = cli.json("changes", "--diff", "1..3")
    assert set(answer) == {"from", "to", "added", "removed", "changed"}
    assert (answer["from"], answer["to"]) == (1, 3)
    assert [one["text"] for one in answer["added"]] == ["Tea at five"]
    assert answer["removed"] == []
    (changed,) = answer["changed"]
    assert set(changed) == {"id", "kind", "before", "after"}
    assert changed["after"] == "Ada, a runner.\nLives in Munich.\nHas a dog."
    back = cli.json("changes", "--diff", "3..1")
    assert [one["text"] for one in back["removed"]] == ["Tea at five"]
    assert len(cli.json("changes", "--diff", "0")["added"]) == 2
    assert len(cli.json("changes", "--diff", "2020-01-01")["added"]) == 2
    assert cli.json("changes", "--diff", "2020-01-01..2100-01-01")["to"] == 5


def test_undo_goes_back_call_by_call(cli: Cli) -> None:
    text = cli.text("undo")
    assert text.startswith("Wrote 1 new version:\n   6  ")
    assert "− Never on Mondays" in text
    answer = cli.json("undo")
    assert set(answer) == {"written", "changes"}
    assert answer["changes"][0]["after"] == answer["written"][0]["text"] == "Tea at five"
    for _ in range(3):
        cli.run("undo")
    assert cli.json("records")["records"] == []
    assert "There is nothing to undo." in cli.complaint("undo")


def test_rollback_of_a_record_and_of_a_kind(cli: Cli) -> None:
    text = cli.text("rollback", "profile", "1")
    assert "Lives in Munich. Has a dog. → Ada, a runner. Lives in Berlin." in text
    assert "why: to version 1" in text
    identity = cli.json("changes", "--kind", "finding")["changes"][0]["id"]
    (written,) = cli.json("rollback", identity, "2")["written"]
    assert (written["text"], written["action"]) == ("Tea at five", "rollback")
    assert cli.text("rollback", "finding", "2").startswith("Nothing to write")
    assert cli.json("rollback", "finding", "2") == {"written": [], "changes": []}


def test_a_timeline_shows_days_with_titles_and_goes_on(cli: Cli) -> None:
    with Memory(cli.db) as memory:
        for day in (9, 10):
            at = datetime(2026, 3, day, 9, tzinfo=UTC)
            memory.chat(f"chat {day}").append(role="user", content=f"Mend the \x1b[31mvane {day}.", at=at)
    shown = cli.text("timeline", "2026-W11")
    assert shown.splitlines()[:2] == ["Monday, 2026-03-09", "  09:00  Mend the vane 9.  1 message  chat 9"]
    page = cli.json("timeline", "2026-W11", "--limit", "1")
    assert [day["day"] for day in page["days"]] == ["2026-03-09"]
    (day,) = cli.json(*shlex.split(page["more"])[1:])["days"]
    assert [(chat["chat"], chat["title"]) for chat in day["chats"]] == [("chat 10", "Mend the vane 10.")]
    assert cli.text("timeline", "10", "March").startswith("Tuesday, 2026-03-10")
    assert "Nothing was said or learned" in cli.text("timeline", "2020")
    assert "'soon' names no time" in cli.complaint("timeline", "soon")
