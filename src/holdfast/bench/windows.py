"""How fast a window of a long session is made, beside a bare backward read and beside that of a short session."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from holdfast.bench.clock import each, middle
from holdfast.bench.measurement import Lab, Measurement, at_most, fill, measured
from holdfast.memory import Memory

_BUDGET = 8_000  # tokens
_CALLS = 20
_BACKWARD = """
    SELECT seq, id, role, name, at, tokens, content, calls, call_id, answers, raw, meta
    FROM messages WHERE space = :space AND chat = :chat ORDER BY seq DESC"""


def measure(lab: Lab) -> Iterator[Measurement]:
    """Make the window of a long session and of a short one, and read the long one backward with nothing but SQL."""
    lab.progress("making windows")
    path = lab.folder / "sessions.db"
    sizes = {"long": lab.plan.session, "short": lab.plan.short_session}
    with Memory(path, durability="normal") as memory:
        for user, size in sizes.items():
            fill(memory.scoped(user=user), lab.words, size, per_chat=size)
    with Memory(path) as memory:
        long, short = (memory.scoped(user=user).chat("chat-0") for user in sizes)
        bare = sqlite3.connect(path)
        contenders = [
            lambda _: [long.window(_BUDGET) for _ in range(_CALLS)],
            lambda _: [short.window(_BUDGET) for _ in range(_CALLS)],
            lambda _: [read_backward(bare, "/long", "chat-0", _BUDGET) for _ in range(_CALLS)],
        ]
        costs = each(contenders, [str(path)] * 5, lab.plan.repeats)
        bare.close()
    in_long, in_short, in_bare = (middle(taken) / _CALLS for taken in costs)
    name = f"window of {_BUDGET:,} tokens from {lab.plan.session:,} messages"
    short_name = f"from {lab.plan.short_session:,} messages"
    for against, theirs, limit in (("bare backward read", in_bare, 2), (short_name, in_short, 1.2)):
        ratio = in_long.cpu / theirs.cpu
        bar = at_most(ratio, limit, "× the time")
        yield measured(
            name, in_long, against=against, theirs=theirs, ratio=ratio, ratio_of="× the time", bar=bar
        )


def read_backward(
    connection: sqlite3.Connection, space: str, chat: str, budget: int
) -> list[tuple[object, ...]]:
    """Read the newest rows that fit a budget of tokens, and build nothing."""
    rows, used = [], 0
    for row in connection.execute(_BACKWARD, {"space": space, "chat": chat}):
        used += row[5]
        if used > budget:
            break
        rows.append(row)
    return rows
