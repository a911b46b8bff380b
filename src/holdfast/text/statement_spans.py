"""Where the statements of a text stand: its sentences, list items, rows and headings, without code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_FENCE = re.compile(r"[ \t]{0,12}(?:[-*+>][ \t]{1,4}|\d{1,3}[.)][ \t]{1,4})?(`{3,}|~{3,})")
_ITEM = re.compile(r"[ \t]{0,40}(?:(?:[-*+•‣–>|]|#{1,6}|\(?\d{1,3}[.)]|\[[ xX]\])[ \t]{1,20}){1,4}")
_TAG = re.compile(r"[ \t]{0,16}</?[a-z][^<>\n]{0,200}>[ \t]{0,16}")
_STOP = re.compile(r"(?<![.!?…])[.!?…]{1,8}[\"'”’)\]*_`]{0,4}(?=\s)|[。！？][”’」』）]{0,2}")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(*])"
    r"(?:e\.g|i\.e|etc|vs|cf|approx|dr|mrs?|ms|st|jr|sr|inc|ltd|fig|nr|bzw|z\.b|ca|[a-z])\.$",
    re.IGNORECASE,
)
_LONGEST = 400  # characters in which a backtick is looked for
_BEFORE = 10  # characters before a full stop that tell an abbreviation


class Span(NamedTuple):
    """A statement's place in a text, and what its line begins with."""

    start: int
    end: int
    line: str


def spans(text: str) -> Iterator[Span]:
    """Yield the spans of the statements of a text, without code blocks."""
    start, fence = 0, ""
    for line in text.splitlines(keepends=True):
        bare = line.rstrip()
        mark = _FENCE.match(bare)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) and mark.end() == len(bare) else fence
        elif mark and "`" not in bare[mark.end() :]:
            fence = mark[1]
        elif bare and not _TAG.fullmatch(bare):
            yield from _of_line(text, start, start + len(bare))
        start += len(line)


def _of_line(text: str, start: int, end: int) -> Iterator[Span]:
    item = _ITEM.match(text, start, end)
    kind = ""
    if item:
        marker, start = item[0].strip(), item.end()
        kind = {"#": "heading", "|": "row", ">": "quote"}.get(marker[0], "item")
    if kind == "row":
        yield from _span(text, start, end, kind)
        return
    for stop in _STOP.finditer(text, start, end):
        if _ends(text, start, stop):
            yield from _span(text, start, stop.end(), kind)
            start = stop.end()
    yield from _span(text, start, end, kind)


def _ends(text: str, start: int, stop: re.Match[str]) -> bool:
    if stop[0][0] != ".":
        return stop[0][0] != "…" or not text[stop.end() : stop.end() + 2].strip()[:1].islower()
    before = text[max(start, stop.start() - _BEFORE) : stop.start() + 1]
    return (
        not _ABBREVIATION.search(before)
        # The number of an item ends no sentence.
        and not (stop.start() - start < _BEFORE and text[start : stop.start()].strip("(* ").isdecimal())
        and text.count("`", max(start, stop.start() - _LONGEST), stop.start()) % 2 == 0
    )


def _span(text: str, start: int, end: int, kind: str) -> Iterator[Span]:
    piece = text[start:end]
    bare = piece.strip(" \t\r\f\v|")
    if any(map(str.isalnum, bare)):
        first = start + piece.index(bare)
        yield Span(first, first + len(bare), kind)
