"""What runs a compaction: it yields batches of prompts, receives the answers, and returns its account.

A compaction is a generator, so one implementation serves a model that is called and one that is awaited, and
nothing holds a lock or a transaction while a model thinks. `drive` runs it for a model that is called; the
driver in `aio.py` awaits the answers of a batch at once, and makes each step on a thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from holdfast.errors import ModelFailed
from holdfast.prompt.window import Compaction
from holdfast.types import CompactionResult

R = TypeVar("R")
# Seconds for which no model is asked.
_NO_TIME = 0.001

Steps = Generator[list[str], list[str], CompactionResult]
Requests = Generator[str, str, R]
"""What needs a model: it yields prompts, receives the answers, and returns what it made of them."""


class TimeLimit:
    """The time that a compaction may take, which begins now."""

    def __init__(self, how: Compaction) -> None:
        self._how, self._began = how, time.monotonic()

    @property
    def taken(self) -> float:
        """The seconds since its begin."""
        return time.monotonic() - self._began

    @property
    def reached(self) -> str:
        """That the limit is reached, in words; "" if it is not."""
        left = self._how.seconds - self.taken
        return f"The time limit of {self._how.seconds:g} seconds is reached." if left <= _NO_TIME else ""

    def wait(self) -> float:
        """Return for how many seconds an answer is waited for: no longer than until the limit.

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


def drive(steps: Steps, ask: Callable[[str], str]) -> CompactionResult:
    """Run a compaction with a model that is called, one prompt after the other."""
    done = advance(steps.__next__)
    while not isinstance(done, CompactionResult):
        try:
            answers = [ask(prompt) for prompt in done]
        except ModelFailed as error:
            done = advance(steps.throw, error)
        else:
            done = advance(steps.send, answers)
    return done


def advance(step: Callable[..., list[str]], *sent: object) -> list[str] | CompactionResult:
    """Make a step of a compaction, and return the prompts that it yields or, at its end, its account.

    A StopIteration could not leave the thread on which the step was made.
    """
    try:
        return step(*sent)
    except StopIteration as end:
        account: CompactionResult = end.value
        return account
