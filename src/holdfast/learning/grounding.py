"""Observations in the answer of a model: reading, checking, and grounding them in a transcript."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from holdfast.learning.echo_match import recalled_seqs
from holdfast.learning.question import (
    FACT,
    WORD,
    TranscriptLine,
    TranscriptPart,
    fold_words,
    text_line,
    transcript_lines,
    unescape,
)
from holdfast.llm.json_answers import has, listed, numbers_of, picked, table, text_of
from holdfast.llm.llm_request import Unreadable
from holdfast.safety import guard
from holdfast.text.sentences import is_question, one_line, sentences
from holdfast.types import Message, Range

LONGEST = 1_000  # characters of an observation and of a quote
# Of an observation and of a quote: "none", "n/a" and "5" are what a model writes that found nothing.
_FEWEST_WORDS = 2
_SHORTEST_QUOTE = 6  # characters of two or three words; fewer are in every text
# From so many words, or characters of several, a quote may begin and end within a word, as what was cut off
# does.
_CUT, _LONG_CUT = 4, 20
_QUOTES = " \t\n\"'“”‘’«»„…"
_LEFT_OUT = re.compile(r"…|\.{3,}")
_TIMES = ("date", "time", "weekday")


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing that was learned, in one line.

    `messages` are the seqs of the first and the last message that it was learned from, None for a text.
    `quote` are the words that it rests on, "" where none were found. `speaker` is the role of their message,
    "" if that is unknown, or if it is a user's who did not say what was learned. `target` is what a fact is
    about.
    """

    kind: str
    text: str
    messages: Range | None = None
    quote: str = ""
    speaker: str = ""
    target: str = ""


class _Statement(NamedTuple):
    """The terms of a text without its questions, and whether it names a time, but in words alone."""

    terms: frozenset[int]
    names_time: bool


class _Claim(NamedTuple):
    """The content words of an observation, each as its terms; `exact` are names and numbers."""

    words: tuple[frozenset[int], ...]
    exact: tuple[frozenset[int], ...]
    times: tuple[frozenset[int], ...]


def ground(
    kind: str, text: str, item: object, span: Range | None, lines: Sequence[TranscriptLine]
) -> Observation:
    """Return an observation with its quote and messages, grounded in the lines of a transcript.

    A quote must stand in a message: its words in their order, whatever their case and what is between them;
    "…" stands for words that were left out. It is the user's if it is in a message of the user that states
    what was learned, and that message is the range then. Otherwise it belongs to the message that has most of
    the words. A range that is not within the `span` of the transcript, or has not the quote in it, yields to
    the message of the quote, or without a quote to the span. A `span` of None is a text.
    """
    # An observation is worth storing without a quote.
    quote = plain_text(picked(item, "quote")).strip(_QUOTES) if isinstance(item, Mapping) else ""
    if span is None:
        return Observation(kind, text, None, quote if _is_in(quote, lines[0].words) else "")
    proposed = _range(item, span)
    line = _quoted_line(text, quote, lines, proposed)
    if line is None:
        return Observation(kind, text, proposed or span)
    own = (line.seq, line.seq)
    if line.role == "user" and _states(line, text):
        return Observation(kind, text, own, quote, "user")
    within = proposed if proposed and proposed[0] <= line.seq <= proposed[1] else own
    return Observation(kind, text, within, quote, "" if line.role == "user" else line.role)


def grounds(observation: Observation) -> dict[str, object]:
    """Return the metadata of a record about its grounds: the speaker and the quote."""
    meta: dict[str, object] = {"speaker": observation.speaker} if observation.speaker else {}
    return {**meta, "quote": redact(observation.quote)} if observation.quote else meta


def redact(text: str) -> str:
    """Return a text without the credentials in it: no record may hold them."""
    return guard.redact(text, guard.scan(text))


def says_too_little(text: str) -> bool:
    """Return whether a text has fewer than two words, or only single letters."""
    words = [word for word in WORD.findall(text) if any(map(str.isalpha, word))]
    return len(words) < _FEWEST_WORDS or all(word.isascii() and len(word) == 1 for word in words)


def plain_text(value: object) -> str:
    """Return a text of an answer in one line, without the escapes of a transcript; "" for what is no text."""
    try:
        return _plain(text_of(value))
    except Unreadable:
        return ""


def _plain(text: str) -> str:
    return one_line(unescape(text))


def _range(item: object, span: Range) -> Range | None:
    numbers = numbers_of(picked(item, "messages")) if isinstance(item, Mapping) else []
    if not numbers or not span[0] <= numbers[0] <= numbers[-1] <= span[1]:
        return None
    return (numbers[0], numbers[-1])


def _quoted_line(
    text: str, quote: str, lines: Sequence[TranscriptLine], proposed: Range | None
) -> TranscriptLine | None:
    """Return the line that a quote is in: a user's that states the text, else the one that fits best.

    Lines in the proposed range come before others.
    """
    quoted = [line for line in lines if _is_in(quote, line.words)]
    own = [line for line in quoted if line.role == "user" and _states(line, text)]
    within = [line for line in quoted if proposed and proposed[0] <= line.seq <= proposed[1]]
    return max(
        own or within or quoted, key=lambda line: (_overlap(line, text), line.role != "user"), default=None
    )


def _states(line: TranscriptLine, text: str) -> bool:
    """Return whether a message states a text: its names and numbers, and at least half of its words.

    A capitalized word at the beginning of a text may name whom the message calls "I". A time may be one that
    the message words otherwise, as in "yesterday".
    """
    claim, statement = _claim(text), _statement(line.text)
    times = () if statement.names_time else claim.times
    is_exact = all(terms <= statement.terms for terms in (*claim.exact, *times))
    return is_exact and 0 < len(claim.words) <= 2 * _overlap(line, text)


def _overlap(line: TranscriptLine, text: str) -> int:
    stated = _statement(line.text).terms
    return sum(terms <= stated for terms in _claim(text).words)


@lru_cache(maxsize=64)
def _statement(text: str) -> _Statement:
    # The text analysis is loaded by the first comparison.
    from holdfast.text.analyze import analyze, tokens

    parts = [sentence for sentence in sentences(text) if not is_question(sentence)]
    words = [analyze(token) for sentence in parts for token in tokens(sentence)]
    terms = frozenset(term for token in words for term in token.terms)
    has_digits = any(map(str.isdigit, "".join(parts)))
    return _Statement(terms, not has_digits and any(token.tells_time for token in words))


@lru_cache(maxsize=64)
def _claim(text: str) -> _Claim:
    # The text analysis is loaded by the first comparison.
    from holdfast.text.analyze import STOP_WORDS, analyze, tokens
    from holdfast.text.value_tokens import tokenize

    words, exact, times = [], [], []
    begins = True
    for token in tokenize(text):
        is_name = token.text[:1].isupper()
        begins = begins and (is_name or token.kind == "mark")
        terms = frozenset(term for part in tokens(token.text) for term in analyze(part).terms)
        if not terms or begins or token.key in STOP_WORDS or token.key in ("'s", "user"):
            continue
        if token.kind in _TIMES:
            times.append(terms)
            continue
        words.append(terms)
        if is_name or token.kind not in ("word", "cjk"):
            exact.append(terms)
    return _Claim(tuple(words), tuple(exact), tuple(times))


def _is_in(quote: str, text: str) -> bool:
    """Return whether the words of a quote, two at least, stand in a folded text."""
    pieces = [words for piece in _LEFT_OUT.split(quote) if (words := fold_words(piece)).strip()]
    most = max((len(words.split()) for words in pieces), default=0)
    if len(quote) > LONGEST or most < _FEWEST_WORDS or (most < _CUT and len(quote) < _SHORTEST_QUOTE):
        return False
    may_be_cut = len(" ".join(pieces).split()) >= _CUT or len(quote) >= _LONG_CUT
    end = 0
    for words in pieces:
        start = text.find(words, end)
        if start < 0 and may_be_cut and words in (pieces[0], pieces[-1]):
            start = text.find(words.strip(), end)
        if start < 0:
            return False
        end = start + len(words.strip())
    return True


# What an answer holds

# A part may have so many observations, and one more for each so many characters of it.
_FREE, _PER = 5, 100


class ReadObservations(NamedTuple):
    """The observations that were read, and how many items were dropped, by reason."""

    observations: tuple[Observation, ...]
    dropped: Counter[str]


def read_observations(
    value: object, part: TranscriptPart, messages: Sequence[Message], kinds: Sequence[str]
) -> ReadObservations:
    """Return the observations in an answer about a part of `messages`, and how many were dropped, by reason.

    They are of the `kinds` that were asked for; a text listed under several is of the first.

    Each is one line. Items that are no text, blank, too short, too long or repeated are dropped, and those
    beyond the number for the length of a part: five, and one for each 100 characters.

    Raises:
        Unreadable: there are no lists of observations in it.

    """
    within = (message for message in messages if part.first <= message.seq <= part.last)
    lines = transcript_lines(within, recalled_seqs(messages)) if part.last else [text_line(part)]
    span = (part.first, part.last) if part.last else None
    most = _FREE + len(part.transcript) // _PER
    kept: dict[str, Observation] = {}
    dropped: Counter[str] = Counter()
    for name, item in _items(value, kinds):
        try:
            text = _plain(text_of(item, name))
        except Unreadable:
            dropped["no text"] += 1
            continue
        flaw = _flaw(text, kept) or ("too many" if len(kept) >= most else "")
        if flaw:
            dropped[flaw] += 1
            continue
        observation = ground(name, text, item, span, lines)
        kept[text.casefold()] = replace(observation, target=_target(item)) if name == FACT else observation
    return ReadObservations(tuple(kept.values()), dropped)


def _items(value: object, kinds: Sequence[str]) -> Iterator[tuple[str, object]]:
    """Yield the items of an answer with their kinds; those of a bare list are findings."""
    if isinstance(value, list):
        for item in value:
            yield from _items(item, kinds) if _has_any(item, kinds) else (("finding", item),)
        return
    lists = table(value, "the answer")
    if lists and not _has_any(lists, kinds):
        raise Unreadable("it has none of the lists findings, insights and lessons.")
    for kind in kinds:
        yield from ((kind, item) for item in listed(picked(lists, kind)))


def _has_any(value: object, kinds: Sequence[str]) -> bool:
    return isinstance(value, Mapping) and any(has(value, kind) for kind in kinds)


def _flaw(text: str, kept: Mapping[str, Observation]) -> str:
    if not text:
        return "blank"
    if len(text) > LONGEST:
        return "too long"
    if says_too_little(text):
        return "too short"
    return "repeated" if text.casefold() in kept else ""


def _target(item: object) -> str:
    target = picked(item, "target") if isinstance(item, Mapping) else None
    return "user" if target is None else str(target).strip().casefold()
