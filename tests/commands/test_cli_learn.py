"""`learn`: extract, episodes, reflect, consolidate, relearn."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from cli_learning import MODEL, OBSERVED, PROFILE, SAID, served, tell, texts, with_queue
from cli_runs import Cli

from holdfast import Memory
from llm_server import Server, completion, prompt_of, refusal

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
