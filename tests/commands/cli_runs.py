"""Running the command line in tests: in this process, or in one of its own."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from holdfast import Memory
from holdfast_cli.commands import app
from holdfast_cli.demo import sessions
from holdfast_cli.formats.importing import import_paths

CHECKOUT = Path(__file__).parents[2]
PACKAGES = os.pathsep.join((str(CHECKOUT / "src"), str(CHECKOUT / "cli" / "src")))
# A program that an interrupt stops even where the shell that runs the tests has it ignored.
AS_AT_A_TERMINAL = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from holdfast_cli.commands import main; main()"
)
# Calls and arguments of the library, for which commands name commands and options.
PYTHON = re.compile(r"\w\([^)]*\)|\bmemory\.(?!db)\w|\w=(?:[\s,.;'…]|$)")
# What must not reach a terminal.
FORBIDDEN = {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160), 0x202E)}


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Cli:
    """Run commands as someone whose home is a folder of this test, and whose clock shows UTC."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.db = folder / "memory.db"
        self.monkeypatch = monkeypatch
        self.home = folder / "home"
        self.home.mkdir()
        for name, value in {"HOME": self.home, "XDG_DATA_HOME": self.home / "data", "TZ": "UTC"}.items():
            monkeypatch.setenv(name, str(value))
        for name in ("HOLDFAST_DB", "HOLDFAST_USER", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE"):
            monkeypatch.delenv(name, raising=False)
        time.tzset()

    def with_sample(self) -> Cli:
        """Make a database of the demo's conversations the one that is used."""
        self.db.write_bytes(_sample())
        return self.with_database()

    def with_database(self) -> Cli:
        """Name the database by the environment."""
        self.monkeypatch.setenv("HOLDFAST_DB", str(self.db))
        return self

    def run(self, *words: str | Path, code: int = 0) -> Result:
        """Run a command, and check how it ends and that it ends without a traceback."""
        result = CliRunner().invoke(app, [str(word) for word in words], prog_name="holdfast")
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code == code, result.output
        return result

    def text(self, *words: str | Path, code: int = 0) -> str:
        """Run a command and return what it answers, which has no colours because nobody looks at it."""
        result = self.run(*words, code=code)
        assert "\x1b" not in result.stdout
        assert result.stderr == "" or words[0] == "export"
        return result.stdout

    def json(self, *words: str | Path, code: int = 0) -> Any:
        """Run a command with --json and return the one document that it answers."""
        result = self.run(*words, "--json", code=code)
        assert result.stderr == ""
        return json.loads(result.stdout)

    def complaint(self, *words: str | Path, code: int = 1) -> str:
        """Run a command that fails; return what it says, on stderr only and without calls of Python."""
        result = self.run(*words, code=code)
        assert result.stdout == ""
        assert not PYTHON.search(result.stderr)
        return result.stderr

    def execute(self, statement: str, *values: object) -> None:
        """Change the database by SQL, without the library."""
        with closing(sqlite3.connect(self.db)) as connection, connection:
            connection.execute(statement, values)

    def process(self, *words: str | Path, encoding: str = "utf-8") -> subprocess.CompletedProcess[str]:
        """Run a command in a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "holdfast", *map(str, words)],
            capture_output=True,
            text=True,
            encoding=encoding,
            check=False,
            timeout=60,
            env=environment(),
        )


def with_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Name a database that is not there yet."""
    return Cli(tmp_path, monkeypatch).with_database()


def with_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Have a database of the demo's conversations."""
    return Cli(tmp_path, monkeypatch).with_sample()


@cache
def _sample() -> bytes:
    with TemporaryDirectory() as folder, sessions() as path:
        with Memory(file := Path(folder, "memory.db"), agent="coach") as memory:
            import_paths(memory, path)
        return file.read_bytes()


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": PACKAGES, "PYTHONWARNINGS": "error"}


@contextmanager
def running(*words: str | Path, program: str = AS_AT_A_TERMINAL) -> Iterator[subprocess.Popen[str]]:
    """Run a command until the block ends."""
    with subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def lines_until(process: subprocess.Popen[str], *wanted: str) -> list[str]:
    """Read what a command prints until all that is wanted was in some line."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if all(any(one in line for line in lines) for one in wanted):
            return lines
    pytest.fail(f"{wanted!r} are not in {lines}")


def at_terminal(*words: str | Path, reply: str | None = None) -> tuple[int, str, str]:
    """Run a command and answer its questions, a line of the reply each.

    Returns:
        Its exit code, stdout, and what the terminal shows.

    """
    replies = [] if reply is None else reply.split("\n")
    questions = len(replies)
    terminal, its_end = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "holdfast", *words],
        stdin=its_end,
        stdout=subprocess.PIPE,
        stderr=its_end,
        env={**environment(), "TERM": "xterm" if reply is None else "dumb", "COLUMNS": "100"},
        text=True,
    ) as process:
        os.close(its_end)
        shown = b""
        with suppress(OSError):  # which is how a terminal ends
            while part := os.read(terminal, 10_000):
                shown += part
                while replies and shown.count(b"[y/N") + len(replies) > questions:
                    os.write(terminal, f"{replies.pop(0)}\n".encode())
        assert process.stdout is not None
        stdout = process.stdout.read()
    os.close(terminal)
    return process.returncode, stdout, " ".join(shown.decode().split())


def usage(complaint: str) -> str:
    """Take a message out of the frame that typer draws around it."""
    return " ".join(complaint.replace("│", " ").split())
