"""Awaited forms of synchronous methods: on a thread, or with the model on the caller's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import copy_context
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from holdfast.compaction.compactor import resolved
from holdfast.errors import Closed
from holdfast.types.handles import Handle

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from holdfast.compaction.driver import OnThread
    from holdfast.llm.llm_request import LLMRequest
    from holdfast.llm.meter import Meter
    from holdfast.llm.model import LLM, Model

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")
W = TypeVar("W")
P = ParamSpec("P")


class Awaited(Handle, Generic[T_co]):
    """The awaited form of the handle `__wrapped__`."""

    def __init__(self, sync: T_co, executor: Callable[[], Executor]) -> None:
        self.__wrapped__ = sync
        self._executor = executor

    def __eq__(self, other: object) -> bool:
        return self.__wrapped__ == other.__wrapped__ if isinstance(other, type(self)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return f"{self.__wrapped__!r}.aio"


A = TypeVar("A", bound=Awaited[Any])


def awaited(
    method: Callable[Concatenate[T, P], R],
) -> Callable[Concatenate[Awaited[T], P], Coroutine[Any, Any, R]]:
    """Make the awaited form of a method, with the same parameters."""

    @wraps(method)
    async def call(self: Awaited[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        # Of a class of one's own, its own.
        own = getattr(self.__wrapped__, method.__name__)
        return await run_on(self._executor, partial(own, *args, **kwargs))

    return call


def made(method: Callable[Concatenate[T, P], R], make: Callable[[A, R], W]) -> Callable[Concatenate[A, P], W]:
    """Make the awaited form of a method that asks no database: a plain one that wraps its result."""

    @wraps(method)
    def call(self: A, /, *args: P.args, **kwargs: P.kwargs) -> W:
        own = getattr(self.__wrapped__, method.__name__)
        return make(self, own(*args, **kwargs))

    return call


async def run_on(executor: Callable[[], Executor], work: Callable[[], R]) -> R:
    """Do some work on a thread of the memory, in the context of the caller."""
    return await submit(executor(), work)


def submit(executor: Executor | None, work: Callable[[], R]) -> asyncio.Future[R]:
    """Begin some work on a thread, of the loop where there is no executor; return its future.

    Raises:
        Closed: the memory was closed since its executor was asked for.

    """
    try:
        return asyncio.get_running_loop().run_in_executor(executor, copy_context().run, work)
    except RuntimeError as error:
        raise Closed("The memory is closed.", "Open a new Memory.") from error


async def all_answers(calls: Sequence[Awaitable[str]]) -> list[str]:
    """Await all answers, or raise the first error and let the others go."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        # They close their connections.
        await asyncio.gather(*tasks, return_exceptions=True)


async def metered(
    meter: Meter, model: Model, question: LLMRequest, patience: float, chat: str, on_thread: OnThread
) -> str:
    """Ask a model and await its answer; `Meter.ask` is its twin."""
    # Only for those who have a model.
    from holdfast.llm.model import acomplete

    begin = partial(meter.begin, model, question.purpose, question.prompt, question.answer_tokens, chat=chat)
    call = await on_thread(begin)
    try:
        answer = await acomplete(model, question.prompt, patience)
    except BaseException as error:
        await asyncio.shield(on_thread(partial(meter.end, call, error)))
        raise
    await on_thread(partial(meter.end, call, answer))
    return answer


def asking(
    method: Callable[Concatenate[T, P], R],
) -> Callable[Concatenate[Awaited[T], P], Coroutine[Any, Any, R]]:
    """Make the awaited form of a method that asks a model: on the caller's loop if the model can."""

    @wraps(method)
    async def call(self: Awaited[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        on_thread = partial(run_on, self._executor)
        model = await on_thread(partial(resolved, cast("LLM | None", kwargs.get("llm"))))
        options: dict[str, Any] = dict(kwargs)
        if model is not None:
            # Only for those who have a model.
            from holdfast.llm.model import hosted

            options["llm"] = hosted(model, asyncio.get_running_loop())
        # Not on the memory's own threads: closing it waits for these, and a model may think for minutes.
        return await asyncio.to_thread(partial(getattr(self.__wrapped__, method.__name__), *args, **options))

    return call
