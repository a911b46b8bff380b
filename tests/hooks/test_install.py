"""`holdfast install CLIENT` and `holdfast uninstall CLIENT`, with the files that clients read."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters

from holdfast_cli.hooks.clients import client_of
from install_home import CLIENTS, FILES, HOOKED, OF_PROJECT, Home
from mcp_peers import client, data, wait
from tables import each

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the folders of other systems are others")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return Home(tmp_path, monkeypatch)


def server_in(home: Home, name: str) -> dict[str, Any]:
    path = home.folder / (FILES[name][0] if name == "gemini" else FILES[name][min(1, len(FILES[name]) - 1)])
    if name == "codex":
        return dict(tomllib.loads(path.read_text("utf-8"))["mcp_servers"]["holdfast"])
    section = "servers" if name == "vscode" else "mcpServers"
    return dict(json.loads(path.read_text("utf-8"))[section]["holdfast"])


# What is written, and where


@pytest.mark.parametrize("name", CLIENTS)
def test_it_is_installed_where_the_client_looks_once_and_uninstalled_nothing_is_left(
    home: Home, name: str
) -> None:
    assert "Nothing is installed" in home.run("uninstall", name, "--yes").stdout
    files = home.report("install", name, "--user", "ada", "--yes")
    assert [Path(file["path"]).relative_to(home.folder).as_posix() for file in files] == FILES[name]
    assert all(file["changed"] and file["backup"] is None for file in files)
    before = home.texts()
    assert sorted(before) == sorted(FILES[name])
    for file in files:
        assert stat.S_IMODE(Path(file["path"]).stat().st_mode) == 0o600
    server = server_in(home, name)
    assert server["command"] == sys.executable
    project = ["--project", "."] if name in HOOKED else []
    assert server["args"] == ["-P", "-m", "holdfast", "mcp", "--user", "ada", *project]
    assert "env" not in server
    assert server.get("type") == ("stdio" if name in ("claude-code", "vscode") else None)
    assert not any(file["changed"] for file in home.report("install", name, "--user", "ada"))
    assert home.texts() == before
    assert not list(home.folder.rglob("*.bak*"))
    said = home.run("install", name, "--user", "bob", "--yes").stderr
    assert ("call /hooks in it" in said) == (name == "codex")
    home.run("uninstall", name, "--yes")
    assert home.texts() == {}


@pytest.mark.parametrize("name", HOOKED)
def test_each_event_calls_the_python_that_installed(home: Home, name: str) -> None:
    home.run("install", name, "--user", "ada b", "--tenant", "acme", "--db", "my.db", "--yes")
    commands = home.commands(FILES[name][0])
    assert {event: shlex.split(command) for event, command in commands.items()} == {
        hook.native: [
            *(sys.executable, "-P", "-m", "holdfast", "hook", hook.event, "--client", name),
            *("--db", str(home.project / "my.db"), "--tenant", "acme", "--user", "ada b"),
        ]
        for hook in client_of(name).hooks
    }
    assert server_in(home, name)["env"] == {"HOLDFAST_DB": str(home.project / "my.db")}


def test_the_entries_are_of_the_form_that_each_client_reads(home: Home) -> None:
    for name in HOOKED:
        home.run("install", name, "--yes")
    first = {
        name: json.loads((home.folder / FILES[name][0]).read_text("utf-8"))["hooks"][
            client_of(name).hooks[2].native
        ][0]
        for name in HOOKED
    }
    for name in ("claude-code", "codex", "gemini"):
        [first[name]] = first[name]["hooks"]
        assert first[name].pop("type") == "command"
    assert all(entry.pop("command") for entry in first.values())
    assert first == {
        "claude-code": {"timeout": 120, "async": True},
        "codex": {"timeout": 30},
        "cursor": {"timeout": 30},
        "gemini": {"timeout": 30_000, "name": "holdfast-stop"},
    }
    assert json.loads((home.folder / ".cursor/hooks.json").read_text("utf-8"))["version"] == 1


def test_the_environment_moves_the_folders_of_clients(home: Home) -> None:
    home.run("install", "claude-code", "--yes", CLAUDE_CONFIG_DIR=str(home.folder / "c"))
    home.run("install", "codex", "--yes", CODEX_HOME=str(home.folder / "x"))
    assert sorted(home.texts()) == [
        *("c/.claude.json", "c/settings.json", "c/skills/holdfast-memory/SKILL.md"),
        *("x/config.toml", "x/hooks.json"),
    ]


@pytest.mark.slow
def test_the_server_that_is_installed_starts(home: Home) -> None:
    home.run("install", "cursor", "--user", "ada", "--db", str(home.folder / "a.db"), "--read-only", "--yes")
    server = server_in(home, "cursor")
    for name in ("json.py", "holdfast.py", "mcp.py"):
        # A project must not be imported in place of what it is named as.
        (home.project / name).write_text("raise SystemExit(3)")

    async def using() -> dict[str, Any]:
        parameters = StdioServerParameters(
            command=server["command"], args=server["args"], env=server["env"], cwd=home.project
        )
        async with client(parameters, "auto") as one:
            return data(await one.call_tool("recall", {"query": "marathon"}))

    assert wait(using())["hits"] == []


# Projects


@pytest.mark.parametrize("name", HOOKED)
def test_in_a_project_it_is_in_the_file_of_the_project(home: Home, name: str) -> None:
    (home.project / "src").mkdir()
    os.chdir(home.project / "src")
    home.run("install", name, "--project", "--yes")
    path = f"shop/{OF_PROJECT[name]}"
    assert set(home.texts()) == {path, *([".claude.json"] if name == "claude-code" else [])}
    command = home.commands(path)[client_of(name).hooks[0].native]
    if name == "claude-code":
        assert sys.executable in command
        projects = json.loads((home.folder / ".claude.json").read_text("utf-8"))["projects"]
        assert projects[str(home.project)]["mcpServers"].keys() == {"holdfast"}
    else:
        assert str(home.folder) not in command
        assert sys.executable not in command
    home.run("uninstall", name, "--project", "--yes")
    assert home.texts() == {}


@pytest.mark.parametrize("name", HOOKED[1:])
def test_a_committed_hook_does_nothing_where_holdfast_is_missing(home: Home, name: str) -> None:
    home.run("install", name, "--project", "--yes")
    program = home.write("bin/holdfast", '#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)

    def output(command: str, path: Path) -> tuple[bytes, bytes]:
        words = ["/bin/sh", "-c", command]
        done = subprocess.run(words, env={"PATH": str(path)}, capture_output=True, check=True)
        return done.stdout, done.stderr

    for command in home.commands(f"shop/{OF_PROJECT[name]}").values():
        assert output(command, home.folder) == (b"", b"")
    # And where it is there, it is called.
    assert output(command, program.parent)[0].split() == [b"hook", b"session-end", b"--client", name.encode()]


def test_a_committed_file_names_nobody(home: Home) -> None:
    done = home.run("install", "codex", "--project", "--yes", "--user", "ada", code=1)
    assert "all who work on a project" in done.stderr
    assert home.texts() == {}
    home.run("install", "codex", "--project", "--yes", HOLDFAST_USER="ada", HOLDFAST_DB="/x.db")
    assert "ada" not in "".join(home.texts().values())
    assert "x.db" not in "".join(home.texts().values())


# Again, beside others, and back


SETTINGS = """{
    // how I like it
    "theme" : "dark",
    "hooks": {
        "Stop": [
            { "matcher": "", "hooks": [ { "type": "command", "command": "say done" } ] } // spoken
        ],
        "Notification": []
    },
}
"""


def test_entries_of_another_python_are_replaced_and_removed(home: Home) -> None:
    old = "/opt/old python/bin/python3 -P -m holdfast hook stop --client claude-code --db /old.db"
    group = {"hooks": [{"type": "command", "command": old, "timeout": 7}]}
    other = {"hooks": [{"type": "command", "command": "say holdfast hook"}, group["hooks"][0]]}
    hooks = {"Stop": [group, other], "PostToolUse": [{"matcher": "Bash", "hooks": group["hooks"]}]}
    path = home.write(".claude/settings.json", json.dumps({"hooks": hooks}, indent=2))
    home.run("install", "claude-code", "--yes")
    assert "/opt/old" not in path.read_text("utf-8")
    found = json.loads(path.read_text("utf-8"))["hooks"]
    assert "PostToolUse" not in found
    assert [len(one["hooks"]) for one in found["Stop"]] == [1, 1]
    path.write_text(json.dumps({"hooks": hooks}, indent=2))
    home.run("uninstall", "claude-code", "--yes")
    assert json.loads(path.read_text("utf-8")) == {"hooks": {"Stop": [{"hooks": [other["hooks"][0]]}]}}


def test_a_server_of_the_same_name_that_is_not_ours_stays(home: Home) -> None:
    text = '{"mcpServers": {"holdfast": {"command": "theirs", "args": ["mcp"]}}}'
    path = home.write(".cursor/mcp.json", text)
    home.run("uninstall", "cursor", "--yes")
    assert path.read_text("utf-8") == text
    skill = home.write(".claude/skills/holdfast-memory/SKILL.md", "My own.")
    home.run("uninstall", "claude-code", "--yes")
    assert skill.read_text("utf-8") == "My own."


def test_a_file_of_ours_that_was_edited_goes_and_is_kept_as_a_backup(home: Home) -> None:
    home.run("install", "claude-code", "--yes")
    skill = home.folder / ".claude/skills/holdfast-memory/SKILL.md"
    skill.write_text(f"{skill.read_text('utf-8')}More of mine.\n", "utf-8")
    home.run("uninstall", "claude-code", "--yes")
    assert home.texts() == {}
    assert skill.with_name("SKILL.md.bak").read_text("utf-8").endswith("More of mine.\n")


CONFIG = """# my model
model = "x" # fast

[mcp_servers.other]
command = "y"
"""


def test_the_toml_of_codex_keeps_its_comments(home: Home) -> None:
    path = home.write(".codex/config.toml", CONFIG)
    home.run("install", "codex", "--user", 'a"b\\ü🎉\x7f'.replace("\x7f", ""), "--yes")
    text = path.read_text("utf-8")
    assert text.startswith(CONFIG)
    assert server_in(home, "codex")["args"][5] == 'a"b\\ü🎉'
    assert tomllib.loads(text)["mcp_servers"]["other"] == {"command": "y"}
    path.write_text(f'{text}\n[projects."/x"]\ntrust_level = "trusted"\n')
    home.run("install", "codex", "--user", "bob", "--yes")
    assert server_in(home, "codex")["args"][5] == "bob"
    home.run("uninstall", "codex", "--yes")
    assert path.read_text("utf-8") == f'{CONFIG}\n[projects."/x"]\ntrust_level = "trusted"\n'


@pytest.mark.parametrize(
    "text", ['[mcp_servers.holdfast]\ncommand = "x"\n', 'mcp_servers = { a = { command = "x" } }\n', "= 1"]
)
def test_toml_that_cannot_take_the_server_is_left_alone(home: Home, text: str) -> None:
    path = home.write(".codex/config.toml", text)
    done = home.run("install", "codex", "--yes", code=1)
    assert "[mcp_servers.holdfast]" in done.stdout
    assert list(home.texts().values()) == [text]
    assert path.read_text("utf-8") == text


# Shown, asked, kept


def test_print_writes_nothing(home: Home) -> None:
    done = home.run("install", "claude-code", "--print")
    assert "SessionStart" in done.stdout
    assert "settings.json" in done.stderr
    files = json.loads(home.run("install", "gemini", "--print", "--json").stdout)["files"]
    assert [Path(file["path"]).name for file in files] == ["settings.json", "settings.json"]
    assert json.loads(files[0]["add"])["hooks"]
    assert home.texts() == {}


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_nobody_there_to_be_asked_changes_nothing(home: Home, command: str) -> None:
    if command == "uninstall":
        home.run("install", "cursor", "--yes")
    before = home.texts()
    done = home.run(command, "cursor", code=1)
    assert "Pass --yes" in done.stderr
    assert "hooks.json" in done.stderr
    assert home.texts() == before


def test_what_it_was_before_is_kept(home: Home) -> None:
    path = home.write(".cursor/mcp.json", '{"mcpServers": {"other": {"command": "x"}}}')
    path.chmod(0o640)
    (path.parent / "mcp.json.bak").write_text("Something else of theirs.")
    (path.parent / "mcp.json.bak1").symlink_to("elsewhere")
    [_, report] = home.report("install", "cursor", "--yes")
    assert report["backup"] == str(path.parent / "mcp.json.bak2")
    assert Path(report["backup"]).read_text() == '{"mcpServers": {"other": {"command": "x"}}}'
    assert (path.parent / "mcp.json.bak").read_text() == "Something else of theirs."
    assert not (path.parent / "elsewhere").exists()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert server_in(home, "cursor")
    home.run("uninstall", "cursor", "--yes")
    assert path.read_text() == '{"mcpServers": {"other": {"command": "x"}}}'
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_stays_a_link(home: Home) -> None:
    target = home.write("dotfiles/settings.json", "{ }")
    (home.folder / ".gemini").mkdir()
    (home.folder / ".gemini/settings.json").symlink_to("../dotfiles/settings.json")
    home.run("install", "gemini", "--yes")
    assert (home.folder / ".gemini/settings.json").is_symlink()
    assert "holdfast" in target.read_text()
    home.run("uninstall", "gemini", "--yes")
    assert target.read_text() == "{ }"


# What is wrong


@pytest.mark.parametrize("command", ["install", "uninstall"])
@pytest.mark.parametrize("what", ["folder", "file above", "circle of links", "another encoding", "broken"])
def test_what_is_no_configuration_is_said_and_stays(home: Home, what: str, command: str) -> None:
    path = home.folder / ".cursor" / "hooks.json"
    if what == "file above":
        path.parent.write_text("mine")
    else:
        path.parent.mkdir()
    if what == "folder":
        path.mkdir()
    elif what == "circle of links":
        path.symlink_to("hooks.json")
    elif what == "another encoding":
        path.write_text("{}", encoding="utf-16")
    elif what == "broken":
        path.write_text('{"hooks": ')
    before = sorted(home.folder.rglob("*"))
    done = home.run(command, "cursor", "--yes", code=1)
    assert "Error: " in done.stderr
    assert "hooks.json" in done.stderr.partition("Error: ")[2]
    assert sorted(home.folder.rglob("*")) == before


@pytest.mark.parametrize("hooks", ["[]", "null", '"x"', '{"sessionStart": {}}', '{"stop": "x"}'])
def test_hooks_of_a_wrong_type_are_said_and_stay(home: Home, hooks: str) -> None:
    home.write(".cursor/hooks.json", f'{{"version": 1, "hooks": {hooks}}}')
    before = home.texts()
    done = home.run("install", "cursor", "--yes", code=1)
    assert "of the configuration is no" in done.stderr or "is no object" in done.stderr
    assert "beforeSubmitPrompt" in done.stdout  # what to paste
    home.run("uninstall", "cursor", "--yes")
    assert home.texts() == before
    # Items of a wrong type are others'.
    odd = '{"hooks": {"Stop": [1, null, "x", {"hooks": 3}, {"hooks": [4, {"command": 5}]}, {"hooks": {}}]}}'
    path = home.write(".claude/settings.json", odd)
    home.run("install", "claude-code", "--yes")
    assert json.loads(path.read_text("utf-8"))["hooks"]["Stop"][:-1] == json.loads(odd)["hooks"]["Stop"]
    home.run("uninstall", "claude-code", "--yes")
    assert path.read_text("utf-8") == odd


@pytest.mark.slow
def test_two_installs_at_once_are_one(home: Home) -> None:
    home.write(".claude/settings.json", SETTINGS)
    words = [sys.executable, "-P", "-m", "holdfast", "install", "claude-code", "--yes"]
    running = [
        subprocess.Popen(words, cwd=home.project, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    errors = [process.communicate(timeout=60)[1].decode() for process in running]
    assert all(
        process.returncode == 0 or "was changed at this moment" in error
        for process, error in zip(running, errors, strict=True)
    ), errors
    assert 0 in [process.returncode for process in running]
    home.run("install", "claude-code", "--yes")
    text = (home.folder / ".claude/settings.json").read_text("utf-8")
    assert text.count("-m holdfast hook") == 6
    home.run("uninstall", "claude-code", "--yes")
    assert home.texts() == {".claude/settings.json": SETTINGS}


# Passwords

URLS = [
    "postgresql://ada:secret@localhost/memory",
    "postgresql://ad\u00e4:secr\u00e9t-secret@localhost/memory",
    "postgresql://localhost/memory?user=ada&password=secret",
]


@pytest.mark.parametrize("url", URLS)
def test_a_password_is_not_shown(home: Home, url: str) -> None:
    path = home.write(".config/Code/User/mcp.json", "{}")
    path.chmod(0o644)
    done = home.run("install", "vscode", "--yes", "--db", url)
    assert "secret" not in done.output
    server = server_in(home, "vscode")
    assert server["env"]["HOLDFAST_DB"] == url
    assert "secret" not in str(server["args"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "secret" not in home.run("install", "vscode", "--yes").output  # which takes it out again
    for words in (["--print"], ["--print", "--json"]):
        done = home.run("install", "vscode", "--db", url, *words)
        assert "secret" not in done.output
        assert "where *** stands" in done.stderr
        assert "***" in done.stdout
    path.write_text("{} mine")
    assert "secret" not in home.run("install", "vscode", "--yes", "--db", url, code=1).output


@each("url", URLS)
@pytest.mark.parametrize("name", HOOKED)
def test_a_command_line_has_no_password(home: Home, name: str, url: str) -> None:
    for words in (["--db", url], ["--db", url, "--print"]):
        done = home.run("install", name, "--yes", *words, code=1)
        assert "~/.pgpass" in done.stderr
        assert "secret" not in done.output
    assert "~/.pgpass" in home.run("install", name, "--yes", code=1, HOLDFAST_DB=url).stderr
    assert home.texts() == {}
    home.run("install", name, "--yes", "--db", "postgresql://ada@localhost/memory")
    assert "--db postgresql://ada@localhost/memory" in next(iter(home.commands(FILES[name][0]).values()))
    home.run("uninstall", name, "--yes")
