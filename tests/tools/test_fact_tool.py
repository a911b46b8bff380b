"""The preset of facts about the user and the environment, and of episodes."""

from __future__ import annotations

import json

import tool_fixtures
from tool_fixtures import problem

from holdfast import Chat, Memory
from holdfast.tools.presets import fact_tool
from tables import each

memory, chat = tool_fixtures.memory_of_agent, tool_fixtures.chat


# Facts


def test_facts_are_added_replaced_and_removed(memory: Memory, chat: Chat) -> None:
    tool = fact_tool(memory, chat)
    assert tool({"action": "read"}).data["message"] == "There are no entries."
    added = tool({"action": "add", "target": "user", "content": "Likes tea"})
    assert added.data["success"] is True
    assert added.data["entries"] == ["Likes tea"]
    tool({"action": "add", "target": "env", "content": "Runs on port 8080"})
    tool({"action": "add", "content": "Lives in Berlin"})
    replaced = tool({"action": "replace", "old_text": "TEA", "content": "Likes mate"})
    assert replaced.data["entries"] == ["Likes mate", "Lives in Berlin"]
    removed = tool({"action": "remove", "old_text": "Likes"})
    assert removed.data["entries"] == ["Lives in Berlin"]
    assert tool({"action": "read", "target": "env"}).data["entries"] == ["Runs on port 8080"]
    assert "already" in str(tool({"action": "add", "content": "Lives in Berlin"}).data["message"])


@each(
    ("arguments", "said"),
    [
        ({"action": "add"}, "`content` is missing"),
        ({"action": "add", "content": "x", "target": "episodes"}, "Episodes are written"),
        ({"action": "add", "content": "x" * 4_001}, "4,000"),
        ({"action": "replace", "content": "x"}, "`old_text` is missing"),
        ({"action": "remove", "old_text": "nothing"}, "No entry contains"),
        ({"action": "remove", "old_text": "Likes"}, "more specific"),
        ({"action": "consolidate"}, "no model"),
        ({"action": "view", "query": "../secret"}, "no episode"),
        ("{", "JSON"),
    ],
)
def test_what_goes_wrong_with_facts(memory: Memory, arguments: dict[str, object], said: str) -> None:
    if not memory.version():
        memory.remember(["Likes tea", "Likes the river"])
    before = memory.version()
    found = fact_tool(memory)(arguments)
    assert said in problem(found)
    assert memory.version() == before
    assert found.data["success"] is False


def test_episodes_are_searched_and_viewed(memory: Memory) -> None:
    for number in range(7):
        memory.remember(f"We planned long run number {number}.", "episode", chat=f"s{number}")
    tool = fact_tool(memory)
    found = tool({"action": "search", "query": "long run"}).data["entries"]
    assert isinstance(found, list)
    assert len(found) == 5
    viewed = tool({"action": "view", "query": found[0]["id"]}).data["entries"]
    assert viewed == [found[0]]
    newest = tool({"action": "read", "target": "episodes"}).data["entries"]
    assert isinstance(newest, list)
    assert newest[0]["session"] == "s6"
    assert tool({"action": "search", "query": "mountains"}).data["message"] == "No matches found."


def test_a_list_is_consolidated_alone_and_the_result_says_how(memory: Memory) -> None:
    def model(prompt: str) -> str:
        assert "Linux" not in prompt
        joined = {"text": "Likes green tea and the river", "why": "one thing"}
        return json.dumps({"changes": [{"entries": [1, 2], "change": "same", **joined}]})

    def failing(prompt: str) -> str:
        raise RuntimeError("no answer")

    for target, text in (("user", "Likes green tea"), ("user", "Likes the river"), ("env", "Runs Linux")):
        memory.remember(text, target=target, merge=False)
    failed = fact_tool(memory, llm=failing)({"action": "consolidate", "target": "user"})
    assert failed.data["success"] is False
    assert "failed: No entry was changed." in problem(failed)
    done = fact_tool(memory, llm=model)({"action": "consolidate", "target": "user"}).data
    assert (done["success"], done["message"]) == (True, "2 entries became 1.")
    assert done["entries"] == ["Likes green tea and the river"]
    alone = fact_tool(memory, llm=model)({"action": "consolidate", "target": "user"})
    assert alone.data["message"] == "There is nothing to consolidate."
