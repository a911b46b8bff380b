"""A damaged index is noticed and made again from the log; what it says is never served."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import replace
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from holdfast import Memory
from holdfast.errors import Unavailable
from holdfast.search import index
from holdfast.search import segment as segments
from holdfast.store import segments as stored
from holdfast.store.database import Connection, Database
from holdfast.store.sqlite import SQLite
from index_damage import Damage, damage, flipped, forged, in_row, insert, longer, remove
from recall_corpora import Said, ask, ask_all, forget, found, start_python, tell

pytest_plugins = ["recall_fixtures"]

SAID = [Said(f"chat{n // 4 % 4}", f"word{n} berlin {'marathon ' * (n % 3)}", minutes=n) for n in range(60)]
QUERIES = ("berlin", "word7 marathon", "word59", "word0 word30")


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "FREEZE", 8)
    monkeypatch.setattr(index, "WORTH_STORING", 8)
    monkeypatch.setattr(index, "LARGEST", 16)


@pytest.fixture
def indexed(space: Memory) -> Memory:
    """Store messages with an index of several segments, and let go of what this process holds of it."""
    for start in range(0, len(SAID), 8):
        tell(space, SAID[start : start + 8])
        space.recall("berlin")
    assert len(stored.load(space._runtime.database, space.scope.space, segments.VERSION, 0)) >= 4
    return space


def remove_all(tx: Connection, space: str) -> None:
    tx.all("DELETE FROM segments WHERE space = :space", space=space)


NOTICED: dict[str, Damage] = {
    "first byte": in_row(0, flipped(0)),
    "truncated": in_row(1, lambda row: row._replace(body=row.body[:-7])),
    "empty": in_row(1, lambda row: row._replace(body=b"")),
    "wrong checksum": in_row(1, lambda row: row._replace(checksum=row.checksum ^ 1)),
    "newer version": in_row(1, lambda row: row._replace(version=segments.VERSION + 1)),
    "first row gone": remove(0),
    "middle row gone": remove(1),
    "row says it ends later": in_row(1, lambda row: row._replace(last=row.last + 1)),
    "overlapping row": insert(2, 12),
    "row of negative documents": insert(-20, -10),
    "row far behind the log": insert(10**9, 10**9 + 15),
    "documents that the log does not have": in_row(
        -1, lambda row: forged(longer)(row)._replace(last=row.last + 1000)
    ),
    "forged documents out of range": in_row(
        1, forged(lambda s: replace(s, places=s.places + np.uint32(s.count)))
    ),
    "forged beginning": in_row(1, forged(lambda s: replace(s, first=s.first + 1))),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", NOTICED.values(), ids=NOTICED.keys())
def test_a_damaged_index_is_made_again_from_the_log(
    indexed: Memory, change: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    before = ask_all(indexed, QUERIES)
    forget(indexed)
    damage(indexed, change)
    with caplog.at_level(logging.WARNING, "holdfast"):
        assert ask_all(indexed, QUERIES) == before
        tell(indexed, SAID[:20])  # enough to freeze again, which compares what is stored
        after = ask_all(indexed, QUERIES)
    assert "made again from the log" in caplog.text
    assert indexed.verify().ok
    forget(indexed)
    caplog.clear()
    with caplog.at_level(logging.WARNING, "holdfast"):
        assert ask_all(indexed, QUERIES) == after
    assert caplog.text == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        "truncated",
        "newer version",
        "middle row gone",
        "overlapping row",
        "documents that the log does not have",
    ],
)
def test_damage_while_a_process_holds_the_index_is_survived(indexed: Memory, kind: str) -> None:
    change = NOTICED[kind]
    before = ask_all(indexed, QUERIES)
    damage(indexed, change)
    assert ask_all(indexed, QUERIES) == before
    tell(indexed, SAID[:40])
    after = ask_all(indexed, QUERIES)
    indexed.verify(repair=True)
    assert ask_all(indexed, QUERIES) == after
    assert indexed.verify().ok


def test_a_lost_index_is_made_again_without_a_word(indexed: Memory, caplog: pytest.LogCaptureFixture) -> None:
    before = ask_all(indexed, QUERIES)
    forget(indexed)
    damage(indexed, remove(-1))
    assert ask_all(indexed, QUERIES) == before
    forget(indexed)
    damage(indexed, remove_all)
    with caplog.at_level(logging.INFO, "holdfast"):
        assert ask_all(indexed, QUERIES) == before
    assert caplog.text == ""
    assert indexed.verify().checked["index segments"] > 0


# An index that cannot be stored


def refuse_writing(database: Database, *, refused: bool) -> None:
    """Let the database itself refuse to write, as it does when its disk is full or mounted read-only."""
    assert isinstance(database, SQLite)
    database._writer.execute(f"PRAGMA query_only = {'ON' if refused else 'OFF'}")


def test_an_index_that_cannot_be_stored_answers_all_the_same(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db") as memory:
        tell(memory, SAID)
        refuse_writing(memory._runtime.database, refused=True)
        hits = ask_all(memory, QUERIES)
        assert all(hits)
        assert stored.load(memory._runtime.database, memory.scope.space, segments.VERSION, 0) == []
        refuse_writing(memory._runtime.database, refused=False)
        tell(memory, SAID[:8])
        memory.recall("berlin")
        assert len(stored.load(memory._runtime.database, memory.scope.space, segments.VERSION, 0)) > 0
        assert memory.verify().ok


def test_a_damaged_index_that_cannot_be_removed_is_not_served(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db") as memory:
        tell(memory, SAID)
        before = ask_all(memory, QUERIES)
        damage(memory, in_row(0, flipped(-1)))
        forget(memory)
        refuse_writing(memory._runtime.database, refused=True)
        with pytest.raises(Unavailable):
            ask_all(memory, QUERIES)
        refuse_writing(memory._runtime.database, refused=False)
        assert ask_all(memory, QUERIES) == before


# More than one process


def test_a_rebuild_by_one_is_noticed_by_those_that_loaded_what_was_wrong(shared_location: str) -> None:
    with Memory(shared_location) as one, Memory(shared_location) as two:
        tell(one, SAID)
        expected = ask_all(one, QUERIES)
        for _ in range(2):
            damage(one, in_row(0, forged(lambda s: replace(s, words=s.words + np.uint32(50)))))
            forget(two)
            assert ask_all(two, QUERIES) != expected
            assert not one.verify().ok
            one.verify(repair=True)
            assert ask_all(two, QUERIES) == expected


def test_segments_of_two_processes_are_not_mixed(shared_location: str) -> None:
    """Both hold the same documents in their tails, and freeze them together with different ones."""
    with Memory(shared_location) as one, Memory(shared_location) as two:
        told = 0

        def tell_and_ask(until: int, *memories: Memory) -> None:
            nonlocal told
            tell(one, SAID[told:until])
            told = until
            for memory in memories:
                memory.recall("berlin")

        tell_and_ask(16, one, two)  # the first segment, which is not joined with others
        tell_and_ask(20, one, two)  # in both tails
        tell_and_ask(25, two)  # two freezes 17 to 25
        tell_and_ask(28, one)  # one would freeze 17 to 28
        tell_and_ask(33, two)
        assert one.verify().problems == ()
        tell_and_ask(50, one, two)
        assert one.verify().problems == ()
        assert one.verify().checked["indexed messages"] > 40
        assert ask_all(one, QUERIES) == ask_all(two, QUERIES)


def test_whose_segment_came_second_goes_on_from_the_first(shared_location: str) -> None:
    with Memory(shared_location) as one, Memory(shared_location) as two:
        for n in range(0, 32, 8):
            tell(one, SAID[n : n + 8])
            one.recall("berlin")
            two.recall("berlin")
        one.close()
        tell(two, SAID[32:])
        two.recall("berlin")
        assert two.verify().checked["indexed messages"] > len(SAID) - 8


# A log that is damaged


def test_a_lost_message_does_not_shift_those_behind_it(indexed: Memory) -> None:
    forget(indexed)
    damage(indexed, remove_all)
    damage(indexed, lambda tx, space: tx.all("DELETE FROM messages WHERE space = :s AND doc = 20", s=space))
    for n in (*range(19), *range(20, len(SAID))):
        assert indexed.recall(f"word{n}", limit=1)[0].text == SAID[n].text
    assert SAID[19].text not in found(indexed.recall("word19"))


def test_a_lost_session_does_not_hinder_a_search(indexed: Memory) -> None:
    tell(indexed, [Said("lost", "a lost lantern")] * 3)
    damage(
        indexed, lambda tx, space: tx.all("DELETE FROM sessions WHERE space = :s AND chat = 'lost'", s=space)
    )
    assert {hit.chat for hit in indexed.recall("lantern")} == {"lost"}
    tell(indexed, [Said("new", "a lantern")])
    assert {hit.chat for hit in indexed.recall("lantern")} == {"lost", "new"}


@pytest.mark.parametrize("calls", ["[[lantern", json.dumps([["c1", "read", {"path": "a\ud83d"}]])])
def test_tool_calls_that_cannot_be_read_do_not_hinder_a_search(space: Memory, calls: str) -> None:
    tell(space, SAID[:3])
    change = "UPDATE messages SET calls = :calls WHERE space = :s AND doc = 1"
    damage(space, lambda tx, space: tx.all(change, s=space, calls=calls))
    assert space.recall("word2", limit=1)[0].text == SAID[2].text


# A process that is stopped

APPEND_AND_FREEZE = """
import sys
from holdfast import Memory
from holdfast.search import index
index.FREEZE = index.WORTH_STORING = 4
index.LARGEST = 16
with Memory(sys.argv[1], user="ada") as space:
    for n in range(10_000):
        space.chat(f"chat{n % 3}").append(role="user", content=f"word{n} berlin")
        print(n, flush=True)
        space.recall("berlin")
"""


@pytest.mark.slow
@pytest.mark.parametrize("lines", [5, 23])
def test_a_process_that_is_killed_leaves_all_it_acknowledged(shared_location: str, lines: int) -> None:
    with start_python(APPEND_AND_FREEZE, shared_location) as process:
        assert process.stdout is not None
        for _ in range(lines):
            process.stdout.readline()
        process.kill()
    with Memory(shared_location, user="ada") as memory:
        for n in range(lines):
            assert memory.recall(f"word{n}")[0].text == f"word{n} berlin"
        assert memory.verify().ok
        before = ask(memory, "berlin")
        memory.verify(repair=True)
        assert ask(memory, "berlin") == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "count"),
    [
        ("extend", 20),
        ("merge", 20),
        ("_freeze", 20),
        ("_load", 20),
        ("read_words", 3),
    ],
)
@pytest.mark.parametrize("held", [True, False])
def test_an_interrupted_search_leaves_nothing_half_done(
    space: Memory, monkeypatch: pytest.MonkeyPatch, function: str, count: int, held: bool
) -> None:
    monkeypatch.setattr(index, "LARGEST", 1000)  # so that something is merged
    for start in range(0, 40, 5):
        tell(space, SAID[start : start + 5])
        space.recall("berlin")
    if not held:
        forget(space)
    tell(space, SAID[40 : 40 + count])

    def interrupt(frame: FrameType, event: str, argument: object) -> None:
        if frame.f_code.co_name == function and "holdfast" in frame.f_code.co_filename:
            sys.settrace(None)
            raise KeyboardInterrupt

    tracing = sys.gettrace()
    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            space.recall("berlin")
    finally:
        sys.settrace(tracing)
    after = ask_all(space, QUERIES)
    space.verify(repair=True)
    assert ask_all(space, QUERIES) == after
    assert space.verify().ok
