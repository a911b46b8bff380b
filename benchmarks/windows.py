"""How fast a window of a long session is made, beside a bare backward read and that of a short session.

The same for what is done in each turn of a session that was compacted as it grew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing

from benchmarks.clock import each, middle
from benchmarks.measurement import Measurement, SpeedLab, compared
from holdfast.chat import Chat
from holdfast.memory import Memory
from holdfast.types import Message

_BUDGET = 8_000  # tokens
_CALLS = 20
_BLOCK = 20  # messages, after which a growing session is compacted
_FLAT = 1.2  # times what it takes in a short session
_BACKWARD = """
    SELECT seq, id, role, name, at, tokens, content, calls, call_id, answers, raw, meta
    FROM messages WHERE space = :space AND chat = :chat ORDER BY seq DESC"""


def measure(lab: SpeedLab) -> Iterator[Measurement]:
    """Make the window of a long session and of a short one, and read the long one backward with SQL alone."""
    lab.progress("making windows")
    sizes = lab.plan.session, lab.plan.short_session
    paths = [lab.store(size, per_chat=size) for size in sizes]
    with ExitStack() as opened:
        memories = [opened.enter_context(Memory(path, user="all")) for path in paths]
        long, short = (memory.chat("chat-0") for memory in memories)
        bare = opened.enter_context(closing(sqlite3.connect(paths[0])))
        contenders = [
            lambda _: [long.window(_BUDGET) for _ in range(_CALLS)],
            lambda _: [short.window(_BUDGET) for _ in range(_CALLS)],
            lambda _: [_read_backward(bare, "/all", "chat-0", _BUDGET) for _ in range(_CALLS)],
        ]
        costs = each(contenders, [""] * 5, lab.plan.repeats)
    in_long, in_short, in_bare = (middle(taken) / _CALLS for taken in costs)
    name = f"window of {_BUDGET:,} tokens, {lab.plan.session:,} messages"
    yield compared(name, in_long, "backward read", in_bare, limit=2)
    yield compared(name, in_long, f"{lab.plan.short_session:,} messages", in_short, limit=_FLAT)


def compacted(lab: SpeedLab) -> Iterator[Measurement]:
    """Do what each turn does in a long compacted session and in a short one: the cost should be the same."""
    lab.progress("compacting sessions as they grow")
    path, sizes = lab.folder / "compacted.db", lab.plan.compacted
    with Memory(path, durability="normal") as memory:
        chats = [memory.scoped(user=str(size)).chat("c") for size in sizes]
        for chat, size in zip(chats, sizes, strict=True):
            _grow(chat, list(lab.words.messages(size)))
    with Memory(path) as memory:
        chats = [memory.scoped(user=str(size)).chat("c") for size in sizes]
        work: dict[str, Callable[[Chat], object]] = {
            "prompt": lambda chat: chat.prompt(_BUDGET),
            "window": lambda chat: chat.window(_BUDGET),
            "crowded": lambda chat: chat.needs_compaction(_BUDGET, 0.01),
            "compact": lambda chat: chat.compact(budget=_BUDGET),
        }
        for name, do in work.items():
            contenders = [lambda _, chat=chat, do=do: [do(chat) for _ in range(_CALLS)] for chat in chats]
            long, short = (middle(taken) / _CALLS for taken in each(contenders, [name] * 5, lab.plan.repeats))
            title = f"{name} of {_BUDGET:,} tokens, {sizes[0]:,} messages compacted"
            yield compared(title, long, f"{sizes[1]:,} messages", short, limit=_FLAT)


def _grow(chat: Chat, texts: Sequence[str]) -> None:
    """Append to a session, and compact it as it grows, in the end as well: two sessions are then alike."""
    for start in range(0, len(texts), _BLOCK):
        block = texts[start : start + _BLOCK]
        chat.append([Message("assistant" if n % 2 else "user", text) for n, text in enumerate(block)])
        chat.compact(budget=_BUDGET)
    chat.compact(full=True, budget=_BUDGET)


def _read_backward(
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
