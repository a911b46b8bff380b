"""Words that answers use where questions say another: a small thesaurus, directed from the question to the answer."""

from __future__ import annotations

from functools import cache
from importlib import resources

from holdfast.text import analyze


def related(word: str) -> tuple[str, ...]:
    """Give the normal forms of the words related to one in its normal form; none for most.

    >>> related("sibl")
    ('brother', 'sister', 'twin')
    """
    return _table().get(word, ())


@cache
def _table() -> dict[str, tuple[str, ...]]:
    table = {}
    for line in (resources.files("holdfast.text") / "synonyms.txt").read_text("utf-8").splitlines():
        if not line.startswith("#") and line.strip():
            head, _, words = line.partition(":")
            table[analyze.normal(head.strip())] = tuple(analyze.normal(word) for word in words.split())
    return table
