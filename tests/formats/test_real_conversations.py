"""What the importers make of conversations that nobody wrote for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast import Memory
from holdfast_cli.formats.importing import import_paths
from transcripts import Json

pytestmark = pytest.mark.slow


def jsonl_files(shared_data: Path) -> list[Path]:
    """List the conversations; beside them are questions to ask of them."""
    return sorted(path for path in shared_data.rglob("*.jsonl") if path.name != "questions.jsonl")


def test_every_line_is_imported_or_accounted_for(shared_data: Path) -> None:
    paths = jsonl_files(shared_data)
    assert len(paths) == 10
    for path in paths:
        with path.open("rb") as file:
            entries = [json.loads(line) for line in file]
        expected = sum(len(entry["messages"]) if "messages" in entry else 1 for entry in entries)
        with Memory(":memory:") as memory:
            report = import_paths(memory, path)
            assert report.added + sum(skipped.count for skipped in report.skipped) == expected
            assert (report.present, report.problems, memory.verify().problems) == (0, (), ())
            stored = [
                message.raw for chat in chats_of(entries, path) for message in memory.chat(chat).history()
            ]
        originals = [message for entry in entries for message in entry.get("messages", [entry])]
        assert stored == [
            raw for raw in originals if raw.get("type") not in {"file-history-snapshot", "system"}
        ]


def chats_of(entries: list[Json], path: Path) -> list[str]:
    """Name the chats that a file must have given, in its order."""
    ids = [
        entry.get("sessionId") or entry["id"]
        for entry in entries
        if "sessionId" in entry or "messages" in entry
    ]
    return list(dict.fromkeys(ids)) or [path.stem]
