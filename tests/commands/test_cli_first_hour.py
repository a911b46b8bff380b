"""What a newcomer meets: whose memory it is, options before the command, examples, narrow terminals."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Cli, usage, with_database
from typer.main import get_command
from typer.testing import CliRunner

from holdfast import Memory
from holdfast_cli.commands import app
from holdfast_cli.commands.render.wording import in_options
from tables import each

ONLY = "Of user 'ada', the only one here.\n"


cli = pytest.fixture(with_database)


@pytest.fixture
def ada(cli: Cli) -> Cli:
    """What the README's example leaves."""
    with Memory(cli.db, user="ada", agent="coach") as memory:
        memory.chat("monday").append(role="user", content="I'm training for the Berlin marathon.")
        memory.remember("Training for the Berlin marathon")
    return cli


def add(cli: Cli, *users: str) -> None:
    for user in users:
        with Memory(cli.db, user=user) as memory:
            memory.scratchpad["week"] = "1"


# Whose memory it is


def test_the_only_user_is_taken_and_named(ada: Cli) -> None:
    for line in ("chats", "recall marathon", "records", "stats", "show monday"):
        words = line.split()
        done = ada.run(*words)
        assert done.stderr == ONLY
        assert done.stdout == ada.run(*words, "--user", "ada").stdout
        assert json.loads(ada.run(*words, "--json").stdout) == ada.json(*words, "--user", "ada")
    assert ada.run("remember", "Never runs on Mondays").stderr == ONLY
    assert len(ada.json("records", "--user", "ada")["records"]) == 2
    assert ada.json("records", "--user", "")["records"] == []


def test_nobody_is_taken_for_what_is_erased_or_served(ada: Cli) -> None:
    assert "It is not clear what to erase." in ada.run("erase", "--yes", code=1).stderr
    ada.monkeypatch.setenv("HOLDFAST_USER", "ada")
    assert "It is not clear what to erase." in ada.complaint("erase", "--yes")
    ada.run("erase", "--yes", "--chat", "monday")
    ada.monkeypatch.delenv("HOLDFAST_USER")
    assert "--user" not in ada.run("install", "cursor", "--print").stdout


def test_of_several_users_none_is_taken(ada: Cli) -> None:
    add(ada, "bob")
    told = "There are 2 users here: 'ada', 'bob'."
    assert ada.text("chats") == f"No chats here.\n→ {told} Name one by --user.\n"
    for line in (
        "recall marathon", "records", "changes", "records --kind constraint", "scratchpad", "stats",
        "learn jobs", "learn episodes", "learn episodes runs", "quarantine", "work", "learn usage",
        "chats --user bib",
    ):  # fmt: skip
        assert told in ada.text(*line.split())
    for line in (
        "show monday", "stats monday", "window monday", "chats end monday", "chats rename monday Tuesday",
        "chats archive monday", "records --kind note --chat monday",
    ):  # fmt: skip
        assert f"→ {told}" in ada.complaint(*line.split())
    assert "users here" not in ada.text("chats", "--user", "bob")
    assert ada.text("chats", "users") == "ada\nbob\n"
    assert ada.json("chats", "users") == {"users": ["ada", "bob"], "more": None}
    assert ada.json("chats", "users", "--tenant", "acme") == {"users": [], "more": None}
    assert "No users here" in ada.text("chats", "users", "--tenant", "acme")
    add(ada, "cleo", "dora", "emil", "fay")
    assert "6 users here: 'ada', 'bob', 'cleo', 'dora', 'emil', …." in ada.text("chats")
    ada.monkeypatch.setenv("HOLDFAST_USER", "ada")
    assert [chat["id"] for chat in ada.json("chats")["chats"]] == ["monday"]
    for user in ("bob", ""):
        assert ada.json("chats", "--user", user)["chats"] == []


def test_what_all_share_is_taken_where_it_has_something(ada: Cli) -> None:
    ada.run("remember", "The office is in Berlin", "--user", "")
    assert [record["text"] for record in ada.json("records")["records"]] == ["The office is in Berlin"]


# Options and help


def test_options_may_stand_before_the_command(ada: Cli) -> None:
    ada.monkeypatch.delenv("HOLDFAST_DB")
    db = str(ada.db)
    expected = ada.text("chats", "--db", db, "--user", "ada")
    assert ada.text("--db", db, "--user", "ada", "chats") == expected
    assert ada.text("--user", "bob", "--db", db, "chats", "--user", "ada") == expected
    answer = json.loads(ada.text("--db", db, "--user", "ada", "--json", "chats"))
    assert answer == ada.json("chats", "--db", db, "--user", "ada")
    assert "--user" in usage(ada.complaint("--user", "ada", "salvage", db, f"{db}.new", code=2))


def test_a_period_may_be_named_in_words(cli: Cli) -> None:
    now = datetime.now().astimezone()
    with Memory(cli.db) as memory:
        for days in (0, 1, 10):
            at = now - timedelta(days=days)
            memory.chat("runs").append(role="user", content=f"A run of {days} days ago", at=at)

    def found(*words: str) -> set[str]:
        return {hit["text"][9:-9] for hit in cli.json("recall", "run", *words)["hits"]}

    assert found("--since", "7d") == found("--since", "240h", "--until", "today") == {"0", "1"}
    assert found("--since", "yesterday", "--until", "yesterday") == {"1"}
    assert found("--until", "2d") == {"10"}
    assert found("--since", f"{now:%Y-%m-%d}") == {"0"}


# Examples

# They go on until they are ended, or end the process.
SERVING = {"mcp", "watch", "hook"}


def commands(group: object, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Find all commands and groups of commands, the first of which is the program itself."""
    yield words
    for name, one in getattr(group, "commands", {}).items():
        yield from commands(one, (*words, name))


# To make all commands takes longer than what is done with one.
PROGRAM: Any = get_command(app)
COMMANDS = list(commands(PROGRAM))


def help_of(words: tuple[str, ...]) -> str:
    """Return the help of a command as its function has it."""
    command = PROGRAM
    for word in words:
        command = command.commands[word]
    return str(command.help)


@pytest.mark.parametrize("words", COMMANDS[1:], ids=" ".join)
def test_the_example_of_each_help_is_taken(cli: Cli, words: tuple[str, ...]) -> None:
    """Run the examples on the sample; some fail, such as those that name a model, but none is misuse."""
    cli.with_sample()
    cli.monkeypatch.chdir(cli.folder)
    cli.monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (cli.home / ".claude" / "projects").mkdir(parents=True)
    (cli.folder / "agent.db").write_text("damaged")
    told = re.sub(r"\s+", " ", help_of(words))
    examples = re.split(r", (?:or|then) (?=holdfast )", told.partition("For example: ")[2])
    for example in examples:
        program, *arguments = shlex.split(example)
        assert program == "holdfast"
        assert tuple(arguments[: len(words)]) == words or words == ("learn",)
        if words[0] in SERVING:
            continue
        done = CliRunner().invoke(
            app, [str(Path(one).expanduser()) for one in arguments], prog_name="holdfast"
        )
        assert done.exit_code in (0, 1), done.output
        assert isinstance(done.exception, SystemExit | None)


# Messages of the library that no command of these tests leads to.
@each(
    ("told", "shown"),
    [
        ("…to the file, or pass read_only=True.", "…to the file."),
        ("Open it once without `read_only`, as a user.", "Run it once as a user."),
        ("or `verify(repair=True)`", "or `holdfast verify --repair`"),
        ("Run `verify`, and restore a backup.", "Run `holdfast verify`, and restore a backup."),
        ("`until` is x, which is not after `since`, y.", "--until is x, which is not after --since, y."),
        (
            "`changes(id=…)`, `records(kind='fact')`",
            "`holdfast changes --id …`, `holdfast records --kind fact`",
        ),
    ],
)
def test_what_a_program_would_do_is_said_as_what_a_command_does(told: str, shown: str) -> None:
    assert in_options(told) == shown
