"""Freezing the index for processes that only ask: nothing changes but what they have to analyse."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Event, Memory
from holdfast.runtime import runtime_of
from programs import run

SUBJECTS = "invoice parser lighthouse marathon violin glacier".split()


def fill(memory: Memory, first: int, count: int) -> None:
    memory.chat("a").append(
        [
            {"role": "user", "content": f"The {SUBJECTS[n % 6]} number {n} is in room {n * 7 % 13}."}
            for n in range(first, first + count)
        ]
    )


def freeze(memory: Memory) -> None:
    runtime = runtime_of(memory)
    assert runtime is not None
    runtime.search().freeze(memory.scope.space)


@pytest.mark.parametrize("sizes", [(5, 300), (256, 1, 1), (700, 40, 40, 40)])
def test_freezing_changes_no_bit_of_a_result(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    frozen, other = Memory(tmp_path / "a.db"), Memory(tmp_path / "b.db")
    first = 0
    for size in sizes:
        for memory in (frozen, other):
            fill(memory, first, size)
        first += size
        freeze(frozen)
        freeze(frozen)
        found = [[(hit.seq, hit.score) for hit in one.recall("violin room 7")] for one in (frozen, other)]
        assert found[0] == found[1]
    assert frozen.verify().ok
    frozen.close()
    with Memory(tmp_path / "a.db") as again:
        found = [[(hit.seq, hit.score) for hit in one.recall("violin room 7")] for one in (again, other)]
        assert found[0] == found[1]
    other.close()


def test_the_next_process_analyses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Memory(path) as memory:
        fill(memory, 0, 300)
        memory.recall("violin")
        # Fewer than are frozen of themselves.
        fill(memory, 300, 40)
        freeze(memory)
    script = """
import sys
from holdfast import Memory
from holdfast.search import segment
def refuse(*_): raise AssertionError("analysed")
segment.read_document = refuse
with Memory(sys.argv[1]) as memory:
    print(len(memory.recall("violin room 7")))
"""
    assert run(script, path).strip() == "10"


_KILLED = """
import os, sys
from holdfast import Memory
with Memory(sys.argv[1]) as memory:
    # In the middle of the messages.
    memory.on("indexing", lambda event: event.indexing.done and os._exit(0))
    memory.recall("violin")
"""


@pytest.mark.slow
def test_an_index_that_is_killed_while_it_is_made_goes_on_and_says_so(tmp_path: Path) -> None:
    path, told = tmp_path / "a.db", list[Event]()
    with Memory(path, user="ada") as memory, Memory(tmp_path / "b.db", user="ada") as other:
        for one in (memory, other):
            fill(one, 0, 2_000)
        with Memory(path, user="ada", agent="coach") as agent, Memory(path, user="bob") as stranger:
            stranger.on("indexing", lambda _: pytest.fail("another user's"))
            agent.on("indexing", told.append)
            assert run(_KILLED.replace("argv[1])", "argv[1], user='ada')"), path) == ""
            agent.recall("violin")
        assert [(event.indexing.source, event.scope.user) for event in told if event.indexing] == [
            ("message", "ada")
        ] * len(told)
        steps = [(event.indexing.done, event.indexing.total) for event in told if event.indexing]
        assert steps[0][0] == 0 < steps[0][1] < 2_000
        assert steps == sorted(steps)
        assert steps[-1][0] == steps[-1][1]
        hits = [[(hit.seq, hit.score) for hit in one.recall("violin room 7")] for one in (memory, other)]
        assert hits[0] == hits[1]
        told.clear()
        memory.on("indexing", told.append)
        memory.recall("violin room 8")
        assert not told
        memory.erase(chat="a", messages=3)
        memory.recall("violin room 8")
        assert told
