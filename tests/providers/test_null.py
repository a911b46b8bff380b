"""The memory that does nothing: the names and parameters of the real one, and nothing behind them."""

from __future__ import annotations

import asyncio
import builtins
import doctest
import inspect
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import holdfast
from holdfast import Chat, Memory, Message, acting_as, types
from holdfast.contract import CAPABILITIES, capabilities
from holdfast.prompt.window import LastN, TokenBudget
from holdfast.providers import null
from holdfast.providers.null import NullMemory
from holdfast.providers.tracing import traced
from holdfast.testing.minimal import MinimalChat, MinimalProvider
from programs import run
from tables import each

GIVEN: dict[str, object] = {
    "branch": 1, "event": "learned", "helpful": True, "hit": "a#1", "id": "rec_1", "llm": str,
    "observer": print, "query": "Berlin", "space": "user", "text": "Berlin", "to": "user:bob", "version": 3,
    "what": "rec_1",
}  # fmt: skip
"""An argument for every parameter that a method must be given."""
# There is nothing to be named, to copy, or to answer again.
RAISES = {"backup", "describe", "edit", "expand", "explain", "regenerate", "resolve"}


def handles(memory: Memory) -> list[object]:
    chat = memory.chat("a")
    own = [memory.learning, memory.quarantine, memory.grants, memory.scratchpad]
    return [memory, chat, memory.at(0), chat.run(), *own]


def public(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_")]


def methods() -> Iterator[tuple[object, str, inspect.Signature]]:
    """Yield every method of the null memory and its handles, without those of mappings."""
    for handle in handles(NullMemory(user="ada"))[:-1]:
        for name in public(type(handle)):
            if callable(method := inspect.getattr_static(type(handle), name)):
                yield handle, name, inspect.signature(method)


# The two are in step


def test_it_has_the_public_names_of_a_memory_with_their_parameters_and_no_others() -> None:
    with Memory(":memory:", user="ada") as memory:
        pairs = [
            (type(one), type(other))
            for one, other in zip(handles(memory), handles(NullMemory()), strict=True)
        ]
    for real, empty in pairs:
        assert public(empty) == public(real)
        for name in public(real):
            one, other = inspect.getattr_static(real, name), inspect.getattr_static(empty, name)
            assert isinstance(one, property) == isinstance(other, property), name
            assert other.__doc__, name
            if not isinstance(one, property):
                assert inspect.signature(other) == inspect.signature(one), name
    assert capabilities(NullMemory()) == set(CAPABILITIES)


def test_it_opens_with_what_a_memory_opens_with(tmp_path: Path) -> None:
    given = inspect.signature(Memory).parameters
    assert given.keys() >= {name for name in inspect.signature(NullMemory).parameters if name != "_"}
    location = tmp_path / "agent.db"
    with NullMemory(location, tenant="acme", user="ada", agent="coach", durability="normal") as memory:
        memory.chat("a").append(role="user", content="Berlin")
        memory.remember("Berlin")
        assert (memory.scope.tenant, memory.scope.user, memory.scope.agent) == ("acme", "ada", "coach")
    memory.close()
    assert memory.recall("Berlin") == []
    assert list(tmp_path.iterdir()) == []


# What each method gives


def test_each_method_gives_what_that_of_an_empty_memory_would() -> None:
    for handle, name, takes in methods():
        if name in RAISES | {"append", "tools"}:
            continue
        needed = [one for one in takes.parameters.values() if one.default is one.empty][1:]
        by_place = [GIVEN[one.name] for one in needed if one.kind is not one.KEYWORD_ONLY]
        by_name = {one.name: GIVEN[one.name] for one in needed if one.kind is one.KEYWORD_ONLY}
        found = getattr(handle, name)(*by_place, **by_name)
        promised = str(takes.return_annotation)
        kind = promised.partition("[")[0].partition(" ")[0].replace("Self", "Memory")
        if kind == "None" or promised.endswith("| None"):
            assert found is None, name
        elif kind == "Callable":
            assert found() is None
        else:
            expected = vars(builtins).get(kind) or getattr(types, kind, None) or getattr(holdfast, kind)
            assert isinstance(found, expected), name
            assert not (isinstance(found, list | str | int) and found), name


def test_the_smallest_provider_takes_what_it_takes_as_a_memory_does() -> None:
    for small, real in ((MinimalProvider, Memory), (MinimalChat, Chat)):
        for name in (name for name in public(small) if callable(getattr(small, name))):
            one, other = (inspect.signature(getattr(kind, name)).parameters for kind in (small, real))
            assert {key: own.kind for key, own in one.items()} == {key: other[key].kind for key in one}


def test_what_is_empty_is_as_in_an_empty_memory() -> None:
    def used(memory: Memory) -> list[object]:
        chat = memory.chat("a")
        return [
            chat.stats(),
            chat.window(100),
            chat.window(policy=LastN(3)),
            chat.window(policy=TokenBudget(50)),
            chat.prompt(500, "Berlin?", system="You are a coach."),
            chat.needs_compaction(),
            memory.learning.usage(),
            list(memory.quarantine),
            list(memory.grants),
        ]

    with Memory(":memory:", user="ada") as real, NullMemory(user="ada") as empty:
        assert used(empty) == used(real)


def test_the_example_is_true() -> None:
    assert doctest.testmod(null) == (0, 3)


# Messages and records


def test_messages_come_back_as_if_stored() -> None:
    chat = NullMemory().chat("a")
    asked, answered = chat.append(
        [{"role": "user", "content": "Which race?"}, Message("assistant", "Berlin.", id="m2")]
    )
    assert [asked.seq, answered.seq] == [1, 2]
    assert (asked.content, answered.content, answered.id) == ("Which race?", "Berlin.", "m2")
    assert asked.tokens > 0
    assert asked.id
    assert asked.at is not None
    assert chat.append([]) == chat.history() == []


def test_a_record_says_what_it_would_have_been() -> None:
    memory = NullMemory(user="ada", agent="coach")
    until = datetime(2027, 1, 1, tzinfo=UTC)
    record = memory.remember(
        "Runs in Berlin", "insight", tags=["sport"], until=until, by="user", chat="a", messages=3
    )
    assert (record.kind, record.text, record.version) == ("insight", "Runs in Berlin", 0)
    assert (record.tags, record.until, record.by) == (("sport",), until, "user")
    assert (record.chat, record.messages, record.agent) == ("a", (3, 3), "coach")
    assert memory.retract("rec_1").retracted
    with acting_as(user="bob", agent="coach", chat="b", source="user"):
        assert NullMemory().scope.user == "bob"
        assert NullMemory().chat().id == "b"
        assert NullMemory().remember("x").by == "user"
    assert memory.scoped(user="eve").chat("b") == memory.scoped(user="eve").chat("b")


def test_its_tools_work_and_find_nothing() -> None:
    memory = NullMemory()
    tools = {tool.name: tool for tool in memory.tools(memory.chat("a"))}
    assert tools["recall"]({"query": "Berlin"}).ok
    assert tools["remember"]({"text": "Runs in Berlin"}).ok
    assert not tools["expand"]({"id": "rec_1"}).ok


# Awaited


@each("make", [NullMemory, lambda **given: traced(NullMemory(**given), on_event=lambda _: None)])
def test_what_is_awaited_is_the_same(make: Callable[..., Memory]) -> None:
    async def use() -> None:
        async with make(user="ada").aio as memory:
            chat = memory.chat("a")
            assert (await chat.append(role="user", content="Berlin")).seq == 1
            assert (await chat.history(), await memory.recall("Berlin")) == ([], [])
            assert await (await memory.at(3)).recall("Berlin") == []
            await memory.scratchpad.set("week", "1")
            assert await memory.scratchpad.get("week") is None
            async with chat.run() as begun:
                assert (await begun.remember("Step two")).kind == "note"
            (recall,) = memory.tools(chat, allow=["recall"])
            assert (await recall({"query": "Berlin"})).ok

    asyncio.run(use())


# What it costs

USE = """
import json, sys, threading
from holdfast.providers.null import NullMemory
with NullMemory("agent.db", user="ada") as memory:
    chat = memory.chat("a")
    chat.append(role="user", content="Berlin")
    chat.prompt(query="Berlin?"), memory.recall("Berlin"), memory.remember("Berlin")
    memory.scratchpad.get("week")
    memory.learning.work(), chat.end(), chat.compact(), memory.changes()
heads = {name.split(".")[0] for name in sys.modules}
print(json.dumps([sorted(heads), threading.active_count()]))
"""
HEAVY = {"numpy", "asyncio", "Stemmer", "pydantic_ai", "openai", "psycopg", "typer", "ssl"}


def test_it_loads_nothing_heavy_and_opens_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    heads, threads = json.loads(run(USE))
    assert HEAVY.isdisjoint(heads)
    assert threads == 1
    assert list(tmp_path.iterdir()) == []
