"""The items of one thread: what is read of them together, in one read or in a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from holdfast.integrations.framework_keys import unescape
from holdfast.integrations.langgraph import checkpoint_rows as rows
from holdfast.integrations.langgraph.checkpoint_rows import (
    StoredCheckpoint,
    StoredMessage,
    StoredWrite,
    ThreadHead,
    Typed,
)
from holdfast.store import items
from holdfast.store.items import ItemPlace

if TYPE_CHECKING:
    from holdfast.store.database import Reader
    from holdfast.store.items import Item
    from holdfast.types import Range

# Items that are read at once.
_PAGE = 64
# Messages in a range from which on it is read as one.
_LONG_RANGE = 32


class ListOfMessages(NamedTuple):
    """The numbers of the messages of a channel."""

    ranges: list[Range]


class ThreadItems:
    """Reads the items of a thread; `db` is a database, or a transaction."""

    def __init__(self, db: Reader, space: str, chat: str) -> None:
        self._db, self.space, self.chat = db, space, chat

    def place(self, collection: str) -> ItemPlace:
        """Return where the items of a collection are."""
        return ItemPlace(self.space, self.chat, collection)

    def head(self) -> ThreadHead | None:
        """Return what is known of the thread as a whole; None if there is no such thread."""
        found = self._get(rows.HEAD, [""])
        return rows.read_head(found[""].data) if found else None

    def checkpoint(self, ns: str, id: str) -> StoredCheckpoint | None:
        """Return a checkpoint of a namespace, with "" as its id the newest; None if there is none."""
        if not id:
            newest = self._scan(rows.CHECKPOINTS, rows.checkpoint_key(ns, ""), descending=True, limit=1)
            return rows.read_checkpoint(newest[0].key, newest[0].data) if newest else None
        key = rows.checkpoint_key(ns, id)
        found = self._get(rows.CHECKPOINTS, [key])
        return rows.read_checkpoint(key, found[key].data) if found else None

    def all_checkpoints(self) -> Iterator[StoredCheckpoint]:
        """Iterate over all checkpoints, by namespaces, the oldest first."""
        after = None
        while found := self._scan(rows.CHECKPOINTS, "", after=after, limit=_PAGE):
            yield from (rows.read_checkpoint(item.key, item.data) for item in found)
            after = found[-1].key

    def ids(self, ns: str | None, before: str | None) -> Iterator[tuple[str, str]]:
        """Iterate over the ids of checkpoints and their namespaces, the newest first, below an id."""
        if ns is None:
            named = (key.partition("/") for key in self.keys(rows.CHECKPOINTS))
            found = sorted(((unescape(id), unescape(ns)) for ns, _, id in named), reverse=True)
            yield from (one for one in found if before is None or one[0] < before)
            return
        prefix, bound = rows.checkpoint_key(ns, ""), before and rows.checkpoint_key(ns, before)
        while page := self._scan(rows.CHECKPOINTS, prefix, before=bound, descending=True, limit=_PAGE):
            yield from ((unescape(item.key.partition("/")[2]), ns) for item in page)
            bound = page[-1].key

    def keys(self, collection: str) -> list[str]:
        """Return the keys of a collection."""
        return items.keys(self._db, self.place(collection), 0)

    def writes(self, ns: str, id: str) -> list[StoredWrite]:
        """Return the pending writes of a checkpoint, as they are to be applied."""
        found = self._scan(rows.WRITES, rows.write_key(ns, id))
        return sorted(rows.read_write(item.data) for item in found)

    def values(self, keys: Sequence[str]) -> dict[str, Typed | ListOfMessages]:
        """Return the values that have some keys, without those that are empty."""
        found = {key: rows.read_value(item.data) for key, item in self._get(rows.VALUES, keys).items()}
        return {
            key: ListOfMessages(value) if isinstance(value, list) else value
            for key, value in found.items()
            if value is not None
        }

    def messages(self, ranges: Iterable[Range]) -> dict[int, StoredMessage]:
        """Return the messages that have the numbers of some ranges, without those that are missing."""
        return {int(key): rows.read_message(item) for key, item in self._message_items(ranges)}

    def message_values(self, ranges: Iterable[Range]) -> list[tuple[int, Typed]]:
        """Return the numbers and the values alone of such messages, which takes half of the time."""
        return rows.read_messages(self._message_items(ranges))

    def _message_items(self, ranges: Iterable[Range]) -> Iterator[tuple[bytes, bytes]]:
        place, single = self.place(rows.MESSAGES), list[str]()
        for first, last in sorted(set(ranges)):
            if last - first < _LONG_RANGE:
                single += map(rows.message_key, range(first, last + 1))
                continue
            yield from items.scan_data(self._db, place, 0, rows.message_key(first), rows.message_key(last))
        short = self._get(rows.MESSAGES, single)
        yield from ((key.encode(), item.data) for key, item in short.items())

    def _get(self, collection: str, keys: Sequence[str]) -> dict[str, Item]:
        # Nothing of a thread expires.
        return items.get(self._db, self.place(collection), keys, 0)

    def _scan(
        self,
        collection: str,
        prefix: str,
        *,
        after: str | None = None,
        before: str | None = None,
        descending: bool = False,
        limit: int | None = None,
    ) -> list[Item]:
        place = self.place(collection)
        return items.scan(
            self._db,
            place,
            0,
            prefix=prefix,
            after=after,
            before=before,
            descending=descending,
            limit=limit,
        )
