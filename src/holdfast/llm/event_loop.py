"""The event loop of our own, and how a thread waits for what runs on it or on the loop of somebody else.

It runs on a thread of its own, begins when it is first needed, and ends with the process.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Lock, Thread, get_ident
from typing import TYPE_CHECKING, NoReturn, TypeVar

from holdfast.errors import ModelFailed

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
_GLANCE = 0.5  # seconds between two looks at whether a loop still turns: it tells nobody when it ends


def run(work: Callable[[], Coroutine[object, object, T]]) -> T:
    """Run a coroutine on our own event loop and wait for it, as for several calls of `acomplete` at once.

    What a model keeps open between two calls stays usable this way, as it would not on a new loop for each.
    """
    if not is_home():
        return run_on(_HOME.loop(), work)
    # A model that waits for another one: the loop cannot turn meanwhile.
    # Loaded only where it is used.
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, asyncio.run, _settled(work)).result()()


def run_on(loop: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[object, object, T]]) -> T:
    """Run a coroutine on an event loop that turns on another thread, and wait for it.

    Raises:
        ModelFailed: the loop does not turn, or ended before the coroutine did.

    """
    import asyncio
    from concurrent.futures import wait

    settled = _settled(work)
    try:
        there = asyncio.run_coroutine_threadsafe(settled, loop)
    except RuntimeError as error:  # it is closed
        settled.close()
        raise _ended() from error
    try:
        while not wait([there], _GLANCE).done:
            if not loop.is_running():
                raise _ended()
        if there.cancelled():  # before it began: a loop that ends does so with what is left
            raise _ended()
        return there.result()()
    except BaseException:  # such as KeyboardInterrupt
        there.cancel()
        raise


def _ended() -> ModelFailed:
    return ModelFailed(
        "The event loop that the model was to answer on has ended.",
        "Keep it running until every call has been answered.",
    )


async def at_home(work: Callable[[], Coroutine[object, object, T]]) -> T:
    """Await something on our own event loop; when it is cancelled, also that it has closed what it had open."""
    import asyncio

    if is_home():
        return await work()
    here, over = asyncio.get_running_loop(), asyncio.Event()

    async def settled() -> Callable[[], T]:
        try:
            return await _settled(work)
        finally:
            with suppress(RuntimeError):  # nobody waits any more: the loop is closed
                here.call_soon_threadsafe(over.set)

    there = asyncio.run_coroutine_threadsafe(settled(), _HOME.loop())
    try:
        return (await asyncio.wrap_future(there))()
    except asyncio.CancelledError:
        await over.wait()
        raise


def is_home() -> bool:
    """Say whether it is our own event loop that this thread runs."""
    return _HOME.is_here()


def is_here(loop: asyncio.AbstractEventLoop) -> bool:
    """Say whether it is this event loop that this thread runs."""
    import asyncio

    with suppress(RuntimeError):  # this thread runs none
        return asyncio.get_running_loop() is loop
    return False


async def _settled(work: Callable[[], Coroutine[object, object, T]]) -> Callable[[], T]:
    """Give what gives the result or raises the error: a KeyboardInterrupt would end the loop on its way."""
    try:
        result = await work()
    except BaseException as error:  # noqa: BLE001 - it is raised where the work was asked for
        return partial(_throw, error)
    return lambda: result


def _throw(error: BaseException) -> NoReturn:
    raise error


class _Home:
    """An event loop on a thread of its own, which begins when it is first needed and ends with the process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._thread: Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def is_here(self) -> bool:
        """Say whether it is this thread that it runs on."""
        return self._thread is not None and self._thread.is_alive() and self._thread.ident == get_ident()

    def loop(self) -> asyncio.AbstractEventLoop:
        """Give the loop, running."""
        with self._lock:
            # A process that was forked has the loop, but not its thread.
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                self._loop, self._thread = _begin()
            return self._loop


_HOME = _Home()


def _begin() -> tuple[asyncio.AbstractEventLoop, Thread]:
    import asyncio
    import atexit
    from concurrent.futures import Future

    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def live() -> None:
        end = asyncio.Event()
        begun.set_result((asyncio.get_running_loop(), end))
        await end.wait()

    def work() -> None:
        try:
            asyncio.run(live())
        except Exception as error:
            if begun.done():
                raise
            begun.set_exception(error)  # such as no file descriptor left for a loop

    thread = Thread(target=work, name="holdfast-llm", daemon=True)
    thread.start()
    loop, end = begun.result()

    def finish() -> None:
        if thread.is_alive():
            loop.call_soon_threadsafe(end.set)
            thread.join(5)  # seconds: a call that blocks the loop must not keep the process

    atexit.register(finish)
    return loop, thread
