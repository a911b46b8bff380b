"""`learn`: extract, episodes, reflect, consolidate, relearn."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
from pathlib import Path
from threading import Event

import pytest
from cli_learning import MODEL, OBSERVED, PROFILE, SAID, served, tell, texts, with_queue
from cli_runs import Cli

from holdfast import Memory
from llm_server import Body, Server, completion, prompt_of, refusal

cli, server = pytest.fixture(with_queue), pytest.fixture(served)


def test_extract_from_a_text(cli: Cli, tmp_path: Path) -> None:
    said = "We decided to keep the archive of the deliveries for ten years, because the law wants it."
    database = ("--db", str(tmp_path / "new.db"))
    text = cli.text("learn", "extract", said, *database)
    assert text.startswith(f"Learned 1 record:\n    + insight  {said}  (rec_")
    answer = cli.json("learn", "extract", *said.split(), *database)
    assert set(answer) == {
        "records", "dropped", "why", "job", "calls", "prompt_tokens", "answer_tokens",
    }  # fmt: skip
    assert answer["records"] == []  # the same words from the same source are no further evidence
    text = cli.text("learn", "extract", said, *database)
    assert text.startswith("Nothing new was learned. Without a model, only rules have read it.\n")


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
    beyond = ("learn", "extract", "--chat", "queue", "--messages", "1-9")
    assert "There is no message queue#9; the last is queue#" in cli.complaint(*beyond)


def test_an_extraction_that_fails_is_left_to_be_done(cli: Cli, server: Server) -> None:
    server.reply = lambda _: (429, refusal("rate_limit_exceeded"))
    text = cli.text("learn", "extract", "--chat", "queue", *MODEL, code=1)
    assert text.startswith("Nothing new was learned.\nThe model openai-chat:served refused to answer")
    assert "\n→ It is left to be done, as job observe:queue: holdfast work --llm openai-chat:served\n" in text
    assert cli.json("learn", "extract", "--chat", "queue", *MODEL, code=1)["job"] == "observe:queue"


def test_episodes(cli: Cli) -> None:
    assert cli.text("learn", "episodes") == (
        "No episodes yet.\n→ Have one written: holdfast chats end CHAT && holdfast work\n"
    )
    cli.text("work")
    text = cli.text("learn", "episodes", "which", "database", "for", "the", "delivery", "queue")
    assert re.match(r"20\d\d-.*  We decided .*  \(queue, rec_\w+\)\n    \S.*PostgreSQL", text)
    answer = cli.json("learn", "episodes", "delivery queue")
    assert set(answer) == {"query", "episodes", "strategy", "why", "quarantined", "more"}
    assert [one["chat"] for one in answer["episodes"]] == ["queue"]
    assert cli.json("learn", "episodes", "--limit", "0")["episodes"] == []
    cli.execute("UPDATE records SET trust = 'quarantined' WHERE kind = 'episode'")
    text = cli.text("learn", "episodes")
    assert text.startswith("No episodes yet.\n")
    assert text.endswith("external sources: 1. See: holdfast quarantine\n")


def test_reflect(cli: Cli, server: Server) -> None:
    text = cli.text("learn", "reflect", *MODEL)
    assert text.startswith("reflect\n    chat queue: ")
    assert f"    + profile  {PROFILE}  (rec_" in text
    assert "\nmodel     openai-chat:served, 1 call, 100 tokens of prompts, 20 of answers\n" in text
    assert text.endswith("See the changes with their reasons: holdfast changes\n")
    assert texts(cli, "profile") == [PROFILE]
    again = cli.json("learn", "reflect", *MODEL)
    assert (again["records"], again["calls"]) == ([], 0)
    with Memory(cli.db) as memory:
        tell(memory, "later")
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
    change = {"entries": [1, 2], "change": "same", "text": joined, "why": "both are about Ada"}
    server.reply = lambda _: (200, completion(json.dumps({"changes": [change]})))
    text = cli.text("learn", "consolidate", *MODEL)
    assert text.startswith(f"tidy\n    + fact (user)  {joined}  (rec_")
    assert f"    − fact (user)  {facts[1]}  (rec_" in text
    assert "\nlearned   1 record\nmodel     openai-chat:served, 1 call, " in text
    assert texts(cli, "fact") == [joined]
    assert cli.json("learn", "consolidate", *MODEL)["failed"] == []


@pytest.mark.slow
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
    assert f"\nWould add 1, remove {len(before) + 1}, kept 0: 1 chat, with session v1.\n" in text
    assert texts(cli, "insight") == before
    line = text.splitlines()[-1].removeprefix("→ Apply it: holdfast ")
    assert line == "learn relearn --prompt v1 --llm openai-chat:served"
    applied = cli.text(*shlex.split(line))
    assert f"\nAdded 1, removed {len(before) + 1}, kept 0: 1 chat, with session v1.\n" in applied
    assert applied.endswith("a chat each time: holdfast undo\n")
    assert (texts(cli, "insight"), texts(cli, "finding")) == ([], [OBSERVED])
    same = cli.json("learn", "relearn", "--prompt", "v1", *MODEL)
    assert (same["kept"], same["added"], same["removed"], same["applied"]) == (1, [], [], True)
    cli.text("undo")
    assert texts(cli, "insight") == before


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
    again = "The same command begins again with the first."
    assert said == f"Error: Interrupted. Nothing was changed.\n→ {again}\n"


def test_a_kind_of_ones_own_is_shown_as_a_difference_and_adopted(cli: Cli, server: Server) -> None:
    item = {"text": "The queue ships on Tuesdays.", "quote": "the deploy of the queue happens every Tuesday"}
    server.reply = lambda _: (200, completion(json.dumps({"ship-day": [item]})))
    words = ("learn", "kind", "ship-day", "when something is deployed", *MODEL)
    shown = cli.text(*words, "--dry-run")
    assert "+ ship-day  The queue ships on Tuesdays." in shown
    assert "Would add 1, remove 0, kept 0: 1 chat, with session v1." in shown
    assert "--dry-run" not in shown
    assert cli.json("records", "--kind", "fact")["records"] == []
    assert "Added 1, removed 0" in cli.text(*words)
    assert cli.json(*words)["kept"] == 1


def test_feedback_is_exported_as_questions(cli: Cli, tmp_path: Path) -> None:
    said = cli.text("feedback", "when do we deploy the queue", "queue#3")
    assert said.startswith("Stored that it helped")
    record = cli.json("feedback", "when do we deploy the queue", "queue#1", "--unhelpful")
    assert (record["kind"], record["meta"]["helpful"]) == ("feedback", False)
    (question,) = json.loads(cli.text("export", "--feedback"))["questions"]
    assert (question["gold"], question["unhelpful"]) == (["queue#3"], ["queue#1"])
    done = cli.json("export", "--feedback", "-o", str(tmp_path / "questions.json"))
    assert (done["questions"], done["left_out"]) == (1, 0)
    assert "Leave out --chat" in cli.complaint("export", "--feedback", "--chat", "queue")
