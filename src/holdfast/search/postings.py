"""From the words of a query to the postings of its terms, in the sources that are searched together."""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.search import weights
from holdfast.search.columns import NO_NUMBERS, Columns, Floats, Numbers, TermPostings
from holdfast.search.query import MAX_TERMS, Query
from holdfast.search.segment import Segment
from holdfast.text import analyze
from holdfast.text.unspaced import TOUCHING, is_chance_pair

# Synonyms that stand in a thousand messages together, or in a hundredth of all, tell nothing further.
_RELATED = 1_000
# Synonyms that stand for a word that no document has: of more, the furthest have little to do with it.
_NEAREST = 5

# What stands before a word where its synonyms are meant.
LIKE = "like "
NOTHING = TermPostings(NO_NUMBERS, np.empty(0))


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
    """The postings of terms, given by their hashes: how many places have each, and on demand the documents.

    With a mask, of the documents that it lets pass.
    """

    def __init__(
        self,
        terms: Sequence[int],
        parts: Sequence[Segment],
        columns: Columns,
        mask: NDArray[np.bool_] | None = None,
    ) -> None:
        self._columns = columns
        self._mask = mask
        self.documents = columns.last if mask is None else int(mask.sum())
        # The words that name speakers.
        self.names: Container[int] = columns.names
        self._count = len(terms)
        # The terms of output follow those of what is said.
        marked = [term ^ analyze.OUTPUT for term in terms] if columns.total_output else []
        hashes = np.array([*terms, *marked], np.uint64)
        self._spans: list[tuple[int, Segment, list[int], list[int]]] = []
        counts = np.zeros(len(hashes), np.int64)
        first = 1
        for part in parts:
            begins, ends = part.spans(hashes)
            self._spans.append((first, part, begins.tolist(), ends.tolist()))
            counts += ends - begins
            first += len(part.words)
        self._counts: list[int] = counts.tolist()

    @cached_property
    def counts(self) -> list[int]:
        """How many places have each term, in what is said and in output; with a mask, how many documents."""
        if self._mask is not None:
            # Of those that are masked nothing may show.
            terms = range(self._count)
            both = zip(self.of(terms), self.output(terms), strict=True)
            return [len(said.docs) + len(output.docs) for said, output in both]
        said, output = self._counts[: self._count], self._counts[self._count :]
        return [sum(both) for both in zip(said, output, strict=True)] if output else said

    def output(self, terms: Sequence[int]) -> list[TermPostings]:
        """Return the postings of some terms in output."""
        if not self._columns.total_output:
            return [NOTHING] * len(terms)
        return self.of([n + self._count for n in terms])

    def of(self, terms: Sequence[int]) -> list[TermPostings]:
        """Return the postings of some terms, given by their places, in what is said."""
        places: list[Numbers] = [NO_NUMBERS]
        frequencies: list[NDArray[Any]] = [np.empty(0)]
        sizes: list[int] = []
        starts: list[int] = []
        for n in terms:
            for first, part, begins, ends in self._spans:
                if begins[n] < ends[n]:
                    span = slice(begins[n], ends[n])
                    places.append(part.places[span])
                    frequencies.append(part.frequencies[span])
                    starts.append(first)
            sizes.append(self._counts[n])
        positions = np.concatenate(places, dtype=np.int64)
        positions += np.repeat(np.array(starts, np.int64), [len(some) for some in places[1:]])
        counted = np.concatenate(frequencies, dtype=np.float64)
        if self._mask is not None:
            kept = self._mask.take(self._columns.documents(positions))
            ends_of = np.cumsum([0, *sizes])
            sizes = np.diff(np.cumsum([0, *kept]).take(ends_of)).tolist()
            positions, counted = positions[kept], counted[kept]
        return self._columns.by_document(positions, counted, sizes)


def match_terms(query: Query, sources: Sequence[Postings]) -> list[list[QueryTerm]]:
    """Return the terms of a query in each source; none where no source has any.

    A word that no source has is a term as well: it tells how much of the query is not found. A word that
    names a speaker counts less as a word. The synonyms of a word are looked up as if they were one.
    """
    by_source: list[list[QueryTerm]] = [[] for _ in sources]
    total = sum(source.documents for source in sources)
    count = len(query.words)
    having = [sum(counts) for counts in zip(*(source.counts for source in sources), strict=True)]
    present = sorted((n for n in range(count) if having[n]), key=lambda n: having[n])[:MAX_TERMS]
    present.sort()
    groups = _synonyms(query, having)
    # A look-up takes about as long for one term as for twenty.
    wanted = [*present, *chain.from_iterable(groups)]
    said = [dict(zip(wanted, source.of(wanted), strict=True)) for source in sources]
    put_out = zip(*(source.output(present) for source in sources), strict=True)
    for n, output in zip(present, put_out, strict=True):
        word, everywhere = query.words[n], [of_source[n] for of_source in said]
        is_name = any(word.term in source.names for source in sources)
        weight = word.weight * (weights.WEIGHTS.name_as_word if is_name else 1.0)
        rarity = weights.inverse_frequency(total, sum(len(postings.docs) for postings in everywhere))
        for into, spoken, other in zip(by_source, everywhere, output, strict=True):
            into.append(QueryTerm(word.written, spoken, weight, rarity, other))
    share = weights.WEIGHTS.related * min(1.0, weights.WEIGHTS.short / query.length)
    for word, terms in zip(query.words, groups, strict=True):
        together = [
            _join_synonyms([of_source[n] for n in terms], source.documents)
            for of_source, source in zip(said, sources, strict=True)
        ]
        if any(len(postings.docs) for postings in together):
            rarity = weights.inverse_frequency(total, sum(len(postings.docs) for postings in together))
            for into, group in zip(by_source, together, strict=True):
                into.append(QueryTerm(f"{LIKE}{word.written}", group, share * word.weight, rarity))
    if any(by_source) or query.dates or query.spans:
        rarity = weights.inverse_frequency(total, 0)
        missing = [
            word
            for word, number in zip(query.words, having, strict=False)
            if not number and word.weight > TOUCHING and not is_chance_pair(word.written)
        ]
        for into in by_source:
            into += [QueryTerm(word.written, NOTHING, word.weight, rarity) for word in missing[:MAX_TERMS]]
    return by_source


def _synonyms(query: Query, having: Sequence[int]) -> list[list[int]]:
    """Return the places of the synonyms of each word among the terms that are looked up."""
    return [
        [n for n in places if having[n]][: None if own else _NEAREST]
        for places, own in zip(query.synonyms, having, strict=False)
    ]


def _join_synonyms(synonyms: Sequence[TermPostings], documents: int) -> TermPostings:
    """Join the postings of synonyms, the likeliest first, while they are few enough to tell anything."""
    room = max(_RELATED, documents * _RELATED // 100_000)
    chosen = []
    for synonym in synonyms:
        if 0 < len(synonym.docs) <= room:
            chosen.append(synonym)
            room -= len(synonym.docs)
    if len(chosen) < 2:
        return chosen[0] if chosen else NOTHING
    inside = [postings.passages for postings in chosen if len(postings.passages[0])]
    passages = _union(inside) if inside else NOTHING.passages
    return TermPostings(*_union([postings[:2] for postings in chosen]), passages)


def _union(lists: Sequence[tuple[Numbers, Floats]]) -> tuple[Numbers, Floats]:
    """Join lists of rising numbers, and add up what belongs to each."""
    numbers, places = np.unique(np.concatenate([docs for docs, _ in lists]), return_inverse=True)
    values = np.concatenate([values for _, values in lists])
    return numbers, np.bincount(places, values, len(numbers)).astype(np.float64, copy=False)
