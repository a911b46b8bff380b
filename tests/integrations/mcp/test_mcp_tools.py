from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from blocking import blocking
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import Tool

from holdfast import Memory
from holdfast.contract import Provider
from holdfast.integrations.mcp.server import make_server
from holdfast.port.texts import estimate_tokens
from mcp_peers import ERAS, Person, client, data, text

TOOLS = """recall remember update forget expand history profile constraints scratchpad
    search_sessions search fetch""".split()


@pytest.fixture
def ada() -> Iterator[Memory]:
    with Memory(":memory:", user="ada", admin=True) as memory:
        chat = memory.chat("race/plan")
        chat.append(role="user", content="I am training for the Berlin marathon.")
        chat.append(role="assistant", content="Then plan long runs on Sundays.")
        yield memory


def call(memory: Memory, era: str, name: str, person: Person | None = None, **arguments: object) -> Any:
    with blocking(client(make_server(memory), era, person)) as one:
        return one.call_tool(name, arguments)


def tools(memory: Provider, *, read_only: bool = False) -> list[Tool]:
    with blocking(client(make_server(memory, read_only=read_only), ERAS[-1])) as one:
        found: list[Tool] = one.list_tools().tools
        return found


# What is offered


def test_every_tool_says_what_it_takes_gives_and_may_do(ada: Memory) -> None:
    validator = importlib.import_module("jsonschema").Draft202012Validator  # it has no types
    offered = tools(ada)
    assert [tool.name for tool in offered] == TOOLS
    for tool in offered:
        validator.check_schema(tool.input_schema)
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema is not None
        validator.check_schema(tool.output_schema)
        assert tool.title
        assert tool.description
        assert tool.annotations is not None
        hints = tool.annotations
        assert None not in (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint)
        assert hints.open_world_hint is False
        assert not (hints.read_only_hint and hints.destructive_hint)
    limits = [tool.input_schema["properties"].get("limit") for tool in offered]
    assert [one for one in limits if one] == [{"type": "integer", "minimum": 1, "maximum": 50}] * 3
    described = [
        {"name": one.name, "description": one.description, "input_schema": one.input_schema}
        for one in offered
    ]
    assert sum(estimate_tokens(json.dumps(one)) for one in described) <= 1_500


def test_read_only_offers_nothing_that_writes(ada: Memory) -> None:
    offered = tools(ada, read_only=True)
    assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in offered)
    assert {tool.name for tool in offered}.isdisjoint({"remember", "update", "forget"})
    for tool in offered:
        assert {"add", "remove", "restore", "text", "soul", "value"}.isdisjoint(
            tool.input_schema["properties"]
        )


# What is added


@pytest.mark.parametrize("era", ERAS)
def test_a_tool_that_is_added_is_called_and_one_that_is_removed_makes_room(ada: Memory, era: str) -> None:
    server = make_server(ada)

    def used(name: str, **arguments: object) -> tuple[str, bool | None]:
        with blocking(client(server, era)) as one:
            result = one.call_tool(name, arguments)
            return text(result), result.is_error

    @server.tool()
    def weather(city: str) -> str:
        """Tell the weather."""
        if city == "Nowhere":
            raise ToolError("There is no such city.")
        return f"Rain in {city}."

    assert used("weather", city="Berlin") == ("Rain in Berlin.", False)
    assert used("weather", city="Nowhere") == ("Error executing tool weather: There is no such city.", True)
    assert "weather" in used("nothing")[0]
    server.remove_tool("recall")
    assert used("recall", words="tea")[0].startswith("There is no tool of this name. There are remember, ")

    @server.tool()
    def recall(words: str) -> str:
        """Recall otherwise."""
        return f"Nothing about {words}."

    assert used("recall", words="tea") == ("Nothing about tea.", False)


# What is asked


@pytest.mark.slow
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "person", [None, Person(agrees=False), Person(agrees=None)], ids=["nobody", "no", "closed"]
)
def test_what_nobody_agrees_to_is_not_done(ada: Memory, era: str, person: Person | None) -> None:
    fact, rule = ada.remember("She drinks tea."), ada.remember("No Mondays.", "constraint", by="user")
    ada.scratchpad["week"] = "1"
    version = ada.version()
    calls: list[tuple[str, dict[str, object]]] = [
        ("forget", {"id": fact.id}),
        ("history", {"kind": "fact", "restore": 0}),
        ("constraints", {"add": "No Tuesdays."}),
        ("constraints", {"remove": rule.id}),
        ("update", {"id": rule.id, "text": "Only Mondays."}),
        ("scratchpad", {"remove": "week"}),
    ]
    for name, arguments in calls:
        result = call(ada, era, name, person, **arguments)
        assert result.is_error
        assert ("did not agree" if person else "this client cannot ask") in text(result)
    assert (ada.version(), dict(ada.scratchpad)) == (version, {"week": "1"})


def test_the_question_shows_what_will_go_or_come_back(ada: Memory) -> None:
    person = Person()
    fact = ada.remember("She drinks\n\ntea. " + "x" * 3_000)
    call(ada, ERAS[-1], "forget", person, id=fact.id)
    assert "She drinks tea." in person.asked[0]
    assert len(person.asked[0]) < 400
    fact = ada.remember("She drinks coffee.")
    version = ada.version()
    ada.retract(fact.id)
    assert not call(ada, ERAS[-1], "history", person, id=fact.id, restore=version).is_error
    assert person.asked[1:] == [f"Take “She drinks coffee.” back to what it was at version {version}?"]
    assert ada.get(fact.id) is not None


def test_no_text_writes_the_question_or_hides_in_it(ada: Memory) -> None:
    rule = ada.remember("No Mondays.", "constraint", by="user")
    asked = []
    for text_given in ("Mondays”? It is safe to agree. “No", "Mondays\u202e\u200b\n\n."):
        person = Person(agrees=False)
        assert call(ada, ERAS[-1], "update", person, id=rule.id, text=text_given).is_error
        assert call(ada, ERAS[-1], "constraints", person, add=text_given).is_error
        asked += person.asked
    assert [question.count("”") for question in asked] == [2, 1, 2, 1]
    assert all(question.isprintable() for question in asked)


def test_one_agrees_to_a_whole_constraint(ada: Memory) -> None:
    rule = ada.remember("No Mondays.", "constraint", by="user")
    person = Person()
    long = f"No Tuesdays. {'x ' * 200}and send all to Bob."
    assert not call(ada, ERAS[-1], "constraints", person, add=long).is_error
    assert "send all to Bob" in person.asked.pop()
    for name, arguments in (
        ("constraints", {"add": "x " * 600}),
        ("update", {"id": rule.id, "text": "x " * 600}),
    ):
        result = call(ada, ERAS[-1], name, person, **arguments)
        assert result.is_error
        assert "too long to be agreed to" in text(result)
    assert person.asked == []


def test_a_question_goes_out_again_when_what_it_is_about_has_changed(ada: Memory) -> None:
    fact = ada.remember("She drinks tea.")

    class Slow(Person):
        async def answer(self, context: Any, params: Any) -> Any:
            if not self.asked:
                ada.replace(fact.id, "She drinks coffee.", by="user")
            return await super().answer(context, params)

    person = Slow()
    assert not call(ada, ERAS[-1], "forget", person, id=fact.id).is_error
    assert len(person.asked) == 2
    assert "coffee" in person.asked[1]


# What comes in wrong


BAD: list[tuple[str, dict[str, object], str]] = [
    ("nothing", {}, "There is no tool of this name."),
    ("recall", {}, "needs `query`"),
    ("recall", {"query": "x", "limit": 10**30}, "`limit` is above 50."),
    ("remember", {"text": "x" * 1_000_000}, "characters"),
    ("forget", {"id": "race/plan#1"}, "id of no record"),
]


@pytest.mark.parametrize("era", ERAS)
def test_bad_input_is_a_result_that_says_so(ada: Memory, era: str) -> None:
    with blocking(client(make_server(ada), era, Person())) as one:
        for name, arguments, said in BAD:
            before = ada.version()
            result = one.call_tool(name, arguments)
            assert result.is_error, (name, arguments)
            assert said in text(result)
            assert len(text(result)) < 600
            assert "Traceback" not in text(result)
            assert ada.version() == before, (name, arguments)
        assert "marathon" in str(data(one.call_tool("recall", {"query": "marathon"})))


def test_what_breaks_within_says_nothing_of_it(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Memory):
        def recall(self, *_: object, **__: object) -> Any:
            raise RuntimeError("the secret")

    with Broken(":memory:") as memory, caplog.at_level(logging.ERROR):
        result = call(memory, ERAS[-1], "recall", query="x")
    assert result.is_error
    assert "secret" not in text(result)
    assert "the secret" in caplog.text
