"""What the round of a worker takes where it finds nothing to do, for each space that there is."""

from __future__ import annotations

import importlib
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from types import FrameType
from typing import Any

from benchmarks.clock import cost_of, middle
from benchmarks.measurement import Measurement, SpeedLab, compared
from benchmarks.peers import SERVER, is_there, new_database
from holdfast.memory import Memory

_NEWEST = "SELECT max(seq) FROM messages WHERE space = '/{}' AND chat = 'monday'"


def rounds(lab: SpeedLab) -> Iterator[Measurement]:
    """Look for work for everyone when all is done, beside a query for each space; and count statements."""
    path = lab.folder / "idle.db"
    yield from _measured(lab, str(path), lambda: sqlite3.connect(path), "")
    if is_there("psycopg") and (lab.url or is_there(SERVER)):
        psycopg = importlib.import_module("psycopg")
        with new_database(lab.url) as url:
            connect = partial(psycopg.connect, url, autocommit=True, options="-c search_path=holdfast")
            yield from _measured(lab, url, connect, "PostgreSQL: ")


def _measured(lab: SpeedLab, location: str, connect: Callable[[], Any], name: str) -> Iterator[Measurement]:
    spaces = lab.plan.idle
    lab.progress(f"learning from {spaces:,} users, until nothing is left")
    users = [f"user-{number}" for number in range(spaces)]
    with Memory(location, durability="normal") as memory, closing(connect()) as bare:
        for user, text in zip(users, lab.words.messages(spaces), strict=True):
            chat = memory.scoped(user=user).chat("monday")
            chat.append(role="user", content=text)
            chat.end()
        while not memory.learning.work(everyone=True).noop:
            pass
        works: tuple[Callable[[], object], ...] = (
            lambda: memory.learning.work(everyone=True),
            lambda: [bare.execute(_NEWEST.format(user)).fetchall() for user in users],
        )
        taken = [[cost_of(work) / spaces for work in works] for _ in range(lab.plan.rounds)]
        count = statements(works[0]) / spaces
    ours, theirs = (middle(costs) for costs in zip(*taken, strict=True))
    title = f"{name}idle space of {spaces:,}"
    yield compared(f"{title}, wall", ours, "a SELECT", theirs, "µs", clock="wall")
    yield Measurement(f"{title}, statements", count, "statements")


def statements(work: Callable[[], object]) -> int:
    """Count the statements that work runs in this thread; on PostgreSQL without BEGIN and COMMIT."""
    count = 0

    def look(frame: FrameType, event: str, called: object) -> None:
        nonlocal count
        on_sqlite = event == "c_call" and getattr(called, "__name__", "").startswith("execute")
        own = frame.f_code.co_name == "execute" and frame.f_globals.get("__name__") == "psycopg.cursor"
        count += on_sqlite or (own and event == "call")

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
