"""How a checkpoint is stored: what is new in it, once, and what its messages say, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import TYPE_CHECKING, NamedTuple

from langchain_core.messages import BaseMessage

from holdfast.integrations.framework_keys import digest, escape, unescape
from holdfast.integrations.langgraph import checkpoint_rows as rows
from holdfast.integrations.langgraph.checkpoint_rows import (
    StoredCheckpoint,
    StoredMessage,
    StoredWrite,
    ThreadHead,
)
from holdfast.integrations.langgraph.known_messages import KnownList, Numbering, fingerprint, numbering
from holdfast.integrations.langgraph.thread_items import ListOfMessages
from holdfast.store import items

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from holdfast.integrations.langgraph.message_log import MessageLog
    from holdfast.integrations.langgraph.thread_items import ThreadItems
    from holdfast.store.database import Connection
    from holdfast.types import Range


# So many unknown messages are looked up among those of the parent, which another process may have stored.
_MANY = 8


class CheckpointDraft(NamedTuple):
    """A checkpoint to store: its row, its new values as items, and its new lists of messages, by keys."""

    row: StoredCheckpoint
    values: Mapping[str, bytes]
    lists: Mapping[str, Sequence[BaseMessage]]


class CheckpointWriter:
    """Stores a checkpoint of a thread within a transaction."""

    def __init__(
        self, tx: Connection, thread: ThreadItems, serde: SerializerProtocol, log: MessageLog, now: int
    ) -> None:
        self._tx, self._thread, self._serde, self._log, self._now = tx, thread, serde, log, now

    def put(
        self,
        name: str,
        draft: CheckpointDraft,
        known: Mapping[str, KnownList],
        said: str | None,
        parent: StoredCheckpoint | None,
    ) -> dict[str, KnownList]:
        """Store a checkpoint of a thread, and return its new lists by their keys.

        `known` are lists that the new ones may continue, by the same keys. `said` is the key of the new list
        whose messages are in the log; None if there is no new one.
        """
        head = ensure_head(self._tx, self._thread, name, self._now)
        prior = self._ranges(parent.said) if said and parent and parent.said else []
        values, stored = dict(draft.values), dict[str, KnownList]()
        for key, messages in draft.lists.items():
            old = prior if key == said else []
            found = numbering(known[key], messages) if known[key].epoch == head.epoch else _unknown(messages)
            # Before they are stored: a node may change them meanwhile, and that must be seen next time.
            as_now = KnownList.of(head.epoch, messages, [], found.contents)
            fresh, ranges = self._number(head, messages, found, old)
            head = head._replace(messages=head.messages + len(fresh))
            values[key] = rows.pack(ranges)
            stored[key] = as_now._replace(ranges=ranges)
            if key == said and fresh:
                self._log.add(self._tx, fresh)
        if said:
            self._remove(draft.row.id, prior, stored.get(said), draft.lists.get(said, ()))
        self._put(rows.HEAD, {"": head.packed()})
        self._put(rows.VALUES, values)
        self._put(rows.CHECKPOINTS, {draft.row.key: draft.row.packed()})
        return stored

    def _number(
        self, head: ThreadHead, messages: Sequence[BaseMessage], found: Numbering, prior: list[Range]
    ) -> tuple[dict[str, BaseMessage], list[Range]]:
        """Store the messages that are new; return them by their identities, and the numbers of all."""
        many = found.rest.count(None) > _MANY
        there = {one: number for number, one in self._thread.messages(prior).items()} if many else {}
        start = len(messages) - len(found.rest)
        fresh, written, numbers = dict[str, BaseMessage](), dict[str, bytes](), list[int]()
        for place, (message, known_number) in enumerate(
            zip(messages[start:], found.rest, strict=True), start
        ):
            number = known_number
            if number is None:
                stored = StoredMessage(escape(_identity(message, place)), self._serde.dumps_typed(message))
                number = there.get(stored)
            if number is None:
                number = head.messages + len(written) + 1
                written[rows.message_key(number)] = stored.packed()
                fresh[_unused(unescape(stored.identity), fresh)] = message
            numbers.append(number)
        self._put(rows.MESSAGES, written)
        return fresh, rows.joined(found.ranges, rows.to_ranges(numbers))

    def _ranges(self, key: str) -> list[Range]:
        value = self._thread.values([key]).get(key)
        return value.ranges if isinstance(value, ListOfMessages) else []

    def _remove(
        self, checkpoint: str, prior: list[Range], stored: KnownList | None, messages: Sequence[BaseMessage]
    ) -> None:
        """Leave a tombstone for the messages of the parent that are not there any more, in any version."""
        gone = rows.without(prior, stored.ranges if stored else [])
        if gone:
            left = {message.id for message in messages}
            removed = self._thread.messages(rows.to_ranges(gone)).values()
            identities = [one for one in (unescape(each.identity) for each in removed) if one not in left]
            self._log.remove(self._tx, checkpoint, identities)

    def _put(self, collection: str, data: Mapping[str, bytes]) -> None:
        if data:
            items.put(self._tx, self._thread.place(collection), data, self._now)


def put_writes(
    tx: Connection, thread: ThreadItems, name: str, ns: str, id: str, writes: Sequence[StoredWrite], now: int
) -> None:
    """Store the pending writes of a task; of those that are there already, only special ones are replaced."""
    ensure_head(tx, thread, name, now, store=True)
    data = {rows.write_key(ns, id, one.task, one.place): one for one in writes}
    place = thread.place(rows.WRITES)
    there = items.get(tx, place, [key for key, one in data.items() if one.place >= 0], now)
    items.put(tx, place, {key: one.packed() for key, one in data.items() if key not in there}, now)


def ensure_head(
    tx: Connection, thread: ThreadItems, name: str, now: int, *, store: bool = False
) -> ThreadHead:
    """Lock a thread and return its head; `store` stores that of a new one."""
    tx.lock(thread.space)
    if (head := thread.head()) is None:
        head = ThreadHead(name, token_hex(8), 0)
        if store:
            items.put(tx, thread.place(rows.HEAD), {"": head.packed()}, now)
    return head


def _unknown(messages: Sequence[BaseMessage]) -> Numbering:
    return Numbering([], [], [None] * len(messages))


def _identity(message: BaseMessage, place: int) -> str:
    """Return the id of a message; one without an id is known by its words and its place."""
    return message.id or f"{digest(fingerprint(message).hex())[:32]}-{place}"


def _unused(identity: str, used: Mapping[str, object]) -> str:
    """Return an identity that a list does not have yet: lists may have an id twice."""
    return identity if identity not in used else f"{identity}-{len(used)}"
