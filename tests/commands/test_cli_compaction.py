"""`compact`."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from threading import Event

import pytest
from cli_learning import answering
from cli_runs import Cli, running
from cli_voyage import one_of, tree_of, with_voyage

from holdfast import Memory
from llm_server import Body, Server, completion

cli = pytest.fixture(with_voyage)
SUMMARY = "They logged buoys on the way to Bergen."


def test_compact_gives_an_account(cli: Cli) -> None:
    text = cli.text("compact", "voyage", "--full", "--budget", "800")
    assert text.startswith("Entry 0: the harbour was seen")
    made = re.search(r"Made (\d+) summaries: (\d+) leaves of (\d+) messages and (\d+) condensed\.\n", text)
    assert made is not None
    assert int(made[1]) == int(made[2]) + int(made[4])
    assert re.search(r"\ntokens    2,\d\d\d → \d\d\d, for a window of 800\n", text)
    assert f"\nlevels    {made[1]} deterministic\n" in text
    assert "\nmodel     none: extractive summaries\n" in text
    assert re.search(r"\ntook      \d+\.\d s\n", text)
    assert re.search(r"\nstopped   [A-Z].*\.\n", text)
    assert text.endswith("holdfast tree voyage\n")
    with Memory(cli.db) as memory:
        assert memory.verify().ok
        assert memory.chat("voyage").stats().summarised == int(made[3])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with answering(monkeypatch, lambda _: (200, completion(SUMMARY))) as server:
        yield server


def test_a_model_writes_the_summaries(cli: Cli, server: Server) -> None:
    text = cli.text("compact", "voyage", "--full", "--budget", "800", "--llm", "openai-chat:served")
    calls = len(server.requests)
    asked = re.search(
        r"\nmodel     openai-chat:served, (\d+) calls?, (.*) tokens of prompts, (\d+) of answers\n", text
    )
    assert asked is not None
    assert int(asked[1]) == calls
    assert re.search(r"\nlevels    \d+ normal", text)
    assert "model     openai-chat:served\n" in cli.text("tree", one_of(cli, "leaf")["id"])
    assert SUMMARY in cli.text("tree", "voyage")
    assert "prompt    leaf v1\n" in cli.text("tree", one_of(cli, "leaf")["id"])


@pytest.mark.slow
def test_an_interrupt_leaves_a_valid_tree(cli: Cli, server: Server) -> None:
    reached, over = Event(), Event()

    def reply(_: Body) -> tuple[int, str]:
        if len(server.requests) == 2:
            reached.set()
            assert over.wait(30)
        return 200, completion(f"{SUMMARY} " * 20)

    server.reply = reply
    words = ("compact", "voyage", "--full", "--budget", "800", "--llm", "openai-chat:served")
    with running(*words) as process:
        assert reached.wait(30)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
        over.set()
    assert (process.returncode, stdout) == (130, "")
    assert stderr == (
        "Error: Interrupted. The summaries made until now are kept.\n→ The same command goes on from there.\n"
    )
    assert len(tree_of(cli)) == 1
    assert cli.json("verify")["ok"]
    assert cli.json("compact", "voyage", "--full", "--budget", "800")["noop"] is False
