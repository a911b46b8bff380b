"""Matches of words in a text, and the part of a long text around them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable

from holdfast.text import analyze
from holdfast.text.clean import normalized
from holdfast.text.synonyms import related

_LEAD = 100  # characters of a snippet before the first word that matched
_MAX_ANALYZED = 200_000  # characters of a text that are analysed for matches


def snippet(text: str, words: Iterable[str], width: int) -> str:
    """Return the part of a text with most of the words that matched, or else its head.

    It has `width` characters at most, with an ellipsis at each cut.
    """
    if len(text) <= width:
        return text
    words = list(words)
    lowered = text.lower()
    same = len(lowered) == len(text)  # else the positions differ
    places = [place for place in (lowered.find(word.lower()) for word in words) if place >= 0] if same else []
    if not places:
        text = normalized("NFC", text)
        places = [first for first, _ in find(text[:_MAX_ANALYZED], words)]
    lead = min(_LEAD, width // 5)
    places.sort()
    starts = [max(0, place - lead) for place in places] or [0]
    best = max(
        starts, key=lambda start: bisect_left(places, start + width - lead) - bisect_left(places, start)
    )
    return around(text, best, width)


def around(text: str, start: int, width: int) -> str:
    """Return `width` characters of a text from a place on, or up to its end, with an ellipsis at each cut."""
    if len(text) <= width:
        return text
    start = max(0, min(start, len(text) - width))
    cut = text[start : start + width].strip()
    return f"{'…' if start else ''}{cut}{'…' if start + width < len(text) else ''}"


def find(text: str, words: Iterable[str]) -> list[tuple[int, int]]:
    """Return the spans of words in a text in NFC, in any of their forms, in order.

    >>> find("She runs, he RAN", ["running"])
    [(4, 8), (13, 16)]
    """
    terms = _terms(words)
    spans: dict[str, list[tuple[int, int]]] = {}
    marks, at = [], 0
    for token in analyze.tokens(text):
        start = text.index(token, at)
        at = start + len(token)
        if token not in spans:
            spans[token] = _within(token, terms)
        marks += [(start + first, start + last) for first, last in spans[token]]
    return marks


def _terms(words: Iterable[str]) -> set[str]:
    """Return the search terms of the words of a `Why`; "like X" means the words related to X."""
    terms: set[str] = set()
    for word in words:
        written = word.removeprefix("like ")
        normal = {analyze.normal(piece) for piece in analyze.split(written)}
        if whole := analyze.whole_term(written):
            normal.add(whole)
        terms.update(*(map(related, normal) if written != word else [normal]))
    return terms


def _within(token: str, terms: set[str]) -> list[tuple[int, int]]:
    """Return the spans of the terms in a token; the whole token where its parts cannot be located."""
    if analyze.whole_term(token) in terms:
        return [(0, len(token))]
    lower = token.lower()
    marks: list[tuple[int, int]] = []
    for piece in analyze.split(token):
        if analyze.normal(piece) in terms:
            places = [match.span() for match in re.finditer(re.escape(piece), lower)]
            marks += places if places and len(lower) == len(token) else [(0, len(token))]
    return merge(marks)


def merge(marks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans, sorted, with those joined that overlap or touch."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(marks):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged
