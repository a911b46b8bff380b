"""`holdfast install` as a person meets it: what it lists, asks and offers; and what a kill leaves behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import at_terminal, environment

from holdfast import Memory
from install_home import FILES, Home
from transcripts import claude, codex, gemini, write_lines

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the folders of other systems are others")

SETTINGS = '{\n  // mine\n  "theme": "dark"\n}\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return Home(tmp_path, monkeypatch)


def write_session(home: Home, client: str) -> Path:
    """Write a session that a client held in the project before, and return the folder of all of them."""
    said, shop = "The baskets are in Redis.", str(home.project)
    match client:
        case "claude-code":
            path = home.write(".claude/projects/-shop/s0.jsonl", "")
            write_lines(path, [claude("user", "u", None, said, cwd=shop)])
        case "codex":
            path = home.write(".codex/sessions/2026/01/06/rollout-s0.jsonl", "")
            text = [{"type": "input_text", "text": said}]
            message = codex("response_item", type="message", role="user", content=text)
            write_lines(path, [codex("session_meta", id="s0", cwd=shop), message])
        case _:
            home.write(".gemini/tmp/shop/.project_root", shop)
            path = home.write(".gemini/tmp/shop/chats/session-s0.jsonl", "")
            write_lines(path, [{"sessionId": "s0"}, gemini("a", "user", said)])
    return path


@pytest.mark.slow
@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_it_lists_files_shows_the_difference_when_asked_and_offers_to_import(home: Home, client: str) -> None:
    write_session(home, client)
    before = home.texts()
    code, _, shown = at_terminal("install", client, reply="n")
    assert (code, home.texts()) == (1, before)
    for name in FILES[client]:
        assert f"new {home.folder / name}" in shown
    assert "hook prompt" not in shown, "the difference, unasked"
    code, told, shown = at_terminal("install", client, reply="d\ny\ny")
    assert code == 0, shown
    assert "hook prompt" in shown
    assert "Import 1 earlier session of" in shown
    assert "Imported 1 new message" in told
    with Memory(home.folder / ".local/share/holdfast/memory.db") as memory:
        assert memory.grants.projects() == [str(home.project)]
    after = [(home.folder / name).read_text() for name in FILES[client]]
    code, told, shown = at_terminal("install", client, reply="y")
    assert (code, told.count("has all of it already")) == (0, len(FILES[client]))
    assert "[y/N" not in shown
    assert [(home.folder / name).read_text() for name in FILES[client]] == after


def test_a_file_that_may_not_be_written_keeps_all_from_being_written(home: Home) -> None:
    home.write(".claude.json", "{}").chmod(0o444)
    before = home.texts()
    assert "read-only" in home.run("install", "claude-code", "--yes", code=1).stderr
    assert home.texts() == before


KILLED = """if True:
    import os, signal
    from holdfast_cli.commands import main

    calls, flush = iter(range(99)), os.fsync

    def kill(handle):
        if next(calls) == {number}:
            os.kill(os.getpid(), signal.SIGKILL)
        flush(handle)

    os.fsync = kill
    main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", range(5))
def test_a_kill_leaves_whole_files_that_the_next_install_completes(home: Home, number: int) -> None:
    home.write(".claude/settings.json", SETTINGS)
    before = home.texts()
    words = [sys.executable, "-c", KILLED.format(number=number), "install", "claude-code", "--yes"]
    done = subprocess.run(words, env=environment(), capture_output=True, check=False)
    assert (done.returncode == 0) == (number == 4), "it writes three files and a backup"
    settings = (home.folder / ".claude/settings.json").read_text()
    assert settings == SETTINGS or "session-end" in settings
    if (home.folder / ".claude.json").exists():
        assert json.loads((home.folder / ".claude.json").read_text())["mcpServers"]
    for backup in home.folder.rglob("*.bak*"):
        assert backup.read_text() == SETTINGS
    home.run("install", "claude-code", "--yes")
    home.run("uninstall", "claude-code", "--yes")
    left = {name for name in home.texts() if not Path(name).name.startswith(".settings.json.")}
    assert {name: home.texts()[name] for name in left if Path(name).suffix == ".json"} == before
