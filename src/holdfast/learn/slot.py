"""Whether two texts are one sentence with another value in its last slot: the lamp is in the hall, it is in the attic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

from holdfast.learn import synonyms
from holdfast.learn.difference import alike
from holdfast.learn.statement import Item, Statement

_ARTICLES = frozenset("the a an".split())
_INDEFINITE = frozenset("a an some one any".split())
_SKIPPED = _ARTICLES | frozenset("now currently just . , ! ; :".split())
_BE = frozenset("is are".split())
_PLACES = frozenset("in at on by with under behind inside beside near to from".split())
_OWNERS = frozenset("the this our my their his her your".split())
MANY = frozenset(
    "friend friends colleague colleagues hobby hobbies interest interests skill skills pet pets language languages goal goals "
    "one some part example reason reasons option options member members ingredient symptom symptoms topic".split()
)
LINKS = frozenset("and or not no for of than when if".split())
_CHOSEN = frozenset("preferred favourite favorite default primary main current".split())
_NEGATIVE = ("un", "in", "im", "ir", "dis", "non", "non-")
_LONGEST = 3
_OPPOSITE, _OTHER = 0.35, 0.2


@dataclass(frozen=True, slots=True)
class Slot:
    """What precedes the value, the two values, and where these begin."""

    before: tuple[str, ...]
    old: tuple[tuple[str, int], ...]
    new: tuple[tuple[str, int], ...]
    after: tuple[str, ...] = ()


def _frame(statement: Statement) -> list[tuple[str, int]]:
    return [(word, place) for place, word in enumerate(statement.words) if word not in _SKIPPED]


def slot_of(old: Statement, new: Statement, least: int = 2) -> Slot | None:
    """Give where two texts differ, when they differ in one place only, after some words that they share."""
    mine, theirs = _frame(old), _frame(new)
    start, most = 0, min(len(mine), len(theirs))
    while start < most and mine[start][0] == theirs[start][0]:
        start += 1
    end = 0
    while end < most - start and mine[-1 - end][0] == theirs[-1 - end][0]:
        end += 1
    slots = mine[start : len(mine) - end], theirs[start : len(theirs) - end]
    if start < least or not all(0 < len(slot) <= _LONGEST for slot in slots):
        return None
    return Slot(
        tuple(word for word, _ in mine[:start]),
        tuple(slots[0]),
        tuple(slots[1]),
        tuple(word for word, _ in mine[len(mine) - end :]),
    )


def swapped(old: Statement, new: Statement) -> bool:
    """Say whether only a value differs that a thing has one of, or one word that is the opposite of the other."""
    slot = slot_of(old, new)
    if slot is None:
        return False
    verb = max((n for n, word in enumerate(slot.before) if word in _BE), default=0)
    if len(slot.old) == len(slot.new) == 1 and verb and are_opposites(slot.old[0][0], slot.new[0][0]):
        return True
    if not verb or not _is_one(slot.before[:verb], old.words) or len(slot.before) - verb > _LONGEST:
        return False
    kept = slot.before[verb + 1 :]
    if kept and kept[-1] in _PLACES:
        return not _is_listed(slot) and _are_places(slot, old, new)
    return not kept and _are_values(slot, old, new)


@cache
def _contraries() -> frozenset[frozenset[str]]:
    lines = (resources.files("holdfast.learn") / "changes.txt").read_text("utf-8").splitlines()
    written = (line[9:].split(",") for line in lines if line.startswith("contrary:"))
    return frozenset(frozenset(pair.split()) for pairs in written for pair in pairs)


def are_opposites(one: str, other: str) -> bool:
    """Say whether one word is the opposite of another one: locked, unlocked; hot, cold."""
    short, long = sorted((one, other), key=len)
    if any(long == prefix + short for prefix in _NEGATIVE):
        return True
    if frozenset({one, other}) in _contraries():
        return True
    relation = synonyms.relate(one, other)
    return relation.name == "opposite" and relation.score >= _OPPOSITE


def _is_one(subject: tuple[str, ...], words: tuple[str, ...]) -> bool:
    """Say whether a subject is one certain thing: the lamp, the user's airline."""
    definite = words[0] in _OWNERS or "'s" in subject
    return (
        definite and subject[-1] not in ("user", "'s") and MANY.isdisjoint(subject) and "not" not in subject
    )


def _is_listed(slot: Slot) -> bool:
    return any(word in LINKS or word in _PLACES for word, _ in slot.old + slot.new)


def _are_places(slot: Slot, old: Statement, new: Statement) -> bool:
    """Say whether two words after `is in` are of one kind: in the hall and in the attic, not in room 4 and in English."""
    one, other = _value(slot.old, old), _value(slot.new, new)
    if one is None or other is None or "number" in (one.kind, other.kind):
        return False
    article = [of.words[value[0][1] - 1] in _ARTICLES for of, value in ((old, slot.old), (new, slot.new))]
    if one.classes or other.classes:
        return bool(alike(one, other)) and one.kind == other.kind
    return one.kind == other.kind and article[0] == article[1] and one.kind in ("word", "name", "concept")


def _are_values(slot: Slot, old: Statement, new: Statement) -> bool:
    """Say whether two words after `is` are values of one kind, not two things that can be said of it."""
    one, other = _value(slot.old, old), _value(slot.new, new)
    if one is None or other is None or _is_listed(slot) or one.negated or other.negated:
        return False
    starts = [_first(slot.old, old), _first(slot.new, new)]
    if _is_attribute(slot, old) and all(starts):
        return True
    label = alike(one, other)
    if label:
        return (
            one.kind == other.kind and label not in ("time", "number", "amount") and not label.endswith("?")
        )
    if any(
        statement.words[value[0][1] - 1] in _INDEFINITE
        for statement, value in ((old, slot.old), (new, slot.new))
    ):
        return False
    if _is_chosen(slot):
        return True
    relation = synonyms.relate(slot.old[-1][0], slot.new[-1][0])
    return relation.name == "other" and relation.score >= _OTHER


def _first(slot: tuple[tuple[str, int], ...], statement: Statement) -> bool:
    """Say whether a value begins with a name."""
    return any(item.place == slot[0][1] and item.text[:1].isupper() for item in statement.items)


def _is_chosen(slot: Slot) -> bool:
    """Say whether the subject is the one that was chosen: the default font, the favourite dish."""
    return not _CHOSEN.isdisjoint(slot.before)


def _is_attribute(slot: Slot, statement: Statement) -> bool:
    """Say whether the word before `is` names an attribute that has one value."""
    last = next((i for i in reversed(statement.items) if i.place < slot.old[0][1] - 1), None)
    return last is not None and last.subject and "one" in last.flags


def _value(slot: tuple[tuple[str, int], ...], statement: Statement) -> Item | None:
    places = {place for _, place in slot}
    found = [item for item in statement.items if item.place in places]
    return found[-1] if found else None
