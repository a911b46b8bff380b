"""Features of the only place where two texts differ: the type of its values, and the words around it."""

from __future__ import annotations

from functools import cache

from holdfast.dedup.lexicon import stems
from holdfast.dedup.parsed_text import FUNCTION, ParsedText
from holdfast.text import analyze
from holdfast.text.fillers import stem
from holdfast.text.tables import headed_lists

Words = tuple[str, ...]
_ARTICLES = frozenset(
    "a an the ein eine einen der die das un una une el la le les il lo o um uma een de".split()
)
_THE = frozenset("the our my his her their der die das el la le il lo o de het".split())
_BE = frozenset("is are am be was were ist sind es est è é são is zijn 是".split())
_IS = frozenset("is are am".split())
_LINKING = frozenset("is are am be the a an now current to at on in of".split())
_SOME = frozenset("a an some one another any many most several".split())
# Words at most of a key.
_KEY = 3
_TYPES = ("switch", "ordinal", "number", "code", "name")
# Words at most of a wording before a value.
_LONGEST = 4


def slot_features(
    old: ParsedText, new: ParsedText, start: int, slots: tuple[Words, Words]
) -> dict[str, float]:
    """Return the features of the only place where two texts differ, and of the words beside it.

    `start` is the index of the first word of both slots.
    """
    before, after = old.words[:start], old.words[start + len(slots[0]) :]
    # As the tables have them, without accents.
    stemmed = tuple(stem(analyze.fold(word)) for word in before)
    bare = tuple(word for word in stemmed if word not in _LINKING)
    kind = _type(old, new, start, slots)
    is_counted = kind in ("number", "ordinal")
    has_rank = is_counted and (_names_rank(before[-1:]) or _names_rank(after[:1]))
    newest = any(_has_phrase(words, "newest") for words in (before, after))
    at_start = _ARTICLES.issuperset(before)
    verb_before, verb_after = not _BE.isdisjoint(before), not _BE.isdisjoint(after)
    is_the = at_start and not _BE.isdisjoint(after[:1]) and not _THE.isdisjoint(after[1:2])
    is_subject = at_start or (verb_after and not verb_before)
    return _wordings(stemmed) | {
        f"slot of {kind}": 1,
        "slot after function word": start > 0 and before[-1] in FUNCTION,
        "slot of attribute": _is_value(old, start)
        and (_ends(bare, "attr") or (old.words[1:2] == ("of",) and _ends(bare[:1], "attr"))),
        "slot beside many": any(_ends((word,), "many") for word in stemmed),
        "slot of some": old.words[0] in _SOME,
        "slot capitals": all(
            any(text.capital[start : start + len(slot)]) for text, slot in zip((old, new), slots, strict=True)
        ),
        "slot of rank": has_rank and not is_subject,
        "value of newest": newest and kind == "number" and (is_the or (verb_before and not after)),
        "state of rank": has_rank and verb_before and not is_subject,
        "slot of past": not _list_words("past").isdisjoint((*before, *after)),
        "slot of switch at end": kind == "switch" and not after,
        "slot of value": _is_key(old, start) and not after,
        "slot at start": at_start,
        "slot at end": not after,
        "slot after is": bool(before) and before[-1] in _BE,
        "verb before slot": verb_before,
        "slot of subject": is_subject,
    }


def _wordings(stemmed: Words) -> dict[str, float]:
    """Return the features of the listed wordings before a value."""
    bare = stemmed
    while bare and bare[-1] in _ARTICLES:
        bare = bare[:-1]
    return {
        "slot after frame": _ends(stemmed, "frame"),
        "slot after article and frame": len(bare) < len(stemmed) and _ends(bare, "frame"),
        "slot after use": _ends(bare, "use"),
        "slot after single": _ends(bare, "single"),
        "slot after many": _ends(bare, "multi"),
    }


def _is_value(text: ParsedText, start: int) -> bool:
    """Return whether the value of something starts here: the owner is Ana, owner: Ana."""
    return text.words[start - 1] in _IS or ("keyed" in text.statement.traits and start <= _KEY)


def is_exchanged(old: Words, new: Words) -> bool:
    """Return whether a preference has its two things exchanged: tabs over spaces."""
    return len(old) == len(new) and old != new and sorted(old) == sorted(new) and _has_phrase(old, "between")


def _type(old: ParsedText, new: ParsedText, start: int, slots: tuple[Words, Words]) -> str:
    """Return the type of two values, "other" when they have none in common."""
    types = [_types(text, start, slot) for text, slot in ((old, slots[0]), (new, slots[1]))]
    if any({*map(" ".join, slots)} == {*pair.split()} for pair in _list_words("switch")):
        return "switch"
    return next((name for name in _TYPES if name in types[0] and name in types[1]), "other")


def _types(text: ParsedText, start: int, slot: Words) -> set[str]:
    digits = [word[0].isdigit() for word in slot]
    types = set[str]()
    if all(word in _words("ordinal") for word in slot):
        types.add("ordinal")
    if digits[0]:
        rest = slot[1:]
        types.add("ordinal" if rest and rest[0] in _words("suffix") else "code" if rest else "number")
    if len(slot) > 1 and any(digits):
        types.add("code")
    if all(text.capital[start : start + len(slot)]):
        types.add("name")
    return types


def _names_rank(words: Words) -> bool:
    """Return whether a word next to a value is one for a rank; the suffix of an ordinal may stand between."""
    return any(stem(word) in _words("rank") or word in _words("rank") for word in words)


def _is_key(text: ParsedText, start: int) -> bool:
    """Return whether a value begins here, after a colon or an equals sign."""
    tokens = text.statement.words
    return any(mark in tokens and tokens.index(mark) == start for mark in ":=")


def _ends(words: Words, name: str) -> bool:
    """Return whether stems end in a listed wording."""
    phrases = _phrases(name)
    return any(words[first:] in phrases for first in range(max(0, len(words) - _LONGEST), len(words)))


def _has_phrase(words: Words, name: str) -> bool:
    stemmed = tuple(map(stem, words))
    phrases = _phrases(name)
    return any(
        stemmed[first : first + length] in phrases for first in range(len(stemmed)) for length in (1, 2)
    )


@cache
def _list_words(name: str) -> frozenset[str]:
    lists = headed_lists("holdfast.dedup", "slots.txt")
    return frozenset(word for head, body in lists if head == [name] for word in body)


@cache
def _words(name: str) -> frozenset[str]:
    return _list_words(name) | frozenset(map(stem, _list_words(name)))


@cache
def _phrases(name: str) -> frozenset[Words]:
    return frozenset(map(stems, _list_words(name)))
