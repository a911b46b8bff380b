"""Stores of LangGraph in a memory, beside its SqliteStore."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from langgraph.store.base import BaseStore, PutOp
from langgraph.store.sqlite import SqliteStore

from benchmarks.adapters import Call
from benchmarks.words import Words
from holdfast.integrations.langgraph import HoldfastStore
from holdfast.memory import Memory

_NAMESPACES = 20
_BATCH = 500  # items put at once


@contextmanager
def calls(folder: Path, size: int) -> Iterator[Sequence[Call]]:
    """Open a store of each with so many items, and return the calls of a turn.

    Neither has an embedder: theirs needs an extension of SQLite that not every Python can load.
    """
    texts = list(Words().messages(size))
    with (
        Memory(folder / "holdfast.db") as memory,
        SqliteStore.from_conn_string(str(folder / "theirs.db")) as theirs,
    ):
        theirs.setup()
        ours = HoldfastStore(memory)
        for store in (ours, theirs):
            for start in range(0, size, _BATCH):
                store.batch(
                    [_put(number, texts[number]) for number in range(start, min(start + _BATCH, size))]
                )

        def compared(name: str, call: Callable[[BaseStore, int], object]) -> Call:
            return Call(
                name, lambda number: call(ours, number), lambda number: call(theirs, number), "SqliteStore"
            )

        yield [
            compared("put a new item", lambda store, n: store.batch([_put(size + n, texts[n])])),
            compared("put an item again", lambda store, n: store.batch([_put(n, texts[n + 1])])),
            compared("get", lambda store, n: store.get(_namespace(n), str(n))),
            compared("search by a filter", lambda store, n: store.search(("users",), filter={"turn": n % 7})),
            compared(
                "search by a filter in a namespace",
                lambda store, n: store.search(_namespace(n), filter={"turn": n % 7}),
            ),
            compared("list namespaces", lambda store, _: store.list_namespaces(prefix=("users",))),
        ]


def _namespace(number: int) -> tuple[str, ...]:
    return "users", str(number % _NAMESPACES)


def _put(number: int, text: str) -> PutOp:
    return PutOp(_namespace(number), str(number), {"text": text, "turn": number % 7})
