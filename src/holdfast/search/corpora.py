"""The messages of some spaces as one row of numbers, so that a query is computed for all at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.search.columns import Floats, Mask, MessageColumns, Numbers


class Corpora:
    """The columns of some spaces, one after the other.

    Documents, blocks, actors and chats are numbered on from space to space. Document 0 of each space stays in
    its place and stands for none. All numbers that are passed come in the order of their spaces.
    """

    def __init__(self, columns: Sequence[MessageColumns]) -> None:
        self.columns = columns
        self.documents = _begins(space.last + 1 for space in columns)
        self.places = _begins(space.places + 1 for space in columns)
        self.blocks = _begins(space.blocks for space in columns)
        self._begins = {
            "previous": self.documents,
            "next": self.documents,
            "owner": self.documents,
            "block": self.blocks,
            "actor": _begins(len(space.actors) for space in columns),
            "chat": _begins(len(space.chats) for space in columns),
        }
        # The results for the last documents: many columns of the same documents are taken in a row.
        self._numbers: Numbers | None = None
        self._local: list[Numbers] = []
        self._centre: Numbers | None = None
        self._neighbours: Sequence[Numbers] = ()

    def bounds(self, numbers: Numbers, begins: Sequence[int] | None = None) -> list[int]:
        """Return the places where the numbers of each space begin, and the end of the last one."""
        if len(self.columns) == 1:
            return [0, len(numbers)]
        # Numbers of one space stand together, which is all that this search needs.
        inner = numbers.searchsorted((begins or self.documents)[1:-1])
        return [0, *inner.tolist(), len(numbers)]

    def take(self, column: str, numbers: Numbers, begins: Sequence[int] | None = None) -> NDArray[Any]:
        """Return the values of a column for some documents, or for other numbers, which begin at `begins`."""
        if len(self.columns) == 1:
            alone: NDArray[Any] = getattr(self.columns[0], column).take(numbers)
            return alone
        local = self._split(numbers, begins)
        parts = [getattr(space, column).take(some) for space, some in zip(self.columns, local, strict=True)]
        if shifts := self._begins.get(column):
            parts = [part + shift for part, shift in zip(parts, shifts, strict=False)]
        return np.concatenate(parts)

    def _split(self, numbers: Numbers, begins: Sequence[int] | None = None) -> list[Numbers]:
        """Return the numbers of each space as local numbers."""
        if len(self.columns) == 1:
            return [numbers]
        if numbers is not self._numbers:
            ends, firsts = pairwise(self.bounds(numbers, begins)), begins or self.documents
            local = [numbers[start:end] - first for (start, end), first in zip(ends, firsts, strict=False)]
            self._numbers, self._local = numbers, local
        return self._local

    def each(
        self, values: Sequence[float], numbers: Numbers, begins: Sequence[int] | None = None
    ) -> float | Floats:
        """Return the value of its space for each number; a scalar if there is one space."""
        if len(values) == 1:
            return values[0]
        return np.repeat(values, np.diff(self.bounds(numbers, begins)))

    def together(self, arrays: Iterable[NDArray[Any]]) -> NDArray[Any]:
        """Return arrays of the spaces one after the other."""
        some = list(arrays)
        return some[0] if len(some) == 1 else np.concatenate(some)

    def numbers(self, local: Iterable[Numbers]) -> Numbers:
        """Return document numbers of each space as numbers of all."""
        return self.together(docs + begin for docs, begin in zip(local, self.documents, strict=False))

    def spaces(self, docs: Numbers) -> Numbers:
        """Return the place of the space of each document; these may come in any order."""
        return np.searchsorted(self.documents, docs, "right") - 1

    def around(self, docs: Numbers) -> Sequence[Numbers]:
        """Return documents, their neighbours before and after, and those two before and two after.

        Document 0 of the space stands for none.
        """
        if docs is not self._centre:
            spaces = zip(self.columns, self._split(docs), strict=True)
            near = [columns.around(some) for columns, some in spaces]
            self._centre, self._neighbours = docs, near[0]
            if len(near) > 1:
                self._neighbours = [self.numbers(some) for some in zip(*near, strict=True)]
        return self._neighbours

    def concludes(self, docs: Numbers) -> Mask:
        """Return a mask of the documents that are an assistant's last one of several in a turn."""
        roles = [role for columns in self.columns for role, _ in columns.actors]
        assistant = np.array([role == "assistant" for role in roles], bool)
        in_turn = np.array([role in ("assistant", "tool") for role in roles], bool)
        # Document 0 of each space stands for none.
        none = self.each(self.documents[:-1], docs)
        docs, before, after, *_ = self.around(docs)

        def goes_on(places: Numbers) -> Mask:
            there: Mask = places > none
            there &= in_turn.take(self.take("actor", places))
            return there

        answers: Mask = assistant.take(self.take("actor", docs))
        return answers & goes_on(before) & ~goes_on(after)


def _begins(sizes: Iterable[int]) -> list[int]:
    return [0, *accumulate(sizes)]
