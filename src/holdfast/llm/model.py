"""The language model: calls that return text, and every failure of one as ModelFailed.

The calls of a pydantic-ai model share connections, and a connection belongs to the event loop that opened it.
So these models answer on one event loop of our own, from whatever thread or loop they are called.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from itertools import count
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

from holdfast.errors import ModelFailed
from holdfast.llm.errors import explained, redacted
from holdfast.llm.event_loop import at_home, is_here, is_home, run, run_on

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

Complete: TypeAlias = Callable[[str], str] | Callable[[str], Awaitable[str]]


class ModelObject(Protocol):
    """A model object of pydantic-ai, for type checkers that have not installed it."""

    @property
    def model_id(self) -> str:
        """The provider and the name, as in "openai:gpt-5-mini"."""

    @property
    def model_name(self) -> str:
        """The name alone."""


LLM: TypeAlias = Complete | str | ModelObject
Schema: TypeAlias = Mapping[str, object]
# Tokens of one call, at most.
MOST_TOKENS = 1_000_000_000
# Numbers the threads that functions are called on.
_CALLS = count(1)


class Answer(str):
    """The text of an answer, with how many tokens its provider counted in the prompt and in the answer.

    A number is None where the provider does not count, as with a plain function, and else from 1 to
    1,000,000,000.
    """

    __slots__ = ("answer_tokens", "prompt_tokens")
    prompt_tokens: int | None
    answer_tokens: int | None

    def __new__(cls, text: str, prompt_tokens: int | None = None, answer_tokens: int | None = None) -> Self:
        """Return an answer of a text and the two numbers."""
        answer = super().__new__(cls, text)
        answer.prompt_tokens = prompt_tokens
        answer.answer_tokens = answer_tokens
        return answer


@dataclass(frozen=True, slots=True)
class Model:
    """A model that can be called: its name, and whether several calls can run at once (`is_async`).

    `ask` returns the answer or an awaitable of it: on our own event loop if the model is `homebound`, on that
    of its `host` if it has one. `hold` returns an `ask` whose answers keep to a schema, as far as the
    provider enforces it.
    """

    name: str
    is_async: bool
    ask: Callable[[str], object] = field(repr=False)
    homebound: bool = field(default=False, repr=False)
    host: asyncio.AbstractEventLoop | None = field(default=None, repr=False)
    hold: Callable[[Schema], Callable[[str], object]] | None = field(default=None, repr=False)


def complete(
    model: Model, prompt: str, patience: float | None = None, *, schema: Schema | None = None
) -> Answer:
    """Call a model and return its answer, also from within a running event loop (which is blocked meanwhile).

    Args:
        model: the model.
        prompt: the text that it is to answer.
        patience: seconds to wait. A synchronous function that has not answered by then goes on on its thread,
            which the error names; without `patience` it is called on the thread of the caller.
        schema: the JSON schema of an object. Not all providers enforce it: the prompt must name JSON and its
            shape as well, and the answer may be anything.

    Raises:
        ModelFailed: it raised an error, did not answer in time, or its answer is not text.

    """
    model = _hold(model, schema)
    if model.host is not None:
        return _complete_there(model, model.host, prompt, patience)
    if model.is_async:
        if model.homebound and is_home():
            raise _would_block(model)
        return run(lambda: acomplete(model, prompt, patience))
    answer = _call(model, prompt) if patience is None else _call_aside(model, prompt, patience)
    if isawaitable(answer):
        awaited = replace(model, is_async=True, ask=lambda _: answer)
        return run(lambda: acomplete(awaited, prompt, patience))
    return _check(model, answer)


async def acomplete(
    model: Model,
    prompt: str,
    # ASYNC109: unlike `asyncio.timeout` of a caller, this one names the thread that goes on.
    timeout: float | None = None,  # noqa: ASYNC109
    *,
    schema: Schema | None = None,
) -> Answer:
    """Call a model and await its answer, for at most `timeout` seconds. `schema` is as in `complete`.

    A synchronous function is called on a thread of its own, and goes on there when the wait for it is
    cancelled or over.

    Raises:
        ModelFailed: it raised an error, did not answer in time, or its answer is not text.

    """
    # Loaded only where it is used.
    import asyncio

    model = _hold(model, schema)
    if model.host is not None:
        return await asyncio.to_thread(complete, model, prompt, timeout)
    thread = ""
    try:
        async with asyncio.timeout(timeout):
            if model.homebound:
                return await at_home(lambda: _text(model, model.ask(prompt)))
            if model.is_async:
                return await _text(model, _call(model, prompt))
            ended, thread = _aside(model, prompt)
            return await _text(model, await asyncio.wrap_future(ended))
    except TimeoutError as error:
        # Ours: that of a model is explained already.
        raise _late(model, timeout or 0.0, thread) from error


def hosted(model: Model, loop: asyncio.AbstractEventLoop) -> Model:
    """Return a synchronous model of an asynchronous function, which runs on an event loop.

    Within `complete`, `patience` ends the wait as before. A model that is not asynchronous, or is homebound,
    stays as it is.
    """
    return replace(model, is_async=False, host=loop) if model.is_async and not model.homebound else model


def _complete_there(
    model: Model, host: asyncio.AbstractEventLoop, prompt: str, patience: float | None
) -> Answer:
    import asyncio

    if is_here(host):
        raise _would_block(model)
    guest = replace(model, is_async=True, host=None)
    try:
        return run_on(host, lambda: acomplete(guest, prompt, patience))
    except asyncio.CancelledError as error:
        # No task of this thread was cancelled.
        raise ModelFailed(
            f"The model {redacted(model.name)} was cancelled on its event loop (CancelledError).",
            "Keep the loop running until every call has been answered.",
        ) from error


def _would_block(model: Model) -> ModelFailed:
    return ModelFailed(
        f"A call of the model {redacted(model.name)} would block the event loop that it answers on.",
        "Await it there.",
    )


def _hold(model: Model, schema: Schema | None) -> Model:
    """Return the model held to a schema, if it can be."""
    return model if schema is None or model.hold is None else replace(model, ask=model.hold(schema))


def _call_aside(model: Model, prompt: str, patience: float) -> object:
    """Call a function on a thread of its own, and abandon the thread if it does not answer in time."""
    ended, thread = _aside(model, prompt)
    try:
        return ended.result(patience)
    except TimeoutError as error:
        # Ours: that of a model is explained already.
        raise _late(model, patience, thread) from error


def _aside(model: Model, prompt: str) -> tuple[Future[object], str]:
    """Call a function on a thread of its own; return the future of its answer and the name of the thread."""
    # Loaded only where it is used.
    from concurrent.futures import Future
    from threading import Thread

    ended: Future[object] = Future()
    # The wait for it may be cancelled, but not the call.
    ended.set_running_or_notify_cancel()

    def call() -> None:
        try:
            ended.set_result(_call(model, prompt))
        # BLE001: it is raised where the answer is waited for.
        except BaseException as error:  # noqa: BLE001
            ended.set_exception(error)

    # A daemon: it must not keep the process, or an event loop, from ending.
    thread = Thread(
        target=copy_context().run, args=(call,), name=f"holdfast-model-{next(_CALLS)}", daemon=True
    )
    thread.start()
    return ended, thread.name


def _late(model: Model, patience: float, thread: str) -> ModelFailed:
    left = f"; the call goes on on the thread {thread!r}" if thread else ""
    what = f"The model {redacted(model.name)} did not answer within {patience:g} s (TimeoutError){left}."
    todo = f"Try again, or allow more time{'; give the function a time-out' if thread else ''}."
    return ModelFailed(what, todo, reason="timeout")


def _call(model: Model, prompt: str) -> object:
    with explained(model.name):
        return model.ask(prompt)


async def _text(model: Model, answer: object) -> Answer:
    if isawaitable(answer):
        with explained(model.name):
            answer = await answer
    return _check(model, answer)


def _check(model: Model, answer: object) -> Answer:
    if isinstance(answer, Answer):
        return answer
    if isinstance(answer, str):
        # The text that it holds: a member of an Enum prints as something else.
        return Answer(str.__str__(answer))
    raise ModelFailed(
        f"The model {redacted(model.name)} answered with {type(answer).__name__} instead of text.",
        "Make the function return a str.",
        reason="answer",
    )
