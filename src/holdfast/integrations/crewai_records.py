"""The records of CrewAI's memory: stored as items, searched in memory.

Each write gets a number and notes which records it changed, so that a process reads only what is new to it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from crewai.memory.storage.backend import EmbeddingDimensionMismatchError
from crewai.memory.types import MemoryRecord

from holdfast.errors import Damaged, InvalidInput
from holdfast.port.items import Items, retry_transaction
from holdfast.port.vectors import ItemIndex

if TYPE_CHECKING:
    from holdfast import Memory

_HEAD, _RECORD, _TOUCHED, _CHANGE = "head", "record/", "touched/", "change/"
# Writes whose records are noted; who knows less than that reads everything again.
_NOTED = 1_000
# As errors name it.
_EMBEDDER = "of CrewAI"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Path = tuple[str, ...]


class WrongRecord(InvalidInput, TypeError):
    """A record cannot be stored; none was. A TypeError too, as CrewAI's storage raises it."""


class Filter(NamedTuple):
    """Conditions on records: below a path, with one of some categories, before a time, with some metadata."""

    path: Path = ()
    categories: Sequence[str] | None = None
    ids: Sequence[str] | None = None
    before: datetime | None = None
    metadata: Mapping[str, object] | None = None


class KnownRecord(NamedTuple):
    """The entry of a record in memory."""

    id: str
    path: Path
    categories: Sequence[str]
    metadata: Mapping[str, object]
    created: datetime

    def passes(self, wanted: Filter) -> bool:
        """Return whether the record passes a filter, apart from its path."""
        return (
            (wanted.ids is None or self.id in wanted.ids)
            and (not wanted.categories or any(name in self.categories for name in wanted.categories))
            and (wanted.before is None or self.created < wanted.before)
            and all(self.metadata.get(key) == value for key, value in (wanted.metadata or {}).items())
        )


class _Head(NamedTuple):
    """The number of the last write, the one after which changes are noted, and the size of vectors."""

    number: int = 0
    noted: int = 0
    size: int = 0


class CrewAIRecords:
    """Stores and finds records. All methods block, and are safe for concurrent threads and processes."""

    def __init__(self, memory: Memory) -> None:
        self._table = Items(memory, "crewai")
        self._lock = Lock()
        self._clear(_Head())

    def save(self, records: Sequence[MemoryRecord]) -> None:
        """Store records in place of those with their ids, all or none.

        Raises:
            EmbeddingDimensionMismatchError: the vectors differ in size, from each other or the stored ones.
            ModelFailed: a vector has numbers that are not finite.
            WrongRecord: a record is not JSON.

        """
        vectors = {record.id: record.embedding or [] for record in records}
        for vector in filter(None, vectors.values()):
            ItemIndex.unit([vector], 1, _EMBEDDER)
        data = {_RECORD + record.id: _encode(record, vectors[record.id]) for record in records}
        if data:
            self._save(list(vectors), data, [len(vector) for vector in vectors.values() if vector])

    @retry_transaction
    def _save(self, ids: Sequence[str], data: Mapping[str, bytes], sizes: Sequence[int]) -> None:
        with self._table.writing() as tx:
            size = _head(tx).size or next(iter(sizes), 0)
            for other in sizes:
                _check_size(size, other)
            tx.delete([_TOUCHED + id for id in ids])
            _note(tx, ids, size, data)

    def remove(self, wanted: Filter) -> int:
        """Delete the records that pass a filter, and return their number."""
        while True:
            with self._lock:
                self._refresh()
                ids, number = [entry.id for entry in self._matching(wanted)], self._known.number
            if not ids or self._remove(ids, number):
                return len(ids)

    @retry_transaction
    def _remove(self, ids: Sequence[str], number: int) -> bool:
        """Delete records unless something was written since a write; return whether they were deleted."""
        with self._table.writing() as tx:
            head = _head(tx)
            if head.number != number:
                return False
            tx.delete([key + id for key in (_RECORD, _TOUCHED) for id in ids])
            _note(tx, ids, head.size, {})
            return True

    @retry_transaction
    def clear(self) -> None:
        """Delete all records; the next ones may have vectors of another size."""
        with self._table.writing() as tx:
            number = _head(tx).number + 1
            tx.delete()
            tx.put({_HEAD: json.dumps(_Head(number, number)).encode()})

    @retry_transaction
    def touch(self, ids: Iterable[str]) -> None:
        """Note that records were read just now."""
        now = datetime.now(UTC).replace(tzinfo=None).isoformat().encode()
        with self._table.writing() as tx:
            there = tx.get_many([_RECORD + id for id in ids])
            tx.put({_TOUCHED + key.removeprefix(_RECORD): now for key in there})

    def entries(self, wanted: Filter) -> list[KnownRecord]:
        """Return the entries of the records that pass a filter, newest first."""
        with self._lock:
            self._refresh()
            return list(self._matching(wanted))

    def search(
        self, vector: Sequence[float], wanted: Filter, limit: int, least: float
    ) -> list[tuple[str, float]]:
        """Return the ids of the records nearest to a vector with their cosines, best first.

        Those without a vector, and those that point away from it, have 0.
        """
        query = ItemIndex.unit([vector], 1, _EMBEDDER)[0]
        with self._lock:
            self._refresh()
            _check_size(self._known.size or len(query), len(query))
            filtered = wanted._replace(path=()) != Filter()
            ranked = self._index.ranked(self._groups_of(wanted), None if filtered else limit, vector=query)
            hits = (
                (self._entries[n].id, score)
                for n, cosine in ranked
                if (score := max(0.0, cosine or 0.0)) >= least and self._entries[n].passes(wanted)
            )
            return [hit for hit, _ in zip(hits, range(limit), strict=False)]

    def read(self, ids: Sequence[str]) -> dict[str, MemoryRecord]:
        """Return the records that have some ids."""
        items = self._table.get_many([key + id for id in ids for key in (_RECORD, _TOUCHED)])
        made = {}
        for id in ids:
            if (item := items.get(_RECORD + id)) is not None:
                touched = items.get(_TOUCHED + id)
                made[id] = _record(item.data, None if touched is None else touched.data.decode())
        return made

    # What is in memory, under the lock ----------------------------------------------------------------------

    def _clear(self, head: _Head) -> None:
        self._known, self._index = head, ItemIndex()
        self._entries: list[KnownRecord] = []
        self._numbers: dict[str, int] = {}
        self._groups: dict[Path, int] = {}

    def _refresh(self) -> None:
        """Bring the entries in memory up to the table."""
        table, known = self._table, self._known.number
        with table.reading():
            head = _head(table)
            if known == head.number:
                return
            if known < head.noted or self._index.is_sparse or self._known.size != head.size:
                self._clear(head)
                items = table.scan(prefix=_RECORD)
            else:
                changes = table.scan(prefix=_CHANGE, after=_change(known))
                changed = {id for change in changes for id in json.loads(change.data)}
                items = list(table.get_many([_RECORD + id for id in changed]).values())
                for id in changed & self._numbers.keys():
                    self._index.remove(self._numbers.pop(id))
        self._known = head
        self._add([item.data.partition(b"\0")[::2] for item in items])

    def _add(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        vectors = [vector for _, vector in pairs if vector]
        stored = ItemIndex.unpack(b"".join(vectors), self._known.size or 1)
        rows = iter(ItemIndex.unit(stored, len(vectors), _EMBEDDER) if vectors else ())
        for text, vector in pairs:
            entry = _entry(text)
            group = self._groups.setdefault(entry.path, len(self._groups))
            number = self._index.add(group, _micros(entry.created))
            self._entries.append(entry)
            self._numbers[entry.id] = number
            if vector:
                self._index.add_vectors(number, next(rows).reshape(1, -1))

    def _groups_of(self, wanted: Filter) -> list[int]:
        depth = len(wanted.path)
        return [n for path, n in self._groups.items() if path[:depth] == wanted.path]

    def _matching(self, wanted: Filter) -> Iterator[KnownRecord]:
        newest = (self._entries[n] for n, _ in self._index.ranked(self._groups_of(wanted), 0))
        return (entry for entry in newest if entry.passes(wanted))


def path_of(scope: str | None) -> Path:
    """Return the names of a scope, the root's none.

    >>> path_of("/crew/research/")
    ('crew', 'research')
    """
    return tuple(filter(None, (scope or "").split("/")))


def aware(time: datetime) -> datetime:
    """Return a time with a time zone; CrewAI's have none and are UTC."""
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def _micros(time: datetime) -> int:
    return (aware(time) - _EPOCH) // timedelta(microseconds=1)


def _head(db: Items) -> _Head:
    item = db.get(_HEAD)
    return _Head() if item is None else _Head(*json.loads(item.data))


def _note(tx: Items, ids: Sequence[str], size: int, data: Mapping[str, bytes]) -> None:
    """Store items, with the number of the write and the ids of the records that it changed."""
    head = _head(tx)
    number = head.number + 1
    many = len(ids) > _NOTED
    head = _Head(number, number if many else max(head.noted, number - _NOTED), size)
    change = {} if many else {_change(number): json.dumps(ids).encode()}
    tx.put({**data, **change, _HEAD: json.dumps(head).encode()})
    tx.delete([_change(number - _NOTED)])


def _change(number: int) -> str:
    return f"{_CHANGE}{number:016x}"


def _check_size(stored: int, other: int) -> None:
    if stored != other:
        raise EmbeddingDimensionMismatchError(stored, other)


def _encode(record: MemoryRecord, vector: Sequence[float]) -> bytes:
    """Return a record as JSON, and behind a zero its vector."""
    try:
        # Pydantic would write what is no JSON as text, and it would come back as that.
        dumped = {**record.model_dump(mode="json", exclude={"metadata"}), "metadata": record.metadata}
        _micros(record.created_at)
        return json.dumps(dumped).encode() + b"\0" + struct.pack(f"<{len(vector)}f", *vector)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise WrongRecord(f"A record is not JSON: {error}.", "Put JSON into its metadata.") from error


def _entry(text: bytes) -> KnownRecord:
    record = json.loads(text)
    created = aware(datetime.fromisoformat(record["created_at"]))
    return KnownRecord(
        record["id"], path_of(record["scope"]), record["categories"], record["metadata"], created
    )


def _record(data: bytes, touched: str | None) -> MemoryRecord:
    text, _, vector = data.partition(b"\0")
    try:
        record = MemoryRecord.model_validate(json.loads(text))
    except ValueError as error:
        raise Damaged(
            f"A record of CrewAI cannot be read: {error}.", "Update crewai, or delete it."
        ) from error
    if vector:
        record.embedding = list(struct.unpack(f"<{len(vector) // 4}f", vector))
    if touched is not None:
        record.last_accessed = datetime.fromisoformat(touched)
    return record
