"""The search of a LangGraph store: its items in memory, which the markers keep up with the table.

Each write gives the marker of its namespace another token. A namespace whose token is not the known one is
read again; what this process writes itself is taken over without that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from holdfast.integrations.langgraph.store_filter import passes
from holdfast.integrations.langgraph.store_items import (
    Marker,
    Namespace,
    NamespaceWrite,
    decode,
    decode_marker,
    item_key,
    marker_key,
    namespace_of,
    parse_key,
    vectors_key,
    words_of,
)
from holdfast.port.vectors import ItemIndex

if TYPE_CHECKING:
    from holdfast.port.items import Item as StoredItem
    from holdfast.port.items import Items
    from holdfast.port.vectors import Rows

# Items that are kept in memory before those that are not searched now are dropped.
_MOST = 200_000


class ScoredItem(NamedTuple):
    """An item of a search, and its score; None for one that the query does not rank."""

    namespace: Namespace
    stored: StoredItem
    score: float | None


class ItemQuery(NamedTuple):
    """A search: the prefix of namespaces, the words or their vector, the filter, and the page."""

    prefix: Namespace
    words: str
    vector: Rows | None
    filter: Mapping[str, object] | None
    offset: int
    limit: int


@dataclass(slots=True)
class _Entry:
    """An item in the index, by its number there; its value is parsed when a filter asks for it."""

    namespace: Namespace
    stored: StoredItem
    value: Mapping[str, object] | None = None

    def passes(self, wanted: Mapping[str, object]) -> bool:
        if self.value is None:
            self.value = decode(self.stored).value
        return passes(self.value, wanted)


@dataclass(slots=True)
class _LoadedNamespace:
    """A namespace as it is in the index: its number there, its token, and the numbers of its items by key."""

    number: int
    token: bytes
    items: dict[str, int] = field(default_factory=dict)


class StoreSearch:
    """Searches the items of a table. Safe for concurrent threads.

    Args:
        table: the items.
        fields: the paths of the fields by which an item is found that has none of its own.
        unpack: returns the vectors that are stored in bytes, those of other embedders aside; None where words
            are searched.

    """

    def __init__(
        self, table: Items, fields: Sequence[str], unpack: Callable[[bytes], Rows | None] | None
    ) -> None:
        self._table, self._fields, self._unpack = table, fields, unpack
        self._lock = Lock()
        self._most = _MOST
        self._clear()

    def _clear(self) -> None:
        self._index = ItemIndex()
        self._entries: list[_Entry] = []
        self._loaded: dict[Namespace, _LoadedNamespace] = {}
        self._numbers = 0

    def search(self, wanted: ItemQuery, now: int) -> list[ScoredItem]:
        """Return the items of the namespaces below a prefix: as the query ranks them, then newest first."""
        with self._lock:
            if self._index.is_sparse or len(self._index) > self._most:
                self._clear()
            loaded = self._refresh(wanted.prefix)
            self._most = max(_MOST, 2 * sum(len(group.items) for group in loaded))
            groups = [group.number for group in loaded]
            if expired := self._index.expired(groups, now):
                self._check_expired(expired)
            count = None if wanted.filter else wanted.offset + wanted.limit
            ranked = self._index.ranked(groups, count, wanted.words, wanted.vector)
            if wanted.filter:
                ranked = ((n, score) for n, score in ranked if self._entries[n].passes(wanted.filter or {}))
            return [
                ScoredItem(self._entries[n].namespace, self._entries[n].stored, score)
                for n, score in islice(ranked, wanted.offset, wanted.offset + wanted.limit)
            ]

    def take_over(self, namespace: Namespace, written: NamespaceWrite) -> None:
        """Take over a write of this process, if it followed the known state of its namespace."""
        with self._lock:
            loaded = self._loaded.get(namespace)
            if loaded is None or written.before is None or loaded.token != written.before.token:
                return
            if written.after is None:
                self._drop(namespace)
                return
            loaded.token = written.after.token
            for key in written.gone:
                self._remove(loaded, key)
            self._add(loaded, namespace, written.items)

    def _refresh(self, prefix: Namespace) -> list[_LoadedNamespace]:
        """Bring the namespaces that begin with a prefix up to the table, and return them."""
        markers = {
            namespace_of(stored.key[1:]): decode_marker(stored.data)
            for stored in self._table.scan(prefix=marker_key(prefix))
        }
        depth = len(prefix)
        for namespace in [path for path in self._loaded if path[:depth] == prefix and path not in markers]:
            self._drop(namespace)
        for namespace, marker in markers.items():
            known = self._loaded.get(namespace)
            if known is None or known.token != marker.token:
                self._load(namespace, marker)
        return [self._loaded[namespace] for namespace in markers]

    def _drop(self, namespace: Namespace) -> None:
        for number in self._loaded.pop(namespace).items.values():
            self._index.remove(number)

    def _load(self, namespace: Namespace, marker: Marker) -> None:
        """Read a namespace, and take over its new items."""
        loaded = self._namespace(namespace, marker)
        stored = {parse_key(item.key)[1]: item for item in self._table.scan(prefix=item_key(namespace, ""))}
        for key in loaded.items.keys() - stored.keys():
            self._remove(loaded, key)
        changed = [item for key, item in stored.items() if not self._is_known(loaded, key, item)]
        self._add(loaded, namespace, sorted(changed, key=lambda item: item.at))

    def _namespace(self, namespace: Namespace, marker: Marker) -> _LoadedNamespace:
        loaded = self._loaded.get(namespace)
        if loaded is None:
            loaded = self._loaded[namespace] = _LoadedNamespace(self._numbers, marker.token)
            self._numbers += 1
        loaded.token = marker.token
        return loaded

    def _is_known(self, loaded: _LoadedNamespace, key: str, stored: StoredItem) -> bool:
        number = loaded.items.get(key)
        if number is None:
            return False
        known = self._entries[number].stored
        return known.at == stored.at and known.data == stored.data

    def _add(self, loaded: _LoadedNamespace, namespace: Namespace, items: Sequence[StoredItem]) -> None:
        vectors = self._vectors_of(namespace, items)
        for stored in items:
            key = parse_key(stored.key)[1]
            self._remove(loaded, key)
            number = self._index.add(loaded.number, stored.at, stored.expires, partial(self._words, stored))
            self._entries.append(_Entry(namespace, stored))
            loaded.items[key] = number
            if (rows := vectors.get(key)) is not None:
                self._index.add_vectors(number, rows)

    def _remove(self, loaded: _LoadedNamespace, key: str) -> None:
        if (number := loaded.items.pop(key, None)) is not None:
            self._index.remove(number)

    def _check_expired(self, numbers: Sequence[int]) -> None:
        """Remove items that have expired, unless a reader, in whatever process, has renewed them since."""
        entries = [self._entries[number] for number in numbers]
        stored = self._table.get_many([entry.stored.key for entry in entries])
        for number, entry in zip(numbers, entries, strict=True):
            renewed = stored.get(entry.stored.key)
            if renewed is not None and renewed.expires is not None and renewed.data == entry.stored.data:
                entry.stored = renewed
                self._index.expire(number, renewed.expires)
            else:
                self._remove(self._loaded[entry.namespace], parse_key(entry.stored.key)[1])

    def _words(self, stored: StoredItem) -> Iterable[str]:
        item = decode(stored)
        if item.fields is False:
            return ()
        return words_of(item.value, item.fields if isinstance(item.fields, list) else self._fields)

    def _vectors_of(self, namespace: Namespace, items: Sequence[StoredItem]) -> dict[str, Rows]:
        if self._unpack is None:
            return {}
        if len(items) > 100:
            stored = self._table.scan(prefix=vectors_key(namespace, ""))
        else:
            keys = [vectors_key(namespace, parse_key(item.key)[1]) for item in items]
            stored = list(self._table.get_many(keys).values())
        unpacked = {parse_key(item.key)[1]: self._unpack(item.data) for item in stored}
        return {key: rows for key, rows in unpacked.items() if rows is not None}
