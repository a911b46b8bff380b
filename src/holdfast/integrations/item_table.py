"""What a framework keeps that is no message: keyed bytes, beside the chats of a memory."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from holdfast.contract import check_provider
from holdfast.errors import InvalidInput
from holdfast.messages.message_tokens import message_tokens
from holdfast.messages.normalize import ready
from holdfast.runtime import runtime_of
from holdfast.store import items, log
from holdfast.store.database import retry_transaction
from holdfast.store.items import Item, ItemPlace
from holdfast.store.message_rows import to_row

if TYPE_CHECKING:
    from holdfast import Memory
    from holdfast.store.database import Connection, Reader
    from holdfast.types import Message


class ItemTable:
    """One collection of items of a memory: bytes under keys, of a chat or, with "" as its id, of none.

    They are erased with their chat, or with the user, and are in backups and in exports of everything; no
    recall, prompt or learning reads them. Keys are any texts, in the order of their code points. An item that
    has expired is not there any more, and `sweep` deletes it. All methods block.

    Args:
        memory: the memory whose scope the items belong to.
        collection: a name that no other adapter uses.

    Raises:
        InvalidInput: `memory` is not a memory, or it stores nothing.

    """

    def __init__(self, memory: Memory, collection: str) -> None:
        check_provider(memory)
        runtime = runtime_of(memory)
        if runtime is None:
            raise InvalidInput("This memory stores nothing.", "Use one that has a database.")
        self._runtime, self.database = runtime, runtime.database_of(memory.scope)
        self._scope, self._collection = memory.scope, collection
        self.now, self.space = runtime.now, memory.scope.space

    def place(self, chat: str = "") -> ItemPlace:
        """Return where the items of a chat are, for the functions of `holdfast.store.items`."""
        return ItemPlace(self.space, chat, self._collection)

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Let all queries in the block see one state of the database."""
        with self.database.one_read():
            yield self.database

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction beside which no other one changes the space."""
        with self.database.writing_to(self.space) as tx:
            yield tx

    def append(self, tx: Connection, chat: str, messages: Sequence[Message]) -> list[tuple[int, str]]:
        """Append messages to the log of a chat within a transaction; return their numbers and ids.

        Those that have the id of a stored message are not stored again, nor returned.

        Raises:
            InvalidInput: one is not a message, or not JSON.
            Conflict: one differs from the stored message with the same id.

        """
        if not messages:
            return []
        runtime, now = self._runtime, self.now()
        # Workers give way.
        runtime.workers.appended = time.monotonic()
        rows = [to_row(one, now, message_tokens(one, runtime.count_tokens)) for one in map(ready, messages)]
        asked = runtime.prompts.asked(self.space, chat)
        added, _ = log.append_rows(tx, self._scope, chat, rows, now, asked)
        if asked.unstored and any(row["role"] == "assistant" for row in added):
            runtime.prompts.hold(self.space, chat, None)
        return [(row["seq"], row["id"]) for row in added]

    def get(self, key: str, chat: str = "") -> Item | None:
        """Return the item that has a key; None if there is none."""
        return items.get_one(self.database, self.place(chat), key, self.now())

    def get_many(self, keys: Iterable[str], chat: str = "") -> dict[str, Item]:
        """Return the items that have some keys, by their keys."""
        return items.get(self.database, self.place(chat), keys, self.now())

    def scan(
        self,
        chat: str = "",
        *,
        prefix: str = "",
        after: str | None = None,
        before: str | None = None,
        descending: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Item]:
        """Return the items whose keys begin with `prefix`, in the order of the keys, without the bounds.

        The first `offset` of them are passed over.
        """
        return items.scan(
            self.database,
            self.place(chat),
            self.now(),
            prefix=prefix,
            after=after,
            before=before,
            descending=descending,
            limit=limit,
            offset=offset,
        )

    @retry_transaction
    def put(self, data: Mapping[str, bytes], chat: str = "", *, seconds: float | None = None) -> None:
        """Store items in one transaction, in place of those with their keys, for so many seconds."""
        now = self.now()
        with self.database.writing() as tx:
            items.put(tx, self.place(chat), data, now, _expiry(now, seconds))

    @retry_transaction
    def replace(
        self, key: str, data: bytes, revision: int, chat: str = "", *, seconds: float | None = None
    ) -> int:
        """Store an item if the one that has its key has this revision, 0 for none; return the new revision.

        Raises:
            Conflict: it has another one; nothing was stored.

        """
        now = self.now()
        with self.database.writing() as tx:
            return items.replace(tx, self.place(chat), key, data, revision, now, _expiry(now, seconds))

    @retry_transaction
    def delete(self, keys: Iterable[str] | None = None, chat: str = "", *, prefix: str = "") -> int:
        """Delete the items that have some keys, or those with a prefix; return their number."""
        with self.database.writing() as tx:
            return items.delete(tx, self.place(chat), None if keys is None else list(keys), prefix)

    @retry_transaction
    def sweep(self) -> int:
        """Delete what has expired, of all collections of the space, and return its number."""
        with self.database.writing() as tx:
            return len(items.delete_expired(tx, self.space, self.now()))


def _expiry(now: int, seconds: float | None) -> int | None:
    return None if seconds is None else now + round(seconds * 1_000_000)
