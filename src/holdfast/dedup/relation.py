"""Results of a comparison of a new text with known ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

RelationKind = Literal["new", "duplicate", "update", "unsure"]
T = TypeVar("T")
SEVERAL = "it may update one of several"
"""The reason of "unsure" for a text that may update more than one known text."""


@dataclass(frozen=True, slots=True)
class Relation:
    """The relation of a new text to a known one.

    `index` is that of the known text, None for "new". `why` is the reason, which never quotes a text.
    """

    kind: RelationKind
    index: int | None
    why: str

    def choose(self, known: Sequence[T]) -> T | None:
        """Return the known thing that the new text relates to; None for "new"."""
        return None if self.index is None else known[self.index]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a text relates to an older one, and how sure that is. Made by `classify`.

    Attributes:
        kind: "duplicate" if it says the same, "update" if it gives another value of the same, else
            "different".
        why: the reason, which never quotes a text.
        duplicate: the probability that it says the same.
        update: the probability that it is an update.

    """

    kind: Literal["duplicate", "update", "different"]
    why: str
    duplicate: float
    update: float
