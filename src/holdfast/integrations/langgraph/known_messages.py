"""Which messages of a growing list are stored already, by their identity as objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter, is_
from threading import Lock
from typing import NamedTuple, TypeGuard

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

# Messages at the end of a list that are compared in full: nodes may change those in place.
_NEWEST = 8
# Lists that are known at once; each holds its messages in memory.
_LISTS = 64
_content = attrgetter("content")
_plain = JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=None)


class KnownList(NamedTuple):
    """A list of messages as it was stored or read last; `epoch` is that of the thread."""

    epoch: str
    numbers: list[int]
    messages: list[BaseMessage]
    contents: list[object]
    # Of the newest messages, what they were.
    newest: list[bytes]

    @classmethod
    def of(cls, epoch: str, numbers: list[int], messages: Sequence[BaseMessage]) -> KnownList:
        """Return a list with what its newest messages were."""
        newest = [fingerprint(message) for message in messages[-_NEWEST:]]
        return cls(epoch, numbers, [*messages], [*map(_content, messages)], newest)

    def with_numbers_of(self, known: KnownList | None) -> KnownList:
        """Return this list with the numbers of a known list for unchanged messages, and 0 for all others.

        What a node changes while a list is stored differs from this list, and so is seen next time.
        """
        if known is None or known.epoch != self.epoch:
            return self
        newest = zip(known.messages[-_NEWEST:], known.newest, strict=True)
        changed = {id(message) for message, was in newest if fingerprint(message) != was}
        # Ten times as fast as a loop.
        is_same = not changed and all(map(is_, known.messages, self.messages))
        if is_same and all(map(is_, known.contents, self.contents)):
            numbers = [*known.numbers, *self.numbers[len(known.numbers) :]][: len(self.numbers)]
        else:
            stored = zip(known.messages, known.contents, known.numbers, strict=True)
            there = {id(message): (content, n) for message, content, n in stored}
            for key in changed:
                del there[key]
            before = (there.get(id(message), (None, 0)) for message in self.messages)
            now = zip(before, self.contents, strict=True)
            numbers = [n if was is content else 0 for (was, n), content in now]
        return self._replace(numbers=numbers)


class KnownMessages:
    """The lists that were stored or read last, by chats and channels; safe for threads."""

    def __init__(self) -> None:
        self._lists: dict[tuple[str, str], KnownList] = {}
        self._lock = Lock()

    def get(self, chat: str, channel: str) -> KnownList | None:
        """Return a list that is known; None for any other."""
        return self._lists.get((chat, channel))

    def put(self, chat: str, lists: Mapping[str, KnownList]) -> None:
        """Remember lists, by their channels."""
        with self._lock:
            for channel, known in lists.items():
                self._lists.pop((chat, channel), None)
                self._lists[chat, channel] = known
            while len(self._lists) > _LISTS:
                del self._lists[next(iter(self._lists))]


def is_message_list(value: object) -> TypeGuard[list[BaseMessage]]:
    """Return whether a value is a list of messages, and not empty."""
    kinds = {*map(type, value)} if type(value) is list else set()
    return bool(kinds) and all(issubclass(kind, BaseMessage) for kind in kinds)


def fingerprint(message: BaseMessage) -> bytes:
    """Return bytes that differ for messages that differ."""
    return _plain.dumps_typed(message)[1]
