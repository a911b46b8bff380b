"""Shortening a text: to one line, or in its middle."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.text.tokens import CountTokens

# The beginning of a word that is cut, where the text has spaces.
_SPACED = re.compile(r"(?<=\s)\S{1,200}\Z")


def shorten_line(text: str, width: int) -> str:
    """Return the first line of a text, cut at a word to at most `width` characters."""
    line = " ".join(text.strip()[: 8 * width].partition("\n")[0].split())
    if len(line) <= width:
        return line
    cut = line[: width - 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut[width // 2 :] else cut) + "…"


def shorten_middle(text: str, most: int, count: CountTokens, line: str) -> str:
    """Shorten a text to at most `most` tokens: its beginning and end, around a line on what is left out.

    Both end at a word; "" if not even the line fits.
    """
    short, size = _around(text, 0, line), min(len(text) - 1, 8 * max(0, most))
    if count(short) > most:
        return ""
    while size > 0 and (cost := count(longer := _around(text, size, line))) > most:
        size = min(size - 1, size * most // cost)
    return longer if size > 0 else short


def _around(text: str, size: int, line: str) -> str:
    """Return about `size` characters of a text, half of them from its end, around a line."""
    half = size // 2
    first, last = text[:half], text[len(text) - half :]
    if half:
        # In a text without spaces, anywhere.
        first = _SPACED.sub("", first)
        last = _SPACED.sub("", last[::-1])[::-1]
    return f"{first.rstrip()}\n{line}\n{last.strip()}".strip()
