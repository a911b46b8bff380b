"""Storing, copying and removing checkpoints: a value or message is stored once, and goes with the last."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from secrets import token_hex
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import WRITES_IDX_MAP

from holdfast.errors import Conflict
from holdfast.integrations.framework_keys import digest, escape, unescape
from holdfast.integrations.langgraph import thread_items as rows
from holdfast.integrations.langgraph.known_messages import KnownList, fingerprint, is_message_list
from holdfast.integrations.langgraph.message_log import MessageLog, log_id
from holdfast.integrations.langgraph.thread_items import ThreadHead, ThreadItems

if TYPE_CHECKING:
    from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from holdfast.integrations.langgraph.thread_items import ThreadPlace
    from holdfast.port.items import Items

# So many unknown messages are looked up among those of the parent, which another process may have stored.
_MANY = 8
# Items that are copied at once.
_PAGE = 256


class ThreadWriter(ThreadItems):
    """Changes the items of a thread, within the only transaction that writes to the space."""

    def __init__(self, tx: Items, chat: str, serde: SerializerProtocol) -> None:
        super().__init__(tx, chat, serde)
        self._log = MessageLog(tx, chat)

    # Storing ----------------------------------------------------------------------------------------------

    def put_checkpoint(
        self,
        place: ThreadPlace,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        versions: Mapping[str, object],
        known: Mapping[str, KnownList | None],
        said: str,
    ) -> dict[str, KnownList]:
        """Store a checkpoint whose channels have new versions; return its new lists by their channels.

        `known` are lists that the new ones may continue; `said` is the channel that is in the log.
        """
        head = self.head() or ThreadHead(place.thread, token_hex(8), 0)
        prior = self._parent_numbers(place, head, said) if said in versions else []
        given, values, lists = checkpoint["channel_values"], dict[str, bytes](), dict[str, KnownList]()
        for channel, version in versions.items():
            key, value = rows.value_key(place.ns, channel, version), given.get(channel)
            if is_message_list(value):
                new = KnownList.of(head.epoch, [0] * len(value), value)
                new = new.with_numbers_of(known[channel])
                fresh = self._number(new, head.messages, prior if channel == said else [])
                head = head._replace(messages=head.messages + len(fresh))
                values[key], lists[channel] = rows.pack(rows.to_ranges(new.numbers)), new
                if channel == said:
                    self._log.add(fresh)
            else:
                values[key] = self._pack(value) if channel in given else rows.pack(None)
        if said in versions:
            self._remove(checkpoint["id"], prior, lists.get(said))
        kind, data = self._serde.dumps_typed({k: v for k, v in checkpoint.items() if k != "channel_values"})
        row = rows.pack([place.id or None, metadata, kind], data)
        self._put(rows.CHECKPOINTS, {rows.checkpoint_key(place.ns, checkpoint["id"]): row})
        self._put(rows.VALUES, values)
        self._put(rows.HEAD, {"": rows.pack(head)})
        return lists

    def put_writes(
        self, place: ThreadPlace, writes: Sequence[tuple[str, object]], task: str, path: str
    ) -> None:
        """Store the pending writes of a task; of those that are there, only special ones are replaced."""
        if self.head() is None:
            self._put(rows.HEAD, {"": rows.pack(ThreadHead(place.thread, token_hex(8), 0))})
        prefix = f"{rows.checkpoint_key(place.ns, place.id)}/{escape(task)}"
        places = [WRITES_IDX_MAP.get(channel, n) for n, (channel, _) in enumerate(writes)]
        there = self.get(rows.WRITES, [f"{prefix}/{n}" for n in places if n >= 0])
        data = {
            f"{prefix}/{n}": self._pack(value, path, task, n, channel)
            for n, (channel, value) in zip(places, writes, strict=True)
        }
        self._put(rows.WRITES, {key: item for key, item in data.items() if key not in there})

    def _number(self, new: KnownList, last: int, prior: list[int]) -> list[tuple[str, BaseMessage]]:
        """Store the messages without a number under new ones, and return them with their ids in the log."""
        first = [*new.numbers, 0].index(0)
        places = [place for place, number in enumerate(new.numbers[first:], first) if not number]
        known = self.messages(prior) if len(places) > _MANY else ()
        there = {(id.decode(), line + b"\n" + item): number for number, id, line, item in known}
        fresh, written = list[tuple[str, BaseMessage]](), dict[str, bytes]()
        for place in places:
            message = new.messages[place]
            id, data = _log_id(message, place), self._pack(message)
            if (number := there.get((id, data))) is None:
                fresh.append((id, message))
                number = last + len(fresh)
                written[rows.message_key(number, id)] = data
            new.numbers[place] = number
        self._put(rows.MESSAGES, written)
        return fresh

    def _parent_numbers(self, place: ThreadPlace, head: ThreadHead, channel: str) -> list[int]:
        """Return the numbers of a list of messages of the parent."""
        parent = self.checkpoint(place.ns, place.id) if place.id else None
        keys = [key for key, name in parent.channels.items() if name == channel] if parent else []
        values = self.values(keys, head.messages).values()
        return next((numbers for numbers, _ in values if not isinstance(numbers, str)), [])

    def _remove(self, checkpoint: str, prior: list[int], new: KnownList | None) -> None:
        """Leave a tombstone for the messages of the parent that are not there any more, in any version."""
        numbers = new.numbers if new else []
        # Most lists go on where that of the parent ends, and sets of long ones take long.
        if numbers[: len(prior)] != prior and (gone := set(prior).difference(numbers)):
            left = {_log_id(message, n) for n, message in enumerate(new.messages if new else ())}
            removed = [id for _, data, _, _ in self.messages(gone) if (id := data.decode()) not in left]
            self._log.remove(checkpoint, removed)

    # Removing and copying ---------------------------------------------------------------------------------

    def keep_latest(self) -> None:
        """Delete all checkpoints but the newest of each namespace, and those that it is rebuilt from."""
        kept, head = set[str](), self.head()
        for ns in {key.partition("/")[0] for key in self.keys(rows.CHECKPOINTS)}:
            row = self.checkpoint(unescape(ns), "")
            # Channels of which it may have no value, but the writes since an earlier checkpoint.
            needed = set(row.metadata.get("counters_since_delta_snapshot") or ()) if row else set()
            while head and row:
                kept.add(row.key)
                needed -= {row.channels[key] for key in self.values(row.channels, head.messages)}
                row = self.checkpoint(row.ns, row.parent) if needed and row.parent else None
        self._keep(kept)

    def remove_runs(self, run_ids: Collection[str]) -> None:
        """Delete the checkpoints of runs, with a tombstone for messages that no other one has."""
        kept = {row.key for row in self.checkpoints() if row.metadata.get("run_id") not in run_ids}
        self._log.remove(" ".join(sorted(run_ids)), self._keep(kept))

    def _keep(self, kept: Collection[str]) -> list[str]:
        """Delete all checkpoints but some, with items only they need; return the ids of lost messages."""
        gone, head = set(self.keys(rows.CHECKPOINTS)).difference(kept), self.head()
        if not gone or head is None:
            return []
        self._delete(rows.CHECKPOINTS, gone)
        writes = self.keys(rows.WRITES)
        self._delete(rows.WRITES, [key for key in writes if "/".join(key.split("/")[:2]) in gone])
        needed = {key for row in self.checkpoints() for key in row.channels}
        self._delete(rows.VALUES, set(self.keys(rows.VALUES)) - needed)
        lists = [some for some, _ in self.values(needed, head.messages).values() if not isinstance(some, str)]
        numbers = {number for some in lists for number in some}
        messages = {key: rows.message_of(key) for key in self.keys(rows.MESSAGES)}
        lost = {key: id for key, (number, id) in messages.items() if number not in numbers}
        if lost:
            self._delete(rows.MESSAGES, lost)
            # Whoever knows the numbers of deleted messages stores them again.
            self._put(rows.HEAD, {"": rows.pack(head._replace(epoch=token_hex(8)))})
        left = {id for key, (_, id) in messages.items() if key not in lost}
        return [id for id in lost.values() if id not in left]

    def copy(self, source: str, name: str) -> None:
        """Copy the items and the messages of the thread of a chat to this thread, which gets a name.

        Raises:
            Conflict: this one is there already.

        """
        other = ThreadItems(self._items, source, self._serde)
        if (head := other.head()) is None:
            return
        if self.head() is not None:
            raise Conflict(
                f"The thread {name!r} has checkpoints already.", "Delete it first, or copy to another one."
            )
        for collection in rows.COLLECTIONS:
            items = other.all(collection)
            while page := {item.key: item.data for item in islice(items, _PAGE)}:
                self._put(collection, page)
        self._put(rows.HEAD, {"": rows.pack(head._replace(thread=name, epoch=token_hex(8)))})
        self._log.copy(source)

    # ------------------------------------------------------------------------------------------------------

    def _put(self, collection: str, data: Mapping[str, bytes]) -> None:
        self._items.of(collection).put(data, self.chat)

    def _delete(self, collection: str, keys: Collection[str]) -> None:
        self._items.of(collection).delete(keys, self.chat)

    def _pack(self, value: object, *head: object) -> bytes:
        kind, data = self._serde.dumps_typed(value)
        return rows.pack([*head, kind] if head else kind, data)


def _log_id(message: BaseMessage, place: int) -> str:
    """Return the id of a message in the log: its own, or a hash of its words with its place."""
    return log_id(message.id or f"{digest(fingerprint(message).hex())[:32]}-{place}")
