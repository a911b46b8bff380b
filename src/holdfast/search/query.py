"""The query: its terms, and what it asks for besides words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from holdfast.errors import InvalidInput
from holdfast.text import analyze
from holdfast.text.dates import PartialDate, find_dates
from holdfast.text.synonyms import related

# Terms of a query; of a longer one the rarest count.
MAX_TERMS = 256
# Dates of a query; of a longer one the first count.
MAX_DATES = 16
# Terms of a query whose pronouns name a speaker; a longer text just happens to have some.
SHORT = 16

_ASKS_TIME = re.compile(
    r"\b(?:when|how (?:long|recently|often)|what (?:date|day|month|year|time)"
    r"|which (?:date|day|month|year|week)"
    r"|how many (?:days|weeks|months|years))\b"
)
_PRONOUNS = {
    "user": re.compile(r"\b(?:i|my|me|mine|i'm|i've|i'd|i'll)\b"),
    "assistant": re.compile(r"\b(?:did|do|have|were|are|would|could|can|had) you\b|\byours?\b"),
}


@dataclass(frozen=True, slots=True)
class Word:
    """A term of a query, how it was written, how much it counts, and its synonyms."""

    term: int
    written: str
    weight: float
    related: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query. `roles` are those that its pronouns point at."""

    words: tuple[Word, ...]
    roles: frozenset[str]
    asks_time: bool
    dates: tuple[PartialDate, ...]

    @property
    def length(self) -> float:
        """The number of words; one that counts for less than one is less of a word."""
        return sum(min(1.0, word.weight) for word in self.words)

    @property
    def terms(self) -> list[int]:
        """The hashes to look up: those of the words, then those of the synonyms of each."""
        return [
            *(word.term for word in self.words),
            *(term for word in self.words for term, _ in word.related),
        ]


def has_words(query: str) -> bool:
    """Return whether there is anything in a query that can be searched for."""
    return any(analyze.split(token) for token in analyze.tokens(query))


def parse(query: str) -> Query:
    """Return the parsed query; every character of it is plain text.

    Raises:
        InvalidInput: it is not text, or has no letters or digits.

    """
    if not isinstance(query, str):
        raise InvalidInput(f"A query must be text, not {type(query).__name__}.", "Pass a string.")
    words = _words(query)
    if not words:
        raise InvalidInput(
            "The query has no letters or digits to search for.",
            "Ask a question, or name some words to look for.",
        )
    lower = query.lower()
    roles = {role for role, pronoun in _PRONOUNS.items() if len(words) <= SHORT and pronoun.search(lower)}
    return Query(
        words=words,
        roles=frozenset(roles),
        asks_time=bool(_ASKS_TIME.search(lower)),
        dates=tuple(find_dates(query)[:MAX_DATES]),
    )


def _words(query: str) -> tuple[Word, ...]:
    """Return the terms of a query. Stop words (who, is, the …) are left out, unless there are no others."""
    counts: dict[str, float] = {}
    written: dict[str, str] = {}
    stops: dict[str, float] = {}
    for token in analyze.tokens(query):
        for word, weight in analyze.weigh(token):
            into = counts if weight else stops
            term = analyze.normal(word) if weight else word
            into[term] = into.get(term, 0) + (weight or 1)
            written.setdefault(term, word)
        whole = analyze.whole_term(token)
        if whole:
            counts[whole] = counts.get(whole, 0) + 1
            written.setdefault(whole, token)
    terms = counts or stops
    return tuple(
        Word(
            analyze.hash_term(term),
            written[term],
            float(count),
            tuple((analyze.hash_term(other), other) for other in related(term) if other not in terms),
        )
        for term, count in terms.items()
    )
