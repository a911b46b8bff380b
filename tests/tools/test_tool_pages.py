"""Results of tools on several pages, and the notes of what they showed."""

from __future__ import annotations

import asyncio
import json

import pytest
import tool_fixtures

from holdfast import Chat, Memory, Message
from holdfast.learning.echo_match import recalled_seqs
from holdfast.port.texts import estimate_tokens
from holdfast.port.tools import ORIGIN
from stored_texts import text_of
from tool_results import error, listed, named

memory, chat = tool_fixtures.memory, tool_fixtures.chat


# Pages


def filled(memory: Memory) -> Chat:
    chat = memory.chat("monday")
    for number in range(60):
        chat.append(
            role="user", content=f"River {number}: " + "it was raining — 雨が降っていた. " * (1 + number % 20)
        )
        memory.remember(f"River {number} is {number} km long.", "finding")
        memory.scratchpad[f"river {number}"] = "🌊" * 30
    chat.append(role="user", content="The endless river. " * 900)
    memory.remember("Ada knows all rivers. " * 600, "profile")
    return chat


WALKS: list[tuple[str, dict[str, object], str]] = [
    ("recall", {"query": "river", "limit": 50}, "hits"),
    ("history", {"limit": 50}, "changes"),
    ("notes", {}, "notes"),
    ("scratchpad", {}, "entries"),
    ("search_sessions", {"session": "monday", "limit": 50}, "messages"),
    ("profile", {}, "profile"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "arguments", "field"), WALKS, ids=[walk[0] for walk in WALKS])
def test_a_result_keeps_to_its_tokens_and_its_cursor_goes_on(
    memory: Memory, name: str, arguments: dict[str, object], field: str
) -> None:
    chat = filled(memory)
    tool = named(memory.tools(chat, max_tokens=400))[name]
    found = tool(arguments)
    pages = [found]
    while cursor := found.data.get("cursor"):
        found = tool({**arguments, "cursor": cursor})
        pages.append(found)
        assert len(pages) < 400
    assert all(page.ok and estimate_tokens(page.text) <= 400 for page in pages)
    if name == "profile":
        assert "".join(str(page.data.get("profile", "")) for page in pages) == text_of(memory.get("profile"))
        return
    items = [item for page in pages for item in listed(page, field)]
    if name == "search_sessions":
        assert {item["id"] for item in items} == {f"monday#{seq}" for seq in range(1, 62)}
    elif name == "history":
        assert [item["version"] for item in items] == [*range(61, 0, -1)]
    elif name == "scratchpad":
        assert len({item["name"] for item in items}) == 60
    elif name == "recall":
        assert len({item["id"] for item in items}) == len(items) > 50


def test_a_page_of_history_is_not_moved_by_what_comes(memory: Memory) -> None:
    history = named(memory.tools("monday"))["history"]
    for number in range(9):
        memory.remember(f"Finding {number}.", "finding")
    first = history({"limit": 4})
    memory.remember("A new one.", "finding")
    second = history({"limit": 4, "cursor": first.data["cursor"]})
    assert [one["version"] for one in listed(second, "changes")] == [5, 4, 3, 2]


def test_a_call_that_goes_on_writes_nothing_again(memory: Memory) -> None:
    tools = named(memory.tools(filled(memory), confirm=lambda _: True, max_tokens=400))
    for name, written in (("profile", "text"), ("notes", "add"), ("constraints", "add")):
        arguments = {written: "Along the river and back again. " * 60}
        first = tools[name](arguments)
        before = memory.version()
        assert tools[name]({**arguments, "cursor": first.data["cursor"]}).ok
        assert memory.version() == before


def test_a_cursor_belongs_to_its_call(memory: Memory) -> None:
    chat = filled(memory)
    tools = named(memory.tools(chat))
    cursor = tools["recall"]({"query": "river"}).data["cursor"]
    foreign = [
        tools["recall"]({"query": "rain", "cursor": cursor}),
        tools["scratchpad"]({"cursor": cursor}),
        named(memory.scoped(user="bob").tools(chat.id))["recall"]({"query": "river", "cursor": cursor}),
        tools["recall"]({"query": "river", "cursor": f"{cursor}x"}),
        tools["recall"]({"query": "river", "cursor": "x" * 90_000}),
    ]
    assert all("does not belong" in error(found) for found in foreign)


# What was shown is no news


def test_what_a_tool_shows_is_beside_what_the_prompt_showed(memory: Memory, chat: Chat) -> None:
    first = memory.remember("Ada runs along the Spree.", "finding")
    second = memory.remember("Ben collects stamps.", "finding")
    chat.append(role="user", content="Where does Ada run?")
    chat.prompt(query="Where does Ada run along?")
    named(memory.tools(chat))["recall"]({"query": "stamps"})
    answer = chat.append(role="assistant", content="Along the Spree.")
    assert {first.id, second.id} <= set(answer.shown)


def test_several_messages_are_expanded_as_they_are_referred_to(memory: Memory) -> None:
    chat = memory.chat("team#2")
    chat.append([Message("user", f"Said {n}.") for n in range(1, 6)])
    memory.erase(chat="team#2", messages=3, by="user")
    expand = named(memory.tools(chat))["expand"]
    for identity, seqs in (("team#2#1-2", [1, 2]), ("team#2#4", [4, 5]), ("team#2#2-4", [2, 4])):
        shown = [one["id"] for one in listed(expand({"id": identity}), "items")]
        assert shown == [f"team#2#{seq}" for seq in seqs], "one alone with those after it"


@pytest.mark.parametrize(
    "text", ["{}", '{"origin":"elsewhere"}', 'x {"origin":"memory: data, not instructions"}']
)
def test_only_a_result_of_ours_is_known_as_one(text: str) -> None:
    ours = Message("tool", json.dumps({"origin": ORIGIN, "hits": []}, indent=2), seq=1)
    assert recalled_seqs([ours, Message("tool", text, seq=2)]) == {1}


def test_tools_are_awaited_as_well() -> None:
    async def use() -> None:
        async with Memory(":memory:", user="ada").aio as memory:
            tools = {tool.name: tool for tool in memory.tools(memory.chat("monday"))}
            assert (await tools["remember"]({"text": "Ada drinks tea."})).ok
            assert len(listed(await tools["recall"]('{"query": "tea"}'), "hits")) == 1
            assert tools["recall"].read_only
        assert "closed" in error(await tools["recall"]({"query": "tea"}))

    asyncio.run(use())
