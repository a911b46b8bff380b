"""Grounding: the quoted words, and their speaker, that an observation of a model rests on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from unicodedata import normalize

from holdfast.llm.json_answers import numbers_of, picked, text_of
from holdfast.llm.llm_request import Unreadable
from holdfast.safety import guard
from holdfast.text.sentences import one_line, sentences
from holdfast.types import Range, Role

LONGEST = 1_000  # characters of an observation and of a quote
# Of an observation and of a quote: "none", "n/a" and "5" are what a model writes that found nothing.
_FEWEST_WORDS = 2
_SHORTEST_QUOTE = 6  # characters of two or three words; fewer are in every text
# From so many words, or characters of several, a quote may begin and end within a word, as what was cut off
# does.
_CUT, _LONG_CUT = 4, 20
_QUOTES = " \t\n\"'“”‘’«»„…"
_CLOSING = f"{_QUOTES})]*_"  # what may stand after a question mark
_LEFT_OUT = re.compile(r"…|\.{3,}")
_TIMES = ("date", "time", "weekday")
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff"
# Scripts without spaces are read character by character.
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


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


class TranscriptLine(NamedTuple):
    """A message as it is shown to a model, its text, and the words in which quotes are looked up.

    `cut` are the characters of the use of tools that are not shown.
    """

    seq: int
    role: Role
    written: str
    text: str
    words: str
    cut: int = 0


class _Statement(NamedTuple):
    """The terms of a text without its questions, and whether it names a time, but in words alone."""

    terms: frozenset[int]
    names_time: bool


class _Claim(NamedTuple):
    """The content words of an observation, each as its terms; `exact` are names and numbers."""

    words: tuple[frozenset[int], ...]
    exact: tuple[frozenset[int], ...]
    times: tuple[frozenset[int], ...]


def grounded(
    kind: str, text: str, item: object, span: Range | None, lines: Sequence[TranscriptLine]
) -> Observation:
    """Return an observation with its quote and messages, grounded in the lines of a transcript.

    A quote must stand in a message: its words in their order, whatever their case and what is between them;
    "…" stands for words that were left out. It is the user's if it is in a message of the user that states
    what was learned, and that message is the range then. Otherwise it belongs to the message that has most of
    the words. A range that is not within the `span` of the transcript, or has not the quote in it, yields to
    the message of the quote, or without a quote to the span. A `span` of None is a text.
    """
    quote = _quote(picked(item, "quote")) if isinstance(item, Mapping) else ""
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


def grounds(found: Observation) -> dict[str, object]:
    """Return the metadata of a record about its grounds: the speaker and the quote."""
    named: dict[str, object] = {"speaker": found.speaker} if found.speaker else {}
    return {**named, "quote": redacted(found.quote)} if found.quote else named


def redacted(text: str) -> str:
    """Return a text without the credentials in it: no record may hold them."""
    return guard.redact(text, guard.scan(text))


def says_too_little(text: str) -> bool:
    """Return whether a text has fewer than two words, or only single letters."""
    words = [word for word in _WORD.findall(text) if any(map(str.isalpha, word))]
    return len(words) < _FEWEST_WORDS or all(word.isascii() and len(word) == 1 for word in words)


def folded(text: str) -> str:
    """Return the words of a text between spaces, in lower case, in which quotes are looked up."""
    words = (word.strip("_") for word in _WORD.findall(normalize("NFKC", text).casefold()))
    return f" {' '.join(filter(None, words))} "


def plain(text: str) -> str:
    """Return the text of an answer in one line, without the escapes of a transcript."""
    return one_line(unescaped(text))


def unescaped(text: str) -> str:
    """Return a text without the escapes of transcripts, which models repeat."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _quote(value: object) -> str:
    try:
        return plain(text_of(value)).strip(_QUOTES)
    except Unreadable:
        # An observation is worth storing without a quote.
        return ""


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
    found = [line for line in lines if _is_in(quote, line.words)]
    own = [line for line in found if line.role == "user" and _states(line, text)]
    within = [line for line in found if proposed and proposed[0] <= line.seq <= proposed[1]]
    return max(
        own or within or found, key=lambda line: (_shared(line, text), line.role != "user"), default=None
    )


def _states(line: TranscriptLine, text: str) -> bool:
    """Return whether a message states a text: its names and numbers, and at least half of its words.

    A capitalized word at the beginning of a text may name whom the message calls "I". A time may be one that
    the message words otherwise, as in "yesterday".
    """
    claim, statement = _claim(text), _statement(line.text)
    times = () if statement.names_time else claim.times
    is_exact = all(terms <= statement.terms for terms in (*claim.exact, *times))
    return is_exact and 0 < len(claim.words) <= 2 * _shared(line, text)


def _shared(line: TranscriptLine, text: str) -> int:
    stated = _statement(line.text).terms
    return sum(terms <= stated for terms in _claim(text).words)


@lru_cache(maxsize=64)
def _statement(text: str) -> _Statement:
    # The text analysis is loaded by the first comparison.
    from holdfast.text.analyze import analyze, tokens

    stated = [one for one in sentences(text) if not one.rstrip(_CLOSING).endswith(("?", "？"))]
    found = [analyze(token) for one in stated for token in tokens(one)]
    terms = frozenset(term for token in found for term in token.terms)
    has_digits = any(map(str.isdigit, "".join(stated)))
    return _Statement(terms, not has_digits and any(token.tells_time for token in found))


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
        terms = frozenset(term for one in tokens(token.text) for term in analyze(one).terms)
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
    pieces = [words for one in _LEFT_OUT.split(quote) if (words := folded(one)).strip()]
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
