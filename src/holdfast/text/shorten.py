"""Shortening a text to one line."""

from __future__ import annotations


def shorten_line(text: str, width: int) -> str:
    """Return the first line of a text, cut at a word to at most `width` characters."""
    line = " ".join(text.strip()[: 8 * width].partition("\n")[0].split())
    if len(line) <= width:
        return line
    cut = line[: width - 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut[width // 2 :] else cut) + "…"
