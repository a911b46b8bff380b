"""Matches of words in a text, and the sentences of a long text that have them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import sqrt

from holdfast.text import analyze
from holdfast.text.clean import normalized
from holdfast.text.synonyms import related

_LEAD = 100  # characters before a place around which a text is cut
_MAX_ANALYZED = 200_000  # characters of a text that are analysed for matches
_WIDE = 50_000  # characters around most of the matches, of which sentences are chosen
_MOST = 50  # places of one word that are looked at
_STEM = 3  # letters with which another word may begin
_LONGEST = 240  # characters of a sentence; a longer one is cut
_END = re.compile(r"\n+|[.!?]\s+|[。！？]")


def snippet(text: str, words: Iterable[str], width: int, weights: Mapping[str, float] | None = None) -> str:
    """Return the sentences of a text that have most of the words that matched, or else its head.

    They have `width` characters at most, with an ellipsis at each cut. Those come first that carry most for
    their length: the sum of the `weights` of their words, each 1 by default, over the root of their
    characters. What the others leave goes to what stands around the best.
    """
    if len(text) <= width:
        return text
    words = list(words)
    places = _places(text, words)
    if not places:
        text = normalized("NFC", text)
        places = [(first, "") for first, _ in find(text[:_MAX_ANALYZED], words)]
    if not places or width < _LEAD:
        return around(text, max(0, min(places, default=(0,))[0] - width // 5), width)
    # The part of a long text that has most of them.
    every = sorted(place for place, _ in places)
    begins = [max(0, place - _WIDE // 5) for place in every] if len(text) > _WIDE else [0]
    first = max(begins, key=lambda begin: bisect_left(every, begin + _WIDE) - bisect_left(every, begin))
    last = min(len(text), first + _WIDE)
    starts = _starts(text, first, last, min(_LONGEST, width // 3))
    spans = list(pairwise((*starts, last)))
    said: dict[int, set[str]] = {}
    for place, word in places:
        if first <= place < last:
            said.setdefault(bisect_right(starts, place) - 1, set()).add(word)
    spans = merge([spans[number] for number in _chosen(spans, said, width, weights or {})])
    cut = "…".join(text[start:end].strip() for start, end in spans)
    return f"{'…' if spans[0][0] else ''}{cut}{'…' if spans[-1][1] < len(text) else ''}"


def _places(text: str, words: Iterable[str]) -> list[tuple[int, str]]:
    """Return where words stand as they are written, in any case."""
    lowered = text.lower()
    if len(lowered) != len(text):  # the positions differ
        return []
    places: list[tuple[int, str]] = []
    for word in filter(None, words):
        place = lowered.find(written := word.lower())
        most = len(places) + _MOST
        while place >= 0 and len(places) < most:
            end = place + len(written)
            # A longer word may have an ending.
            after = lowered[end : end + 1] if len(written) < _STEM else ""
            beside = lowered[max(0, place - 1) : place] + after
            if not (written.isascii() and any(map(str.isalnum, beside))):
                places.append((place, word))
            place = lowered.find(written, end)
    return places


def _starts(text: str, start: int, last: int, longest: int) -> list[int]:
    """Return where the sentences of a part of a text begin, and the parts of those that are longer."""
    starts = []
    for end in (*(match.end() for match in _END.finditer(text, start, last)), last):
        while end - start > longest:
            starts.append(start)
            start = text.rfind(" ", start + longest // 2, start + longest) + 1 or start + longest
        if start < end:
            starts.append(start)
        start = end
    return starts


def _chosen(
    spans: Sequence[tuple[int, int]], said: Mapping[int, set[str]], width: int, weights: Mapping[str, float]
) -> list[int]:
    """Return the numbers of the sentences to show: those that carry most, and what stands around the best."""
    costs = [end - start + 1 for start, end in spans]
    gains = {
        n: sum(weights.get(word, 1) for word in own) / sqrt(costs[n] + _LEAD / 5) for n, own in said.items()
    }
    order = sorted(said, key=lambda n: (-gains[n], n))
    chosen: dict[int, None] = {}
    seen: set[str] = set()

    def take(number: int) -> bool:
        nonlocal width
        fits = 0 <= number < len(costs) and number not in chosen and costs[number] <= width
        if fits:
            chosen[number] = None
            width -= costs[number]
        return fits

    for number in order:
        # First those with a word that the others lack.
        if not said[number] <= seen and take(number):
            seen |= said[number]
    for number in order:
        take(number)
    for number in list(chosen):
        distance = 1
        while take(number + distance) | take(number - distance):
            distance += 1
    return list(chosen)


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
