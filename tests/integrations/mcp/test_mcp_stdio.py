from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import IO, Any

import pytest
from blocking import blocking

from holdfast import Memory
from mcp_peers import PATIENCE, Person, client, command, data, over_stdio

pytestmark = pytest.mark.slow  # processes of their own


@pytest.fixture
def db(tmp_path: Path) -> str:
    path = str(tmp_path / "memory.db")
    with Memory(path, user="ada") as memory:
        memory.chat("monday").append(role="user", content="I am training for the Berlin marathon.")
    return path


@contextmanager
def started(arguments: list[str], **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Start a server, and end it when it does not end in time."""
    process = subprocess.Popen(
        arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    timer = Timer(PATIENCE, process.kill)
    timer.start()
    try:
        with process:
            yield process
    finally:
        timer.cancel()


def say(process: subprocess.Popen[str], *messages: object) -> None:
    assert process.stdin is not None
    for one in messages:
        process.stdin.write((one if isinstance(one, str) else json.dumps(one)) + "\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    heard: dict[str, Any] = json.loads(process.stdout.readline())
    assert heard["jsonrpc"] == "2.0"
    return heard


def request(number: int, method: str, **parameters: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}


HELLO = request(
    1,
    "initialize",
    protocolVersion="2025-11-25",
    capabilities={},
    clientInfo={"name": "test", "version": "1"},
)
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def test_its_user_is_the_one_it_was_started_for(db: str) -> None:
    with blocking(client(over_stdio(db, "--user", "bob", "--read-only"), "auto")) as one:
        assert data(one.call_tool("recall", {"query": "marathon"}))["hits"] == []


def test_nothing_but_the_protocol_is_on_stdout(db: str) -> None:
    with started(command(db), PYTHONWARNINGS="always", PYTHONDEVMODE="1") as process:
        say(process, HELLO)
        assert hear(process)["result"]["serverInfo"]["name"] == "holdfast"
        say(
            process,
            READY,
            "this is not JSON",
            "[" * 100_000,
            "a" * 5_000_000,
            "\x00\ufeff\u2028",
            [request(7, "ping")],
            {"jsonrpc": "2.0", "id": 8, "result": {}},
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
            '{"jsonrpc": "2.0", "id": 9, "method": "tools/call", '
            '"params": {"name": "recall", "arg\\ud800": 1}}',
            '{"jsonrpc": "2.0"}',
            "[]",
            '{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": 7}',
            request(3, "tools/call", name="recall", arguments=[1]),
            request(4, "nothing/at-all"),
            request(5, "tools/call", name="recall", arguments={"query": "marathon"}),
            request(6, "resources/read", uri="memory://nothing"),
        )
        found = {heard["id"]: heard for heard in (hear(process) for _ in range(4))}
        output, errors = process.communicate()
    assert output == ""
    assert "Berlin" in str(found[5]["result"])
    assert all("error" in found[number] for number in (3, 4, 6))
    assert "Traceback" not in errors


@pytest.mark.parametrize("options", [[], ["--http", "--port", "0"]], ids=["stdio", "http"])
def test_a_database_that_cannot_be_opened_is_said_on_stderr(tmp_path: Path, options: list[str]) -> None:
    path = tmp_path / "memory.db"
    path.write_text("This is no database. " * 100)
    refused(command(str(path), *options))


def test_a_server_that_is_not_there_is_said_without_its_password() -> None:
    for url in ("postgresql://ada:secret@localhost:1/memory", "mysql://ada:secret@localhost/memory"):
        assert "secret" not in refused(command(url))


def refused(program: list[str], input: str = "", stdout: int | IO[str] = subprocess.PIPE) -> str:
    """Run what must end at once, with nothing on stdout, and give what it says."""
    done = subprocess.run(
        program, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, input=input, check=False
    )
    assert (done.returncode, done.stdout or "") == (1, "")
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_client_that_is_gone_in_the_middle_leaves_whole_records(db: str) -> None:
    with started(command(db)) as process:
        say(process, HELLO, READY)
        hear(process)
        for number in range(2, 40):
            words = {"text": f"Note number {number} about the harbour.", "kind": "insight"}
            say(process, request(number, "tools/call", name="remember", arguments=words))
        assert process.stdout is not None
        process.stdout.close()  # it does not even read the first answer
        assert process.stdin is not None
        process.stdin.close()
        assert process.stderr is not None
        told = process.stderr.read()
        assert told.startswith("Error: The client takes no more answers")
        assert "Traceback" not in told
    assert process.returncode == 1
    with Memory(db, user="ada") as memory:
        assert memory.verify().ok
        records = memory.records(kind="insight")
        assert all(record.text.endswith("about the harbour.") for record in records)
        assert memory.version() == len(records)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no file that is always full")
def test_what_is_full_is_said(db: str) -> None:
    with Path("/dev/full").open("w") as full:
        told = refused(command(db), stdout=full, input=json.dumps(HELLO) + "\n")
    assert told.startswith("Error: The client takes no more answers")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=["interrupt", "termination"])
def test_a_signal_ends_it(db: str, how: signal.Signals) -> None:
    with started(command(db)) as process:
        say(process, HELLO)
        assert hear(process)["id"] == 1
        process.send_signal(how)
        process.wait(PATIENCE)  # though its input is open
        assert process.communicate() == ("", "")
    assert process.returncode == -how


WITHOUT = """
import sys
sys.modules["mcp"] = None
from holdfast_cli.commands import main
sys.argv = ["holdfast", "mcp", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize("options", [[], ["--http"]])
def test_without_the_sdk_it_names_the_extra(db: str, options: list[str]) -> None:
    assert "pip install '.[mcp]'" in refused([sys.executable, "-c", WITHOUT, "--db", db, *options])


def test_it_serves_postgresql(postgres_url: str) -> None:
    with blocking(client(over_stdio(postgres_url), "auto", Person())) as one:
        fact = data(one.call_tool("remember", {"text": "She drinks tea."}))
        assert data(one.call_tool("recall", {"query": "tea"}))["hits"]
        assert data(one.call_tool("forget", {"id": fact["id"]}))["did"] == "retract"
    with Memory(postgres_url, user="ada") as memory:
        assert [change.action for change in memory.changes()] == ["retract", "add"]
