"""The filters on metadata of a database: the masks of each index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from holdfast.search.meta_masks import KnownMetadata, MetaMasks
from holdfast.store.segments import index_state

if TYPE_CHECKING:
    from holdfast.search.index import Index
    from holdfast.store.database import Database
    from holdfast.types.where import Where


class Metadata:
    """The filters on metadata of a database: the masks of each index."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # They go with their indexes.
        self._masks: WeakKeyDictionary[Index[Any], MetaMasks] = WeakKeyDictionary()

    def read_ahead(
        self, indexes: Mapping[str, Iterable[Index[Any]]], where: Where
    ) -> list[tuple[MetaMasks, KnownMetadata]]:
        """Read what a filter needs while others use the indexes, for `KnownMetadata.take`."""
        found = []
        for space, some in indexes.items():
            state = index_state(self._database, space)
            for index in some:
                with index.lock:
                    masks = self.masks(space, index)
                    known = masks.known.copy() if masks else None
                if masks and known:
                    known.refresh()
                    known.read(where, getattr(state, index.source.name))
                    found.append((masks, known))
        return found

    def masks(self, space: str, index: Index[Any]) -> MetaMasks | None:
        """Return the masks of a source; None for summaries. Hold the lock of its index while using them."""
        if index.source.name == "summary":
            return None
        if index not in self._masks:
            self._masks[index] = MetaMasks(self._database, space, index.source.name)
        return self._masks[index]
