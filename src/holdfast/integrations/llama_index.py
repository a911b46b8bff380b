"""LlamaIndex: a chat store and a memory block for its `Memory`.

>>> from llama_index.core.memory import Memory as ChatMemory                    # doctest: +SKIP
>>> store = HoldfastChatStore(memory=memory)                                     # doctest: +SKIP
>>> block = HoldfastMemoryBlock(memory=memory)                                   # doctest: +SKIP
>>> ChatMemory.from_defaults("monday", chat_store=store, memory_blocks=[block])  # doctest: +SKIP
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from holdfast import Memory
from holdfast.errors import InvalidInput, MissingExtra
from holdfast.integrations.framework_keys import chat_id
from holdfast.integrations.off_loop import off_loop
from holdfast.integrations.opaque_items import check_type, read_message, restoring
from holdfast.port import formats
from holdfast.port.items import Items, retry_transaction
from holdfast.port.prompts import known_and_recalled
from holdfast.types import Message, Role, check_count
from holdfast.types.references import write_reference

try:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
    from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SkipValidation
except ImportError as error:
    raise MissingExtra.of("llama-index") from error

if TYPE_CHECKING:
    from holdfast.port.items import Item

_FRAMEWORK = "llama-index"
# The item that has the key of a chat; those of messages come after it.
_NAME = ""
_STATUSES = tuple(status.value for status in MessageStatus)
_ROLES: dict[str, Role] = {
    "user": "user",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}


class _MessageLists:
    """Lists of messages in the chats of LlamaIndex, by its keys: a message with `raw` is in one or in none.

    The log has each message once, and is append-only; in which list a message is, and where, is an item
    beside it. What is removed leaves its list, and a message in the log that says so. All methods block, and
    are safe for concurrent threads and processes.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory, self._table = memory, Items(memory, _FRAMEWORK)

    def chat(self, key: str) -> str:
        """Return the id of the chat of a key."""
        return chat_id(_FRAMEWORK, check_type(key, str, "The key of a chat", "Pass a text."))

    def keys(self) -> list[str]:
        """Return the keys of the chats that have a message in a list."""
        chats = (chat.id for chat in self._memory.chats(agent="", archived=None))
        scans = (self._table.scan(id, limit=2) for id in chats if id.startswith(f"{_FRAMEWORK}/"))
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
            if not self._entries(tx, chat, _STATUSES, 1):
                tx.log(chat).append(messages)

    @retry_transaction
    def replace(self, key: str, name: str, messages: Sequence[Message]) -> None:
        """Let a list have these messages, and the others none; those that are there already are kept.

        Raises:
            InvalidInput: one is not JSON; nothing was changed.

        """
        chat = self.chat(key)
        with self._table.writing() as tx:
            entries = self._entries(tx, chat, _STATUSES)
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
                for entry in self._entries(tx, chat, _STATUSES):
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
            tombstone = Message("system", what, meta={_FRAMEWORK: "removed"})
            tx.log(chat).append([tombstone])


def _entry_key(name: str, seq: int, place: int = 0) -> str:
    """Return the key of an item, in the order of the messages of a list."""
    return f"{name}/{seq:016x}{place:016x}"


def _position(entry: Item) -> str:
    return entry.key.rpartition("/")[2]


def _payload(message: Message) -> str:
    return json.dumps(message.raw, sort_keys=True)


class _OverLists(BaseModel):
    """The memory of a chat store or of a memory block, and its lists of messages."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: SkipValidation[Memory] = Field(exclude=True, repr=False)
    _lists: _MessageLists = PrivateAttr()

    def model_post_init(self, context: object, /) -> None:
        """Check the memory."""
        super().model_post_init(context)
        self._lists = _MessageLists(self.memory)


class HoldfastChatStore(_OverLists, AsyncDBChatStore):
    """Store the messages of LlamaIndex's `Memory` in chats of a memory, one for each key.

    Each message is one of the chat `llama-index/KEY`, so that recall, compaction and learning work on it,
    archived or not; LlamaIndex's own form of it is stored in `raw`. Which messages are active and which are
    archived is stored beside the log. What was deleted leaves the store but stays in the chat, followed by a
    message that records it; `Memory.erase` removes it. All methods are safe for concurrent tasks, threads and
    processes, and each is one transaction.

    Args:
        memory: the memory of the chats.

    """

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = MessageStatus.ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[ChatMessage]:
        """Return the messages of a key that have a status, or any if it is None, oldest first.

        Raises:
            Damaged: a stored message is not one of LlamaIndex any more.

        """
        return await off_loop(
            self.memory, lambda: _chat_messages(self._lists.read(key, _lists_of(status), limit, offset))
        )

    async def count_messages(self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE) -> int:
        """Return the number of messages of a key that have a status, or any if it is None."""
        return await off_loop(self.memory, self._lists.count, key, _lists_of(status))

    async def add_message(
        self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Append a message."""
        await self.add_messages(key, [message], status)

    async def add_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Append messages, all or none.

        Raises:
            InvalidInput: one is not a message, or holds what is not JSON; none was stored.

        """
        drafts = [_message(message) for message in messages]
        await off_loop(self.memory, self._lists.append, key, MessageStatus(status).value, drafts)

    async def set_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Put messages in the place of all of a key; those that are there already are not stored again."""
        drafts = [_message(message) for message in messages]
        await off_loop(self.memory, self._lists.replace, key, MessageStatus(status).value, drafts)

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete the message with this number in the chat, 1 for the first, and return it."""
        message = await off_loop(self.memory, self._lists.remove, key, idx)
        return None if message is None else _chat_messages([message])[0]

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Delete the messages of a key that have a status, or all."""
        await off_loop(self.memory, self._lists.take, key, _lists_of(status))

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Delete the oldest active messages of a key, and return them."""
        return _chat_messages(await self._oldest(key, n))

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive the oldest active messages of a key, and return them."""
        return _chat_messages(await self._oldest(key, n, MessageStatus.ARCHIVED))

    async def get_keys(self) -> list[str]:
        """Return the keys that have messages."""
        return await off_loop(self.memory, self._lists.keys)

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the class."""
        return "HoldfastChatStore"

    async def _oldest(self, key: str, n: int, to: MessageStatus | None = None) -> list[Message]:
        lists = _lists_of(MessageStatus.ACTIVE)
        return await off_loop(self.memory, self._lists.take, key, lists, n, to and to.value)


class HoldfastMemoryBlock(_OverLists, BaseMemoryBlock[str]):
    """Show what is known, and what is recalled for the newest message of the user, in LlamaIndex's `Memory`.

    What is known are constraints, soul, profile and facts, as in `Chat.prompt`; what was recalled is framed
    as data, and what the chat history shows already is not repeated. Messages that leave the history are
    stored in the chat of the session, unless a `HoldfastChatStore` of the memory has them there.

    Args:
        memory: what to recall from.
        name: the name of the block, which stands around its text.
        max_tokens: the tokens of what is recalled, as the memory counts them.
        known: whether to show what is known.
        options: options of `Memory.recall`, such as `limit`, `sources`, `kinds`, `where` or `min_score`.

    """

    name: str = "holdfast"
    max_tokens: int = Field(default=1_000, ge=0)
    known: bool = True
    options: dict[str, object] = Field(default_factory=dict)

    async def _aget(
        self, messages: list[ChatMessage] | None = None, session_id: str | None = None, **_: object
    ) -> str:
        return await off_loop(self.memory, self._show, messages or [], session_id or self.name)

    def _show(self, messages: Sequence[ChatMessage], session: str) -> str:
        said, chat = [_message(message) for message in messages], self._lists.chat(session)
        blocks = known_and_recalled(self.memory, chat, said, self.max_tokens, self.options, known=self.known)
        return "\n".join(filter(None, blocks))

    async def aput(
        self,
        messages: list[ChatMessage],
        # As LlamaIndex declares it.
        from_short_term_memory: bool = False,  # noqa: FBT001, FBT002
        session_id: str | None = None,
    ) -> None:
        """Store messages in the chat of the session, unless a chat store of the memory has them there."""
        if self.accept_short_term_memory or not from_short_term_memory:
            # Other blocks note the session in the messages.
            drafts = [_message(_without_session(message)) for message in messages]
            await off_loop(self.memory, self._lists.add_unlisted, session_id or self.name, drafts)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await self.aput(messages)


def _without_session(message: ChatMessage) -> ChatMessage:
    kwargs = {key: value for key, value in message.additional_kwargs.items() if key != "session_id"}
    return message.model_copy(update={"additional_kwargs": kwargs})


def _lists_of(status: MessageStatus | None) -> Sequence[str]:
    return _STATUSES if status is None else (MessageStatus(status).value,)


def _chat_messages(messages: Sequence[Message]) -> list[ChatMessage]:
    chat_messages = []
    for message in messages:
        with restoring(message, "none of LlamaIndex", "llama-index-core"):
            # Half the time of `model_validate`, which validates twice. Other messages have no `raw`.
            chat_messages.append(ChatMessage(**cast("Mapping[str, object]", message.raw)))
    return chat_messages


def _message(message: object) -> Message:
    """Return the message to store, with LlamaIndex's own form of it in `raw`."""
    given = check_type(message, ChatMessage, "A message", "Add LlamaIndex's ChatMessage.")
    try:
        raw = given.model_dump(mode="json")
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"A message is not JSON: {error}.", "Put JSON into `additional_kwargs`."
        ) from error
    if raw["additional_kwargs"].get("images"):
        # LlamaIndex could not read them back.
        raise InvalidInput("A message has images beside its blocks.", "Use ImageBlock.")
    role, kwargs = _ROLES.get(given.role.value, "assistant"), raw["additional_kwargs"]
    parts = list(_parts(raw["blocks"]))
    calls = [] if any(part["type"] == "tool_use" for part in parts) else kwargs.get("tool_calls")
    form = {"role": role, "content": parts, "tool_calls": calls, "tool_call_id": kwargs.get("tool_call_id")}
    return read_message(form, raw) or Message(role, "[message]", raw=raw)


def _parts(blocks: object) -> Iterator[dict[str, object]]:
    """Yield the blocks of a message as parts in the forms of OpenAI and Anthropic."""
    for block in formats.blocks_of(blocks):
        kind = block.get("block_type")
        if kind == "text":
            yield {"type": "text", "text": block["text"]}
        elif kind == "tool_call":
            id = block["tool_call_id"] or block["tool_name"]
            yield {"type": "tool_use", "id": id, "name": block["tool_name"], "input": block["tool_kwargs"]}
        elif kind == "citable":
            yield from _parts(block["content"])
        elif kind == "citation":
            yield from _parts([block["cited_content"]])
        elif kind != "cache":
            # Media, which are named, and thoughts, which are not shown.
            names = {"title": block.get("title"), "url": block.get("url") or block.get("path")}
            forms = [block[key] for key in block if key.endswith(("mimetype", "format"))]
            yield {"type": kind, **names, "media_type": next(filter(None, forms), None)}
