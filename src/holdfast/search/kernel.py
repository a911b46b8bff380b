"""The order of the messages of a space by the kernel in C: what `rank.py` computes, to the last bit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.search import weights
from holdfast.search.columns import Floats, Integers, Mask, MessageColumns, Numbers, TermPostings
from holdfast.search.postings import QueryTerm

# That of `_kernel.c`: one that was built from an older source is not used.
VERSION = 3
try:
    from holdfast.search import _kernel
except ImportError:
    BUILT = False
else:
    BUILT = getattr(_kernel, "VERSION", 0) == VERSION

# What the kernel reads, in its order.
_NUMBERS = "last places blocks total_words total_output outputs".split()
_COLUMNS = """words output block previous next context_share owner passage_words block_words same at chat
actor turn tells_time assisted""".split()
_WEIGHTS = """k1 b passage context before after two_before two_after session_k1 session_b output conclusion
later""".split()
# The parts of the score of a message.
_PARTS = 12
# Where later messages come first, as the kernel names it.
LATER = {None: 0, "chat": 1, "all": 2}
NOT_RAISED = -1


def kernel_in_use() -> Literal["C", "numpy"]:
    """Return what ranks messages: the kernel where it was built, unless `HOLDFAST_KERNEL` is 0."""
    return "C" if BUILT and os.environ.get("HOLDFAST_KERNEL") != "0" else "numpy"


class KernelSums:
    """The sums of a query for the messages of a space, see `bm25.SpaceSums`, and the best by them.

    `spoken` are the factors of speakers; `factors` those of a message that tells a time, the words of half a
    factor, and the product of all factors at most.
    """

    def __init__(
        self,
        columns: MessageColumns,
        terms: Sequence[QueryTerm],
        spoken: Floats,
        factors: tuple[float, float, float],
    ) -> None:
        w, c, self._terms = weights.WEIGHTS, columns, terms
        of_terms = [
            (
                term.weight * term.rarity,
                w.session * term.weight,
                _some(term.said),
                _some(term.said.passages),
                _some(term.output),
            )
            for term in terms
        ]
        sizes = *(getattr(c, name) for name in _NUMBERS), len(c.chats), len(c.actors)
        chosen = np.array((*(getattr(w, name) for name in _WEIGHTS), *factors), np.float64)
        arrays = *(getattr(c, name) for name in _COLUMNS), spoken, c.jumps(), chosen
        self._sums = _kernel.Sums(sizes, arrays, of_terms)
        self.ceiling = 0.0

    def best(
        self, limit: int, later: int, span: int = 0, mask: Mask | None = None, bonus: Floats | None = None
    ) -> tuple[Integers, Floats, NDArray[np.uint8]]:
        """Return the best messages, the parts of their scores, a row each, and their terms as bits."""
        self.ceiling, count, found = self._sums.best(limit, later, span, mask, bonus)
        ends = count * _PARTS * 8, count * (_PARTS + 1) * 8
        parts, docs = np.frombuffer(found[: ends[0]]), np.frombuffer(found[ends[0] : ends[1]], np.int64)
        bits = np.frombuffer(found[ends[1] :], np.uint8)
        return docs, parts.reshape(-1, _PARTS).T, bits.reshape(2, -1, 8 * (len(self._terms) // 64 + 1))


def _some(postings: TermPostings | tuple[Numbers, Floats]) -> tuple[Numbers, Floats] | None:
    return (postings[0], postings[1]) if len(postings[0]) else None
