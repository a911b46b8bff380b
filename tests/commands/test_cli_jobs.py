"""`chats end`, `learn jobs` and `learn usage`."""

from __future__ import annotations

import re

import pytest
from cli_learning import MODEL, served, with_queue
from cli_runs import Cli

from llm_server import Server, completion

cli, server = pytest.fixture(with_queue), pytest.fixture(served)


def test_end_leaves_jobs(cli: Cli) -> None:
    text = cli.text("chats", "end", "queue")
    assert text.startswith("We decided to use PostgreSQL")
    assert "\nQueued 2 jobs: observe:queue, episode:queue.\n" in text
    assert "\n→ Run them, with a model by --llm NAME: holdfast work" in text
    answer = cli.json("chats", "end", "queue")
    assert set(answer) == {"chat", "title", "jobs"}
    assert {job["status"] for job in answer["jobs"]} == {"open"}
    lines = cli.text("learn", "jobs").splitlines()
    assert lines[0].split() == ["id", "about", "status", "when", "failures"]
    assert re.match(r"observe:queue  We decided to .*…  open    due 20\d\d-.*  0$", lines[1])
    assert lines[-1] == "→ Run what is due: holdfast work"


def test_spend(cli: Cli, server: Server) -> None:
    assert cli.text("learn", "usage") == "No calls of models.\n"
    cli.text("learn", "extract", "--chat", "queue", *MODEL)
    server.reply = lambda _: (200, completion("no JSON at all", tokens=None))
    cli.run("learn", "extract", "--chat", "queue", "--messages", "1", *MODEL, code=1)
    text = cli.text("learn", "usage")
    head, first = text.splitlines()[:2]
    assert head.split() == ["purpose", "model", "outcome", "calls", "prompts", "answers", "seconds"]
    assert re.match(r"observe  openai-chat:served  answered +3 +[\d,]+ +2\d +\d+\.\d$", first)
    assert re.search(r"\nTotal: 3 calls, [\d,]+ tokens of prompts, 2\d of answers, \d+\.\d s\.\n", text)
    assert text.endswith("The provider counted the tokens of 1 of them; the others are estimated.\n")
    answer = cli.json("learn", "usage", "--since", "24h")
    assert (answer["calls"], answer["counted"], len(answer["lines"])) == (3, 1, 1)
    assert answer["since"]
    cli.execute("UPDATE spend SET outcome = 'asked' WHERE counted = 0")
    assert cli.text("learn", "usage").endswith(
        "\nasked: running, or killed; counted with the most that their answers may take.\n"
    )
    assert cli.text("learn", "usage", "--user", "bob") == "No calls of models for user 'bob'.\n"
