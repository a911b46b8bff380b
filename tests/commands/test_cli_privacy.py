"""The commands pause and resume, and what an import says of what it leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runs import Cli, with_database

from transcripts import claude, write_lines

cli = pytest.fixture(with_database)


@pytest.fixture
def shop(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a project, with an own place for the state."""
    folder = cli.home / "shop"
    folder.mkdir()
    monkeypatch.setenv("HOLDFAST_STATE", str(cli.home / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(cli.home / ".config"))
    monkeypatch.delenv("HOLDFAST_PROJECT", raising=False)
    monkeypatch.chdir(folder)
    return folder


def test_a_pause_of_everything_and_of_a_project(
    cli: Cli, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Paused all projects until it is resumed" in cli.text("pause")
    assert "Resumed all projects." in cli.text("resume")
    assert "There was no pause of all projects to end." in cli.text("resume")
    paused = cli.json("pause", "--project", "--for", "2h")
    assert (paused["paused"], paused["project"]) == (True, str(shop))
    assert paused["until"] is not None
    text = cli.text("resume")
    assert "no pause of all projects" in text
    assert "Still paused here" in text
    assert "holdfast resume --project" in text
    monkeypatch.chdir(cli.home)
    assert cli.json("resume", "--project")["ended"] is False
    monkeypatch.chdir(shop)
    assert cli.json("resume", "--project") == {"project": str(shop), "ended": True, "paused": False}


def test_an_import_says_what_was_said_in_a_pause(cli: Cli, shop: Path) -> None:
    pauses = cli.home / "state" / "pauses.jsonl"
    pauses.parent.mkdir()
    lines = [
        {"do": "pause", "project": "", "root": "", "at": "2026-01-06T09:00:00+00:00", "until": None},
        {"do": "resume", "project": "", "root": "", "at": "2026-01-06T10:00:00+00:00", "until": None},
    ]
    later = {**claude("user", "u2", "u1", "later"), "timestamp": "2026-01-06T11:00:00Z"}
    path = write_lines(cli.home / "s1.jsonl", [claude("user", "u1", None, "hello"), later])
    pauses.write_text("{")
    assert "is damaged, so nothing is imported" in cli.complaint("import", path)
    assert "damaged" in cli.complaint("resume")
    write_lines(pauses, lines)
    text = cli.text("import", path)
    assert "Imported 1 new message" in text
    assert "1 × said while Holdfast was paused" in text
