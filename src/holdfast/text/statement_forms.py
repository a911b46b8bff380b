"""The form of a statement: its person, mood and tense, what it names, and where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from holdfast.text.tables import table_lines

_WORD = re.compile(r"[^\W_]{1,60}(?:['-][^\W_]{1,60}){0,4}")
_LONGEST = 400  # characters of a statement that are looked at
_START = 2  # words: a form that stands among the first of them counts as one of its own as well
_UNSPACED = re.compile(r"[\u4e00-\u9fff]")
_EMPHASIS = re.compile(r"\*\*[^*\n]{1,80}\*\*")
_SIGNS = {
    name: re.compile(pattern)
    for name, pattern in {
        "code": r"`[^`\n]{1,200}`",
        "path": r"[\w.~-]/[\w.-]{2}|\w\.[a-z]{1,5}\b",
        "version": r"\b\d{1,4}\.\d",
        "number": r"\b\d",
        "amount": r"[$€£~]\d|\d(?:%|x\b|×| ?(?:ms|s|k|MB|GB|days?|hours?|minutes?)\b)",
        "arrow": r"→|->|=>",
        "dash": r" [—–-] ",
        "colon": r": ",
        "semicolon": r"; ",
        "bracket": r"\(",
        "quote": r"[\"“]",
        "identifier": r"[a-z][A-Z_]\w|\w\(\)",
        "strong": _EMPHASIS.pattern,
        "capitals": r"\b[A-Z]{4,20}\b",
        "name": r"(?<=[a-z,] )[A-Z][a-z]",
        "dots": r"\.\.\.|…",
        "exclaims": r"!",
    }.items()
}
_FILLER = (
    r"(?:(?:so|ok|okay|yes|yup|yeah|yep|sure|and|but|then|well|now|no|also|alright|right|great|good|please|"
    r"just|maybe|hmm)[ ,.!]{1,4}){0,4}"
)
_VERB = (
    r"(?:use|keep|make|put|drop|remove|rename|replace|add|leave|include|show|call|skip|remember|set|store|"
    r"stick|go|switch|treat|prefer|write|stay|have|limit|allow|default|name|ship|support|avoid|cut|run|ask)"
)
_MOODS = {
    name: re.compile(pattern)
    for name, pattern in {
        "proposes": rf"\A{_FILLER}let['’]?s (?:just |also |not |only |all )?{_VERB}\b",
        "orders": rf"\A{_FILLER}{_VERB} (?!sure|sense|going|me\b)",
        "forbids": (
            rf"\A{_FILLER}(?:do ?n['’]?o?t|never|no more|stop|avoid|"
            r"no (?=\w{1,30} (?:in|on|for|about|to)\b))"
        ),
        "requires": (
            r"\A.{0,80}\b(?:we|it|that|this|they|there|i)(?: \w{1,20})? "
            r"(?:should|shouldn['’]t|must|need to|needs to|don['’]t want|want to|won['’]t) "
        ),
        "modal": r"\b(?:should|shouldn['’]t|must|mustn['’]t)\b",
        "so-it-is": r"\w it is\W{0,3}\Z",
        "approves": (
            r"\b(?:is|are|['’]s|seems?|sounds?|looks?|works?) (?:totally |just |exactly )?"
            r"(?:fine|good|solid|perfect|spot on|locked|great|ok|right)\b"
        ),
        "did": (
            r"\A.{0,30}\b(?:i|we)(?:['’]ve| have|['’]m| am)? (?:just |also |recently |finally |usually )?"
            r"\w{2,20}ed\b"
        ),
        "tells": (
            r"\A(?:\*\*|`)[^*`]{1,80}(?:\*\*|`)[ :]{0,3}(?:\([^()]{1,60}\)[ :]{0,2})?"
            r"(?:[—–→=:-]|is|are|was|now|does|has|only|uses) "
        ),
        "changes": r"\d[\w.,%]{0,12}\*{0,2} ?(?:→|->|to) ?\*{0,2}[~<]?\d",
        "bare": r"\A[\w'’ .`/-]{1,40}[.!]?\Z",
        "shell": r"\A(?:[\[$>%#✓▕]|\w{1,20}@\w|\S{0,40}\]\s)",
    }.items()
}
_ENDS = {":": "ends-colon", "?": "question", "？": "question", "!": "ends-exclaim", ".": "ends-stop"}
_BESIDE = frozenset(
    "question ends-colon choose because proposes modal orders tells i next offer courtesy code line-item "
    "line-row cause shell".split()
)
_ANYWHERE = ("shell", "question", "proposes", "line-row", "line-heading")


class Place(NamedTuple):
    """Where a statement stands among those of its message.

    `line` is what its line begins with, "" for running text; `leads` is whether it is the first of the line.
    """

    position: int
    size: int
    line: str
    leads: bool


@cache
def _phrases() -> tuple[dict[str, list[tuple[list[str], str]]], list[tuple[str, str]]]:
    """Return the phrases by their first word, and those of scripts without spaces."""
    spaced: dict[str, list[tuple[list[str], str]]] = {}
    unspaced: list[tuple[str, str]] = []
    for line in table_lines("holdfast.text", "statement_forms.txt"):
        name, _, listed = line.partition(": ")
        if name == "zh":
            for part in listed.split("; "):
                words, _, form = part.partition(" -> ")
                unspaced += ((word, form) for word in words.split())
            continue
        for phrase in listed.split(", "):
            first, *rest = phrase.split()
            spaced.setdefault(first, []).append((rest, name))
    return spaced, unspaced


def forms(text: str, place: Place) -> set[str]:
    """Return the names of the forms that a statement has, where it stands."""
    text = text[:_LONGEST]
    lower = text.lower().replace("’", "'")
    words = _WORD.findall(lower)
    found = {*_said(text, words), *_shape(text, words), *_placed(place)}
    found.update(name for name, sign in _SIGNS.items() if sign.search(text))
    found.update(name for name, mood in _MOODS.items() if mood.search(lower))
    return found


def with_neighbours(found: Sequence[set[str]]) -> list[set[str]]:
    """Return the forms of the statements of a message, each with some of those beside it."""
    anywhere = {f"any:{name}" for name in _ANYWHERE if any(name in one for one in found)}
    beside = [one & _BESIDE for one in found]
    empty: set[str] = set()
    return [
        one | anywhere | {f"prev:{name}" for name in before} | {f"next:{name}" for name in after}
        for one, before, after in zip(found, [empty, *beside], [*beside[1:], empty], strict=False)
    ]


def _said(text: str, words: Sequence[str]) -> Iterator[str]:
    spaced, unspaced = _phrases()
    for index, word in enumerate(words):
        for rest, name in spaced.get(word, ()):
            if not rest or words[index + 1 : index + 1 + len(rest)] == rest:
                yield name
                if index < _START:
                    yield f"^{name}"
    if _UNSPACED.search(text):
        yield "unspaced"
        for name in {name for word, name in unspaced if word in text}:
            yield from (name, f"^{name}")


def _shape(text: str, words: Sequence[str]) -> Iterator[str]:
    size = len(words) + len(_UNSPACED.findall(text)) // 2
    yield f"words-{min(size.bit_length(), 6)}"
    if size > 9:
        yield "words>9"
    if size > 22:
        yield "words>22"
    yield _ENDS.get(text.rstrip("\"'”’)*_` ")[-1:], "ends-open")
    first = words[0] if words else ""
    if first.endswith(("ed", "ing")):
        yield f"first-{first[-2:]}"
    if first not in _phrases()[0]:
        yield "first-open"
    if text[:1].islower():
        yield "small"
    if text.startswith("**"):
        yield "leads-strong"
    if _EMPHASIS.fullmatch(text.rstrip(":. ")):
        yield "only-strong"


def _placed(place: Place) -> Iterator[str]:
    yield f"line-{place.line or 'text'}"
    if place.leads:
        yield "leads"
    if place.position == 0:
        yield "first"
    if place.position == place.size - 1:
        yield "last"
    yield f"count-{min(place.size.bit_length(), 7)}"
