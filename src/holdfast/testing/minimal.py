"""The smallest provider: the core of the contract and nothing else, to read before writing one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from threading import Lock

from holdfast.port.formats import message_tokens
from holdfast.types import ChatStats, Message, Omission, Window


class MinimalProvider:
    """A provider that stores chats in memory, and whose windows show the newest messages that fit.

    >>> chat = MinimalProvider().chat("monday")
    >>> stored = chat.append([Message("user", "Hello."), Message("assistant", "Good morning!")])
    >>> [message.content for message in chat.window(budget=8).messages]
    ['Good morning!']
    """

    name = "minimal"

    def __init__(self) -> None:
        self._logs: dict[str, list[Message]] = {}
        self._lock = Lock()

    def chat(self, id: str) -> MinimalChat:
        """Open a chat, which exists from its first message on."""
        return MinimalChat(id, self._logs, self._lock)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class MinimalChat:
    """One chat of a MinimalProvider."""

    def __init__(self, id: str, logs: dict[str, list[Message]], lock: Lock) -> None:
        self.id = id
        self._logs = logs
        self._lock = lock

    def append(self, messages: Sequence[Message], /) -> list[Message]:
        """Store messages in their order, all or none, and return them as stored."""
        with self._lock:
            first = len(self._logs.get(self.id, ())) + 1
            stored = [numbered(message, seq) for seq, message in enumerate(messages, first)]
            if stored:
                self._logs.setdefault(self.id, []).extend(stored)
            return stored

    def window(self, budget: int = 8_000, *, tail: int | None = None) -> Window:
        """Return the newest messages within the budget, and the newest `tail`, 1 if None, in any case."""
        return newest(self._read(), budget, 1 if tail is None else tail)

    def stats(self) -> ChatStats:
        """Count messages and tokens."""
        return count(self._read())

    def _read(self) -> list[Message]:
        with self._lock:
            return list(self._logs.get(self.id, ()))


def numbered(message: Message, seq: int) -> Message:
    """Return a message as it is stored: with `seq`, tokens, an id and a time."""
    return replace(
        message,
        seq=seq,
        tokens=message_tokens(message),
        id=message.id or f"m{seq}",
        at=message.at or datetime.now(UTC),
    )


def newest(messages: Sequence[Message], budget: int, keep: int) -> Window:
    """Return a window of the newest messages that fit, and of the newest `keep` in any case."""
    start, tokens = len(messages), 0
    for group in reversed(list(groups(messages))):
        cost = sum(message.tokens for message in group)
        if tokens + cost > budget and len(messages) - start >= keep:
            break
        start, tokens = start - len(group), tokens + cost
    return Window(tuple(messages[start:]), (), tokens, budget, tuple(_left_out(messages[:start])))


def _left_out(messages: Sequence[Message]) -> Iterator[Omission]:
    if messages:
        cost = sum(message.tokens for message in messages)
        yield Omission(
            len(messages), messages[0].seq, messages[-1].seq, cost, "older than the budget reaches"
        )


def groups(messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
    """Yield the messages that belong together, oldest first: a call, its results, and all in between."""
    made: dict[str | None, int] = {}
    ends = list(range(len(messages)))
    for place, message in enumerate(messages):
        if message.call_id in made:
            ends[made[message.call_id]] = place
        made.update((call.id, place) for call in message.calls)
    start = end = 0
    for place, reach in enumerate(ends):
        end = max(end, reach)
        if place == end:
            yield messages[start : end + 1]
            start = end = end + 1


def count(messages: Sequence[Message]) -> ChatStats:
    """Return the stats of messages without summaries."""
    tokens = sum(message.tokens for message in messages)
    times = [message.at for message in messages if message.at]
    return ChatStats(len(messages), tokens, tokens, min(times, default=None), max(times, default=None))
