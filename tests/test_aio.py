from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from handles import TWINS
from holdfast import Memory, Scratchpad
from holdfast.aio import AsyncMemory
from holdfast.errors import Closed, InvalidInput
from holdfast.runtime import THREADS
from holdfast.types import Message
from tables import each

PATIENCE = 60  # seconds until a test that hangs says so

# What stays as it is: it reads no database.
PLAIN = {
    *(
        ("Memory", name)
        for name in "name scope scoped chat aio scratchpad learning quarantine grants on tools".split()
    ),
    *(("Chat", name) for name in ("id", "scratchpad", "run")),
    *(("Run", name) for name in ("id", "chat", "scratchpad")),
    ("View", "scope"),
}
# A scratchpad is a `MutableMapping`, and its twin has other names.
PAIRS = [(sync, twin) for sync, twin in TWINS.items() if sync is not Scratchpad]


def public(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_")]


def twins() -> list[tuple[type, type, str]]:
    return [(sync, twin, name) for sync, twin in PAIRS for name in public(sync)]


# The two are in step


@each(("sync", "twin", "name"), twins())
def test_every_public_name_has_its_twin(sync: type, twin: type, name: str) -> None:
    if (sync.__name__, name) == ("Memory", "aio"):
        return
    one, other = inspect.getattr_static(sync, name), inspect.getattr_static(twin, name, None)
    assert other is not None, f"{twin.__name__} has no {name}"
    assert isinstance(one, property) == isinstance(other, property)
    if not isinstance(one, property):
        parameters = [inspect.signature(method).parameters.values() for method in (one, other)]
        same, awaited = ([(p.name, p.kind, p.default) for p in each_of] for each_of in parameters)
        assert awaited == same
    if (sync.__name__, name) in PLAIN:
        assert other.__doc__
    else:
        assert inspect.iscoroutinefunction(other), "what asks the database is awaited"
        assert other.__doc__ == one.__doc__ or name == "close"


@each(("sync", "twin"), PAIRS)
def test_the_twin_has_no_names_of_its_own(sync: type, twin: type) -> None:
    assert set(public(twin)) <= set(public(sync))


def test_the_results_are_those_of_the_other(memory: Memory) -> None:
    async def use() -> None:
        awaited = memory.aio
        chat, other = awaited.chat("a"), memory.chat("a")
        assert repr(chat) == "Chat('a').aio"
        stored = await chat.append(role="user", content="The marathon is in Berlin.")
        assert [stored] == other.history() == await chat.history()
        many = await chat.append(
            [{"role": "assistant", "content": "Good."}, Message("user", "Berlin it is.")]
        )
        assert other.history(2) == many == await chat.history(2)
        assert await chat.stats() == other.stats()
        assert await chat.window(100) == other.window(100)
        other.prompt(500, "Berlin")
        assert await chat.prompt(500, "Berlin") == other.prompt(500, "Berlin")
        assert await awaited.recall("berlin") == memory.recall("berlin") != []
        await chat.rename("Running")
        await chat.archive()
        assert [one.title for one in await awaited.chats(archived=True)] == ["Running"]
        assert (await awaited.verify(repair=True)).checked["messages"] == 3
        assert await awaited.verify() == memory.verify()
        assert (chat.id, awaited.scope) == (other.id, memory.scope)
        assert awaited.scoped(user="bob").scope == memory.scoped(user="bob").scope

    asyncio.run(use())


# Errors


def test_errors_come_through(memory: Memory) -> None:
    async def use() -> None:
        with pytest.raises(InvalidInput):
            await memory.aio.recall("?")
        with pytest.raises(InvalidInput):
            await memory.aio.chat("a").append([{"role": "nobody", "content": "x"}])
        with pytest.raises(InvalidInput):
            memory.aio.chat("")
        assert await memory.aio.chats() == []
        async with Memory(":memory:", count_tokens=lambda _: 1 // 0).aio as awaited:
            with pytest.raises(ZeroDivisionError):
                await awaited.chat("a").append(role="user", content="x")
            assert (await awaited.chat("a").stats()).messages == 0

    asyncio.run(use())


def test_plug_ins_run_in_the_context_of_the_caller() -> None:
    price: ContextVar[int] = ContextVar("price")

    async def use() -> None:
        price.set(7)
        async with Memory(":memory:", count_tokens=lambda _: price.get()).aio as awaited:
            assert (await awaited.chat("a").append(role="user", content="x")).tokens >= 7

    asyncio.run(use())


# Many at once


def test_the_event_loop_is_not_held_up(tmp_path: Path) -> None:
    plug = Plug()

    async def use() -> None:
        async with Memory(tmp_path / "memory.db", count_tokens=plug).aio as awaited:
            task = asyncio.create_task(awaited.chat("a").append(role="user", content="x"))
            await plug.begun(1)
            assert not task.done()
            assert await awaited.chat("b").history() == []
            plug.go_on()
            assert (await task).seq == 1

    asyncio.run(use())


# Cancelling and closing


class Plug:
    """Count tokens, but hold every call until it may go on: so a call is known to be under way."""

    def __init__(self) -> None:
        self._begun = threading.Semaphore(0)
        self._go = threading.Event()

    def __call__(self, text: str) -> int:
        self._begun.release()
        assert self._go.wait(PATIENCE)
        return 1

    def go_on(self) -> None:
        self._go.set()

    async def begun(self, count: int) -> None:
        for _ in range(count):
            assert await asyncio.to_thread(self._begun.acquire, timeout=PATIENCE)


@pytest.fixture
def plug() -> Iterator[Plug]:
    plug = Plug()
    yield plug
    plug.go_on()


async def cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def timed_out(task: asyncio.Task[Any]) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(task, 0)


async def left_alone(task: asyncio.Task[Any]) -> None:
    """Let the event loop end while the task goes on."""
    assert not task.done()


@pytest.mark.parametrize("leave", [cancelled, timed_out, left_alone])
def test_a_write_that_has_begun_finishes_although_nobody_waits_for_it(
    shared_location: str, plug: Plug, leave: Callable[[asyncio.Task[Any]], Coroutine[Any, Any, None]]
) -> None:
    memory = Memory(shared_location, count_tokens=plug)

    async def use() -> None:
        messages = [Message("user", f"marathon {n}") for n in range(50)]
        task = asyncio.create_task(memory.aio.chat("a").append(messages))
        await plug.begun(1)
        await leave(task)

    asyncio.run(use())
    plug.go_on()
    memory.close()
    with Memory(shared_location) as again:
        assert [message.content for message in again.chat("a").history()] == [
            f"marathon {n}" for n in range(50)
        ]
        assert [hit.text for hit in again.recall("marathon 7", limit=1)] == ["marathon 7"]


def test_a_write_that_waits_for_its_turn_does_nothing_once_cancelled(
    shared_location: str, plug: Plug
) -> None:
    async def use() -> None:
        async with Memory(shared_location, count_tokens=plug).aio as awaited:
            append = awaited.chat("a").append
            running = [asyncio.create_task(append(role="user", content="begun")) for _ in range(THREADS)]
            await plug.begun(THREADS)
            queued = asyncio.create_task(append(role="user", content="queued"))
            await asyncio.sleep(0)  # let it take its place in the queue
            await cancelled(queued)
            plug.go_on()
            await asyncio.gather(*running)

    asyncio.run(use())
    with Memory(shared_location) as memory:
        assert [message.content for message in memory.chat("a").history()] == ["begun"] * THREADS


@pytest.mark.parametrize("awaited", [True, False])
def test_closing_waits_for_the_calls_that_have_begun(shared_location: str, plug: Plug, awaited: bool) -> None:
    memory = Memory(shared_location, count_tokens=plug)

    async def use() -> None:
        append = asyncio.create_task(memory.aio.chat("a").append(role="user", content="the marathon"))
        await plug.begun(1)
        close = asyncio.create_task(memory.aio.close() if awaited else asyncio.to_thread(memory.close))
        await asyncio.sleep(0)
        assert not close.done()
        plug.go_on()
        assert (await append).seq == 1
        await close

    asyncio.run(use())
    with Memory(shared_location) as again:
        assert len(again.chat("a").history()) == 1


def test_a_closed_memory_says_so(location: str) -> None:
    async def use() -> None:
        awaited = Memory(location).aio
        chat = awaited.chat("a")
        await chat.append(role="user", content="berlin")
        await awaited.close()
        calls: list[Callable[[], Coroutine[Any, Any, object]]] = [
            lambda: awaited.recall("berlin"),
            lambda: chat.append(role="user", content="x"),
            awaited.verify,
        ]
        for call in calls:
            with pytest.raises(Closed):
                await call()
        await awaited.close()

    asyncio.run(use())


def test_a_call_that_meets_the_closing_says_so(location: str) -> None:
    """The pool is shut down between the moment that a call takes it and the moment that it uses it."""
    memory = Memory(location)
    pool = memory._runtime.executor()
    memory.close()

    async def use() -> None:
        with pytest.raises(Closed):
            await AsyncMemory(memory, lambda: pool).recall("berlin")

    asyncio.run(use())


def ours() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("holdfast_")}


def test_a_memory_has_threads_from_its_first_awaited_call_to_its_end(tmp_path: Path) -> None:
    before = ours()

    async def use(memory: Memory) -> None:
        await asyncio.gather(*(memory.aio.recall("berlin") for _ in range(100)))
        assert 0 < len(ours() - before) <= THREADS

    with Memory(tmp_path / "memory.db") as memory:
        memory.chat("a").append(role="user", content="berlin")
        memory.recall("berlin")
        assert ours() <= before
        asyncio.run(use(memory))
    assert ours() <= before
