"""What was acknowledged is there, whatever happened to the process that wrote it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import Memory, Message
from programs import run, start

APPEND = """
import os, sys, threading
from holdfast import Memory, Message
memory = Memory(sys.argv[1], user="ada", durability=sys.argv[2])
def work(thread):
    chat = memory.chat(f"{thread % 3}")
    while True:
        stored = chat.append([Message("user", f"{thread} {part} " + "x" * 200) for part in "abc"])
        os.write(1, f"{chat.id} {stored[-1].seq}\\n".encode())
for thread in range(int(sys.argv[3])):
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


def assert_whole_appends(memory: Memory, name: str) -> int:
    """Check that all numbers are there, and parts of appends are together; return the last number."""
    history = memory.chat(name).history()
    assert [message.seq for message in history] == list(range(1, len(history) + 1))
    said = [message.content.split()[:2] for message in history]
    assert [part for _, part in said] == list("abc") * (len(history) // 3), "part of an append was stored"
    assert [by for by, _ in said[::3]] == [by for by, _ in said[1::3]] == [by for by, _ in said[2::3]]
    assert memory.verify().problems == ()
    return len(history)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("durability", ["full", "normal"])
def test_a_killed_process_loses_nothing_that_it_acknowledged(
    shared_location: str, reopen: Callable[[], Memory], durability: str, threads: int
) -> None:
    chance = random.Random(durability)
    for _ in range(4):
        with start(APPEND, shared_location, durability, threads) as program:
            assert program.stdout is not None
            acknowledged = [program.stdout.readline() for _ in range(chance.randint(1, 60 * threads))]
            program.kill()
            acknowledged += [line for line in program.stdout if line.endswith("\n")]
        assert all(acknowledged), "it ended by itself"
        memory = reopen()
        for name in "012":
            last = assert_whole_appends(memory, name)
            assert all(int(seq) <= last for chat, seq in map(str.split, acknowledged) if chat == name)
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


@pytest.mark.slow
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


@pytest.mark.parametrize("damage", ["torn", "changed"])
@pytest.mark.parametrize("share", [0.0, 0.33, 0.75, 0.999])
def test_a_damaged_write_ahead_log_leaves_whole_appends_in_order(
    torn_log: tuple[Path, Path], share: float, damage: str
) -> None:
    file, log = torn_log
    content = bytearray(log.read_bytes())
    place = int(len(content) * share)
    content[place:] = [] if damage == "torn" else (content[place] ^ 0xFF, *content[place + 1 :])
    log.write_bytes(content)
    file.with_name("memory.db-shm").unlink()
    with Memory(file, user="ada") as memory:
        assert_whole_appends(memory, "monday")
