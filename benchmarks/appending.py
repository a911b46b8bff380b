"""How fast messages are stored: one, beside a bare SQLite insert of the same row, and many at once."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Literal

from benchmarks.clock import Cost, middle, timed
from benchmarks.measurement import Measurement, SpeedLab, at_least, at_most, measured
from holdfast.memory import Memory
from holdfast.store.checksums import sealer
from holdfast.store.schema import tables
from holdfast.text.tokens import estimate_tokens

_BARS = {"full": 0.5, "normal": 0.25}
_SEALING = 0.03  # of an append
_TOGETHER = 25  # µs of CPU time for a message of a batch
_NAMES = "space, chat, seq, doc, id, role, name, at, tokens, content, calls, call_id, answers, raw, meta"
_TABLE = """
    CREATE TABLE messages (
        space TEXT NOT NULL, chat TEXT NOT NULL, seq BIGINT NOT NULL, doc BIGINT NOT NULL, id TEXT NOT NULL,
        role TEXT NOT NULL, name TEXT, at BIGINT NOT NULL, tokens BIGINT NOT NULL, content TEXT NOT NULL,
        calls TEXT, call_id TEXT, answers TEXT, raw TEXT, meta TEXT, PRIMARY KEY (space, chat, seq))"""
_INSERT = f"INSERT INTO messages ({_NAMES}) VALUES ({', '.join('?' * 15)})"
_Row = tuple[object, ...]


def measure(lab: SpeedLab) -> Iterator[Measurement]:
    """Append a block of messages at once, and one per transaction against SQLite without and with FTS5."""
    for durability in ("full", "normal"):
        lab.progress(f"appending one message per transaction, durability {durability}")
        yield from _at(lab, durability)
    lab.progress("appending many messages at once")
    yield _together(lab)


def _together(lab: SpeedLab) -> Measurement:
    texts = list(lab.words.messages(lab.plan.rounds * lab.plan.block, stream=2))
    costs = []
    with Memory(str(lab.folder / "append-together.db"), user="ada") as memory:
        chat = memory.chat("monday")
        for start in range(0, len(texts), lab.plan.block):
            block = [{"role": "user", "content": text} for text in texts[start : start + lab.plan.block]]
            with timed() as cost:
                chat.append(block)
            costs.append(cost / len(block))
    each = middle(costs)
    title = f"append {lab.plan.block} messages at once, each"
    return measured(title, each, "µs", bar=at_most(each.cpu * 1000, _TOGETHER, "µs"))


def _at(lab: SpeedLab, durability: Literal["full", "normal"]) -> Iterator[Measurement]:
    costs = _race(lab, durability)
    ours, bare, with_fts = (middle(costs[name]) for name in ("holdfast", "bare", "fts5"))
    title = f"append one message, durability {durability}"
    limit = _BARS[durability]
    for clock in ("cpu", "wall"):
        ratio = getattr(bare, clock) / getattr(ours, clock)
        name = f"{title} (ratio of {'CPU' if clock == 'cpu' else clock} time)"
        bar = at_least(ratio, limit, "× as fast")
        yield measured(
            name, ours, "µs", against="bare INSERT", theirs=bare, ratio=ratio, ratio_of="× as fast", bar=bar
        )
        ratio = getattr(with_fts, clock) / getattr(ours, clock)
        bar = at_least(ratio, 1, "× as fast")
        yield measured(
            name,
            ours,
            "µs",
            against="INSERT + FTS5",
            theirs=with_fts,
            ratio=ratio,
            ratio_of="× as fast",
            bar=bar,
        )

    sealing = middle(costs["checksum"])
    yield measured(
        f"checksum of one message, durability {durability}",
        sealing,
        "µs",
        against="append",
        theirs=ours,
        ratio=sealing.cpu / ours.cpu,
        ratio_of="of the CPU time",
        bar=at_most(sealing.cpu / ours.cpu, _SEALING, "of the CPU time"),
    )


def _race(lab: SpeedLab, durability: Literal["full", "normal"]) -> dict[str, list[Cost]]:
    """Append the same texts with each contender in turns, a block each; return the cost per append and block.

    What is measured is a database in use. While the write-ahead log of a new one grows to its full size, each
    commit at full durability also writes the file's metadata, which costs each contender the same and hides
    what they differ in.
    """
    rounds = lab.plan.settling + lab.plan.rounds
    texts = list(lab.words.messages(rounds * lab.plan.block, stream=1))
    path = lab.folder / f"append-{durability}"
    bare = _open(f"{path}-bare.db", durability)
    full_text = _open(f"{path}-fts5.db", durability)
    full_text.execute("CREATE VIRTUAL TABLE texts USING fts5(text)")
    with Memory(f"{path}.db", user="ada", durability=durability) as memory:
        chat = memory.chat("monday")
        contenders: dict[str, Callable[[list[str]], Cost]] = {
            "holdfast": lambda block: _ours(block, lambda text: chat.append(role="user", content=text)),
            "bare": _Rows(bare, _insert).take,
            "fts5": _Rows(full_text, _insert_indexed).take,
            "checksum": _sealing,
        }
        costs: dict[str, list[Cost]] = {name: [] for name in contenders}
        for start in range(0, len(texts), lab.plan.block):
            block = texts[start : start + lab.plan.block]
            for name, append in contenders.items():
                costs[name].append(append(block) / len(block))
    bare.close()
    full_text.close()
    return {name: taken[lab.plan.settling :] for name, taken in costs.items()}


def _open(path: str, durability: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {durability}")
    connection.execute("PRAGMA wal_autocheckpoint = 4000")  # as Holdfast has it
    connection.execute(_TABLE)
    return connection


def _ours(block: list[str], append: Callable[[str], object]) -> Cost:
    with timed() as cost:
        for text in block:
            append(text)
    return cost


def _sealing(block: list[str]) -> Cost:
    """Sum up the rows that Holdfast would store; an append does that as well."""
    whole: dict[str, object] = dict.fromkeys(tables()["messages"].names) | {"given": 0}
    rows = [
        whole | dict(zip(_NAMES.split(", "), _row(n, text), strict=True)) for n, text in enumerate(block, 1)
    ]
    checksum = sealer("messages", b"")
    with timed() as cost:
        for row in rows:
            checksum(row)
    return cost


class _Rows:
    """Insert the rows that Holdfast would store; making them is not timed."""

    def __init__(
        self, connection: sqlite3.Connection, insert: Callable[[sqlite3.Connection, _Row], None]
    ) -> None:
        self._connection = connection
        self._insert = insert
        self._numbers = count(1)

    def take(self, block: list[str]) -> Cost:
        numbers = islice(self._numbers, len(block))
        rows = [_row(number, text) for number, text in zip(numbers, block, strict=True)]
        connection, insert = self._connection, self._insert
        with timed() as cost:
            for row in rows:
                insert(connection, row)
        return cost


def _row(number: int, text: str) -> _Row:
    now = time.time_ns() // 1000
    identity = f"{now:014x}{random.getrandbits(32):08x}"
    tokens = 4 + estimate_tokens(text)
    return (
        "/ada",
        "monday",
        number,
        number,
        identity,
        "user",
        None,
        now,
        tokens,
        text,
        None,
        None,
        None,
        None,
        None,
    )


def _insert(connection: sqlite3.Connection, row: _Row) -> None:
    connection.execute(_INSERT, row)


def _insert_indexed(connection: sqlite3.Connection, row: _Row) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(_INSERT, row)
    connection.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", (row[3], row[9]))
    connection.execute("COMMIT")
