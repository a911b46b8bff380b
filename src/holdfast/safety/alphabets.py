"""Words that mix look-alike letters of two alphabets to be misread."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.text.late_pattern import late_pattern

_WORD = late_pattern("[A-Za-z\u0370-\u03ff\u0400-\u052f\u0531-\u058f\u13a0-\u13ff\ua4d0-\ua4ff]{4,}")
_PART = late_pattern("[A-Za-z]+|[^A-Za-z]+")
_CYRILLIC = late_pattern("[\u0400-\u052f]")
_GREEK = late_pattern("[\u0370-\u03ff]")
# Letters that cannot be told from a Latin one.
_ALIKE = frozenset("асеорхуіјѕһԁԛԝАВЕКМНОРСТХУЅІЈԚԜονΑΒΕΖΗΙΚΜΝΟΡΤΥΧօսհոցᎪᎬᎢᎥᏚᏢꓮꓐꓚꓓꓰꓲꓳꓑꓡ")
_ENDING = 3  # letters that a language puts to a foreign name, at most


def is_cyrillic(text: str) -> bool:
    """Return whether most letters of a text are Cyrillic."""
    return 2 * len(_CYRILLIC.findall(text)) > sum(map(str.isalpha, text))


def find_mixed(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of words that look like words of one alphabet and mix two.

    Not "TNFα", nor a Latin name with a Cyrillic ending. In a Cyrillic text one slip of the keyboard is none
    either.
    """
    mixed = [(word.span(), parts) for word in _WORD.finditer(text) if (parts := _count_parts(word.group()))]
    if is_cyrillic(text) and sum(parts - 1 for _, parts in mixed) < 2:
        return
    yield from (span for span, _ in mixed)


def _count_parts(word: str) -> int:
    """Return how many parts, each of one alphabet, a word has that is made to be misread; 0 for any other."""
    if word.isascii():
        return 0
    parts = _PART.findall(word)
    if len(parts) == 1:
        return 0
    strange = "".join(part for part in parts if not part.isascii())
    is_greek, looks_latin = bool(_GREEK.match(strange)), _ALIKE.issuperset(strange)
    if len(parts) > 2:
        is_made = not is_greek or len(strange) > 1 or looks_latin
    elif parts[0].isascii():
        # A name with an ending, or a protein with its letter.
        is_made = len(strange) > _ENDING and looks_latin
    else:
        is_made = looks_latin or (is_greek and strange in "αε" and len(word) > 4)
    return len(parts) if is_made else 0
