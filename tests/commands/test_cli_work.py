"""`work`: due jobs, dry runs, failures, and the watch."""

from __future__ import annotations

import json
import re
import signal
from threading import Event

import pytest
from cli_learning import (
    MODEL,
    OBSERVED,
    PROFILE,
    answered,
    served,
    tell,
    with_queue,
)
from cli_runs import Cli, lines_until, running

from holdfast import Memory, Unavailable, WorkResult
from holdfast_cli.commands.work import look
from llm_server import Body, Server, refusal

cli, server = pytest.fixture(with_queue), pytest.fixture(served)


def test_work_without_a_model(cli: Cli) -> None:
    text = cli.text("work")
    head, account = text.split("\n\n")
    lines = head.splitlines()
    assert lines[0].startswith("observe  We decided to use PostgreSQL")
    assert lines[0].endswith("  (queue)")
    assert lines[1].startswith("    + insight  We decided to use PostgreSQL for the delivery queue")
    assert re.fullmatch(r"episode  We decided .*  \(queue\)", lines[-3])
    assert lines[-1].startswith("    + episode  ")
    assert re.match(r"jobs      2 done\nlearned   \d records\nmodel     none\ntook      \d+\.\d s\n", account)
    assert cli.json("work")["noop"] is True
    with Memory(cli.db) as memory:
        assert memory.verify().ok
        tell(memory, "later")
    assert cli.json("work", "--dry-run")["dry_run"] is True
    assert [job["kind"] for job in cli.json("work", "--limit", "1")["done"]] == ["observe"]
    done = cli.json("work")
    assert set(done) == {
        "noop", "done", "postponed", "failed", "records", "dropped", "notes", "calls", "prompt_tokens",
        "answer_tokens",
        "seconds", "waiting", "why", "dry_run",
    }  # fmt: skip
    assert [job["kind"] for job in done["done"]] == ["episode"]
    assert (done["noop"], done["calls"], done["failed"]) == (False, 0, [])


def test_work_with_a_model_says_what_it_took(cli: Cli, server: Server) -> None:
    text = cli.text("work", *MODEL)
    calls = len(server.requests)
    assert calls == 1, "one question about the session"
    assert f"    + finding  {OBSERVED}" in text
    assert f"    + profile  {PROFILE}" in text
    tokens = f"{100 * calls:,} tokens of prompts, {20 * calls:,} of answers"
    assert f"\nmodel     openai-chat:served, 1 call, {tokens}\n" in text


def test_work_for_everyone(cli: Cli) -> None:
    for user in ("ada", "bob"):
        with Memory(cli.db, user=user) as memory:
            tell(memory)
    text = cli.text("work", "--everyone")
    assert text.startswith("observe  (queue)  for 3 users\nepisode  (queue)  for 3 users\n")
    assert text.count("    + episode  ") == 3
    assert "\njobs      6 done\n" in text
    assert "Nothing is due" in cli.text("work", "--user", "ada")


def test_a_job_that_fails_says_why_and_how_to_retry(cli: Cli, server: Server) -> None:
    server.reply = lambda _: (401, refusal("invalid_api_key", "sk-secret is wrong"))
    text = cli.text("work", *MODEL)  # the other jobs are not even begun
    assert re.search(r"^observe  .*  \(queue\)  retried from 20\d\d-.* on\n    The model", text)
    assert "was refused access by its provider" in text
    assert "secret" not in text
    assert "jobs      1 to be retried\n" in text
    assert re.search(
        r"\nStopped: the provider of the model does not accept the key\.\n"
        r"→ Mend it, then go on: holdfast work --llm openai-chat:served\n",
        text,
    )
    assert re.search(r"\nLeft: .*1 job waits until \d\d:\d\d\.\n$", text)
    assert len(server.requests) == 1
    text = cli.text("learn", "jobs")
    assert re.search(
        r"^observe:queue +We decided .* +open +due 20\d\d-.* +1 call, [\d,]+ tokens$", text, re.MULTILINE
    )
    assert "\nobserve:queue: The model openai-chat:served was refused access by its provider" in text
    assert cli.text("learn", "jobs", "--retry", "observe:queue") == (
        "Reopened: observe:queue\n→ Run it: holdfast work --llm NAME\n"
    )
    server.reply = answered
    assert f"+ finding  {OBSERVED}" in cli.text("work", *MODEL)


INTERRUPTED = "Stopped looking for work. What was learned until now is kept.\n"


@pytest.mark.slow
def test_a_watch_does_what_comes_later_and_says_so_in_a_line_each(cli: Cli) -> None:
    with running("work", "--watch", "--every", "1", "--json") as process:
        lines = lines_until(process, '"id":"observe:queue"', '"id":"episode:queue"')
        with Memory(cli.db) as memory:
            tell(memory, "later")
        # A look that began before the append may see it for one kind only, the next sees it for the other.
        lines += lines_until(process, '"id":"observe:later"', '"id":"episode:later"')
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 130
    kinds = [json.loads(line)["done"][0]["kind"] for line in lines]
    assert sorted(kinds[:2]) == sorted(kinds[2:]) == ["episode", "observe"]


@pytest.mark.slow
def test_a_signal_gives_the_running_job_back(cli: Cli, server: Server) -> None:
    asked, over = Event(), Event()

    def reply(body: Body) -> tuple[int, str]:
        asked.set()
        assert over.wait(30)
        return answered(body)

    server.reply = reply
    with running("work", "--watch", "--every", "3600", *MODEL) as process:
        (line,) = lines_until(process, "Looking for work")
        assert asked.wait(30)
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=30)
        over.set()
    assert line == "Looking for work every 3,600 s. Ctrl-C ends it.\n"
    assert (process.returncode, stderr) == (130, INTERRUPTED)
    (job,) = [job for job in cli.json("learn", "jobs")["jobs"] if job["id"] == "observe:queue"]
    assert (job["status"], job["attempts"]) == ("open", 0)
    assert f"+ finding  {OBSERVED}" in cli.text("work", *MODEL)


def test_a_watch_survives_a_database_that_is_away(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[WorkResult] = []

    def away() -> list[WorkResult]:
        raise Unavailable("The server is away.", "Start it.")

    def idle() -> list[WorkResult]:
        return [WorkResult()]

    look(away, shown.append, 30)
    assert capsys.readouterr().err == ("Error: The server is away.\n→ Start it. It is tried again in 30 s.\n")
    look(idle, shown.append, 30)
    assert [done.noop for done in shown] == [True]
