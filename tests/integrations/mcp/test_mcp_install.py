from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import StdioServerParameters
from typer.testing import CliRunner, Result

from holdfast.cli import app
from holdfast.errors import Conflict
from holdfast.integrations.mcp.install import CLIENTS, NAME, entry, installed, snippet
from mcp_peers import client, data, wait

CODE, CURSOR, VSCODE = (CLIENTS[name] for name in ("claude-code", "cursor", "vscode"))
SERVER = entry(CURSOR, ["/usr/bin/python3", "-m", "holdfast"], {"HOLDFAST_DB": "/home/ada/memory.db"})

# What is written


def test_an_entry_says_what_to_start() -> None:
    assert SERVER == {
        "command": "/usr/bin/python3",
        "args": ["-m", "holdfast"],
        "env": {"HOLDFAST_DB": "/home/ada/memory.db"},
    }
    assert entry(CODE, ["holdfast"], {}) == {"type": "stdio", "command": "holdfast", "args": []}
    assert json.loads(snippet(VSCODE, SERVER)) == {"servers": {NAME: SERVER}}


@pytest.mark.parametrize("text", ["", " \n", "{}", "{ }\n", "{\n}\n", '{"mcpServers": {}}'])
def test_a_configuration_with_nothing_in_it_gets_the_entry(text: str) -> None:
    assert json.loads(installed(text, CURSOR, SERVER)) == {"mcpServers": {NAME: SERVER}}


def test_what_is_there_stays_as_it_is_written() -> None:
    text = """{
    "theme" : "dark",
    "mcpServers": {
        "other": { "command": "x", "args": [ 1,2 ] }
    },
    "list": [1,
       2]
}
"""
    added = """{
    "theme" : "dark",
    "mcpServers": {
        "other": { "command": "x", "args": [ 1,2 ] },
        "holdfast": {
            "command": "run"
        }
    },
    "list": [1,
       2]
}
"""
    assert installed(text, CURSOR, {"command": "run"}) == added
    assert installed(added, CURSOR, {"command": "run"}) == added
    assert installed(added, CURSOR, {"command": "go"}) == added.replace('"run"', '"go"')


def test_line_endings_and_tabs_stay() -> None:
    text = '\ufeff{\r\n\t"mcpServers": {\r\n\t\t"other": {}\r\n\t}\r\n}\r\n'
    changed = installed(text, CURSOR, {"command": "run"})
    assert changed.replace(',\r\n\t\t"holdfast": {\r\n\t\t\t"command": "run"\r\n\t\t}', "") == text


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, // a comment\n "b": 2}',
        '{"a": 1,}',
        "{'a': 1}",
        "[1]",
        '"text"',
        "{",
        "[" * 100_000,
        '{"mcpServers": []}',
        '{"mcpServers": null}',
    ],
)
def test_what_cannot_be_changed_without_loss_is_left_alone(text: str) -> None:
    with pytest.raises(Conflict) as caught:
        installed(text, CURSOR, SERVER)
    assert "hand" in caught.value.todo


LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
)
DOCUMENTS = st.dictionaries(st.text(max_size=6), VALUES, max_size=4)


@given(
    DOCUMENTS,
    st.none() | st.dictionaries(st.text(max_size=4) | st.just(NAME), VALUES, max_size=3),
    st.sampled_from([None, 0, 1, 2, 4, "\t"]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_only_our_entry_changes(
    document: dict[str, Any], servers: dict[str, Any] | None, indent: Any, line: str, plain: bool
) -> None:
    if servers is not None:
        document = {**document, "mcpServers": servers}
    else:
        document = {name: value for name, value in document.items() if name != "mcpServers"}
    text = json.dumps(document, indent=indent, ensure_ascii=plain).replace("\n", line)
    changed = installed(text, CURSOR, SERVER)
    assert json.loads(changed) == {**document, "mcpServers": {**(servers or {}), NAME: SERVER}}
    assert list(json.loads(changed)) == list({**document, "mcpServers": 0})
    assert installed(changed, CURSOR, SERVER) == changed


# The command


class Home:
    """A user with a home of their own, whose files a command may change."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.db = folder / "memory.db"
        for name in os.environ:
            if name.startswith(("XDG_", "CLAUDE_", "HOLDFAST_")):
                monkeypatch.delenv(name)
        monkeypatch.setenv("HOME", str(folder))

    def run(self, *words: str, code: int = 0, **environment: str) -> Result:
        command = ["mcp", "--db", str(self.db), *words]
        done = CliRunner().invoke(app, command, input="", env=environment, prog_name="holdfast")
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert done.exit_code == code, done.output
        return done


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return Home(tmp_path, monkeypatch)


@pytest.mark.parametrize("name", CLIENTS)
def test_it_is_added_where_the_client_looks(home: Home, name: str) -> None:
    done = home.run("--install", name, "--user", "ada", "--yes", "--json")
    report = json.loads(done.stdout)
    assert report["changed"]
    assert report["backup"] is None
    path = Path(report["path"])
    assert home.folder in path.parents
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    server = json.loads(path.read_text())[CLIENTS[name].section][NAME]
    assert server["command"] == sys.executable
    assert server["args"] == ["-P", "-m", "holdfast", "mcp", "--user", "ada"]
    assert server["env"] == {"HOLDFAST_DB": str(home.db)}
    assert "+" in done.stderr
    assert not json.loads(home.run("--install", name, "--user", "ada", "--json").stdout)["changed"]


@pytest.mark.skipif(sys.platform != "linux", reason="the folders of other systems are others")
def test_the_folders_are_those_that_the_clients_document(home: Home) -> None:
    paths = {
        name: json.loads(home.run("--install", name, "--print", "--json").stdout)["path"] for name in CLIENTS
    }
    assert {name: str(Path(path).relative_to(home.folder)) for name, path in paths.items()} == {
        "claude-code": ".claude.json",
        "claude-desktop": ".config/Claude/claude_desktop_config.json",
        "cursor": ".cursor/mcp.json",
        "vscode": ".config/Code/User/mcp.json",
    }
    elsewhere = home.run(
        "--install", "claude-code", "--print", "--json", CLAUDE_CONFIG_DIR=str(home.folder / "c")
    )
    assert json.loads(elsewhere.stdout)["path"] == str(home.folder / "c" / ".claude.json")


@pytest.mark.slow
def test_what_is_installed_starts(home: Home) -> None:
    home.run("--install", "cursor", "--user", "ada", "--read-only", "--yes")
    server = json.loads((home.folder / ".cursor" / "mcp.json").read_text())["mcpServers"][NAME]
    (home.folder / "project").mkdir()
    for name in (
        "json.py",
        "holdfast.py",
        "mcp.py",
    ):  # a project must not be imported in place of what it is named as
        (home.folder / "project" / name).write_text("raise SystemExit(3)")

    async def using() -> dict[str, Any]:
        parameters = StdioServerParameters(
            command=server["command"], args=server["args"], env=server["env"], cwd=home.folder / "project"
        )
        async with client(parameters, "auto") as one:
            return data(await one.call_tool("recall", {"query": "marathon"}))

    assert wait(using())["hits"] == []


def test_what_it_was_before_is_kept(home: Home) -> None:
    path = home.folder / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {"other": {"command": "x"}}}')
    path.chmod(0o640)
    done = home.run("--install", "cursor", "--yes")
    assert ".bak" in done.stdout
    assert json.loads(path.read_text())["mcpServers"].keys() == {"other", NAME}
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert (path.parent / "mcp.json.bak").read_text() == '{"mcpServers": {"other": {"command": "x"}}}'
    assert sorted(one.name for one in path.parent.iterdir()) == ["mcp.json", "mcp.json.bak"]


def test_a_link_stays_a_link(home: Home) -> None:
    (home.folder / "dotfiles").mkdir()
    (home.folder / "dotfiles" / "claude.json").write_text("{}")
    (home.folder / ".claude.json").symlink_to("dotfiles/claude.json")
    home.run("--install", "claude-code", "--yes")
    assert (home.folder / ".claude.json").is_symlink()
    assert NAME in (home.folder / "dotfiles" / "claude.json").read_text()


def test_print_writes_nothing(home: Home) -> None:
    done = home.run("--install", "vscode", "--print")
    assert json.loads(done.stdout)["servers"][NAME]["type"] == "stdio"
    assert "mcp.json" in done.stderr
    assert list(home.folder.iterdir()) == []


def test_nobody_there_to_be_asked_changes_nothing(home: Home) -> None:
    done = home.run("--install", "cursor", code=1)
    assert "Pass --yes or --print." in done.stderr
    assert list(home.folder.iterdir()) == []


def test_comments_are_kept_by_writing_nothing(home: Home) -> None:
    path = home.folder / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{\n  // mine\n  "mcpServers": {}\n}')
    done = home.run("--install", "cursor", "--yes", code=1)
    assert "not plain JSON" in done.stderr
    assert json.loads(done.stdout)["mcpServers"][NAME]  # what to paste
    assert path.read_text() == '{\n  // mine\n  "mcpServers": {}\n}'


def test_an_earlier_backup_stays(home: Home) -> None:
    path = home.folder / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {}}')
    (path.parent / "mcp.json.bak").write_text("Something else of theirs.")
    (path.parent / "mcp.json.bak1").symlink_to("elsewhere")
    report = json.loads(home.run("--install", "cursor", "--yes", "--json").stdout)
    assert report["backup"] == str(path.parent / "mcp.json.bak2")
    assert Path(report["backup"]).read_text() == '{"mcpServers": {}}'
    assert (path.parent / "mcp.json.bak").read_text() == "Something else of theirs."
    assert not (path.parent / "elsewhere").exists()


@pytest.mark.parametrize("what", ["folder", "file above", "circle of links", "another encoding"])
def test_what_is_no_configuration_is_said_and_stays(home: Home, what: str) -> None:
    path = home.folder / ".cursor" / "mcp.json"
    if what == "file above":
        path.parent.write_text("mine")
    else:
        path.parent.mkdir()
    if what == "folder":
        path.mkdir()
    elif what == "circle of links":
        path.symlink_to("mcp.json")
    elif what == "another encoding":
        path.write_text("{}", encoding="utf-16")
    before = sorted(home.folder.rglob("*"))
    done = home.run("--install", "cursor", "--yes", code=1)
    assert done.stderr.startswith("Error: ")
    assert "mcp.json" in done.stderr
    assert sorted(home.folder.rglob("*")) == before


def test_a_user_without_a_home_is_told_so(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", unknown)  # as in a container whose user is only a number
    for name in CLIENTS:
        assert "Set HOME." in home.run("--install", name, "--print", code=1).stderr


def test_what_could_not_start_is_not_installed(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "a control character" in home.run("--install", "cursor", "--yes", "--user", "a\nb", code=1).stderr
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert "pip install '.[mcp]'" in home.run("--install", "cursor", "--yes", code=1).stderr
    assert list(home.folder.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:secret@localhost/memory",
        "postgresql://ada:x/secret@y:se@localhost/memory",
        'postgresql://ada:"secret\\@localhost/memory',
        "postgresql://ad\u00e4:secr\u00e9t-secret@localhost/memory",
        "postgresql://:secret with blanks@localhost/memory",
        "postgresql://localhost/memory?user=ada&password=secret",
    ],
)
def test_a_password_is_not_shown(home: Home, url: str) -> None:
    path = home.folder / ".cursor" / "mcp.json"
    done = home.run("--install", "cursor", "--yes", "--db", url)
    assert "secret" not in done.output
    server = json.loads(path.read_text())["mcpServers"][NAME]
    assert server["env"]["HOLDFAST_DB"] == url
    assert "secret" not in str(server["args"])
    assert "secret" not in home.run("--install", "cursor", "--yes").output  # which takes it out again
    for words in (["--print"], ["--print", "--json"]):
        done = home.run("--install", "cursor", "--db", url, *words)
        assert "secret" not in done.output
        assert "where *** stands" in done.stderr
        assert "***" in done.stdout
    path.write_text("{} // mine")
    assert "secret" not in home.run("--install", "cursor", "--yes", "--db", url, code=1).output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--print"], "where to install"),
        (["--yes"], "where to install"),
        (["--install", "cursor", "--http"], "HTTP"),
    ],
)
def test_options_that_do_not_go_together_are_refused(home: Home, words: list[str], said: str) -> None:
    assert said in home.run(*words, code=1).stderr
    assert "none of claude-code" in home.run("--install", "emacs", code=2).stderr
