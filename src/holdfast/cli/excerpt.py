"""The part of a message that shows why it was found, with the words that matched marked."""

import re
from bisect import bisect_left
from collections.abc import Iterable
from unicodedata import normalize

from holdfast.cli.screen import Part, safe
from holdfast.text import analyze
from holdfast.text.related import related

WIDTH = 240  # characters: three lines on a usual terminal
_LEAD = 60  # characters before the first word that matched
_READ = 200_000  # characters of a message that are looked at; more would be felt
_MARK = "bold yellow"


def excerpt(text: str, words: Iterable[str], focus: str = "") -> list[Part]:
    """Cut a message to the part where most of the words stand, or where `focus` does, and mark them.

    `words` are those of `Hit.why`. Line breaks become spaces.
    """
    text = normalize("NFC", " ".join(safe(text[:_READ]).split()))  # as `find` wants it
    marks = find(text, words)
    place = text.find(normalize("NFC", focus)) if focus else -1
    if place >= 0:
        marks = _merge([*marks, (place, place + len(focus))])
    start = _start(text, marks, place)
    end = min(len(text), start + WIDTH)
    if end < len(text):
        end = max(text.rfind(" ", start, end), start + WIDTH // 2)
    parts: list[Part] = ["…"] if start else []
    at = start
    for first, last in marks:
        if first >= at and last <= end:
            parts += [text[at:first], (text[first:last], _MARK)]
            at = last
    return [*parts, text[at:end], "…" if end < len(text) else ""]


def find(text: str, words: Iterable[str]) -> list[tuple[int, int]]:
    """Find where words stand in a text in NFC, in any of their forms: first and last position of each, in order.

    >>> find("She runs, he RAN", ["running"])
    [(4, 8), (13, 16)]
    """
    wanted = _terms(words)
    known: dict[str, list[tuple[int, int]]] = {}
    marks, at = [], 0
    for token in analyze.tokens(text):
        start = text.index(token, at)
        at = start + len(token)
        if token not in known:
            known[token] = _within(token, wanted)
        marks += [(start + first, start + last) for first, last in known[token]]
    return marks


def _terms(words: Iterable[str]) -> set[str]:
    """Bring the words of a reason to the terms that search compares; "like X" stands for the words related to X."""
    terms: set[str] = set()
    for word in words:
        is_like = word.startswith("like ")
        written = word.removeprefix("like ")
        normal = {analyze.normal(piece) for piece in analyze.split(written)}
        whole = analyze.whole_term(written)
        if is_like:
            terms.update(other for one in {*normal, *([whole] if whole else [])} for other in related(one))
        else:
            terms.update(normal, [whole] if whole else [])
    return terms


def _within(token: str, wanted: set[str]) -> list[tuple[int, int]]:
    """Find the parts of a token that are wanted; the whole where they cannot be told apart."""
    if analyze.whole_term(token) in wanted:
        return [(0, len(token))]
    lower = token.lower()
    marks: list[tuple[int, int]] = []
    for piece in analyze.split(token):
        if analyze.normal(piece) in wanted:
            places = [match.span() for match in re.finditer(re.escape(piece), lower)]
            marks += places if places and len(lower) == len(token) else [(0, len(token))]
    return _merge(marks)


def _merge(marks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join marks that overlap or touch."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(marks):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def _start(text: str, marks: list[tuple[int, int]], place: int) -> int:
    """Choose where the excerpt begins: at a word, a little before the part with the most different marks."""
    if len(text) <= WIDTH:
        return 0
    if place < 0:
        firsts = [first for first, _ in marks]
        inside = {
            first: len({text[a:b].lower() for a, b in marks[n : bisect_left(firsts, first + WIDTH - _LEAD)]})
            for n, first in enumerate(firsts)
        }
        place = max(inside, key=lambda first: inside[first], default=0)
    start = max(0, min(place - _LEAD, len(text) - WIDTH))
    return text.find(" ", start, start + _LEAD) + 1 or start if start else 0
