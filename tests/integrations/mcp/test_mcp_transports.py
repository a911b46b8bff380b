"""All that the server has, over each way to it, in both eras of the protocol."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from blocking import blocking
from mcp_types import ResourceTemplateReference

from holdfast import Memory
from mcp_peers import ERAS, Person, Served, client, data, http_client, over_stdio

pytestmark = pytest.mark.slow  # processes of their own


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("transports") / "memory.db")
    with Memory(path, user="ada") as memory:
        chat = memory.chat("monday")
        for number in range(40):
            words = f"Run {number} for the Berlin marathon went along the river. " * 12
            chat.append(role="user", content=words)
            chat.append(role="assistant", content=f"Noted, run {number}.")
        chat.compact(full=True, budget=2_000)
    return path


@pytest.fixture(scope="module")
def served(db: str) -> Iterator[Served]:
    with Served(db) as server:
        yield server


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("over", ["stdio", "http"])
def test_every_tool_resource_and_prompt_is_there(db: str, served: Served, over: str, era: str) -> None:
    person = Person()
    over_http = http_client(served.url, served.token, era, person)
    with blocking(over_http if over == "http" else client(over_stdio(db), era, person)) as one:
        assert every_tool(one) == {tool.name for tool in one.list_tools().tools}
        listed = {str(found.uri) for found in one.list_resources().resources}
        templates = {found.uri_template for found in one.list_resource_templates().resource_templates}
        assert every_resource(one) == listed | templates
        assert every_prompt(one) == {found.name for found in one.list_prompts().prompts}
    assert len(person.asked) == 5
    with Memory(db, user="ada") as memory:
        assert memory.verify().ok


def every_tool(one: Any) -> set[str]:
    used = set()

    def ask(tool: str, **arguments: object) -> dict[str, Any]:
        used.add(tool)
        return data(one.call_tool(tool, arguments))

    tea = ask("remember", text="She drinks tea.")["id"]
    before = ask("history", id=tea)["changes"][0]["version"]
    assert ask("update", id=tea, text="She drinks green tea.")["id"] == tea
    assert ask("expand", id=tea)["items"][0]["text"] == "She drinks green tea."
    assert ask("history", id=tea)["changes"][0]["after"] == "She drinks green tea."
    assert ask("history", id=tea, restore=before)["note"]
    assert ask("expand", id=tea)["items"][0]["text"] == "She drinks tea."
    assert ask("forget", id=tea)["did"] == "retract"
    assert ask("profile", text="A runner.")["profile"] == "A runner."
    rule = ask("constraints", add="Never on Mondays.")["constraints"][0]
    assert rule["text"] == "Never on Mondays."
    assert ask("constraints", remove=rule["id"])["constraints"] == []
    [entry] = ask("scratchpad", name="week", value='{"runs": 3}')["entries"]
    assert entry["value"] == '{"runs": 3}'
    assert ask("scratchpad", remove="week")["entries"] == []
    assert ask("search_sessions")["sessions"][0]["id"] == "monday"
    assert ask("recall", query="marathon")["hits"]
    found = ask("search", query="marathon")["results"][0]
    assert found.keys() == {"id", "title", "url", "text"}
    fetched = ask("fetch", id=found["id"])
    assert {"id", "title", "url", "text", "metadata"} <= fetched.keys()
    assert "marathon" in fetched["text"]
    assert "marathon" in str(one.read_resource(fetched["url"]).contents)
    ask("remember", text="She lives in Bern.")  # so that there is something to read
    return used


def every_resource(one: Any) -> set[str]:
    """Read all, those with an id by one that is completed."""
    read = {"memory://messages/{id}"}
    assert one.read_resource("memory://messages/monday%231").contents
    for name in ("status", "profile", "constraints", "facts"):
        assert one.read_resource(f"memory://{name}").contents
        read.add(f"memory://{name}")
    for template in ("facts/{id}", "sessions/{id}{?limit}", "summary/{id}"):
        uri = f"memory://{template}"
        ids = one.complete(ResourceTemplateReference(uri=uri), {"name": "id", "value": ""})
        path = template.replace("{id}", ids.completion.values[0]).replace("{?limit}", "?limit=2")
        assert one.read_resource(f"memory://{path}").contents
        read.add(uri)
    return read


def every_prompt(one: Any) -> set[str]:
    given = {
        "recall_topic": {"topic": "marathon"},
        "continue_conversation": {"session": "monday"},
        "review_memory": {},
    }
    for name, arguments in given.items():
        assert one.get_prompt(name, arguments).messages
    return set(given)
