"""CrewAI: a storage backend for its unified memory.

>>> from crewai.memory.unified_memory import Memory as CrewMemory                # doctest: +SKIP
>>> crew = Crew(agents=[…], tasks=[…], memory=CrewMemory(storage=HoldfastStorage(memory)))  # doctest: +SKIP
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.errors import MissingExtra
from holdfast.integrations.off_loop import awaited

try:
    from crewai.memory.types import MemoryRecord, ScopeInfo

    from holdfast.integrations.crewai_records import CrewAIRecords, Filter, aware, path_of
except ImportError as error:
    raise MissingExtra.of("crewai") from error

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast import Memory


class HoldfastStorage:
    """Store the memories of CrewAI in a memory: records with scopes, categories and vectors.

    It fulfils CrewAI's `StorageBackend`. The records are a kind of their own: no prompt of Holdfast shows
    them, no recall finds them. They belong to the user of the memory, whose erasure deletes them, and are in
    backups and exports of everything. A record that is replaced or deleted is gone.

    A search compares with every vector; its score is the cosine, at least 0. A scope is what stands below its
    path: that of "/team" has no records of "/teams". All methods are safe for concurrent threads, tasks and
    processes, and what one process stores the others find with their next call.

    Args:
        memory: the memory whose user the records belong to.

    Raises:
        InvalidInput: `memory` is not a memory, or it stores nothing.

    """

    def __init__(self, memory: Memory) -> None:
        self._memory, self._records = memory, CrewAIRecords(memory)

    def __deepcopy__(self, _: object) -> HoldfastStorage:
        """Return the storage itself, which copies of a crew share."""
        return self

    def save(self, records: Sequence[MemoryRecord]) -> None:
        """Store records, all or none; one that has the id of another takes its place.

        Raises:
            EmbeddingDimensionMismatchError: a vector has another size than those that are stored.
            ModelFailed: a vector has numbers that are not finite.
            WrongRecord: a record is not JSON.

        """
        self._records.save(records)

    def update(self, record: MemoryRecord) -> None:
        """Store a record in place of the one that has its id. See `save`."""
        self._records.save([record])

    def touch_records(self, record_ids: Iterable[str]) -> None:
        """Set when records were last accessed to now."""
        self._records.touch(record_ids)

    def search(
        self,
        query_embedding: Sequence[float],
        scope_prefix: str | None = None,
        categories: Sequence[str] | None = None,
        metadata_filter: Mapping[str, object] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the records nearest to a vector with their scores, best first.

        Raises:
            EmbeddingDimensionMismatchError: the vector has another size than those that are stored.

        """
        wanted = Filter(path_of(scope_prefix), categories, metadata=metadata_filter)
        nearest = self._records.search(query_embedding, wanted, limit, min_score)
        records = self._records.read([id for id, _ in nearest])
        return [(records[id], score) for id, score in nearest if id in records]

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: Sequence[str] | None = None,
        record_ids: Sequence[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: Mapping[str, object] | None = None,
    ) -> int:
        """Delete the records that fulfil all conditions, and return their number."""
        before = None if older_than is None else aware(older_than)
        ids = record_ids or None
        return self._records.remove(Filter(path_of(scope_prefix), categories, ids, before, metadata_filter))

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return the record that has an id; None if there is none."""
        return self._records.read([record_id]).get(record_id)

    def list_records(
        self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0
    ) -> list[MemoryRecord]:
        """Return records of a scope, newest first; none for a negative limit or offset."""
        if limit <= 0 or offset < 0:
            return []
        entries = self._records.entries(Filter(path_of(scope_prefix)))[offset : offset + limit]
        return list(self._records.read([entry.id for entry in entries]).values())

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return the number, times and categories of the records of a scope and of those below it."""
        path = path_of(scope)
        entries = self._records.entries(Filter(path))
        times = [entry.created.replace(tzinfo=None) for entry in entries]
        return ScopeInfo(
            path="/" + "/".join(path),
            record_count=len(entries),
            categories=sorted({category for entry in entries for category in entry.categories}),
            oldest_record=min(times, default=None),
            newest_record=max(times, default=None),
            child_scopes=self.list_scopes(scope),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the scopes right below one."""
        path = path_of(parent)
        depth = len(path) + 1
        below = {entry.path[:depth] for entry in self._records.entries(Filter(path))} - {path}
        return sorted("/" + "/".join(scope) for scope in below)

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Return how many records of a scope have each category."""
        entries = self._records.entries(Filter(path_of(scope_prefix)))
        return dict(Counter(category for entry in entries for category in entry.categories))

    def count(self, scope_prefix: str | None = None) -> int:
        """Return the number of records of a scope."""
        return len(self._records.entries(Filter(path_of(scope_prefix))))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete the records of a scope, or all; then vectors may have another size."""
        if path := path_of(scope_prefix):
            self._records.remove(Filter(path))
        else:
            self._records.clear()

    asave = awaited(save)
    asearch = awaited(search)
    adelete = awaited(delete)
