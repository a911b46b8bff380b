"""How checkpoints are read: rows, values and messages in one read, objects made of them after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from langgraph.checkpoint.base import CheckpointTuple

from holdfast.errors import Damaged
from holdfast.integrations.langgraph import checkpoint_rows as rows
from holdfast.integrations.langgraph.checkpoint_rows import StoredCheckpoint, StoredWrite
from holdfast.integrations.langgraph.known_messages import KnownList, is_message_list
from holdfast.integrations.langgraph.thread_items import ListOfMessages, ThreadItems
from holdfast.integrations.langgraph.thread_place import ThreadPlace, configurable, to_config
from holdfast.store import items
from holdfast.store.database import DECODING_ERRORS, damaged

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from holdfast.integrations.langgraph.checkpoint_rows import Typed
    from holdfast.store.database import Database
    from holdfast.types import Range

# Checkpoints of a list that are read in one transaction.
_PAGE = 16


class CheckpointReader:
    """Reads the checkpoints of a space."""

    def __init__(self, database: Database, space: str, serde: SerializerProtocol) -> None:
        self._database, self._space, self._serde = database, space, serde

    def get(self, place: ThreadPlace) -> tuple[CheckpointTuple, dict[str, KnownList]] | None:
        """Return a checkpoint, and its lists of messages by their channels; None if there is none."""
        with self._database.one_read():
            thread = ThreadItems(self._database, self._space, place.chat)
            head, row = thread.head(), thread.checkpoint(place.ns, place.id)
            if head is None or row is None:
                return None
            raw = self._read(thread, place.thread, row)
            stored = thread.message_values(chain(*raw.lists.values()))
        found = self._tuple(raw, self._loaded(stored))
        values = found.checkpoint["channel_values"]
        lists = {raw.channels[key]: ranges for key, ranges in raw.lists.items()}
        # A message of a type that is not allowed is none when it is read.
        known = {one: ranges for one, ranges in lists.items() if is_message_list(values[one])}
        return found, {one: KnownList.of(head.epoch, values[one], ranges) for one, ranges in known.items()}

    def tuples(
        self,
        config: RunnableConfig | None,
        metadata: Mapping[str, object],
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Iterator[CheckpointTuple]:
        """Iterate over the checkpoints that a list has; see `HoldfastSaver.list`."""
        matching = self._matching(config, metadata, before)
        loaded: dict[str, dict[int, BaseMessage]] = {}
        left = limit
        while page := self._page(matching, _PAGE if left is None else min(_PAGE, left), loaded):
            yield from page
            left = None if left is None else left - len(page)

    def versions(self, row: StoredCheckpoint) -> Mapping[str, object]:
        """Return the versions of the channels of a checkpoint."""
        return self._checkpoint(row)["channel_versions"]

    def _matching(
        self, config: RunnableConfig | None, metadata: Mapping[str, object], before: RunnableConfig | None
    ) -> Iterator[tuple[ThreadItems, str, StoredCheckpoint]]:
        for thread, ns, id in self._places(config, before):
            row = thread.checkpoint(ns, id)
            head = thread.head()
            if row and head and all(row.metadata.get(key) == value for key, value in metadata.items()):
                yield thread, head.thread, row

    def _places(
        self, config: RunnableConfig | None, before: RunnableConfig | None
    ) -> Iterator[tuple[ThreadItems, str, str]]:
        """Iterate over where the checkpoints are that a list may have, the newest first."""
        bound = configurable(before).get("checkpoint_id") if before else None
        limit = None if bound is None else str(bound)
        if config is None:
            chats = items.chats(self._database, self._space, rows.HEAD)
            threads = [self._thread(chat) for chat in chats]
            found = ((id, one.chat, ns, one) for one in threads for id, ns in one.ids(None, limit))
            newest = sorted(found, key=lambda one: one[:3], reverse=True)
            yield from ((thread, ns, id) for id, _, ns, thread in newest)
            return
        place, thread = ThreadPlace.of(config), self._thread(ThreadPlace.of(config).chat)
        for id, ns in thread.ids(place.ns if "checkpoint_ns" in configurable(config) else None, limit):
            if place.id in ("", id):
                yield thread, ns, id

    def _page(
        self,
        matching: Iterator[tuple[ThreadItems, str, StoredCheckpoint]],
        size: int,
        loaded: dict[str, dict[int, BaseMessage]],
    ) -> Sequence[CheckpointTuple]:
        """Return the next tuples, read together; messages that are loaded are not read again."""
        with self._database.one_read():
            page = [(thread, self._read(thread, name, row)) for thread, name, row in islice(matching, size)]
            for thread, raw in page:
                there = loaded.setdefault(thread.chat, {})
                missing = rows.without(chain(*raw.lists.values()), rows.to_ranges(sorted(there)))
                there |= self._loaded(thread.message_values(rows.to_ranges(missing)))
        return [self._tuple(raw, loaded[thread.chat]) for thread, raw in page]

    def _read(self, thread: ThreadItems, name: str, row: StoredCheckpoint) -> _StoredTuple:
        """Read what belongs to a checkpoint, but for the messages of its lists."""
        checkpoint = self._checkpoint(row)
        versions = checkpoint["channel_versions"]
        channels = {
            rows.value_key(row.ns, channel, version): channel for channel, version in versions.items()
        }
        found = thread.values(list(channels))
        lists = {key: one.ranges for key, one in found.items() if isinstance(one, ListOfMessages)}
        values = {key: one for key, one in found.items() if not isinstance(one, ListOfMessages)}
        return _StoredTuple(name, row, checkpoint, channels, values, lists, thread.writes(row.ns, row.id))

    def _tuple(self, raw: _StoredTuple, messages: Mapping[int, BaseMessage]) -> CheckpointTuple:
        values: dict[str, object] = {}
        for key, channel in raw.channels.items():
            if key in raw.values:
                values[channel] = self._loads(raw.values[key])
            elif key in raw.lists:
                values[channel] = _listed(raw.lists[key], messages)
        row = raw.row
        return CheckpointTuple(
            to_config(raw.thread, row.ns, row.id),
            cast("Checkpoint", {**raw.checkpoint, "channel_values": values}),
            cast("CheckpointMetadata", row.metadata),
            to_config(raw.thread, row.ns, row.parent) if row.parent else None,
            [(one.task, one.channel, self._loads(one.value)) for one in raw.writes],
        )

    def _checkpoint(self, row: StoredCheckpoint) -> Checkpoint:
        found = self._loads(row.checkpoint)
        if not isinstance(found, dict) or not isinstance(found.get("channel_versions"), dict):
            raise Damaged(f"The checkpoint {row.id!r} cannot be read.", "Restore a backup of the database.")
        return cast("Checkpoint", found)

    def _loaded(self, stored: Iterable[tuple[int, Typed]]) -> dict[int, BaseMessage]:
        loads = self._serde.loads_typed
        # In one block, and without a call of our own for each of a long list.
        with _decoding():
            return {number: loads(value) for number, value in stored}

    def _loads(self, value: Typed) -> Any:
        with _decoding():
            return self._serde.loads_typed(value)

    def _thread(self, chat: str) -> ThreadItems:
        return ThreadItems(self._database, self._space, chat)


@contextmanager
def _decoding() -> Iterator[None]:
    try:
        yield
    except (*DECODING_ERRORS, NotImplementedError) as error:
        raise damaged("A value of a thread", error) from error


class _StoredTuple(NamedTuple):
    """What is stored of a checkpoint; channels, values and lists by the keys of the values."""

    thread: str
    row: StoredCheckpoint
    checkpoint: Checkpoint
    channels: Mapping[str, str]
    values: Mapping[str, Typed]
    lists: Mapping[str, list[Range]]
    writes: Sequence[StoredWrite]


def _listed(ranges: Iterable[Range], messages: Mapping[int, BaseMessage]) -> list[BaseMessage]:
    try:
        return [messages[number] for number in rows.numbers_in(ranges)]
    except KeyError as error:
        raise Damaged(
            f"The message {error} of a thread is missing.", "Restore a backup of the database."
        ) from error
