"""Blocking calls of a memory, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from holdfast.awaiting import run_on
from holdfast.runtime import runtime_of

if TYPE_CHECKING:
    from holdfast.chat import Chat
    from holdfast.memory import Memory

P = ParamSpec("P")
T = TypeVar("T")


async def off_loop(memory: Memory | Chat, call: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
    """Return what a blocking call returns, which runs on a thread of the memory, or of the loop.

    It ends even if the caller is cancelled meanwhile, so that a retry reads what was stored.

    Raises:
        Closed: it is closed.

    """
    runtime = runtime_of(memory)
    executor = (lambda: None) if runtime is None else runtime.executor
    task = asyncio.ensure_future(run_on(executor, partial(call, *args, **options)))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return task.result()
    # Retrieved, or asyncio would log it.
    task.exception()
    raise cancelled
