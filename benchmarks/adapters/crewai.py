"""Storages of CrewAI's memory, beside its LanceDBStorage in a folder."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from crewai.memory.storage.backend import StorageBackend
from crewai.memory.storage.lancedb_storage import LanceDBStorage
from crewai.memory.types import MemoryRecord

from benchmarks.adapters import Call
from holdfast.integrations.crewai import HoldfastStorage
from holdfast.memory import Memory

_SIZE = 384  # numbers of a vector, as many as small embedders have
_SCOPES = 20


@contextmanager
def calls(folder: Path, size: int) -> Iterator[Sequence[Call]]:
    """Open a storage of each with so many records, and return the calls of a memory."""
    with Memory(folder / "holdfast.db") as memory:
        ours = HoldfastStorage(memory)
        theirs = LanceDBStorage(path=folder / "theirs", vector_dim=_SIZE)
        for storage in (ours, theirs):
            for start in range(0, size, 1_000):
                storage.save([_record(n) for n in range(start, min(start + 1_000, size))])

        def compared(name: str, call: Callable[[StorageBackend, int], object]) -> Call:
            return Call(name, lambda n: call(ours, n), lambda n: call(theirs, n), "LanceDBStorage")

        yield [
            compared("save a record", lambda storage, n: storage.save([_record(size + n)])),
            compared("search for 10", lambda storage, n: storage.search(_vector(-n))),
            compared("search for 10 in a scope", lambda storage, n: storage.search(_vector(-n), "/team/7")),
            compared("get a record", lambda storage, n: storage.get_record(f"r{n}")),
            compared("note that 10 were read", lambda storage, n: storage.touch_records(_ids(n))),
            compared("list 200 of a scope", lambda storage, _: storage.list_records("/team/7")),
        ]


def _ids(number: int) -> list[str]:
    return [f"r{number + n}" for n in range(10)]


def _record(number: int) -> MemoryRecord:
    text = f"Record {number} about the marathon in Berlin, and how to train for it."
    scope = f"/team/{number % _SCOPES}"
    return MemoryRecord(id=f"r{number}", content=text, scope=scope, embedding=_vector(number))


def _vector(number: int) -> list[float]:
    chance = random.Random(number)
    return [chance.gauss(0, 1) for _ in range(_SIZE)]
