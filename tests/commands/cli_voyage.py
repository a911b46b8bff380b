"""A chat that is long enough to be compacted, for the tests of summaries at the command line."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Cli

from holdfast import Chat, Memory

BEGIN = datetime(2026, 5, 1, 8, tzinfo=UTC)
TOPICS = ("the harbour", "a ferry", "the lighthouse", "our compass", "the anchor", "a storm", "the crew")


def fill(chat: Chat, messages: int = 60) -> None:
    """Append messages of about 30 tokens, a minute apart."""
    chat.append(
        [
            {
                "role": "assistant" if number % 2 else "user",
                "content": f"Entry {number}: {TOPICS[number % 7]} was seen near buoy {number * 17} "
                f"by {TOPICS[number % 5]}, "
                f"and we decided to log it as item {number} of the voyage to Bergen.",
                "timestamp": (BEGIN + timedelta(minutes=number)).isoformat(),
            }
            for number in range(messages)
        ]
    )


def tree_of(cli: Cli) -> list[dict[str, Any]]:
    summaries: list[dict[str, Any]] = cli.json("tree", "voyage")["summaries"]
    return summaries


def one_of(cli: Cli, kind: str) -> dict[str, Any]:
    return next(one for one in tree_of(cli) if one["kind"] == kind)


def with_voyage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Have a chat of 60 messages, which take more than a window of 800 tokens."""
    cli = Cli(tmp_path, monkeypatch).with_database()
    with Memory(cli.db) as memory:
        fill(memory.chat("voyage"))
    return cli


def compacted(cli: Cli) -> dict[str, Any]:
    """Compact the chat until there are a condensed summary and leaves below it."""
    answer: dict[str, Any] = cli.json("compact", "voyage", "--full", "--budget", "800")
    assert answer["nodes"]
    return answer


def walk(cli: Cli, identity: str, tokens: int) -> Iterator[dict[str, Any]]:
    cursor: tuple[str, ...] = ()
    while True:
        part = cli.json("expand", identity, "--max-tokens", str(tokens), *cursor)
        yield part
        if not part["truncated"]:
            break
        cursor = ("--cursor", part["cursor"])


def reached(cli: Cli, identity: str, tokens: int) -> Iterator[int]:
    """Walk down from a summary to the messages."""
    for part in walk(cli, identity, tokens):
        for child in part["children"]:
            yield from reached(cli, child["id"], tokens)
        yield from (message["seq"] for message in part["messages"])


def assert_all_is_reached(cli: Cli, chat: str, tokens: int) -> None:
    answer = cli.json("tree", chat)
    frontier = sorted(
        (one for one in answer["summaries"] if not one["parent"]), key=lambda one: int(one["first"])
    )
    seen = [seq for one in frontier for seq in reached(cli, one["id"], tokens)]
    assert seen == list(range(1, answer["unsummarised"]["first"]))
