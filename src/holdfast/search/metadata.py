"""The filters on metadata of a database: what is declared, and the masks of each index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from holdfast.search.meta_masks import Looked, MetaMasks
from holdfast.store.meta_index import catch_up
from holdfast.store.segments import index_state

if TYPE_CHECKING:
    from holdfast.search.index import Index
    from holdfast.store.database import Database
    from holdfast.types.where import Where


class Metadata:
    """The filters on metadata of a database: the keys that are declared, and the masks of each index."""

    def __init__(self, database: Database, declared: frozenset[str]) -> None:
        self._database = database
        self._declared = declared
        # They go with their indexes.
        self._masks: WeakKeyDictionary[Index[Any], MetaMasks] = WeakKeyDictionary()

    def catch_up(self, indexes: Mapping[str, Iterable[Index[Any]]], where: Where) -> None:
        """Bring what is stored of the declared keys of a filter up to date."""
        for space, some in indexes.items():
            catch_up(self._database, space, [index.source.name for index in some], where, self._declared)

    def look_ahead(
        self, indexes: Mapping[str, Iterable[Index[Any]]], where: Where
    ) -> list[tuple[MetaMasks, Looked]]:
        """Find where a filter holds, while others use the indexes; what is found is for `Looked.take`."""
        found = []
        for space, some in indexes.items():
            state = index_state(self._database, space)
            for index in some:
                with index.lock:
                    masks = self.masks(space, index)
                    looked = masks.looked.copy() if masks else None
                if masks and looked:
                    looked.refresh()
                    looked.look(where, getattr(state, index.source.name))
                    found.append((masks, looked))
        return found

    def masks(self, space: str, index: Index[Any]) -> MetaMasks | None:
        """Return the masks of a source; None for summaries. Hold the lock of its index while using them."""
        if index.source.name == "summary":
            return None
        if index not in self._masks:
            self._masks[index] = MetaMasks(self._database, space, index.source.name)
        return self._masks[index]
