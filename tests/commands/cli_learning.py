"""What the tests of learning at the command line share: a chat to learn from, and a model that answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cli_runs import Cli

from holdfast import Memory
from llm_server import Body, Server, completion, prompt_of

BEGIN = datetime(2026, 5, 1, 8, tzinfo=UTC)
SAID = (
    ("user", "We decided to use PostgreSQL for the delivery queue because it can skip locked rows."),
    ("assistant", "Good. I will write the migration in db/queue.sql and test it with ten workers."),
    ("user", "Remember that the deploy of the queue happens every Tuesday at ten in the morning."),
    ("assistant", "Noted: the deploy is on Tuesdays, and the queue goes out with it from now on."),
    ("user", "Important: never restart the broker by hand while deliveries are still in the queue."),
)
OBSERVED = "The delivery queue of the shop runs on PostgreSQL, which can skip locked rows."
PROFILE = "The deploy of the queue happens every Tuesday at ten in the morning."
EPISODE = "The delivery queue was moved to PostgreSQL, with a migration in db/queue.sql."
MODEL = ("--llm", "openai-chat:served")


def tell(memory: Memory, chat: str = "queue", at: datetime | None = None) -> None:
    """Append a session of three turns that tells some decisions."""
    begin = at or BEGIN
    memory.chat(chat).append(
        [
            {"role": role, "content": text, "timestamp": (begin + timedelta(minutes=minute)).isoformat()}
            for minute, (role, text) in enumerate(SAID)
        ]
    )


def answered(body: Body) -> tuple[int, str]:
    """Answer each question of a worker with something that it asks for."""
    return 200, completion(json.dumps(_answer(prompt_of(body))), tokens=(100, 20))


def _answer(prompt: str) -> dict[str, object]:
    told = {"summary": EPISODE, "files": ["db/queue.sql"], "decisions": [], "outcome": "It works."}
    found = {"text": OBSERVED, "messages": [1, 1], "quote": "use PostgreSQL"}
    quote = "the deploy of the queue happens every Tuesday"
    change = {"text": PROFILE, "messages": [3, 3], "quote": quote, "replaces": ""}
    parts: dict[str, object] = {"findings": [found], "episode": told, "profile": [change]}
    asked = {name: part for name, part in parts.items() if f'"{name}"' in prompt}
    return asked or ({"episodes": [1]} if '"episodes"' in prompt else {"changes": []})


def texts(cli: Cli, kind: str) -> list[str]:
    return [one["text"] for one in cli.json("records", "--kind", kind)["records"]]


def with_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Have a chat that ended long ago."""
    cli = Cli(tmp_path, monkeypatch).with_database()
    with Memory(cli.db) as memory:
        tell(memory)
    return cli


@contextmanager
def answering(
    monkeypatch: pytest.MonkeyPatch, reply: Callable[[Body], tuple[int, str]] = answered
) -> Iterator[Server]:
    """Serve a model, `openai-chat:served`."""
    with Server(reply) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Have a model that answers what a worker asks."""
    with answering(monkeypatch) as server:
        yield server
