"""From the words of a question to the postings of its terms, in everything that is searched together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.search import query as questions
from holdfast.search import rank
from holdfast.search.query import Question

# Related words that stand in a thousand messages together, or in a hundredth of all, tell nothing further.
_RELATED = 1_000
_NOTHING = (np.empty(0, np.int64), np.empty(0))


class Lists(Protocol):
    """Where some terms stand: how many documents have each, and on demand which ones, and how often."""

    counts: list[int]

    def of(self, n: int, /) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Give the documents with the n-th term, rising, and how often it stands in each."""


class Kept:
    """The postings of those documents alone that a mask keeps."""

    def __init__(self, lists: Lists, mask: NDArray[np.bool_]) -> None:
        self._lists = []
        for n, count in enumerate(lists.counts):
            docs, frequencies = lists.of(n) if count else _NOTHING
            keep = mask.take(docs)
            self._lists.append((docs[keep], frequencies[keep]))
        self.counts = [len(docs) for docs, _ in self._lists]

    def of(self, n: int, /) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Give the documents with the n-th term, rising, and how often it stands in each."""
        return self._lists[n]


@dataclass(frozen=True, slots=True)
class Sought:
    """A term of a question as it was written, with where it stands in one source."""

    written: str
    term: rank.Term


def hashes(asked: Question) -> list[int]:
    """List the terms to look up: those of the question, then those related to each."""
    return [
        *(word.term for word in asked.words),
        *(term for word in asked.words for term, _ in word.related),
    ]


def match(
    asked: Question,
    sources: Sequence[tuple[Lists, int]],
    weights: rank.Weights,
    names: Collection[int] = (),
) -> list[list[Sought]]:
    """Look up the terms of a question in sources, each given by its lists and its number of documents.

    A word that no source has is left out. `names` are words that point at a speaker, and count less as words. The
    words related to a word are looked up as if they were one.
    """
    total = sum(documents for _, documents in sources)
    count = len(asked.words)
    having = [sum(lists.counts[n] for lists, _ in sources) for n in range(count)]
    present = sorted((n for n in range(count) if having[n]), key=lambda n: having[n])[: questions.MAX_TERMS]
    found: list[list[Sought]] = [[] for _ in sources]
    for n in sorted(present):
        word = asked.words[n]
        weight = word.weight * (weights.name_as_word if word.term in names else 1.0)
        rarity = rank.inverse_frequency(total, having[n])
        for into, (lists, _) in zip(found, sources, strict=True):
            into.append(Sought(word.written, rank.Term(*lists.of(n), weight, rarity)))
    share = weights.related * min(1.0, weights.short / count)
    first = count
    for word in asked.words:
        groups = [_group(lists, range(first, first + len(word.related)), size) for lists, size in sources]
        first += len(word.related)
        if any(groups):
            parts: list[tuple[rank.Numbers, rank.Floats]] = [group or _NOTHING for group in groups]
            rarity = rank.inverse_frequency(total, sum(len(docs) for docs, _ in parts))
            for into, part in zip(found, parts, strict=True):
                into.append(
                    Sought(f"like {word.written}", rank.Term(part[0], part[1], share * word.weight, rarity))
                )
    return found


def _group(lists: Lists, terms: range, documents: int) -> tuple[rank.Numbers, rank.Floats] | None:
    """Join the postings of the words related to one, the likeliest first, while they are few enough to tell anything."""
    room = max(_RELATED, documents * _RELATED // 100_000)
    chosen = []
    for n in terms:
        if 0 < lists.counts[n] <= room:
            chosen.append(lists.of(n))
            room -= lists.counts[n]
    if len(chosen) < 2:
        return chosen[0] if chosen else None
    size = max(int(docs[-1]) for docs, _ in chosen) + 1
    sums, having = np.zeros(size), np.zeros(size, bool)
    for docs, frequencies in chosen:
        sums[docs] += frequencies
        having[docs] = True
    found = np.flatnonzero(having)
    return found, sums[found]


def matched(sought: Sequence[Sought], docs: Sequence[int]) -> list[tuple[str, ...]]:
    """Name the words of the question that stand in each document itself."""
    found: list[list[str]] = [[] for _ in docs]
    for one in sought:
        if not len(one.term.docs):
            continue
        places = np.minimum(one.term.docs.searchsorted(docs), len(one.term.docs) - 1)
        for place in np.flatnonzero(one.term.docs.take(places) == docs):
            found[place].append(one.written)
    return [tuple(words) for words in found]
