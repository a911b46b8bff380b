"""The one place where two texts differ: what kind of value stands there, and whether its frame has one."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import cache

from holdfast.dedup.change_phrases import ends_in
from holdfast.dedup.lexicon import stems
from holdfast.dedup.parsed_text import ParsedText
from holdfast.text.fillers import stem
from holdfast.text.tables import headed_lists

Words = tuple[str, ...]
_ARTICLES = frozenset(
    "a an the ein eine einen der die das un una une el la le les il lo o um uma een de".split()
)
_THE = frozenset("the our my his her their der die das el la le il lo o de het".split())
_BE = frozenset("is are am be was were ist sind es est è é são is zijn 是".split())
_TYPES = ("switch", "ordinal", "number", "code", "name")
# Words at most of a wording before a value.
_LONGEST = 4


def slot_features(
    old: ParsedText, new: ParsedText, start: int, slots: tuple[Words, Words], alike: AbstractSet[str]
) -> dict[str, float]:
    """Return which values two texts have in the one place where they differ, and what stands beside it.

    `start` is the index of the first word of both slots, `alike` the classes of which both have a value.
    """
    end = start + len(slots[0])
    before, after = old.words[:start], old.words[end:]
    kind = _type(old, new, start, slots)
    rank = _ranked(before[-1:]) or _ranked(after[:1])
    newest = any(_has_phrase(words, "newest") for words in (before, after))
    tool = not _listed("tool").isdisjoint(alike)
    at_start = _ARTICLES.issuperset(before)
    verb_before, verb_after = not _BE.isdisjoint(before), not _BE.isdisjoint(after)
    is_the = at_start and not _BE.isdisjoint(after[:1]) and not _THE.isdisjoint(after[1:2])
    is_subject = at_start or (verb_after and not verb_before)
    wordings = _wordings(old, start)
    return wordings | {
        f"slot of {kind}": 1,
        "slot of rank": rank and not is_subject and kind in ("number", "ordinal"),
        "value of newest": newest and kind == "number" and (is_the or (verb_before and not after)),
        "state of rank": rank and verb_before and not is_subject and kind in ("number", "ordinal"),
        "slot of past": not _listed("past").isdisjoint((*before, *after)),
        "slot of newest": newest and kind in ("number", "code"),
        "slot of switch at end": kind == "switch" and not after,
        "slot of tool": tool,
        "slot of tool after use": tool and wordings["slot after use"],
        "slot before attribute": at_start and ends_in(new.stems_of(slice(-_LONGEST, None)), "attr"),
        "slot of name after frame": kind == "name" and ends_in(_unnamed(old, start), "frame"),
        "slot in name": kind == "name" and start > 1 and old.capital[start - 1],
        "slot of value": _is_key(old, start) and not after,
        "slot before is the": is_the,
        "slot at start": at_start,
        "slot at end": not after,
        "slot after is": bool(before) and before[-1] in _BE,
        "verb before slot": verb_before,
        "slot of subject": is_subject,
    }


def _wordings(text: ParsedText, start: int) -> dict[str, float]:
    """Return which of the listed wordings stand before a value."""
    bare = _bare(text.stems_of(slice(0, start)))
    has_article = start > 0 and text.words[start - 1] in _ARTICLES
    return {
        "slot after use": _ends(bare, "use"),
        "slot after single": _ends(bare, "single"),
        "slot after many": _ends(bare, "multi"),
        "slot after article and frame": has_article and ends_in(bare, "frame"),
    }


def is_exchanged(one: Words, other: Words) -> bool:
    """Return whether two things that a preference relates have changed places: tabs over spaces."""
    return (
        len(one) == len(other)
        and one != other
        and sorted(one) == sorted(other)
        and _has_phrase(one, "between")
    )


def _type(old: ParsedText, new: ParsedText, start: int, slots: tuple[Words, Words]) -> str:
    """Return the type of two values, "other" when they have none in common."""
    found = [_types(text, start, slot) for text, slot in ((old, slots[0]), (new, slots[1]))]
    if frozenset((" ".join(slots[0]), " ".join(slots[1]))) in _switches():
        return "switch"
    return next((name for name in _TYPES if name in found[0] and name in found[1]), "other")


def _types(text: ParsedText, start: int, slot: Words) -> set[str]:
    digits = [word[0].isdigit() for word in slot]
    found = set[str]()
    if all(word in _words("ordinal") for word in slot):
        found.add("ordinal")
    if digits[0]:
        rest = slot[1:]
        found.add("ordinal" if rest and rest[0] in _words("suffix") else "code" if rest else "number")
    if len(slot) > 1 and any(digits):
        found.add("code")
    if all(text.capital[start : start + len(slot)]):
        found.add("name")
    return found


def _ranked(words: Words) -> bool:
    """Return whether a word next to a value is one for a rank; the suffix of an ordinal may stand between."""
    return any(stem(word) in _words("rank") or word in _words("rank") for word in words)


def _bare(words: Words) -> Words:
    """Return the words before a value without the articles that end them."""
    while words and words[-1] in _ARTICLES:
        words = words[:-1]
    return words


def _unnamed(text: ParsedText, start: int) -> Words:
    """Return the stems before a name, without those of its words that both texts share."""
    while start > 1 and text.capital[start - 1]:
        start -= 1
    return text.stems_of(slice(0, start))


def _is_key(text: ParsedText, start: int) -> bool:
    """Return whether a value begins here, after a colon or an equals sign."""
    tokens = text.statement.words
    return any(mark in tokens and tokens.index(mark) == start for mark in ":=")


def _ends(words: Words, name: str) -> bool:
    phrases = _phrases(name)
    return any(words[first:] in phrases for first in range(max(0, len(words) - _LONGEST), len(words)))


def _has_phrase(words: Words, name: str) -> bool:
    stemmed = tuple(map(stem, words))
    phrases = _phrases(name)
    return any(
        stemmed[first : first + length] in phrases for first in range(len(stemmed)) for length in (1, 2)
    )


@cache
def _listed(name: str) -> frozenset[str]:
    found = headed_lists("holdfast.dedup", "slots.txt")
    return frozenset(word for head, body in found if head == [name] for word in body)


@cache
def _words(name: str) -> frozenset[str]:
    return _listed(name) | frozenset(map(stem, _listed(name)))


@cache
def _phrases(name: str) -> frozenset[Words]:
    return frozenset(map(stems, _listed(name)))


@cache
def _switches() -> frozenset[frozenset[str]]:
    return frozenset(frozenset(pair.split()) for pair in _listed("switch"))
