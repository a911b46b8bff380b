"""From the words of a query to the postings of its terms, in the sources that are searched together."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.search import weights
from holdfast.search.memtable import Memtable
from holdfast.search.query import MAX_TERMS, Query
from holdfast.search.segment import Segment

# Synonyms that stand in a thousand messages together, or in a hundredth of all, tell nothing further.
_RELATED = 1_000
# Synonyms that stand for a word that no document has: of more, the furthest have little to do with it.
_NEAREST = 5

Floats: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = NDArray[np.integer[Any]]
TermPostings: TypeAlias = tuple[Numbers, Floats]
_NOTHING: TermPostings = (np.empty(0, np.int64), np.empty(0))


class QueryTerm(NamedTuple):
    """A term of a query with its postings in one source.

    `docs` rise, and `frequencies` are those of the term in each.

    `rarity` is its inverse document frequency over all sources that are searched together: messages and
    records weigh a word alike, so that their scores can be compared.
    """

    written: str
    docs: Numbers
    frequencies: Floats
    weight: float
    rarity: float


class Postings:
    """The postings of terms given by their hashes: how many documents have each, on demand which."""

    def __init__(self, terms: Sequence[int], parts: Sequence[Segment], memtable: Memtable) -> None:
        hashes = np.array(terms, np.uint64)
        self._spans = [(part, *part.spans(hashes)) for part in parts]
        self._newest = [memtable.postings(term) for term in terms]
        self.counts = [len(docs) for docs, _ in self._newest]
        for _, starts, ends in self._spans:
            self.counts = [count + int(size) for count, size in zip(self.counts, ends - starts, strict=True)]

    def of(self, n: int) -> TermPostings:
        """Return the documents with the n-th term, rising, and its frequency in each."""
        docs = np.empty(self.counts[n], np.int64)
        frequencies = np.empty(self.counts[n])
        filled = 0
        for part, starts, ends in self._spans:
            span = slice(int(starts[n]), int(ends[n]))
            into = slice(filled, filled + span.stop - span.start)
            np.add(part.docs[span], part.first, out=docs[into])
            frequencies[into] = part.frequencies[span]
            filled = into.stop
        docs[filled:], frequencies[filled:] = self._newest[n]
        return docs, frequencies


class MaskedPostings:
    """The postings of the documents that a mask lets pass."""

    def __init__(self, postings: Postings, mask: NDArray[np.bool_]) -> None:
        self._terms: list[TermPostings] = []
        for n, count in enumerate(postings.counts):
            docs, frequencies = postings.of(n) if count else _NOTHING
            passing = mask.take(docs)
            self._terms.append((docs[passing], frequencies[passing]))
        self.counts = [len(docs) for docs, _ in self._terms]

    def of(self, n: int) -> TermPostings:
        """Return the documents with the n-th term, rising, and its frequency in each."""
        return self._terms[n]


class Searched(NamedTuple):
    """The postings of a source, its number of documents, and the words that name its speakers."""

    postings: Postings | MaskedPostings
    documents: int
    names: Container[int]


def match(query: Query, sources: Sequence[Searched]) -> list[list[QueryTerm]]:
    """Return the terms of a query in each source. A word that no source has is left out.

    A word that names a speaker counts less as a word. The synonyms of a word are looked up as if they were
    one.
    """
    found: list[list[QueryTerm]] = [[] for _ in sources]
    total = sum(source.documents for source in sources)
    count = len(query.words)
    having = [sum(source.postings.counts[n] for source in sources) for n in range(count)]
    present = sorted((n for n in range(count) if having[n]), key=lambda n: having[n])[:MAX_TERMS]
    for n in sorted(present):
        word = query.words[n]
        is_name = any(word.term in source.names for source in sources)
        weight = word.weight * (weights.WEIGHTS.name_as_word if is_name else 1.0)
        rarity = weights.inverse_frequency(total, having[n])
        for into, source in zip(found, sources, strict=True):
            into.append(QueryTerm(word.written, *source.postings.of(n), weight, rarity))
    share = weights.WEIGHTS.related * min(1.0, weights.WEIGHTS.short / query.length)
    first = count
    for n, word in enumerate(query.words):
        following = range(first, first + len(word.related))
        first = following.stop
        terms = [one for one in following if any(source.postings.counts[one] for source in sources)]
        if not having[n]:
            terms = terms[:_NEAREST]
        groups = [_joined(source, terms) for source in sources]
        if any(len(docs) for docs, _ in groups):
            rarity = weights.inverse_frequency(total, sum(len(docs) for docs, _ in groups))
            for into, group in zip(found, groups, strict=True):
                into.append(QueryTerm(f"like {word.written}", *group, share * word.weight, rarity))
    return found


def _joined(source: Searched, terms: Sequence[int]) -> TermPostings:
    """Join the postings of synonyms, the likeliest first, while they are few enough to tell anything."""
    room = max(_RELATED, source.documents * _RELATED // 100_000)
    chosen = []
    for n in terms:
        if 0 < source.postings.counts[n] <= room:
            chosen.append(source.postings.of(n))
            room -= source.postings.counts[n]
    if len(chosen) < 2:
        return chosen[0] if chosen else _NOTHING
    size = max(int(docs[-1]) for docs, _ in chosen) + 1
    sums, having = np.zeros(size), np.zeros(size, bool)
    for docs, frequencies in chosen:
        sums[docs] += frequencies
        having[docs] = True
    found = np.flatnonzero(having)
    return found, sums[found]
