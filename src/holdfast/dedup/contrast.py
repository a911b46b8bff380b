"""Contrasts between two similar texts: a denial, a word that excludes another.

The fitted pairs have too few of these to learn them from: "before" and "after" stand in the same places.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from holdfast.dedup.parsed_text import FUNCTION, ParsedText
from holdfast.text.fillers import stem
from holdfast.text.tables import table_lines

_DENIALS = frozenset(
    "not no never none nobody nothing neither nor without cannot t nicht nie niemals kein keine keinen "
    "keinem keiner keines ohne pas jamais sans nunca jamás sin niet nooit geen zonder non mai senza não "
    "nem sem".split()
)
# What comes and goes with a denial: he always eats meat, he does not eat any meat.
_BESIDE = frozenset(
    "any ever always every all at longer more anymore either even yet still already don doesn didn isn "
    "aren wasn weren won ne".split()
)


class _Word(NamedTuple):
    """A word that excludes another: its group, its side of the group, and the words of content around it."""

    group: int
    side: int
    before: tuple[str, ...]
    after: tuple[str, ...]


def contrast(old: ParsedText, new: ParsedText) -> bool:
    """Return whether two texts contrast.

    >>> from holdfast.dedup.parsed_text import parse_text
    >>> contrast(parse_text("It is due before Christmas"), parse_text("It is due after Christmas"))
    True
    """
    odd = sum(word in _DENIALS for word in (*old.words, *new.words)) % 2 == 1
    return _is_bare(old, new) if odd else _excludes(old, new)


def _is_bare(old: ParsedText, new: ParsedText) -> bool:
    """Return whether two texts have the same words, except those of a denial."""
    one, other = (
        {root for word, root in zip(text.content, text.stems, strict=True) if word not in _DENIALS | _BESIDE}
        for text in (old, new)
    )
    return one == other


def _excludes(old: ParsedText, new: ParsedText) -> bool:
    """Return whether each has a word that excludes one of the other, beside the same word of content.

    False where the two sides are exchanged as well: Omar is older than Ida, Ida is younger than Omar.
    """
    come = list(_words(new, new.known - old.known))
    return any(
        a.group == b.group and a.side != b.side and _alike(a, b) and not _exchanged(a, b)
        for a in (_words(old, old.known - new.known) if come else ())
        for b in come
    )


def _words(text: ParsedText, alone: frozenset[str]) -> Iterator[_Word]:
    table = _table()
    for place, word in enumerate(text.words):
        for group, side in table.get(word, ()) if word in alone else ():
            yield _Word(group, side, _content(text.words[:place]), _content(text.words[place + 1 :]))


def _content(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(stem(word) for word in words if word not in FUNCTION)


def _alike(a: _Word, b: _Word) -> bool:
    return bool(a.before[-1:] and a.before[-1:] == b.before[-1:]) or bool(
        a.after[:1] and a.after[:1] == b.after[:1]
    )


def _exchanged(a: _Word, b: _Word) -> bool:
    sides = [set(side) for side in (a.before, a.after, b.before, b.after)]
    return bool((sides[0] & sides[3]) - sides[1] - sides[2]) and bool(
        (sides[1] & sides[2]) - sides[0] - sides[3]
    )


@cache
def _table() -> dict[str, list[tuple[int, int]]]:
    table: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for group, line in enumerate(table_lines("holdfast.dedup", "opposites.txt")):
        for side, words in enumerate(line.split("|")):
            for word in words.split():
                table[word].append((group, side))
    return dict(table)
