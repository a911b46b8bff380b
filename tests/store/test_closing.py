"""Memories that are closed, forgotten or inherited by a forked process."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from threading import Thread

import pytest
from sqlite_files import CALLS, fill

from holdfast import Closed, Memory, Unavailable
from holdfast_cli.formats.everything import export_everything
from holdfast_cli.formats.export import export_chats
from programs import run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A closed database of 60 messages."""
    fill(tmp_path / "memory.db", 60)
    return tmp_path / "memory.db"


# Memories that are closed


def test_a_closed_memory_says_so(location: str, file: Path) -> None:
    memory = Memory(location)
    memory.chat("monday").append(role="user", content="the Berlin marathon")
    memory.recall("marathon")
    memory.close()
    memory.close()  # once more is the same as once
    with Memory(location) as block:
        pass
    with pytest.raises(KeyError), Memory(location) as failed:
        raise KeyError
    for call in CALLS.values():
        with pytest.raises(Closed, match="Open a new Memory"):
            call(memory)
    for one in (block, failed):
        with pytest.raises(Closed):
            one.chats()
    assert [path.name for path in file.parent.glob("memory.db*")] == ["memory.db"]


CLOSED_UNDER_ITS_THREADS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from holdfast import Closed, Memory

for turn in range(int(sys.argv[2])):
    memory = Memory(sys.argv[1], user="ada")
    read, new = memory.chat(f"read {turn}"), memory.chat(f"new {turn}")
    read.append([{"role": "user", "content": f"message {n}"} for n in range(200)])
    started = Barrier(8)

    def until_closed(call):
        started.wait()
        try:
            while True:
                assert call()
        except Closed:
            pass

    def close():
        started.wait()
        # In some turns at once, while the threads open their connections, in others when all are busy.
        try:
            while turn % 3 and new.stats().messages < 4:
                pass
        except Closed:
            pass  # by the other one
        with memory:
            pass

    history = lambda: len(read.history()) == 200
    prompt = lambda: read.prompt(9_000, "Which message?").messages
    append = lambda: new.append([{"role": "user", "content": text} for text in ("one", "two")])
    with ThreadPoolExecutor(8) as pool:
        calls = (history, history, prompt, append, append, append)
        ends = [*(pool.submit(until_closed, call) for call in calls), pool.submit(close), pool.submit(close)]
        for end in ends:
            end.result()
        if Path(sys.argv[1]).is_file():
            # No connection is left, though the threads still live: the last one takes its log along.
            assert [path.name for path in Path(sys.argv[1]).parent.iterdir()] == ["memory.db"]
    if sys.argv[1] != ":memory:":
        with Memory(sys.argv[1], user="ada") as again:
            stored = [message.content for message in again.chat(f"new {turn}").history()]
            assert stored == ["one", "two"] * (len(stored) // 2)
            assert again.verify().ok
"""


@pytest.mark.slow
def test_a_memory_closed_under_its_threads_ends_each_call_well(location: str) -> None:
    # In a program of its own: what closes a connection that is in use crashes the interpreter.
    assert run(CLOSED_UNDER_ITS_THREADS, location, 4 if "://" in location else 15) == ""


@pytest.mark.slow
def test_a_program_that_does_not_close_its_memory_ends_in_silence(shared_location: str) -> None:
    script = """
import sys, threading
from holdfast import Memory
memory = Memory(sys.argv[1], user="ada")
memory.chat("monday").append(role="user", content="the Berlin marathon")
thread = threading.Thread(target=memory.recall, args=["marathon"])
thread.start()
thread.join()
print(len(memory.recall("marathon")))
"""
    assert run(script, shared_location) == "1\n"  # and nothing on stderr


def test_a_memory_that_is_forgotten_lets_go_of_its_file(file: Path) -> None:
    script = """
import gc, os, pathlib, sys
from holdfast import Memory
for _ in range(5):
    Memory(sys.argv[1], user="ada").chats()
    gc.collect()
links = [os.path.realpath(link) for link in pathlib.Path("/proc/self/fd").iterdir()]
print(sum(link.startswith(sys.argv[1]) for link in links))
"""
    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc to count open files")
    assert run(script, file) == "0\n"


@pytest.mark.parametrize("how", ["deleted", "moved", "replaced"])
def test_a_file_that_goes_under_an_open_memory_takes_no_more(file: Path, how: str) -> None:
    with Memory(file, user="ada") as memory:
        chat = memory.chat("sunday")
        chat.append(role="user", content="kept")
        memory.backup(file.with_suffix(".copy"))
        if how == "replaced":
            file.with_suffix(".copy").replace(file)
        else:
            file.rename(file.with_suffix(".moved")) if how == "moved" else file.unlink()
        for ask in (
            lambda: chat.append(role="user", content="lost"),
            lambda: memory.remember("Has a dog"),
            lambda: memory.erase(chat="sunday"),
            lambda: memory.backup(file.with_suffix(".later")),
            memory.verify,
            lambda: export_everything(memory, StringIO()),
            lambda: export_chats(memory, StringIO()),
        ):
            with pytest.raises(Unavailable, match="deleted, moved or replaced"):
                ask()
            with ThreadPoolExecutor(1) as pool, pytest.raises(Unavailable, match="nothing was written"):
                pool.submit(ask).result()
        # A thread that has not read before would open another file.
        with ThreadPoolExecutor(1) as pool, pytest.raises(Unavailable):
            pool.submit(chat.history).result()
        assert file.exists() is (how == "replaced")
        assert not file.with_suffix(".later").exists()
        assert [message.content for message in chat.history()] == ["kept"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to count open files")
def test_threads_that_have_ended_leave_no_connections(file: Path) -> None:
    def opened() -> int:
        return sum(os.path.realpath(link).startswith(str(file)) for link in Path("/proc/self/fd").iterdir())

    with Memory(file, user="ada") as memory:
        memory.chats()
        before = opened()
        for _ in range(20):
            thread = Thread(target=memory.chats)
            thread.start()
            thread.join()
        assert opened() <= before + 3


# Processes that fork

FORK = """
import os, sys, warnings
from holdfast import Closed, Memory
warnings.simplefilter("ignore")  # newer Pythons warn of any fork of a process with threads
memory = Memory(sys.argv[1], user="ada")
memory.chat("monday").append(role="user", content="before")
memory.recall("before")
child = os.fork()
if not child:
    append = lambda: memory.chat("monday").append(role="user", content="child")
    for call in (memory.chats, memory.verify, append):
        try:
            call()
            print("done")
        except Closed as error:
            print(error)
    memory.close()
    with Memory(sys.argv[1], user="ada") as own:
        own.chat("monday").append(role="user", content="child")
    sys.stdout.flush()
    if sys.argv[2] == "at once":
        os._exit(0)
    sys.exit(0)
os.waitpid(child, 0)
memory.chat("monday").append(role="user", content="after")
assert [message.content for message in memory.chat("monday").history()] == ["before", "child", "after"]
assert memory.verify().ok
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", ["at once", "as usual"])
def test_a_forked_process_is_told_to_open_its_own(shared_location: str, end: str) -> None:
    said = run(FORK, shared_location, end).splitlines()
    assert len(said) == 3
    assert all("forked" in line and "Open a Memory in each process" in line for line in said)
