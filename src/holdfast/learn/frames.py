"""Whether two texts are one sentence of a relation that has one value, with another value: lives in Berlin, in Lisbon.

The relations stand in `changes.txt`: `frame` are words that the value follows, `attr` nouns of which there is one value.
All other words have to be the same, so that nothing else can make them two things.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import resources

from holdfast.learn.apart import PAST_LIFE
from holdfast.learn.difference import Difference, alike
from holdfast.learn.lexicon import stem, stems
from holdfast.learn.pairing import TIMED
from holdfast.learn.slot import LINKS, MANY, Slot, slot_of
from holdfast.learn.statement import Item, Statement

_BE = frozenset("is are am ist est es è é at".split()) - {"at"}
_AROUND = frozenset("usually normally always on at um am le el on the".split())
_PERSON = frozenset("i user he she they".split())
_PEOPLE = frozenset("friend friends colleague colleagues member members".split())
_SHORTENED = {"can't": "can", "won't": "will"}
_SKIPPED = frozenset("not never do does did the a an any some now . , anymore longer".split())
_SEVERAL = frozenset("some one another".split())
_SOME = frozenset("a an some one another any many most".split())
_NOUNS = frozenset(
    "dr mr mrs ms prof fc platform gate room floor port version v seat".split()
)  # before a value
_PLANS = frozenset("plan tier package subscription".split())
_CHOSEN = frozenset("prefer prefers want wants use uses".split())
_OF_ONE = frozenset({"package manager", "test runner"})
_ONE_FOR_ALL = frozenset(
    {"tracker", "bundler", "package manager", "ci", "forge", "cloud", "orchestration", "version control"}
)
_LISTS = frozenset(
    "skills allergies hobbies languages notes likes dislikes tags topics note todo task reminder tip fact allergy hobby skill like dislike bug issue idea example see rule step question".split()
)
_FEW, _MOST_WORDS = 4, 7
_OLDEST = 120


@cache
def _table(kind: str) -> frozenset[tuple[str, ...]]:
    lines = (resources.files("holdfast.learn") / "changes.txt").read_text("utf-8").splitlines()
    written = [
        part for line in lines if line.startswith(kind + ":") for part in line.partition(":")[2].split(",")
    ]
    return frozenset(stems(part) for part in written if part.strip())


@lru_cache(maxsize=4096)
def _ends_in(words: tuple[str, ...], kind: str) -> bool:
    stemmed = tuple(map(stem, words))
    return any(stemmed[start:] in _table(kind) for start in range(max(0, len(stemmed) - 4), len(stemmed)))


def is_denied(old: Statement, new: Statement) -> bool:
    """Say whether one text is the other one with a denial: it is covered by tests, it is not covered by tests."""
    (mine, denies), (theirs, denied) = _affirmed(old.words), _affirmed(new.words)
    return mine == theirs and denies != denied and len(mine) > 1 and not (old.past or new.past)


def _affirmed(words: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
    """Give the words without what denies them, and how often they are denied."""
    found, denials = [], 0
    for word in words:
        short = word.endswith("n't")
        base = _SHORTENED.get(word, word[:-3]) if short else word
        denials += short or word in ("not", "never")
        if base not in _SKIPPED:
            found.append(stem(base))
    return tuple(found), denials


def framed(old: Statement, new: Statement, parts: Difference) -> bool:
    """Say whether the new text gives another value of a relation that has one, in the words of the old text."""
    if (old.plan, old.past) != (new.plan, new.past) or old.past or old.words == new.words:
        return False
    slot = slot_of(old, new, least=1)
    if slot is None or not MANY.isdisjoint(slot.before) or old.words[0] in _SOME:
        return False
    one, other = _values(slot.old, parts.old), _values(slot.new, parts.new)
    if not one or not other or any(word in LINKS for word, _ in slot.old + slot.new):
        return False
    if any(a.negated != b.negated for a in one for b in other) or not _are_of_a_kind(one[0], other[0]):
        return False
    if one[0].kind not in TIMED and any(i.kind in TIMED for i in one + other) and one[0].kind != "number":
        return False
    tail = max(place for _, place in slot.old)
    if any(i.kind in TIMED or i.conditional for i in old.items if i.place > tail):
        return False
    return _is_relation(slot, one[0], other[0]) or _is_key(slot, old, new)


def _is_relation(slot: Slot, one: Item, other: Item) -> bool:
    before = slot.before[: len(slot.before) - (slot.before[-1] in _NOUNS)]
    if not before or not PAST_LIFE.isdisjoint(before):
        return False
    label = alike(one, other)
    if _ends_in(before, "frame") or (before[-1] == "on" and slot.after[:1] and slot.after[0] in _PLANS):
        return True
    if before[-1] in _CHOSEN and label and (label.endswith("!") or label in _OF_ONE) and len(before) < _FEW:
        return True
    verb = max((n for n, word in enumerate(before) if word in _BE), default=0)
    subject, kept = before[:verb], before[verb + 1 :]
    if not subject or len(subject) > _MOST_WORDS:
        return False
    person = subject[-1] in _PERSON or (len(subject) == 1 and one.classes == other.classes)
    if one.kind == other.kind == "number" and subject[-1] in _PERSON and not kept:
        return not (one.unit or other.unit) and one.text.isdigit() and int(one.text) < _OLDEST
    if one.kind in TIMED:
        return subject[-1] not in _PERSON and _AROUND.issuperset(kept) and not subject[-1].endswith("s")
    if kept:
        return False
    if person and "profession!" in one.classes & other.classes:
        return True
    named = subject[1:2] == ("of",) and _ends_in(subject[:1], "attr")
    return named or _ends_in(subject, "attr")


def _is_key(slot: Slot, old: Statement, new: Statement) -> bool:
    """Say whether the whole value of a key is another one: log level: info."""
    if not (old.keyed and new.keyed) or len(slot.before) > _MOST_WORDS:
        return False
    marks = [[n for n, word in enumerate(of.words) if word in ":="] for of in (old, new)]
    first = (slot.old[0][1], slot.new[0][1])
    at_key = all(mark and mark[0] == place - 1 for mark, place in zip(marks, first, strict=True))
    last = slot.before[-1]
    return at_key and last not in _LISTS and (not last.endswith("s") or last.endswith(("ss", "us", "is")))


def is_retooled(olds: list[Item], news: list[Item]) -> bool:
    """Say whether nothing but the tool differs, of a kind of which one purpose needs one: Jira, Linear for the issues."""
    return len(olds) == len(news) == 1 and alike(olds[0], news[0]) in _ONE_FOR_ALL


def is_unlike(old: Statement, new: Statement, parts: Difference) -> bool:
    """Say whether two texts that differ in one value have values of two types, or speak of some of several things."""
    slot = slot_of(old, new, least=1)
    if slot is None:
        return False
    if old.words[0] in _SEVERAL or not _PEOPLE.isdisjoint(slot.before):
        return True
    if old.keyed and new.keyed and slot.before[-1] in _LISTS:
        return True
    one, other = _values(slot.old, parts.old), _values(slot.new, parts.new)
    if len(one) != 1 or len(other) != 1 or one[0].kind != "concept" or other[0].kind != "concept":
        return _is_part_of_day(one, other)
    return bool(one[0].classes and other[0].classes) and not alike(one[0], other[0])


def _is_part_of_day(one: list[Item], other: list[Item]) -> bool:
    return any("daypart?" in i.classes for i in one) != any("daypart?" in i.classes for i in other)


def _are_of_a_kind(one: Item, other: Item) -> bool:
    """Say whether two values may be of one type, as far as their types are known."""
    exact = frozenset({"number", "version"}) | TIMED
    if one.kind in exact or other.kind in exact:
        return bool(alike(one, other))
    label = alike(one, other)
    conditional = any(
        c.endswith("?") and c not in ("tier?", "environment?") for i in (one, other) for c in i.classes
    )
    if one.classes and other.classes:
        return bool(label) and (not conditional or label in ("tier?", "environment?"))
    return not conditional


def _values(slot: tuple[tuple[str, int], ...], left: tuple[Item, ...]) -> list[Item]:
    places = {place for _, place in slot}
    return [item for item in left if item.place in places]
