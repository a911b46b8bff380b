"""Items of a framework's session as messages of a chat, append-only: what is removed leaves a tombstone.

A tombstone is a message that says which items were removed, and where to read on, so that reading the newest
items takes as long as there are items to return, however many were removed before them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar
from uuid import uuid4

from holdfast.errors import Conflict, InvalidInput
from holdfast.integrations.opaque_items import read_message
from holdfast.port.items import Payload, newest_payloads
from holdfast.port.texts import clean, shorten_line
from holdfast.types import ROLES, Message, Role
from holdfast.types.references import write_reference

if TYPE_CHECKING:
    from holdfast import Memory

T = TypeVar("T")
_PAGE, _FEW = 256, 10  # messages read at once, at most and at least
_ITEM, _TAKEN_BACK, _CLEARED = "item", "taken back", "cleared"
_LONGEST_TYPE = 40  # characters of an unknown type of items


class SessionItems:
    """The items of a session: messages with `raw`, without those that were removed. All methods block.

    Messages that others append to the chat are not items. All methods are safe for concurrent threads and
    processes: no item is removed twice.

    Args:
        memory: the memory of the chat that stores them.
        chat: the id of the chat.
        mark: the name of the framework, the key in `meta` that tells items and tombstones.

    """

    def __init__(self, memory: Memory, chat: str, mark: str) -> None:
        self._memory, self._chat, self._mark = memory, memory.chat(chat), mark

    def append(self, items: Sequence[Message]) -> list[Message]:
        """Append items, all or none, and return them as stored.

        Raises:
            InvalidInput: one is not JSON; none was stored.
            Conflict: one differs from the stored message with the same id; none was stored.

        """
        return self._chat.append([self._as_item(item) for item in items]) if items else []

    def newest(self, limit: int | None = None) -> list[Payload]:
        """Return the newest items, newest first; all without a limit."""
        return self._newest_items(limit).items

    def read(self, make: Callable[[Payload], T], limit: int | None = None) -> list[T]:
        """Return the newest items, each converted by `make`, oldest first; all without a limit.

        Many items are made page by page, so that what they are made of is not held until the end.
        """
        return self._read(limit, make).items[::-1]

    def pop(self) -> Payload | None:
        """Remove the newest item and return it; None if there is none."""
        refused = ""
        while (tail := self._newest_items(2)).items:
            newest = tail.items[0]
            try:
                self._chat.append([self._tombstone(tail)])
            except Conflict:
                # A concurrent call removed the item, so the next one is tried. The same item twice means that
                # a message of another kind has the id.
                if newest.id == refused:
                    raise
                refused = newest.id
            else:
                return newest
        return None

    def clear(self) -> None:
        """Remove all items."""
        if self._newest_items(1).items:
            meta = {self._mark: _CLEARED}
            self._chat.append([Message("system", "[the session was cleared]", meta=meta)])

    def replace(
        self, newest: Sequence[Payload], items: Sequence[Message], also: Sequence[Payload] = ()
    ) -> bool:
        """Put items in the place of the newest ones, oldest first; return whether those were the newest.

        Then `also`, which are older, are removed as well.
        """
        tail = self._newest_items(len(newest) + 1)
        if not newest or _ids(tail.items[: len(newest)]) != _ids(reversed(newest)):
            return False
        try:
            tombstone = self._tombstone(tail._replace(gone=tail.gone.union(_ids(also))), len(newest))
            self._chat.append([tombstone, *map(self._as_item, items)])
        except Conflict:
            # A concurrent call changed the newest items.
            return False
        return True

    def _as_item(self, item: Message) -> Message:
        # To copy a message takes as long as to read it.
        if item.meta.get(self._mark) == _ITEM:
            return item
        return replace(item, meta={**item.meta, self._mark: _ITEM})

    def _newest_items(self, limit: int | None) -> _Newest[Payload]:
        return self._read(limit, lambda item: item)

    def _read(self, limit: int | None, make: Callable[[Payload], T], *, jump: bool = True) -> _Newest[T]:
        """Return the newest items, converted by `make`; `jump` follows the links of tombstones."""
        items: list[T] = []
        gone: set[str] = set()
        jumps: dict[str, _Jump] = {}
        newest, before, to, size = "", None, "", _PAGE if limit is None else min(_PAGE, max(limit, _FEW))
        while limit is None or len(items) < limit:
            page = newest_payloads(self._memory, self._chat, size, before)
            if to and (not page or page[0].id != to):
                # The chat was imported, and its messages have other numbers.
                return self._read(limit, make, jump=False)
            newest, to = newest or (page[0].id if page else ""), ""
            for message in page:
                if message.id in jumps and jump and limit is not None:
                    taken, to, below = jumps[message.id]
                    gone -= taken
                    before = below + 1
                    break
                kind = message.meta.get(self._mark)
                if kind == _CLEARED:
                    return _Newest(items, newest, frozenset())
                if kind == _TAKEN_BACK:
                    gone |= {*_removed_ids(message), *_texts(message.meta.get("gone"))}
                    jumps |= _jump(message)
                elif message.id in gone:
                    gone.remove(message.id)
                elif kind == _ITEM and message.raw is not None:
                    items.append(make(message))
                    if len(items) == limit:
                        break
            else:
                if len(page) < size:
                    break
                before, size = page[-1].seq, min(_PAGE, 2 * size)
        return _Newest(items, newest, frozenset(gone))

    def _tombstone(self, tail: _Newest[Payload], count: int = 1) -> Message:
        """Return the tombstone of the newest items; its id lets the log accept only one for an item.

        It names the newest message of the chat, the next older item, and the items known as removed before
        that. A reader that arrives at that message goes on at the next item, and reads nothing that was
        removed.
        """
        (newest, *also), others = tail.items[:count], tail.items[count:]
        meta: dict[str, object] = {
            self._mark: _TAKEN_BACK,
            "message": newest.id,
            "by": uuid4().hex,
            "last": tail.newest,
        }
        if also:
            meta["also"] = _ids(also)
        if others:
            meta |= {"next": others[0].id, "below": others[0].seq}
        if also or others or tail.gone:
            meta["gone"] = sorted(tail.gone.union(_ids(also)))
        text = f"[message {write_reference(self._chat.id, newest.seq)} was taken back]"
        if also:
            text = f"[messages {write_reference(self._chat.id, also[-1].seq, newest.seq)} were compacted]"
        return Message("system", text, id=f"taken-back-{newest.id}", meta=meta)


def item_message(item: object, mark: str) -> Message:
    """Return the message to store for an item of a session: read where its form is known, and whole in `raw`.

    It is marked as an item of a framework, so that `SessionItems` stores it as it is.

    Raises:
        InvalidInput: it is not a dict.

    """
    if not isinstance(item, Mapping):
        what = f"An item of a session is of the type {type(item).__name__!r}."
        raise InvalidInput(what, "Add dicts, as the framework does.")
    meta = {mark: _ITEM}
    return read_message(item, item, meta) or Message(_role(item), f"[{_type(item)}]", raw=item, meta=meta)


class _Newest(NamedTuple, Generic[T]):
    """Items, newest first; the id of the chat's newest message; the ids of older items known as removed."""

    items: list[T]
    newest: str
    gone: frozenset[str]


class _Jump(NamedTuple):
    """The ids of removed items, with id and `seq` of the next older item; "" and 0 if there is none."""

    taken: frozenset[str]
    to: str
    below: int


def _role(item: Mapping[str, object]) -> Role:
    """Return the role of an item of unknown form: that of the model, which searched or called a server."""
    role = item.get("role")
    return role if role in ROLES else "assistant"


def _type(item: Mapping[str, object]) -> str:
    kind = item.get("type")
    return shorten_line(clean(kind), _LONGEST_TYPE) or "item" if isinstance(kind, str) else "item"


def _jump(message: Payload) -> dict[str, _Jump]:
    """Return where to read on, by the id of the message to read on from; old messages have none."""
    last, below = message.meta.get("last"), message.meta.get("below", 0)
    if not isinstance(last, str) or not isinstance(below, int):
        return {}
    return {last: _Jump(_removed_ids(message), str(message.meta.get("next", "")), below)}


def _removed_ids(message: Payload) -> frozenset[str]:
    """Return the ids of the items that a message removes."""
    return frozenset([str(message.meta.get("message")), *_texts(message.meta.get("also"))])


def _ids(messages: Iterable[Payload]) -> list[str]:
    return [message.id for message in messages]


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
