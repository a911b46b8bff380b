"""Excerpts of messages, with the words that match a query marked."""

from bisect import bisect_left
from collections.abc import Iterable

from holdfast.port.texts import find, merge, normalized
from holdfast_cli.commands.render.screen import Part, safe

WIDTH = 240  # characters: three lines on a usual terminal
_LEAD = 60  # characters before the first word that matched
_READ = 200_000  # characters of a message that are looked at; more would be felt
_MARK = "bold yellow"


def excerpt(text: str, words: Iterable[str], focus: str = "") -> list[Part]:
    """Cut a message to the part where most of the words stand, or where `focus` does, and mark them.

    `words` are those of `Hit.why`. Line breaks become spaces.
    """
    text = normalized("NFC", " ".join(safe(text[:_READ]).split()))  # as `find` wants it
    marks = find(text, words)
    place = text.find(normalized("NFC", focus)) if focus else -1
    if place >= 0:
        marks = merge([*marks, (place, place + len(focus))])
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
