"""Projects on the command line: those of coding agents have the names that their hooks give them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from cli_runs import Cli, with_database

from holdfast import Memory


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))
    return with_database(tmp_path, monkeypatch)


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
    log(cli, "one", shop / "web", "the colour of the shop is teal")
    log(cli, "two", tmp_path / "notes", "the colour of the notes is amber")
    assert cli.json("import")["projects"] == {"github.com/ada/shop": 1, str(tmp_path / "notes"): 1}
    again = cli.json("import")
    assert (again["added"], again["unchanged"], again["projects"]["github.com/ada/shop"]) == (0, 2, 0)
    assert cli.json("chats")["chats"] == []
    found = cli.json("recall", "colour", "--project", "github.com/ada/shop")["hits"]
    assert [hit["text"] for hit in found] == ["the colour of the shop is teal"]


def test_projects_are_told_with_what_they_hold(cli: Cli, shop: Path) -> None:
    log(cli, "one", shop, "the colour of the shop is teal")
    shown = cli.text("import")
    assert "Into projects: github.com/ada/shop (1)." in shown
    assert "--project github.com/ada/shop" in shown
    held = {"project": "github.com/ada/shop", "root": None, "chats": 1, "messages": 1}
    (told,) = cli.json("projects")["projects"]
    assert told == {**held, "newest": "2026-01-01T00:00:00+00:00"}
    shown = cli.text("projects")
    assert "github.com/ada/shop" in shown
    assert "hunter2" not in shown
    assert "2026" in shown


def test_a_point_is_the_project_of_this_folder(cli: Cli, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shop / "web")
    cli.run("remember", "The shop sells tea", "--project", ".")
    listed = cli.json("projects")["projects"]
    assert [one["project"] for one in listed] == ["github.com/ada/shop"]
    (record,) = cli.json("records", "--project", "github.com/ada/shop")["records"]
    assert record["text"] == "The shop sells tea"
    monkeypatch.setenv("HOLDFAST_PROJECT", ".")
    assert "The shop sells tea" in cli.text("records")
    monkeypatch.chdir(cli.folder)
    assert "The shop sells tea" not in cli.text("records")


def test_what_names_no_folder_or_is_no_session_goes_into_no_project(cli: Cli, shop: Path) -> None:
    path = log(cli, "one", Path("relative"), "said nowhere")
    log(cli, "two", shop, "said in the shop")
    talk = {"role": "user", "content": "said elsewhere", "cwd": str(shop)}
    (path.parent / "talk.jsonl").write_text(json.dumps(talk))
    with zipfile.ZipFile(path.parent / "old.zip", "w") as packed:
        packed.write(log(cli, "three", shop, "said before"), "three.jsonl")
    (path.parent / "three.jsonl").unlink()
    answer = cli.json("import")
    assert (answer["added"], answer["projects"]) == (4, {"github.com/ada/shop": 2})
    heap = {one["title"] for one in cli.json("chats")["chats"]}
    assert heap == {"said nowhere", "said elsewhere"}


@pytest.fixture
def talks(cli: Cli) -> Cli:
    """Make chats of one name: of the user, of a project, and of all users."""
    with Memory(cli.db) as app:
        ada, project = app.scoped(user="ada"), app.scoped(user="ada", project="P")
        for memory, title, text in (
            (ada, "The server", "The capybara server listens on port 8123."),
            (project, "The canteen", "Entirely different: lunch is at noon."),
            (app, "For all", "The walrus server listens on port 9000."),
        ):
            memory.chat("talk").append(role="user", content=text)
            memory.chat("talk").rename(title)
    return cli


IN_PROJECT = ("--user", "ada", "--project", "P")


def test_a_hit_of_another_space_has_its_title_and_a_name_that_commands_take(talks: Cli) -> None:
    (hit, *_) = talks.json("recall", "capybara port", *IN_PROJECT)["hits"]
    assert (hit["title"], hit["ref"], hit["space"]) == ("The server", "user|talk#1", "user")
    assert "The server  (user|talk#1)" in talks.text("recall", "capybara port", *IN_PROJECT)
    assert "The canteen  (talk#1)" in talks.text("recall", "lunch noon", *IN_PROJECT)
    assert talks.json("why", "capybara port", "user|talk#1", *IN_PROJECT)["found"]
    for command in ("show", "expand"):
        shown = talks.json(command, "user|talk#1", *IN_PROJECT)
        assert (shown["title"], shown["messages"][0]["content"]) == ("The server", hit["text"])
        assert talks.json(command, "project:P|talk#1", *IN_PROJECT)["title"] == "The canteen"
        assert talks.json(command, "talk#1", *IN_PROJECT)["title"] == "The canteen"
    assert talks.json("show", "user|talk", *IN_PROJECT)["title"] == "The server"
