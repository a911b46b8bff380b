"""What is stored of a thread of LangGraph, as items: their keys, their bytes, and ranges of numbers.

The bytes of an item are a head in JSON, a line feed, and what LangGraph's serializer made.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.errors import Damaged, InvalidInput
from holdfast.integrations.framework_keys import escape, unescape
from holdfast.store.database import DECODING_ERRORS, damaged

if TYPE_CHECKING:
    from holdfast.types import Range

# The collections. The first one sorts before the others, so that the threads are found by it.
HEAD, CHECKPOINTS, WRITES = "langgraph", "langgraph.checkpoints", "langgraph.writes"
VALUES, MESSAGES = "langgraph.values", "langgraph.messages"
COLLECTIONS = (HEAD, CHECKPOINTS, WRITES, VALUES, MESSAGES)

# A type of LangGraph's serializer, and the bytes that it belongs to.
Typed = tuple[str, bytes]


class ThreadHead(NamedTuple):
    """What is known of a thread as a whole; `epoch` is another one after messages were deleted."""

    thread: str
    epoch: str
    messages: int

    def packed(self) -> bytes:
        """Return the bytes of the item."""
        return pack(self)


class StoredCheckpoint(NamedTuple):
    """A checkpoint without its values; `said` is the version of the messages that are in the log."""

    ns: str
    id: str
    parent: str | None
    metadata: dict[str, object]
    said: str | None
    checkpoint: Typed

    @property
    def key(self) -> str:
        """The key of the item."""
        return checkpoint_key(self.ns, self.id)

    def packed(self) -> bytes:
        """Return the bytes of the item.

        Raises:
            InvalidInput: the metadata are not JSON.

        """
        kind, data = self.checkpoint
        return pack([self.parent, self.metadata, self.said, kind], data)


class StoredWrite(NamedTuple):
    """A pending write of a task."""

    path: str
    task: str
    place: int
    channel: str
    value: Typed

    def packed(self) -> bytes:
        """Return the bytes of the item."""
        kind, data = self.value
        return pack([self.path, self.task, self.place, self.channel, kind], data)


class StoredMessage(NamedTuple):
    """A message of a list, which is stored once; `identity` is its id, or made of its words, escaped."""

    identity: str
    value: Typed

    def packed(self) -> bytes:
        """Return the bytes of the item: three lines, which are split faster than JSON is decoded."""
        kind, data = self.value
        return f"{json.dumps(kind)}\n{self.identity}\n".encode() + data


def checkpoint_key(ns: str, id: str) -> str:
    """Return the key of a checkpoint; without an id, what all keys of the namespace begin with."""
    return f"{escape(ns)}/{escape(id)}"


def write_key(ns: str, checkpoint: str, task: str = "", place: int | None = None) -> str:
    """Return the key of a pending write; without a place, what all keys of the checkpoint begin with."""
    start = f"{checkpoint_key(ns, checkpoint)}/"
    return start if place is None else f"{start}{escape(task)}/{place}"


def value_key(ns: str, channel: str, version: object) -> str:
    """Return the key of the value of a channel at a version."""
    return f"{escape(ns)}/{escape(channel)}/{version_text(version)}"


def version_text(version: object) -> str:
    """Return a version as text, another one for each; LangGraph's are numbers or texts."""
    return escape(json.dumps(version))


def message_key(number: int) -> str:
    """Return the key of a message: keys have the order of the numbers."""
    return f"{number:012d}"


def pack(head: object, data: bytes = b"") -> bytes:
    """Return a head and data as bytes.

    Raises:
        InvalidInput: the head is not JSON.

    """
    try:
        return json.dumps(head).encode() + b"\n" + data
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"A part of a checkpoint is not JSON ({error}).", "Put JSON values there."
        ) from error


def unpack(item: bytes) -> tuple[object, bytes]:
    """Return what `pack` was given."""
    head, _, data = item.partition(b"\n")
    # Without a block that names the item: a context costs more than the rest.
    try:
        return json.loads(head.decode()), data
    except DECODING_ERRORS as error:
        raise damaged("An item of a thread", error) from error


def read_head(item: bytes) -> ThreadHead:
    """Return the head of a thread."""
    return ThreadHead(*_fields(unpack(item)[0], (str, str, int)))


def read_checkpoint(key: str, item: bytes) -> StoredCheckpoint:
    """Return a checkpoint from its item."""
    head, data = unpack(item)
    parent, metadata, said, kind = _fields(head, (str | None, dict, str | None, str))
    ns, _, id = key.partition("/")
    return StoredCheckpoint(unescape(ns), unescape(id), parent, metadata, said, (_safe(kind), data))


def read_write(item: bytes) -> StoredWrite:
    """Return a pending write from its item."""
    head, data = unpack(item)
    path, task, place, channel, kind = _fields(head, (str, str, int, str, str))
    return StoredWrite(path, task, place, channel, (_safe(kind), data))


def read_message(item: bytes) -> StoredMessage:
    """Return a message from its item."""
    try:
        kind, identity, data = item.split(b"\n", 2)
        return StoredMessage(identity.decode(), (_kind(kind), data))
    except DECODING_ERRORS as error:
        raise damaged("A message of a thread", error) from error


def read_messages(found: Iterable[tuple[bytes, bytes]]) -> list[tuple[int, Typed]]:
    """Return the numbers and the values of messages from the keys and the bytes of their items."""
    messages = []
    try:
        for key, item in found:
            kind, identity, data = item.split(b"\n", 2)
            identity.decode()
            messages.append((int(key), (_kind(kind), data)))
    except DECODING_ERRORS as error:
        raise damaged("A message of a thread", error) from error
    return messages


# Long lists have few types.
@lru_cache(maxsize=16)
def _kind(line: bytes) -> str:
    return _safe(*_fields([json.loads(line)], (str,)))


def read_value(item: bytes) -> Typed | list[Range] | None:
    """Return the value of a channel, the numbers of the messages that it lists, or None if it is empty."""
    head, data = unpack(item)
    if head is None:
        return None
    if isinstance(head, str):
        return _safe(head), data
    ranges = [_fields(one, (int, int)) for one in head] if isinstance(head, list) else []
    if not ranges or not all(1 <= first <= last for first, last in ranges):
        raise _damaged()
    return [(first, last) for first, last in ranges]


def _safe(kind: str) -> str:
    """Return a type of serialized data, unless it is one that runs code when it is read."""
    if "pickle" in kind.lower():
        raise Damaged(
            "A stored checkpoint holds a pickle, which Holdfast neither writes nor reads.",
            "Find out who wrote it, and restore a backup.",
        )
    return kind


def _fields(head: object, types: Sequence[Any]) -> list[Any]:
    if not isinstance(head, list) or len(head) != len(types) or not all(map(isinstance, head, types)):
        raise _damaged()
    return head


def _damaged() -> Damaged:
    return Damaged("An item of a thread cannot be read.", "Restore a backup of the database.")


def to_ranges(numbers: Iterable[int]) -> list[Range]:
    """Return numbers, in their order, as ranges (first, last) of successive ones."""
    ranges: list[Range] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ranges


def numbers_in(ranges: Iterable[Range]) -> Iterator[int]:
    """Iterate over the numbers of ranges."""
    return (number for first, last in ranges for number in range(first, last + 1))


def first_of(ranges: Sequence[Range], count: int) -> list[Range]:
    """Return the ranges of the first numbers."""
    found: list[Range] = []
    for first, last in ranges:
        if count <= 0:
            break
        found.append((first, min(last, first + count - 1)))
        count -= last - first + 1
    return found


def joined(ranges: Sequence[Range], others: Iterable[Range]) -> list[Range]:
    """Return ranges followed by others."""
    found = list(ranges)
    for first, last in others:
        if found and found[-1][1] == first - 1:
            found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    return found


def without(ranges: Iterable[Range], others: Iterable[Range]) -> list[int]:
    """Return the numbers of ranges that are not in others, in ascending order."""
    gone: list[int] = []
    left = sorted(others)
    for first, last in sorted(set(ranges)):
        at = first
        for start, end in left:
            if start > last:
                break
            gone += range(at, start)
            at = max(at, end + 1)
        gone += range(at, last + 1)
    return gone
