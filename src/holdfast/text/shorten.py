"""A long text in one short line."""

from __future__ import annotations

_SHOWN = 200  # characters of a value in the text of an error


def shorten_line(text: str, width: int) -> str:
    """Take the first line of a text and cut it at a word to at most `width` characters."""
    line = " ".join(text.strip()[: 8 * width].partition("\n")[0].split())
    if len(line) <= width:
        return line
    cut = line[: width - 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut[width // 2 :] else cut) + "…"


def shown(value: object) -> str:
    """Return how a value is written, cut to what the text of an error can hold, also where nothing can write it.

    >>> shown("a"), shown(10**5000)
    ("'a'", '<int that cannot be written>')
    """
    try:
        written = repr(value)
    except (ValueError, RecursionError):  # Python writes no number of more than 4,300 digits
        return f"<{type(value).__name__} that cannot be written>"
    return written if len(written) <= _SHOWN else f"{written[:_SHOWN]}…"
