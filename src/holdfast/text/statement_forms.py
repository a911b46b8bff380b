"""The form of a statement: its person, mood and tense, what it names, and where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from holdfast.text.statement_spans import spans
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
        "semicolon": r"; ",
        "strong": _EMPHASIS.pattern,
        "name": r"(?<=[a-z,] )[A-Z][a-z]",
        "dots": r"\.\.\.|…",
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
            rf"\A{_FILLER}(?:(?:do ?n['’]?o?t|stop) (?!(?:worry|waste|forget|bother|think|know|see|get|be|"
            r"ask|mind|understand|confirm|hesitate|asking|talking|spend)\b)|never|no more|avoid|"
            r"no (?!(?:worries|problem|need|idea|rush|doubt|way)\b)(?=\w{1,30} (?:in|on|for|about|to)\b))"
        ),
        "modal": r"\b(?:should|shouldn['’]t|must|mustn['’]t)\b",
        "so-it-is": r"\w it is\W{0,3}\Z",
        "approves": (
            r"\b(?:is|are|['’]s|seems?|sounds?|looks?|works?) (?:totally |just |exactly )?"
            r"(?:fine|good|solid|perfect|spot on|locked|great|ok|right)\b"
        ),
        "reminds": (
            rf"\A{_FILLER}(?:(?:remember|note|keep in mind)(?: that\b|[:,] )|fyi\b|for the record\b|"
            r"merke? dir\b|recuerda que\b|notez que\b)"
        ),
        "tells": (
            r"\A(?:\*\*|`)[^*`]{1,80}(?:\*\*|`)[ :]{0,3}(?:\([^()]{1,60}\)[ :]{0,2})?"
            r"(?:[—–→=:-]|is|are|was|now|does|has|only|uses) "
        ),
        "changes": r"\d[\w.,%]{0,12}\*{0,2} ?(?:→|->|to) ?\*{0,2}[~<]?\d",
        "bare": r"\A[\w'’ .`/-]{1,40}[.!]?\Z",
        "shell": r"\A(?:[\[$>%#✓▕}]|\w{1,20}@\w|\S{0,40}\]\s)|[\u2500-\u259f✓✗●]",
    }.items()
}
_ENDS = {":": "ends-colon", "?": "question", "？": "question", "!": "ends-exclaim", ".": "ends-stop"}
_BESIDE = frozenset(
    "question ends-colon choose because proposes modal orders tells i next offer courtesy code line-item "
    "line-row cause shell".split()
)
_ANYWHERE = ("shell", "question", "proposes", "line-row", "line-heading", "line-item")
# What of the other side's last statement before a message, and of its first after it, counts.
_BEFORE = frozenset(
    "question offer ^offer wh ^wh choose accept next lets should courtesy because request prefer".split()
)
_AFTER = frozenset(
    "accept ^accept next ^next courtesy ^courtesy question found done ^done correct ^correct i ^i choose "
    "lets because wh ^this offer".split()
)
_EDGE = 600  # characters at the edge of a message
_CHOICE = re.compile(
    r"\b(?:or|which|oder|welche[rs]?|ou|quel(?:le)?|cuál|还是|還是)\b.{0,200}[?？]", re.IGNORECASE
)
_LISTED = re.compile(r"^[ \t]{0,8}(?:\d{1,2}[.)]|[-*]) ", re.MULTILINE)


class Place(NamedTuple):
    """Where a statement stands among those of its message.

    `line` is what its line begins with, "" for running text; `leads` is whether it is the first of the line;
    `length` is that of the message, in characters.
    """

    position: int
    size: int
    line: str
    leads: bool
    length: int = 0


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


def of_dialog(before: str, after: str) -> frozenset[str]:
    """Return the forms of what the other side says before a message and after it, "" for nothing."""
    last, first = before[-_EDGE:], after[:_EDGE]
    found = {f"before:{name}" for name in _edge(last, -1) & _BEFORE}
    found.update(f"after:{name}" for name in _edge(first, 0) & _AFTER)
    if _CHOICE.search(last[-_EDGE // 2 :]):
        found.add("before:choice")
    if _LISTED.search(before):
        found.add("before:list")
    return frozenset(found)


def _edge(text: str, index: int) -> set[str]:
    """Return the phrases of the first or the last statement of a text, and whether it is a question."""
    found = list(spans(text))
    if not found:
        return set()
    said = text[found[index].start : found[index].end].lower().replace("’", "'")
    return {*_said(said, _WORD.findall(said)), _end(said)}


def _end(text: str) -> str:
    return _ENDS.get(text.rstrip("\"'”’)*_` ")[-1:], "ends-open")


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
    yield _end(text)
    first = words[0] if words else ""
    if first.endswith(("ed", "ing")):
        yield f"first-{first[-2:]}"
    if first not in _phrases()[0]:
        yield "first-open"
    if text[:1].islower():
        yield "small"
    if text.count('"') > 3:
        yield "quotes"
    if "   " in text:
        yield "shell"
    if text.startswith("**"):
        yield "leads-strong"
    if _EMPHASIS.fullmatch(text.rstrip(":. ")):
        yield "only-strong"


def _placed(place: Place) -> Iterator[str]:
    yield f"line-{place.line or 'text'}"
    if place.leads:
        yield "leads"
    yield f"at-{min(place.position, 4)}"
    yield f"length-{min(place.length.bit_length(), 12)}"
    if place.position == 0:
        yield "first"
    if place.position == place.size - 1:
        yield "last"
    yield f"count-{min(place.size.bit_length(), 7)}"
