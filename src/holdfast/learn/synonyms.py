"""What words mean and share: senses, what stands above them, opposites, derived words. From WordNet, read on first use.

`scripts/make_synonyms.py` makes the file and describes its form; `wordnet.LICENSE.txt` is its licence. The text stays
one block of bytes, and a word is found in it by bisection: forty thousand words as a dictionary would take ten times
the memory, and a process that never compares would have paid for it.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple

import numpy as np

_NONE: frozenset[str] = frozenset()
# Things of these domains that stand side by side are alternatives: animals, food, persons, plants, substances, times …
_CONCRETE = frozenset({5, 6, 8, 13, 15, 18, 20, 27, 28})
_AGAINST = ("un", "in", "im", "non", "dis")
_RARE = 0.12  # a sense that is meant less often says nothing about two words alone


class Sense(NamedTuple):
    """A sense of a word: its number, and how often the word is meant so."""

    number: int
    share: float


class Meaning(NamedTuple):
    """What is known of a sense: noun, verb, adjective or adverb, its domain, the senses above, the opposites."""

    kind: str
    domain: int
    above: tuple[int, ...]
    against: tuple[int, ...]


class Relation(NamedTuple):
    """How one word relates to another: same, derived, similar, wider, narrower, other, opposite or nothing; how surely."""

    name: str
    score: float


NOTHING = Relation("", 0.0)


@dataclass(frozen=True, slots=True)
class _Table:
    text: bytes
    ends: np.ndarray[tuple[int], np.dtype[np.int64]]
    words: int  # how many lines are words; an empty line follows, and the senses

    def line(self, number: int) -> str:
        start = int(self.ends[number - 1]) + 1 if number else 0
        return self.text[start : int(self.ends[number])].decode()

    def find(self, word: str) -> str:
        sought, low, high = word.encode(), 0, self.words
        while low < high:
            middle = (low + high) // 2
            start = int(self.ends[middle - 1]) + 1 if middle else 0
            key = self.text[start : self.text.index(b"\t", start)]
            if key == sought:
                return self.line(middle)
            low, high = (middle + 1, high) if key < sought else (low, middle)
        return ""


@cache
def _table() -> _Table:
    packed = (resources.files("holdfast.learn") / "synonyms.txt.gz").read_bytes()
    text = gzip.decompress(packed) + b"\n"
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    start = text.index(b"\n\n") + 1
    return _Table(text, ends, int(np.searchsorted(ends, start)))


@lru_cache(maxsize=16_384)
def senses(word: str) -> tuple[Sense, ...]:
    """Give the senses of a word in its normal form, the most usual first; none of a word that is not known."""
    line = _table().find(word)
    if not line:
        return ()
    listed = line.split("\t")[1].split()
    return tuple(
        Sense(int(a, 16), (int(b) + 0.5) / 10) for a, _, b in (part.partition("+") for part in listed)
    )


@lru_cache(maxsize=16_384)
def derived(word: str) -> frozenset[str]:
    """Give the words that are derived from a word, or it from them."""
    line = _table().find(word)
    return frozenset(filter(None, line.split("\t")[2].split(","))) if line else _NONE


@lru_cache(maxsize=16_384)
def meaning(number: int) -> Meaning:
    """Give what is known of a sense."""
    table = _table()
    head, _, against = table.line(table.words + 1 + number).partition("!")
    first, _, above = head.partition(",")
    return Meaning(
        first[0],
        int(first[1:], 16),
        tuple(int(part, 16) for part in above.split(",") if part),
        tuple(int(part, 16) for part in against.split(",") if part),
    )


@lru_cache(maxsize=16_384)
def kind(word: str) -> str:
    """Give the part of speech that a word is used as most: n, v, a, r; nothing for a word that is not known."""
    of = senses(word)
    return meaning(of[0].number).kind if of else ""


@lru_cache(maxsize=65_536)
def relate(one: str, other: str) -> Relation:
    """Say how one word relates to another; `wider` when the other one names what is above the first.

    >>> relate("cello", "cellist").name, relate("enabl", "disabl").name, relate("tea", "coffe").name
    ('derived', 'opposite', 'other')
    """
    if one == other:
        return Relation("same", 1.0)
    if any(one == prefix + other or other == prefix + one for prefix in _AGAINST):
        return Relation("opposite", 0.9)
    mine, yours = senses(one), senses(other)
    if not mine or not yours:
        return NOTHING
    against = _opposite(mine, yours)
    equal = max((a.share * b.share for a in mine for b in yours if a.number == b.number), default=0.0) ** 0.5
    if against and against >= equal:
        return Relation("opposite", against)
    family = 0.9 if other in derived(one) or one in derived(other) else _family(one, other)
    if equal >= 0.3 or (equal and not family):
        return Relation("same", max(equal, family))
    if family:
        return Relation("derived", family)
    return _by_height(mine, yours)


def _opposite(mine: tuple[Sense, ...], yours: tuple[Sense, ...]) -> float:
    best = 0.0
    for a in mine:
        if a.share >= _RARE:
            first = meaning(a.number)
            heads = {a.number, *(first.above if first.kind == "a" else ())}
            against = {t for h in heads for t in meaning(h).against}
            for b in yours if against else ():
                if b.share >= _RARE:
                    second = meaning(b.number)
                    if not against.isdisjoint({b.number, *(second.above if second.kind == "a" else ())}):
                        best = max(best, (a.share * b.share) ** 0.5)
    return best


def _family(one: str, other: str) -> float:
    """Say how surely two words are of one family by way of a third: destroy and demolition."""
    first, second = derived(one), derived(other)
    if first & second:
        return 0.7
    if (not first and not second) or " " in one + other:
        return 0.0
    usual = ({s.number for s in senses(w) if s.share > 0.25} for w in (one, other))
    mine, yours = usual
    for words, numbers in ((first, yours), (second, mine)):
        if any(s.number in numbers and s.share > 0.25 for word in words for s in senses(word)):
            return 0.6
    return 0.0


def _above(number: int, height: int) -> dict[int, int]:
    found, level = {number: 0}, [number]
    for step in range(1, height + 1):
        level = [t for n in level for t in meaning(n).above if t not in found]
        found.update(dict.fromkeys(level, step))
    return found


def _by_height(mine: tuple[Sense, ...], yours: tuple[Sense, ...]) -> Relation:
    """Compare what stands above two words: the nearest pair of usual senses decides."""
    best = NOTHING
    for a in mine:
        for b in yours:
            share = (a.share * b.share) ** 0.5
            if min(a.share, b.share) < _RARE or meaning(a.number).kind != meaning(b.number).kind:
                continue
            found = _pair(a.number, b.number)
            if found.score * share > best.score:
                best = Relation(found.name, found.score * share)
    return best


@lru_cache(maxsize=65_536)
def _pair(a: int, b: int) -> Relation:
    first, second = _above(a, 3), _above(b, 3)
    common = first.keys() & second.keys()
    if not common:
        return NOTHING
    top = min(common, key=lambda n: (first[n] + second[n], n))
    up, down = first[top], second[top]
    what = meaning(a)
    if what.kind in "ar":
        return Relation("similar", 0.8 if up + down <= 2 else 0.0)
    if not down:
        return Relation("wider", (1.0, 0.8, 0.7, 0.5)[up])
    if not up:
        return Relation("narrower", (1.0, 0.7, 0.5, 0.3)[down])
    if what.kind == "n" and what.domain in _CONCRETE:
        return Relation("other", 0.9 if up + down <= 2 else 0.6 if up + down <= 4 else 0.3)
    return NOTHING
