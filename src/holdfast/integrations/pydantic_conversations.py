"""pydantic-ai: a store of conversations, whose messages are those of chats.

>>> store = HoldfastConversationStore(memory)                                    # doctest: +SKIP
>>> conversation = await store.load("monday") or Conversation(conversation_id="monday")  # doctest: +SKIP
>>> await store.save(await agent.run("Hello", conversation=conversation))         # doctest: +SKIP
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import Damaged, MissingExtra
from holdfast.integrations.framework_keys import chat_id
from holdfast.integrations.off_loop import off_loop
from holdfast.integrations.opaque_items import check_type
from holdfast.port.items import Items, retry_transaction

try:
    from pydantic import TypeAdapter
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )

    from holdfast.integrations.pydantic_messages import restore_message, to_messages
except ImportError as error:
    raise MissingExtra.of("pydantic-ai") from error

if TYPE_CHECKING:
    from holdfast import Memory
    from holdfast.types import Message

_NAME = "pydantic-ai"
# The one item of a conversation: its record, and where its newest entry is.
_RECORD = "record"
_RECORDS = TypeAdapter(ConversationRecord)


class HoldfastConversationStore(ConversationStore):
    """Store the conversations of pydantic-ai in the chats of a memory.

    Each message is stored once, in the chat of the conversation that added it, so that recall, windows,
    compaction and learning work on it; forks and branches share it. The record of a conversation, with its
    usage and what it waits for, is beside the chat and goes when that is erased. Messages that others append
    to the chat are not in the conversation.

    The log is append-only. A conversation that is deleted does not load any more, but what was said stays in
    the chat, also for the forks that share it; `memory.erase(chat=store.chat_id(…))` removes it, from the
    forks as well. A history goes on without what was erased.

    All methods are safe for concurrent tasks, threads and processes. A call that is cancelled while it writes
    ends after the write.

    Args:
        memory: the memory of the chats.

    Raises:
        InvalidInput: `memory` is not a memory, or it stores nothing.

    """

    def __init__(self, memory: Memory) -> None:
        self._memory, self._conversations = memory, _Conversations(memory)

    def chat_id(self, conversation_id: str) -> str:
        """Return the id of the chat of a conversation."""
        return _chat_of(conversation_id)

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the record of a conversation; None if it is not stored."""
        return await off_loop(self._memory, self._conversations.read, conversation_id)

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> list[ConversationRecord]:
        """Return the stored records, or those of a scope, newest first."""
        return await off_loop(self._memory, self._conversations.records, scope, limit)

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record with its new entries, all or nothing.

        Raises:
            ConversationConflict: the stored record has another revision, or an entry follows an unknown one.
            InvalidInput: an entry cannot be stored.

        """
        await off_loop(self._memory, self._conversations.write, record, new_entries, expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete the record of a conversation; its entries stay in the chat until that is erased.

        Raises:
            ConversationConflict: no record with this revision is stored.

        """
        await off_loop(self._memory, self._conversations.delete, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return the entry that has an id.

        Raises:
            KeyError: there is none.

        """
        return (await off_loop(self._memory, self._conversations.history, entry_id, 1))[0]

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """Return the entries up to `head_id` in their order, or the last `limit` of them.

        Raises:
            KeyError: no entry has this id.

        """
        if head_id is None:
            return []
        return await off_loop(self._memory, self._conversations.history, head_id, limit)


def _chat_of(conversation_id: str) -> str:
    return chat_id(_NAME, check_type(conversation_id, str, "The id of a conversation", "Pass a text."))


class _Conversations:
    """What the store reads and writes. All methods block."""

    def __init__(self, memory: Memory) -> None:
        self._table = Items(memory, _NAME)

    def read(self, conversation_id: str) -> ConversationRecord | None:
        chat = _chat_of(conversation_id)
        with self._table.reading():
            return self._record_of(self._table, chat)

    def _record_of(self, db: Items, chat: str) -> ConversationRecord | None:
        """Return the record of a chat; None if it has none."""
        item = db.get(_RECORD, chat)
        return None if item is None else self._without_erased(db, *_decode(item.data))

    def _without_erased(self, db: Items, record: ConversationRecord, head: _EntryPlace) -> ConversationRecord:
        """Return a record whose head and branches are entries that are there."""
        if record.head_id is not None and _find(db, record.head_id, head.chat) is None:
            older = next(_history(db, head), None)
            record = replace(record, head_id=older and older.id)
        if record.branches:
            left = [tip for tip in record.branches if _find(db, tip, head.chat)]
            record = replace(record, branches=left)
        return record

    def records(self, scope: str | None, limit: int | None) -> list[ConversationRecord]:
        with self._table.reading():
            stored = (_decode(item.data) for _, item in self._table.scan_chats())
            rows = [row for row in stored if scope is None or row[0].scope == scope]
            rows.sort(key=lambda row: row[0].updated_at, reverse=True)
            return [self._without_erased(self._table, *row) for row in rows[:limit]]

    @retry_transaction
    def write(
        self, record: ConversationRecord, entries: Sequence[ConversationEntry], expected: str | None
    ) -> None:
        chat = _chat_of(record.conversation_id)
        drafts = [(entry.id, entry.parent_id, to_messages([entry.message])) for entry in entries]
        with self._table.writing() as tx:
            there = self._record_of(tx, chat)
            if (there and there.revision) != expected or not _append(tx, chat, drafts):
                raise ConversationConflict(record.conversation_id)
            head = _EntryPlace(chat, 0) if record.head_id is None else _find(tx, record.head_id, chat)
            if head is None:
                raise ConversationConflict(record.conversation_id)
            tx.put({_RECORD: _encode(record, head)}, chat)

    @retry_transaction
    def delete(self, conversation_id: str, expected: str) -> None:
        chat = _chat_of(conversation_id)
        with self._table.writing() as tx:
            there = self._record_of(tx, chat)
            if there is None or there.revision != expected:
                raise ConversationConflict(conversation_id)
            tx.delete([_RECORD], chat)

    def history(self, head_id: str, limit: int | None) -> list[ConversationEntry]:
        with self._table.reading():
            head = _find(self._table, head_id, "")
            if head is None:
                raise KeyError(head_id)
            newest = islice(_history(self._table, head), limit)
            return list(_entries(newest))[::-1]


def _entries(entries: Iterator[_LoggedEntry]) -> Iterator[ConversationEntry]:
    for entry in entries:
        message = restore_message(entry.messages)
        if message is None:
            raise Damaged(
                f"The entry {entry.id!r} holds no message that pydantic-ai can read.",
                "Update pydantic-ai-slim, or erase its messages.",
            )
        yield ConversationEntry(id=entry.id, parent_id=entry.parent, message=message)


def _encode(record: ConversationRecord, head: _EntryPlace) -> bytes:
    # As text, since broken characters are no UTF-8.
    dumped = _RECORDS.dump_python(record, mode="json", fallback=repr)
    return json.dumps({"record": dumped, "head": head}).encode()


def _decode(data: bytes) -> tuple[ConversationRecord, _EntryPlace]:
    try:
        stored = json.loads(data)
        return _RECORDS.validate_python(stored["record"]), _EntryPlace(*stored["head"])
    except (LookupError, TypeError, ValueError) as error:
        raise Damaged(
            f"The record of a conversation cannot be read: {error}.",
            "Update pydantic-ai-slim, or erase the chat.",
        ) from error


# Conversations that branch, in the log of a chat: each entry follows the previous one, or links to another.
# An entry is one or more messages. One that follows the newest entry of its chat says nothing; any other has
# a link in `meta` to the entry that it follows, in its own chat or in another one. So a history is read
# backwards without what lies on other branches, and goes on at the next older entry where messages were
# erased.


class _EntryPlace(NamedTuple):
    """Where the newest message of an entry is."""

    chat: str
    seq: int


class _LoggedEntry(NamedTuple):
    """An entry: its id, the id of the one that it follows, and its messages in their order."""

    id: str
    parent: str | None
    messages: list[Message]


def _find(db: Items, id: str, chat: str) -> _EntryPlace | None:
    """Return where an entry is, looking into `chat` first; None if it is not there, or was erased."""
    here = _in_chat(db, id, chat)
    # Only a fork, or a reader who knows nothing but the id, has to look into all chats.
    others = () if here else db.chats_with(id)
    return here or next((place for other in others if (place := _in_chat(db, id, other))), None)


def _in_chat(db: Items, id: str, chat: str) -> _EntryPlace | None:
    seqs = (message.seq for message in db.log(chat).find([id]) if _entry(message) == id)
    return next((_EntryPlace(chat, seq) for seq in seqs), None)


def _append(tx: Items, chat: str, entries: Sequence[tuple[str, str | None, Sequence[Message]]]) -> bool:
    """Append entries (id, id of the entry before, messages); return False if an entry before is unknown.

    Raises:
        InvalidInput: one cannot be stored.
        Conflict: another message has the id of one.

    """
    newest = next(filter(None, map(_entry, tx.log(chat).backward())), None)
    drafts: list[Message] = []
    for id, parent, messages in entries:
        mark: dict[str, object] = {"entry": id}
        if parent != newest:
            place = None if parent is None else _find(tx, parent, chat)
            if place is None and parent is not None:
                return False
            mark["after"] = place and {"entry": parent, "chat": place.chat, "seq": place.seq}
        last = len(messages) - 1
        drafts += [
            replace(message, id=id if n == last else f"{id}.{n}", meta={**message.meta, _NAME: mark})
            for n, message in enumerate(messages)
        ]
        newest = id
    tx.log(chat).append(drafts)
    return True


def _history(db: Items, head: _EntryPlace) -> Iterator[_LoggedEntry]:
    """Yield the entries from `head` back to the first, newest first."""
    group: list[Message] = []
    for message in _follow_links(db, head):
        if group and _entry(group[-1]) != _entry(message):
            yield _logged_entry(group, _entry(message))
            group = []
        group.append(message)
    if group:
        yield _logged_entry(group, None)


def _logged_entry(group: list[Message], parent: str | None) -> _LoggedEntry:
    return _LoggedEntry(str(_entry(group[0])), parent, group[::-1])


def _follow_links(db: Items, head: _EntryPlace) -> Iterator[Message]:
    """Yield the messages of entries from `head` backwards, following links."""
    place: _EntryPlace | None = head
    seen: set[_EntryPlace] = set()
    while place is not None and place not in seen:
        # A link leads to something older, unless somebody wrote it by hand.
        seen.add(place)
        place = yield from _until_link(db, place)


def _until_link(db: Items, place: _EntryPlace) -> Generator[Message, None, _EntryPlace | None]:
    """Yield messages up to an entry with a link; return where that leads."""
    link: Mapping[str, object] | None = None
    linked: str | None = None
    for message in db.log(place.chat).backward(place.seq + 1):
        id = _entry(message)
        if linked is not None and id != linked:
            break
        if id is None:
            continue
        yield message
        mark = message.meta[_NAME]
        if isinstance(mark, dict) and "after" in mark:
            linked, link = id, mark["after"]
    return _link_target(db, link) if isinstance(link, dict) else None


def _link_target(db: Items, link: Mapping[str, object]) -> _EntryPlace | None:
    """Return where a link leads; if that was erased, where it was, and reading goes on before it."""
    id, chat, seq = link.get("entry"), link.get("chat"), link.get("seq")
    if not (isinstance(id, str) and isinstance(chat, str) and isinstance(seq, int)):
        return None
    return _find(db, id, chat) or _EntryPlace(chat, seq)


def _entry(message: Message) -> str | None:
    """Return the id of the entry that a message belongs to; None if it belongs to none."""
    mark = message.meta.get(_NAME)
    id = mark.get("entry") if isinstance(mark, dict) else None
    return id if isinstance(id, str) else None
