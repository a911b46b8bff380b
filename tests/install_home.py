"""A user with a home of their own, into whose clients the memory is installed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from holdfast_cli.commands import app

CLIENTS = ("claude-code", "codex", "cursor", "gemini", "claude-desktop", "vscode")
HOOKED = CLIENTS[:4]
# Where each client looks, below the home of its user.
FILES = {
    "claude-code": [".claude/settings.json", ".claude.json", ".claude/skills/holdfast-memory/SKILL.md"],
    "codex": [".codex/hooks.json", ".codex/config.toml"],
    "cursor": [".cursor/hooks.json", ".cursor/mcp.json"],
    "gemini": [".gemini/settings.json"],
    "claude-desktop": [".config/Claude/claude_desktop_config.json"],
    "vscode": [".config/Code/User/mcp.json"],
}
# The files of hooks of a project.
OF_PROJECT = {
    "claude-code": ".claude/settings.local.json",
    "codex": ".codex/hooks.json",
    "cursor": ".cursor/hooks.json",
    "gemini": ".gemini/settings.json",
}


class Home:
    """A home folder, and a project in it where commands are called."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.project = folder, folder / "shop"
        for name in os.environ:
            if name.startswith(("XDG_", "CLAUDE_", "CODEX_", "HOLDFAST_")):
                monkeypatch.delenv(name)
        monkeypatch.setenv("HOME", str(folder))
        (self.project / ".git").mkdir(parents=True)
        monkeypatch.chdir(self.project)

    def run(self, *words: str, code: int = 0, **environment: str) -> Result:
        """Run a command that must end with a code."""
        done = CliRunner().invoke(app, words, input="", env=environment, prog_name="holdfast")
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert done.exit_code == code, done.output
        return done

    def report(self, *words: str) -> list[dict[str, Any]]:
        """Return what a command says of the files that it changed."""
        files = json.loads(self.run(*words, "--json").stdout)["files"]
        assert isinstance(files, list)
        return files

    def texts(self) -> dict[str, str]:
        """Return the files of the clients, without backups."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes().decode()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and ".bak" not in path.name
        }

    def write(self, name: str, text: str) -> Path:
        """Write a file below the home."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    def commands(self, name: str) -> dict[str, str]:
        """Return the commands in a file of hooks, by the client's name of the event."""
        hooks = json.loads((self.folder / name).read_text("utf-8"))["hooks"]
        return {event: (item[0].get("hooks") or item)[0]["command"] for event, item in hooks.items()}
