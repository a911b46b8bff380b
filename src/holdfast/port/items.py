"""Items of a framework, which its adapter stores in one transaction with the messages of chats."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from operator import attrgetter
from typing import TYPE_CHECKING, Self

from holdfast.contract import check_provider
from holdfast.errors import InvalidInput
from holdfast.messages.message_tokens import message_tokens
from holdfast.messages.normalize import ready
from holdfast.runtime import runtime_of as internals_of
from holdfast.store import log, pads, payloads, sessions
from holdfast.store.database import decoding, retry_transaction
from holdfast.store.items import Item, ItemRows
from holdfast.store.message_rows import to_row
from holdfast.store.pads import ScratchpadKey
from holdfast.store.payloads import Payload
from holdfast.text.json_text import dump

if TYPE_CHECKING:
    from holdfast.chat import Chat
    from holdfast.memory import Memory
    from holdfast.runtime import Runtime
    from holdfast.store.database import Connection, Reader
    from holdfast.types import Message, Scope


_FEW, _PAGE = 8, 256  # messages read at once, at least and at most


class Items(ItemRows):
    """One collection of items of a memory: bytes under keys, of a chat or, with "" as its id, of none.

    They are erased with their chat, or with the user, and are in backups and in exports of everything; no
    recall, prompt or learning reads them. Keys are any texts, in the order of their code points. An item that
    has expired is not there any more, and `sweep` deletes it. All methods block. Each is a transaction of its
    own, except on what `writing` yields, where all are one.

    Args:
        memory: the memory whose scope the items belong to.
        collection: a name that no other adapter uses.

    Raises:
        InvalidInput: `memory` is not a memory, or it stores nothing.

    """

    def __init__(self, memory: Memory, collection: str) -> None:
        check_provider(memory)
        own = internals_of(memory)
        if own is None:
            raise InvalidInput("This memory stores nothing.", "Use one that has a database.")
        scope = memory.scope
        super().__init__(own.database_of(scope), own.now, scope.space, collection)
        self._memory, self._runtime, self._scope = memory, own, scope

    def shared(self) -> Self:
        """Return the same collection for all users of the tenant, in the same transaction."""
        return self._with(_space=self._scope.shared.space)

    def log(self, chat: str) -> Log:
        """Return the log of a chat, in the same transaction."""
        return Log(self, self._runtime, self._scope, chat)

    def erase(self, chat: str) -> None:
        """Erase a chat with its items and all that was said in it; the files are rewritten later."""
        try:
            self._memory.erase(chat=chat, rewrite=None)
        except InvalidInput:
            # There may be none, or a concurrent call has erased it.
            if self.scan(chat, limit=1):
                raise

    def chats_with(self, id: str) -> list[str]:
        """Return the chats with a message of this id, which its writer gave it."""
        return sessions.with_message(self.reader, self._space, id)

    # The scratchpad of the user, or of what all share -----------------------------------------------------

    def read_pad(self) -> dict[str, str]:
        """Return the scratchpad."""
        return pads.read_all(self.reader, ScratchpadKey(self._space))

    def write_pad(self, name: str, text: str | None) -> None:
        """Store a text on the scratchpad, or remove its name with None.

        Raises:
            InvalidInput, Denied: a scratchpad does not take it; see `Scratchpad`.

        """
        # Most adapters use none.
        from holdfast.scratchpad import check_entry

        pad = ScratchpadKey(self._space)
        if text is None:
            self.write(lambda tx: pads.delete(tx, pad, name))
        else:
            checked = check_entry(name, text)
            self.write(lambda tx: pads.put(tx, pad, name, checked, self.now))


class Log:
    """The log of a chat, in the transaction of the items that it was opened by: `Items.log`."""

    def __init__(self, items: ItemRows, runtime: Runtime, scope: Scope, chat: str) -> None:
        self._items, self._runtime, self._scope, self._chat = items, runtime, scope, chat

    def read(
        self, limit: int | None = None, *, before: int | None = None, after: int | None = None
    ) -> list[Message]:
        """Return messages, oldest first; see `Chat.history`."""
        space = self._scope.space
        return log.read(self._items.reader, space, self._chat, limit=limit, before=before, after=after)

    def find(self, ids: Sequence[str]) -> list[Message]:
        """Return the messages with these ids."""
        return log.by_ids(self._items.reader, self._scope.space, self._chat, ids)

    def backward(self, before: int | None = None) -> Iterator[Message]:
        """Iterate over the messages before a `seq` from the newest back, at the cost of those taken."""
        size = _FEW
        while page := self.read(size, before=before):
            yield from reversed(page)
            if len(page) < size:
                return
            before, size = page[0].seq, min(_PAGE, 2 * size)

    def given_ids(self, ids: Sequence[str]) -> set[str]:
        """Return those of some ids that callers gave to messages."""
        return log.given_ids(self._items.reader, self._scope.space, self._chat, ids)

    def append(self, messages: Sequence[Message]) -> list[tuple[int, str]]:
        """Append messages; return their numbers and ids.

        Those that have the id of a stored message are not stored again, nor returned.

        Raises:
            InvalidInput: one is not a message, or not JSON.
            Conflict: one differs from the stored message with the same id.

        """
        return self._items.write(lambda tx: self._append(tx, messages)) if messages else []

    def _append(self, tx: Connection, messages: Sequence[Message]) -> list[tuple[int, str]]:
        runtime, scope, now = self._runtime, self._scope, self._runtime.now()
        # Workers give way.
        runtime.workers.appended = time.monotonic()
        count = runtime.count_tokens
        rows = [to_row(draft, now, message_tokens(draft, count)) for draft in map(ready, messages)]
        pending = runtime.prompts.last_prompt(scope.space, self._chat)
        added, _ = log.append_rows(tx, scope, self._chat, rows, now, pending)
        if pending.unstored and any(row["role"] == "assistant" for row in added):
            runtime.prompts.hold(scope.space, self._chat, None)
        return [(row["seq"], row["id"]) for row in added]


def newest_payloads(memory: Memory, chat: Chat, limit: int, before: int | None = None) -> list[Payload]:
    """Return the newest messages of a chat before a `seq`, newest first, as they were given.

    They cost half of what whole messages do.

    Raises:
        Damaged: a payload cannot be decoded.

    """
    own, scope = internals_of(memory), memory.scope
    if own is not None:
        return payloads.newest(own.database_of(scope), scope.space, chat.id, limit, before=before)
    # Another provider has whole messages only.
    fields = attrgetter(*Payload._fields)
    return [Payload(*fields(message)) for message in reversed(chat.history(limit, before=before))]
