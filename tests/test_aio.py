from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from holdfast import Memory, Run, View
from holdfast.aio import (
    AsyncChat,
    AsyncGrants,
    AsyncLearner,
    AsyncMemory,
    AsyncQuarantine,
    AsyncRun,
    AsyncView,
)
from holdfast.chat import Chat
from holdfast.errors import Closed, InvalidInput
from holdfast.learning.service import Learner
from holdfast.records.grants import Grants
from holdfast.records.quarantine import Quarantine
from holdfast.runtime import THREADS
from holdfast.types import Message
from tables import each

PATIENCE = 60  # seconds until a test that hangs says so

# What stays as it is: it reads no database.
PLAIN = {
    *(
        ("Memory", name)
        for name in (
            "name",
            "scope",
            "scoped",
            "chat",
            "aio",
            "scratchpad",
            "learning",
            "quarantine",
            "grants",
            "on",
            "tools",
        )
    ),
    *(("Chat", name) for name in ("id", "scratchpad", "run")),
    *(("Run", name) for name in ("id", "chat", "scratchpad")),
    ("View", "scope"),
}
PAIRS: list[tuple[type, type]] = [
    (Memory, AsyncMemory),
    (Chat, AsyncChat),
    (View, AsyncView),
    (Run, AsyncRun),
    (Learner, AsyncLearner),
    (Quarantine, AsyncQuarantine),
    (Grants, AsyncGrants),
]


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
        assert inspect.signature(other).parameters.keys() == inspect.signature(one).parameters.keys()
        for parameter, like in zip(
            inspect.signature(other).parameters.values(),
            inspect.signature(one).parameters.values(),
            strict=True,
        ):
            assert (parameter.kind, parameter.default) == (like.kind, like.default)
    assert other.__doc__


@each(("sync", "twin", "name"), twins())
def test_what_asks_the_database_is_awaited(sync: type, twin: type, name: str) -> None:
    if (sync.__name__, name) not in PLAIN:
        assert inspect.iscoroutinefunction(inspect.getattr_static(twin, name))


@each(("sync", "twin"), PAIRS)
def test_the_twin_has_no_names_of_its_own(sync: type, twin: type) -> None:
    assert set(public(twin)) <= set(public(sync))


@each(("sync", "twin", "name"), twins())
def test_an_awaited_method_is_documented_as_the_other(sync: type, twin: type, name: str) -> None:
    if (sync.__name__, name) not in PLAIN | {("Memory", "close")}:
        assert getattr(twin, name).__doc__ == getattr(sync, name).__doc__


def test_the_results_are_those_of_the_other(memory: Memory) -> None:
    async def use() -> None:
        awaited = memory.aio
        chat, other = awaited.chat("a"), memory.chat("a")
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
        assert [chat.title for chat in memory.chats()] == ["Running"]
        await chat.archive()
        assert await awaited.chats(archived=True) == memory.chats(archived=True) != []
        assert (await awaited.verify(repair=True)).checked["messages"] == 3
        assert await awaited.verify() == memory.verify()
        assert chat.id == other.id
        assert awaited.scope == memory.scope
        assert awaited.scoped(user="bob").scope == memory.scoped(user="bob").scope

    asyncio.run(use())


def test_handles_share_what_they_stored(memory: Memory) -> None:
    async def use() -> None:
        await memory.aio.scoped(agent="coach").chat("a").append(role="user", content="berlin")
        assert len(await memory.aio.recall("berlin")) == 1

    asyncio.run(use())


def test_both_say_what_they_are(memory: Memory) -> None:
    assert repr(memory.aio) == f"{memory!r}.aio"
    assert repr(memory.aio.chat("a")) == "Chat('a').aio"


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

    asyncio.run(use())


def test_errors_of_a_plug_in_come_through() -> None:
    def count(text: str) -> int:
        raise ZeroDivisionError

    async def use() -> None:
        async with Memory(":memory:", count_tokens=count).aio as awaited:
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


def test_a_wrong_argument_is_a_type_error(memory: Memory) -> None:
    async def use() -> None:
        with pytest.raises(TypeError):
            await memory.aio.recall("berlin", nonsense=1)  # type: ignore[call-arg]

    asyncio.run(use())


# Many at once


def test_a_hundred_appends_to_one_chat_at_once(memory: Memory) -> None:
    async def use() -> None:
        chat = memory.aio.chat("a")
        stored = await asyncio.gather(*(chat.append(role="user", content=f"word{n}") for n in range(100)))
        assert sorted(message.seq for message in stored) == list(range(1, 101))
        assert [message.content for message in stored] == [f"word{n}" for n in range(100)]

    asyncio.run(use())
    assert memory.verify().ok


def test_a_hundred_calls_of_all_kinds_at_once(memory: Memory) -> None:
    async def one(n: int) -> list[int]:
        chat = memory.aio.chat(f"chat{n % 5}")
        await chat.append(role="user", content=f"word{n} berlin")
        hits = await memory.aio.recall(f"word{n}", limit=1)
        return [len(hits), (await chat.stats()).messages > 0, len(await memory.aio.chats()) > 0]

    async def use() -> None:
        assert await asyncio.gather(*map(one, range(34))) == [[1, True, True]] * 34

    asyncio.run(use())


def test_a_call_can_be_made_a_task(memory: Memory) -> None:
    async def use() -> None:
        task = asyncio.create_task(memory.aio.recall("berlin"))
        assert await task == []

    asyncio.run(use())


def test_no_more_threads_than_agreed_work_for_a_memory(memory: Memory) -> None:
    # Of memories that other tests left open.
    others = {*threading.enumerate()}

    async def use() -> None:
        await asyncio.gather(*(memory.aio.recall("berlin") for _ in range(100)))
        new = {*threading.enumerate()} - others
        mine = [thread for thread in new if thread.name.startswith("holdfast_")]
        assert len(mine) <= THREADS

    asyncio.run(use())


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


def test_one_memory_serves_one_event_loop_after_another(memory: Memory) -> None:
    for n in range(3):
        asyncio.run(memory.aio.chat("a").append(role="user", content=f"word{n}"))
    assert len(memory.chat("a").history()) == 3


def test_one_memory_serves_two_event_loops_at_once(memory: Memory) -> None:
    barrier = threading.Barrier(2)

    async def use(name: str) -> int:
        chat = memory.aio.chat(name)
        barrier.wait(PATIENCE)
        await asyncio.gather(*(chat.append(role="user", content=f"word{name}{n}") for n in range(30)))
        return (await chat.stats()).messages

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda name: asyncio.run(use(name)), "xy")) == [30, 30]
    assert memory.verify().ok


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


def test_a_write_that_has_begun_finishes_although_its_caller_is_cancelled(
    shared_location: str, plug: Plug
) -> None:
    async def use() -> None:
        async with Memory(shared_location, count_tokens=plug).aio as awaited:
            task = asyncio.create_task(awaited.chat("a").append(role="user", content="the marathon"))
            await plug.begun(1)
            await cancelled(task)
            plug.go_on()

    asyncio.run(use())
    with Memory(shared_location) as memory:
        assert [message.content for message in memory.chat("a").history()] == ["the marathon"]
        assert [hit.text for hit in memory.recall("marathon")] == ["the marathon"]


def test_many_messages_of_a_cancelled_write_are_all_stored(shared_location: str, plug: Plug) -> None:
    async def use() -> None:
        async with Memory(shared_location, count_tokens=plug).aio as awaited:
            task = asyncio.create_task(awaited.chat("a").append([Message("user", f"{n}") for n in range(50)]))
            await plug.begun(1)
            await cancelled(task)
            plug.go_on()

    asyncio.run(use())
    with Memory(shared_location) as memory:
        assert [message.seq for message in memory.chat("a").history()] == list(range(1, 51))


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


def test_a_write_that_times_out_for_its_caller_is_stored(shared_location: str, plug: Plug) -> None:
    async def use() -> None:
        async with Memory(shared_location, count_tokens=plug).aio as awaited:
            task = asyncio.create_task(awaited.chat("a").append(role="user", content="late"))
            await plug.begun(1)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(task, 0)
            plug.go_on()

    asyncio.run(use())
    with Memory(shared_location) as memory:
        assert [message.content for message in memory.chat("a").history()] == ["late"]


def test_an_event_loop_that_ends_leaves_its_writes_to_finish(shared_location: str, plug: Plug) -> None:
    memory = Memory(shared_location, count_tokens=plug)

    async def use() -> None:
        task = asyncio.create_task(memory.aio.chat("a").append(role="user", content="late"))
        await plug.begun(1)
        assert not task.done()

    asyncio.run(use())
    plug.go_on()
    memory.close()
    with Memory(shared_location) as again:
        assert len(again.chat("a").history()) == 1


def test_close_waits_for_the_calls_that_have_begun(shared_location: str, plug: Plug) -> None:
    async def use() -> None:
        awaited = Memory(shared_location, count_tokens=plug).aio
        append = asyncio.create_task(awaited.chat("a").append(role="user", content="the marathon"))
        await plug.begun(1)
        close = asyncio.create_task(awaited.close())
        await asyncio.sleep(0)
        assert not close.done()
        plug.go_on()
        assert (await append).seq == 1
        await close

    asyncio.run(use())
    with Memory(shared_location) as memory:
        assert len(memory.chat("a").history()) == 1


def test_closing_the_other_way_waits_as_well(shared_location: str, plug: Plug) -> None:
    memory = Memory(shared_location, count_tokens=plug)

    async def use() -> Message:
        append = asyncio.create_task(memory.aio.chat("a").append(role="user", content="the marathon"))
        await plug.begun(1)
        closing = asyncio.create_task(asyncio.to_thread(memory.close))
        plug.go_on()
        await closing
        return await append

    assert asyncio.run(use()).seq == 1


def test_a_closed_memory_says_so(location: str) -> None:
    async def use() -> None:
        awaited = Memory(location).aio
        chat = awaited.chat("a")
        await chat.append(role="user", content="berlin")
        await awaited.close()
        calls: list[Callable[[], Coroutine[Any, Any, object]]] = [
            lambda: awaited.recall("berlin"),
            lambda: chat.append(role="user", content="x"),
            chat.history,
            awaited.verify,
            awaited.chats,
        ]
        for call in calls:
            with pytest.raises(Closed):
                await call()

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


def test_closing_twice_is_harmless(location: str) -> None:
    async def use() -> None:
        async with Memory(location).aio as awaited:
            await awaited.chat("a").append(role="user", content="berlin")
            await awaited.close()
            await awaited.close()

    asyncio.run(use())


def test_a_memory_that_nobody_awaits_starts_no_threads(tmp_path: Path) -> None:
    before = {thread for thread in threading.enumerate() if thread.name.startswith("holdfast_")}
    with Memory(tmp_path / "memory.db") as memory:
        memory.chat("a").append(role="user", content="berlin")
        memory.recall("berlin")
        after = {thread for thread in threading.enumerate() if thread.name.startswith("holdfast_")}
    assert after <= before


def test_closing_ends_the_threads(tmp_path: Path) -> None:
    async def use() -> None:
        async with Memory(tmp_path / "memory.db").aio as awaited:
            await asyncio.gather(*(awaited.recall("berlin") for _ in range(20)))

    before = set(threading.enumerate())
    asyncio.run(use())
    assert {thread for thread in threading.enumerate() if thread.name.startswith("holdfast_")} <= before
