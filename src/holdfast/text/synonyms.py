"""A small thesaurus, directed from the words of questions to those of answers."""

from __future__ import annotations

from functools import cache, lru_cache

from holdfast.text import analyze
from holdfast.text.tables import table_lines

# Words that are looked at for one that no document has, and how similar their vectors are at least.
_CANDIDATES, _ALIKE = 10, 0.6


@lru_cache(maxsize=4_096)
def related(word: str) -> tuple[str, ...]:
    """Return the normal forms of the words related to one in its normal form; none for most.

    >>> related("sibl")
    ('brother', 'sister', 'twin')
    """
    return tuple(analyze.normal(other) for other in _table().get(word, "").split())


@lru_cache(maxsize=4_096)
def nearest(word: str) -> tuple[str, ...]:
    """Return the normal forms of the words nearest in meaning to a word in lower case, the nearest first.

    The first call loads the word vectors; one takes half a millisecond.

    >>> "violin" in nearest("instrument"), nearest("lisboa")
    (True, ())
    """
    if not word.isascii() or not word.isalpha():
        return ()
    # Few queries need the vectors.
    from holdfast.text.vectors import similar

    own = analyze.normal(word)
    near = (analyze.normal(other) for other in similar(word, _CANDIDATES, _ALIKE))
    return tuple(dict.fromkeys(other for other in near if other != own and other not in analyze.STOP_WORDS))


@cache
def _table() -> dict[str, str]:
    """Return the words related to each, by its normal form; few are asked for, and brought into theirs."""
    lines = (line.partition(":") for line in table_lines("holdfast.text", "synonyms.txt"))
    return {analyze.normal(head.strip()): words for head, _, words in lines}
