"""From the words of a query to the postings of its terms, in the sources that are searched together."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.search import weights
from holdfast.search.columns import Columns, Floats, Numbers, TermPostings
from holdfast.search.memtable import Memtable
from holdfast.search.query import MAX_TERMS, Query
from holdfast.search.segment import Segment
from holdfast.text import analyze

# Synonyms that stand in a thousand messages together, or in a hundredth of all, tell nothing further.
_RELATED = 1_000
# Synonyms that stand for a word that no document has: of more, the furthest have little to do with it.
_NEAREST = 5

# What stands before a word where its synonyms are meant.
LIKE = "like "
NOTHING = TermPostings(np.empty(0, np.int64), np.empty(0))


class QueryTerm(NamedTuple):
    """A term of a query with its postings in one source, in what is said and in output.

    `rarity` is its inverse document frequency over all sources that are searched together: messages and
    records weigh a word alike, so that their scores can be compared.
    """

    written: str
    said: TermPostings
    weight: float
    rarity: float
    output: TermPostings = NOTHING


class Postings:
    """The postings of terms given by their hashes: how many places have each, on demand which documents.

    With a mask, of the documents that it lets pass.
    """

    def __init__(
        self,
        terms: Sequence[int],
        parts: Sequence[Segment],
        memtable: Memtable,
        columns: Columns,
        mask: NDArray[np.bool_] | None = None,
    ) -> None:
        self._columns = columns
        self._mask = mask
        self._count = len(terms)
        # The terms of output follow those of what is said.
        marked = [term ^ analyze.OUTPUT for term in terms] if columns.total_output else []
        hashes = np.array([*terms, *marked], np.uint64)
        self._spans = []
        first = 1
        for part in parts:
            self._spans.append((first, part, *part.spans(hashes)))
            first += len(part.words)
        self._newest = [memtable.postings(int(term)) for term in hashes.tolist()]
        self._first = first
        counts = np.array([len(places) for places, _ in self._newest], np.int64)
        for _, _, starts, ends in self._spans:
            counts += ends - starts
        self._counts: list[int] = counts.tolist()

    @property
    def counts(self) -> list[int]:
        """How many places have each term, in what is said and in output; with a mask, how many documents."""
        if self._mask is not None:
            # Of those that are masked nothing may show.
            return [len(self.of(n).docs) + len(self.output(n).docs) for n in range(self._count)]
        said, output = self._counts[: self._count], self._counts[self._count :]
        return [sum(both) for both in zip(said, output, strict=True)] if output else said

    def output(self, n: int) -> TermPostings:
        """Return the postings of the n-th term in output."""
        return self.of(n + self._count) if self._columns.total_output else NOTHING

    def of(self, n: int) -> TermPostings:
        """Return the postings of the n-th term in what is said."""
        if not self._counts[n]:
            return NOTHING
        places = np.empty(self._counts[n], np.int64)
        frequencies = np.empty(self._counts[n])
        filled = 0
        for first, part, starts, ends in self._spans:
            span = slice(int(starts[n]), int(ends[n]))
            into = slice(filled, filled + span.stop - span.start)
            np.add(part.places[span], first, out=places[into])
            frequencies[into] = part.frequencies[span]
            filled = into.stop
        newest, frequencies[filled:] = self._newest[n]
        places[filled:] = newest
        places[filled:] += self._first
        if self._mask is not None:
            kept = self._mask.take(self._columns.documents(places))
            places, frequencies = places[kept], frequencies[kept]
        return self._columns.by_document(places, frequencies)


class Searched(NamedTuple):
    """The postings of a source, its number of documents, and the words that name its speakers."""

    postings: Postings
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
    having = [sum(counts) for counts in zip(*(source.postings.counts for source in sources), strict=True)]
    present = sorted((n for n in range(count) if having[n]), key=lambda n: having[n])[:MAX_TERMS]
    for n in sorted(present):
        word = query.words[n]
        is_name = any(word.term in source.names for source in sources)
        weight = word.weight * (weights.WEIGHTS.name_as_word if is_name else 1.0)
        said = [source.postings.of(n) for source in sources]
        rarity = weights.inverse_frequency(total, sum(len(one.docs) for one in said))
        for into, one, source in zip(found, said, sources, strict=True):
            into.append(QueryTerm(word.written, one, weight, rarity, source.postings.output(n)))
    share = weights.WEIGHTS.related * min(1.0, weights.WEIGHTS.short / query.length)
    first = count
    for n, word in enumerate(query.words):
        following = range(first, first + len(word.related))
        first = following.stop
        terms = [one for one in following if having[one]]
        if not having[n]:
            terms = terms[:_NEAREST]
        groups = [_joined(source, terms) for source in sources]
        if any(len(one.docs) for one in groups):
            rarity = weights.inverse_frequency(total, sum(len(one.docs) for one in groups))
            for into, group in zip(found, groups, strict=True):
                into.append(QueryTerm(f"{LIKE}{word.written}", group, share * word.weight, rarity))
    return found


def _joined(source: Searched, terms: Sequence[int]) -> TermPostings:
    """Join the postings of synonyms, the likeliest first, while they are few enough to tell anything."""
    room = max(_RELATED, source.documents * _RELATED // 100_000)
    chosen = []
    for n in terms:
        found = source.postings.of(n)
        if 0 < len(found.docs) <= room:
            chosen.append(found)
            room -= len(found.docs)
    if len(chosen) < 2:
        return chosen[0] if chosen else NOTHING
    inside = [one.passages for one in chosen if one.passages is not None]
    passages = _united(inside) if inside else None
    return TermPostings(*_united([(one.docs, one.frequencies) for one in chosen]), passages)


def _united(lists: Sequence[tuple[Numbers, Floats]]) -> tuple[Numbers, Floats]:
    """Join lists of rising numbers, and add up what belongs to each."""
    numbers, places = np.unique(np.concatenate([docs for docs, _ in lists]), return_inverse=True)
    values = np.concatenate([values for _, values in lists])
    return numbers, np.bincount(places, values, len(numbers)).astype(np.float64, copy=False)
