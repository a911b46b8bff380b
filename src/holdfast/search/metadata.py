"""The filters on metadata of a database: what is declared, and the masks of each index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from holdfast.search.meta_masks import MetaMasks
from holdfast.store.meta_index import catch_up

if TYPE_CHECKING:
    from holdfast.search.index import Index
    from holdfast.search.source import SourceView
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

    def masks(self, view: SourceView[Any], index: Index[Any]) -> MetaMasks | None:
        """Return the masks of a source; None for summaries. Hold the lock of its index while using them."""
        name = view.source.name
        if name == "summary":
            return None
        if index not in self._masks:
            self._masks[index] = MetaMasks(self._database, view.space, name)
        return self._masks[index]
