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


Wordings = dict[str, list[tuple[tuple[str, ...], Entry]]]


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


def _lines(name: str) -> list[tuple[list[str], list[str]]]:
    found = []
    for line in (resources.files("holdfast.dedup") / name).read_text("utf-8").splitlines():
        head, colon, body = line.partition(":")
        if colon and not line.startswith("#"):
            found.append((head.split(), [part.strip() for part in body.split(",") if part.strip()]))
    return found


_FLAGS = frozenset({"one", "many", "verb", "change", "light", "condition", "plan"})


def _head(words: list[str]) -> tuple[str, set[str]]:
    name = " ".join(word for word in words if word not in _FLAGS)
    flags = {word for word in words if word in _FLAGS}
    return name.lstrip("~"), flags | ({"not"} if name.startswith("~") else set())


@cache
def wordings() -> Wordings:
    """Give what each wording means, by its first stem, the longest first."""
    keys: dict[tuple[str, ...], set[str]] = defaultdict(set)
    flags: dict[tuple[str, ...], set[str]] = defaultdict(set)
    classes: dict[str, set[str]] = defaultdict(set)
    for head, phrases in _lines("paraphrases.txt"):
        name, marks = _head(head)
        for phrase in map(stems, phrases):
            if phrase:
                keys[phrase].add(f"={name}")
                flags[phrase] |= marks
    for head, members in _lines("classes.txt"):
        name, marks = _head(head)
        label = name + ("!" if "one" in marks else "?" if "condition" in marks else "")
        for written in members:
            member = stems(written)
            if member not in keys:
                keys[member].add(" ".join(member))
            for key in keys[member] | {f"={written}"}:
                classes[key].add(label)
    table: Wordings = defaultdict(list)
    for phrase, names in keys.items():
        of = frozenset(label for key in names for label in classes.get(key, ()))
        table[phrase[0]].append((phrase, Entry(frozenset(names), frozenset(flags[phrase]), of)))
    for entries in table.values():
        entries.sort(key=lambda entry: -len(entry[0]))
    return dict(table)


Followed = dict[str, list[tuple[tuple[str, ...], Entry]]]


@cache
def openings() -> dict[str, tuple[Entry | None, Followed]]:
    """Give by a first stem what it means alone, and the longer wordings by their second stem, the longest first."""
    table: dict[str, tuple[Entry | None, Followed]] = {}
    for first, entries in wordings().items():
        alone: Entry | None = None
        followed: Followed = {}
        for phrase, entry in entries:
            if len(phrase) == 1:
                alone = entry
            else:
                followed.setdefault(phrase[1], []).append((phrase, entry))
        table[first] = (alone, followed)
    return table


@cache
def fillers() -> dict[str, frozenset[str]]:
    """Give the words without content, by language and kind."""
    found: dict[str, frozenset[str]] = {}
    for head, body in _lines("fillers.txt"):
        words = " ".join(body).split()
        found[head[0]] = frozenset(analyze.fold(word) for word in words)
    return found


def foreign(words: Sequence[str]) -> frozenset[str]:
    """Give the words without content of the language that a text is in; none for English."""
    table = fillers()
    counts = {language: sum(map(table[language].__contains__, words)) for language in _LANGUAGES}
    best = max(counts.values())
    if not best or best <= sum(map(table["empty"].__contains__, words)):
        return _NONE
    return frozenset().union(*(table[language] for language, count in counts.items() if count == best))


@cache
def weak_words() -> frozenset[str]:
    """Give the stems of words that say little beside names and values."""
    return frozenset(map(stem, fillers()["weak"]))
