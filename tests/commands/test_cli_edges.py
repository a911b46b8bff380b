from __future__ import annotations

import json
import shlex
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_runs import Cli, environment, usage
from typer.main import get_command
from typer.testing import CliRunner

import holdfast
import holdfast_cli.commands
from holdfast import Memory
from holdfast_cli.commands.options import Options
from holdfast_cli.commands.parameters import PARAMETERS

READERS = [
    ("export",), ("chats",), ("show", "c"), ("recall", "x"), ("window", "c"), ("stats",), ("stats", "c"),
    ("verify",),
    ("verify", "--repair"), ("records",), ("records", "x"), ("replace", "x", "y"), ("retract", "x"),
    ("records", "profile"), ("records", "soul"),
    ("records", "--kind", "constraint"), ("retract", "x", "--kind", "constraint"),
    ("records", "--kind", "note", "--chat", "c"), ("scratchpad",), ("scratchpad", "x"),
    ("scratchpad", "--remove", "x"),
    ("changes",), ("changes", "--diff", "1"), ("undo",), ("rollback", "fact", "1"), ("quarantine",),
    ("quarantine", "--release", "x"),
    ("erase", "--chat", "c"), ("compact", "c"), ("tree", "c"), ("expand", "x"), ("tree", "x"),
    ("work",), ("work", "--dry-run"), ("learn", "jobs"), ("learn", "jobs", "--retry", "x"),
    ("chats", "end", "c"), ("learn", "extract", "--chat", "c"), ("learn", "episodes",),
    ("learn", "usage"),
]  # fmt: skip


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    return Cli(tmp_path, monkeypatch).with_database()


@pytest.mark.parametrize("words", READERS)
@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_who_only_reads_makes_no_database(cli: Cli, words: tuple[str, ...], flags: tuple[str, ...]) -> None:
    complaint = cli.complaint(*words, *flags)
    assert complaint.startswith(f"Error: There is no database at {cli.db}.\n→ ")
    assert "`holdfast import PATH…`" in complaint
    assert "`holdfast demo`" in complaint
    assert not cli.db.exists()
    cli.db.touch()
    assert "There is no database" in cli.complaint(*words, *flags)
    assert cli.db.stat().st_size == 0


@pytest.mark.parametrize("words", READERS)
def test_a_file_that_is_no_database(cli: Cli, words: tuple[str, ...]) -> None:
    cli.db.write_text("Dear diary, " * 100)
    complaint = cli.complaint(*words)
    assert "is not a Holdfast database" in complaint
    assert "→ Check the path" in complaint
    assert cli.db.read_text().startswith("Dear diary")


def test_a_database_of_the_future(cli: Cli) -> None:
    Memory(cli.db).close()
    connection = sqlite3.connect(cli.db)
    connection.execute("INSERT INTO schema_version (version) VALUES (999)")
    connection.commit()
    connection.close()
    assert "→ Upgrade the package" in cli.complaint("chats")


def test_an_unknown_kind_of_database(cli: Cli, tmp_path: Path) -> None:
    assert "Unsupported database mysql://" in cli.complaint("chats", "--db", "mysql://host/db")
    assert "cannot be opened" in cli.complaint("chats", "--db", tmp_path)
    assert "a control character" in cli.complaint("chats", "--db", "postgresql://h/d", "--user", "a\x1bb")


def test_the_option_wins_over_the_environment(cli: Cli, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    assert str(other) in cli.complaint("chats", "--db", other)
    cli.monkeypatch.setenv("HOLDFAST_DB", "~/mine.db")
    assert str(cli.home / "mine.db") in cli.complaint("chats")


@pytest.mark.parametrize("how", ["not named", "named"])
def test_the_folder_of_the_default_database_is_made(cli: Cli, how: str) -> None:
    default = cli.home / "data" / "holdfast" / "memory.db"
    cli.monkeypatch.delenv("HOLDFAST_DB", raising=False)
    if how == "named":  # as the configuration of a client names it
        cli.monkeypatch.setenv("HOLDFAST_DB", str(default))
    cli.run("remember", "Grace likes tea.")
    assert default.exists()


def test_no_other_folder_is_made(cli: Cli) -> None:
    cli.complaint("remember", "Grace likes tea.", "--db", cli.home / "mistyped" / "memory.db")
    assert not (cli.home / "mistyped").exists()


def test_a_home_of_nobody_is_a_path_like_others(cli: Cli) -> None:
    assert "no database at ~nobody-here/memory.db" in cli.complaint("chats", "--db", "~nobody-here/memory.db")


@pytest.mark.parametrize("option", [("--port", "99"), ("--host", "::1"), ("--remote",)])
def test_options_of_http_need_it(cli: Cli, option: tuple[str, ...]) -> None:
    assert "Pass --http as well" in cli.complaint("mcp", *option)


def test_version_and_help(cli: Cli) -> None:
    assert cli.text("--version") == f"holdfast {holdfast.__version__}\n"
    names = (
        "recall import chats show window export remember records replace retract compact tree expand "
        "scratchpad work learn mcp changes undo rollback quarantine erase stats verify backup salvage demo"
    ).split()
    text = cli.text("--help")
    places = [text.index(f"│ {name} ") for name in names]
    assert places == sorted(places)
    for name in set(names) - {"learn", "salvage"}:
        told = cli.text(name, "--help")
        for option in ("--db", "--tenant", "--user", "--agent", "--json"):
            assert option in told


def test_options_of_a_group_are_those_of_its_commands(cli: Cli) -> None:
    cli.with_sample()
    sample = cli.json("chats", "--agent", "coach", "--limit", "1")["chats"]
    assert len(sample) == 1
    assert cli.json("learn", "--db", cli.db, "episodes") == cli.json("learn", "episodes", "--db", cli.db)
    assert json.loads(cli.text("learn", "--json", "episodes"))["episodes"] == []
    words = ("chats", "--agent", "coach", "rename", sample[0]["id"], "Another", "title")
    assert cli.text(*words).startswith(f"Renamed: {sample[0]['id']} is 'Another title', formerly ")
    assert "--limit" in usage(cli.complaint("chats", "--limit", "1", "rename", sample[0]["id"], "x", code=2))


def test_what_is_declared_is_taken() -> None:
    taken: set[str] = set()
    commands = {"": get_command(holdfast_cli.commands.app)}
    while commands:
        owner, command = commands.popitem()
        taken |= {name for one in command.params for name in (f"{owner}.{one.name}", str(one.name))}
        commands |= getattr(command, "commands", {})
    for declared in PARAMETERS:
        owner, _, name = declared.rpartition(".")
        assert (name if owner.endswith("Options") else declared) in taken


def test_more_is_the_command_for_the_rest(cli: Cli) -> None:
    cli.with_sample()
    seen, more = [], "holdfast chats --limit=3"
    while more:
        answer = cli.json(*shlex.split(more)[1:])
        seen += [chat["id"] for chat in answer["chats"]]
        more = answer["more"]
    assert seen == [chat["id"] for chat in cli.json("chats")["chats"]]
    assert cli.text("chats", "search", "retry-bug", "--limit", "1", "--", "test").endswith(
        "There are more: holdfast chats search retry-bug --limit 2 -- test\n"
    )
    line = "holdfast recall 'the --limit 5' --limit 2"
    assert f"More, if there are any: {line}\n" in cli.text("recall", "the --limit 5", "--limit=1")
    words = ("chats", "--db", "postgresql://ada:secret@host/db")
    assert Options(words=words).again(limit=4).endswith("'postgresql://ada:***@host/db' --limit 4")


@pytest.mark.slow
def test_python_m_holdfast(cli: Cli) -> None:
    done = cli.with_sample().process("chats", "--json", "--limit", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["chats"][0]["id"] == "japan-plaene"
    done = cli.process("recall")
    assert done.returncode == 2
    assert "Usage: holdfast recall" in done.stderr
    assert done.stdout == ""


@pytest.fixture
def public(cli: Cli) -> Iterator[Path]:
    """Make a folder that everyone may look into, and nobody but its owner may write to."""
    with tempfile.TemporaryDirectory(prefix="hf-cli-") as name:
        folder = Path(name)
        yield folder
        folder.chmod(0o700)


_AS_NOBODY = """
import contextlib, io, os
from holdfast_cli.commands import app, main
# Nobody may be unable to read the modules: two commands load what a third one needs.
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    app(["demo"], standalone_mode=False)
    app(["chats", "--db", "/nowhere/x"], standalone_mode=False)
    import holdfast_cli.commands.render.progress, holdfast_cli.formats.export, platformdirs.unix
    import holdfast_cli.hooks.ignore, holdfast_cli.hooks.session_logs, holdfast_cli.formats.importing
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
main()
"""


def as_nobody(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command without the rights of root, to whom nothing is read-only."""
    return subprocess.run(
        [sys.executable, "-c", _AS_NOBODY, *words],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )


@pytest.mark.slow
def test_a_folder_that_cannot_be_written(cli: Cli, public: Path) -> None:
    transcript = public / "t.jsonl"
    transcript.write_text('{"role": "user", "content": "hello"}')
    locked = public / "locked"
    locked.mkdir(mode=0o555)
    public.chmod(0o755)
    done = as_nobody("import", transcript, "--db", locked / "m.db")
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot be opened for writing" in done.stderr
    assert "Traceback" not in done.stderr
    assert "read_only" not in done.stderr
    assert list(locked.iterdir()) == []


@pytest.mark.slow
def test_a_database_that_cannot_be_written_is_read(cli: Cli, public: Path) -> None:
    with Memory(public / "m.db") as memory:
        memory.chat("monday").append(role="user", content="hello")
    (public / "m.db").chmod(0o444)
    public.chmod(0o555)
    done = as_nobody("chats", "--db", public / "m.db")
    assert (done.returncode, done.stderr) == (0, "")
    assert "monday" in done.stdout
    refused = as_nobody("chats", "rename", "monday", "Tuesday", "--db", public / "m.db")
    assert refused.returncode == 1
    assert "read only" in refused.stderr
    assert "read_only" not in refused.stderr
    assert [path.name for path in public.iterdir()] == ["m.db"]


@pytest.mark.slow
def test_a_file_that_cannot_be_read_or_written(cli: Cli, public: Path) -> None:
    place = public / "m.db"
    with Memory(place) as memory:
        memory.chat("c").append(role="user", content="hello")
    place.chmod(0o444)
    locked = public / "locked"
    locked.mkdir(mode=0o555)
    public.chmod(0o755)
    for words in (("import", place, "--db", place), ("export", "-o", locked / "x", "--db", place)):
        done = as_nobody(*words)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert done.stderr.startswith("Error: ")
        assert "→ " in done.stderr
    place.chmod(0o000)
    done = as_nobody("chats", "--db", place)
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: {place} cannot be opened")


@pytest.mark.slow
def test_a_folder_for_the_default_database_that_cannot_be_made(cli: Cli, public: Path) -> None:
    transcript = public / "t.jsonl"
    transcript.write_text('{"role": "user", "content": "hello"}')
    public.chmod(0o555)
    cli.monkeypatch.delenv("HOLDFAST_DB")
    cli.monkeypatch.setenv("XDG_DATA_HOME", str(public))
    done = as_nobody("import", transcript)
    assert done.returncode == 1
    assert f"Error: {public / 'holdfast'}: Permission denied." in done.stderr


def test_a_bug_is_not_hidden(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.with_sample()
    monkeypatch.setattr(Memory, "chats", lambda *_, **__: 1 / 0)
    result = CliRunner().invoke(holdfast_cli.commands.app, ["chats"])
    assert isinstance(result.exception, ZeroDivisionError)


def test_an_interrupt_is_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    cli.with_sample()
    monkeypatch.setattr(Memory, "chats", stop)
    assert cli.complaint("chats", code=130) == "Error: Interrupted.\n"


def test_the_command_line_starts_without_what_it_does_not_need(cli: Cli) -> None:
    late = ("numpy", "rich.progress", "psycopg")
    code = f"import sys, holdfast_cli.commands; print(*(m for m in {late} if m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True
    )
    assert done.stdout == "\n"


@pytest.mark.parametrize("words", ["export", "chats", "chats --json"])
@pytest.mark.slow
def test_output_that_cannot_be_written(cli: Cli, words: str) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no device that is always full")
    cli.with_sample()
    command = [sys.executable, "-m", "holdfast", *words.split()]
    with full.open("w") as stream:
        done = subprocess.run(command, stdout=stream, stderr=subprocess.PIPE, env=environment(), check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"Error: No space left on device.\n")
    assert done.stderr.count(b"\n") == 2


@pytest.mark.slow
def test_output_that_nobody_wants(cli: Cli) -> None:
    cli.with_sample()
    done = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m holdfast chats >&-; echo $?"],
        capture_output=True,
        env=environment(),
        check=False,
    )
    assert (done.stdout, done.stderr) == (b"0\n", b"")


@pytest.mark.slow
def test_bytes_that_are_no_text(cli: Cli) -> None:
    cli.with_sample()
    for words in (
        ["recall", "caf\udce9 knee"],
        ["recall", "caf\udce9 knee", "--json"],
        ["import", "\udcff.jsonl"],
    ):
        done = cli.process(*words)
        assert "Traceback" not in done.stderr
