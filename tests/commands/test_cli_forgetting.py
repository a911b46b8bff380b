"""`expire`, `pin` and `conflicts`: forgetting by rule, what is kept, and what contradicts itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runs import Cli, with_database

from holdfast import Kind, Memory

BERLIN, LISBON = "User lives in Berlin", "User lives in Lisbon"

cli = pytest.fixture(with_database)


def remember(cli: Cli, *words: str) -> str:
    return str(cli.json("remember", *words)["record"]["id"])


def test_old_chats_are_moved_to_files_that_import_reads(cli: Cli, tmp_path: Path) -> None:
    with Memory(str(cli.db)) as memory:
        memory.chat("trip").append(role="user", content="The train to Porto", at="2020-01-01")
        memory.chat("now").append(role="user", content="hello")
    folder = str(tmp_path / "old")
    listed = cli.text("chats", "move", "--older-than", "90d", "--to", folder, "--dry-run")
    assert "The train to Porto" in listed
    assert listed.splitlines()[-1].startswith("→ Do it: holdfast chats move")
    (moved,) = cli.json("chats", "move", "--older-than", "90d", "--to", folder)["chats"]
    assert moved["receipt"]["counts"]["messages"] == 1
    assert [chat["id"] for chat in cli.json("chats")["chats"]] == ["now"]
    assert cli.text("chats", "move", "--older-than", "90d", "--to", folder).startswith("No chat is that old")
    cli.text("import", moved["file"])
    assert "The train to Porto" in cli.text("show", "trip")


def test_what_is_due_is_listed_and_goes_but_for_what_is_pinned(cli: Cli) -> None:
    with Memory(str(cli.db), kinds=[Kind("errand")]) as memory:
        memory.remember(["buy bread", "find keys"], "errand", at="2020-01-01")
    assert cli.text("pin", "find keys").startswith("Pinned: errand rec_")
    listed = cli.text("expire", "errand=180d", "--dry-run")
    assert "buy bread" in listed
    assert "its kind keeps it for 180 days" in listed
    assert "find keys" not in listed
    assert listed.splitlines()[-1].startswith("→ Do it: holdfast expire")
    assert len(cli.json("expire", "errand=180d")["records"]) == 1
    assert cli.text("expire", "errand=180d").startswith("Nothing has expired")
    cli.text("undo")
    assert cli.text("pin", "find keys", "--undo").startswith("Unpinned: errand rec_")


@pytest.mark.parametrize("rule", ["errand", "errand=", "errand=180", "=180d", "constraint=1d"])
def test_a_rule_that_is_none_is_refused(cli: Cli, rule: str) -> None:
    remember(cli, BERLIN)
    assert "KIND=TIME" in cli.complaint("expire", rule, code=2)


def test_conflicts_are_listed_and_settled(cli: Cli) -> None:
    said = remember(cli, BERLIN)
    assert cli.text("conflicts").startswith("No records contradict each other")
    heard = remember(cli, LISBON, "--by", "tool")
    (pair,) = cli.json("conflicts")["conflicts"]
    assert (pair["shown"]["id"], pair["other"]["id"]) == (said, heard)
    text = cli.text("conflicts")
    assert all(part in text for part in (BERLIN, LISBON, "by tool", "why: it contradicts what the user said"))
    kept, gone = cli.json("conflicts", "--keep", said)["resolved"]
    assert (kept["id"], gone["id"], gone["retracted"]) == (said, heard, True)
    cli.text("undo")
    cli.text("conflicts", "--keep", said, "--keep", heard)
    assert cli.json("conflicts")["conflicts"] == []
    assert len(cli.json("records")["records"]) == 2
