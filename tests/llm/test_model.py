"""The language model: what may be passed as one, how it is asked from everywhere, and how it fails."""

from __future__ import annotations

import asyncio
import os
import pickle
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from copy import deepcopy
from enum import Enum
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Barrier, Event, Thread, current_thread, main_thread
from types import SimpleNamespace
from typing import ClassVar

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ThinkingPart
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RequestUsage

from holdfast import InvalidInput, MissingExtra, ModelFailed
from holdfast.llm.event_loop import run
from holdfast.llm.model import LLM, Answer, Model, acomplete, complete, hosted, resolve
from llm_server import Body, Server, completion, prompt_of, refusal
from programs import run as run_program

KEY = "sk-proj-abcdEFGH1234ijkl5678MNOP9012"
BEARER = "Bearer abcdEFGH1234ijkl5678MNOP9012"


def shout(prompt: str) -> str:
    return prompt.upper()


async def ashout(prompt: str) -> str:
    await asyncio.sleep(0)
    return prompt.upper()


def shout_with(mark: str, prompt: str) -> str:
    return prompt.upper() + mark


async def ashout_with(mark: str, prompt: str) -> str:
    return prompt.upper() + mark


class Shouter:
    def __call__(self, prompt: str) -> str:
        return prompt.upper()

    def method(self, prompt: str) -> str:
        return prompt.upper()

    async def amethod(self, prompt: str) -> str:
        return prompt.upper()


class AsyncShouter:
    async def __call__(self, prompt: str) -> str:
        return prompt.upper()


def failing(error: BaseException) -> Callable[[str], str]:
    def fail(prompt: str) -> str:
        raise error

    return fail


def afailing(error: BaseException) -> Callable[[str], Awaitable[str]]:
    async def fail(prompt: str) -> str:
        raise error

    return fail


def answering(answer: object) -> Callable[[str], str]:
    """Make a model that breaks its promise of text."""
    wrong: Callable[[str], str] = lambda _: answer  # type: ignore[assignment, return-value]  # noqa: E731
    return wrong


def failure(model: Model, prompt: str = "x") -> ModelFailed:
    with pytest.raises(ModelFailed) as caught:
        complete(model, prompt)
    return caught.value


# What may be passed

CALLABLES: dict[str, tuple[LLM, bool]] = {
    "function": (shout, False),
    "async function": (ashout, True),
    "lambda": (lambda prompt: prompt.upper(), False),
    "function of an awaitable": (lambda prompt: ashout(prompt.lower()), False),
    "bound method": (Shouter().method, False),
    "async bound method": (Shouter().amethod, True),
    "object": (Shouter(), False),
    "async object": (AsyncShouter(), True),
    "partial": (partial(shout_with, ""), False),
    "async partial": (partial(ashout_with, ""), True),
    "partial of an object": (partial(AsyncShouter()), True),
    "builtin": (str.upper, False),
}


@pytest.mark.parametrize("kind", CALLABLES)
def test_every_kind_of_callable_answers(kind: str) -> None:
    llm, is_async = CALLABLES[kind]
    model = resolve(llm)
    assert model.is_async is is_async
    assert complete(model, "hello") == "HELLO"
    assert asyncio.run(acomplete(model, "hello")) == "HELLO"


@pytest.mark.parametrize(
    ("llm", "name"),
    [
        (shout, "shout"),
        (Shouter().method, "Shouter.method"),
        (Shouter(), "Shouter"),
        (partial(shout_with, "!"), "shout_with"),
        (TestModel(), "test:test"),
        (TestModel(model_name="mine"), "test:mine"),
    ],
)
def test_a_model_has_a_name(llm: LLM, name: str) -> None:
    assert resolve(llm).name == name


def test_a_callable_with_a_name_that_is_none_is_custom() -> None:
    class Odd(Shouter):
        __qualname__ = "Odd"

    odd = Odd()
    odd.__dict__["__qualname__"] = 5
    assert resolve(odd).name == "custom"


def test_a_name_stays_as_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = resolve("openai:gpt-5-mini")
    assert (model.name, model.is_async) == ("openai:gpt-5-mini", True)


def test_a_name_is_asked_where_the_environment_says(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert complete(resolve("openai-chat:gpt-5-mini"), "x") == "served"
    assert server.requests == [
        {"model": "gpt-5-mini", "messages": [{"role": "user", "content": "x"}], "stream": False}
    ]


@pytest.mark.parametrize("llm", [5, None, b"openai:gpt-5-mini", Shouter, TestModel, [], object(), {"a": 1}])
def test_what_is_no_model_is_refused(llm: object) -> None:
    wrong: LLM = llm  # type: ignore[assignment]
    with pytest.raises(InvalidInput, match="Pass a function from text to text, a name"):
        resolve(wrong)


@pytest.mark.parametrize("llm", [lambda: "x", lambda a, b: a + b, lambda *, prompt: prompt, shout_with])
def test_a_function_that_takes_no_prompt_is_refused(llm: object) -> None:
    wrong: LLM = llm  # type: ignore[assignment]
    with pytest.raises(InvalidInput, match=re.escape("functools.partial")):
        resolve(wrong)


@pytest.mark.parametrize(
    "name", ["", "  ", "openai:", ":gpt-5-mini", "gpt-5-mini", "nope:gpt-5-mini", "Summarise\nthis.", "a\0b"]
)
def test_a_name_that_names_no_model_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        resolve(name)


def test_a_name_without_a_provider_is_completed() -> None:
    with pytest.raises(InvalidInput, match="'openai:gpt-5-mini'") as caught:
        resolve("gpt-5-mini")
    assert caught.value.what.startswith("'gpt-5-mini' is not a model")


def test_the_default_of_a_parameter_is_not_shown() -> None:
    def ask(prompt: str, system: str, key: str = KEY) -> str:
        return prompt + system + key

    wrong: LLM = ask  # type: ignore[assignment]
    with pytest.raises(InvalidInput, match=re.escape("(prompt, system, key)")) as caught:
        resolve(wrong)
    assert KEY not in str(caught.value)


def test_a_key_that_was_passed_as_a_name_is_not_shown() -> None:
    with pytest.raises(InvalidInput) as caught:
        resolve(KEY)
    assert KEY not in str(caught.value)


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ModelFailed, match="Set OPENAI_API_KEY in the environment") as caught:
        resolve("openai:gpt-5-mini")
    assert caught.value.reason == "authentication"


def test_another_missing_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OLLAMA_BASE_URL", raising=False)
    with pytest.raises(ModelFailed, match="Set OLLAMA_BASE_URL in the environment") as caught:
        resolve("ollama:llama3")
    assert caught.value.reason == "error"


def test_the_missing_package_of_a_provider_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("pydantic_ai.providers.groq")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "groq", None)
    with pytest.raises(MissingExtra, match=re.escape("pip install 'pydantic-ai-slim[groq]'")):
        resolve("groq:llama-3.3-70b-versatile")


WITHOUT = """
import sys
sys.modules["pydantic_ai"] = None
from holdfast import MissingExtra
from holdfast.llm import model as llm
assert llm.complete(llm.resolve(str.upper), "x") == "X"
try:
    llm.resolve("openai:gpt-5-mini")
except MissingExtra as error:
    print(error)
"""


def test_without_pydantic_ai_functions_do_and_names_say_what_is_missing() -> None:
    assert "pip install '.[llm]'" in run_program(WITHOUT)


def test_the_module_loads_nothing_heavy() -> None:
    heavy = ("asyncio", "pydantic_ai", "pydantic", "openai", "concurrent.futures", "logging")
    script = f"import sys\nfrom holdfast.llm import model as llm\nprint([name for name in {heavy} if name in sys.modules])"
    assert run_program(script) == "[]\n"


def test_a_synchronous_function_needs_no_event_loop() -> None:
    script = "import sys\nfrom holdfast.llm import model as llm\nllm.complete(llm.resolve(str.upper), 'x')\nprint('asyncio' in sys.modules)"
    assert run_program(script) == "False\n"


# What it answers


@pytest.mark.parametrize("answer", [None, b"bytes", 5, ["text"], {"text": "x"}, object(), iter("x")])
def test_an_answer_that_is_no_text_is_refused(answer: object) -> None:
    error = failure(resolve(answering(answer)))
    assert error.reason == "answer"
    assert f"answered with {type(answer).__name__} instead of text." in error.what
    assert error.todo == "Make the function return a str."


def test_an_awaited_answer_that_is_no_text_is_refused() -> None:
    async def nothing(_: str) -> str:
        return None  # type: ignore[return-value]

    assert failure(resolve(nothing)).reason == "answer"


@pytest.mark.parametrize("answer", ["", " x \n", "<b>x</b>"])
def test_an_answer_stays_as_it_is(answer: str) -> None:
    assert complete(resolve(answering(answer)), "x") == answer


def test_only_the_text_of_an_answer_is_given() -> None:
    def think(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert not info.function_tools
        return ModelResponse(parts=[ThinkingPart("secret thought"), TextPart("the "), TextPart("answer")])

    assert complete(resolve(FunctionModel(think)), "x") == "the answer"


def test_an_answer_of_thoughts_alone_is_empty() -> None:
    model = resolve(FunctionModel(lambda _, __: ModelResponse(parts=[ThinkingPart("hm")])))
    assert complete(model, "x") == ""


def test_a_test_model_answers() -> None:
    assert complete(resolve(TestModel(custom_output_text="done")), "x") == "done"


class Word(str, Enum):  # noqa: UP042 - a StrEnum prints as what it holds
    YES = "yes"


def test_an_answer_is_what_a_text_holds() -> None:
    assert "".join(["oh ", complete(resolve(answering(Word.YES)), "x")]) == "oh yes"


@pytest.mark.parametrize("tokens", [-5, 0, 10**30])
def test_a_count_that_cannot_be_true_is_none(tokens: int) -> None:
    usage = RequestUsage(input_tokens=tokens, output_tokens=5)
    model = FunctionModel(lambda _, __: ModelResponse(parts=[TextPart("yes")], usage=usage))
    answer = complete(resolve(model), "x")
    assert (answer.prompt_tokens, answer.answer_tokens) == (None, 5)


@pytest.mark.parametrize("llm", [shout, ashout, answering(Word.YES), lambda prompt: ashout(prompt.lower())])
def test_nobody_counts_the_tokens_of_a_function(llm: LLM) -> None:
    model = resolve(llm)
    for answer in (complete(model, "x"), asyncio.run(acomplete(model, "x"))):
        assert type(answer) is Answer
        assert (answer.prompt_tokens, answer.answer_tokens) == (None, None)


def test_an_answer_keeps_its_tokens_when_it_is_copied_or_pickled() -> None:
    answer = Answer("yes", 5, 2)
    for copied in (deepcopy(answer), pickle.loads(pickle.dumps(answer))):
        assert (copied, copied.prompt_tokens, copied.answer_tokens) == ("yes", 5, 2)


# From where it is asked


def test_an_async_function_is_asked_on_one_event_loop_from_everywhere() -> None:
    loops = []

    async def ask(prompt: str) -> str:
        loops.append(asyncio.get_running_loop())
        return prompt

    async def from_within() -> str:
        return complete(resolve(ask), "x")

    model = resolve(ask)
    assert (
        complete(model, "x")
        == asyncio.run(from_within())
        == asyncio.run(asyncio.to_thread(complete, model, "x"))
    )
    assert len(set(loops)) == 1


def test_an_awaited_function_is_asked_on_the_loop_of_who_awaits() -> None:
    loops = []

    async def ask(prompt: str) -> str:
        loops.append(asyncio.get_running_loop())
        return prompt

    async def main() -> bool:
        await acomplete(resolve(ask), "x")
        return loops == [asyncio.get_running_loop()]

    assert asyncio.run(main())


def test_a_synchronous_function_is_asked_on_the_thread_of_who_waits_and_on_another_when_awaited() -> None:
    model = resolve(lambda _: str(current_thread() is main_thread()))
    assert complete(model, "x") == "True"
    assert asyncio.run(acomplete(model, "x")) == "False"


def test_a_model_may_wait_for_another_one() -> None:
    async def outer(prompt: str) -> str:
        return complete(resolve(ashout), prompt) + complete(resolve(shout), prompt)

    assert complete(resolve(outer), "x") == "XX"


def test_a_model_of_pydantic_ai_cannot_be_waited_for_by_another_one() -> None:
    async def outer(prompt: str) -> str:
        return complete(resolve(TestModel()), prompt)

    assert "Await `acomplete` there." in str(failure(resolve(outer)))


def test_a_model_may_await_another_one() -> None:
    async def outer(prompt: str) -> str:
        return await acomplete(resolve(TestModel(custom_output_text="inner")), prompt)

    assert complete(resolve(outer), "x") == "inner"


COUNT = 20


def test_awaited_calls_of_an_async_function_overlap() -> None:
    async def main() -> list[str]:
        started = 0
        all_started = asyncio.Event()

        async def ask(prompt: str) -> str:
            nonlocal started
            started += 1
            if started == COUNT:
                all_started.set()
            await all_started.wait()
            return prompt

        model = resolve(ask)
        return await asyncio.gather(*(acomplete(model, str(number)) for number in range(COUNT)))

    expected = [str(number) for number in range(COUNT)]
    assert asyncio.run(main()) == expected
    assert run(main) == expected


def test_awaited_calls_of_a_synchronous_function_overlap() -> None:
    barrier = Barrier(4, timeout=10)

    def ask(prompt: str) -> str:
        barrier.wait()
        return prompt

    async def main() -> list[str]:
        return await asyncio.gather(*(acomplete(resolve(ask), prompt) for prompt in "abcd"))

    assert asyncio.run(main()) == list("abcd")


PERSON: ContextVar[str] = ContextVar("PERSON", default="nobody")


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_model_sees_the_context_of_who_asks(kind: str) -> None:
    async def aask(_: str) -> str:
        return PERSON.get()

    model = resolve(aask if kind == "async" else lambda _: PERSON.get())
    token = PERSON.set("ada")
    try:
        assert complete(model, "x") == asyncio.run(acomplete(model, "x")) == "ada"
    finally:
        PERSON.reset(token)


FORKED = """
import os, warnings
from holdfast.llm import model as llm
warnings.simplefilter('ignore')  # of forking beside a thread
async def shout(prompt):
    return prompt.upper()
model = llm.resolve(shout)
assert llm.complete(model, "x") == "X"
child = os.fork()
if child == 0:
    os._exit(0 if llm.complete(model, "y") == "Y" else 1)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_model_answers_in_a_forked_process() -> None:
    run_program(FORKED)


# How it fails


class AuthenticationError(Exception):
    pass


class PermissionDeniedError(Exception):
    pass


class RateLimitError(Exception):
    pass


class ReadTimeout(Exception):  # as in httpx
    pass


def with_status(status: int) -> Exception:
    error = Exception("refused")
    error.status_code = status  # type: ignore[attr-defined]
    return error


def with_response(status: int) -> Exception:
    error = Exception("refused")
    error.response = SimpleNamespace(status_code=status)  # type: ignore[attr-defined]
    return error


def with_code(code: str) -> Exception:
    error = Exception("refused")
    error.code = code  # type: ignore[attr-defined]
    return error


def caused_by(cause: BaseException) -> Exception:
    error = RuntimeError("it did not work")
    error.__cause__ = cause
    return error


def in_circles() -> Exception:
    first, second = RuntimeError("first"), RuntimeError("second")
    first.__cause__, second.__cause__ = second, first
    return first


FAILURES: list[tuple[Exception, str]] = [
    (AuthenticationError(), "authentication"),
    (PermissionDeniedError(), "authentication"),
    (with_status(401), "authentication"),
    (with_status(403), "authentication"),
    (with_response(401), "authentication"),
    (with_code("invalid_api_key"), "authentication"),
    (RateLimitError(), "quota"),
    (with_status(429), "quota"),
    (with_response(429), "quota"),
    (with_code("insufficient_quota"), "quota"),
    (TimeoutError(), "timeout"),
    (ReadTimeout(), "timeout"),
    (with_status(408), "timeout"),
    (caused_by(RateLimitError()), "quota"),
    (caused_by(caused_by(with_response(403))), "authentication"),
    (ExceptionGroup("all failed", [ValueError("x"), with_status(429)]), "quota"),
    (ValueError("x"), "error"),
    (with_status(500), "error"),
    (PermissionError("a file"), "error"),
    (in_circles(), "error"),
    (StopIteration(), "error"),
]


@pytest.mark.parametrize(("error", "reason"), FAILURES)
def test_failures_are_told_apart(error: Exception, reason: str) -> None:
    found = failure(resolve(failing(error)))
    assert found.reason == reason
    assert found.__cause__ is error
    assert f"({type(error).__name__}" in found.what


SENTENCES = {
    "authentication": (AuthenticationError(), "Check the API key"),
    "quota": (RateLimitError(), "Wait and try again"),
    "timeout": (TimeoutError(), "allow more time"),
    "error": (ValueError(), "says more"),
}


@pytest.mark.parametrize("reason", SENTENCES)
def test_a_failure_says_what_to_do(reason: str) -> None:
    error, todo = SENTENCES[reason]
    assert todo in failure(resolve(failing(error))).todo


@pytest.mark.parametrize("make", [failing, afailing])
def test_a_failure_is_explained_when_awaited(make: Callable[[Exception], LLM]) -> None:
    error = RateLimitError("x")
    with pytest.raises(ModelFailed) as caught:
        asyncio.run(acomplete(resolve(make(error)), "x"))
    assert caught.value.reason == "quota"
    assert caught.value.__cause__ is error


def test_a_synchronous_function_that_runs_out_of_answers_does_not_hang() -> None:
    answers = iter(["only"])
    model = resolve(lambda _: next(answers))

    async def main() -> str:
        with pytest.raises(ModelFailed, match="StopIteration"):
            await acomplete(model, "x")
        return "went on"

    assert complete(model, "x") == "only"
    assert asyncio.run(main()) == "went on"


def test_an_error_that_is_one_already_stays_as_it_is() -> None:
    error = ModelFailed("It is full.", "Empty it.", reason="quota")
    assert failure(resolve(failing(error))) is error
    assert failure(resolve(afailing(error))) is error


@pytest.mark.parametrize("secret", [KEY, BEARER, "sk-short"])
def test_what_an_error_says_is_not_repeated(secret: str) -> None:
    error = ValueError(f"cannot send {secret} with the prompt about Ada")
    for model in (resolve(failing(error)), resolve(afailing(caused_by(error)))):
        found = failure(model, "the prompt about Ada")
        assert secret not in str(found)
        assert "Ada" not in str(found)


def test_a_key_in_the_name_of_a_model_is_not_repeated() -> None:
    model = resolve(TestModel(model_name=KEY))
    assert KEY not in str(failure(Model(model.name, is_async=False, ask=failing(ValueError()))))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), asyncio.CancelledError()])
@pytest.mark.parametrize("make", [failing, afailing])
def test_an_interruption_passes(make: Callable[[BaseException], LLM], error: BaseException) -> None:
    with pytest.raises(type(error)):
        complete(resolve(make(error)), "x")
    assert complete(resolve(ashout), "and on") == "AND ON"


def test_a_failure_can_be_pickled() -> None:
    error = ModelFailed("It failed.", "Mend it.", reason="quota")
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.reason) == (str(error), "quota")


# Cancelled, and too late


def test_a_timeout_ends_an_async_function() -> None:
    ended = []

    async def ask(_: str) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)
        return "never"

    with pytest.raises(ModelFailed, match="did not answer within") as caught:
        asyncio.run(acomplete(resolve(ask), "x", timeout=0.01))
    assert caught.value.reason == "timeout"
    assert ended == [True]


def test_a_timeout_ends_the_wait_for_a_synchronous_function() -> None:
    released = Event()

    def ask(_: str) -> str:
        released.wait(10)
        return "unheard"

    async def main() -> str:
        with pytest.raises(ModelFailed) as caught:
            await acomplete(resolve(ask), "x", timeout=0.01)
        released.set()
        return caught.value.reason

    assert asyncio.run(main()) == "timeout"


def test_an_answer_in_time_is_given() -> None:
    assert asyncio.run(acomplete(resolve(ashout), "x", timeout=60)) == "X"


@pytest.mark.parametrize("where", ["here", "at home"])
def test_cancelling_ends_the_call(where: str) -> None:
    ended = Event()

    async def wait() -> str:
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    async def ask(_: str) -> str:
        return await wait()

    async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[TextPart(await wait())])

    started = Event()
    model = resolve(ask if where == "here" else FunctionModel(respond))

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


def failure_from_a_thread(model: Model, patience: float | None = None) -> ModelFailed:
    with pytest.raises(ModelFailed) as caught:
        asyncio.run(from_a_thread(model, patience=patience))
    return caught.value


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


def test_a_hosted_model_is_synchronous_and_keeps_its_name() -> None:
    async def main() -> Model:
        return hosted(resolve(ashout), asyncio.get_running_loop())

    model = asyncio.run(main())
    assert (model.name, model.is_async) == ("ashout", False)


@pytest.mark.parametrize("llm", [shout, TestModel(), lambda prompt: ashout(prompt.lower())])
def test_what_needs_no_host_stays_as_it_is(llm: LLM) -> None:
    async def main() -> bool:
        return hosted(model, asyncio.get_running_loop()) is model

    model = resolve(llm)
    assert asyncio.run(main())


def test_hosted_calls_of_several_threads_overlap() -> None:
    async def main() -> list[Answer]:
        barrier = asyncio.Barrier(4)

        async def ask(prompt: str) -> str:
            async with asyncio.timeout(10):
                await barrier.wait()
            return prompt

        return await asyncio.gather(*(from_a_thread(resolve(ask), prompt) for prompt in "abcd"))

    assert asyncio.run(main()) == list("abcd")


def test_patience_ends_a_hosted_call() -> None:
    ended = []

    async def ask(_: str) -> str:
        try:
            return await forever(Event())
        finally:
            ended.append(True)

    error = failure_from_a_thread(resolve(ask), patience=0.01)
    assert error.reason == "timeout"
    assert ended == [True]


def test_a_hosted_failure_is_explained() -> None:
    error = RateLimitError("x")
    found = failure_from_a_thread(resolve(afailing(error)))
    assert found.reason == "quota"
    assert found.__cause__ is error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit()])
def test_an_interruption_of_a_hosted_call_passes_to_who_waits(error: BaseException) -> None:
    async def main() -> str:
        with pytest.raises(type(error)):
            await from_a_thread(resolve(afailing(error)))
        return "went on"

    assert asyncio.run(main()) == "went on"


def test_a_hosted_model_cannot_be_waited_for_on_the_loop_of_its_host_but_awaited() -> None:
    async def main() -> Answer:
        model = hosted(resolve(ashout), asyncio.get_running_loop())
        assert "Await `acomplete` there." in str(failure(model))
        return await acomplete(model, "x")

    assert asyncio.run(main()) == "X"


def test_a_hosted_model_is_awaited_from_another_loop() -> None:
    loops = []

    async def ask(prompt: str) -> str:
        loops.append(asyncio.get_running_loop())
        return prompt

    async def main() -> bool:
        model = hosted(resolve(ask), asyncio.get_running_loop())
        assert await asyncio.to_thread(asyncio.run, acomplete(model, "x")) == "x"
        return loops == [asyncio.get_running_loop()]

    assert asyncio.run(main())


def test_a_closed_loop_hosts_nobody() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    assert "has ended" in failure(hosted(resolve(ashout), loop)).what


def test_a_loop_that_stops_is_not_waited_for_any_longer() -> None:
    loop, started = asyncio.new_event_loop(), Event()

    async def ask(_: str) -> str:
        loop.stop()
        return await forever(started)

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(failure, hosted(resolve(ask), loop))
        loop.run_forever()
        assert "has ended" in asked.result().what
    assert started.is_set()
    loop.run_until_complete(asyncio.gather(*asyncio.all_tasks(loop)))  # cancelled, it ends
    loop.close()


def test_a_call_that_the_end_of_its_loop_cancels_has_failed() -> None:
    started = Event()

    async def ask(_: str) -> str:
        return await forever(started)

    async def main() -> Future[ModelFailed]:
        asked = pool.submit(failure, hosted(resolve(ask), asyncio.get_running_loop()))
        assert await asyncio.to_thread(started.wait, 10)
        return asked

    with ThreadPoolExecutor(1) as pool:
        assert "was cancelled on the event loop" in asyncio.run(main()).result().what


def test_a_call_that_is_cancelled_before_it_begins_has_failed() -> None:
    async def main() -> Future[ModelFailed]:
        asked = pool.submit(failure, hosted(resolve(ashout), asyncio.get_running_loop()))
        while not (others := asyncio.all_tasks() - {asyncio.current_task()}):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
        assert [task.cancel() for task in others] == [True]
        return asked

    with ThreadPoolExecutor(1) as pool:
        assert "has ended" in asyncio.run(main()).result().what


# Over the wire


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as served:
        yield served


def model_object(server: Server, name: str = "served") -> OpenAIChatModel:
    return OpenAIChatModel(name, provider=OpenAIProvider(base_url=server.url, api_key=KEY))


def served_by(server: Server) -> Model:
    return resolve(model_object(server))


def test_a_prompt_is_sent_as_it_is_and_the_text_of_the_answer_comes_back(server: Server) -> None:
    server.reply = lambda body: (200, completion(f" you said: {prompt_of(body)}\n"))
    assert complete(served_by(server), " hello\n") == " you said:  hello\n\n"
    assert server.requests == [
        {"model": "served", "messages": [{"role": "user", "content": " hello\n"}], "stream": False}
    ]


def test_a_model_is_asked_again_and_again_from_every_loop(server: Server) -> None:
    model = served_by(server)

    async def main() -> list[str]:
        there = await asyncio.gather(*(acomplete(model, "x") for _ in range(3)))
        return [*there, await asyncio.to_thread(complete, model, "x")]

    async def within() -> list[str]:
        return [complete(model, "x"), await acomplete(model, "x")]

    answers = [complete(model, "x"), *run(main), *asyncio.run(main()), *asyncio.run(within())]
    assert set(answers) == {"served"}
    assert len(server.requests) == 1 + 4 + 4 + 2


def test_calls_over_the_wire_overlap(server: Server) -> None:
    barrier = Barrier(COUNT, timeout=10)

    def reply(body: Body) -> tuple[int, str]:
        barrier.wait()
        return 200, completion(prompt_of(body))

    server.reply = reply
    model = served_by(server)

    async def main() -> list[str]:
        return await asyncio.gather(*(acomplete(model, str(number)) for number in range(COUNT)))

    assert asyncio.run(main()) == [str(number) for number in range(COUNT)]


@pytest.mark.parametrize(
    ("tokens", "counted"),
    [((12, 5), (12, 5)), ((12, 0), (12, None)), ((0, 0), (None, None)), (None, (None, None))],
)
def test_an_answer_says_what_its_provider_counted(
    server: Server, tokens: tuple[int, int] | None, counted: tuple[int | None, int | None]
) -> None:
    server.reply = lambda _: (200, completion("yes", tokens=tokens))
    model = served_by(server)
    for answer in (complete(model, "x"), asyncio.run(acomplete(model, "x"))):
        assert answer == "yes"
        assert (answer.prompt_tokens, answer.answer_tokens) == counted


@pytest.mark.parametrize(
    "body", [completion("yes", reasoning_content="hm"), completion("<think>hm</think>yes")]
)
def test_reasoning_is_left_out(server: Server, body: str) -> None:
    server.reply = lambda _: (200, body)
    assert complete(served_by(server), "x") == "yes"


ERRORS: dict[str, tuple[int, str, str]] = {
    "wrong key": (401, refusal("invalid_api_key", f"wrong key: {KEY}"), "authentication"),
    "no access": (403, refusal("forbidden"), "authentication"),
    "too many": (429, refusal("rate_limit_exceeded"), "quota"),
    "no money": (429, refusal("insufficient_quota"), "quota"),
    "no such model": (404, refusal("model_not_found"), "error"),
    "too long": (400, refusal("context_length_exceeded"), "error"),
    "broken": (500, "it broke", "error"),
    "no JSON": (200, "{not json", "answer"),
    "other JSON": (200, "{}", "answer"),
}


@pytest.mark.parametrize("kind", ERRORS)
def test_failures_over_the_wire_are_told_apart(server: Server, kind: str) -> None:
    status, body, reason = ERRORS[kind]
    server.reply = lambda _: (status, body)
    error = failure(served_by(server), "about Ada")
    assert error.reason == reason
    assert ", status" not in error.what or f", status {status})" in error.what
    assert all(secret not in str(error) for secret in (KEY, "Ada", server.url))
    assert len(server.requests) == 1


# Held to a schema

FACTS = {"type": "object", "properties": {"facts": {"type": "array", "items": {"type": "string"}}}}
ALL_FACTS = {**FACTS, "required": ["facts"], "additionalProperties": False}


def able_to(server: Server, **profile: bool) -> Model:
    provider = OpenAIProvider(base_url=server.url, api_key=KEY)
    able = ModelProfile(
        supports_json_schema_output=profile.get("schema", False),
        supports_json_object_output=profile.get("json", False),
    )
    return resolve(OpenAIChatModel("served", provider=provider, profile=able))


@pytest.mark.parametrize(("schema", "strict"), [(ALL_FACTS, True), (FACTS, False)])
def test_a_provider_is_told_the_schema_and_is_strict_where_it_can_be(
    server: Server, schema: dict[str, object], strict: bool
) -> None:
    before = deepcopy(schema)
    model = served_by(server)
    assert (
        complete(model, "x", schema=schema) == asyncio.run(acomplete(model, "x", schema=schema)) == "served"
    )
    assert schema == before
    for request in server.requests:
        told = request["response_format"]
        assert isinstance(told, dict)
        assert told["type"] == "json_schema"
        assert told["json_schema"]["schema"]["properties"] == schema["properties"]
        assert told["json_schema"]["strict"] is strict
        assert prompt_of(request) == "x"


def test_a_model_is_held_for_one_call_only(server: Server) -> None:
    model = served_by(server)
    complete(model, "x", schema=FACTS)
    complete(model, "x")
    assert ["response_format" in request for request in server.requests] == [True, False]


def test_a_provider_that_knows_no_schemas_is_held_to_json(server: Server) -> None:
    assert complete(able_to(server, json=True), "x", schema=FACTS) == "served"
    assert server.requests == [
        {
            "model": "served",
            "messages": [{"role": "user", "content": "x"}],
            "stream": False,
            "response_format": {"type": "json_object"},
        }
    ]


def test_a_provider_that_can_be_held_to_nothing_is_asked_as_ever(server: Server) -> None:
    several = resolve(FallbackModel(model_object(server, "a"), model_object(server, "b")))
    for model in (able_to(server), several):
        assert complete(model, "x", schema=FACTS) == "served"
    assert ["response_format" in request for request in server.requests] == [False, False]


@pytest.mark.parametrize("kind", CALLABLES)
def test_a_function_is_not_told_the_schema(kind: str) -> None:
    model = resolve(CALLABLES[kind][0])
    assert complete(model, "x", schema=FACTS) == asyncio.run(acomplete(model, "x", schema=FACTS)) == "X"


def test_a_schema_that_a_provider_refuses_is_a_failure_and_not_tried_without(server: Server) -> None:
    server.reply = lambda _: (400, refusal("invalid_request_error", f"response_format: {KEY}"))
    with pytest.raises(ModelFailed) as caught:
        complete(served_by(server), "x", schema=FACTS)
    assert caught.value.reason == "error"
    assert KEY not in str(caught.value)
    assert len(server.requests) == 1


# With its connections


def test_a_model_object_may_have_been_used_on_a_loop_that_ended(server: Server) -> None:
    used = model_object(server)

    async def main() -> None:
        async with used:
            await Agent(used).run("before")

    asyncio.run(main())
    assert complete(resolve(used), "x") == "served"


def test_a_model_object_with_connections_of_another_loop_is_refused() -> None:
    # What a transport says. A real one would be torn between two threads, and end whenever it likes.
    error = RuntimeError("<asyncio.locks.Event object> is bound to a different event loop")

    def fail(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise error

    found = failure(resolve(FunctionModel(fail)))
    assert "connections of another event loop" in found.what
    assert "a model object that nothing else uses" in found.todo
    assert found.__cause__ is error


def test_a_server_that_is_not_there_is_said_to_be_unavailable() -> None:
    with Server() as gone:
        pass
    client = OpenAIProvider(base_url=gone.url, api_key=KEY).client.with_options(max_retries=0)
    model = resolve(OpenAIChatModel("served", provider=OpenAIProvider(openai_client=client)))
    assert failure(model).reason == "unavailable"


class Overloaded(BaseHTTPRequestHandler):
    """Refuse every request, and leave it to the client whether it tries again."""

    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.asked.append(self.path)
        self.send_error(503)

    def log_message(self, *_: object) -> None:
        """Write no log."""


def test_a_model_that_is_given_by_its_name_asks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    Overloaded.asked.clear()
    with HTTPServer(("127.0.0.1", 0), Overloaded) as http:
        thread = Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{http.server_port}/v1")
        try:
            for name in ("openai-chat:gpt-5-mini", "openai:gpt-5-mini"):
                assert failure(resolve(name)).reason == "unavailable"
            assert Overloaded.asked == ["/v1/chat/completions", "/v1/responses"]
        finally:
            http.shutdown()
            thread.join()


def test_a_model_object_tries_again_as_often_as_it_was_made_to(server: Server) -> None:
    used = model_object(server)
    before = used.client.max_retries
    complete(resolve(used), "x")
    assert used.client.max_retries == before > 0


def test_a_slow_answer_is_given_up(server: Server) -> None:
    released = Event()

    def reply(_: Body) -> tuple[int, str]:
        released.wait(10)
        return 200, completion("too late")

    server.reply = reply
    try:
        with pytest.raises(ModelFailed, match="did not answer within") as caught:
            asyncio.run(acomplete(served_by(server), "x", timeout=0.05))
    finally:
        released.set()
    assert caught.value.reason == "timeout"


def test_when_all_of_several_models_fail_the_first_decides(server: Server) -> None:
    server.reply = lambda _: (429, refusal("rate_limit_exceeded"))
    several = FallbackModel(model_object(server, "a"), model_object(server, "b"))
    assert failure(resolve(several)).reason == "quota"


def test_what_a_reply_of_the_server_raises_is_raised_at_its_end() -> None:
    def reply(_: Body) -> tuple[int, str]:
        raise AssertionError("not this one")

    def ask() -> None:
        with Server(reply) as served:
            failure(served_by(served))

    with pytest.raises(AssertionError, match="not this one"):
        ask()


def test_a_function_that_hangs_is_left_to_its_thread_which_the_error_names() -> None:
    go_on, gone_on = Event(), Event()

    def hang(_: str) -> str:
        go_on.wait()
        gone_on.set()
        return "unheard"

    with pytest.raises(ModelFailed, match=r"within 0\.05 s .* thread 'holdfast-model-\d+'") as raised:
        complete(resolve(hang), "x", 0.05)
    assert raised.value.reason == "timeout"
    go_on.set()
    assert gone_on.wait(10)


def test_a_function_with_patience_has_the_context_of_who_waits_and_its_errors_arrive() -> None:
    token = PERSON.set("ada")
    try:
        assert complete(resolve(lambda _: PERSON.get()), "x", 10) == "ada"
    finally:
        PERSON.reset(token)

    def interrupted(_: str) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        complete(resolve(interrupted), "x", 10)

    def late(_: str) -> str:
        raise TimeoutError

    with pytest.raises(ModelFailed, match="TimeoutError") as raised:
        complete(resolve(late), "x", 10)
    assert "thread" not in str(raised.value)


def test_what_a_function_gives_to_be_awaited_is_waited_for_as_long_too() -> None:
    async def answer() -> str:
        await asyncio.sleep(60)
        return "too late"

    with pytest.raises(ModelFailed, match=r"within 0\.05 s"):
        complete(resolve(lambda _: answer()), "x", 0.05)
