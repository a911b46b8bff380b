"""Erasure while others read the same database, or while it is killed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import erasures
import pytest
from erasures import Marks, stored, unavailable

from holdfast import Memory, Message
from programs import start
from stored_texts import erasures_of

ada, no_patience = erasures.ada, erasures.no_patience

# Others who use the database at the same time


WAYS: dict[str, Callable[[Memory], object]] = {
    "an erased record": lambda memory: memory.erase(record=memory.records()[0].id),
    "a rewrite": lambda memory: memory.erase(rewrite=True),
    "closing and opening": lambda memory: memory.close(),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_another_reader_kept_in_the_file_is_in_no_read_and_goes_later(
    tmp_path: Path, no_patience: None, way: str
) -> None:
    """A file from which another program, such as a backup, reads for longer than an erasure waits."""
    file = tmp_path / "memory.db"
    with (
        Memory(file, user="ada", admin=True) as memory,
        closing(sqlite3.connect(file, isolation_level=None)) as other,
    ):
        memory.chat("secret").append(role="user", content="zqremainsqz")
        memory.chat("secret").scratchpad["temp:key"] = "value"
        memory.scoped(user="bob").chat("other").append(role="user", content="of another user")
        memory.remember("another", "finding")
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM messages").fetchall()
        receipt = unavailable("erased.*others read it", lambda: memory.erase(chat="secret"))
        assert (receipt.rewritten, list(receipt.remains)) == ((), ["file"])
        (kept,) = erasures_of(memory)
        assert dict(kept.remains) == dict(receipt.remains)
        assert (memory.chat("secret").history(), memory.recall("zqremainsqz")) == ([], [])
        assert dict(memory.chat("secret").scratchpad) == {}
        assert not memory.verify().ok
        other.execute("COMMIT")
        other.close()
        WAYS[way](memory)
        if way == "closing and opening":
            Memory(file, user="ada").close()
        assert b"zqremainsqz" not in stored(str(file))
    with Memory(file, user="ada") as again:
        assert again.verify().ok or way == "closing and opening", "which does not look whether any is left"


KILLED = """
import sys
from holdfast import Memory, Message
memory = Memory(sys.argv[1], user="ada")
for n in range(100):
    chat = memory.chat(f"chat{n}")
    chat.append([Message("user", f"marathon {i} zqkilledqz " + "x" * 2_000) for i in range(50)])
    memory.remember([f"marathon {n} finding {i}" for i in range(20)], "finding", chat=chat.id)
    chat.scratchpad["marathon"] = "yes"
    print(n, flush=True)
    memory.erase(chat=f"chat{n}")
"""


@pytest.mark.slow
@pytest.mark.parametrize("lines", [2, 5])
def test_a_killed_erasure_leaves_all_or_nothing(
    shared_location: str, reopen: Callable[[], Memory], lines: int
) -> None:
    with start(KILLED, shared_location) as program:
        assert program.stdout is not None
        for _ in range(lines):
            last = int(program.stdout.readline())
        program.kill()
        last = max([last, *(int(line) for line in program.stdout if line.endswith("\n"))])
    memory = reopen()
    assert {info.id for info in memory.chats()} <= {f"chat{last}", f"chat{last + 1}"}
    for n in range(last + 2):
        chat = memory.chat(f"chat{n}")
        left = len(chat.history()), len(memory.records(chat=chat.id)), len(chat.scratchpad)
        assert n > last or left in ({(0, 0, 0), (50, 20, 1)} if n == last else {(0, 0, 0)})
        assert len(memory.recall("marathon", chat=chat.id, limit=100)) == left[0] + left[1]
    assert not [problem for problem in memory.verify().problems if "interrupted" not in problem]
    memory.remember("so that there is something to erase", "finding")
    memory.erase(user="ada")
    assert b"zqkilledqz" not in stored(shared_location)
    assert memory.verify().problems == ()


BESIDE = """
import sys
from holdfast import Memory, Message
memory = Memory(sys.argv[1], user="ada")
def look():
    hits = memory.recall("marathon", limit=100)
    chat = memory.chat("secret")
    records = [hit.text for hit in hits if hit.source == "record"]
    print(len(hits), records, [m.seq for m in chat.window().messages], flush=True)
look()
while input() == "again":
    look()
"""


@pytest.mark.slow
def test_another_process_that_had_the_index_in_memory_finds_none_of_it(
    ada: Memory, shared_location: str
) -> None:
    mark = Marks("o")
    for chat in ("secret", "other"):
        ada.chat(chat).append([Message("user", f"marathon {n} {mark(f'{chat} {n}')}") for n in range(5)])
        ada.chat(chat).remember(f"marathon {chat}", "finding", messages=2)
    ada.remember([f"filler {n}" for n in range(300)], "finding")
    with Memory(shared_location, user="ada", admin=True) as handle, start(BESIDE, shared_location) as beside:
        assert beside.stdin is not None
        assert beside.stdout is not None
        handle.recall("marathon")

        def look() -> str:
            assert beside.stdin is not None
            assert beside.stdout is not None
            beside.stdin.write("again\n")
            beside.stdin.flush()
            return beside.stdout.readline()

        assert beside.stdout.readline().startswith("12 ")
        ada.erase(chat="secret", messages=(2, 3))
        assert look() == "9 ['marathon other'] [1, 4, 5]\n"
        assert len(handle.recall("marathon", limit=100)) == 9
        ada.erase(chat="secret")
        assert look() == "6 ['marathon other'] []\n"
        assert not any("secret" in place for place in mark.left_in(stored(shared_location)))
        handle.chat("secret").append(role="user", content="marathon again")
        assert look().startswith("7 ")
        assert beside.communicate("stop\n") == ("", "")
