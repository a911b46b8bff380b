"""Projects on the command line: those of coding agents have the names that their hooks give them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runs import Cli


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))
    return Cli(tmp_path, monkeypatch)


@pytest.fixture
def shop(cli: Cli) -> Path:
    """Make a repository with a remote, and the log of a session in one of its folders."""
    root = cli.folder / "shop"
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git" / "config").write_text(
        '[remote "origin"]\n\turl = https://ada:hunter2@github.com/ada/shop.git\n'
    )
    (root / "web").mkdir()
    return root


def log(cli: Cli, session: str, folder: Path, text: str) -> Path:
    path = cli.home / ".claude" / "projects" / "p" / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    start = {"type": "mode", "mode": "normal", "sessionId": session}
    line = {
        "type": "user", "sessionId": session, "uuid": f"u-{session}", "cwd": str(folder),
        "timestamp": "2026-01-01T00:00:00Z", "message": {"role": "user", "content": text},
    }  # fmt: skip
    path.write_text(f"{json.dumps(start)}\n{json.dumps(line)}\n")
    return path


def test_sessions_go_into_the_projects_of_their_folders(cli: Cli, shop: Path, tmp_path: Path) -> None:
    cli.with_database()
    log(cli, "one", shop / "web", "the colour of the shop is teal")
    log(cli, "two", tmp_path / "notes", "the colour of the notes is amber")
    reports = cli.json("import", "--by-project")["projects"]
    assert {name: one["added"] for name, one in reports.items()} == {
        "github.com/ada/shop": 1,
        str(tmp_path / "notes"): 1,
    }
    assert cli.json("import", "--by-project")["projects"]["github.com/ada/shop"]["added"] == 0
    assert cli.json("chats")["chats"] == []
    found = cli.json("recall", "colour", "--project", "github.com/ada/shop")["hits"]
    assert [hit["text"] for hit in found] == ["the colour of the shop is teal"]


def test_a_point_is_the_project_of_this_folder(cli: Cli, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.with_database()
    monkeypatch.chdir(shop / "web")
    cli.run("remember", "The shop sells tea", "--project", ".")
    listed = cli.json("projects")["projects"]
    assert [one["project"] for one in listed] == ["github.com/ada/shop"]
    assert (
        cli.json("records", "--project", "github.com/ada/shop")["records"][0]["text"] == "The shop sells tea"
    )
    monkeypatch.setenv("HOLDFAST_PROJECT", ".")
    assert "The shop sells tea" in cli.text("records")
    monkeypatch.chdir(cli.folder)
    assert "The shop sells tea" not in cli.text("records")


def test_projects_say_how_much_they_hold(cli: Cli, shop: Path) -> None:
    cli.with_database()
    log(cli, "one", shop, "the colour of the shop is teal")
    cli.run("import", "--by-project")
    assert cli.json("projects")["projects"] == [
        {
            "project": "github.com/ada/shop", "root": None, "chats": 1, "messages": 1,
            "newest": "2026-01-01T00:00:00+00:00",
        }
    ]  # fmt: skip
    shown = cli.text("projects")
    assert "github.com/ada/shop" in shown
    assert "hunter2" not in shown
    assert "2026" in shown


def test_what_names_no_folder_is_passed_over_and_told(cli: Cli, shop: Path) -> None:
    cli.with_database()
    path = log(cli, "one", Path("relative"), "said nowhere")
    log(cli, "two", shop, "said in the shop")
    (path.parent / "broken.jsonl").write_bytes(b"\xff\xfe{\n[[[[\n")
    answer = cli.json("import", "--by-project")
    assert list(answer["projects"]) == ["github.com/ada/shop"]
    assert [Path(one).name for one in answer["passed_over"]] == ["broken.jsonl", "one.jsonl"]
    assert "name no folder: 2 files" in cli.text("import", "--by-project")
