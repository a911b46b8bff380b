"""The records of CrewAI's memory: stored as items, searched in memory.

Each write gets a number and notes which records it changed, so that a process reads only what is new to it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from crewai.memory.storage.backend import EmbeddingDimensionMismatchError
from crewai.memory.types import MemoryRecord

from holdfast.errors import Damaged, InvalidInput
from holdfast.integrations.item_table import ItemTable
from holdfast.llm.embedding import checked
from holdfast.search.bm25 import top
from holdfast.search.item_index import NEVER, ItemIndex, unpacked
from holdfast.store import items
from holdfast.store.database import retry_transaction
from holdfast.store.message_rows import to_micros

if TYPE_CHECKING:
    from holdfast import Memory
    from holdfast.search.columns import Mask
    from holdfast.store.database import Connection, Reader

_HEAD, _RECORD, _TOUCHED, _CHANGE = "head", "record/", "touched/", "change/"
# Writes whose records are noted; who knows less than that reads everything again.
_NOTED = 1_000
# As errors name it.
_EMBEDDER = "of CrewAI"
Path = tuple[str, ...]


class WrongRecord(InvalidInput, TypeError):
    """A record cannot be stored; none was. A TypeError too, as CrewAI's storage raises it."""


class Filter(NamedTuple):
    """Which records: below a path, with one of some categories, before a time, with some metadata."""

    path: Path = ()
    categories: Sequence[str] | None = None
    ids: Sequence[str] | None = None
    before: datetime | None = None
    metadata: Mapping[str, object] | None = None


class KnownRecord(NamedTuple):
    """What is known in memory of a record."""

    id: str
    path: Path
    categories: Sequence[str]
    metadata: Mapping[str, object]
    created: datetime

    def passes(self, wanted: Filter) -> bool:
        """Return whether a filter lets the record through, apart from its path."""
        return (
            (wanted.ids is None or self.id in wanted.ids)
            and (not wanted.categories or any(one in self.categories for one in wanted.categories))
            and (wanted.before is None or self.created < wanted.before)
            and all(self.metadata.get(key) == value for key, value in (wanted.metadata or {}).items())
        )


class _Head(NamedTuple):
    """The number of the last write, that after which changes are noted, and the size of vectors."""

    number: int = 0
    noted: int = 0
    size: int = 0


class CrewAIRecords:
    """Stores and finds records. All methods block, and are safe for concurrent threads and processes."""

    def __init__(self, memory: Memory) -> None:
        self._table = ItemTable(memory, "crewai")
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
            checked([vector], 1, _EMBEDDER)
        data = {_RECORD + record.id: _encoded(record, vectors[record.id]) for record in records}
        if data:
            self._save(list(vectors), data, [len(vector) for vector in vectors.values() if vector])

    @retry_transaction
    def _save(self, ids: Sequence[str], data: Mapping[str, bytes], sizes: Sequence[int]) -> None:
        with self._table.writing() as tx:
            size = self._head(tx).size or next(iter(sizes), 0)
            for other in sizes:
                _check_size(size, other)
            items.delete(tx, self._table.place(), [_TOUCHED + id for id in ids])
            self._note(tx, ids, size, data)

    def remove(self, wanted: Filter) -> int:
        """Delete the records that a filter lets through, and return their number."""
        while True:
            with self._lock:
                self._refresh()
                ids, number = [one.id for one in self._listed(wanted)], self._known.number
            if not ids or self._remove(ids, number):
                return len(ids)

    @retry_transaction
    def _remove(self, ids: Sequence[str], number: int) -> bool:
        """Delete records if nothing was written since a write; return whether that is so."""
        with self._table.writing() as tx:
            head = self._head(tx)
            if head.number != number:
                return False
            keys = [key + id for key in (_RECORD, _TOUCHED) for id in ids]
            items.delete(tx, self._table.place(), keys)
            self._note(tx, ids, head.size, {})
            return True

    @retry_transaction
    def clear(self) -> None:
        """Delete all records; the next ones may have vectors of another size."""
        with self._table.writing() as tx:
            number = self._head(tx).number + 1
            items.delete(tx, self._table.place())
            self._put(tx, {_HEAD: json.dumps(_Head(number, number)).encode()})

    @retry_transaction
    def touch(self, ids: Iterable[str]) -> None:
        """Note that records were read just now."""
        now = datetime.now(UTC).replace(tzinfo=None).isoformat().encode()
        with self._table.writing() as tx:
            place, at = self._table.place(), self._table.now()
            there = items.get(tx, place, [_RECORD + id for id in ids], at)
            items.put(tx, place, {_TOUCHED + key.removeprefix(_RECORD): now for key in there}, at)

    def entries(self, wanted: Filter) -> list[KnownRecord]:
        """Return what is known of the records that a filter lets through, newest first."""
        with self._lock:
            self._refresh()
            return list(self._listed(wanted))

    def search(
        self, vector: Sequence[float], wanted: Filter, limit: int, least: float
    ) -> list[tuple[str, float]]:
        """Return the ids of the records nearest to a vector with their cosines, best first.

        Those without a vector, and those that point away from it, have 0.
        """
        query = checked([vector], 1, _EMBEDDER)[0]
        with self._lock:
            self._refresh()
            _check_size(self._known.size or len(query), len(query))
            mask = self._mask(wanted)
            scores = self._index.by_vector(query, mask)
            filtered = wanted._replace(path=()) != Filter()
            best = top(scores, len(scores) if filtered else limit).tolist()
            ranked = [(n, max(0.0, float(scores[n]) - 2.0)) for n in best]
            ranked += [(int(n), 0.0) for n in self._index.newest(mask & (scores == 0))]
            found = (
                (self._entries[n].id, score)
                for n, score in ranked
                if score >= least and self._entries[n].passes(wanted)
            )
            return [one for one, _ in zip(found, range(limit), strict=False)]

    def read(self, ids: Sequence[str]) -> dict[str, MemoryRecord]:
        """Return the records that have some ids."""
        found = self._table.get_many([key + id for id in ids for key in (_RECORD, _TOUCHED)])
        made = {}
        for id in ids:
            if (item := found.get(_RECORD + id)) is not None:
                touched = found.get(_TOUCHED + id)
                made[id] = _record(item.data, None if touched is None else touched.data.decode())
        return made

    # Writes -------------------------------------------------------------------------------------------------

    def _head(self, db: Reader) -> _Head:
        item = items.get_one(db, self._table.place(), _HEAD, self._table.now())
        return _Head() if item is None else _Head(*json.loads(item.data))

    def _note(self, tx: Connection, ids: Sequence[str], size: int, data: Mapping[str, bytes]) -> None:
        """Store items and the number of the write, with which records it changed."""
        head = self._head(tx)
        number = head.number + 1
        many = len(ids) > _NOTED
        head = _Head(number, number if many else max(head.noted, number - _NOTED), size)
        change = {} if many else {_change(number): json.dumps(ids).encode()}
        self._put(tx, {**data, **change, _HEAD: json.dumps(head).encode()})
        items.delete(tx, self._table.place(), [_change(number - _NOTED)])

    def _put(self, tx: Connection, data: Mapping[str, bytes]) -> None:
        items.put(tx, self._table.place(), data, self._table.now())

    # What is in memory, under the lock ----------------------------------------------------------------------

    def _clear(self, head: _Head) -> None:
        self._known, self._index = head, ItemIndex()
        self._entries: list[KnownRecord] = []
        self._numbers: dict[str, int] = {}
        self._groups: dict[Path, int] = {}

    def _refresh(self) -> None:
        """Bring what is in memory up to the table."""
        with self._table.reading() as reader:
            head = self._head(reader)
            place, now, known = self._table.place(), self._table.now(), self._known.number
            if known == head.number:
                return
            if known < head.noted or self._index.is_sparse or self._known.size != head.size:
                self._clear(head)
                found = items.scan(reader, place, now, prefix=_RECORD)
            else:
                changes = items.scan(reader, place, now, prefix=_CHANGE, after=_change(known))
                changed = {id for change in changes for id in json.loads(change.data)}
                found = list(items.get(reader, place, [_RECORD + id for id in changed], now).values())
                for id in changed & self._numbers.keys():
                    self._index.remove(self._numbers.pop(id))
        self._known = head
        self._add([item.data.partition(b"\0")[::2] for item in found])

    def _add(self, found: Sequence[tuple[bytes, bytes]]) -> None:
        vectors = [vector for _, vector in found if vector]
        stored = unpacked(b"".join(vectors), self._known.size or 1)
        rows = iter(checked(stored, len(vectors), _EMBEDDER) if vectors else ())
        for text, vector in found:
            entry = _entry(text)
            group = self._groups.setdefault(entry.path, len(self._groups))
            number = self._index.add(group, to_micros(entry.created), NEVER, tuple)
            self._entries.append(entry)
            self._numbers[entry.id] = number
            if vector:
                self._index.add_vectors(number, next(rows).reshape(1, -1))

    def _mask(self, wanted: Filter) -> Mask:
        depth = len(wanted.path)
        groups = [n for path, n in self._groups.items() if path[:depth] == wanted.path]
        return self._index.of_groups(groups)

    def _listed(self, wanted: Filter) -> Iterator[KnownRecord]:
        newest = (self._entries[n] for n in self._index.newest(self._mask(wanted)))
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


def _change(number: int) -> str:
    return f"{_CHANGE}{number:016x}"


def _check_size(stored: int, other: int) -> None:
    if stored != other:
        raise EmbeddingDimensionMismatchError(stored, other)


def _encoded(record: MemoryRecord, vector: Sequence[float]) -> bytes:
    """Return a record as JSON, and behind a zero its vector."""
    try:
        # Pydantic would write what is no JSON as text, and it would come back as that.
        dumped = {**record.model_dump(mode="json", exclude={"metadata"}), "metadata": record.metadata}
        to_micros(aware(record.created_at))
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
