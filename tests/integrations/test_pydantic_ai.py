"""pydantic-ai with a memory: whole runs of the real framework, with models that follow a function."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, ModelRetry, RunContext, Tool
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from holdfast import InvalidInput, Memory
from holdfast.chat import Chat
from holdfast.integrations.pydantic_ai import Remembering, toolset
from holdfast.prompt.window import TokenBudget
from holdfast.providers.null import NullMemory
from holdfast.providers.tracing import Operation, traced

Answer = Callable[[Sequence[ModelMessage], AgentInfo], ModelResponse]


@pytest.fixture(autouse=True)
def runner() -> Iterator[asyncio.Runner]:
    """Give an event loop that is closed in the end; `run_sync` would leave one of its own open."""
    with asyncio.Runner() as runner:
        asyncio.set_event_loop(runner.get_loop())
        yield runner
        asyncio.set_event_loop(None)


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", user="ada", admin=True) as opened:
        yield opened


@pytest.fixture
def chat(memory: Memory) -> Chat:
    return memory.chat("monday")


class Watched:
    """A model that answers by a function and keeps what it was shown."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.shown: list[list[ModelMessage]] = []
        self._answer = answer
        self.model = FunctionModel(self._reply)

    def _reply(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.shown.append(messages)
        if self._answer is not None:
            return self._answer(messages, info)
        return say(f"answer {len(self.shown)}")

    def words(self) -> list[str]:
        """Give what the model saw last, a line for each part."""
        return words(self.shown[-1])


def say(text: str) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)])


def call(*cities: str) -> ModelResponse:
    return ModelResponse(
        parts=[TextPart("I look."), *(ToolCallPart("weather", {"city": city}) for city in cities)]
    )


def words(messages: Sequence[ModelMessage]) -> list[str]:
    return [
        f"{part.part_kind}: {getattr(part, 'content', None) or getattr(part, 'args', '')}"
        for message in messages
        for part in message.parts
    ]


def asked(messages: Sequence[ModelMessage]) -> str:
    """Give the newest message of the user, without what was recalled for it."""
    return next(
        str(part.content)
        for message in reversed(messages)
        for part in reversed(message.parts)
        if isinstance(part, UserPromptPart)
    )


def answered(messages: Sequence[ModelMessage]) -> list[str]:
    """Give the results that the model is to go on with; those of other runs may come before a question."""
    if isinstance(messages[-1].parts[-1], UserPromptPart):
        return []
    return [str(part.content) for part in messages[-1].parts if isinstance(part, ToolReturnPart)]


def look_up(messages: Sequence[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Ask for the weather where the user does, and say what it is."""
    if results := answered(messages):
        return say(" and ".join(results))
    return call("Lisbon", "Berlin") if "weather" in asked(messages) else say("Hello.")


def weather(city: str) -> str:
    return f"sun in {city}"


def stored(chat: Chat) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in chat.history()]


def check_accepted(messages: Sequence[ModelMessage]) -> None:
    """Check the rules that all providers have."""
    kinds = [type(message) for message in messages]
    assert kinds[0] is kinds[-1] is ModelRequest
    assert (ModelRequest, ModelRequest) not in set(itertools.pairwise(kinds))
    for message, after in itertools.pairwise(messages):
        calls = {part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)}
        results = {part.tool_call_id for part in after.parts if isinstance(part, ToolReturnPart)}
        if calls or results:
            assert calls == results
    first = [part for message in messages for part in message.parts][: len(words(messages[:1]))]
    system = [isinstance(part, SystemPromptPart) for part in first]
    assert system == sorted(system, reverse=True)


# Runs -----------------------------------------------------------------------------------------------------------------


def test_an_agent_remembers_from_run_to_run(chat: Chat) -> None:
    watched = Watched()
    agent = Agent(watched.model, capabilities=[Remembering(chat, recall=False)])
    for text in ("I am Ada.", "I live in Lisbon.", "Who am I?"):
        agent.run_sync(text)
    assert watched.words() == [
        "user-prompt: I am Ada.",
        "text: answer 1",
        "user-prompt: I live in Lisbon.",
        "text: answer 2",
        "user-prompt: Who am I?",
    ]
    assert len(chat.history()) == 6
    check_accepted(watched.shown[-1])


def test_history_that_is_passed_as_well_is_stored_and_shown_once(chat: Chat) -> None:
    watched = Watched(look_up)
    agent = Agent(watched.model, tools=[weather], capabilities=[Remembering(chat, recall=False)])
    history: list[ModelMessage] = []
    for text in ("Hello", "The weather?", "Hello", "Hello"):
        result = agent.run_sync(text, message_history=history)
        # as after a restart of the application
        history = ModelMessagesTypeAdapter.validate_json(
            ModelMessagesTypeAdapter.dump_json(result.all_messages())
        )
    assert [role for role, _ in stored(chat)] == [
        *("user", "assistant"),
        *("user", "assistant", "tool", "tool", "assistant"),
        *("user", "assistant"),
        *("user", "assistant"),
    ]
    assert watched.words().count("user-prompt: Hello") == 3
    for shown in watched.shown:
        check_accepted(shown)


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


def test_parallel_calls_stay_with_their_results(chat: Chat) -> None:
    watched = Watched(look_up)
    agent = Agent(watched.model, tools=[weather], capabilities=[Remembering(chat)])
    result = agent.run_sync("The weather?")
    assert result.output == "sun in Lisbon and sun in Berlin"
    history = chat.history()
    assert [call.arguments for call in history[1].calls] == [{"city": "Lisbon"}, {"city": "Berlin"}]
    assert [message.answers[0] for message in history[2:4]] == [call.id for call in history[1].calls]
    for shown in watched.shown:
        check_accepted(shown)


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


def test_the_framework_keeps_its_own_history(chat: Chat) -> None:
    agent = Agent(Watched(look_up).model, tools=[weather], capabilities=[Remembering(chat)])
    agent.run_sync("Hello")
    result = agent.run_sync("The weather?")
    assert words(result.all_messages()) == words(result.new_messages())
    assert len(result.new_messages()) == 4


def test_a_long_run_stays_within_the_budget_and_keeps_its_task(chat: Chat) -> None:
    def work(messages: Sequence[ModelMessage], _: AgentInfo) -> ModelResponse:
        return call("Lisbon") if len(watched.shown) <= 12 else say("Done.")

    def long_weather(city: str) -> str:
        return f"sun in {city} " * 100

    watched = Watched(work)
    agent = Agent(watched.model, tools=[long_weather], capabilities=[Remembering(chat, budget=2_000)])
    agent.tool_plain(name="weather")(long_weather)
    agent.run_sync("Ask for the weather, twelve times.")
    last = watched.shown[-1]
    check_accepted(last)
    assert asked(last) == "Ask for the weather, twelve times."
    assert 2 <= sum(isinstance(part, ToolReturnPart) for message in last for part in message.parts) < 12
    assert len("".join(watched.words())) < 4 * 2_000
    assert len(chat.history()) == 26


def test_a_large_result_of_an_older_run_is_a_placeholder(chat: Chat) -> None:
    def long_weather(city: str) -> str:
        return f"sun in {city} " * 500

    watched = Watched(look_up)
    agent = Agent(watched.model, capabilities=[Remembering(chat, budget=8_000, recall=False)])
    agent.tool_plain(name="weather")(long_weather)
    agent.run_sync("The weather?")
    results = [one for one in watched.words() if one.startswith("tool-return: ")]
    assert [len(one) for one in results] == [
        len(f"tool-return: {long_weather(city)}") for city in ("Lisbon", "Berlin")
    ]
    agent.run_sync("Thanks.")
    short = [one for one in watched.words() if one.startswith("tool-return: ")]
    assert ["monday#3" in short[0], "monday#4" in short[1]] == [True, True]
    assert all(len(one) < 450 for one in short)
    check_accepted(watched.shown[-1])


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


def test_summaries_stand_for_what_is_older(chat: Chat) -> None:
    watched = Watched()
    agent = Agent(watched.model, capabilities=[Remembering(chat, budget=1_000, recall=False)])
    for number in range(30):
        agent.run_sync(f"Day {number}: the harbour of Lisbon was quiet, and the boats came in at {number}.")
    assert chat.compact(full=True, budget=1_000).summaries
    agent.run_sync("And today?")
    shown = watched.words()
    assert shown[0].startswith("user-prompt: <summary ")
    assert shown[-1] == "user-prompt: And today?"
    check_accepted(watched.shown[-1])


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


def test_a_chat_is_not_compacted_unless_asked_for(chat: Chat) -> None:
    for compact, budget in ((False, 200), (True, 100_000)):
        agent = Agent(
            Watched().model, capabilities=[Remembering[object](chat, budget=budget, compact=compact)]
        )
        for number in range(15):
            agent.run_sync(
                f"Day {number}: the harbour of Lisbon was quiet, and the boats came in at {number}."
            )
        assert chat.window(100_000).summaries == ()


def test_a_policy_that_cannot_compact_is_told_before_a_model_is_asked() -> None:
    with Memory(":memory:", policy=TokenBudget()) as memory:
        watched = Watched()
        agent = Agent(watched.model, capabilities=[Remembering(memory.chat("monday"), compact=True)])
        with pytest.raises(InvalidInput, match="how to compact"):
            agent.run_sync("The weather?")
        assert watched.shown == []


def test_what_is_no_model_cannot_compact(chat: Chat) -> None:
    with pytest.raises(InvalidInput):
        Remembering[object](chat, compact=cast("Any", 5))


def test_summaries_name_a_tool_that_the_agent_has(memory: Memory, chat: Chat) -> None:
    for number in range(60):
        chat.append(role="user", content=f"Day {number}: the harbour of Lisbon was quiet at {number}.")
        chat.append(role="assistant", content="I see.")
    assert chat.compact(full=True, budget=1_000).summaries
    hints = []
    for toolsets in ([], [toolset(memory.tools(chat, allow=["recall"]))], [toolset(memory.tools(chat))]):
        watched = Watched()
        remembering = Remembering(chat, budget=1_000, recall=False)
        Agent(watched.model, capabilities=[remembering], toolsets=toolsets).run_sync("And today?")
        hints.append("`expand` with this id" in watched.words()[0])
    assert hints == [False, False, True]


def test_streaming(chat: Chat, runner: asyncio.Runner) -> None:
    agent = Agent(TestModel(custom_output_text="It is sunny."), capabilities=[Remembering(chat)])

    async def run() -> list[str]:
        async with agent.run_stream("The weather?") as result:
            return [text async for text in result.stream_text(delta=True, debounce_by=None)]

    assert "".join(runner.run(run())) == "It is sunny."
    assert stored(chat) == [("user", "The weather?"), ("assistant", "It is sunny.")]


def test_a_stream_that_is_left_early_leaves_what_was_said(chat: Chat, runner: asyncio.Runner) -> None:
    agent = Agent(TestModel(custom_output_text="It is sunny in Lisbon."), capabilities=[Remembering(chat)])

    async def run() -> None:
        async with agent.run_stream("The weather?") as result:
            async for _ in result.stream_text(delta=True, debounce_by=None):
                break

    runner.run(run())
    (_, question), (role, answer) = stored(chat)
    assert question == "The weather?"
    assert role == "assistant"
    assert "It is sunny in Lisbon.".startswith(answer)


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


def test_a_model_that_fails_leaves_the_question(chat: Chat) -> None:
    def fail(_: Sequence[ModelMessage], __: AgentInfo) -> ModelResponse:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        Agent(Watched(fail).model, capabilities=[Remembering(chat)]).run_sync("Hello")
    assert stored(chat) == [("user", "Hello")]


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


def test_a_retry_is_a_result_of_its_call(chat: Chat) -> None:
    watched = Watched(look_up)
    agent = Agent(watched.model, capabilities=[Remembering(chat)])

    @agent.tool_plain(name="weather")
    def unsure(city: str) -> str:
        raise ModelRetry(f"Not {city}.")

    agent.run_sync("The weather?")
    for shown in watched.shown:
        check_accepted(shown)
    assert "Not Lisbon." in stored(chat)[2][1]


def test_structured_output_goes_on(chat: Chat) -> None:
    class Place(BaseModel):
        city: str

    agent = Agent(
        TestModel(custom_output_args={"city": "Lisbon"}), output_type=Place, capabilities=[Remembering(chat)]
    )
    history: list[ModelMessage] = []
    for _ in range(3):
        result = agent.run_sync("Where?", message_history=history)
        history = result.all_messages()
        assert result.output == Place(city="Lisbon")
    assert [role for role, _ in stored(chat)] == ["user", "assistant", "tool"] * 3


def test_two_agents_each_with_a_chat_and_both_in_one(memory: Memory) -> None:
    watched = Watched()
    for name in ("coach", "cook"):
        own = memory.scoped(agent=name).chat(name)
        Agent(watched.model, capabilities=[Remembering(own)]).run_sync(f"I talk to the {name}.")
        assert watched.words() == [f"user-prompt: I talk to the {name}."]
    both = memory.chat("both")
    for name in ("coach", "cook"):
        Agent(watched.model, system_prompt=name, capabilities=[Remembering(both)]).run_sync(f"Hello {name}.")
    assert watched.words()[0] == "system-prompt: cook"
    assert "system-prompt: coach" not in watched.words()
    assert len(both.history()) == 4


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


def test_runs_in_one_chat_at_the_same_time_keep_calls_and_results_together(
    chat: Chat, runner: asyncio.Runner
) -> None:
    watched = Watched(look_up)
    agent = Agent(watched.model, tools=[weather], capabilities=[Remembering(chat)])

    async def run() -> None:
        await asyncio.gather(*(agent.run(f"The weather of day {number}?") for number in range(4)))

    runner.run(run())
    assert len(chat.history()) == 4 * 5
    agent.run_sync("Hello")
    for shown in watched.shown:
        check_accepted(shown)


def test_a_result_that_comes_later_finds_its_call(chat: Chat) -> None:
    watched = Watched(look_up)
    remembering = Remembering[object](chat, recall=False)
    agent = Agent(watched.model, output_type=[str, DeferredToolRequests], capabilities=[remembering])

    @agent.tool_plain(name="weather", requires_approval=True)
    def asking(city: str) -> str:
        return weather(city)

    paused = agent.run_sync("The weather?")
    assert isinstance(paused.output, DeferredToolRequests)
    agent.run_sync("Hello, meanwhile.")
    assert watched.words() == ["user-prompt: The weather?", "user-prompt: Hello, meanwhile."]
    results = paused.output.build_results(approve_all=True)
    done = agent.run_sync(message_history=paused.all_messages(), deferred_tool_results=results)
    assert done.output == "sun in Lisbon and sun in Berlin"
    assert len(chat.history()) == 7
    check_accepted(watched.shown[-1])


def interrupted(chat: Chat, memory: Memory) -> Chat:
    """Give a chat in which others talk as soon as anything is stored."""

    def talk(operation: Operation) -> None:
        if operation.name == "append":
            chat.append(
                [{"role": "user", "content": "And you?"}, {"role": "assistant", "content": "Well. " * 200}]
            )

    return traced(memory, on_event=talk).chat(chat.id)


@pytest.mark.parametrize("budget", [0, 200, 8_000])
def test_a_run_sees_its_results_whatever_others_say_meanwhile(
    memory: Memory, chat: Chat, budget: int
) -> None:
    watched = Watched(look_up)
    remembering = Remembering[object](interrupted(chat, memory), budget=budget)
    agent = Agent(watched.model, tools=[weather], capabilities=[remembering])
    assert agent.run_sync("The weather?").output == "sun in Lisbon and sun in Berlin"
    assert len(watched.shown) == 2
    for shown in watched.shown:
        check_accepted(shown)


@pytest.mark.parametrize("budget", [0, 200, 8_000])
def test_results_that_come_later_are_seen_whatever_others_say_meanwhile(
    memory: Memory, chat: Chat, budget: int
) -> None:
    watched = Watched(look_up)
    remembering = Remembering[object](interrupted(chat, memory), budget=budget)
    agent = Agent(
        watched.model,
        output_type=[str, DeferredToolRequests],
        tools=[Tool(weather, requires_approval=True)],
        capabilities=[remembering],
    )

    paused = agent.run_sync("The weather?")
    assert isinstance(paused.output, DeferredToolRequests)
    results = paused.output.build_results(approve_all=True)
    done = agent.run_sync(message_history=paused.all_messages(), deferred_tool_results=results)
    assert done.output == "sun in Lisbon and sun in Berlin"
    check_accepted(watched.shown[-1])


def test_a_capability_may_change_what_is_given(chat: Chat) -> None:
    def shout(messages: list[ModelMessage]) -> list[ModelMessage]:
        (*older, newest) = messages
        parts = [
            replace(part, content=str(part.content).upper())
            for part in newest.parts
            if isinstance(part, UserPromptPart)
        ]
        return (
            [*older, replace(newest, parts=parts)] if parts and isinstance(newest, ModelRequest) else messages
        )

    watched = Watched()
    agent = Agent(watched.model, capabilities=[ProcessHistory(shout), Remembering(chat, recall=False)])
    agent.run_sync("Hello")
    agent.run_sync("And now?")
    assert watched.words() == ["user-prompt: HELLO", "text: answer 1", "user-prompt: AND NOW?"]


@pytest.mark.parametrize("make", [lambda memory: NullMemory(), traced])
def test_other_memories_do_as_well(memory: Memory, make: Callable[[Memory], Memory]) -> None:
    watched = Watched(look_up)
    other = make(memory)
    agent = Agent(watched.model, tools=[weather], capabilities=[Remembering(other.chat("monday"))])
    assert agent.run_sync("The weather?").output == "sun in Lisbon and sun in Berlin"
    check_accepted(watched.shown[-1])
    assert len(memory.chat("monday").history()) == (0 if isinstance(other, NullMemory) else 5)


@settings(max_examples=30, deadline=None)
@given(
    runs=st.lists(st.lists(st.integers(1, 3), max_size=4), min_size=1, max_size=4),
    budget=st.sampled_from([0, 50, 200, 1_000, 8_000]),
    passed=st.booleans(),
)
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


# Tools ----------------------------------------------------------------------------------------------------------------


def test_an_agent_uses_the_tools(memory: Memory, chat: Chat) -> None:
    def use(messages: Sequence[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert {"recall", "remember"} <= {tool.name for tool in info.function_tools}
        if results := answered(messages):
            return say(results[0])
        if "remember" in asked(messages):
            return ModelResponse(parts=[ToolCallPart("remember", {"text": "Ada runs the Berlin marathon."})])
        return ModelResponse(parts=[ToolCallPart("recall", '{"query": "marathon"}')])

    agent = Agent(
        Watched(use).model, toolsets=[toolset(memory.tools(chat))], capabilities=[Remembering(chat)]
    )
    agent.run_sync("Please remember my race.")
    assert [record.text for record in memory.records()] == ["Ada runs the Berlin marathon."]
    assert "Ada runs the Berlin marathon." in agent.run_sync("Which race?").output


def test_what_goes_wrong_in_a_tool_is_a_result(memory: Memory, chat: Chat) -> None:
    def use(messages: Sequence[ModelMessage], _: AgentInfo) -> ModelResponse:
        if results := answered(messages):
            return say(results[0])
        return ModelResponse(parts=[ToolCallPart("recall", {"nonsense": 1})])

    agent = Agent(Watched(use).model, toolsets=[toolset(memory.tools(chat))])
    assert '"error"' in agent.run_sync("Which race?").output


def test_the_test_model_calls_every_tool(memory: Memory, chat: Chat) -> None:
    agent = Agent(TestModel(), toolsets=[toolset(memory.tools(chat))], capabilities=[Remembering(chat)])
    agent.run_sync("Try all of it.")
    assert sum(message.role == "tool" for message in chat.history()) == len(memory.tools(chat))
