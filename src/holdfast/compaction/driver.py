"""The driver of a compaction: it sends a model's answers to the prompts that the compaction yields.

A compaction is a generator, so nothing holds a lock or a transaction while a model answers. `drive` is a
coroutine for both kinds of calls: `Chat.compact` runs it to its end at once, as nothing in it waits, and the
awaited one in `aio.py` awaits all answers of a batch together and makes each step on a thread.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from functools import partial
from typing import Protocol, TypeVar

from holdfast.errors import ModelFailed
from holdfast.prompt.window import Compaction
from holdfast.types import CompactionResult

R = TypeVar("R")
# Seconds for which no model is asked.
_NO_TIME = 0.001

Steps = Generator[list[str], list[str], CompactionResult]
Requests = Generator[str, str, R]
"""A task for a model: a generator that yields prompts, receives the answers, and returns its result."""


class OnThread(Protocol):
    """Run some work, on a thread where the caller must not be blocked."""

    def __call__(self, work: Callable[[], R], /) -> Awaitable[R]:
        """Return the result of the work."""


class TimeLimit:
    """The time that a compaction may take, which begins now."""

    def __init__(self, how: Compaction) -> None:
        self._how, self._began = how, time.monotonic()

    @property
    def taken(self) -> float:
        """The seconds since it began."""
        return time.monotonic() - self._began

    @property
    def reached(self) -> str:
        """The sentence that the limit is reached; "" if it is not."""
        left = self._how.seconds - self.taken
        return f"The time limit of {self._how.seconds:g} seconds is reached." if left <= _NO_TIME else ""

    def wait(self) -> float:
        """Return the seconds to wait for an answer: no longer than until the limit.

        Raises:
            ModelFailed: the limit is reached.

        """
        if why := self.reached:
            raise ModelFailed(why, "Allow more: Compaction(seconds=…).", reason="timeout")
        return min(self._how.patience, self._how.seconds - self.taken)


def together(all_requests: Sequence[Requests[R]]) -> Generator[list[str], list[str], list[R]]:
    """Run several requests at once, and return their results.

    Yields the prompts of all that still have one, and receives the answers.
    """
    results: dict[int, R] = {}
    answers: dict[int, str | None] = dict.fromkeys(range(len(all_requests)))
    while True:
        prompts: dict[int, str] = {}
        for number, answer in answers.items():
            try:
                # The first step of a generator takes None.
                prompts[number] = all_requests[number].send(answer)  # type: ignore[arg-type]
            except StopIteration as end:
                results[number] = end.value
        if not prompts:
            return [results[number] for number in range(len(all_requests))]
        answers = dict(zip(prompts, (yield list(prompts.values())), strict=True))


async def drive(
    steps: Steps, ask: Callable[[list[str]], Awaitable[list[str]]], on_thread: OnThread
) -> CompactionResult:
    """Run a compaction to its end, with answers from `ask`, and each step made by `on_thread`."""
    state = await on_thread(partial(advance, steps.__next__))
    while not isinstance(state, CompactionResult):
        try:
            answers = await ask(state)
        except ModelFailed as error:
            state = await on_thread(partial(advance, steps.throw, error))
        else:
            state = await on_thread(partial(advance, steps.send, answers))
    return state


async def here(work: Callable[[], R]) -> R:
    """Do some work on the thread of the caller: the `on_thread` of a compaction that is not awaited."""
    return work()


def finished(work: Coroutine[object, object, R]) -> R:
    """Return the result of a coroutine that never has to wait, without an event loop."""
    try:
        work.send(None)
    except StopIteration as end:
        result: R = end.value
        return result
    raise RuntimeError("The coroutine waits for something.")


def advance(step: Callable[..., list[str]], *sent: object) -> list[str] | CompactionResult:
    """Make a step of a compaction, and return the prompts that it yields or, at its end, its result.

    A StopIteration could not leave the thread on which the step was made.
    """
    try:
        return step(*sent)
    except StopIteration as end:
        result: CompactionResult = end.value
        return result
