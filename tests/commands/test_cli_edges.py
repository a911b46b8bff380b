"""What a command says where there is no database, where it may not write, and when it is used wrongly."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import Cli, environment, usage, with_database, with_sample
from typer.testing import CliRunner

import holdfast
import holdfast_cli.commands
from holdfast import Memory
from tables import each

cli, sample = pytest.fixture(with_database), pytest.fixture(with_sample)

READING = (
    "export, export --all, chats, show c, recall x, window c, stats, stats c, verify, verify --repair, "
    "backup copy.db, tree c, tree x, expand x, compact c, records, records x, replace x y, retract x, "
    "records profile, records soul, records --kind constraint, retract x --kind constraint, "
    "records --kind note --chat c, scratchpad, scratchpad x, scratchpad --remove x, changes, "
    "changes --diff 1..2, undo, rollback fact 1, quarantine, quarantine --release x, erase --chat c --yes, "
    "work, work --watch, work --dry-run, learn jobs, learn jobs --retry x, chats end c, "
    "learn extract --chat c, learn episodes, learn usage, learn reflect --llm x:y, "
    "learn consolidate --llm x:y, learn relearn --llm x:y"
).split(", ")


@each("words", [tuple(line.split()) for line in READING])
def test_who_stores_nothing_new_makes_no_database(cli: Cli, words: tuple[str, ...]) -> None:
    before = sorted(cli.folder.rglob("*"))
    for flags in ((), ("--json",)):
        complaint = cli.complaint(*words, *flags)
        assert complaint.startswith(f"Error: There is no database at {cli.db}.\n→ ")
        assert "`holdfast import PATH…`" in complaint
        assert "`holdfast demo`" in complaint
    assert sorted(cli.folder.rglob("*")) == before


@each("words", [("chats",), ("work",), ("erase", "--chat", "c", "--yes")])
def test_what_is_no_database_stays_as_it_is(cli: Cli, words: tuple[str, ...]) -> None:
    with cli.monkeypatch.context() as elsewhere:
        elsewhere.delenv("HOLDFAST_DB")
        cli.complaint(*words)
        cli.complaint(*words, "--db", cli.folder / "no" / "memory.db")
    cli.db.touch()
    assert "There is no database" in cli.complaint(*words)
    assert cli.db.stat().st_size == 0
    cli.db.write_text("Dear diary, " * 100)
    complaint = cli.complaint(*words)
    assert "is not a Holdfast database" in complaint
    assert "→ Check the path" in complaint
    assert cli.db.read_text() == "Dear diary, " * 100
    cli.db.unlink()


def test_the_environment_names_the_database(cli: Cli) -> None:
    cli.monkeypatch.setenv("HOLDFAST_DB", "~/mine.db")
    assert str(cli.home / "mine.db") in cli.complaint("chats")


@pytest.mark.parametrize("how", ["not named", "named"])
def test_only_the_folder_of_the_default_database_is_made(cli: Cli, how: str) -> None:
    default = cli.home / "data" / "holdfast" / "memory.db"
    cli.monkeypatch.delenv("HOLDFAST_DB", raising=False)
    if how == "named":  # as the configuration of a client names it
        cli.monkeypatch.setenv("HOLDFAST_DB", str(default))
    cli.run("remember", "Grace likes tea.")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (default, default.parent)] == [0o600, 0o700]
    default.parent.chmod(0o755)
    default.chmod(0o644)
    cli.run("remember", "Grace plays the cello.")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (default, default.parent)] == [0o644, 0o755]
    cli.complaint("remember", "Grace likes tea.", "--db", cli.home / "mistyped" / "memory.db")
    assert not (cli.home / "mistyped").exists()


WRONG = [
    ("recall", "QUERY"),
    ("recall x --role nobody", "none of system, developer, user, assistant, tool"),
    ("recall x --until 9999-12-31", "--until"),
    ("chats --limit 1 rename c x", "--limit"),
    ("nonsense", "nonsense"),
    ("compact voyage --llm x:y --prompt leaf", "is not like leaf=v1"),
    ("records --at soon", "neither a version nor a date"),
    ("export out.jsonl", "write to a file with -o out.jsonl, or name a chat with --chat out.jsonl"),
    ("scratchpad a --search b", "one thing at a time"),
    ("quarantine --discard a --release b", "not both"),
    ("learn jobs --status open --retry x", "not both at once"),
    ("work --watch --limit 1", "until an interrupt"),
    *((f"pause --for={value}", "no time") for value in ("", "0h", "2w", "99999d")),
    *((f"learn usage --since={value}", "is not a time: write") for value in ("", "soon", "99999d")),
    *((f"erase --chat c --messages={value}", "--messages") for value in ("x", "1-2-3", "3–7", "7-3")),
    ("learn extract --chat c --messages=0", "is not a message or range"),
]


@each(("line", "told"), WRONG)
def test_wrong_options_are_usage_errors(sample: Cli, line: str, told: str) -> None:
    assert told in usage(sample.complaint(*line.split(), code=2))


# Options and help


def test_the_version(cli: Cli) -> None:
    assert cli.text("--version") == f"holdfast {holdfast.__version__}\n"


def test_options_of_a_group_are_those_of_its_commands(sample: Cli) -> None:
    (chat,) = sample.json("chats", "--agent", "coach", "--limit", "1")["chats"]
    assert sample.json("learn", "--db", sample.db, "episodes") == sample.json("learn", "episodes")
    assert json.loads(sample.text("learn", "--json", "episodes"))["episodes"] == []
    words = ("chats", "--agent", "coach", "rename", chat["id"], "Another", "title")
    assert sample.text(*words).startswith(f"Renamed: {chat['id']} is 'Another title', formerly ")


def test_more_is_the_command_for_the_rest(sample: Cli) -> None:
    seen, more = [], "holdfast chats --limit=3"
    while more:
        answer = sample.json(*shlex.split(more)[1:])
        seen += [chat["id"] for chat in answer["chats"]]
        more = answer["more"]
    assert seen == [chat["id"] for chat in sample.json("chats")["chats"]]
    assert sample.text("chats", "search", "retry-bug", "--limit", "1", "--", "test").endswith(
        "There are more: holdfast chats search retry-bug --limit 2 -- test\n"
    )
    line = "holdfast recall 'the --limit 5' --limit 2"
    assert f"More, if there are any: {line}\n" in sample.text("recall", "the --limit 5", "--limit=1")


# Who may not write


# Programs


def test_a_bug_is_not_hidden(sample: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Memory, "chats", lambda *_, **__: 1 / 0)
    result = CliRunner().invoke(holdfast_cli.commands.app, ["chats"])
    assert isinstance(result.exception, ZeroDivisionError)


def test_a_command_loads_its_own_module_and_only_what_that_needs(sample: Cli) -> None:
    code = """if True:
        import atexit, sys
        from holdfast_cli.__main__ import main
        atexit.register(lambda: print(*sys.modules, file=sys.stderr))
        main()
    """
    words = [sys.executable, "-c", code, "chats", "--db", str(sample.db)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment(), check=True)
    assert "japan-plaene" in done.stdout
    loaded = set(done.stderr.split())
    own = {name.rpartition(".")[2] for name in loaded if name.startswith("holdfast_cli.commands.")}
    assert own.isdisjoint("compaction demo doctor install mcp maintenance transfer work".split())
    assert loaded.isdisjoint({"numpy", "rich.progress", "psycopg", "tomllib", "holdfast.learning.worker"})


@pytest.mark.slow
def test_python_m_holdfast(sample: Cli) -> None:
    done = sample.process("chats", "--json", "--limit", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["chats"][0]["id"] == "japan-plaene"
    done = sample.process("recall")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Usage: holdfast recall" in done.stderr
    for words in (["recall", "caf\udce9 knee", "--json"], ["import", "\udcff.jsonl"]):
        assert "Traceback" not in sample.process(*words).stderr  # bytes that are no text


def written_to(stream: int, *words: str) -> tuple[int, bytes]:
    """Run a command that writes to a stream; return its exit code, and what it says of that."""
    command = [sys.executable, "-m", "holdfast", *words]
    done = subprocess.run(command, stdout=stream, stderr=subprocess.PIPE, env=environment(), check=False)
    return done.returncode, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("words", [["export"], ["chats", "--json"]])
def test_output_that_cannot_be_written(sample: Cli, words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    assert written_to(writer, *words) == (1, b"")  # a reader that goes away is no error
    os.close(writer)
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no device that is always full")
    with full.open("w") as stream:
        code, said = written_to(stream.fileno(), *words)
    assert code == 1
    assert said.startswith(b"Error: No space left on device.\n")
    assert said.count(b"\n") == 2
