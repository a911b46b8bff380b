from __future__ import annotations

import io
import json
import logging
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import pytest
from cli_runs import Cli, environment, usage

from holdfast import Job, Learning, Memory, Record, Unavailable, WorkResult
from holdfast.cli.options import Options
from holdfast.cli.render.outcomes import quiet, show_work
from holdfast.cli.render.screen import Screen, when
from holdfast.cli.work import look
from llm_server import Body, Server, completion, prompt_of, refusal

BEGIN = datetime(2026, 5, 1, 8, tzinfo=UTC)
SAID = (
    ("user", "We decided to use PostgreSQL for the delivery queue because it can skip locked rows."),
    ("assistant", "Good. I will write the migration in db/queue.sql and test it with ten workers."),
    ("user", "Remember that the deploy of the queue happens every Tuesday at ten in the morning."),
    ("assistant", "Noted: the deploy is on Tuesdays, and the queue goes out with it from now on."),
    ("user", "Important: never restart the broker by hand while deliveries are still in the queue."),
)
OBSERVED = "The delivery queue of the shop runs on PostgreSQL, which can skip locked rows."
PROFILE = "The user runs the delivery queue of a shop and deploys it every Tuesday at ten."
EPISODE = "The delivery queue was moved to PostgreSQL, with a migration in db/queue.sql."
MODEL = ("--llm", "openai-chat:served")
FORBIDDEN = {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160), 0x202E)}
HOSTILE = "\x1b]0;owned\x07\x1b[31mred\x1b[0m \u202egnp.exe\n→ Run: curl evil"


def tell(memory: Memory, chat: str = "queue", at: datetime | None = None) -> None:
    """Append a session of three turns that tells some decisions."""
    begin = at or BEGIN
    memory.chat(chat).append(
        [
            {"role": role, "content": text, "timestamp": (begin + timedelta(minutes=minute)).isoformat()}
            for minute, (role, text) in enumerate(SAID)
        ]
    )


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Have a session that ended long ago."""
    cli = Cli(tmp_path, monkeypatch).with_database()
    with Memory(cli.db) as memory:
        tell(memory)
    return cli


def answered(body: Body) -> tuple[int, str]:
    """Answer each question of a worker with something that it asks for."""
    return 200, completion(json.dumps(_answer(prompt_of(body))), tokens=(100, 20))


def _answer(prompt: str) -> dict[str, object]:
    if '"findings"' in prompt:
        return {"findings": [{"text": OBSERVED, "messages": [1, 1], "quote": "use PostgreSQL"}]}
    if '"summary"' in prompt:
        return {"summary": EPISODE, "files": ["db/queue.sql"], "decisions": [], "outcome": "It works."}
    if '"verdicts"' in prompt:
        return {"verdicts": [{"pair": 1, "verdict": "both", "why": "they are about two things"}]}
    if '"profile"' in prompt:
        quotes = ["use PostgreSQL"]
        return {"profile": PROFILE, "profile_quotes": quotes, "observations": [], "why": "the user said so"}
    return {"episodes": [1]} if '"episodes"' in prompt else {"changes": []}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server(answered) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def texts(cli: Cli, kind: str) -> list[str]:
    return [one["text"] for one in cli.json("records", "--kind", kind)["records"]]


# work


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


def test_work_says_when_nothing_is_due(cli: Cli) -> None:
    text = cli.text("work", "--user", "bob")
    assert text == (
        "Nothing is due for user 'bob'.\n"
        "→ A chat is learned from when it has been silent for a while, or after: holdfast chats end CHAT --user bob\n"
    )


def test_work_as_json(cli: Cli) -> None:
    done = cli.json("work")
    assert set(done) == {
        "noop", "done", "postponed", "failed", "records", "dropped", "notes", "calls", "prompt_tokens", "answer_tokens",
        "seconds", "waiting", "why", "dry_run",
    }  # fmt: skip
    assert [job["kind"] for job in done["done"]] == ["observe", "episode"]
    assert (done["noop"], done["calls"], done["failed"]) == (False, 0, [])


def test_work_with_a_model_says_what_it_took(cli: Cli, server: Server) -> None:
    text = cli.text("work", *MODEL)
    calls = len(server.requests)
    assert calls >= 3
    assert f"    + finding  {OBSERVED}" in text
    assert "\nreflect\n    chat queue: " in text
    assert f"    + profile  {PROFILE}" in text
    tokens = f"{100 * calls:,} tokens of prompts, {20 * calls:,} of answers"
    assert f"\nmodel     openai-chat:served, {calls} calls, {tokens}\n" in text


def test_work_stops_at_its_limit_and_says_how_to_go_on(cli: Cli) -> None:
    text = cli.text("work", "--limit", "1")
    assert "\njobs      1 done\n" in text
    assert "episode" not in text
    assert text.endswith(
        "Left: 1 job is due; 1 job needs a model.\n→ Go on: holdfast work\n→ Name a model: holdfast work --llm NAME\n"
    )
    assert "\njobs      1 done\n" in cli.text("work", "--limit", "1")
    assert texts(cli, "episode")


def test_work_says_what_waits_for_a_model(cli: Cli, server: Server) -> None:
    text = cli.text("work")
    (judged,) = cli.json("learn", "jobs")["jobs"]  # whether two of what it learned say the same
    assert judged["kind"] == "judge"
    ending = "1 job needs a model.\n→ Name a model: holdfast work --llm NAME\n"
    assert text.endswith(f"Left: {ending}")
    assert cli.text("work") == f"Nothing is due: {ending}"
    assert cli.text("learn", "jobs").endswith("→ Run what is due: holdfast work --llm NAME\n")
    assert cli.text("work", *MODEL).startswith("judge  1 pair of records\n")


def test_a_dry_run_asks_nothing_and_writes_nothing(cli: Cli, server: Server) -> None:
    text = cli.text("work", "--dry-run", *MODEL)
    assert re.search(r"^observe  .*  \(queue\)\n    1 calls?, [\d,]+ tokens of prompts$", text, re.MULTILINE)
    assert re.search(
        r"\nIt would ask openai-chat:served \d times: [\d,]+ tokens of prompts, and about [\d,]+ of answers\.\n",
        text,
    )
    assert text.endswith("→ Run it: holdfast work --llm openai-chat:served\n")
    assert server.requests == []
    assert cli.json("learn", "jobs") == {"jobs": [], "more": False}
    found = cli.json("work", "--dry-run", *MODEL)
    assert (found["dry_run"], found["calls"] >= 2, found["records"]) == (True, True, [])
    assert "Without a model nothing would be asked.\n" in cli.text("work", "--dry-run")
    assert "Nothing is due" in cli.text("work", "--dry-run", "--user", "bob")


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
        r"\nStopped: the provider of the model does not accept the key\.\n→ Mend it, then go on: holdfast work --llm openai-chat:served\n",
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


def test_a_failure_for_good_is_in_the_exit_code(cli: Cli, server: Server) -> None:
    server.reply = lambda _: (200, completion("no JSON at all"))
    for _ in range(Learning().attempts - 1):
        cli.text("work", "--limit", "1", *MODEL)
        with sqlite3.connect(cli.db) as connection:
            connection.execute("UPDATE jobs SET due = 1 WHERE status = 'open' AND attempts > 0")
        connection.close()
    text = cli.text("work", "--limit", "1", *MODEL, code=1)
    assert "  failed after 5 attempts\n" in text
    assert "    → Retry it: holdfast learn jobs --retry observe:queue\n" in text
    assert [job["id"] for job in cli.json("learn", "jobs", "--status", "failed")["jobs"]] == ["observe:queue"]
    text = cli.text("learn", "jobs", "--status", "failed")
    row, error, hint = text.splitlines()[1:]
    assert re.match(r"observe:queue .* failed +20\d\d-\d\d-\d\d \d\d:\d\d +5 +10 calls, ", row)
    assert error.startswith(
        "observe:queue: The model openai-chat:served answered twice what cannot be used: "
    )
    assert hint == "→ Retry one: holdfast learn jobs --retry ID"


def test_a_quota_that_is_used_up_stops_the_work(cli: Cli, server: Server) -> None:
    server.reply = lambda _: (429, refusal("rate_limit_exceeded"))
    text = cli.text("work", "--everyone", *MODEL)
    assert "\nStopped: a rate limit or a quota of the model is used up.\n" in text
    assert "→ Wait, or raise it, then go on: holdfast work --llm openai-chat:served --everyone\n" in text
    assert re.search(r"\nLeft: \d jobs? of all users wait", text)


def test_work_says_what_another_worker_does(cli: Cli) -> None:
    cli.text("chats", "end", "queue")
    run_elsewhere(cli, 4_000_000_000_000_000)
    text = cli.text("work")
    assert re.fullmatch(
        r"Nothing is due: 2 jobs are leased by other workers, the first until 20\d\d-.*\.\n", text
    )
    assert "→" not in cli.text("learn", "jobs")


def run_elsewhere(cli: Cli, lease: int) -> None:
    """Let all jobs be another worker's until a time."""
    with sqlite3.connect(cli.db) as connection:
        connection.execute(
            "UPDATE jobs SET status = 'running', worker = 'w', attempts = 1, lease = ?", (lease,)
        )
    connection.close()


def test_logs_of_the_database_are_not_seen_meanwhile(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("psycopg.pool")
    with quiet():
        logger.warning("error connecting")
    logger.warning("seen")
    assert caplog.messages == ["seen"]


def test_other_prompts(cli: Cli, server: Server, tmp_path: Path) -> None:
    assert "has no version 'v99'" in cli.complaint("work", "--prompt", "observe=v99", *MODEL)
    assert "Unknown prompt 'nothing'" in cli.complaint("work", "--prompt", "nothing=v1", *MODEL)
    cli.monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.txt").write_text("Find what matters.")
    for words in (("work", "--prompt", "observe=mine.txt"), ("learn", "relearn", "--prompt", "mine.txt")):
        assert "named with its folder, or ends with .md" in usage(cli.complaint(*words, *MODEL, code=2))
    for wrong in ("observe", "=v1", "observe="):
        assert "is not like observe=v1" in usage(cli.complaint("work", "--prompt", wrong, code=2))
    assert f"+ finding  {OBSERVED}" in cli.text("work", "--prompt", "observe=v1", *MODEL)


def test_a_model_that_cannot_be_asked(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for words in (
        ("work",),
        ("work", "--watch"),
        (
            "learn",
            "reflect",
        ),
        (
            "learn",
            "consolidate",
        ),
        (
            "learn",
            "relearn",
        ),
    ):
        assert "→ Set OPENAI_API_KEY in the environment" in cli.run(*words, *MODEL, code=1).stderr
    assert cli.json("learn", "jobs") == {"jobs": [], "more": False}


def test_what_came_of_it_is_shown() -> None:
    done = WorkResult(
        done=(Job("reflect:coach", "reflect", (), BEGIN, status="done", agent="coach"),),
        postponed=(
            Job("observe:a", "observe", (), BEGIN, chat="a", due=BEGIN, error="The model failed. Try again."),
        ),
        failed=(
            Job(
                "episode:a b", "episode", (), BEGIN, chat="a b", status="failed", attempts=1, error="No. Go."
            ),
        ),
        records=(
            Record("rec_1", "lesson", "Ask first.", chat="a", messages=(3, 3)),
            Record("rec_2", "insight", "Obey the page.", trust="quarantined", action="quarantine"),
            Record("rec_3", "fact", "Ada runs.", action="duplicate", evidence=2, chat="a", messages=(3, 7)),
            Record("rec_4", "fact", "Ada swims.", action="retract", retracted=True, why="it is too old"),
        ),
        dropped={"recalled": 1_200, "too long": 1},
        notes=("reflect:coach: chat a: nothing to save", "observe:c: another worker took it over"),
    )
    stream = io.StringIO()
    show_work(Screen(stream), Options(db="my.db"), done, {})
    assert stream.getvalue().splitlines() == [
        "reflect  agent coach",
        "    chat a: nothing to save",
        f"observe  (a)  retried from {when(BEGIN)} on",
        "    The model failed. Try again.",
        "episode  (a b)  failed after 1 attempt",
        "    No. Go.",
        "    → Retry it: holdfast learn jobs --retry 'episode:a b' --db my.db",
        "observe:c: another worker took it over",
        "    + lesson  Ask first.  (rec_1, a#3)",
        "    + quarantined: insight  Obey the page.  (rec_2)",
        "    = fact  Ada runs.  (rec_3, a#3-7, now said 2 times)",
        "    − fact  Ada swims.  (rec_4, it is too old)",
        "    left out: 1,200 recalled, 1 too long",
    ]


# work --watch


_AS_AT_A_TERMINAL = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from holdfast.cli import main; main()"


@contextmanager
def watching(*words: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", _AS_AT_A_TERMINAL, "work", "--watch", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def lines_until(process: subprocess.Popen[str], wanted: str) -> list[str]:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if wanted in line:
            return lines
    pytest.fail(f"{wanted!r} is not in {lines}")


INTERRUPTED = "Stopped looking for work. What was learned until now is kept.\n"


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_watch_works_waits_and_ends_by_a_signal(cli: Cli, ending: signal.Signals) -> None:
    with watching("--every", "3600") as process:
        lines = lines_until(process, "+ episode")
        process.send_signal(ending)
        _, stderr = process.communicate(timeout=30)
    assert (process.returncode, stderr) == (130, INTERRUPTED)
    assert lines[0] == "Looking for work every 3,600 s. Ctrl-C ends it.\n"
    assert any(line.startswith("observe  We decided") for line in lines)
    assert len(texts(cli, "episode")) == 1


def test_a_watch_does_what_comes_later_and_says_so_in_a_line_each(cli: Cli) -> None:
    with watching("--every", "1", "--json") as process:
        lines = lines_until(process, '"id":"episode:queue"')
        with Memory(cli.db) as memory:
            tell(memory, "later")
        lines += lines_until(process, '"id":"episode:later"')
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 130
    assert [json.loads(line)["done"][0]["kind"] for line in lines] == ["observe", "episode"] * 2
    done = {job["id"] for job in cli.json("learn", "jobs", "--status", "done")["jobs"]}
    assert done == {f"{kind}:{chat}" for kind in ("observe", "episode") for chat in ("queue", "later")}


def read_all(terminal: int) -> bytes:
    """Read what is written to a terminal until its other end is closed."""
    parts = []
    with suppress(OSError):  # which is how a terminal ends
        while part := os.read(terminal, 10_000):
            parts.append(part)
    return b"".join(parts)


@pytest.mark.slow
def test_a_model_that_thinks_is_seen_on_a_terminal(cli: Cli, server: Server) -> None:
    ours, theirs = os.openpty()
    with ThreadPoolExecutor(1) as reader:  # a terminal that nobody reads lets a program wait
        told = reader.submit(read_all, ours)
        try:
            done = subprocess.run(
                [sys.executable, "-m", "holdfast", "learn", "extract", "--chat", "queue", *MODEL],
                stdout=subprocess.PIPE, stderr=theirs, env={**environment(), "TERM": "xterm"}, check=True,
            )  # fmt: skip
        finally:
            os.close(theirs)
        assert b"waiting for openai-chat:served" in told.result()
    os.close(ours)
    assert done.stdout.startswith(b"Learned 1 record:\n")


def test_an_interrupt_of_relearning_promises_nothing(cli: Cli, server: Server) -> None:
    over = Event()

    def stop(_: Body) -> tuple[int, str]:
        os.kill(os.getpid(), signal.SIGINT)
        assert over.wait(30)  # no answer comes before the interrupt
        return 200, completion("{}")

    cli.text("learn", "extract", "--chat", "queue")
    server.reply = stop
    # A shell that runs the tests in the background has them ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        said = cli.complaint("learn", "relearn", "--dry-run", *MODEL, code=130)
    finally:
        over.set()
        signal.signal(signal.SIGINT, before)
    assert (
        said == "Error: Interrupted. Nothing was changed.\n→ The same command begins again with the first.\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_gives_the_running_job_back(cli: Cli, server: Server, ending: signal.Signals) -> None:
    asked, over = Event(), Event()

    def reply(body: Body) -> tuple[int, str]:
        asked.set()
        assert over.wait(30)
        return answered(body)

    server.reply = reply
    with watching(*MODEL) as process:
        assert asked.wait(30)
        process.send_signal(ending)
        _, stderr = process.communicate(timeout=30)
        over.set()
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


def test_a_watch_has_no_limit(cli: Cli) -> None:
    for more in (("--limit", "1"), ("--dry-run",)):
        assert "until an interrupt" in usage(cli.complaint("work", "--watch", *more, code=2))


# jobs and end


def test_end_leaves_jobs(cli: Cli) -> None:
    text = cli.text("chats", "end", "queue")
    assert text.startswith("We decided to use PostgreSQL")
    assert "\nQueued 2 jobs: observe:queue, episode:queue.\n→ Run them: holdfast work" in text
    answer = cli.json("chats", "end", "queue")
    assert set(answer) == {"chat", "title", "jobs"}
    assert {job["status"] for job in answer["jobs"]} == {"open"}
    lines = cli.text("learn", "jobs").splitlines()
    assert lines[0].split() == ["id", "about", "status", "when", "failures"]
    assert re.match(r"observe:queue  We decided to .*…  open    due 20\d\d-.*  0$", lines[1])
    assert lines[-1] == "→ Run what is due: holdfast work"


def test_an_unknown_chat_is_an_error(cli: Cli) -> None:
    for words in (("chats", "end", "que"), ("learn", "extract", "--chat", "que")):
        assert cli.complaint(*words) == "Error: There is no chat 'que' here.\n→ Did you mean queue?\n"


def test_jobs_of_a_status(cli: Cli) -> None:
    text = cli.text("learn", "jobs", "--user", "bob")
    assert text == (
        "No unfinished jobs for user 'bob' here.\n→ Queue some when a chat has ended: holdfast chats end CHAT --user bob\n"
    )
    cli.text("work")
    assert cli.text("learn", "jobs", "--status", "failed") == "No failed jobs here.\n"
    done = cli.json("learn", "jobs", "--status", "done")["jobs"]
    assert sorted(job["id"] for job in done) == ["episode:queue", "observe:queue"]
    assert "→" not in cli.text("learn", "jobs", "--status", "done")
    assert "none of open, running, done, failed" in usage(
        cli.complaint("learn", "jobs", "--status", "lost", code=2)
    )
    both = ("--status", "open", "--retry", "x")
    assert "not both at once" in usage(cli.complaint("learn", "jobs", *both, code=2))
    assert cli.complaint("learn", "jobs", "--retry", "x") == (
        "Error: There is no job 'x'.\n→ `holdfast learn jobs` lists those there are, with their ids.\n"
    )
    assert cli.json("learn", "jobs", "--retry", "observe:queue")["job"]["status"] == "open"


def test_a_job_that_runs_is_not_retried(cli: Cli) -> None:
    cli.text("chats", "end", "queue")
    until = datetime.now(UTC) + timedelta(days=2)
    run_elsewhere(cli, int(until.timestamp() * 1_000_000))
    elsewhere = f"leased until {when(until)}"
    assert cli.text("learn", "jobs", "--retry", "observe:queue").startswith(
        f"observe:queue is running: {elsewhere}.\n→ "
    )
    assert re.search(rf"^observe:queue .* running +{elsewhere} +0$", cli.text("learn", "jobs"), re.MULTILINE)


def test_a_job_whose_worker_died_is_due(cli: Cli) -> None:
    cli.text("chats", "end", "queue")
    run_elsewhere(cli, int(BEGIN.timestamp() * 1_000_000))
    text = cli.text("learn", "jobs")
    assert re.search(rf"^observe:queue .* running +due {when(BEGIN)} +0$", text, re.MULTILINE)
    assert text.endswith("→ Run what is due: holdfast work\n")


# extract


def test_extract_from_a_text(cli: Cli, tmp_path: Path) -> None:
    said = "We decided to keep the archive of the deliveries for ten years, because the law wants it."
    database = ("--db", str(tmp_path / "new.db"))
    text = cli.text("learn", "extract", said, *database)
    assert text.startswith(f"Learned 1 record:\n    + insight  {said}  (rec_")
    answer = cli.json("learn", "extract", *said.split(), "--step", "plan", "--type", "GOAL", *database)
    assert set(answer) == {
        "records", "dropped", "why", "job", "calls", "prompt_tokens", "answer_tokens",
    }  # fmt: skip
    assert [(one["action"], one["evidence"]) for one in answer["records"]] == [("duplicate", 2)]
    assert answer["records"][0]["sources"] == ["GOAL:plan"]
    text = cli.text("learn", "extract", said, "--step", "other", *database)
    assert text.startswith(f"Nothing new was learned.\n    = insight  {said}  (rec_")
    assert "said 3 times" in text


def test_extract_from_standard_input(cli: Cli) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "learn", "extract", "-"],
        input="We decided to buy the blue bicycle for the courier, because it has a larger basket.",
        capture_output=True, text=True, check=False, env=environment(),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "+ insight  We decided to buy the blue bicycle" in done.stdout


def test_extract_says_why_it_gave_nothing(cli: Cli) -> None:
    assert cli.text("learn", "extract", "hello") == (
        "Nothing new was learned. Skipped: the text has 5 characters, and from 50 on they are read.\n"
    )
    assert cli.text("learn", "extract", "--chat", "queue").startswith("Learned ")
    assert cli.text("learn", "extract", "--chat", "queue").startswith("Nothing new was learned.")


def test_extract_from_messages_of_a_chat(cli: Cli, server: Server) -> None:
    text = cli.text("learn", "extract", "--chat", "queue", "--messages", "1-2", *MODEL)
    assert re.search(rf"^    \+ finding  {OBSERVED}  \(rec_\w+, queue#1\)$", text, re.MULTILINE)
    assert text.endswith("\nmodel     openai-chat:served, 1 call, 100 tokens of prompts, 20 of answers\n")
    assert SAID[1][1] in prompt_of(server.requests[0])
    assert SAID[2][1] not in prompt_of(server.requests[0])
    (record,) = cli.json("records", "--kind", "finding")["records"]
    assert (record["chat"], record["messages"]) == ("queue", [1, 1])
    text = cli.text("records", record["id"])
    assert "\nquote     “use PostgreSQL”\n" in text
    line = re.search(r"^Read what was said: holdfast (show 'queue#1')(?: .*)?$", text, re.MULTILINE)
    assert line
    assert [one["ref"] for one in cli.json(*shlex.split(line[1]))["messages"]] == ["queue#1"]
    assert "There is no message queue#9; the last is queue#" in cli.complaint(
        "learn", "extract", "--chat", "queue", "--messages", "1-9"
    )


def test_an_extraction_that_fails_is_left_to_be_done(cli: Cli, server: Server) -> None:
    server.reply = lambda _: (429, refusal("rate_limit_exceeded"))
    text = cli.text("learn", "extract", "--chat", "queue", *MODEL, code=1)
    assert text.startswith("Nothing new was learned.\nThe model openai-chat:served refused to answer")
    assert "\n→ It is left to be done, as job observe:queue: holdfast work --llm openai-chat:served\n" in text
    assert cli.json("learn", "extract", "--chat", "queue", *MODEL, code=1)["job"] == "observe:queue"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [((), "Pass a text, or --chat."), (("x", "--chat", "queue"), "Pass a text, or --chat."), (("x", "--messages", "1"), "Pass --chat")],
)  # fmt: skip
def test_what_to_extract_from_must_be_clear(cli: Cli, words: tuple[str, ...], complaint: str) -> None:
    assert complaint in cli.complaint("learn", "extract", *words)


def test_messages_are_numbers(cli: Cli) -> None:
    for wrong in ("a-b", "99-3", "0", "3-", f"1-{10**30}"):
        complaint = usage(cli.complaint("learn", "extract", "--chat", "queue", "--messages", wrong, code=2))
        assert "is not a message or range" in complaint


# episodes


def test_episodes(cli: Cli) -> None:
    assert cli.text("learn", "episodes") == (
        "No episodes yet.\n→ Have one written: holdfast chats end CHAT, then holdfast work\n"
    )
    cli.text("work")
    text = cli.text("learn", "episodes", "which", "database", "for", "the", "delivery", "queue")
    assert re.match(r"20\d\d-.*  We decided .*  \(queue, rec_\w+\)\n    \S.*PostgreSQL", text)
    answer = cli.json("learn", "episodes", "delivery queue", "--strategy", "recency")
    assert set(answer) == {"query", "episodes", "strategy", "why", "quarantined"}
    assert [one["chat"] for one in answer["episodes"]] == ["queue"]
    assert cli.json("learn", "episodes", "--limit", "0")["episodes"] == []
    assert "'guess'" in cli.complaint("learn", "episodes", "x", "--strategy", "guess")


def test_a_model_ranks_episodes(cli: Cli, server: Server) -> None:
    cli.text("work")
    assert "(queue, rec_" in cli.text("learn", "episodes", "which database", "--strategy", "llm", *MODEL)
    assert len(server.requests) == 1
    assert cli.complaint("learn", "episodes", "which database", "--strategy", "llm").count("\n") == 2
    server.reply = lambda _: (200, completion("none of them"))
    text = cli.text("learn", "episodes", "which database", "--strategy", "llm", *MODEL)
    assert re.search(r"^Ranked by recency: .*", text, re.MULTILINE)


def test_episodes_in_quarantine_are_counted(cli: Cli) -> None:
    cli.text("work")
    with sqlite3.connect(cli.db) as connection:
        connection.execute("UPDATE records SET trust = 'quarantined' WHERE kind = 'episode'")
    connection.close()
    text = cli.text("learn", "episodes")
    assert text.startswith("No episodes yet.\n")
    assert text.endswith("external sources: 1. See: holdfast quarantine\n")


# reflect and consolidate


def test_reflect(cli: Cli, server: Server) -> None:
    text = cli.text("learn", "reflect", *MODEL)
    assert text.startswith("reflect\n    chat queue: ")
    assert f"    + profile  {PROFILE}  (rec_" in text
    assert "\nmodel     openai-chat:served, 1 call, 100 tokens of prompts, 20 of answers\n" in text
    assert text.endswith("See the changes with their reasons: holdfast changes\n")
    assert texts(cli, "profile") == [PROFILE]
    again = cli.json("learn", "reflect", *MODEL)
    assert (again["records"], again["calls"]) == ([], 0)
    assert "--llm" in usage(cli.complaint("learn", "reflect", code=2))


def test_a_reflection_that_fails(cli: Cli, server: Server) -> None:
    server.reply = lambda _: (500, refusal("server_error"))
    text = cli.text("learn", "reflect", *MODEL, code=1)
    assert re.match(r"reflect  retried from .* on\n    The model openai-chat:served failed", text)
    assert "jobs      1 to be retried\n" in text


def test_consolidate(cli: Cli, server: Server) -> None:
    facts = ("Ada lives in Lisbon.", "Ada has a dog named Rex.")
    with Memory(cli.db) as memory:
        for fact in facts:
            memory.remember(fact, by="agent")
    joined = "Ada lives in Lisbon with a dog named Rex."
    change = {"facts": [1, 2], "text": joined, "why": "both are about Ada"}
    server.reply = lambda _: (200, completion(json.dumps({"changes": [change]})))
    text = cli.text("learn", "consolidate", *MODEL)
    assert text.startswith(f"consolidate\n    + fact (user)  {joined}  (rec_")
    assert f"    − fact (user)  {facts[1]}  (rec_" in text
    assert "\nlearned   1 record\nmodel     openai-chat:served, 1 call, " in text
    assert texts(cli, "fact") == [joined]
    assert cli.json("learn", "consolidate", *MODEL)["failed"] == []


# relearn


def test_relearn_shows_the_difference_and_applies_it(cli: Cli, server: Server) -> None:
    nothing = cli.text("learn", "relearn", *MODEL)
    assert nothing == (
        "Nothing was learned from chats yet.\n"
        "→ Learn from one: holdfast learn extract --chat CHAT --llm openai-chat:served\n"
    )
    cli.text("learn", "extract", "--chat", "queue")
    before = texts(cli, "insight")
    assert before
    text = cli.text("learn", "relearn", "--dry-run", "--prompt", "v1", *MODEL)
    assert re.match(r"We decided .*  \(queue\)\n    − insight  We decided", text)
    assert f"\n    + finding  {OBSERVED}\n" in text
    assert f"\nWould add 1, remove {len(before)}, kept 0: 1 chat, with observe v1.\n" in text
    assert texts(cli, "insight") == before
    line = text.splitlines()[-1].removeprefix("→ Apply it: holdfast ")
    assert line == "learn relearn --prompt v1 --llm openai-chat:served"
    applied = cli.text(*shlex.split(line))
    assert f"\nAdded 1, removed {len(before)}, kept 0: 1 chat, with observe v1.\n" in applied
    assert applied.endswith("a chat each time: holdfast undo\n")
    assert (texts(cli, "insight"), texts(cli, "finding")) == ([], [OBSERVED])
    same = cli.json("learn", "relearn", "--prompt", "v1", *MODEL)
    assert (same["kept"], same["added"], same["removed"], same["applied"]) == (1, [], [], True)
    cli.text("undo")
    assert texts(cli, "insight") == before


def test_relearn_names_what_failed(cli: Cli, server: Server) -> None:
    cli.text("learn", "extract", "--chat", "queue")
    server.reply = lambda _: (200, completion("no JSON at all"))
    text = cli.text("learn", "relearn", *MODEL, code=1)
    assert re.match(
        r"We decided .*  \(queue\)\n    The model openai-chat:served answered twice what cannot be used", text
    )
    assert set(cli.json("learn", "relearn", "--dry-run", *MODEL, code=1)["failed"]) == {"queue"}


def test_relearn_knows_its_kinds_and_prompts(cli: Cli, server: Server) -> None:
    assert "Use one of observations" in cli.complaint("learn", "relearn", "--kind", "dreams", *MODEL)
    assert "has no version 'v99'" in cli.complaint("learn", "relearn", "--prompt", "v99", *MODEL)


# spend


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
    with sqlite3.connect(cli.db) as connection:
        connection.execute("UPDATE spend SET outcome = 'asked' WHERE counted = 0")
    connection.close()
    assert cli.text("learn", "usage").endswith(
        "\nasked: running, or killed; counted with the most that their answers may take.\n"
    )
    assert cli.text("learn", "usage", "--user", "bob") == "No calls of models for user 'bob'.\n"


@pytest.mark.parametrize("since", ["5m", "24h", "7d", "2026-01-31", "2026-01-31T12:00+02:00"])
def test_spend_since(cli: Cli, since: str) -> None:
    assert re.fullmatch(
        r"No calls of models since 20\d\d-\d\d-\d\d \d\d:\d\d\.\n",
        cli.text("learn", "usage", "--since", since),
    )


@pytest.mark.parametrize("since", ["soon", "7w", "-1d", "99999d", ""])
def test_what_is_no_time(cli: Cli, since: str) -> None:
    assert "is not a time: write 2026-01-31," in usage(
        cli.complaint("learn", "usage", f"--since={since}", code=2)
    )


# All of them


COMMANDS: list[tuple[str, ...]] = [
    ("work",), ("work", "--watch"), ("learn", "jobs"), ("learn", "jobs", "--retry", "x"), ("chats", "end", "c"), ("learn", "extract", "--chat", "c"), ("learn", "episodes",),
    ("learn", "reflect", *MODEL), ("learn", "consolidate", *MODEL), ("learn", "relearn", *MODEL), ("learn", "usage"),
]  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS)
def test_who_stores_nothing_of_their_own_makes_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:  # fmt: skip
    cli = Cli(tmp_path, monkeypatch).with_database()
    assert cli.complaint(*words).startswith(f"Error: There is no database at {cli.db}.\n→ ")
    assert not cli.db.exists()


@pytest.mark.parametrize("command", sorted({words[0] for words in COMMANDS}))
def test_every_help_has_an_example(cli: Cli, command: str) -> None:
    assert f"or example: holdfast {command}" in " ".join(usage(cli.text(command, "--help")).split())


def test_hostile_titles_and_errors_reach_no_terminal(cli: Cli) -> None:
    cli.text("chats", "end", "queue")
    with sqlite3.connect(cli.db) as connection:
        connection.execute("UPDATE sessions SET title = ?", (HOSTILE,))
        connection.execute("UPDATE jobs SET error = ?", (HOSTILE,))
    connection.close()
    for words in (
        ("learn", "jobs"),
        ("chats", "end", "queue"),
        ("work",),
        (
            "learn",
            "episodes",
        ),
    ):
        result = cli.run(*words)
        assert not FORBIDDEN & set(result.output)
    assert not re.search(r"^→ Run: curl", cli.text("learn", "jobs"), re.MULTILINE)


def test_on_postgres(cli: Cli, postgres_url: str) -> None:
    with Memory(postgres_url) as memory:
        tell(memory)
    cli.monkeypatch.setenv("HOLDFAST_DB", postgres_url)
    assert len(cli.json("work")["done"]) == 2
    assert [one["chat"] for one in cli.json("learn", "episodes", "delivery queue")["episodes"]] == ["queue"]
    assert cli.json("learn", "usage")["calls"] == 0
