"""`watch`: real processes that import what is written, are ended, and are killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_runs import AS_AT_A_TERMINAL, Cli, environment

from holdfast import Memory
from transcripts import claude, codex, write_lines

pytestmark = pytest.mark.slow


@contextmanager
def watching(*words: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", AS_AT_A_TERMINAL, "watch", *words, "--every", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], wanted: str) -> list[str]:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if wanted in line:
            return lines
    pytest.fail(f"{wanted!r} is not in {lines}")


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    return Cli(tmp_path, monkeypatch).with_database()


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
    with watching(str(logs)) as process:
        lines = read_until(process, "Looking for what is new")
        put([start(logs), prompt("one")], logs / "rollout.jsonl")
        lines += read_until(process, "1 new message (Codex)")
        put([start(logs), prompt("one"), prompt("two"), "[1]"], logs / "rollout.jsonl")
        lines += read_until(process, "1 × not a JSON object")
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
        with watching(str(logs), "--json", "--no-projects") as process:
            put(lines, logs / "rollout.jsonl")
            if number == 2:
                read_until(process, "rollout.jsonl")
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


def test_sessions_go_into_the_projects_of_their_folders(cli: Cli, logs: Path, tmp_path: Path) -> None:
    write_lines(logs / "rollout.jsonl", [start(tmp_path / "shop"), prompt("one")])
    write_lines(logs / "s1.jsonl", [claude("user", "u", None, "two", cwd=str(tmp_path / "bakery"))])
    write_lines(logs / "talk.jsonl", [{"role": "user", "content": "three"}])
    with watching(str(logs), "--json") as process:
        found = [json.loads(line) for line in read_until(process, "talk.jsonl")]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert [(Path(one["path"]).name, one["added"]) for one in found] == [
        ("rollout.jsonl", 1),
        ("s1.jsonl", 1),
        ("talk.jsonl", 1),
    ]
    assert [one["id"] for one in cli.json("chats")["chats"]] == ["talk"]
    assert [one["project"] for one in cli.json("projects")["projects"]] == [
        str(tmp_path / "bakery"),
        str(tmp_path / "shop"),
    ]
