"""Words of other languages that say nothing by themselves (`function_words.txt`): the, of, who, when."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import cache

from holdfast.text.tables import headed_lists

_SPACED = ("de", "es", "fr", "pt", "it", "nl", "sv", "da", "no", "fi", "pl", "cs", "hu", "ro", "tr")
_UNSPACED = ("zh", "ja", "ko", "th")
_FEWEST = 2  # words of a language that tell it


@cache
def _lists() -> dict[str, list[str]]:
    listed = headed_lists("holdfast.text", "function_words.txt")
    return {language: " ".join(words).split() for (language, *_), words in listed}


@cache
def inside_runs() -> re.Pattern[str]:
    """Return a pattern of the words that say nothing inside a run of an unspaced script."""
    words = [word for language in _UNSPACED for word in _lists()[language]]
    inside, ends = (
        "|".join(sorted(map(re.escape, some), key=len, reverse=True)) for some in (words, _lists()["ko-end"])
    )
    return re.compile(rf"{inside}|(?<=[가-힣])(?:{ends})(?![가-힣])")


@cache
def _by_word() -> dict[str, list[str]]:
    """Return the languages that have each function word."""
    spoken: dict[str, list[str]] = {}
    for language in _SPACED:
        for word in set(_lists()[language]):
            spoken.setdefault(word, []).append(language)
    return spoken


def count_by_language(words: AbstractSet[str], english: AbstractSet[str]) -> Counter[str]:
    """Return the number of function words of each language that English has not among some folded words."""
    spoken = _by_word()
    return Counter(language for word in (spoken.keys() & words) - english for language in spoken[word])


def foreign_stop_words(words: Iterable[str], english: AbstractSet[str]) -> frozenset[str]:
    """Return the stop words of the language of a query, by their share of its words, which are folded.

    None unless those that English has not outnumber its own.

    >>> "die" in foreign_stop_words("wann sah anna die katze".split(), {"in", "was"})
    True
    """
    own = set(words)
    counts = count_by_language(own, english)
    best = max(counts.values(), default=0)
    if best < _FEWEST or best <= len(own & english):
        return frozenset()
    return frozenset().union(*(_lists()[language] for language, count in counts.items() if count == best))
