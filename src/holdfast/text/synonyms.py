"""A small thesaurus, directed from the words of questions to those of answers."""

from __future__ import annotations

from functools import cache

from holdfast.text import analyze
from holdfast.text.tables import table_lines


def related(word: str) -> tuple[str, ...]:
    """Return the normal forms of the words related to one in its normal form; none for most.

    >>> related("sibl")
    ('brother', 'sister', 'twin')
    """
    return _table().get(word, ())


@cache
def _table() -> dict[str, tuple[str, ...]]:
    table = {}
    for line in table_lines("holdfast.text", "synonyms.txt"):
        head, _, words = line.partition(":")
        table[analyze.normal(head.strip())] = tuple(analyze.normal(word) for word in words.split())
    return table
