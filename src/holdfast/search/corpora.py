"""The messages of some spaces as one row of numbers, so that a query is computed for all at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.search.columns import ANSWER, Floats, Mask, MessageColumns, Numbers


class Corpora:
    """The columns of some spaces, one after the other.

    Documents, actors and chats are numbered on from space to space. Document 0 of each space stays in its
    place and stands for none. All documents that are passed come in the order of their spaces.
    """

    def __init__(self, columns: Sequence[MessageColumns]) -> None:
        self.columns = columns
        self.documents = _begins(space.last + 1 for space in columns)
        self._begins = {
            "actor": _begins(len(space.actors) for space in columns),
            "chat": _begins(len(space.chats) for space in columns),
        }
        # The results for the last documents: many columns of the same documents are taken in a row.
        self._numbers: Numbers | None = None
        self._local: list[Numbers] = []
        self._centre: Numbers | None = None
        self._neighbours: Sequence[Numbers] = ()

    def bounds(self, docs: Numbers) -> list[int]:
        """Return the places where the documents of each space begin, and the end of the last one."""
        # Documents of one space stand together, which is all that this search needs.
        inner = docs.searchsorted(self.documents[1:-1]).tolist() if len(self.columns) > 1 else []
        return [0, *inner, len(docs)]

    def take(self, column: str, docs: Numbers) -> NDArray[Any]:
        """Return the values of a column for some documents."""
        spaces = zip(self.columns, self.split(docs), strict=True)
        parts = [getattr(space, column).take(some) for space, some in spaces]
        if len(parts) > 1 and (shifts := self._begins.get(column)):
            parts = [part + shift for part, shift in zip(parts, shifts, strict=False)]
        return self.together(parts)

    def split(self, docs: Numbers) -> list[Numbers]:
        """Return the documents of each space by their numbers there."""
        if len(self.columns) == 1:
            return [docs]
        if docs is not self._numbers:
            bounds = zip(pairwise(self.bounds(docs)), self.documents, strict=False)
            self._numbers, self._local = docs, [docs[start:end] - first for (start, end), first in bounds]
        return self._local

    def each(self, values: Sequence[float], docs: Numbers) -> float | Floats:
        """Return the value of its space for each document; a scalar if there is one space."""
        return values[0] if len(values) == 1 else np.repeat(values, np.diff(self.bounds(docs)))

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
            spaces = zip(self.columns, self.split(docs), strict=True)
            near = [columns.around(some) for columns, some in spaces]
            self._centre, self._neighbours = docs, near[0]
            if len(near) > 1:
                self._neighbours = [self.numbers(some) for some in zip(*near, strict=True)]
        return self._neighbours

    def concludes(self, docs: Numbers) -> Mask:
        """Return a mask of the documents that are an assistant's last one of several in a turn."""
        docs, before, after, *_ = self.around(docs)
        answers: Mask = self.take("turn", docs) == ANSWER
        answers &= self.take("turn", before) > 0
        answers &= self.take("turn", after) == 0
        return answers


def _begins(sizes: Iterable[int]) -> list[int]:
    return [0, *accumulate(sizes)]
