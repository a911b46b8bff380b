"""`SpaceSums` by the kernel in C: the same numbers, to the last bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holdfast.search import weights
from holdfast.search.columns import Floats, Mask, MessageColumns, Numbers, TermPostings
from holdfast.search.postings import QueryTerm

# That of `_kernel.c`: one that was built from an older source is not used.
VERSION = 1
try:
    from holdfast.search import _kernel
except ImportError:
    BUILT = False
else:
    BUILT = _kernel.VERSION == VERSION

# What the kernel reads, in its order.
_NUMBERS = "last places blocks total_words total_output outputs".split()
_COLUMNS = "words output block previous next context_share owner passage_words block_words".split()
_WEIGHTS = "k1 b passage context before after two_before two_after session_k1 session_b output".split()


class KernelSums:
    """See `bm25.SpaceSums`."""

    def __init__(self, columns: MessageColumns, terms: Sequence[QueryTerm]) -> None:
        w, self._columns, self._terms = weights.WEIGHTS, columns, len(terms)
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
        read = (columns, _NUMBERS), (columns, _COLUMNS), (w, _WEIGHTS)
        numbers, arrays, chosen = (tuple(getattr(of, name) for name in names) for of, names in read)
        self._sums = _kernel.Sums(numbers, arrays, chosen, of_terms)
        self.ceiling = self._sums.ceiling()

    def of(self, docs: Numbers) -> tuple[Floats, Mask]:
        """Return four sums of some messages, and two masks of their terms."""
        values, masks = self._sums.of(np.ascontiguousarray(docs, np.int64))
        terms = np.frombuffer(masks, np.bool_).reshape(2, self._terms, len(docs))
        return np.frombuffer(values).reshape(4, len(docs)), terms

    def likely(self, count: int, mask: Mask | None) -> Numbers:
        """Return messages among which the best are likely to be; all pass the mask."""
        return np.frombuffer(self._sums.likely(min(count, self._columns.last), mask), np.int64)

    def reach(self, least: float) -> tuple[Numbers, Floats]:
        """Return the messages whose sums may reach the least, each with an upper bound."""
        docs, bounds = self._sums.reach(least, self._columns.jumps())
        return np.frombuffer(docs, np.int64), np.frombuffer(bounds)


def _some(postings: TermPostings | tuple[Numbers, Floats]) -> tuple[Numbers, Floats] | None:
    return (postings[0], postings[1]) if len(postings[0]) else None
