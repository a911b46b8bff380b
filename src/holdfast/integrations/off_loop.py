"""Blocking calls of a memory, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from holdfast.port.handles import submit

if TYPE_CHECKING:
    from holdfast import Chat, Memory

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="_OfMemory")


class _OfMemory(Protocol):
    _memory: Memory


async def off_loop(memory: Memory | Chat, call: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
    """Run a blocking call on a thread of the memory, or of the loop, and return its result.

    It ends even if the caller is cancelled meanwhile, so that a retry reads what was stored.

    Raises:
        Closed: it is closed.

    """
    done = submit(memory, partial(call, *args, **options))
    try:
        # Without a task of its own, which takes as long again as the thread does.
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        while not done.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({done})
        if not done.cancelled():
            # Retrieved, or asyncio would log it.
            done.exception()
        raise


def awaited(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Return the awaited form of a blocking method."""

    @wraps(method)
    async def waiting(self: S, /, *args: P.args, **options: P.kwargs) -> T:
        call: Callable[P, T] = getattr(self, method.__name__)
        return await off_loop(self._memory, call, *args, **options)

    return waiting
