"""The vectors of a source of a space in memory, kept up with their table.

The table has the vector of each document alone. Only in memory that of a message is averaged with those of
its neighbours in the chat, so that nothing of an erased one stays: an erasure begins a new epoch of the
index, and all vectors are loaded again.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.search.columns import MessageColumns
from holdfast.search.vector_scan import SCALE, STORED, VectorMatrix
from holdfast.store import vectors

if TYPE_CHECKING:
    from holdfast.search.columns import Columns, Numbers
    from holdfast.search.vector_scan import Rows
    from holdfast.store.database import Database, Row
    from holdfast.store.vectors import VectorSet
    from holdfast.types import Source

# Documents whose vectors are added within a read; loading more takes too long.
NEAR = 1_024
# Documents that are read, or averaged, at once, for the sake of memory.
_PAGE, _BLOCK = 65_536, 8_192
# The weights of the previous and the next message in a vector, and of those two places away.
_SHARES = (0.5, 0.3, 0.25, 0.15)


class VectorCache:
    """The vectors that an embedder made of a source of a space."""

    def __init__(self, database: Database, space: str, source: Source, model: str) -> None:
        self._database, self._space, self._source, self._model = database, space, source, model
        # The time at which their set was begun; 0 while there is none.
        self.begun = 0
        self._loaded = 0
        self.matrix = VectorMatrix(1)

    def is_near(self, stored: VectorSet, newest: int) -> bool:
        """Return whether `refresh` only has to add a few vectors, with the number of the newest document."""
        until = min(stored.done(self._source), newest)
        return (self._is_of(stored) or not until) and 0 <= until - self._loaded < NEAR

    def refresh(self, stored: VectorSet, columns: Columns) -> None:
        """Load newly stored vectors, up to the last document of the columns."""
        until = min(stored.done(self._source), columns.last)
        if not self._is_of(stored) or not 0 <= until - self._loaded <= NEAR:
            self.begun, self._loaded = stored.begun, 0
            self.matrix = VectorMatrix(_dimension(stored))
        if until <= self._loaded:
            return
        fresh = _Plain(self.matrix.dimension, self._read_rows(until))
        if not isinstance(columns, MessageColumns):
            for part in _blocks(fresh.numbers):
                self.matrix.put(part, fresh.rows(part))
        elif len(fresh.numbers):
            self._put_averages(fresh, columns)
        self._loaded = until

    def _is_of(self, stored: VectorSet) -> bool:
        return (stored.begun, _dimension(stored)) == (self.begun, self.matrix.dimension)

    def _read_rows(self, until: int) -> Iterable[Row]:
        for after in range(self._loaded, until, _PAGE):
            last = min(after + _PAGE, until)
            yield from vectors.read(self._database, self._space, self._model, self._source, after, last)

    def _put_averages(self, fresh: _Plain, columns: MessageColumns) -> None:
        """Add the vectors of messages, and average those of their neighbours anew."""
        touched, plain = fresh.numbers, fresh
        if len(self.matrix):
            touched = _with_neighbours(touched, columns)
            needed = _with_neighbours(touched, columns)
            rows = vectors.by_numbers(self._database, self._space, self._model, self._source, needed.tolist())
            plain = _Plain(self.matrix.dimension, sorted(rows))
            # Vectors stored after `fresh` was read are added by the next refresh.
            touched = np.intersect1d(touched[touched <= fresh.numbers[-1]], plain.numbers)
        for part in _blocks(touched):
            self.matrix.put(part, _average(part, plain, columns))


def _dimension(stored: VectorSet) -> int:
    """Return the dimension of a set; 1 before its first vector, which determines it."""
    return max(stored.dimension, 1)


class _Plain:
    """Stored vectors, by the numbers of their documents; those of another size are left out."""

    def __init__(self, dimension: int, rows: Iterable[Row]) -> None:
        size = dimension * STORED.itemsize
        whole = [(number, body) for number, body in rows if len(body) == size]
        self.numbers: Numbers = np.array([number for number, _ in whole], np.int64)
        joined = b"".join(body for _, body in whole)
        self._stored: NDArray[np.int16] = np.frombuffer(joined, STORED).reshape(-1, dimension)

    def rows(self, docs: Numbers) -> Rows:
        """Return the vectors of documents, zero for those without one."""
        places = np.minimum(np.searchsorted(self.numbers, docs), len(self.numbers) - 1)
        scaled: Rows = self._stored.take(places, axis=0).astype(np.float32)
        scaled /= SCALE
        scaled[self.numbers[places] != docs] = 0
        return scaled


def _average(docs: Numbers, plain: _Plain, columns: MessageColumns) -> Rows:
    total = plain.rows(docs)
    for neighbours, share in zip(columns.around(docs)[1:], _SHARES, strict=True):
        total += np.float32(share) * plain.rows(neighbours)
    lengths = np.sqrt(np.einsum("ij,ij->i", total, total))[:, None]
    averaged: Rows = total / np.maximum(lengths, np.float32(1e-6))
    return averaged


def _with_neighbours(docs: Numbers, columns: MessageColumns) -> Numbers:
    """Return documents and their neighbours up to two places away, rising."""
    numbers = np.unique(np.concatenate(columns.around(docs))).astype(np.int64)
    return numbers[numbers > 0]


def _blocks(numbers: Numbers) -> Iterable[Numbers]:
    ends = [*range(0, len(numbers), _BLOCK), len(numbers)]
    return (numbers[start:end] for start, end in pairwise(ends))
