"""pydantic-ai with a memory: whole runs of the real framework, with models that follow a function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pydantic_agents
import pytest
from pydantic_agents import (
    Watched,
    answered,
    asked,
    call,
    check_accepted,
    look_up,
    say,
    stored,
)
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo

from holdfast import Chat, Memory
from holdfast.integrations.pydantic_ai import Remembering, toolset
from holdfast.port.texts import estimate_tokens

chat, memory, runner = pydantic_agents.chat, pydantic_agents.memory, pydantic_agents.runner

# Runs -------------------------------------------------------------------------------------------------------


def test_history_from_before_the_chat_is_stored(chat: Chat) -> None:
    watched = Watched()
    history: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart("I am Ada.")]),
        say("Hello Ada."),
    ]
    agent = Agent(watched.model, capabilities=[Remembering(chat, recall=False)])
    agent.run_sync("Who am I?", message_history=history)
    assert stored(chat) == [
        ("user", "I am Ada."),
        ("assistant", "Hello Ada."),
        ("user", "Who am I?"),
        ("assistant", "answer 1"),
    ]
    assert watched.words() == ["user-prompt: I am Ada.", "text: Hello Ada.", "user-prompt: Who am I?"]


def test_what_tools_change_later_is_stored_once_as_it_was_first(chat: Chat) -> None:
    kept: list[list[str]] = []

    def visit(seen: dict[str, list[str]]) -> list[list[str]]:
        """Return what grows with each call, and so do the arguments of earlier calls."""
        kept.append(seen["cities"])
        for cities in kept:
            cities.append("Rome")
        return kept

    def go_on(messages: Sequence[ModelMessage], _: AgentInfo) -> ModelResponse:
        if (
            len([part for message in messages for part in message.parts if part.part_kind == "tool-return"])
            == 3
        ):
            return say("Done.")
        return ModelResponse(parts=[ToolCallPart("visit", {"seen": {"cities": []}})])

    watched = Watched(go_on)
    agent = Agent(watched.model, tools=[visit], capabilities=[Remembering(chat)])
    history = agent.run_sync("Go.").all_messages()
    agent.run_sync("And now?", message_history=history)

    called = [call.id for message in chat.history() for call in message.calls]
    results = [(message.call_id, message.content) for message in chat.history() if message.role == "tool"]
    assert [call for call, _ in results] == called
    assert len(set(called)) == 3
    assert results[0][1] == '[["Rome"]]'
    for shown in watched.shown:
        check_accepted(shown)


def long_weather(chat: Chat, watched: Watched, times: int, budget: int) -> Agent[Any, str]:
    """Make an agent whose tool answers at length."""
    agent = Agent(watched.model, capabilities=[Remembering(chat, budget=budget, recall=False)])

    @agent.tool_plain
    def weather(city: str) -> str:
        return f"sun in {city} " * times

    return agent


def tokens(watched: Watched) -> int:
    return sum(estimate_tokens(one.partition(": ")[2]) for one in watched.words())


def results(watched: Watched) -> list[str]:
    return [one.removeprefix("tool-return: ") for one in watched.words() if one.startswith("tool-return: ")]


def test_a_long_run_stays_within_the_budget_and_keeps_its_task(chat: Chat) -> None:
    def work(messages: Sequence[ModelMessage], _: AgentInfo) -> ModelResponse:
        return call("Lisbon") if len(watched.shown) <= 12 else say("Done.")

    watched = Watched(work)
    long_weather(chat, watched, 100, 2_000).run_sync("Ask for the weather, twelve times.")
    check_accepted(watched.shown[-1])
    assert asked(watched.shown[-1]) == "Ask for the weather, twelve times."
    assert 2 <= len(results(watched)) < 12
    assert tokens(watched) <= 2_000
    assert len(chat.history()) == 26


def test_a_result_that_does_not_fit_is_cut_to_its_beginning_and_end(chat: Chat) -> None:
    watched = Watched(look_up)
    long_weather(chat, watched, 5_000, 2_000).run_sync("The weather?")
    assert asked(watched.shown[-1]) == "The weather?"
    check_accepted(watched.shown[-1])
    assert ["is not shown" in one for one in results(watched)] == [True, True]
    assert tokens(watched) <= 2_000


@pytest.mark.slow
def test_what_is_older_than_the_budget_is_recalled(chat: Chat) -> None:
    watched = Watched()
    agent = Agent(watched.model, capabilities=[Remembering(chat, budget=1_000)])
    agent.run_sync("My parrot is called Coco.")
    for number in range(40):
        agent.run_sync(
            f"Talk about the weather of day {number}, and of the days before, at some length, please."
        )
    agent.run_sync("What is my parrot called?")
    shown = watched.words()
    assert shown[-1] == "user-prompt: What is my parrot called?"
    assert "Coco" in shown[-2]
    assert len(shown) < 80
    check_accepted(watched.shown[-1])
    assert "monday#1" in chat.history(1)[0].shown


def test_what_is_known_stands_after_the_system_prompt_of_the_agent(memory: Memory, chat: Chat) -> None:
    memory.remember("Ada lives in Lisbon.")
    watched = Watched()
    agent = Agent(
        watched.model, system_prompt="Be brief.", instructions="Be kind.", capabilities=[Remembering(chat)]
    )
    for _ in range(2):
        agent.run_sync("Where do I live?")
    shown = watched.words()
    assert shown[0] == "system-prompt: Be brief."
    assert "Ada lives in Lisbon." in shown[1]
    assert [line.partition(":")[0] for line in shown] == [
        *("system-prompt", "system-prompt"),
        *("user-prompt", "text", "user-prompt"),
    ]
    assert {role for role, _ in stored(chat)} == {"user", "assistant"}


@pytest.mark.slow
def test_a_chat_that_has_grown_too_long_is_compacted_after_a_run(chat: Chat) -> None:
    watched, asked_to_summarise = Watched(), list[str]()

    def summarise(text: str) -> str:
        asked_to_summarise.append(text)
        return "The harbour of Lisbon was quiet every day."

    for number in range(60):
        compact = True if number < 30 else summarise
        remembering = Remembering[object](chat, budget=1_000, recall=False, compact=compact)
        agent = Agent(watched.model, capabilities=[remembering])
        agent.run_sync(f"Day {number}: the harbour of Lisbon was quiet, and the boats came in at {number}.")
    assert asked_to_summarise
    assert not chat.needs_compaction(1_000)
    window = chat.window(1_000)
    assert window.summaries
    assert window.omitted == ()
    assert len(chat.history()) == 120
    check_accepted(watched.shown[-1])


def test_summaries_stand_for_what_is_older_and_name_a_tool_that_the_agent_has(
    memory: Memory, chat: Chat
) -> None:
    for number in range(60):
        chat.append(role="user", content=f"Day {number}: the harbour of Lisbon was quiet at {number}.")
        chat.append(role="assistant", content="I see.")
    assert chat.compact(full=True, budget=1_000).summaries
    hints = []
    for toolsets in ([], [toolset(memory.tools(chat, allow=["recall"]))], [toolset(memory.tools(chat))]):
        watched = Watched()
        remembering = Remembering(chat, budget=1_000, recall=False)
        Agent(watched.model, capabilities=[remembering], toolsets=toolsets).run_sync("And today?")
        first, *_, last = watched.words()
        assert (first[:23], last) == ("user-prompt: <summary i", "user-prompt: And today?")
        hints.append("`expand` with this id" in first)
        check_accepted(watched.shown[-1])
    assert hints == [False, False, True]


# Tools ------------------------------------------------------------------------------------------------------


def test_an_agent_uses_the_tools_and_is_told_what_goes_wrong(memory: Memory, chat: Chat) -> None:
    def use(messages: Sequence[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert {"recall", "remember"} <= {tool.name for tool in info.function_tools}
        if results := answered(messages):
            return say(results[0])
        if "remember" in asked(messages):
            return ModelResponse(parts=[ToolCallPart("remember", {"text": "Ada runs the Berlin marathon."})])
        right = "Which" in asked(messages)
        return ModelResponse(parts=[ToolCallPart("recall", '{"query": "marathon"}' if right else {"of": 1})])

    agent = Agent(
        Watched(use).model, toolsets=[toolset(memory.tools(chat))], capabilities=[Remembering(chat)]
    )
    agent.run_sync("Please remember my race.")
    assert [record.text for record in memory.records()] == ["Ada runs the Berlin marathon."]
    assert "Ada runs the Berlin marathon." in agent.run_sync("Which race?").output
    assert '"error"' in agent.run_sync("Wrong.").output
