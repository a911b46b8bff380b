"""Lists of messages in a chat, such as the active and the archived ones: the log has each message once.

The log is append-only; in which list a message is, and where, is an item beside it. What is removed leaves
its list, and a message in the log that says so.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.integrations.framework_keys import chat_id
from holdfast.integrations.opaque_items import check_type
from holdfast.port.items import Items, retry_transaction
from holdfast.types import Message, check_count
from holdfast.types.references import write_reference

if TYPE_CHECKING:
    from holdfast import Memory
    from holdfast.port.items import Item

# The item that has the key of a chat; those of messages come after it.
_NAME = ""


class MessageLists:
    """Lists of messages in the chats of a framework, by its keys: a message with `raw` is in one or in none.

    All methods block, and are safe for concurrent threads and processes.

    Args:
        memory: the memory of the chats.
        framework: the name of the framework, the beginning of the ids of its chats.
        lists: the names of the lists.

    """

    def __init__(self, memory: Memory, framework: str, lists: Sequence[str]) -> None:
        self._memory, self._framework, self._lists = memory, framework, lists
        self._table = Items(memory, framework)

    def chat(self, key: str) -> str:
        """Return the id of the chat of a key."""
        return chat_id(self._framework, check_type(key, str, "The key of a chat", "Pass a text."))

    def keys(self) -> list[str]:
        """Return the keys of the chats that have a message in a list."""
        chats = (chat.id for chat in self._memory.chats(agent="", archived=None))
        scans = (self._table.scan(id, limit=2) for id in chats if id.startswith(f"{self._framework}/"))
        # The name comes first; what follows is the item of a message.
        return [items[0].data.decode("utf-8", "surrogatepass") for items in scans if len(items) == 2]

    def read(
        self, key: str, lists: Sequence[str], limit: int | None = None, offset: int | None = None
    ) -> list[Message]:
        """Return messages of some lists, oldest first, without those that were erased."""
        start = 0 if offset is None else check_count(offset, "offset")
        end = None if limit is None else start + check_count(limit, "limit")
        with self._table.reading():
            entries = self._entries(self._table, self.chat(key), lists, end)[start:end]
            return list(self._messages(self._table, self.chat(key), entries).values())

    def count(self, key: str, lists: Sequence[str]) -> int:
        """Return the number of messages of some lists, without those that were erased."""
        with self._table.reading():
            entries = self._entries(self._table, self.chat(key), lists)
            if not self._memory.chat(self.chat(key)).stats().erased:
                return len(entries)
            return len(self._messages(self._table, self.chat(key), entries))

    @retry_transaction
    def append(self, key: str, name: str, messages: Sequence[Message]) -> None:
        """Append messages to a list, all or none.

        Raises:
            InvalidInput: one is not JSON; none was stored.

        """
        if messages:
            with self._table.writing() as tx:
                added = tx.log(self.chat(key)).append(messages)
                self._put(tx, key, {_entry_key(name, seq): id for seq, id in added})

    @retry_transaction
    def add_unlisted(self, key: str, messages: Sequence[Message]) -> None:
        """Append messages to the chat of a key but to no list, unless the chat has lists with messages."""
        chat = self.chat(key)
        with self._table.writing() as tx:
            if not self._entries(tx, chat, self._lists, 1):
                tx.log(chat).append(messages)

    @retry_transaction
    def replace(self, key: str, name: str, messages: Sequence[Message]) -> None:
        """Let a list have these messages, and the others none; those that are there already are kept.

        Raises:
            InvalidInput: one is not JSON; nothing was changed.

        """
        chat = self.chat(key)
        with self._table.writing() as tx:
            entries = self._entries(tx, chat, self._lists)
            there = self._messages(tx, chat, entries)
            same = defaultdict[str, list[str]](list)
            for message in reversed(there.values()):
                same[_payload(message)].append(message.id)
            payloads = map(_payload, messages)
            kept = [same[payload].pop() if same[payload] else None for payload in payloads]
            fresh = [message for message, id in zip(messages, kept, strict=True) if id is None]
            added = iter([id for _, id in tx.log(chat).append(fresh)])
            ids = [next(added) if id is None else id for id in kept]
            left = set(ids)
            self._remove(tx, chat, entries, [message for message in there.values() if message.id not in left])
            for newest in tx.log(chat).read(1) if ids else ():
                self._put(tx, key, {_entry_key(name, newest.seq, n): id for n, id in enumerate(ids)})

    @retry_transaction
    def take(
        self, key: str, lists: Sequence[str], count: int | None = None, to: str | None = None
    ) -> list[Message]:
        """Move the oldest messages of some lists to another one, or to none; return them, oldest first."""
        most, chat = None if count is None else check_count(count, "n"), self.chat(key)
        with self._table.writing() as tx:
            while True:
                entries = self._entries(tx, chat, lists, most)[:most]
                messages = self._messages(tx, chat, entries)
                erased = [entry for entry in entries if entry.data.decode() not in messages]
                if not erased:
                    break
                self._remove(tx, chat, erased, [])
            if not messages:
                return []
            if to is None:
                self._remove(tx, chat, entries, list(messages.values()))
            else:
                self._remove(tx, chat, entries, [])
                moved = {f"{to}/{_position(entry)}": entry.data.decode() for entry in entries}
                self._put(tx, key, moved)
            return list(messages.values())

    @retry_transaction
    def remove(self, key: str, seq: int) -> Message | None:
        """Remove the message with this number in the chat from its list; None if it is in none."""
        chat, number = self.chat(key), check_count(seq, "The number of a message")
        with self._table.writing() as tx:
            for message in tx.log(chat).read(1, after=number - 1):
                for entry in self._entries(tx, chat, self._lists):
                    if message.seq == number and entry.data.decode() == message.id:
                        self._remove(tx, chat, [entry], [message])
                        return message
        return None

    def _entries(self, db: Items, chat: str, lists: Iterable[str], limit: int | None = None) -> list[Item]:
        """Return the items of some lists in the order of their messages, at least the first `limit`."""
        entries = [entry for name in lists for entry in db.scan(chat, prefix=f"{name}/", limit=limit)]
        return sorted(entries, key=_position)

    def _messages(self, db: Items, chat: str, entries: Sequence[Item]) -> dict[str, Message]:
        """Return the messages of items by their ids, in their order, without those that were erased."""
        ids = [entry.data.decode() for entry in entries]
        messages = {message.id: message for message in db.log(chat).find(ids)}
        return {id: messages[id] for id in ids if id in messages}

    def _put(self, tx: Items, key: str, entries: Mapping[str, str]) -> None:
        data = {entry: id.encode() for entry, id in entries.items()}
        data[_NAME] = key.encode("utf-8", "surrogatepass")
        tx.put(data, self.chat(key))

    def _remove(self, tx: Items, chat: str, entries: Sequence[Item], messages: Sequence[Message]) -> None:
        """Delete items, and say in the log that messages were removed from all lists."""
        tx.delete([entry.key for entry in entries], chat)
        if messages:
            seqs = sorted(message.seq for message in messages)
            what = f"[message {write_reference(chat, seqs[0])} was removed]"
            if len(seqs) > 1:
                what = f"[{len(seqs)} messages of {write_reference(chat, seqs[0], seqs[-1])} were removed]"
            tombstone = Message("system", what, meta={self._framework: "removed"})
            tx.log(chat).append([tombstone])


def _entry_key(name: str, seq: int, place: int = 0) -> str:
    """Return the key of an item, in the order of the messages of a list."""
    return f"{name}/{seq:016x}{place:016x}"


def _position(entry: Item) -> str:
    return entry.key.rpartition("/")[2]


def _payload(message: Message) -> str:
    return json.dumps(message.raw, sort_keys=True)
