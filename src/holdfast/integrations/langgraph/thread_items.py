"""The items of a thread of LangGraph: their collections, keys and bytes, and how they are read.

The bytes of an item are a head in JSON, a line feed, and what LangGraph's serializer made. A message is an
item of its own, whose key has its number in the thread, and its id in the log; a list of messages is the
ranges of their numbers.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain, count, groupby
from operator import sub
from typing import TYPE_CHECKING, Any, NamedTuple

from langgraph.checkpoint.base import CheckpointTuple

from holdfast.errors import Damaged, InvalidInput
from holdfast.integrations.framework_keys import chat_id, escape, unescape
from holdfast.integrations.langgraph.known_messages import is_message_list
from holdfast.port.items import Items

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from holdfast.port.items import Item
    from holdfast.types import Range

# The collections. The first one sorts before the others, so that the threads are found by it.
HEAD, CHECKPOINTS, WRITES = "langgraph", "langgraph.checkpoints", "langgraph.writes"
VALUES, MESSAGES = "langgraph.values", "langgraph.messages"
COLLECTIONS = (HEAD, CHECKPOINTS, WRITES, VALUES, MESSAGES)

# Checkpoints that are read at once, messages that are, digits of a number in a key.
_PAGE, _BLOCK, _DIGITS = 64, 64, 12


class ThreadHead(NamedTuple):
    """The name, epoch and number of messages of a thread; the epoch changes when messages are deleted."""

    thread: str
    epoch: str
    messages: int


class StoredCheckpoint(NamedTuple):
    """A checkpoint without its values; `channels` by the keys of those."""

    ns: str
    id: str
    parent: str | None
    metadata: CheckpointMetadata
    checkpoint: Checkpoint
    channels: Mapping[str, str]

    @property
    def key(self) -> str:
        """The key of the item."""
        return checkpoint_key(self.ns, self.id)


class ThreadPlace(NamedTuple):
    """What a config names: a thread and its chat, a namespace, and a checkpoint, or "" for the newest."""

    thread: str
    chat: str
    ns: str
    id: str

    @classmethod
    def of(cls, config: RunnableConfig) -> ThreadPlace:
        """Return the place of a config.

        Raises:
            InvalidInput: it names no thread.

        """
        given: Mapping[str, object] = config.get("configurable", {})
        if "thread_id" not in given:
            raise InvalidInput("The config names no thread.", 'Pass {"configurable": {"thread_id": …}}.')
        thread = str(given["thread_id"])
        ns, id = given.get("checkpoint_ns", ""), given.get("checkpoint_id") or ""
        return cls(thread, thread_chat(thread), str(ns), str(id))


class ThreadItems:
    """Reads the items of a thread. Nothing of it expires."""

    def __init__(self, items: Items, chat: str, serde: SerializerProtocol) -> None:
        self._items, self.chat, self._serde = items, chat, serde

    def head(self) -> ThreadHead | None:
        """Return the head of the thread; None if there is no such thread."""
        items = self.get(HEAD, [""])
        return ThreadHead(*unpack(items[""], str, str, int)[:-1]) if items else None

    def checkpoint(self, ns: str, id: str) -> StoredCheckpoint | None:
        """Return a checkpoint of a namespace, with "" as its id the newest; None if there is none."""
        key = checkpoint_key(ns, id)
        items = self._items.of(CHECKPOINTS).scan(self.chat, prefix=key, descending=not id, limit=1)
        return self._read(items[0]) if items and (not id or items[0].key == key) else None

    def checkpoints(self) -> Iterator[StoredCheckpoint]:
        """Iterate over all checkpoints."""
        return map(self._read, self.all(CHECKPOINTS))

    def writes(self, ns: str, id: str) -> list[list[Any]]:
        """Return the pending writes of a checkpoint, as they are to be applied.

        Each is the path and the id of a task, a place, a channel, a type and bytes.
        """
        prefix = f"{checkpoint_key(ns, id)}/"
        items = self._items.of(WRITES).scan(self.chat, prefix=prefix)
        return sorted(unpack(item.data, str, str, int, str, str) for item in items)

    def all(self, collection: str) -> Iterator[Item]:
        """Iterate over the items of a collection, which are read in pages."""
        after = None
        while page := self._items.of(collection).scan(self.chat, after=after, limit=_PAGE):
            yield from page
            after = page[-1].key

    def keys(self, collection: str) -> list[str]:
        """Return the keys of a collection."""
        return self._items.of(collection).keys(self.chat)

    def get(self, collection: str, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the bytes of the items that have some keys."""
        items = self._items.of(collection).get_many(keys, self.chat)
        return {key: item.data for key, item in items.items()}

    def values(self, keys: Iterable[str], most: int) -> dict[str, tuple[Any, bytes]]:
        """Return the values that have some keys, without empty ones: a type and bytes, or numbers and none.

        Of the messages that a list names, `most` is the largest number.
        """
        stored = {key: unpack(item) for key, item in self.get(VALUES, keys).items()}
        return {
            key: (head if isinstance(head, str) else _numbers(head, most), data)
            for key, (head, data) in stored.items()
            if head is not None
        }

    def messages(self, numbers: Collection[int]) -> Iterator[tuple[int, bytes, bytes, bytes]]:
        """Iterate over messages by their numbers: each number, id in the log, head and data."""
        messages, wanted = self._items.of(MESSAGES), set(numbers)
        for first, last in to_ranges(sorted({number // _BLOCK for number in wanted})):
            bounds = message_key(first * _BLOCK), message_key((last + 1) * _BLOCK)
            for key, item in messages.scan_data(self.chat, *bounds):
                if (number := int(key[:_DIGITS])) in wanted:
                    line, _, data = item.partition(b"\n")
                    yield number, key[_DIGITS + 1 :], line, data

    def load_messages(self, numbers: Collection[int]) -> dict[int, BaseMessage]:
        """Return messages by their numbers, without those that are missing.

        Raises:
            Damaged: one cannot be read.

        """
        # Without a call of our own for each of a long list.
        loads = self._serde.loads_typed
        with _decoding():
            return {number: loads((_kind(line), data)) for number, _, line, data in self.messages(numbers)}

    def loads(self, kind: str, data: bytes) -> Any:
        """Return the value that was serialized as these bytes.

        Raises:
            Damaged: it cannot be read.

        """
        with _decoding():
            return self._serde.loads_typed((_safe(kind), data))

    def _read(self, item: Item) -> StoredCheckpoint:
        ns, _, id = item.key.partition("/")
        parent, metadata, kind, data = unpack(item.data, str | None, dict, str)
        checkpoint = self.loads(kind, data)
        with Items.decoding("A checkpoint"):
            versions = checkpoint["channel_versions"].items()
            channels = {value_key(unescape(ns), channel, version): channel for channel, version in versions}
        return StoredCheckpoint(unescape(ns), unescape(id), parent, metadata, checkpoint, channels)


def thread_chat(thread_id: str) -> str:
    """Return the id of the chat of a thread."""
    return chat_id("langgraph", str(thread_id))


def to_config(thread: str, ns: str, id: str) -> RunnableConfig:
    """Return the config of a checkpoint."""
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": id}}


def checkpoint_key(ns: str, id: str) -> str:
    """Return the key of a checkpoint; without an id, the prefix of all keys of the namespace."""
    return f"{escape(ns)}/{escape(id)}"


def value_key(ns: str, channel: str, version: object) -> str:
    """Return the key of the value of a channel at a version; LangGraph's are numbers or texts."""
    return f"{escape(ns)}/{escape(channel)}/{escape(json.dumps(version))}"


def message_key(number: int, id: str = "") -> str:
    """Return the key of a message: keys have the order of the numbers."""
    return f"{number:0{_DIGITS}d}/{id}"


def message_of(key: str) -> tuple[int, str]:
    """Return the number and the id that `message_key` was given."""
    return int(key[:_DIGITS]), key[_DIGITS + 1 :]


def pack(head: object, data: bytes = b"") -> bytes:
    """Return a head and data as bytes.

    Raises:
        InvalidInput: the head is not JSON.

    """
    try:
        return json.dumps(head).encode() + b"\n" + data
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"A part of a checkpoint is not JSON ({error}).", "Put JSON there.") from error


def unpack(item: bytes, *types: Any) -> list[Any]:
    """Return the head and the data that `pack` was given; of a head that is a list of types, its parts."""
    line, _, data = item.partition(b"\n")
    with Items.decoding("An item of a thread"):
        head = json.loads(line.decode())
        parts = head if types else [head]
        if len(parts) != len(types or [head]) or not all(map(isinstance, parts, types)):
            raise TypeError("other parts")
        return [*parts, data]


# Long lists have few types.
@lru_cache(maxsize=16)
def _kind(line: bytes) -> str:
    return _safe(unpack(line)[0])


def _safe(kind: object) -> str:
    """Return a type of serialized data, unless it is one that runs code when it is read."""
    if "pickle" in str(kind).lower():
        raise Damaged(
            "A stored checkpoint holds a pickle, which Holdfast neither writes nor reads.",
            "Find out who wrote it, and restore a backup.",
        )
    return str(kind)


@contextmanager
def _decoding() -> Iterator[None]:
    with Items.decoding("A value of a thread"):
        try:
            yield
        except NotImplementedError as error:
            # Of a serializer that does not know the type.
            raise ValueError(str(error)) from error


def to_ranges(numbers: Iterable[int]) -> list[Range]:
    """Return numbers, in their order, as ranges (first, last) of successive ones."""
    ranges: list[Range] = []
    at = 0
    # Without a step of our own for each of a long list.
    for offset, group in groupby(map(sub, numbers, count())):
        first, at = at + offset, at + len([*group])
        ranges.append((first, at + offset - 1))
    return ranges


def _numbers(ranges: Any, most: int) -> list[int]:
    """Return the numbers of ranges."""
    with Items.decoding("A list of messages"):
        if not ranges or not all(1 <= first <= last <= most for first, last in ranges):
            raise ValueError("no such messages")
        return [*chain(*(range(first, last + 1) for first, last in ranges))]


def read_tuple(
    thread: ThreadItems, head: ThreadHead, row: StoredCheckpoint, loaded: dict[int, BaseMessage]
) -> tuple[CheckpointTuple, dict[str, list[int]]]:
    """Return a checkpoint, and the numbers of its lists of messages; `loaded` are not read again."""
    values, numbers = dict[str, Any](), dict[str, list[int]]()
    for key, (kind, data) in thread.values(row.channels, head.messages).items():
        if isinstance(kind, str):
            values[row.channels[key]] = thread.loads(kind, data)
        else:
            numbers[row.channels[key]] = kind
    missing = [n for some in numbers.values() for n in some if n not in loaded]
    loaded |= thread.load_messages(missing)
    with Items.decoding("A list of messages"):
        values |= {channel: [loaded[n] for n in some] for channel, some in numbers.items()}
    read = CheckpointTuple(
        to_config(head.thread, row.ns, row.id),
        {**row.checkpoint, "channel_values": values},
        row.metadata,
        to_config(head.thread, row.ns, row.parent) if row.parent else None,
        [
            (task, channel, thread.loads(kind, data))
            for _, task, _, channel, kind, data in thread.writes(row.ns, row.id)
        ],
    )
    # A message of a type that is not allowed is none when it is read.
    return read, {channel: some for channel, some in numbers.items() if is_message_list(values[channel])}


def tuples(
    table: Items,
    threads: Iterable[ThreadItems],
    config: RunnableConfig | None,
    metadata: Mapping[str, object],
    before: RunnableConfig | None,
) -> Iterator[CheckpointTuple]:
    """Iterate over the checkpoints of some threads; see `HoldfastSaver.list`."""
    given: Mapping[str, object] = config.get("configurable", {}) if config else {}
    bound = before.get("configurable", {}).get("checkpoint_id") if before else None
    loaded: dict[str, dict[int, BaseMessage]] = {}
    keys = ((key.partition("/"), thread) for thread in threads for key in thread.keys(CHECKPOINTS))
    checkpoints = sorted(
        ((unescape(id), thread.chat, unescape(ns), thread) for (ns, _, id), thread in keys),
        reverse=True,
        key=lambda entry: entry[:3],
    )
    for id, chat, ns, thread in checkpoints:
        if bound is not None and id >= str(bound):
            continue
        if given.get("checkpoint_id") not in (None, "", id) or given.get("checkpoint_ns", ns) != ns:
            continue
        with table.reading():
            head, row, read = thread.head(), thread.checkpoint(ns, id), None
            if head and row and all(row.metadata.get(key) == value for key, value in metadata.items()):
                read, _ = read_tuple(thread, head, row, loaded.setdefault(chat, {}))
        if read:
            yield read
