"""Erasure of projects, teams and users, and what is left of them in the spaces of others."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

from holdfast import Denied, Erasure, InvalidInput, Memory, Unavailable, acting_as
from holdfast.store import database
from holdfast_cli.commands import app as command_line

REVIEWS, TEA, BLOG = "Deployments need two reviews", "Ada likes tea", "The blog is manual"


def texts(memory: Memory) -> list[str]:
    return [record.text for record in memory.records()]


def test_a_team_is_erased_alone(app: Memory) -> None:
    core, ops = app.scoped(team="core"), app.scoped(team="ops")
    for team in (core, ops):
        team.remember(REVIEWS)
        team.chat("monday").append(role="user", content="A deployment")
        team.scratchpad["temp:week"] = "2"
    app.grants.add("team:core", to="user:ada")
    app.scoped(tenant="t").grants.add("team:core", to="user:ada")
    receipt = app.erase(team="core", by="user")
    assert receipt.what == "team"
    assert (receipt.counts["messages"], receipt.counts["records"], receipt.counts["grants"]) == (1, 1, 1)
    for left in (core.records(), core.chats(archived=None), list(app.grants), list(core.scratchpad)):
        assert left == []
    assert core.verify().ok
    assert core.changes(kind="erasure")[0].erasure is not None
    assert (texts(ops), list(ops.scratchpad)) == ([REVIEWS], ["temp:week"])
    assert len(app.scoped(tenant="t").grants) == 1
    app.grants.add("team:ops", to="user:bob")
    assert app.erase(user="bob").counts == {"grants": 1}, "who has nothing but rights"
    assert list(app.grants) == []
    with pytest.raises(Denied):
        app.scoped(user="ada", reads=["team:core"]).recall("deployment")
    with pytest.raises(InvalidInput, match="nothing of that name"):
        app.erase(team="core")


def test_a_team_is_erased_by_who_acts_for_all(app: Memory) -> None:
    app.scoped(team="core").remember(REVIEWS)
    app.grants.add("team:core", to="user:ada", rights="write")
    for ada in (app.scoped(user="ada"), app.scoped(user="ada", team="core")):
        with pytest.raises(Denied):
            ada.erase(team="core")
    with acting_as(user="ada"), pytest.raises(Denied):
        app.erase(team="core")
    with pytest.raises(InvalidInput, match="not clear"):
        app.erase(team="core", project="shop")
    for wrong in ("", "a\x00b"):
        with pytest.raises(InvalidInput):
            app.erase(team=wrong)


def test_what_went_to_a_team_is_erased_there(app: Memory) -> None:
    app.grants.add("team:core", to="user:ada", rights="write")
    ada, core = app.scoped(user="ada"), app.scoped(team="core")
    ada.grants.move(ada.remember(TEA, by="user").id, "team:core", by="user")
    ada.grants.copy(ada.remember(BLOG, by="user").id, "team:core", by="user")
    app.erase(user="ada", by="user")
    assert texts(core) == [TEA, BLOG]
    came = [one for one in core.changes() if one.action in ("move", "copy")]
    assert all((one.why or "").startswith("from user:ada") for one in came)
    for one in came:
        core.erase(record=one.id, by="user")
    assert core.records() == []
    assert core.verify().ok


@pytest.mark.parametrize("erased", ["project", "record", "chat"])
def test_a_move_from_what_was_erased_is_undone_where_it_went(app: Memory, erased: str) -> None:
    ada = app.scoped(user="ada")
    ada.remember(TEA, by="user")
    shop = ada.scoped(project="shop")
    chat = shop.chat("monday")
    chat.append(role="user", content=REVIEWS)
    record = chat.remember(REVIEWS, messages=1, by="user")
    there = shop.grants.move(record.id, "user", by="user")
    if erased == "project":
        ada.erase(project="shop")
    else:
        shop.erase(record=record.id) if erased == "record" else shop.erase(chat="monday")
    # What is new there has another number than what was erased.
    shop.remember("The shop is open on Sundays")
    assert [one.id for one in ada.undo(by="user")] == [there.id]
    assert texts(ada) == [TEA]
    assert texts(shop) == ["The shop is open on Sundays"]
    ada.undo(by="user")
    assert texts(ada) == []
    back = ada.remember(TEA, by="user")
    ada.grants.move(back.id, "project:shop", by="user")
    assert ada.erase(project="shop").what == "project"
    ada.undo(by="user")
    assert [one.id for one in ada.records()] == [back.id]
    assert (ada.verify().ok, shop.verify().ok, shop.records()) == (True, True, [])


def erased_beside_a_reader(location: str | Path) -> None:
    with Memory(location) as app:
        ada = app.scoped(user="ada")
        ada.remember(TEA)
        for project in ("shop", "blog"):
            ada.scoped(project=project).remember(REVIEWS)
        with pytest.raises(Unavailable, match="erased from every table") as raised:
            app.erase(user="ada")
        receipt = raised.value.receipt
        assert isinstance(receipt, Erasure)
        assert receipt.counts["records"] == 3
        assert receipt.remains
        assert ada.grants.projects() == texts(ada) == texts(ada.scoped(project="shop")) == []


@pytest.mark.slow
def test_a_user_goes_with_all_projects_while_others_read_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.3)
    file = tmp_path / "memory.db"
    Memory(file).close()
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM messages").fetchall()
        erased_beside_a_reader(file)


@pytest.mark.slow
def test_a_user_goes_with_all_projects_while_a_transaction_is_open(
    own_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 2)
    Memory(own_postgres_url).close()
    with psycopg.connect(own_postgres_url) as other:
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT 1")
        erased_beside_a_reader(own_postgres_url)


@pytest.mark.parametrize(
    ("words", "gone"),
    [
        (["--user", "ada", "--project", "shop"], {"shop"}),
        (["--team", "core"], {"core"}),
        (["--user", "ada"], {"ada", "shop", "blog"}),
    ],
)
def test_a_command_erases_what_it_names(shared_location: str, words: list[str], gone: set[str]) -> None:
    with Memory(shared_location) as app:
        ada = app.scoped(user="ada")
        handles = {project: ada.scoped(project=project) for project in ("shop", "blog")}
        handles |= {"ada": ada, "core": app.scoped(team="core"), "bob": app.scoped(user="bob")}
        for one, handle in handles.items():
            handle.remember(f"{one} is deployed with Helm")
        command = ["erase", *words, "--db", shared_location]
        asked = CliRunner().invoke(command_line, command)
        assert asked.exit_code == 1
        assert f"with {len(gone)} record" in asked.output
        assert all(texts(handle) for handle in handles.values())
        done = CliRunner().invoke(command_line, [*command, "--yes"])
        assert done.exit_code == 0, done.output
        assert {one for one, handle in handles.items() if not texts(handle)} == gone


def test_a_user_is_not_erased_where_the_environment_names_a_project(
    shared_location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_PROJECT", "shop")
    with Memory(shared_location, user="ada") as ada:
        ada.remember(TEA)
        ada.scoped(project="shop").remember(REVIEWS)
        command = ["erase", "--user", "ada", "--yes", "--db", shared_location]
        refused = CliRunner().invoke(command_line, command)
        assert refused.exit_code == 1
        assert "--project" in refused.output
        assert (texts(ada), texts(ada.scoped(project="shop"))) == ([TEA], [REVIEWS])
