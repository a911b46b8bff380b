"""Running hooks in tests as clients do: as processes, with JSON on stdin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from holdfast import Memory
from holdfast_cli.hooks import entry, journal
from holdfast_cli.hooks.journal import HookRun

FIXTURES = Path(__file__).parent / "fixtures"
PROCESSES = get_context("forkserver")


@cache
def start_forkserver() -> None:
    """Start the process that hooks are forked from: most of the time of one is that of its imports."""
    PROCESSES.set_forkserver_preload(["__main__", __name__, "loaded_hooks"])
    with pytest.MonkeyPatch.context() as patch:
        # All else that it is told of paths comes after it has imported.
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        ensure_running()


def answer(words: list[str], environment: dict[str, str], folder: Path, streams: list[Path]) -> None:
    """Be the process of a hook, with files as its three streams."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, stream in enumerate(streams):
        os.dup2(os.open(stream, os.O_RDWR), number)
    entry.main(words)


@dataclass
class Hooks:
    """Hooks of someone whose home, state, database and repository are in a folder of this test."""

    folder: Path
    client: str = "claude-code"

    @property
    def shop(self) -> Path:
        shop = self.folder / "shop"
        shop.mkdir(exist_ok=True)
        return shop

    @property
    def db(self) -> Path:
        return self.folder / "memory.db"

    def environment(self, **more: str) -> dict[str, str]:
        left = ("HOLDFAST_", "CLAUDE_", "XDG_", "GIT_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(left)}
        state = str(self.folder / "state")
        own = {"HOME": str(self.folder), "HOLDFAST_STATE": state, "HOLDFAST_DB": str(self.db)}
        # What it answers is tested here, not how fast: a machine may be busy.
        return kept | own | {"HOLDFAST_HOOK_MS": "60000"} | more

    def start(self, event: str, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-P", "-m", "holdfast", "hook", event, "--client", self.client, *words]
        pipe, given = subprocess.PIPE, self.environment(**environment)
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=given, cwd=self.folder)

    def raw(self, event: str, data: bytes, *words: str, **environment: str) -> str:
        """Call a hook, which must end well, with some bytes; return what it wrote."""
        with TemporaryDirectory() as place:
            streams = [Path(place, name) for name in ("stdin", "stdout", "stderr")]
            for stream, written in zip(streams, (data, b"", b""), strict=True):
                stream.write_bytes(written)
            given = [event, "--client", self.client, *words], self.environment(**environment), self.folder
            start_forkserver()
            process = PROCESSES.Process(target=answer, args=(*given, streams))
            process.start()
            process.join()
            assert (process.exitcode, streams[2].read_bytes()) == (0, b"")
            return streams[1].read_text()

    def call(self, event: str, session: str = "s1", **payload: Any) -> str:
        """Call a hook of Claude Code, and wait for what it does in the background."""
        return self.raw(event, self.payload(session, **payload), "--wait")

    def payload(self, session: str = "s1", **payload: Any) -> bytes:
        """Return what Claude Code writes to the stdin of a hook."""
        given = {"session_id": session, "cwd": str(self.shop)}
        return json.dumps(given | {"transcript_path": str(self.transcript(session))} | payload).encode()

    def context(self, event: str, session: str = "s1", **payload: Any) -> str:
        """Call a hook of Claude Code, and return what it shows the model."""
        answer = self.call(event, session, **payload)
        return str(json.loads(answer)["hookSpecificOutput"]["additionalContext"]) if answer else ""

    def transcript(self, session: str = "s1") -> Path:
        return self.folder / f"{session}.jsonl"

    def recorded(self, client: str, name: str) -> dict[str, Any]:
        """Return what a client was recorded to write, with paths of this test."""
        text = (FIXTURES / client / f"{name}.json").read_text()
        home = json.dumps(str(self.folder))[1:-1]
        payload: dict[str, Any] = json.loads(text.replace("/home/ada", home))
        return payload

    def memory(self) -> Memory:
        return Memory(self.db, project=str(self.shop))

    def session_state(self) -> str:
        """Return what is remembered of all sessions, as it is written."""
        return "".join(path.read_text() for path in (self.folder / "state" / "sessions").glob("*.jsonl"))

    def journal(self) -> list[HookRun]:
        before = os.environ.get(journal.STATE)
        os.environ[journal.STATE] = str(self.folder / "state")
        try:
            return journal.read()
        finally:
            del os.environ[journal.STATE]
            if before is not None:
                os.environ[journal.STATE] = before
