"""How long a coding agent waits for each hook: real processes, from exec to the end, beside bare Python."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.clock import Cost, high, middle
from benchmarks.footprint import start
from benchmarks.measurement import Measurement, SpeedLab, at_most, compared, figures, fill, measured, table
from benchmarks.report import Report
from benchmarks.words import Words
from holdfast import Memory

SIZES = (10_000, 100_000)
ROUNDS = 30
_PROMPT = 110  # ms
# Milliseconds within which a client is to have its answer; None for what nobody waits for.
TARGETS: dict[str, int | None] = {
    "session start": 300,
    "session start, after a compaction": 300,
    "prompt": _PROMPT,
    "prompt, small talk": 150,
    "before compaction": 500,
    "session end": 200,
    "stop": None,
    "stop, with the import of 20 lines": None,
}
_NEW = 20  # lines that a transcript has grown by at a stop
_BARE = "bare Python"


class Session:
    """A project with a database of so many messages, and a session of Claude Code in it."""

    def __init__(self, folder: Path, size: int) -> None:
        self._folder, self._lines, self._calls = folder, 0, 0
        self._project = folder / "shop"
        self._project.mkdir()
        self._words = Words()
        self._environment = {name: text for name, text in os.environ.items() if "HOLDFAST" not in name}
        # The installed program has its bytecode beside it, and so shall this one.
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        own = {"HOLDFAST_DB": "memory.db", "HOLDFAST_STATE": "state"}
        self._environment |= {name: str(folder / file) for name, file in own.items()}
        # All of it is measured, however long it takes.
        self._environment["HOLDFAST_HOOK_MS"] = "60000"
        self._fill(size)
        self._questions = self._words.questions(64)
        self.grow(200)
        self.call("before-compaction", "--wait", trigger="auto")

    def _fill(self, size: int) -> None:
        with Memory(self._folder / "memory.db", project=str(self._project), durability="normal") as memory:
            fill(memory, self._words, size)
            for number, text in enumerate(self._words.messages(60)):
                memory.remember(text[:200], kind="fact", target="env", merge=False)
                if number < 20:
                    memory.remember(text[:120], kind="constraint", by="user")
                    memory.remember(text[:400], kind="episode", chat=f"chat-{number}")
            # Freezes the index, as the first recall of an installation does.
            memory.recall("first")

    def grow(self, lines: int = _NEW) -> None:
        """Let the transcript grow by some lines."""
        with (self._folder / "s1.jsonl").open("a") as file:
            for text in self._words.messages(lines, stream=self._lines + 1):
                role, before = ("user", "assistant")[self._lines % 2], self._lines - 1
                line = {
                    "type": role,
                    "uuid": f"u{self._lines}",
                    "parentUuid": f"u{before}" if before >= 0 else None,
                    "sessionId": "s1",
                    "timestamp": "2026-01-06T09:15:59.901Z",
                    "message": {"role": role, "content": text},
                }
                file.write(f"{json.dumps(line)}\n")
                self._lines += 1

    def call(self, event: str, *words: str, **payload: str) -> Cost:
        """Call a hook, and return what it took from exec to its end."""
        transcript = str(self._folder / "s1.jsonl")
        given = {"session_id": "s1", "cwd": str(self._project), "transcript_path": transcript}
        command = ["-P", "-m", "holdfast", "hook", event, "--client", "claude-code", *words]
        return start(command, self._environment, json.dumps(given | payload))

    def bare(self) -> Cost:
        """Start Python, and do nothing."""
        return start(["-P", "-c", "pass"], self._environment)

    def prompt(self) -> Cost:
        """Submit a prompt that is not small talk, another one each time."""
        self._calls += 1
        return self.call("prompt", prompt=self._questions[self._calls % len(self._questions)])

    def stop_with_import(self) -> Cost:
        """Import what a turn has added."""
        self.grow()
        return self.call("stop", "--wait")

    def before_compaction(self) -> Cost:
        """Import what a turn has added while the client waits."""
        self.grow()
        return self.call("before-compaction")

    def contenders(self) -> dict[str, Callable[[], Cost]]:
        """Return what is measured, by name."""
        return {
            _BARE: self.bare,
            "session start": lambda: self.call("session-start", source="startup"),
            "session start, after a compaction": lambda: self.call("session-start", source="compact"),
            "prompt": self.prompt,
            "prompt, small talk": lambda: self.call("prompt", prompt="ok, go on"),
            "before compaction": self.before_compaction,
            "session end": lambda: self.call("session-end", reason="other"),
            "stop": lambda: self.call("stop"),
            "stop, with the import of 20 lines": self.stop_with_import,
        }


def prompting(lab: SpeedLab) -> Iterator[Measurement]:
    """Submit prompts, in turns with bare Python."""
    size = lab.usual()
    lab.progress(f"calling hooks, {size:,} messages")
    with TemporaryDirectory(dir=lab.folder) as place:
        session = Session(Path(place), size)
        ours, bare = zip(
            *((session.prompt(), session.bare()) for _ in range(lab.plan.starts + 1)), strict=True
        )
    cost = middle(ours[1:])
    title = f"prompt hook to its answer, {size:,}, wall"
    yield compared(title, cost, _BARE, middle(bare[1:]), clock="wall", bar=at_most(cost.wall, _PROMPT, "ms"))


def run(
    *,
    sizes: Sequence[int] | None = None,
    rounds: int = ROUNDS,
    folder: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Measure every event at each size, in turns with bare Python."""
    done: list[Measurement] = []
    for size in sizes or SIZES:
        progress(f"{size:,} messages")
        with TemporaryDirectory(dir=folder) as place:
            contenders = Session(Path(place), size).contenders()
            costs: dict[str, list[Cost]] = {name: [] for name in contenders}
            for _ in range(rounds):
                for name, call in contenders.items():
                    costs[name].append(call())
        for name, some in costs.items():
            half, limit = middle(some), TARGETS.get(name)
            bar = None if limit is None else at_most(half.wall, limit, "ms of wall time")
            title, bare = f"{name}, {size:,} messages", middle(costs[_BARE])
            typical = compared(f"{title}, p50", half, _BARE, bare, clock="wall", bar=bar)
            done += [typical, measured(f"{title}, p95", high(some))]
    return Report(figures(done), (table("Hooks", done),))
