"""Invisible characters: harmless where a script, an emoji or typesetting needs them, else suspicious."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.safety.deobfuscate import INVISIBLE
from holdfast.text.late_pattern import late_pattern
from holdfast.types import Finding

_RUN = late_pattern(f"{INVISIBLE.pattern}+")
_FLAG = late_pattern("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,7}\U000e007f")
_RIGHT_TO_LEFT = late_pattern("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
# Scripts whose letters need joiners, and those that are broken into lines by invisible spaces.
_JOINED = late_pattern("[\u0590-\u109f\u1780-\u18af\u1a00-\u1cff\ua800-\uabff\ufb1d-\ufdff\ufe70-\ufefc]")
_UNSPACED = late_pattern("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]")
_EMOJI = late_pattern("[\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff#*0-9\u20e3]")
_IDEOGRAPH = late_pattern("[\u3001-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_LETTER = late_pattern(r"[^\W\d_]")
_MONGOLIAN = late_pattern("[\u1800-\u18af]")

_SYLLABLE = 3  # letters on each side of a line break; a hidden word is cut smaller
_MOST = 5000  # runs that are judged one by one
_BIDI_OVERRIDE = "\u202d\u202e"
_BIDI = "\u202a\u202b\u202c\u2066\u2067\u2068\u2069"
_RIGHTWARDS = "\u202b\u2067"
_TURNS = late_pattern("[\u202b\u202d\u202e\u2067]")
_MARKS = "\u200e\u200f\u061c"
_JOINERS = "\u200c\u200d"
_FILLERS = "\u3164\uffa0\u115f\u1160\u17b4\u17b5\u034f\u180b\u180c\u180d\u180e\u180f"


class _Directions(NamedTuple):
    """The directions of a whole text: whether it has right-to-left letters, and controls that turn it."""

    has_rightward_letters: bool
    turns: bool


def find_invisible(text: str) -> Iterator[Finding]:
    """Yield a finding for each run of invisible characters that may hide or disguise something."""
    flags = [match.span() for match in _FLAG.finditer(text)]
    starts = [first for first, _ in flags]
    hyphens = text.count("\u00ad")
    directions = _Directions(_RIGHT_TO_LEFT.search(text) is not None, _TURNS.search(text) is not None)
    for count, run in enumerate(_RUN.finditer(text)):
        start, end = run.span()
        if count == _MOST:
            yield Finding("invisible", start, len(text), "thousands of invisible characters")
            return
        before = bisect_right(starts, start)
        if before and start < flags[before - 1][1]:
            continue
        if message := _judge(text, start, end, hyphens, directions):
            yield Finding("invisible", start, end, message)


def _judge(text: str, start: int, end: int, hyphens: int, directions: _Directions) -> str:
    """Return the name of a run of invisible characters, "" for a harmless one."""
    run = text[start:end]
    if any("\U000e0000" <= char <= "\U000e007f" for char in run):
        return "tag characters"
    if any(char in _BIDI_OVERRIDE for char in run):
        return "direction override"
    if any(char in _BIDI for char in run):
        return "direction control" if _is_misdirected(run, start, directions) else ""
    if all(char in _MARKS for char in run):
        return "direction mark" if len(run) > 3 else ""
    if set(run) == {"\u00ad"}:
        return "soft hyphen" if len(run) > 1 or (hyphens > 3 and _is_shredded(text, start)) else ""
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    if _is_selector(run[0]) or _is_selector(run[-1]):
        return "variation selectors" if _are_selectors_odd(run, before, after) else ""
    if all(char in _JOINERS for char in run) and len(run) <= 2 and _joins(before, after):
        return ""
    if run[0] in _FILLERS:
        is_odd = len(run) > 3 or _is_inside_word(before, after)
        return "filler" if is_odd and not _MONGOLIAN.match(before) else ""
    if len(run) >= 4:
        return "run of zero-width characters"
    is_odd = _is_inside_word(before, after) and not _may_break(text, start, end)
    return "zero-width character" if is_odd else ""


def _is_misdirected(run: str, start: int, directions: _Directions) -> bool:
    """Return whether embeddings and isolates turn text that has no right-to-left letters."""
    if directions.has_rightward_letters:
        return len(run) > 3
    return any(c in _RIGHTWARDS for c in run) or (start > 0 and directions.turns)


def _is_selector(char: str) -> bool:
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def _are_selectors_odd(run: str, before: str, after: str) -> bool:
    if len(run) == 1:
        may_have_one = any(signs.match(before) for signs in (_EMOJI, _IDEOGRAPH, _JOINED))
        return bool(_LETTER.match(before)) and not may_have_one
    is_emoji = _EMOJI.match(before) or _EMOJI.match(after)
    return not (is_emoji and run in {"\ufe0f\u200d", "\ufe0e\u200d", "\u200d\ufe0f"})


def _joins(before: str, after: str) -> bool:
    return any(_EMOJI.match(side) or _JOINED.match(side) for side in (before, after))


def _is_inside_word(before: str, after: str) -> bool:
    """Return whether a run between two characters splits a word of a script that needs no invisible ones."""
    if not (_LETTER.match(before) and _LETTER.match(after)):
        return False
    return not any(_UNSPACED.match(c) or _JOINED.match(c) for c in (before, after))


def _may_break(text: str, start: int, end: int) -> bool:
    """Return whether a run is one character at which a line may be broken within a long word."""
    sides = text[max(0, start - _SYLLABLE) : start], text[end : end + _SYLLABLE]
    return end - start == 1 and all(len(side) == _SYLLABLE and side.isalpha() for side in sides)


def _is_shredded(text: str, start: int) -> bool:
    """Return whether soft hyphens separate single letters, where no syllable ends."""
    return len(re.findall("\u00ad[^\\W\\d_](?=\u00ad)", text[max(0, start - 12) : start + 12])) >= 2
