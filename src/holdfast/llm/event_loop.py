"""The event loop of our own, and how a thread waits for a coroutine on it or on another loop.

It runs on a thread of its own, starts when first needed, and ends with the process.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Event, Lock, Thread, get_ident
from typing import TYPE_CHECKING, NoReturn, TypeVar

from holdfast.errors import ModelFailed

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
# Seconds between two checks that a loop still runs: it notifies nobody when it ends.
_GLANCE = 0.5


def run(work: Callable[[], Coroutine[object, object, T]]) -> T:
    """Run a coroutine on our own event loop and return its result.

    So the connections of a model stay usable from one call to the next, unlike on a new loop for each.
    """
    if not is_home():
        return run_on(_HOME.loop(), work)
    # A model that waits for another one: the loop is blocked meanwhile.
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, asyncio.run, _settle(work)).result()()


def run_on(loop: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[object, object, T]]) -> T:
    """Run a coroutine on an event loop of another thread, and return its result.

    Raises:
        ModelFailed: the loop is closed, or ended before the coroutine did.

    """
    import asyncio
    from concurrent.futures import wait

    settled = _settle(work)
    try:
        there = asyncio.run_coroutine_threadsafe(settled, loop)
    except RuntimeError as error:
        # The loop is closed.
        settled.close()
        raise _loop_has_ended() from error
    try:
        while not wait([there], _GLANCE).done:
            if not loop.is_running():
                raise _loop_has_ended()
        # Before it began: a loop that ends cancels what is left.
        if there.cancelled():
            raise _loop_has_ended()
        return there.result()()
    except BaseException:
        # Such as KeyboardInterrupt.
        there.cancel()
        raise


def _loop_has_ended() -> ModelFailed:
    return ModelFailed(
        "The event loop that the model was to answer on has ended.",
        "Keep it running until every call has been answered.",
    )


async def at_home(work: Callable[[], Coroutine[object, object, T]]) -> T:
    """Await a coroutine on our own event loop; when cancelled, also until it has cleaned up."""
    import asyncio

    if is_home():
        return await work()
    here, over = asyncio.get_running_loop(), asyncio.Event()

    async def settled() -> Callable[[], T]:
        try:
            return await _settle(work)
        finally:
            # Nobody waits any more if the loop is closed.
            with suppress(RuntimeError):
                here.call_soon_threadsafe(over.set)

    there = asyncio.run_coroutine_threadsafe(settled(), _HOME.loop())
    try:
        return (await asyncio.wrap_future(there))()
    except asyncio.CancelledError:
        await over.wait()
        raise


def is_home() -> bool:
    """Return whether this thread runs our own event loop."""
    return _HOME.is_here()


def is_here(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether this thread runs an event loop."""
    import asyncio

    # Raised where this thread runs none.
    with suppress(RuntimeError):
        return asyncio.get_running_loop() is loop
    return False


async def _settle(work: Callable[[], Coroutine[object, object, T]]) -> Callable[[], T]:
    """Return a function that returns the result or raises the error: raised here, it would end the loop."""
    try:
        result = await work()
    # BLE001: it is raised where the result is waited for.
    except BaseException as error:  # noqa: BLE001
        return partial(_throw, error)
    return lambda: result


def _throw(error: BaseException) -> NoReturn:
    raise error


class _Home:
    """An event loop on a thread of its own, which starts when first needed and ends with the process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._thread: Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def is_here(self) -> bool:
        """Return whether it runs on this thread."""
        return self._thread is not None and self._thread.is_alive() and self._thread.ident == get_ident()

    def loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop, running."""
        with self._lock:
            # A forked process has the loop, but not its thread.
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                self._loop, self._thread = _begin()
            return self._loop


_HOME = _Home()


def _begin() -> tuple[asyncio.AbstractEventLoop, Thread]:
    import asyncio
    import atexit

    loop, begun = asyncio.new_event_loop(), Event()

    def live() -> None:
        # In the end it cancels what is left, and closes the loop.
        with asyncio.Runner(loop_factory=lambda: loop):
            loop.run_forever()

    def finish() -> None:
        if thread.is_alive():
            loop.call_soon_threadsafe(loop.stop)
            # Seconds: a call that blocks the loop must not keep the process from ending.
            thread.join(5)

    thread = Thread(target=live, name="holdfast-llm", daemon=True)
    loop.call_soon(begun.set)
    thread.start()
    begun.wait()
    atexit.register(finish)
    return loop, thread
