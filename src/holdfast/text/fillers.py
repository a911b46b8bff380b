"""Words without content, by language and kind (`fillers.txt`), and the stems by which facts are compared."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

from holdfast.text import analyze
from holdfast.text.tables import headed_lists

_LANGUAGES = ("de", "es", "fr", "pt", "it", "nl")
# Words that the stemmer takes for one another: a product is not production, nor an intern internal.
_OWN = {
    form: word
    for word in (
        "production staging internal international university universe police policy experiment "
        "experience organ business news import community author authority customs several past paste "
        "relative opera marketing station animal"
    ).split()
    for form in (word, word + "s")
}


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Return a word in the form by which facts are compared."""
    return _OWN.get(word) or analyze.normal(word)


@cache
def fillers() -> dict[str, frozenset[str]]:
    """Return the words without content, by language and kind."""
    return {
        kind: frozenset(map(analyze.fold, " ".join(words).split()))
        for (kind, *_), words in headed_lists("holdfast.text", "fillers.txt")
    }


def foreign(words: Sequence[str]) -> frozenset[str]:
    """Return the words without content of the language of a text; none for English."""
    lists = fillers()
    counts = {language: sum(map(lists[language].__contains__, words)) for language in _LANGUAGES}
    best = max(counts.values())
    if not best or best <= sum(map(lists["empty"].__contains__, words)):
        return frozenset()
    return frozenset().union(*(lists[language] for language, count in counts.items() if count == best))


@cache
def weak_words() -> frozenset[str]:
    """Return the stems of words that say little beside names and values."""
    return frozenset(map(stem, fillers()["weak"]))
