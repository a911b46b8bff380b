"""Grants in several processes, and spaces in all that is built on a memory."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holdfast import Denied, InvalidInput, Memory, Tool
from holdfast_cli.commands import app as command_line

READER = """
import sys
from holdfast import Denied, Memory
memory = Memory(sys.argv[1], user="ada", reads=["team:core"])
chat = memory.chat("monday")
print("open", flush=True)
for line in sys.stdin:
    try:
        found = len(memory.recall("deployments")) + chat.prompt(2_000).system.count("Deployments")
        print(found, flush=True)
    except Denied:
        print("denied", flush=True)
"""


@pytest.mark.slow
def test_a_right_that_is_revoked_ends_at_once_in_a_process_that_reads(shared_location: str) -> None:
    with Memory(shared_location) as app:
        app.scoped(team="core").remember("Deployments need two reviews")
        reader = subprocess.Popen(
            [sys.executable, "-c", READER, shared_location],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert reader.stdin is not None
        assert reader.stdout is not None
        try:
            answers = [reader.stdout.readline()]
            for change in (None, app.grants.add, app.grants.revoke, app.grants.add):
                if change is not None:
                    change("team:core", to="user:ada")
                reader.stdin.write("\n")
                reader.stdin.flush()
                answers.append(reader.stdout.readline())
        finally:
            reader.stdin.close()
            reader.wait(30)
            reader.stdout.close()
    assert [line.strip() for line in answers] == ["open", "denied", "2", "denied", "2"]


def test_a_forged_scope_reads_no_more_than_its_user_may(app: Memory) -> None:
    app.scoped(team="core").remember("Deployments need two reviews")
    ada = app.scoped(user="ada")
    for name in ("core/..", "%2Fcore", "../core", "core\x1f"):
        try:
            assert app.scoped(user="ada", project=name).recall("deployments") == []
        except InvalidInput:
            assert "\x1f" in name
    for user in ("/", "%2F", "ada/", "//core"):
        assert app.scoped(user=user).recall("deployments") == []
        assert app.scoped(user=user).grants.projects() == []
    object.__setattr__(ada.scope, "space", app.scoped(team="core").scope.space)
    for look in (lambda: ada.recall("deployments"), ada.records):
        with pytest.raises(Denied):
            look()
    assert app.scoped(user="ada").recall("deployments") == []


def test_who_listens_hears_nothing_once_the_right_is_gone(app: Memory) -> None:
    heard: list[str] = []
    core = app.scoped(team="core")
    app.grants.add("team:core", to="user:ada")
    app.scoped(user="ada", team="core").on("learned", lambda event: heard.append(str(event.record)))
    core.remember("Deployments need two reviews")
    assert len(heard) == 1
    app.grants.revoke("team:core", to="user:ada")
    core.remember("Never deploy on Fridays")
    assert len(heard) == 1


def hits_of(recall: Tool) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(json.dumps(recall({"query": "deployment"}).data))["hits"]
    return found


def test_tools_say_whose_a_hit_is_and_expand_it_there(memory: Memory) -> None:
    ada = memory.scoped(user="ada")
    shop = ada.scoped(project="shop")
    for one, name in ((ada, "blog"), (shop, "shop")):
        said = [f"A deployment of the {name}", f"{name} 2"]
        one.chat("monday").append([{"role": "user", "content": text} for text in said])
    tools = {tool.name: tool for tool in shop.tools()}
    found = [(item["id"], item["space"]) for item in hits_of(tools["recall"])]
    for space, name in (("project:shop", "shop"), ("user", "blog")):
        assert (f"{space}|monday#1", space) in found
        opened = json.loads(tools["expand"]({"id": f"{space}|monday#1"}).text)["items"]
        assert [item["id"] for item in opened] == [f"{space}|monday#1", f"{space}|monday#2"]
        [again] = json.loads(tools["expand"]({"id": opened[1]["id"]}).text)["items"]
        assert (again["text"], again["space"]) == (f"{name} 2", space)
    assert json.loads(tools["expand"]({"id": "monday#2"}).text)["items"][0]["id"] == "project:shop|monday#2"
    plain = hits_of({tool.name: tool for tool in ada.tools()}["recall"])[0]
    assert plain["id"] == "monday#1"
    assert "space" not in plain


def test_tools_change_a_record_by_the_id_that_they_showed(memory: Memory) -> None:
    ada = memory.scoped(user="ada")
    shop = ada.scoped(project="shop")
    shop.remember("The deployment is on Tuesday", kind="fact")
    ada.remember("Every deployment needs tea", kind="fact")
    tools = {tool.name: tool for tool in shop.tools()}
    ids = {item["space"]: item["id"] for item in hits_of(tools["recall"])}
    for name, arguments in (
        ("update", {"text": "The deployment is on Monday"}),
        ("history", {}),
        ("forget", {}),
    ):
        answer = tools[name]({"id": ids["project:shop"], **arguments})
        assert answer.ok, answer.text
        refused = tools[name]({"id": ids["user"], **arguments})
        assert not refused.ok
        assert "another space" in refused.text
    assert shop.scoped(project="shop").records() == []
    assert [one.text for one in ada.records()] == ["Every deployment needs tea"]
    assert [change.action for change in shop.changes()] == ["retract", "replace", "add"]


def test_tools_read_nothing_that_was_revoked(app: Memory) -> None:
    app.scoped(user="bob", project="blog").chat("monday").append(role="user", content="A secret deployment")
    bob = app.scoped(user="bob")
    bob.grants.add("project:blog", to="user:ada")
    tools = {one.name: one for one in app.scoped(user="ada", reads=["user:bob/project:blog"]).tools()}
    [hit] = hits_of(tools["recall"])
    assert "secret" in tools["expand"]({"id": hit["id"]}).text
    bob.grants.revoke("project:blog", to="user:ada")
    for name, arguments in (("recall", {"query": "deployment"}), ("expand", {"id": hit["id"]})):
        answer = tools[name](arguments)
        assert not answer.ok
        assert "secret" not in answer.text


def test_the_grants_of_an_awaited_memory(app: Memory) -> None:
    async def main() -> list[str]:
        bob = app.scoped(user="bob").aio
        await bob.grants.add("user", to="user:ada")
        return [grant.to async for grant in bob.grants]

    assert asyncio.run(main()) == ["user:ada"]


def test_a_worker_for_everyone_works_for_projects_and_teams(app: Memory) -> None:
    for handle in (app.scoped(user="ada", project="shop"), app.scoped(team="core")):
        chat = handle.chat("monday")
        chat.append(role="user", content="Remember that deployments of our shop need two reviews, please.")
        chat.append(role="assistant", content="I will remember it.")
        chat.end()
    app.learning.work(everyone=True)
    assert app.scoped(user="ada", project="shop").learning.jobs(status="open") == []
    assert app.scoped(team="core").learning.jobs(status="open") == []


def test_the_command_line_has_projects_and_grants(tmp_path: Path) -> None:
    file = str(tmp_path / "memory.db")

    def run(*words: str, code: int = 0) -> str:
        result = CliRunner().invoke(command_line, [*words, "--db", file])
        assert result.exit_code == code, result.output
        return result.output

    shop = ("--user", "ada", "--project", "shop")
    run("remember", "Deployments need two reviews", *shop)
    assert "shop" in run("projects", "--user", "ada")
    read = ("recall", "deployments", "--user", "bob", "--reads", "user:ada/project:shop")
    assert "may not read" in run(*read, code=1)
    run("grants", "add", "project:shop", "--to", "user:bob", "--user", "ada")
    assert "project:shop" in run("grants", "--user", "ada")
    found = run(*read)
    assert all(part in found for part in ("user:ada/project:shop", "holdfast records", "--project shop"))
    run("grants", "revoke", "project:shop", "--to", "user:bob", "--user", "ada")
    assert "may not read" in run(*read, code=1)
    record = json.loads(run("records", *shop, "--json"))["records"][0]["id"]
    run("grants", "move", record, "user", *shop)
    assert "Deployments" in run("records", "--user", "ada")
    run("undo", "--user", "ada")
    assert "Deployments" in run("records", *shop)
    assert "project:site" in run("grants", "copy", record, "project:site", *shop)
