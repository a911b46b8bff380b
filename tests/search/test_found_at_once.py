from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest

from holdfast import Memory, Message
from holdfast.search import index
from recall_corpora import ask, ask_all, found, start_python

pytest_plugins = ["recall_fixtures"]

WRITE_AND_FREEZE = """
import sys
from holdfast import Memory
from holdfast.search import index
index.FREEZE = index.WORTH_STORING = 4
location, name, count = sys.argv[1:]
with Memory(location, user="ada") as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(int(count)):
        memory.chat(name).append(role="user", content=f"word{name}{n} berlin")
        hits = memory.recall(f"word{name}{n}")
        assert [hit.text for hit in hits if f"word{name}{n} " in hit.text], n
"""


@pytest.fixture
def frozen_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "FREEZE", 8)
    monkeypatch.setattr(index, "WORTH_STORING", 8)
    monkeypatch.setattr(index, "LARGEST", 64)


# One after the other


def test_the_index_of_a_small_history_is_stored_by_who_makes_it(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    covered, total = [], 0
    for new in (31, 1, 31, 1):
        total += new
        with Memory(path, user="ada") as memory:
            memory.chat("a").append([Message("user", f"word {total - n} of Berlin") for n in range(new)])
            assert len(memory.recall("Berlin", limit=100)) == total
        with closing(sqlite3.connect(path)) as file:
            covered.append(file.execute("SELECT first, last FROM segments ORDER BY first").fetchall())
    assert covered == [[], [(1, 32)], [(1, 32)], [(1, 64)]]


def test_two_memories_that_write_in_turns_find_every_message(
    reopen: Callable[[], Memory], frozen_often: None
) -> None:
    memories = [reopen(), reopen()]
    assert memories[1].recall("number0") == []
    for n in range(60):
        memories[n % 2].chat("a").append(role="user", content=f"number{n} of many")
        for memory in memories:
            assert memory.recall(f"number{n}")[0].text == f"number{n} of many"


# At the same time


def test_threads_that_write_to_one_space_find_every_message_at_once(
    space: Memory, frozen_often: None
) -> None:
    barrier = Barrier(4)

    def write(name: str) -> list[int]:
        barrier.wait()
        missing = []
        for n in range(25):
            space.chat(name).append(role="user", content=f"word{name}{n} berlin")
            if f"word{name}{n} berlin" not in found(space.recall(f"word{name}{n}")):
                missing.append(n)
        return missing

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(write, "wxyz")) == [[], [], [], []]
    assert len(space.recall("berlin", limit=1000)) == 100
    assert space.verify().ok


def test_threads_that_search_many_spaces_while_indexes_are_let_go(
    shared_location: str, frozen_often: None
) -> None:
    def write(user: str) -> list[int]:
        mine = memory.scoped(user=user)
        missing = []
        for n in range(20):
            mine.chat("a").append(role="user", content=f"word{n} of {user}")
            if f"word{n} of {user}" not in found(mine.recall(f"word{n}")):
                missing.append(n)
        return missing

    with Memory(shared_location, admin=True, cache_bytes=1) as memory, ThreadPoolExecutor(4) as pool:
        assert list(pool.map(write, ["u1", "u2", "u3", "u4"])) == [[], [], [], []]


@pytest.mark.slow
def test_processes_that_freeze_at_the_same_time_leave_a_true_index(shared_location: str) -> None:
    with Memory(shared_location, user="ada") as memory:
        writers = [start_python(WRITE_AND_FREEZE, shared_location, name, "40") for name in "xyz"]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            writer.communicate("go\n")
        assert [writer.returncode for writer in writers] == [0, 0, 0]
        verified = memory.verify()
        assert verified.ok
        assert verified.checked["messages"] == 120
        assert verified.checked["index segments"] > 0
        before = ask_all(memory, ["berlin", "wordx3 wordz30"])
        memory.verify(repair=True)
        assert ask_all(memory, ["berlin", "wordx3 wordz30"]) == before


@pytest.mark.slow
def test_numbers_that_were_taken_before_another_commit_are_not_passed_over(
    postgres_url: str, frozen_often: None
) -> None:
    """A writer that is held up inside of its transaction must not be skipped by a search in the meantime."""
    with (
        Memory(postgres_url, user="ada") as memory,
        Memory(postgres_url, user="ada") as other,
        ThreadPoolExecutor(2) as pool,
    ):
        for chat in ("slow", "fast"):
            memory.chat(chat).append(role="user", content="first")
        with other._runtime.database.writing() as tx:
            tx.all("SELECT length FROM sessions WHERE chat = 'slow' FOR UPDATE")
            waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"
            slow = pool.submit(lambda: memory.chat("slow").append(role="user", content="the slow word"))
            while not tx.all(waiting):
                assert not slow.done()
            # By another handle: threads of one share a transaction.
            fast = pool.submit(lambda: other.chat("fast").append(role="user", content="the fast word"))
            while len(tx.all(waiting)) < 2 and not fast.done():
                pass
            memory.recall("word")
        slow.result()
        fast.result()
        assert {"the fast word", "the slow word"} <= set(found(memory.recall("word")))
        assert ask(memory, "word") == ask(other, "word")
