"""What was acknowledged is there, whatever happened to the process that wrote it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import pytest

from holdfast import Memory, Message
from programs import run, start

APPEND = """
import sys
from holdfast import Memory, Message
memory = Memory(sys.argv[1], user="ada", durability=sys.argv[2])
chat = memory.chat("monday")
n = chat.stats().messages
while True:
    n += 3
    stored = chat.append([Message("user", f"{i} " + "x" * 500) for i in range(n - 2, n + 1)])
    print(stored[-1].seq, flush=True)
"""
APPEND_IN_THREADS = """
import os, sys, threading
from holdfast import Memory
memory = Memory(sys.argv[1], user="ada", durability=sys.argv[2])
def work(thread):
    chat = memory.chat(f"{thread % 3}")
    while True:
        stored = chat.append(role="user", content=f"by {thread}")
        os.write(1, f"{chat.id} {stored.seq}\\n".encode())
for thread in range(8):
    threading.Thread(target=work, args=(thread,)).start()
"""
OPEN = """
import sys
print("ready", flush=True)
from holdfast import Memory
while True:
    Memory(sys.argv[1], user="ada").chat("monday").append(role="user", content="hello")
"""


@pytest.fixture
def postgres_url(bare_postgres_url: str) -> str:
    """Let all tests of this file begin without our tables: a process may be killed while it makes them."""
    return bare_postgres_url


def killed_after(program: Popen[str], lines: int) -> int:
    """Read some lines of a program, kill it, and give the last number that it wrote."""
    assert program.stdout is not None
    with program:
        read = [program.stdout.readline() for _ in range(lines)]
        program.kill()
        read += [line for line in program.stdout if line.endswith("\n")]
    assert all(read), "it ended by itself"
    return int(read[-1])


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["full", "normal"])
def test_a_killed_process_loses_nothing_that_it_acknowledged(
    shared_location: str, reopen: Callable[[], Memory], durability: str
) -> None:
    chance = random.Random(durability)
    for _ in range(4):
        acknowledged = killed_after(start(APPEND, shared_location, durability), chance.randint(1, 60))
        memory = reopen()
        history = memory.chat("monday").history()
        assert [message.seq for message in history] == list(range(1, len(history) + 1))
        assert [int(message.content.split()[0]) for message in history] == list(range(1, len(history) + 1))
        assert len(history) >= acknowledged
        assert len(history) % 3 == 0, "part of an append was stored"
        assert memory.verify().problems == ()
        memory.close()


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["full", "normal"])
def test_a_process_killed_with_many_threads_loses_nothing_that_it_acknowledged(
    shared_location: str, reopen: Callable[[], Memory], durability: str
) -> None:
    chance = random.Random(durability)
    for _ in range(4):
        with start(APPEND_IN_THREADS, shared_location, durability) as program:
            assert program.stdout is not None
            acknowledged = [program.stdout.readline() for _ in range(chance.randint(1, 400))]
            program.kill()
            acknowledged += [line for line in program.stdout if line.endswith("\n")]
        assert all(acknowledged), "it ended by itself"
        memory = reopen()
        for name in "012":
            stored = [message.seq for message in memory.chat(name).history()]
            assert stored == list(range(1, len(stored) + 1))
            numbers = [line.split() for line in acknowledged]
            assert {int(seq) for chat, seq in numbers if chat == name} <= set(stored)
        assert memory.verify().problems == ()
        memory.close()


def test_a_process_killed_while_it_opens_leaves_a_database_that_opens(
    shared_location: str, reopen: Callable[[], Memory]
) -> None:
    for _ in range(4):
        program = start(OPEN, shared_location)
        with program:
            assert program.stdout is not None
            program.stdout.readline()
            program.kill()
        memory = reopen()
        memory.chat("tuesday").append(role="user", content="hello")
        assert memory.verify().problems == ()
        memory.close()


def test_another_process_reads_what_was_just_acknowledged(
    shared_location: str, reopen: Callable[[], Memory]
) -> None:
    memory = reopen()
    program = start(APPEND, shared_location, "full")
    assert program.stdout is not None
    with program:
        for _ in range(20):
            acknowledged = int(program.stdout.readline())
            assert memory.chat("monday").stats().messages >= acknowledged
        program.kill()


def test_a_process_that_ends_without_closing_loses_nothing(
    shared_location: str, reopen: Callable[[], Memory]
) -> None:
    script = """
import os, sys
from holdfast import Memory
memory = Memory(sys.argv[1], user="ada", durability="normal")
memory.chat("monday").append(role="user", content="hello")
os._exit(0)
"""
    run(script, shared_location)
    assert reopen().chat("monday").stats().messages == 1


@pytest.mark.slow
def test_an_interrupt_at_any_moment_leaves_a_memory_that_goes_on(tmp_path: Path) -> None:
    script = """
import random, signal, sys
from concurrent.futures import ThreadPoolExecutor
from holdfast import Memory
def interrupt(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
memory = Memory(sys.argv[1], user="ada")
chat = memory.chat("monday")
# Modules that are loaded late are loaded now: Python reports an interrupt in a class body as another error.
chat.append(role="user", content="hello")
chance = random.Random(7)
acknowledged, interrupted = 1, 0
while interrupted < 300:
    try:
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00001, 0.0006))
        chat.append(role="user", content="hello")
        acknowledged += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupted += 1
assert chat.append(role="user", content="last").seq > acknowledged
with Memory(sys.argv[1], user="ada") as other:
    other.chat("monday").append(role="user", content="from another process")
with ThreadPoolExecutor(1) as pool:
    pool.submit(chat.append, {"role": "user", "content": "from another thread"}).result()
assert memory.verify().ok
print("ok")
"""
    # What an interrupt says in the middle of a clean-up goes to stderr.
    output, errors = start(script, tmp_path / "memory.db").communicate()
    assert output == "ok\n", errors


# A crash of the machine, as far as a test can show it: the files as they are at some moment, the write-ahead
# log torn.


@pytest.fixture
def torn_log(tmp_path: Path) -> tuple[Path, Path]:
    """A copy of a database in use, most of which stands in its write-ahead log."""
    (tmp_path / "copy").mkdir()
    with Memory(tmp_path / "memory.db", user="ada") as memory:
        for n in range(30):
            memory.chat("monday").append([Message("user", f"{n} {part}") for part in "abc"])
        for file in tmp_path.glob("memory.db*"):
            shutil.copy(file, tmp_path / "copy")
    return tmp_path / "copy" / "memory.db", tmp_path / "copy" / "memory.db-wal"


def test_the_files_of_a_database_in_use_hold_all_that_was_acknowledged(torn_log: tuple[Path, Path]) -> None:
    with Memory(torn_log[0], user="ada") as memory:
        assert memory.chat("monday").stats().messages == 90


@pytest.mark.parametrize("share", [0.0, 0.1, 0.33, 0.5, 0.75, 0.9, 0.999])
def test_a_torn_write_ahead_log_leaves_whole_appends_in_order(
    torn_log: tuple[Path, Path], share: float
) -> None:
    file, log = torn_log
    content = log.read_bytes()
    log.write_bytes(content[: int(len(content) * share)])
    file.with_name("memory.db-shm").unlink()
    with Memory(file, user="ada") as memory:
        history = memory.chat("monday").history()
        assert [message.content for message in history] == [
            f"{n} {part}" for n in range(len(history) // 3) for part in "abc"
        ]
        assert memory.verify().problems == ()


@pytest.mark.parametrize("place", [0.2, 0.5, 0.8])
def test_a_damaged_write_ahead_log_leaves_whole_appends_in_order(
    torn_log: tuple[Path, Path], place: float
) -> None:
    file, log = torn_log
    content = bytearray(log.read_bytes())
    content[int(len(content) * place)] ^= 0xFF
    log.write_bytes(content)
    file.with_name("memory.db-shm").unlink()
    with Memory(file, user="ada") as memory:
        history = memory.chat("monday").history()
        assert [message.content for message in history] == [
            f"{n} {part}" for n in range(len(history) // 3) for part in "abc"
        ]
        assert memory.verify().problems == ()
