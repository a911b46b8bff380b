"""Text as a reader sees it: hidden and replaced letters are restored, and every letter keeps its place.

A view is another reading of a text. Rules look at the view; `Folded.span` leads from there back to the
original.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from functools import cache, cached_property
from itertools import accumulate
from typing import NamedTuple

from holdfast.text.late_pattern import late_pattern
from holdfast.text.tables import table_lines

# Accents (of all scripts that put them on letters), the points of Hebrew and Arabic, and Arabic's stretching
# line.
_MARKED = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)
_MARKS = late_pattern(f"[{_MARKED}]")
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
INVISIBLE = late_pattern(f"[{_INVISIBLE}]")
_GONE = late_pattern(f"[{_INVISIBLE}{_MARKED}]")
# A word of letters from two alphabets that look alike.
_FOREIGN = "\u0370-\u03ff\u0400-\u052f\u0531-\u058f\u13a0-\u13ff\ua4d0-\ua4ff\u0250-\u02af\u1d00-\u1d7f"
_MIXED = late_pattern(f"[A-Za-z][{_FOREIGN}]|[{_FOREIGN}][A-Za-z]")
_STRANGER = late_pattern(f"[{_FOREIGN}]")
_SPACED = late_pattern(r"(?<![^\W_])[^\W_](?:[ .\-_*|/·•,+~]{1,3}[^\W_](?![^\W_])){4,400}")
_GAPS = late_pattern(r"[ .\-_*|/·•,+~]+")
_LEET = str.maketrans("013457@$8|!€9", "oieastasbliеg".replace("е", "e"))
_LEET_WORD = late_pattern(r"[A-Za-z0-9@$|!€]{3,40}")
_CYRILLIC = str.maketrans("aceiopxyABCEHKMOPTXy", "асеіорхуАВСЕНКМОРТХу")


class _View(NamedTuple):
    text: str
    pieces: tuple[str, ...] | None


class Folded(_View):
    """A view of a text, and the piece of it that each original character became (None: one each)."""

    @cached_property
    def _ends(self) -> list[int]:
        """Where in the view each character of the original ends, computed once."""
        return list(accumulate(map(len, self.pieces or ())))

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original text for a span of the view.

        >>> fold("i\u200bgnore").span(0, 2)
        (0, 3)
        """
        if self.pieces is None:
            return start, end
        ends = self._ends
        first = bisect_left(ends, start + 1)
        return first, min(max(first, bisect_left(ends, end)) + 1, len(ends))


@cache
def _homoglyphs() -> dict[int, str]:
    """Return the Latin letter by the code of each letter that looks like it."""
    rows = (line.partition(":") for line in table_lines("holdfast.safety", "homoglyphs.txt"))
    return {ord(other): letter.strip() for letter, _, others in rows for other in others.split()}


class _Letters(dict[int, str]):
    """Each character without accent, width and style, computed when it is first looked up."""

    def __missing__(self, code: int) -> str:
        letter = self[code] = _plain(chr(code))
        return letter


class _Lookalikes(dict[int, str]):
    """As `_Letters`, with every letter replaced by the Latin one that it looks like."""

    def __missing__(self, code: int) -> str:
        glyphs = _homoglyphs()
        letter = self[code] = glyphs.get(code) or "".join(glyphs.get(ord(c), c) for c in _plain(chr(code)))
        return letter


_LETTERS = _Letters()
_LOOKALIKES = _Lookalikes()
# Letters in squares, circles and flags, which Unicode does not decompose, as those below.
_FIRST_ENCLOSED = (0x1F130, 0x1F150, 0x1F170, 0x1F1E6)
_ENCLOSED = {first + place: chr(ord("A") + place) for first in _FIRST_ENCLOSED for place in range(26)}
_UNDECOMPOSED = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ı": "i", "Ø": "O", "Ł": "L", "Đ": "D", "İ": "I"}
)


def _plain(char: str) -> str:
    if 0xE0020 <= ord(char) <= 0xE007E:  # a tag is an invisible copy of an ASCII character
        return chr(ord(char) - 0xE0000)
    if INVISIBLE.match(char):
        return ""
    plain = _ENCLOSED.get(ord(char)) or unicodedata.normalize("NFKD", char)
    return unicodedata.normalize("NFC", _MARKS.sub("", plain)).translate(_UNDECOMPOSED)


def fold(text: str) -> Folded:
    """Return a text without accents and invisible characters, with plain letters, in its case."""
    if text.isascii():
        return Folded(text, None)
    plain = text.translate(_LETTERS)
    if len(plain) == len(text) and not _GONE.search(text):
        return Folded(plain, None)  # letters that expand would have made it longer
    return Folded(plain, tuple(map(_LETTERS.__getitem__, map(ord, text))))


def has_lookalikes(text: str) -> bool:
    """Return whether a word mixes two alphabets."""
    return _STRANGER.search(text) is not None and _MIXED.search(text) is not None


def unmask(text: str) -> Folded:
    """Return a text with every letter replaced by the Latin one that it looks like."""
    pieces = tuple(map(_LOOKALIKES.__getitem__, map(ord, text)))
    return Folded("".join(pieces), pieces)


def foreign(text: str) -> Folded:
    """Return a Cyrillic text with its Latin letters replaced by the Cyrillic ones that they look like."""
    folded = fold(text)
    if len(folded.text) != len(text):
        return folded
    return Folded(fold(text.translate(_CYRILLIC)).text, None)


def unleet(folded: Folded) -> Folded:
    """Return a text with digits and signs as the letters that they stand for, in words that have both."""
    return folded._replace(text=_LEET_WORD.sub(_unleet_word, folded.text))


def _unleet_word(match: re.Match[str]) -> str:
    word = match.group()
    core = word.rstrip("!|")
    if core.isalpha() or core.isdigit():
        return word
    return core.translate(_LEET) + word[len(core) :]


def unspace(folded: Folded) -> Folded | None:
    """Return a text with letters joined that are written apart, as in "i g n o r e"; None without any."""
    pieces = list(folded.pieces or folded.text)
    if folded.pieces is not None or not _SPACED.search(folded.text):
        return None
    for match in _SPACED.finditer(folded.text):
        signs = match.group().count(" ") < len(_GAPS.findall(match.group())) / 2  # then a space parts words
        for gap in _GAPS.finditer(folded.text, match.start(), match.end()):
            joined = " " if gap.end() - gap.start() > 1 or (signs and gap.group() == " ") else ""
            pieces[gap.start() : gap.end()] = [joined, *[""] * (gap.end() - gap.start() - 1)]
    return Folded("".join(pieces), tuple(pieces))
