"""`backup`, `salvage`, `export --all`, and what commands make where there is nothing."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from cli_runs import Cli

from holdfast import Memory


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    return Cli(tmp_path, monkeypatch).with_sample()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_backup(cli: Cli, tmp_path: Path) -> None:
    text = cli.text("backup", tmp_path / "copy.db")
    assert text.startswith(f"Copied {cli.db} to {tmp_path / 'copy.db'}, ")
    assert mode(tmp_path / "copy.db") == 0o600
    assert cli.json("chats", "--db", tmp_path / "copy.db") == cli.json("chats")
    assert "already" in cli.complaint("backup", tmp_path / "copy.db")
    answer = cli.json("backup", tmp_path / "another.db")
    assert set(answer) == {"file", "bytes", "checked", "problems", "unproven"}


def test_backup_on_postgresql(cli: Cli, postgres_url: str, tmp_path: Path) -> None:
    assert "pg_dump" in cli.complaint("backup", tmp_path / "copy.db", "--db", postgres_url)


def test_salvage(cli: Cli, tmp_path: Path) -> None:
    content = bytearray(cli.db.read_bytes())
    page = content.index(b"physio") // 4096 * 4096
    content[page : page + 4096] = b"\xff" * 4096
    cli.db.write_bytes(content)
    text = cli.text("salvage", cli.db, tmp_path / "new.db", code=1)  # something is missing
    assert "Saved into" in text
    assert f"✗ page {page // 4096 + 1}: it is no page" in text
    assert cli.text("verify", "--db", tmp_path / "new.db").endswith("No problems.\n")
    assert "already" in cli.complaint("salvage", cli.db, tmp_path / "new.db")
    assert set(cli.json("salvage", cli.db, tmp_path / "other.db", code=1)) == {"file", "rows", "lost"}


def test_everything_goes_out_and_comes_back(cli: Cli, tmp_path: Path) -> None:
    cli.run("remember", "Lives in Kiel")
    cli.run("scratchpad", "week", "1")
    file = tmp_path / "all.jsonl"
    assert "1 record," in cli.run("export", "--all", "-o", file).stderr
    assert mode(file) == 0o600
    copy = ("--db", tmp_path / "copy.db")
    text = cli.text("import", file, *copy)
    assert "Brought back: 1 space, 8 sessions" in text
    for words in (("chats",), ("records",), ("changes",), ("scratchpad",), ("recall", "knee physio")):
        there, here = cli.json(*words, *copy), cli.json(*words)
        assert {**there, "more": None} == {**here, "more": None}
    again = cli.json("import", file, *copy)
    assert (again["added"], again["present"], again["renumbered"], again["skipped"]) == (0, 120, 0, [])
    assert [json.loads(line)["table"] for line in file.read_text().splitlines()[1:3]] == [
        "spaces",
        "sessions",
    ]


def test_what_got_other_numbers_is_said(cli: Cli, tmp_path: Path) -> None:
    cli.run("remember", "Lives in Kiel")
    cli.run("export", "--all", "-o", tmp_path / "all.jsonl")
    copy = ("--db", tmp_path / "copy.db")
    cli.run("remember", "Plays the cello", *copy)
    assert "Renumbered 1 version" in cli.text("import", tmp_path / "all.jsonl", *copy)


def test_an_export_of_chats_says_what_it_leaves_out(cli: Cli, tmp_path: Path) -> None:
    assert "Left out: summaries, records, pads" in cli.run("export").stderr
    answer = cli.json("export", "-o", tmp_path / "chats.jsonl")
    assert answer["left_out"] == ["summaries", "records", "pads", "snapshots", "jobs", "receipts"]
    assert mode(tmp_path / "chats.jsonl") == 0o644
    assert "of all chats" in cli.complaint("export", "--all", "--chat", "x")


_LINES = (
    "export, export --all, chats, show c, recall x, window c, stats, stats c, verify, verify --repair, "
    "backup copy.db, tree c, expand s, tree c, compact c, records, replace r x, retract r, "
    "records profile, records soul, records --kind constraint, records --kind note --chat c, "
    "scratchpad, learn jobs, chats end c, learn episodes, learn usage, changes, changes --diff 1..2, "
    "undo, rollback profile 1, quarantine, work, learn reflect --llm x:y, learn consolidate --llm x:y, "
    "erase --chat c --yes"
)
READING = [tuple(line.split()) for line in _LINES.split(", ")]


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_command_that_stores_nothing_new_makes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    cli = Cli(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    cli.complaint(*words, "--db", tmp_path / "no" / "memory.db", code=1)
    cli.complaint(*words, code=1)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_command_that_stores_makes_the_folder_of_the_default_and_a_file_of_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = Cli(tmp_path, monkeypatch)
    path = cli.home / "data" / "holdfast" / "memory.db"
    cli.run("remember", "Lives in Kiel")
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    path.parent.chmod(0o755)
    path.chmod(0o644)
    cli.run("remember", "Plays the cello")
    assert (mode(path), mode(path.parent)) == (0o644, 0o755)
    with Memory(path) as memory:
        assert len(memory.records()) == 2
