"""The tables behind a statement: wordings of relations, classes of values, words without content.

They are text files in this folder, read on first use. A wording is a run of stems; the longest one wins.
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
class Meaning:
    """The meaning of a wording: the concepts it may stand for, their flags, its classes of values."""

    keys: frozenset[str]
    flags: frozenset[str] = _NONE
    classes: frozenset[str] = _NONE


Phrases = dict[str, list[tuple[tuple[str, ...], Meaning]]]
_FLAGS = frozenset({"one", "many", "verb", "change", "light", "condition", "plan"})
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
    """Return a word in the form of the tables."""
    return _OWN.get(word) or analyze.normal(word)


def stems(phrase: str) -> tuple[str, ...]:
    """Return the words of a phrase in the form of the tables."""
    words = phrase.lower().split()
    if phrase.isascii() and not any(word in value_tokens.SPECIAL or not word.isalpha() for word in words):
        # The same as by tokens, ten times as fast.
        return tuple(map(stem, words))
    return tuple(stem(token.key) for token in value_tokens.tokenize(phrase) if token.kind != "mark")


def table(name: str) -> list[tuple[list[str], list[str]]]:
    """Return the lines of a table in this folder: the words before the colon, and the list after it."""
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
def openings() -> dict[str, tuple[Meaning | None, Phrases]]:
    """Return, by first stem, its meaning alone and the longer wordings by second stem, longest first."""
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
    found: dict[str, tuple[Meaning | None, Phrases]] = {}
    for phrase in sorted(keys, key=len, reverse=True):
        labels = frozenset(label for key in keys[phrase] for label in classes.get(key, ()))
        entry = Meaning(frozenset(keys[phrase]), frozenset(flags[phrase]), labels)
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
    """Return the words without content of the language of a text; none for English."""
    found = fillers()
    counts = {language: sum(map(found[language].__contains__, words)) for language in _LANGUAGES}
    best = max(counts.values())
    if not best or best <= sum(map(found["empty"].__contains__, words)):
        return _NONE
    return frozenset().union(*(found[language] for language, count in counts.items() if count == best))


@cache
def weak_words() -> frozenset[str]:
    """Return the stems of words that say little beside names and values."""
    return frozenset(map(stem, fillers()["weak"]))
