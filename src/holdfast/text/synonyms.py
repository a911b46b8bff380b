"""A small thesaurus, directed from the words of questions to those of answers."""

from __future__ import annotations

from functools import cache, lru_cache

from holdfast.text import analyze
from holdfast.text.tables import table_lines


@lru_cache(maxsize=4_096)
def related(word: str) -> tuple[str, ...]:
    """Return the words related to a word, all in their normal forms; most words have none.

    >>> related("sibl")
    ('brother', 'sister', 'twin')
    """
    return tuple(analyze.normal(other) for other in _table().get(word, "").split())


def is_known(word: str) -> bool:
    """Return whether a word, or another form of it, is in the thesaurus."""
    return analyze.is_irregular(word) or analyze.normal(word) in _words()


@cache
def _words() -> frozenset[str]:
    table = _table()
    return frozenset(table).union(
        *({analyze.normal(word) for word in words.split()} for words in table.values())
    )


@cache
def _table() -> dict[str, str]:
    """Return the words related to each normal form; they are normalised when they are looked up."""
    lines = (line.partition(":") for line in table_lines("holdfast.text", "synonyms.txt"))
    return {analyze.normal(head.strip()): words for head, _, words in lines}
