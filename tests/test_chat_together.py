"""Threads and processes that append to chats at once: nothing is lost, doubled or torn."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import Any

import pytest

from chat_messages import contents, say, seqs
from holdfast import Conflict, Memory, Message
from programs import run_together

# Many threads

THREADS = 8
EACH = 12


def together(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Run the same work in threads that begin at the same moment."""
    barrier = Barrier(count)

    def begin(number: int) -> Any:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))


def test_the_same_messages_from_many_threads_are_stored_once(memory: Memory) -> None:
    def work(_: int) -> list[Message]:
        return memory.chat("monday").append([Message("user", f"m{n}", id=f"m{n}") for n in range(EACH)])

    results = together(THREADS, work)
    assert all(result == memory.chat("monday").history() for result in results)
    assert memory.verify().problems == ()


def test_of_different_messages_with_one_id_one_is_stored(memory: Memory) -> None:
    def work(thread: int) -> str:
        try:
            return memory.chat("monday").append(role="user", content=f"by {thread}", id="m1").content
        except Conflict:
            return ""

    won = [content for content in together(THREADS, work) if content]
    assert won == contents(memory.chat("monday").history())


def test_readers_see_whole_appends_while_writers_write(memory: Memory) -> None:
    done = Event()

    def read() -> int:
        seen = 0
        while not done.is_set():
            numbers = seqs(memory.chat("monday").history())
            assert numbers == list(range(1, len(numbers) + 1))
            assert len(numbers) % 3 == 0
            assert len(numbers) >= seen
            seen = len(numbers)
        return seen

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        try:
            together(4, lambda _: [say(memory.chat("monday"), *"abc") for _ in range(EACH)])
        finally:
            done.set()
        assert all(reader.result() <= 4 * 3 * EACH for reader in readers)


# Many processes

APPEND = """
import sys
from holdfast import Conflict, Memory, Message
location, name, count = sys.argv[1:]
with Memory(location, user="ada") as memory:
    print("ready", flush=True)
    input()
    for n in range(int(count)):
        memory.chat("monday").append([Message("user", f"{name} {n}"), Message("user", f"{name} {n} again")])
        memory.chat("shared").append(role="user", content=f"key {n}", id=f"key {n}")
        memory.chat(f"chat of {name}").append(role="user", content=f"own {n}")
"""


@pytest.mark.slow
def test_processes_append_to_one_database_without_loss(
    shared_location: str, reopen: Callable[[], Memory]
) -> None:
    run_together(APPEND, [(shared_location, name, EACH) for name in "abc"])
    memory = reopen()
    history = memory.chat("monday").history()
    assert seqs(history) == list(range(1, 3 * 2 * EACH + 1))
    for name in "abc":
        words = [one.content for one in history if one.content.startswith(name)]
        assert words == [f"{name} {n}{again}" for n in range(EACH) for again in ("", " again")]
    assert contents(memory.chat("shared").history()) == [f"key {n}" for n in range(EACH)]
    assert memory.chat("chat of b").stats().messages == EACH
    assert memory.verify().problems == ()
