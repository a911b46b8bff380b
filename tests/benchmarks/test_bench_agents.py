"""The benchmark of a memory in the hands of an agent, on a few messages: it runs and reports."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks import agents
from benchmarks.__main__ import app
from benchmarks.measurement import COLUMNS
from benchmarks.report import Report, Table
from benchmarks.servers import WITH_SESSION, WITHOUT, AgentsLab, AgentsPlan, HttpServer, Server
from benchmarks.words import Words
from holdfast.errors import Unavailable

TINY = AgentsPlan(messages=20, starts=1, questions=2, repeats=1, popped=4)


@pytest.fixture(autouse=True, scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compile modules once for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("compiled")))
        yield


@pytest.mark.slow
def test_report_names_everything_that_was_asked_for(tmp_path: Path) -> None:
    told: list[str] = []
    report = agents.run(plan=TINY, folder=tmp_path, progress=told.append)
    numbers: Any = report.to_json()
    json.dumps(numbers)
    names = [one["name"] for one in numbers["measurements"]]
    assert names == [
        "`holdfast mcp`, from its start until it has told its tools",
        "recall through stdio among 20 messages, CPU of the client",
        "first recall of a server through stdio among 20 messages, CPU of the client",
        *(
            f"{what} over HTTP, protocol {version}, among 20 messages, CPU of the client"
            for version in ("2025-11-25", "2026-07-28")
            for what in ("recall", "first recall of a server")
        ),
        *(name for name in names if name.startswith("tools of ")),
        "all that the MCP server tells of its tools",
        "`pop_item` of a session, after 4 others",
    ]
    asked = [one["bar"] for one in numbers["measurements"] if one["bar"]]
    assert asked == ["≤ 1000 ms", "≤ 5 ms more", *["≤ 1500 tokens"] * 3, "≤ 1.5 times"]
    assert numbers["missed"] == [one["name"] for one in numbers["measurements"] if one["ok"] is False]
    assert {"recall", "search", "fetch"} <= numbers["tools"]["of the MCP server"].keys()
    total = sum(numbers["tools"]["of the MCP server"].values())
    assert total == numbers["measurements"][7]["value"] <= 1_500
    first, *others = report.tables()
    assert first.columns == COLUMNS
    assert "python 3" in first.title
    assert [len(one.rows) for one in others] == [
        len(numbers["tools"][whose]) for whose in ("of the MCP server", "of `Memory.tools`")
    ]
    assert {"starting servers", "recalling through a server"} <= set(told)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_part_can_be_left_out(tmp_path: Path) -> None:
    numbers: Any = agents.run(plan=TINY, folder=tmp_path, only=["tools"]).to_json()
    assert {one["unit"] for one in numbers["measurements"]} == {"tokens"}


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    nowhere = tmp_path / "there is no such folder" / "memory.db"
    nowhere.parent.write_text("a file")
    lab = AgentsLab(TINY, nowhere, Words(), lambda _: None)
    with Server(lab) as server, pytest.raises(Unavailable, match="has ended"):
        server.begin()
    with pytest.raises(Unavailable, match="has ended"):
        HttpServer(lab, WITHOUT)


@pytest.mark.slow
@pytest.mark.parametrize(
    "serve",
    [Server, partial(HttpServer, version=WITH_SESSION), partial(HttpServer, version=WITHOUT)],
    ids=["stdio", "with a session", "without"],
)
def test_what_a_server_refuses_is_an_error(tmp_path: Path, serve: Callable[[AgentsLab], Server]) -> None:
    lab = AgentsLab(TINY, tmp_path / "memory.db", Words(), lambda _: None)
    with serve(lab) as server:
        assert "recall" in [tool["name"] for tool in server.begin()]
        assert server.recall("marathon")
        with pytest.raises(Unavailable, match="refused"):
            server.ask("no/such/method", {})
        with pytest.raises(Unavailable, match="failed"):
            server.recall("")


def test_the_command_shows_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}

    def run(**given: object) -> Report:
        asked.update(given)
        return Report({"fast": True}, (Table("Agents", ("what", "ms"), (("start", "900"),)),))

    monkeypatch.setattr(agents, "run", run)
    result = CliRunner().invoke(app, ["agents", "--only", "start"])
    assert "start  900" in result.stdout
    assert asked["only"] == ["start"]
    assert CliRunner().invoke(app, ["agents", "--only", "x"]).exit_code == 2
