"""Threads of LangGraph's graphs in a memory, beside its SqliteSaver."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.base import create_checkpoint, empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver

from benchmarks.adapters import Call
from benchmarks.clock import Cost, cost_of, middle
from benchmarks.measurement import Measurement, measured
from holdfast.integrations.langgraph import HoldfastSaver
from holdfast.memory import Memory

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint

_LISTED = 5  # checkpoints
_LAST = 50  # steps whose time and bytes are measured


class GrowingThread:
    """A thread whose list of messages grows by one at each step, as a graph stores it."""

    def __init__(self, saver: BaseCheckpointSaver[str]) -> None:
        self.saver = saver
        self.messages: list[BaseMessage] = []
        self._checkpoint: Checkpoint = empty_checkpoint()
        self._config: RunnableConfig = {"configurable": {"thread_id": "trip", "checkpoint_ns": ""}}

    def add(self, count: int = 1) -> None:
        """Add messages without storing a checkpoint."""
        number = len(self.messages)
        self.messages = [*self.messages, *map(_message, range(number, number + count))]

    def step(self) -> None:
        """Store a checkpoint with one message more."""
        self.add()
        step = len(self.messages)
        before = self._checkpoint["channel_versions"].get("messages")
        version = self.saver.get_next_version(before, None)  # type: ignore[arg-type]  # its versions are texts
        made = create_checkpoint(self._checkpoint, None, step)
        made["channel_values"] = {"messages": self.messages}
        made["channel_versions"] = {"messages": version}
        self._checkpoint = made
        metadata = {"source": "loop", "step": step, "parents": {}}
        self._config = self.saver.put(self._config, made, metadata, {"messages": version})  # type: ignore[arg-type]  # a dict

    def get(self) -> None:
        """Read the newest checkpoint."""
        self.saver.get_tuple({"configurable": {"thread_id": "trip", "checkpoint_ns": ""}})

    def listed(self) -> None:
        """Read the newest checkpoints."""
        list(self.saver.list({"configurable": {"thread_id": "trip", "checkpoint_ns": ""}}, limit=_LISTED))


@contextmanager
def threads(folder: Path) -> Iterator[tuple[GrowingThread, GrowingThread]]:
    """Open a thread of each, ours first."""
    with (
        Memory(folder / "holdfast.db") as memory,
        closing(sqlite3.connect(folder / "theirs.db", check_same_thread=False)) as connection,
    ):
        yield GrowingThread(HoldfastSaver(memory)), GrowingThread(SqliteSaver(connection))


@contextmanager
def calls(folder: Path, size: int) -> Iterator[Sequence[Call]]:
    """Fill a thread of each with so many messages, and return the calls of a run."""
    with threads(folder) as (ours, theirs):
        for thread in (ours, theirs):
            thread.add(size - _LISTED)
            for _ in range(_LISTED):
                thread.step()
        yield [
            Call("put", lambda _: ours.step(), lambda _: theirs.step(), "SqliteSaver"),
            Call("get_tuple", lambda _: ours.get(), lambda _: theirs.get(), "SqliteSaver"),
            Call(f"list of {_LISTED}", lambda _: ours.listed(), lambda _: theirs.listed(), "SqliteSaver"),
        ]


def more(folder: Path, size: int) -> Iterator[Measurement]:
    """Measure so many steps of ours, one message each, and some of theirs at the end: time and bytes."""
    with threads(folder) as (ours, theirs):
        times: list[Cost] = []
        for _ in range(size):
            if len(times) == size - _LAST:
                before = _bytes(folder / "holdfast.db")
            times.append(cost_of(ours.step))
        grown = (_bytes(folder / "holdfast.db") - before) / _LAST
        theirs.add(size - _LAST)
        theirs.step()
        start = _bytes(folder / "theirs.db")
        last = middle([cost_of(theirs.step) for _ in range(_LAST)])
        theirs_grown = (_bytes(folder / "theirs.db") - start) / _LAST
    name, against = f"langgraph-checkpoints: put, steps {{}} of {size:,}", "SqliteSaver"
    yield measured(name.format(f"1 to {_LAST}"), middle(times[:_LAST]))
    yield measured(
        name.format(f"{size - _LAST + 1:,} to {size:,}"), middle(times[-_LAST:]), against=against, theirs=last
    )
    yield Measurement(
        f"langgraph-checkpoints: a step near {size:,}",
        grown,
        "bytes",
        against=against,
        against_value=theirs_grown,
    )


def _bytes(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        pages, page = (
            connection.execute(f"PRAGMA {one}").fetchone()[0] for one in ("page_count", "page_size")
        )
    return int(pages * page)


def _message(number: int) -> BaseMessage:
    text = f"Message {number} about the marathon in Berlin, and how to train for it."
    return (AIMessage if number % 2 else HumanMessage)(content=text, id=f"message-{number}")
