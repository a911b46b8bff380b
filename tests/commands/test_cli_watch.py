"""`watch`: real processes that import what is written, are ended, and are killed."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from cli_runs import Cli, lines_until, running, with_database

from holdfast import Memory
from transcripts import codex, write_lines

pytestmark = pytest.mark.slow


cli = pytest.fixture(with_database)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs"


def put(lines: list[object], path: Path) -> None:
    """Write a file that is whole whenever it is looked at."""
    write_lines(path.parents[1] / "written", lines).replace(path)


def prompt(text: str) -> dict[str, object]:
    content = [{"type": "input_text", "text": text}]
    return codex("response_item", type="message", role="user", content=content, id=text)


def start(folder: Path) -> dict[str, object]:
    return codex("session_meta", id="s1", cwd=str(folder))


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_watch_prints_a_line_an_import_and_ends_by_a_signal(
    cli: Cli, logs: Path, ending: signal.Signals
) -> None:
    with running("watch", logs, "--every", "1") as process:
        lines = lines_until(process, "Looking for what is new")
        put([start(logs), prompt("one")], logs / "rollout.jsonl")
        lines += lines_until(process, "1 new message (Codex)")
        put([start(logs), prompt("one"), prompt("two"), "[1]"], logs / "rollout.jsonl")
        lines += lines_until(process, "1 × not a JSON object")
        process.send_signal(ending)
        _, stderr = process.communicate(timeout=30)
    assert (process.returncode, stderr) == (130, "Stopped watching. What was imported until now is kept.\n")
    assert lines[0] == "Looking for what is new every 1 s. Ctrl-C ends it.\n"
    path = str(logs / "rollout.jsonl")
    assert [line.partition(" ")[2] for line in lines[1:]] == [
        f"{path}: 1 new message (Codex)\n",
        f"{path}: 1 new message (Codex); 1 × not a JSON object\n",
    ]


def test_a_watch_that_was_killed_loses_and_repeats_nothing(cli: Cli, logs: Path) -> None:
    for number in range(3):
        lines: list[object] = [start(logs), *(prompt(f"{n}") for n in range(2_000 * (number + 1)))]
        with running("watch", logs, "--every", "1", "--json", "--no-projects") as process:
            put(lines, logs / "rollout.jsonl")
            if number == 2:
                lines_until(process, "rollout.jsonl")
            else:
                with Memory(cli.db) as memory:
                    while memory.chat("s1").stats().messages <= 2_000 * number:
                        assert process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=30)
    with Memory(cli.db) as memory:
        history = memory.chat("s1").history()
        assert memory.verify().ok
    assert [message.content for message in history] == [f"{n}" for n in range(6_000)]
