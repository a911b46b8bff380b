"""`backup`, `salvage`, `export --all`, and what commands make where there is nothing."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cli_runs import Cli, with_sample

cli = pytest.fixture(with_sample)


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
    other = ("--db", tmp_path / "other.db")
    cli.run("remember", "Plays the cello", *other)
    assert "Renumbered 1 version" in cli.text("import", file, *other)
