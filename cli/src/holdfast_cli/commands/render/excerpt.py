"""Excerpts of messages, with the words that match a query marked."""

from collections.abc import Sequence
from unicodedata import normalize

from holdfast.port.texts import find, snippet
from holdfast_cli.commands.render.screen import Part, safe

_WIDTH = 240  # characters: three lines on a usual terminal
_READ = 200_000  # characters of a message that are looked at; more would be felt
_MARK = "bold yellow"


def excerpt(text: str, words: Sequence[str], focus: str = "") -> list[Part]:
    """Cut a message to the sentences with most of the words, or with `focus`, and mark these.

    `words` are those of `Hit.why`. Line breaks become spaces.
    """
    line = " ".join(safe(text[:_READ]).split())
    is_there = focus != "" and focus in line
    shown = normalize("NFC", snippet(line, [focus] if is_there else words, _WIDTH))  # as `find` wants it
    place = shown.find(focus) if is_there else -1
    marks = [(place, place + len(focus))] if place >= 0 else find(shown, words)
    parts: list[Part] = []
    at = 0
    for first, last in marks:
        parts += [shown[at:first], (shown[first:last], _MARK)]
        at = last
    return [*parts, shown[at:]]
