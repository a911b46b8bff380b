"""Threads that append at once share commits, as if each had written one after the other."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat_messages import contents, seqs
from holdfast import Conflict, Damaged, Memory, Message, Unavailable
from holdfast.store import table_rows
from holdfast.store.database import Connection
from programs import run, start
from soak import cases

Call = Callable[[], Any]
COUNT_CALLS = "SELECT count(*) FROM calls WHERE space = '/ada'"


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Let nobody write to a file within the block."""
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def in_one_group(memory: Memory, file: Path, calls: Sequence[Call]) -> list[Future[Any]]:
    """Make calls of as many threads wait for one commit, in their order."""
    database: Any = memory._runtime.database
    return grouped(lambda: database._group, locked(file), calls)


def grouped(group: Callable[[], Any], lock: AbstractContextManager[None], calls: Sequence[Call]) -> list[Any]:
    """Make calls of as many threads while what the first waits for is locked."""
    with ThreadPoolExecutor(len(calls)) as pool:
        with lock:
            futures = []
            for n, call in enumerate(calls):
                futures.append(pool.submit(call))
                # The first waits for the lock, the others for the first.
                while not group() or group()._leader is None or len(group()._waiting) < n:
                    pass
        for future in futures:
            future.exception()
    return futures


def outcome(call: Call) -> object:
    """Return what came of a call, in a form that can be compared."""
    try:
        stored = call()
    except Conflict as error:
        return str(error)
    messages = stored if isinstance(stored, list) else [stored]
    return [(message.seq, message.content) for message in messages]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def memory(file: Path) -> Iterator[Memory]:
    with Memory(file, user="ada") as opened:
        yield opened


def commits(memory: Memory) -> list[str]:
    """Return a list to which each commit from now on is added."""
    database: Any = memory._runtime.database
    made: list[str] = []
    database._writer.set_trace_callback(lambda sql: made.append(sql) if sql == "COMMIT" else None)
    return made


def saying(memory: Memory, text: str, chat: str = "monday") -> Call:
    return lambda: memory.chat(chat).append(role="user", content=text)


def test_all_that_wait_are_committed_at_once(memory: Memory, file: Path) -> None:
    made = commits(memory)
    futures = in_one_group(memory, file, [saying(memory, str(n)) for n in range(8)])
    assert [future.result().seq for future in futures] == list(range(1, 9))
    assert contents(memory.chat("monday").history()) == [str(n) for n in range(8)]
    assert len(made) == 1
    assert memory.verify().problems == ()


# What each of up to six threads appends: to which chat, under which ids ("" for none), with which words.
APPENDS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.lists(st.tuples(st.sampled_from(["", "k1", "k2"]), st.sampled_from("xy")), min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=6,
)


@given(APPENDS)
@settings(max_examples=cases(10, 120))
def test_a_group_does_what_its_calls_do_one_after_the_other(
    appends: list[tuple[str, list[tuple[str, str]]]],
) -> None:
    def calls(memory: Memory) -> list[Call]:
        return [
            lambda chat=chat, batch=batch: memory.chat(chat).append(  # type: ignore[misc]
                [Message("user", text, id=id) for id, text in batch]
            )
            for chat, batch in appends
        ]

    with TemporaryDirectory() as folder, Memory(":memory:", user="ada") as alone:
        file = Path(folder, "memory.db")
        with Memory(file, user="ada") as memory:
            futures = in_one_group(memory, file, calls(memory))
            assert [outcome(future.result) for future in futures] == [outcome(one) for one in calls(alone)]
            for chat in "ab":
                stored = memory.chat(chat).history()
                assert contents(stored) == contents(alone.chat(chat).history())
                assert seqs(stored) == list(range(1, len(stored) + 1))
            assert memory.verify().problems == ()


# Errors


def test_what_a_failed_call_has_written_is_undone_and_nothing_else(memory: Memory, file: Path) -> None:
    def failing(tx: Connection) -> None:
        table_rows.add(tx, "calls", {"space": "/ada", "chat": "monday", "call": "c", "seq": 1})
        raise LookupError("of this call")

    def fail() -> None:
        memory._runtime.database.write_together(failing)

    calls = [saying(memory, "a"), fail, saying(memory, "b"), fail]
    first, second, third, fourth = in_one_group(memory, file, calls)
    assert (first.result().seq, third.result().seq) == (1, 2)
    for failed in (second, fourth):
        with pytest.raises(LookupError, match="of this call"):
            failed.result()
    assert memory._runtime.database.all(COUNT_CALLS) == [(0,)]


@pytest.mark.parametrize(
    "error", [Unavailable("The disk failed.", "Repair it."), OSError("failed"), SystemExit()]
)
def test_an_error_that_ends_the_transaction_fails_all_and_stores_nothing(
    memory: Memory, file: Path, error: BaseException
) -> None:
    def failing(tx: Any) -> None:
        tx.all("ROLLBACK")
        raise error

    def fail() -> None:
        memory._runtime.database.write_together(failing)

    futures = in_one_group(
        memory, file, [saying(memory, "a"), saying(memory, "b"), fail, saying(memory, "c")]
    )
    errors = [future.exception() for future in futures]
    assert errors[0] is error
    assert [type(one) for one in errors[1:3]] == [Unavailable] * 2
    assert len({id(one) for one in errors[:3]}) == 3
    # Who came after it was not a part of it.
    assert futures[3].result().seq == 1
    assert contents(memory.chat("monday").history()) == ["c"]


COMMIT_FAILS = """
import resource, sys, threading
from holdfast import Memory, Unavailable
memory = Memory(sys.argv[1], user="ada")
chat = memory.chat("monday")
chat.append(role="user", content="x" * 40_000)
before = chat.stats().messages
outcomes = []
def work(thread):
    for n in range(10):
        try:
            outcomes.append(chat.append(role="user", content=f"{thread} {n} " + "x" * 5_000).content)
        except Unavailable as error:
            outcomes.append(type(error))
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
# No file may grow: the write-ahead log cannot take what a commit writes.
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, unlimited[1]))
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert outcomes == [Unavailable] * 80, outcomes
resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
assert chat.stats().messages == before
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
history = chat.history()
assert [one.seq for one in history] == list(range(1, before + 81))
assert {one.content for one in history[before:]} == {one for one in outcomes if one is not Unavailable}
assert memory.verify().problems == ()
"""


@pytest.mark.slow
def test_a_commit_that_fails_fails_all_and_stores_nothing(file: Path) -> None:
    run(COMMIT_FAILS, file)


# Threads that are interrupted, and a fork


INTERRUPTED = """
import random, signal, sys, threading
from concurrent.futures import ThreadPoolExecutor
from holdfast import Memory
def interrupt(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
memory = Memory(sys.argv[1], user="ada")
chat = memory.chat("monday")
# An interrupt in the middle of an import leaves its lock behind in CPython.
chat.append(role="user", content="mine")
chance = random.Random(7)
stop = threading.Event()
stored = [[] for _ in range(4)]
def work(thread):
    n = 0
    while not stop.is_set():
        n += 1
        stored[thread].append(chat.append(role="user", content=f"{thread} {n}"))
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for thread in threads: thread.start()
mine, interrupted = [], 0
while interrupted < 100:
    try:
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00001, 0.003))
        mine.append(chat.append(role="user", content="mine"))
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupted += 1
stop.set()
for thread in threads: thread.join()
history = {one.seq: one.content for one in chat.history()}
assert list(history) == list(range(1, len(history) + 1))
for one in [*mine, *(one for part in stored for one in part)]:
    assert history.pop(one.seq) == one.content
# Of what was interrupted some were stored, and nothing of the others'.
assert set(history.values()) <= {"mine"}
assert all([one.content for one in part] == [f"{n} {i + 1}" for i in range(len(part))]
           for n, part in enumerate(stored))
with Memory(sys.argv[1], user="ada") as other:
    other.chat("monday").append(role="user", content="from another process")
with ThreadPoolExecutor(1) as pool:
    pool.submit(chat.append, {"role": "user", "content": "from another thread"}).result()
assert memory.verify().ok
print("ok")
"""


@pytest.mark.slow
def test_an_interrupt_touches_nothing_that_other_threads_write(file: Path) -> None:
    # What an interrupt says in the middle of a clean-up goes to stderr.
    output, errors = start(INTERRUPTED, file).communicate()
    assert output == "ok\n", errors


FORKED = """
import os, sqlite3, sys, threading, warnings
from holdfast import Closed, Memory
warnings.simplefilter("ignore")
memory = Memory(sys.argv[1], user="ada")
chat = memory.chat("monday")
chat.append(role="user", content="before")
other = sqlite3.connect(sys.argv[1], isolation_level=None)
other.execute("BEGIN IMMEDIATE")
leading = threading.Thread(target=chat.append, kwargs={"role": "user", "content": "leading"})
leading.start()
while memory._runtime.database._group._leader is None: pass
child = os.fork()
if not child:
    def work():
        try:
            chat.append(role="user", content="of the child")
        except Closed:
            os._exit(0)
    threading.Thread(target=work, daemon=True).start()
    threading.Event().wait(20)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
other.execute("ROLLBACK")
leading.join()
print([one.content for one in chat.history()])
"""


def test_a_thread_of_a_forked_process_waits_for_nobody(file: Path) -> None:
    assert run(FORKED, file) == "['before', 'leading']\n"


# On a server, where threads share a commit if they append to one space


@contextmanager
def locked_space(url: str) -> Iterator[None]:
    """Let nobody write to the space of Ada within the block."""
    with psycopg.connect(url) as other:
        other.execute("SELECT 1 FROM holdfast.spaces WHERE space = '/ada' FOR UPDATE")
        yield


def in_one_group_there(memory: Memory, url: str, calls: Sequence[Call]) -> list[Future[Any]]:
    """Make calls of as many threads wait for one commit on a server, in their order."""
    database: Any = memory._runtime.database
    return grouped(lambda: database._appends._groups.get("/ada"), locked_space(url), calls)


def transactions(url: str) -> int:
    """Return how many transactions have stored the messages there are."""
    with psycopg.connect(url) as other:
        row = other.execute("SELECT count(DISTINCT xmin::text) FROM holdfast.messages").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.slow
def test_threads_that_append_to_a_space_of_a_server_share_a_commit(postgres_url: str) -> None:
    with Memory(postgres_url, user="ada") as memory:
        saying(memory, "0")()
        futures = in_one_group_there(memory, postgres_url, [saying(memory, str(n)) for n in range(1, 9)])
        assert [future.result().seq for future in futures] == list(range(2, 10))
        assert contents(memory.chat("monday").history()) == [str(n) for n in range(9)]
        assert transactions(postgres_url) == 3  # the first message, the first thread, and all that waited
        assert memory.verify().problems == ()
        # Nothing is left of a space to which no thread appends.
        assert not memory._runtime.database._appends._groups  # type: ignore[attr-defined]


@pytest.mark.slow
def test_an_append_that_a_server_refuses_fails_alone(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Memory(postgres_url, user="ada") as memory:
        for chat in ("monday", "tuesday"):
            memory.chat(chat).append(role="user", content="before")
        with psycopg.connect(postgres_url) as other:
            other.execute("UPDATE holdfast.sessions SET length = 0 WHERE chat = 'tuesday'")
        calls = [
            saying(memory, "a"),
            saying(memory, "b"),
            saying(memory, "x", "tuesday"),
            saying(memory, "c"),
        ]
        futures = in_one_group_there(memory, postgres_url, calls)
        with pytest.raises(Damaged, match="contradict"):
            futures[2].result()
        stored = [futures[n].result() for n in (0, 1, 3)]
        assert sorted(message.seq for message in stored) == [2, 3, 4]
        assert sorted(contents(memory.chat("monday").history())) == ["a", "b", "before", "c"]
        assert contents(memory.chat("tuesday").history()) == ["before"]
    assert caplog.text == ""
