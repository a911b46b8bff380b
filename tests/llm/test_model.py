"""Calls of a model: what it answers, from where it is called, and how a call ends."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Barrier, Event, current_thread, main_thread

import pytest
from llm_models import PERSON, RateLimitError, afailing, answering, ashout, failure, shout
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ThinkingPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from holdfast import ModelFailed
from holdfast.llm.adapters import resolve
from holdfast.llm.event_loop import run
from holdfast.llm.model import Answer, Model, acomplete, complete, hosted
from programs import run as run_program
from tables import each

# What it answers


@each("answer", [None, b"bytes", 5, ["text"], object()])
def test_an_answer_that_is_no_text_is_refused(answer: object) -> None:
    async def awaited(_: str) -> object:
        return answer

    assert failure(resolve(awaited)).reason == "answer"  # type: ignore[arg-type]  # it breaks its promise
    error = failure(resolve(answering(answer)))
    assert error.reason == "answer"
    assert f"answered with {type(answer).__name__} instead of text." in error.what
    assert error.todo == "Make the function return a str."


def test_only_the_text_of_an_answer_is_given() -> None:
    def think(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert not info.function_tools
        return ModelResponse(parts=[ThinkingPart("secret thought"), TextPart("the "), TextPart("answer")])

    assert complete(resolve(FunctionModel(think)), "x") == "the answer"


# From where it is asked


def test_an_async_function_is_asked_on_one_event_loop_or_awaited_on_that_of_who_awaits() -> None:
    loops = []

    async def ask(prompt: str) -> str:
        loops.append(asyncio.get_running_loop())
        return prompt

    async def from_within() -> bool:
        await acomplete(model, "x")
        own = loops.pop() is asyncio.get_running_loop()
        return complete(model, "x") == "x" and own

    model = resolve(ask)
    assert complete(model, "x") == asyncio.run(asyncio.to_thread(complete, model, "x")) == "x"
    assert asyncio.run(from_within())
    assert len(loops) == 3
    assert len(set(loops)) == 1


def test_a_synchronous_function_is_asked_on_the_thread_of_who_waits_and_on_another_when_awaited() -> None:
    model = resolve(lambda _: str(current_thread() is main_thread()))
    assert complete(model, "x") == "True"
    assert asyncio.run(acomplete(model, "x")) == "False"


def test_a_model_may_wait_for_another_one_and_one_of_pydantic_ai_must_be_awaited() -> None:
    async def waits(prompt: str) -> str:
        return complete(resolve(ashout), prompt) + complete(resolve(shout), prompt)

    async def cannot(prompt: str) -> str:
        return complete(resolve(TestModel()), prompt)

    async def awaits(prompt: str) -> str:
        return await acomplete(resolve(TestModel(custom_output_text="inner")), prompt)

    assert complete(resolve(waits), "x") == "XX"
    assert complete(resolve(awaits), "x") == "inner"
    assert "Await it there." in str(failure(resolve(cannot)))


@pytest.mark.parametrize("hosts", [False, True])
def test_awaited_and_hosted_calls_of_an_async_function_overlap(*, hosts: bool) -> None:
    async def main() -> list[Answer]:
        barrier = asyncio.Barrier(4)

        async def ask(prompt: str) -> str:
            async with asyncio.timeout(10):
                await barrier.wait()
            return prompt

        model = resolve(ask)
        asked = (from_a_thread(model, n) if hosts else acomplete(model, n) for n in map(str, range(4)))
        return await asyncio.gather(*asked)

    expected = [str(number) for number in range(4)]
    assert asyncio.run(main()) == expected
    assert hosts or run(main) == expected


def test_awaited_calls_of_a_synchronous_function_overlap() -> None:
    barrier = Barrier(4, timeout=10)

    def ask(prompt: str) -> str:
        barrier.wait()
        return prompt

    async def main() -> list[str]:
        return await asyncio.gather(*(acomplete(resolve(ask), prompt) for prompt in "abcd"))

    assert asyncio.run(main()) == list("abcd")


FORKED = """
import os, warnings
from holdfast.llm import adapters, model as llm
warnings.simplefilter('ignore')  # of forking beside a thread
async def shout(prompt):
    return prompt.upper()
model = adapters.resolve(shout)
assert llm.complete(model, "x") == "X"
child = os.fork()
if child == 0:
    os._exit(0 if llm.complete(model, "y") == "Y" else 1)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_model_answers_in_a_forked_process() -> None:
    run_program(FORKED)


# Cancelled, and too late


@pytest.mark.parametrize("hosts", [False, True])
def test_a_timeout_ends_an_async_function(*, hosts: bool) -> None:
    ended = []

    async def ask(_: str) -> str:
        try:
            return await forever(Event())
        finally:
            ended.append(True)

    model = resolve(ask)
    with pytest.raises(ModelFailed, match="did not answer within") as caught:
        asyncio.run(from_a_thread(model, patience=0.01) if hosts else acomplete(model, "x", timeout=0.01))
    assert caught.value.reason == "timeout"
    assert ended == [True]


def test_cancelling_ends_the_call() -> None:
    ended = Event()

    async def ask(_: str) -> str:
        try:
            started.set()
            return await forever(Event())
        finally:
            ended.set()

    started = Event()
    model = resolve(ask)

    async def main() -> None:
        task = asyncio.create_task(acomplete(model, "x"))
        assert await asyncio.to_thread(started.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended.wait(10)


# On the event loop of the caller


async def from_a_thread(model: Model, prompt: str = "x", patience: float | None = None) -> Answer:
    there = hosted(model, asyncio.get_running_loop())
    return await asyncio.to_thread(complete, there, prompt, patience)


async def forever(started: Event) -> str:
    started.set()
    await asyncio.Event().wait()
    return "never"


def test_a_hosted_function_runs_on_the_loop_of_the_caller_and_in_the_context_of_who_asks() -> None:
    asked = []

    async def ask(prompt: str) -> str:
        asked.append((asyncio.get_running_loop(), current_thread(), PERSON.get()))
        return prompt.upper()

    async def main() -> bool:
        PERSON.set("ada")
        assert await from_a_thread(resolve(ask)) == "X"
        return asked == [(asyncio.get_running_loop(), main_thread(), "ada")]

    assert asyncio.run(main())


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), RateLimitError("x")])
def test_an_interruption_of_a_hosted_call_passes_to_who_waits_and_a_failure_is_explained(
    error: BaseException,
) -> None:
    async def main() -> str:
        with pytest.raises((type(error), ModelFailed)) as caught:
            await from_a_thread(resolve(afailing(error)))
        assert error in (caught.value, caught.value.__cause__)
        return "went on"

    assert asyncio.run(main()) == "went on"


def test_a_closed_loop_hosts_nobody() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    assert "has ended" in failure(hosted(resolve(ashout), loop)).what


def test_a_call_that_the_end_of_its_loop_cancels_has_failed() -> None:
    started = Event()

    async def ask(_: str) -> str:
        return await forever(started)

    async def main() -> Future[ModelFailed]:
        asked = pool.submit(failure, hosted(resolve(ask), asyncio.get_running_loop()))
        assert await asyncio.to_thread(started.wait, 10)
        return asked

    with ThreadPoolExecutor(1) as pool:
        assert "was cancelled on its event loop" in asyncio.run(main()).result().what
