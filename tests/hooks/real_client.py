"""The real Claude Code, from the package of its SDK, with a home of its own and a scripted model."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Timer
from time import monotonic
from typing import Any

import psutil
import pytest

from anthropic_server import Model
from holdfast import Memory
from holdfast_cli.hooks.project import open_memory, project_of

CHECKOUT = Path(__file__).parents[2]
PACKAGES = os.pathsep.join((str(CHECKOUT / "src"), str(CHECKOUT / "cli" / "src")))
_SECONDS = 120  # that anything may take on a machine that is busy


def program() -> Path:
    """Return the program of the client; without it the test is skipped, and fails in CI."""
    found = find_spec("claude_agent_sdk")
    places = found.submodule_search_locations if found else None
    path = Path(places[0]) / "_bundled" / "claude" if places else None
    if path is not None and path.is_file():
        return path
    reason = "Claude Code is not here: pip install claude-agent-sdk, as `pip install .[claude]` does."
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


class ClaudeCode:
    """Sessions of the client in one project; `model` is who answers them."""

    def __init__(self, home: Path, model: Model) -> None:
        self.program, self.home, self.model = program(), home, model
        self.config, self.project = home / ".claude", home / "shop"
        self.db, self.state = home / "memory.db", home / "state"
        self.config.mkdir(parents=True)
        self.project.mkdir()

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a person who has nothing but this client."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "PYTHONPATH": PACKAGES,
            "CLAUDE_CONFIG_DIR": str(self.config),
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_TELEMETRY": "1",
            "HOLDFAST_DB": str(self.db),
            "HOLDFAST_STATE": str(self.state),
            # How fast hooks are is measured elsewhere; here they shall end on any machine.
            "HOLDFAST_HOOK_MS": "30000",
        }

    def install(self) -> None:
        """Install the hooks, the tools and the skill for the user, as a person does who is patient."""
        self.run("install", "claude-code", "--yes")
        settings = self.config / "settings.json"
        settings.write_text(re.sub(r'"timeout": \d+', '"timeout": 60', settings.read_text("utf-8")))

    def run(self, *words: str) -> None:
        """Run a command of Holdfast in the project."""
        done = self._holdfast(*words)
        assert done.returncode == 0, done.stderr

    def start(self, prompt: str, *, session: str = "", resume: str = "") -> subprocess.Popen[str]:
        """Start a session that has one prompt, or go on with an earlier one."""
        which = ["--resume", resume] if resume else ["--session-id", session or str(uuid.uuid4())]
        return self._start("-p", prompt, *which, "--output-format", "json", stdin=subprocess.DEVNULL)

    def _start(self, *words: str, stdin: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.program, *words],
            cwd=self.project,
            env=self.environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ask(self, prompt: str, *, session: str = "", resume: str = "") -> str:
        """Submit one prompt, and return the id of the session, which has ended then."""
        return self.ended(self.start(prompt, session=session, resume=resume))

    def talk(self, *prompts: str, resume: str = "") -> str:
        """Submit prompts one after the other in one session that stays alive, and return its id."""
        which = ["--resume", resume] if resume else ["--session-id", str(uuid.uuid4())]
        modes = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        process = self._start("-p", *modes, *which, stdin=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        watch = Timer(_SECONDS, process.kill)
        watch.start()
        try:
            for prompt in prompts:
                said = {"type": "user", "message": {"role": "user", "content": prompt}}
                process.stdin.write(f"{json.dumps(said)}\n")
                process.stdin.flush()
                result = next(row for line in process.stdout if (row := json.loads(line))["type"] == "result")
                assert not result["is_error"], result
            _, errors = process.communicate()
        finally:
            watch.cancel()
        assert (process.returncode, errors) == (0, "")
        return str(result["session_id"])

    def ended(self, process: subprocess.Popen[str]) -> str:
        """Wait for the end of a session, and return its id."""
        output, errors = process.communicate(timeout=_SECONDS)
        assert process.returncode == 0, output + errors
        assert errors == ""
        result: dict[str, Any] = json.loads(output)
        assert not result["is_error"], result
        return str(result["session_id"])

    def transcript(self, session: str) -> list[dict[str, Any]]:
        """Return the rows of the transcript of a session."""
        (file,) = (self.config / "projects").glob(f"*/{session}.jsonl")
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()]

    def _holdfast(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "holdfast", *words],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )

    def memory(self) -> Memory:
        """Open the memory that the hooks of the project write to."""
        return open_memory(project_of(self.project).name, str(self.db))

    def said(self, session: str) -> list[str]:
        """Return what is stored of a session."""
        if not self.db.exists():
            return []
        with self.memory() as memory:
            return [message.content for message in memory.chat(session).history()]

    def summaries(self, session: str) -> list[str]:
        """Return the texts of the summary tree of a session."""
        with self.memory() as memory:
            return [summary.text for summary in memory.chat(session).tree()]

    def wait_for(self, session: str, *words: str) -> list[str]:
        """Wait until all words are stored in a session, as hooks import after they answered, and all is done.

        Who asks while another process writes is told nothing, so as not to wait.
        """
        until(self._at_work, lambda working: not working)
        return until(
            lambda: self.said(session), lambda said: all(any(word in text for text in said) for word in words)
        )

    def _at_work(self) -> list[str]:
        """Return the commands of the hooks that run."""
        running = (process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"]))
        return [" ".join(words) for words in running if "hook" in words and str(self.db) in words]


def until(read: Callable[[], list[str]], is_enough: Callable[[list[str]], bool]) -> list[str]:
    """Read again and again until it is enough."""
    end, never = monotonic() + _SECONDS, Event()
    while not is_enough(found := read()):
        assert monotonic() < end, found
        never.wait(0.05)
    return found
