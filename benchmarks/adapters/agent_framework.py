"""Histories of the Microsoft Agent Framework, beside its FileHistoryProvider."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agent_framework import FileHistoryProvider, HistoryProvider, Message

from benchmarks.adapters import Call
from holdfast.integrations.agent_framework import HoldfastHistoryProvider
from holdfast.memory import Memory

_SESSION = "trip"
_BUDGET = 600  # tokens, some twenty messages


@contextmanager
def calls(folder: Path, size: int) -> Iterator[Sequence[Call]]:
    """Open a history of each with so many messages, and return the calls of a turn."""
    with asyncio.Runner() as runner, Memory(folder / "holdfast.db") as memory:
        ours, within = HoldfastHistoryProvider(memory), HoldfastHistoryProvider(memory, budget=_BUDGET)
        with warnings.catch_warnings():
            # It is experimental, and says so.
            warnings.simplefilter("ignore")
            theirs = FileHistoryProvider(folder / "theirs")
        for provider in (ours, theirs):
            runner.run(provider.save_messages(_SESSION, [_message(n) for n in range(size)]))

        def compared(
            name: str,
            call: Callable[[HistoryProvider, int], Coroutine[object, object, object]],
            provider: HistoryProvider = ours,
        ) -> Call:
            def ours_called(number: int) -> object:
                return runner.run(call(provider, number))

            def theirs_called(number: int) -> object:
                return runner.run(call(theirs, number))

            return Call(name, ours_called, theirs_called, "FileHistoryProvider")

        yield [
            compared("save 2 messages", lambda one, n: _saved(one, size + 2 * n)),
            compared("load all messages", lambda one, _: one.get_messages(_SESSION)),
            compared("load a budget, theirs all", lambda one, _: one.get_messages(_SESSION), within),
        ]


async def _saved(provider: HistoryProvider, number: int) -> None:
    await provider.save_messages(_SESSION, [_message(number), _message(number + 1)])


def _message(number: int) -> Message:
    role = "assistant" if number % 2 else "user"
    return Message(role, [f"Message {number} about the marathon in Berlin, and how to train for it."])
