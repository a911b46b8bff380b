"""Runs of pydantic-ai that stream, fail, are cancelled or go on at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pydantic_agents
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_agents import Watched, asked, call, check_accepted, look_up, say, stored, weather
from pydantic_ai import Agent, DeferredToolRequests, RunContext, Tool
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
)
from pydantic_ai.models.function import AgentInfo
from pydantic_ai.models.test import TestModel

from holdfast import Chat, Memory
from holdfast.integrations.pydantic_ai import Remembering
from holdfast.providers.tracing import Operation, traced
from soak import cases

chat, memory, runner = pydantic_agents.chat, pydantic_agents.memory, pydantic_agents.runner


@pytest.mark.parametrize("left_early", [False, True])
def test_a_stream_leaves_what_was_said(chat: Chat, runner: asyncio.Runner, left_early: bool) -> None:
    agent = Agent(TestModel(custom_output_text="It is sunny in Lisbon."), capabilities=[Remembering(chat)])

    async def run() -> str:
        streamed = ""
        async with agent.run_stream("The weather?") as result:
            async for text in result.stream_text(delta=True, debounce_by=None):
                streamed += text
                if left_early:
                    break
        return streamed

    streamed = runner.run(run())
    (asking, question), (role, answer) = stored(chat)
    assert (asking, question, role) == ("user", "The weather?", "assistant")
    assert "It is sunny in Lisbon.".startswith(answer)
    assert left_early or streamed == answer == "It is sunny in Lisbon."


def test_a_run_that_fails_leaves_what_was_said_and_the_next_goes_on(chat: Chat) -> None:
    watched = Watched(look_up)
    agent = Agent(watched.model, capabilities=[Remembering(chat, recall=False)])

    @agent.tool_plain(name="weather")
    def broken(city: str) -> str:
        raise OSError(city)

    with pytest.raises(OSError, match=r"Lisbon|Berlin"):
        agent.run_sync("The weather?")
    assert [role for role, _ in stored(chat)] == ["user", "assistant"]
    assert agent.run_sync("Hello").output == "Hello."
    assert watched.words() == ["user-prompt: The weather?", "user-prompt: Hello"]
    check_accepted(watched.shown[-1])


def test_a_run_that_is_cancelled_leaves_what_was_said(chat: Chat, runner: asyncio.Runner) -> None:
    agent = Agent(Watched(look_up).model, capabilities=[Remembering(chat)])

    async def run() -> None:
        begun = asyncio.Event()

        @agent.tool_plain(name="weather")
        async def slow(city: str) -> str:
            begun.set()
            await asyncio.Event().wait()
            return city

        task = asyncio.create_task(agent.run("The weather?"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    runner.run(run())
    assert [role for role, _ in stored(chat)][:2] == ["user", "assistant"]
    assert chat.history()[1].calls


def test_the_chat_of_a_run_is_chosen_by_its_context(memory: Memory, runner: asyncio.Runner) -> None:
    @dataclass
    class Deps:
        user: str

    def of_user(ctx: RunContext[Deps]) -> Chat:
        return memory.scoped(user=ctx.deps.user).chat("monday")

    agent = Agent(Watched().model, deps_type=Deps, capabilities=[Remembering(of_user)])

    async def run() -> None:
        await asyncio.gather(*(agent.run(f"I am {user}.", deps=Deps(user)) for user in ("ada", "bob", "eve")))

    runner.run(run())
    for user in ("ada", "bob", "eve"):
        assert stored(memory.scoped(user=user).chat("monday"))[0] == ("user", f"I am {user}.")
        assert len(memory.scoped(user=user).chat("monday").history()) == 2


def interrupted(chat: Chat, memory: Memory) -> Chat:
    """Give a chat in which others talk as soon as anything is stored."""

    def talk(operation: Operation) -> None:
        if operation.name == "append":
            chat.append(
                [{"role": "user", "content": "And you?"}, {"role": "assistant", "content": "Well. " * 200}]
            )

    return traced(memory, on_event=talk).chat(chat.id)


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("budget", [0, 200, 8_000])
def test_a_run_sees_its_results_whatever_others_say_meanwhile(
    memory: Memory, chat: Chat, budget: int, later: bool
) -> None:
    watched = Watched(look_up)
    agent = Agent(
        watched.model,
        output_type=[str, DeferredToolRequests],
        tools=[Tool(weather, requires_approval=later)],
        capabilities=[Remembering[object](interrupted(chat, memory), budget=budget)],
    )
    done = agent.run_sync("The weather?")
    if later:
        assert isinstance(done.output, DeferredToolRequests)
        results = done.output.build_results(approve_all=True)
        done = agent.run_sync(message_history=done.all_messages(), deferred_tool_results=results)
    assert done.output == "sun in Lisbon and sun in Berlin"
    assert len(watched.shown) == 2
    for shown in watched.shown:
        check_accepted(shown)


@settings(max_examples=cases(10, 90))
@given(
    runs=st.lists(st.lists(st.integers(1, 3), max_size=4), min_size=1, max_size=4),
    budget=st.sampled_from([0, 50, 200, 1_000, 8_000]),
    passed=st.booleans(),
)
@pytest.mark.slow
def test_whatever_runs_do_they_are_stored_once_and_models_accept_them(
    runs: list[list[int]], budget: int, passed: bool
) -> None:
    steps: Iterator[int] = iter(())

    def work(messages: Sequence[ModelMessage], _: AgentInfo) -> ModelResponse:
        assert asked(messages) == f"Run {number}"
        several = next(steps, 0)
        return call(*["Lisbon"] * several) if several else say("Done.")

    watched = Watched(work)
    with Memory(":memory:") as memory:
        chat = memory.chat("monday")
        agent = Agent(watched.model, tools=[weather], capabilities=[Remembering(chat, budget=budget)])
        history: list[ModelMessage] = []
        for number, calls in enumerate(runs):
            steps = iter(calls)
            history = agent.run_sync(
                f"Run {number}", message_history=history if passed else None
            ).all_messages()
        assert [message.role for message in chat.history()] == [
            role
            for calls in runs
            for role in ("user", *(role for n in calls for role in ("assistant", *["tool"] * n)), "assistant")
        ]
    for shown in watched.shown:
        check_accepted(shown)
