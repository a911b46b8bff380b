"""The vectors of a source of a space in memory, kept up with their table, and an exact scan over them.

The table has the vector of each document alone. Only in memory that of a message is averaged with those of
its neighbours in the chat, so that nothing of an erased one stays: an erasure begins a new epoch of the
index, and all vectors are loaded again.

A first pass of a scan compares signs, one bit for each number, and keeps a part of the rows; a second one
compares these exactly. A few vectors are all compared exactly. Everything is computed on one thread: the sums
are numpy's own, since a BLAS starts several for one query.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.search.columns import Columns, Floats, MessageColumns, Numbers
from holdfast.search.fusion import standing_out
from holdfast.store import vectors

if TYPE_CHECKING:
    from holdfast.store.database import Database, Row
    from holdfast.store.vectors import VectorSet
    from holdfast.types import Source

Rows: TypeAlias = NDArray[np.float32]
# Documents whose vectors are added within a read; loading more takes too long.
NEAR = 1_024
# Documents that are read, or averaged, at once, for the sake of memory.
_PAGE, _AVERAGED = 65_536, 8_192
# The weights of the previous and the next message in a vector, and of those two places away.
_SHARES = (0.5, 0.3, 0.25, 0.15)
# The storage of a vector: integers of two bytes, of which the largest stands for 1.
SCALE = 32_767
STORED = np.dtype("<i2")
# The number of vectors up to which they are kept in four bytes a number, and all compared.
_FEW = 4_096
# The second pass reads as many rows as makes 32 numbers a document: fewer signs say less.
_READ = 32
# Rows that are compared at once: in four bytes a number they stay in a processor's cache.
_BLOCK = 256
# The number of scores from which the nearness of all documents is estimated.
_SAMPLE = 1_024


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
            # It has none before its first vector.
            self.matrix = VectorMatrix(max(stored.dimension, 1))
        if until <= self._loaded:
            return
        place = self._database, self._space, self._model, self._source
        pages = pairwise((*range(self._loaded, until, _PAGE), until))
        rows = (vectors.read(*place, after, last) for after, last in pages)
        fresh = _Plain(self.matrix.dimension, chain.from_iterable(rows))
        if not isinstance(columns, MessageColumns):
            for part in _blocks(fresh.numbers):
                self.matrix.put(part, fresh.rows(part))
        elif len(fresh.numbers):
            self._put_averages(fresh, columns)
        self._loaded = until

    def _is_of(self, stored: VectorSet) -> bool:
        return (stored.begun, max(stored.dimension, 1)) == (self.begun, self.matrix.dimension)

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
    ends = [*range(0, len(numbers), _AVERAGED), len(numbers)]
    return (numbers[start:end] for start, end in pairwise(ends))


@dataclass(frozen=True, slots=True)
class Near:
    """The vectors of a source, the vector of a query, and the weight of meaning against words."""

    matrix: VectorMatrix
    query: Rows
    weight: float

    def standing(self, docs: Numbers) -> Floats:
        """Return the deviations by which the nearness of each document stands out; 0 without a vector."""
        return standing_out(self.matrix.scores(self.query, docs), self.matrix.sample(self.query))


class VectorMatrix:
    """The vectors of documents by their numbers, of length 1 each."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._words = -(-dimension // 64)
        self._count = 0
        self._numbers = np.zeros(0, np.int64)
        self._rows: NDArray[np.float32 | np.int16] = np.zeros((0, dimension), np.float32)
        # By word of 64 signs, then by row: a pass reads each from its beginning to its end.
        self._signs = np.zeros((self._words, 0), np.uint64)

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """The memory that it takes, in bytes."""
        return self._numbers.nbytes + self._rows.nbytes + self._signs.nbytes

    @property
    def numbers(self) -> Numbers:
        """The numbers of its documents, rising."""
        return self._numbers[: self._count]

    def put(self, numbers: Numbers, rows: Rows) -> None:
        """Store vectors of documents, in place of existing ones or after all of them.

        The numbers rise.
        """
        known = int(np.searchsorted(numbers, self.numbers[-1], "right")) if self._count else 0
        self._write(np.searchsorted(self.numbers, numbers[:known]), rows[:known])
        added = len(numbers) - known
        if added:
            self._allocate(self._count + added)
            places = np.arange(self._count, self._count + added)
            self._numbers[places] = numbers[known:]
            self._count += added
            self._write(places, rows[known:])

    def _write(self, places: Numbers, rows: Rows) -> None:
        scaled = rows * SCALE
        self._rows[places] = np.rint(scaled) if self._rows.dtype == np.int16 else scaled
        self._signs[:, places] = _signs(rows, self._words)

    def _allocate(self, count: int) -> None:
        if count <= len(self._numbers):
            return
        size = max(count, len(self._numbers) * 3 // 2, 64)
        numbers, signs = np.zeros(size, np.int64), np.zeros((self._words, size), np.uint64)
        rows = np.zeros((size, self.dimension), np.int16 if count > _FEW else np.float32)
        numbers[: self._count], signs[:, : self._count] = self.numbers, self._signs[:, : self._count]
        kept = self._rows[: self._count]
        rows[: self._count] = np.rint(kept) if rows.dtype != kept.dtype else kept
        self._numbers, self._rows, self._signs = numbers, rows, signs

    def nearest(self, query: Rows, count: int, allowed: NDArray[np.bool_] | None = None) -> Numbers:
        """Return the `count` nearest documents, best first; `allowed` is a mask by their numbers."""
        kept = max(count, self._count * _READ // self.dimension, _FEW)
        places = self._candidates(query, kept, allowed)
        scores = self._scores(query, places)
        if len(scores) > 4 * count > 0:
            some = np.sort(np.argpartition(-scores, count)[:count])
            places, scores = places[some], scores[some]
        return self.numbers[places[np.argsort(-scores, kind="stable")[:count]]]

    def _candidates(self, query: Rows, count: int, allowed: NDArray[np.bool_] | None) -> Numbers:
        """Return the places of at least `count` rows with the most signs of the query, or of all rows."""
        passing = np.ones(self._count, bool) if allowed is None else allowed[self.numbers]
        if self._count <= count:
            return np.flatnonzero(passing)
        differing = np.zeros(self._count, np.uint16)
        for row, word in zip(
            self._signs[:, : self._count], _signs(query[None], self._words)[:, 0], strict=True
        ):
            differing += np.bitwise_count(row ^ word)
        differing[~passing] = 64 * self._words + 1
        counts = np.bincount(differing, minlength=64 * self._words + 2)[:-1]
        bound = min(int(np.searchsorted(np.cumsum(counts), count)), 64 * self._words)
        return np.flatnonzero(differing <= bound)

    def _scores(self, query: Rows, places: Numbers) -> Rows:
        scaled, scores = query / np.float32(SCALE), np.empty(len(places), np.float32)
        if self._rows.dtype == np.float32 and len(places) == self._count and (np.diff(places) > 0).all():
            # All of a few rows, without a copy.
            return np.einsum("ij,j->i", self._rows[: self._count], scaled, out=scores)
        for start in range(0, len(places), _BLOCK):
            rows = self._rows.take(places[start : start + _BLOCK], axis=0).astype(np.float32, copy=False)
            np.einsum("ij,j->i", rows, scaled, out=scores[start : start + _BLOCK])
        return scores

    def scores(self, query: Rows, docs: Numbers) -> Rows:
        """Return the scores of some documents; NaN for those without a vector."""
        scores = np.full(len(docs), np.nan, np.float32)
        if self._count:
            places = np.minimum(np.searchsorted(self.numbers, docs), self._count - 1)
            there = self.numbers[places] == docs
            scores[there] = self._scores(query, places[there])
        return scores

    def sample(self, query: Rows) -> Rows:
        """Return the scores of all documents, or of about a thousand of them at equal distances."""
        step = max(1, self._count // _SAMPLE)
        return self._scores(query, np.arange(0, self._count, step))


def _signs(rows: Rows, words: int) -> NDArray[np.uint64]:
    """Return the signs of rows, packed, by word."""
    packed = np.zeros((len(rows), words * 8), np.uint8)
    bits = np.packbits(rows > 0, axis=1)
    packed[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(packed.view(np.uint64).T)
