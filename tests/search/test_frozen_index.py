"""Freezing the index for processes that only ask: nothing changes but what they have to analyse."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Memory
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


@pytest.mark.parametrize("sizes", [(300, 5), (5, 300), (256, 1, 1), (700, 40, 40, 40), (3,)])
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
