"""The query: its terms, and what it asks for besides words."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from itertools import accumulate, pairwise, starmap
from typing import NamedTuple

from holdfast.errors import InvalidInput
from holdfast.text import analyze
from holdfast.text.dates import PartialDate, find_dates
from holdfast.text.function_words import foreign_stop_words
from holdfast.text.relative_days import find_spans
from holdfast.text.requests import points_back, split_request
from holdfast.text.sentences import is_question
from holdfast.text.synonyms import related
from holdfast.text.word_forms import LATIN, forms, languages
from holdfast.types import MAX_COUNT

# The query for all that was said in a span of time.
EVERYTHING = "*"
# Terms of a query; of a longer one the rarest count.
MAX_TERMS = 256
# Dates of a query; of a longer one the first count.
MAX_DATES = 16
# Terms of a query whose pronouns name a speaker; a longer text just happens to have some.
SHORT = 16
# The tokens whose terms are kept, and the characters of each: about 2 MB.
_CACHED_TOKENS, _CACHED_LENGTH = 2_048, 40
# What the other spelling of a word counts: it stands in the same messages, most often.
_SPELLED_OUT = 0.3

_ASKS_TIME = re.compile(
    r"\b(?:when|how (?:long|recently|often)|what (?:date|day|month|year|time)"
    r"|which (?:date|day|month|year|week)"
    r"|how many (?:days|weeks|months|years))\b"
    # Words of other languages that no English word is like.
    r"|\b(?:wann|wie (?:lange|oft)|welche[mnrs]? (?:datum|tag|monat|jahr)|quand|cuando|quando|wanneer)\b"
    r"|什[么麼]时候|什麼時候|什么时间|何[时時]|多久|多[长長][时時]|几[点号月时天年]|幾[點號月時天年]|哪[一]?[天年月日]"
    r"|星期几|周几|日期|いつ|何[時日月年曜]|언제|며칠|몇 ?[시월년일]|เมื่อไ"
)
_PRONOUNS = {
    "user": re.compile(
        r"\b(?:i|my|me|mine|i'm|i've|i'd|i'll|ich|mich|mir|mein(?:e[mnrs]?)?)\b|我(?![们們])|私|わたし|僕|俺"
        r"|(?<![가-힣])(?:나|내|저|제)(?:[는가를의]|(?![가-힣]))"
    ),
    "assistant": re.compile(
        r"\b(?:did|do|have|were|are|would|could|can|had) you\b|\byours?\b"
        r"|\b(?:hast|hattest|bist|warst|kannst|konntest|wirst|wurdest|sollst) du\b|\bdein(?:e[mnrs]?)?\b"
        r"|[你您](?![们們]|[还還]?[记記]得|知道|能|可以)|あなた|당신"
    ),
}


class Word(NamedTuple):
    """A term of a query, how it was written, how much it counts, and its synonyms."""

    term: int
    written: str
    weight: float
    related: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query. `roles` are those that its pronouns point at.

    `dates` are those that it names, in the `zone` of who asks, and `spans` those by the clock, as (from,
    before) in microseconds. `length` is the number of its words; one that counts for less than one is less
    of a word. `same` is `hash_same` of a question, which answers nothing, None of others. `request` is the
    part of it that asks and `setting` the rest, where it has both; `points_back` is whether it asks about
    that.
    """

    words: tuple[Word, ...]
    length: float
    roles: frozenset[str]
    asks_time: bool
    dates: tuple[PartialDate, ...]
    spans: tuple[tuple[int, int], ...] = ()
    zone: tzinfo = UTC
    same: int | None = None
    request: Query | None = None
    setting: Query | None = None
    points_back: bool = False

    @property
    def terms(self) -> list[int]:
        """The hashes to look up: those of the words, then those of the synonyms of each."""
        return [
            *(word.term for word in self.words),
            *(term for word in self.words for term, _ in word.related),
        ]

    @property
    def synonyms(self) -> list[range]:
        """The places of the synonyms of each word in `terms`."""
        ends = accumulate((len(word.related) for word in self.words), initial=len(self.words))
        return list(starmap(range, pairwise(ends)))


def has_words(query: str) -> bool:
    """Return whether a query has a letter or a digit; only then may its hits be shown unasked."""
    tokens = analyze.tokens(query)
    return any(analyze.split(token) for token in tokens if not analyze.is_symbol(token))


def is_searchable(query: str) -> bool:
    """Return whether a query has anything to search for: words, or else emoji."""
    return bool(analyze.tokens(query)) and bool(_words(query))


def parse(
    query: str, now: datetime | None = None, since: int | None = None, until: int | None = None
) -> Query:
    """Return the parsed query; every character of it is plain text, but for `*` alone with a span of time.

    `now` is when it is asked, in the zone whose days are meant; without it no day is named by the clock.
    `since` and `until` are the filters of that name: between them, `*` is everything.

    Raises:
        InvalidInput: it is not text, or has no letters, digits or emoji.

    """
    if not isinstance(query, str):
        raise InvalidInput(f"A query must be text, not {type(query).__name__}.", "Pass a string.")
    words = _words(query)
    if query.strip() == EVERYTHING and (since, until) != (None, None):
        every = Word(analyze.hash_term(EVERYTHING), EVERYTHING, 1.0)
        span = since or -MAX_COUNT, MAX_COUNT if until is None else until
        return Query((every,), 1.0, frozenset(), asks_time=False, dates=(), spans=(span,))
    if not words:
        raise InvalidInput(
            "The query has no letters or digits to search for.",
            "Ask a question, or name some words to look for.",
        )
    asking, setting, said = split_request(query)
    if not asking:
        return _parse(query, words, now)
    request = _parse(asking, named, now) if (named := _words(asking)) else None
    if request:
        query, words = said, _words(said)
    return replace(
        _parse(query, words, now),
        request=request,
        setting=_parse(setting, others, now) if setting and (others := _words(setting)) else None,
        points_back=points_back(asking),
    )


def _parse(query: str, words: tuple[Word, ...], now: datetime | None) -> Query:
    lower = query.lower() if query.isascii() else analyze.fold(query)
    length = sum(min(1.0, word.weight) for word in words)
    roles = {role for role, pronoun in _PRONOUNS.items() if length <= SHORT and pronoun.search(lower)}
    return Query(
        words=words,
        length=length,
        roles=frozenset(roles),
        asks_time=bool(_ASKS_TIME.search(lower)),
        dates=tuple(find_dates(query)[:MAX_DATES]),
        spans=tuple(find_spans(query, now)[:MAX_DATES]) if now else (),
        zone=now.tzinfo or UTC if now else UTC,
        same=analyze.hash_same(query) if is_question(query) else None,
    )


def _words(query: str) -> tuple[Word, ...]:
    """Return the terms of a query, each with those that count as it does."""
    every = analyze.tokens(query)
    terms, written, variants = _terms(every)
    for number in analyze.joined_numbers(query):
        terms[number], written[number] = _SPELLED_OUT, number
    forms_of = _forms(every)
    return tuple(
        Word(
            analyze.hash_term(term),
            word := written[term],
            float(count),
            (
                *_others((*variants.get(term, ()), *related(term)), terms),
                *((form, word) for form in forms_of.get(word, ())),
            ),
        )
        for term, count in terms.items()
    )


def _terms(every: Sequence[str]) -> tuple[dict[str, float], dict[str, str], dict[str, list[str]]]:
    """Return the terms of tokens with what each counts, how each was written, and its other writings.

    Stop words (who, is, the …) are left out, unless there are no others, and emoji, unless there is no word.
    """
    counts: dict[str, float] = {}
    stops: dict[str, float] = {}
    symbols: dict[str, float] = {}
    written: dict[str, str] = {}
    variants: dict[str, list[str]] = {}
    tokens = [_read_cached(token) if len(token) <= _CACHED_LENGTH else _read(token) for token in every]
    foreign = foreign_stop_words((word for words, *_ in tokens for word, _, _ in words), analyze.STOP_WORDS)
    for token, (words, whole, others, spelled) in zip(every, tokens, strict=True):
        for word, weight, term in words:
            into = counts if weight and word not in foreign else stops
            into = symbols if analyze.is_symbol(token) else into
            into[term] = into.get(term, 0) + (weight or 1)
            written.setdefault(term, word)
        if whole:
            counts[whole] = counts.get(whole, 0) + 1
            written.setdefault(whole, token)
        if others:
            last = whole or (analyze.normal(words[-1][0]) if words else token)
            variants.setdefault(last, []).extend(others)
        if spelled and spelled not in counts:
            counts[spelled], written[spelled] = _SPELLED_OUT, token
    return counts or stops or symbols, written, variants


def _read(token: str) -> tuple[list[tuple[str, float, str]], str | None, list[str], str | None]:
    """Return the words of a token, each with its weight and its term, and the other terms of the token."""
    words = [
        (word, weight, analyze.normal(word) if weight or not word.isascii() else word)
        for word, weight in analyze.weigh(token)
    ]
    return words, analyze.whole_term(token), analyze.variants(token), analyze.spelled_out(token)


_read_cached = lru_cache(maxsize=_CACHED_TOKENS)(_read)


def _others(terms: Iterable[str], known: Container[str]) -> Iterator[tuple[int, str]]:
    """Yield terms that count as one of a query, with their hashes, but for those that it has itself."""
    return ((analyze.hash_term(term), term) for term in terms if term not in known)


def _forms(tokens: list[str]) -> dict[str, list[int]]:
    """Return the stems of the words of a query in other languages than English, by the folded word."""
    words = [word for token in tokens for word in analyze.parts(token)]
    spoken: Iterable[str] = languages(words, analyze.plain_tokens(words))
    is_english = len(words) > SHORT or any(word.lower() in analyze.STOP_WORDS for word in words)
    if not spoken and not is_english:
        # Nothing tells it.
        spoken = LATIN
    return {analyze.fold(word): forms(word, spoken) for word in words if spoken or not word.isascii()}
