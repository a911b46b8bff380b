"""Boosted trees over named features, fitted to labelled examples and read from a file.

`scripts/` has the programs that fit them. A prediction takes numpy and some tens of microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.text.tables import load_arrays


@dataclass(frozen=True, slots=True)
class Forest:
    """Boosted trees as arrays over all their nodes; a leaf is its own child."""

    columns: dict[str, int]  # of the features, by name
    classes: tuple[str, ...]
    roots: NDArray[np.int32]  # of the trees, grouped by class
    feature: NDArray[np.int16]  # (nodes,)
    threshold: NDArray[np.float32]  # to the left when the feature is not above it
    children: NDArray[np.int32]  # (nodes, 2): left, right
    value: NDArray[np.float32]  # of a leaf
    base: NDArray[np.float32]  # (classes,)
    depth: int

    @classmethod
    def load(cls, package: str, name: str) -> Forest:
        """Load a forest from a file of a package."""
        packed = load_arrays(package, name)
        columns, classes, depth = (packed.pop(name) for name in ("columns", "classes", "depth"))
        places = {str(column): place for place, column in enumerate(columns)}
        return cls(places, tuple(map(str, classes)), depth=int(depth), **packed)

    def judge(self, examples: Sequence[Mapping[str, float]]) -> NDArray[np.float32]:
        """Return the probability of each class for each example, shape (examples, classes).

        A feature that an example lacks is 0; one that the forest does not know is ignored.
        """
        rows = np.zeros((len(examples), len(self.columns)), np.float32)
        for row, example in zip(rows, examples, strict=True):
            for name, value in example.items():
                column = self.columns.get(name)
                if column is not None:
                    row[column] = value
        sums = self.base + self._leaves(rows).reshape(len(rows), len(self.classes), -1).sum(axis=2)
        powers = np.exp(sums - sums.max(axis=1, keepdims=True))
        likely: NDArray[np.float32] = powers / powers.sum(axis=1, keepdims=True)
        return likely

    def _leaves(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the values of the leaves that the rows reach, shape (rows, trees)."""
        values, children = rows.ravel(), self.children.ravel()
        first = np.arange(len(rows), dtype=np.int32)[:, None] * rows.shape[1]
        here = np.repeat(self.roots[None], len(rows), axis=0)
        for _ in range(self.depth):  # take() costs a third of indexing
            above = values.take(self.feature.take(here) + first) > self.threshold.take(here)
            here = children.take(2 * here + above)
        return self.value.take(here)
