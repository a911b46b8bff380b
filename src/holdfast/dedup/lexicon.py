"""The tables behind a statement: wordings of relations, classes of values, words without content.

They are text files beside this one, read on first use. A wording is a run of word stems; the longest one that fits wins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources

from holdfast.dedup import value_tokens
from holdfast.text import analyze

_LANGUAGES = ("de", "es", "fr", "pt", "it", "nl")
_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Entry:
    """What a wording means: the concepts it may stand for, their flags, the classes of values it belongs to."""

    keys: frozenset[str]
    flags: frozenset[str] = _NONE
    classes: frozenset[str] = _NONE


Phrases = dict[str, list[tuple[tuple[str, ...], Entry]]]
_FLAGS = frozenset({"one", "many", "verb", "change", "light", "condition", "plan"})
# Words that the stemmer takes for one another: a product is not production, nor an intern internal.
_OWN = {
    form: word
    for word in (
        "production staging internal international university universe police policy experiment experience organ "
        "business news import community author authority customs several past paste relative opera marketing "
        "station animal"
    ).split()
    for form in (word, word + "s")
}


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Bring a word to the form in which the tables know it."""
    return _OWN.get(word) or analyze.normal(word)


def stems(phrase: str) -> tuple[str, ...]:
    """Bring a phrase to the form in which the tables know it."""
    words = phrase.lower().split()
    if phrase.isascii() and not any(word in value_tokens.SPECIAL or not word.isalpha() for word in words):
        return tuple(map(stem, words))  # as the tokens would be, ten times as fast
    return tuple(stem(token.key) for token in value_tokens.tokenize(phrase) if token.kind != "mark")


def table(name: str) -> list[tuple[list[str], list[str]]]:
    """Return the lines of a table beside this file: the words before the colon, and what is listed after it."""
    found = []
    for line in (resources.files("holdfast.dedup") / name).read_text("utf-8").splitlines():
        head, colon, body = line.partition(":")
        if colon and not line.startswith("#"):
            found.append((head.split(), [part.strip() for part in body.split(",") if part.strip()]))
    return found


def _label(head: list[str]) -> tuple[str, set[str]]:
    """Return the name and the flags before the colon; `~` stands for the flag "not"."""
    name = " ".join(word for word in head if word not in _FLAGS)
    return name.lstrip("~"), {*head} & _FLAGS | ({"not"} if name.startswith("~") else set())


@cache
def openings() -> dict[str, tuple[Entry | None, Phrases]]:
    """Return, by a first stem, what it means alone, and the longer wordings by their second stem, longest first."""
    keys: dict[tuple[str, ...], set[str]] = defaultdict(set)
    flags: dict[tuple[str, ...], set[str]] = defaultdict(set)
    classes: dict[str, set[str]] = defaultdict(set)
    for head, phrases in table("paraphrases.txt"):
        name, marks = _label(head)
        for phrase in map(stems, phrases):
            if phrase:
                keys[phrase].add(f"={name}")
                flags[phrase] |= marks
    for head, members in table("classes.txt"):
        name, marks = _label(head)
        label = name + ("!" if "one" in marks else "?" if "condition" in marks else "")
        for written in members:
            member = stems(written)
            if member not in keys:
                keys[member].add(" ".join(member))
            for key in keys[member] | {f"={written}"}:
                classes[key].add(label)
    found: dict[str, tuple[Entry | None, Phrases]] = {}
    for phrase in sorted(keys, key=len, reverse=True):
        labels = frozenset(label for key in keys[phrase] for label in classes.get(key, ()))
        entry = Entry(frozenset(keys[phrase]), frozenset(flags[phrase]), labels)
        _, longer = found.setdefault(phrase[0], (None, {}))
        if len(phrase) == 1:
            found[phrase[0]] = (entry, longer)
        else:
            longer.setdefault(phrase[1], []).append((phrase, entry))
    return found


@cache
def fillers() -> dict[str, frozenset[str]]:
    """Return the words without content, by language and kind."""
    return {
        kind: frozenset(map(analyze.fold, " ".join(body).split()))
        for (kind, *_), body in table("fillers.txt")
    }


def foreign(words: Sequence[str]) -> frozenset[str]:
    """Give the words without content of the language that a text is in; none for English."""
    found = fillers()
    counts = {language: sum(map(found[language].__contains__, words)) for language in _LANGUAGES}
    best = max(counts.values())
    if not best or best <= sum(map(found["empty"].__contains__, words)):
        return _NONE
    return frozenset().union(*(found[language] for language, count in counts.items() if count == best))


@cache
def weak_words() -> frozenset[str]:
    """Give the stems of words that say little beside names and values."""
    return frozenset(map(stem, fillers()["weak"]))
