"""The words that a user marks as private: `<private>…</private>` in a prompt."""

import re
from collections.abc import Iterable, Sequence

PRIVATE = "[private: left out, as the user asked]"
"""The placeholder for words between the tags; it does not tell their number."""

Range = tuple[int, int]

# A client may break a text into parts anywhere, and the parts are joined with line breaks.
_NAME = "".join(f"{letter}\n?" for letter in "private")
_TAG = re.compile(rf"<\s{{0,8}}(/?)\s{{0,8}}{_NAME}(?:\s[^<>]{{0,200}})?>", re.IGNORECASE)
_PIECES = re.compile(_TAG.pattern.replace("(/?)", "/?"), re.IGNORECASE)


def has_tag(text: str) -> bool:
    """Return whether a text has a tag, opening or closing."""
    return "<" in text and _TAG.search(text) is not None


def private_ranges(text: str, *, to_end: bool) -> list[Range]:
    """Return the private ranges of a text, in order and apart, tags included. Linear.

    Tags nest. With `to_end` one that nothing closes covers the rest of the text, which is how prompts are
    read; in other texts it is only a word.
    """
    if "<" not in text:
        return []
    starts: list[int] = []
    ranges: list[Range] = []
    for tag in _TAG.finditer(text):
        if not tag[1]:
            starts.append(tag.start())
        elif starts:
            ranges.append((starts.pop(), tag.end()))
    if starts and to_end:
        ranges.append((starts[0], len(text)))
    return apart(ranges)


def apart(ranges: Iterable[Range]) -> list[Range]:
    """Return ranges of a text in order, each that overlaps another one joined with it, without empty ones."""
    result: list[Range] = []
    for start, end in sorted(ranges):
        if result and start < result[-1][1]:
            result[-1] = result[-1][0], max(end, result[-1][1])
        elif start < end:
            result.append((start, end))
    return result


def without_ranges(text: str, ranges: Sequence[Range], placeholder: str = PRIVATE) -> str:
    """Return a text with a placeholder for each of these ranges."""
    if not ranges:
        return text
    parts, done = [], 0
    for start, end in ranges:
        parts += [text[done:start], placeholder]
        done = end
    return "".join((*parts, text[done:]))


def without_private(text: str, *, to_end: bool = True) -> str:
    """Return a text with a placeholder for what it marks as private.

    >>> without_private("Deploy it. <private>The key is 1234.</private> Thanks.")
    'Deploy it. [private: left out, as the user asked] Thanks.'
    """
    return without_ranges(text, private_ranges(text, to_end=to_end))


def without_private_parts(texts: Sequence[str]) -> list[str]:
    """Return the texts of a prompt in several parts, with placeholders; a range may begin in another part."""
    ranges = private_ranges("".join(texts), to_end=True)
    results, begin, first = [], 0, 0
    for text in texts:
        end = begin + len(text)
        while first < len(ranges) and ranges[first][1] <= begin:
            first += 1
        own = []
        for index in range(first, len(ranges)):
            start, stop = ranges[index]
            if start >= end:
                break
            own.append((max(start, begin) - begin, min(stop, end) - begin))
        results.append(without_ranges(text, own))
        begin = end
    return results


def private_words(text: str) -> list[str]:
    """Return the private words of a prompt, in pieces without the tags."""
    ranges = private_ranges(text, to_end=True)
    pieces = [piece for start, end in ranges for piece in _PIECES.split(text[start:end])]
    return [piece.strip() for piece in pieces if piece.strip()]
