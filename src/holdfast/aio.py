"""The same names, awaited: each call runs the synchronous method on a bounded pool of threads.

There is one implementation. A call that was cancelled before it began does nothing; one that had begun finishes, so a
message whose `append` was cancelled is stored whole or not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from holdfast.chat import Chat
from holdfast.errors import Closed
from holdfast.memory import Memory

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from holdfast.types import Scope

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


class _Async(Generic[T]):
    def __init__(self, sync: T, executor: Callable[[], Executor]) -> None:
        self._sync = sync
        self._executor = executor

    def __repr__(self) -> str:
        return f"{self._sync!r}.aio"


def _awaited(
    method: Callable[Concatenate[T, P], R],
) -> Callable[Concatenate[_Async[T], P], Coroutine[Any, Any, R]]:
    """Make the awaited form of a method, with the same parameters."""

    @wraps(method)
    async def call(self: _Async[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        run = partial(copy_context().run, method, self._sync, *args, **kwargs)
        try:
            result = asyncio.get_running_loop().run_in_executor(self._executor(), run)
        except RuntimeError as error:  # the memory was closed since its pool was asked for
            raise Closed("The memory is closed.", "Open a new Memory.") from error
        return await result

    return call


class AsyncChat(_Async[Chat]):
    """A chat whose methods are awaited. Made by `AsyncMemory.chat`."""

    @property
    def id(self) -> str:
        """The id of the session."""
        return self._sync.id

    append = _awaited(Chat.append)
    history = _awaited(Chat.history)
    stats = _awaited(Chat.stats)
    rename = _awaited(Chat.rename)
    archive = _awaited(Chat.archive)
    window = _awaited(Chat.window)
    prompt = _awaited(Chat.prompt)


class AsyncMemory(_Async[Memory]):
    """A memory whose methods are awaited. Made by `Memory.aio`; shares its connections."""

    @property
    def scope(self) -> Scope:
        """Whose memory this handle is."""
        return self._sync.scope

    def scoped(
        self, *, tenant: str | None = None, user: str | None = None, agent: str | None = None
    ) -> AsyncMemory:
        """Make a handle for another tenant, user or agent, as `Memory.scoped` does."""
        return self._sync.scoped(tenant=tenant, user=user, agent=agent).aio

    def chat(self, id: str) -> AsyncChat:  # noqa: A002 - as in Memory.chat
        """Open a session, as `Memory.chat` does."""
        return AsyncChat(self._sync.chat(id), self._executor)

    chats = _awaited(Memory.chats)
    recall = _awaited(Memory.recall)
    rebuild = _awaited(Memory.rebuild)
    verify = _awaited(Memory.verify)

    async def close(self) -> None:
        """Wait for the calls that have begun, then close the memory."""
        await asyncio.to_thread(self._sync.close)  # not on the memory's own threads: it waits for them

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
