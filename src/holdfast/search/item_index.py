"""A small index in memory over items: ranked by words, by vectors, or by age. Not safe for threads.

Items are numbered as they are added and belong to groups; each search goes over some groups, and weighs words
by these alone. The texts of an item are analysed by the first search for words.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from holdfast.llm.embedding import checked
from holdfast.search.bm25 import saturate, top
from holdfast.search.query import Query, is_searchable, parse
from holdfast.search.weights import WEIGHTS, inverse_frequency
from holdfast.text.analyze import analyze, tokens

if TYPE_CHECKING:
    from holdfast.search.columns import Floats, Mask
    from holdfast.search.vectors import Rows

_NEVER = 2**63 - 1
_Postings = tuple["array[int]", "array[float]"]
_STORED = np.dtype("<f4")


class ItemIndex:
    """Items of groups, by their numbers 0, 1, 2 …; removed items keep their numbers."""

    def __init__(self) -> None:
        self._texts: list[Callable[[], Iterable[str]]] = []
        self._groups, self._at, self._expires = array("q"), array("q"), array("q")
        self._alive = bytearray()
        self._removed = 0
        # By term: the items with it and its frequencies. Items that were not analysed yet are not in it.
        self._postings: dict[int, _Postings] = {}
        self._lengths = array("d")
        # The vectors, and the item of each.
        self._vectors, self._owners = np.zeros((0, 0), np.float32), array("q")

    unit = staticmethod(checked)

    @staticmethod
    def pack(vector: Rows) -> bytes:
        """Return the bytes of a vector."""
        data: bytes = vector.astype(_STORED).tobytes()
        return data

    @staticmethod
    def unpack(data: bytes, dimension: int) -> Rows:
        """Return a row for each vector of some bytes."""
        rows = np.frombuffer(data, _STORED).reshape(-1, dimension)
        return rows.astype(np.float32, copy=False)

    def __len__(self) -> int:
        """Return the number of items that were not removed."""
        return len(self._alive) - self._removed

    @property
    def is_sparse(self) -> bool:
        """Whether most numbers are those of removed items, so that the index should be made anew."""
        return self._removed > len(self) + 1_000

    def add(
        self, group: int, at: int, expires: int | None = None, texts: Callable[[], Iterable[str]] = tuple
    ) -> int:
        """Add an item of a group, written and expiring at some times, and return its number."""
        self._texts.append(texts)
        self._groups.append(group)
        self._at.append(at)
        self._expires.append(_NEVER if expires is None else expires)
        self._alive.append(1)
        return len(self._alive) - 1

    def add_vectors(self, item: int, rows: Rows) -> None:
        """Add vectors of an item, each of length 1."""
        first = len(self._owners)
        self._owners.extend([item] * len(rows))
        if len(self._owners) > len(self._vectors):
            grown = np.zeros((max(64, 2 * len(self._owners)), rows.shape[1]), np.float32)
            grown[:first] = self._vectors[:first].reshape(first, rows.shape[1])
            self._vectors = grown
        self._vectors[first : len(self._owners)] = rows

    def expire(self, item: int, expires: int) -> None:
        """Set when an item expires."""
        self._expires[item] = expires

    def remove(self, item: int) -> None:
        """Remove an item."""
        self._removed += self._alive[item]
        self._alive[item] = 0

    def _of(self, groups: Sequence[int]) -> Mask:
        """Return a mask of the items in some groups."""
        wanted = np.zeros(max(groups, default=0) + 2, bool)
        wanted[groups] = True
        # The last place stands for all other groups.
        groups_of = np.minimum(np.frombuffer(self._groups, np.int64), len(wanted) - 1)
        mask: Mask = wanted[groups_of] & np.frombuffer(self._alive, bool)
        return mask

    def expired(self, groups: Sequence[int], now: int) -> list[int]:
        """Return the items of some groups that have expired."""
        expired = self._of(groups) & (np.frombuffer(self._expires, np.int64) <= now)
        items: list[int] = np.flatnonzero(expired).tolist()
        return items

    def ranked(
        self, groups: Sequence[int], count: int | None, words: str = "", vector: Rows | None = None
    ) -> Iterator[tuple[int, float | None]]:
        """Yield the items of some groups with their scores, best first, and then the others, newest first.

        The score is the cosine, or for words the share of the largest score that they allow; None for an item
        that is not ranked. At most `count` ranked items are yielded.
        """
        mask = self._of(groups)
        if vector is not None:
            scores, base = self._by_vector(vector, mask), 2.0
        elif words and is_searchable(words):
            scores, base = self._by_words(parse(words), mask), 0.0
        else:
            scores, base = np.zeros(len(mask)), 0.0
        best = top(scores, len(scores) if count is None else count)
        yield from zip(best.tolist(), (scores[best] - base).tolist(), strict=True)
        others = np.flatnonzero(mask & (scores == 0))
        # They are nearly in order, which a stable sort makes use of.
        others = others[np.frombuffer(self._at, np.int64)[others].argsort(kind="stable")][::-1]
        yield from ((int(n), None) for n in others)

    def _by_words(self, query: Query, mask: Mask) -> Floats:
        """Return the BM25 score of each item of a mask, as a share of the largest that the query allows."""
        self._analyse()
        scores, best = np.zeros(len(mask)), 0.0
        lengths = np.frombuffer(self._lengths)
        count = int(mask.sum())
        average = max(float(lengths[mask].mean()), 1.0) if count else 1.0
        share = WEIGHTS.related * min(1.0, WEIGHTS.short / query.length)
        for word in query.words:
            best += self._add(scores, [word.term], word.weight, mask, lengths / average, count)
            if word.related:
                related = [term for term, _ in word.related]
                self._add(scores, related, share * word.weight, mask, lengths / average, count)
        return scores / best if best else scores

    def _by_vector(self, query: Rows, mask: Mask) -> Floats:
        """Return the best cosine of each item of a mask, plus 2; 0 for items without a vector."""
        scores = np.zeros(len(mask))
        owners = np.frombuffer(self._owners, np.int64)
        rows = np.flatnonzero(mask[owners])
        if len(rows):
            vectors = self._vectors[: len(owners)] if len(rows) == len(owners) else self._vectors[rows]
            # Not a product of matrices, for which a BLAS starts several threads.
            np.maximum.at(scores, owners[rows], 2.0 + np.einsum("ij,j->i", vectors, query))
        return scores

    def _analyse(self) -> None:
        for item in range(len(self._lengths), len(self._alive)):
            counts: Counter[int] = Counter()
            words = 0
            if self._alive[item]:
                for text in self._texts[item]():
                    for token in tokens(text):
                        terms, length, _ = analyze(token)
                        counts.update(terms)
                        words += length
            self._lengths.append(words)
            for term, count in counts.items():
                having, frequencies = self._postings.setdefault(term, (array("q"), array("d")))
                having.append(item)
                frequencies.append(count)

    def _add(
        self, scores: Floats, terms: list[int], weight: float, mask: Mask, lengths: Floats, count: int
    ) -> float:
        """Add the score of a word, written as any of some terms, to the scores; return its largest value."""
        postings = [self._postings[term] for term in terms if term in self._postings]
        having = np.concatenate(
            [np.frombuffer(items, np.int64) for items, _ in postings] or [np.zeros(0, np.int64)]
        )
        frequencies = np.concatenate([np.frombuffer(each) for _, each in postings] or [np.zeros(0)])
        kept = mask[having]
        items, frequencies = having[kept], frequencies[kept]
        if len(postings) > 1:
            items, places = np.unique(items, return_inverse=True)
            frequencies = np.bincount(places, frequencies, len(items))
        rarity = weight * inverse_frequency(count, len(items))
        frequencies = frequencies / (1 - WEIGHTS.b + WEIGHTS.b * lengths[items])
        scores[items] += saturate(frequencies, WEIGHTS.k1, rarity)
        return rarity * (WEIGHTS.k1 + 1)
