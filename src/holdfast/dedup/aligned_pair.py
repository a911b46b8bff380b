"""Properties of two aligned statements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from holdfast.dedup.alignment import Alignment, Pair
from holdfast.dedup.statement import ContentItem
from holdfast.text.fillers import weak_words

_ORDERED = ("number", "version", "id")

_SOFT = frozenset(
    "=favourite =prefer =default =set =use =status =take =like =have =size =count =people =place =expire "
    "=interval".split()
)
TIMED = frozenset({"time", "date", "weekday"})
STATES = frozenset(
    "=enabled =opened =works =available =done =merged =approved =required =allowed =supported =cancelled "
    "=confirmed =married =paid =retire =over =born =end =begin =sold".split()
)
# Relations that say little beside the things they relate: stored in, found in, shown.
_WEAK = frozenset(
    "=create =send =show =take =keep =located =location =place =reside =host =scheduled =price =pay "
    "=paid =have =use =name =job =type =prefer =favourite =want =contains =receive =put =supply =say "
    "=release =answer =origin =work =be =cause =because =find =interval =request =count =set =config "
    "=file =acquired =require =required =must =people".split()
) | {"=store data", "=find under"}
_PLACES = frozenset(
    {"=ci", "=remote", "=on site", "=full time", "=part time", "=office", "=room", "=student", "=online"}
)
# Relations of a person.
PERSONAL = frozenset({"=reside", "=job", "=work", "=origin"})


def is_relation(item: ContentItem) -> bool:
    """Return whether an item is a relation, not a thing."""
    return bool(item.flags & {"verb", "one", "change"})


def is_weak(item: ContentItem) -> bool:
    """Return whether an item says little beside names and values."""
    return bool(item.keys & _WEAK) or (item.kind == "word" and not item.keys.isdisjoint(weak_words()))


def is_reordered(both: Sequence[Pair]) -> bool:
    """Return whether two things of one type have changed places: Anna leads Ben, Ben leads Anna."""
    actors = [(a, b) for a, b in both if _acts(a, b)]
    gone = [a for a, b in actors if a.subject > b.subject]
    come = [a for a, b in actors if a.subject < b.subject]
    has_user = any("=user" in a.keys for a in gone + come)
    has_verb = any("verb" in a.flags and not a.light for a, _ in both)
    return bool(gone and come and (has_verb or not has_user)) or _is_exchanged(actors)


def _acts(one: ContentItem, other: ContentItem) -> bool:
    """Return whether an item may do or suffer something."""
    named = "name" in (one.kind, other.kind) or one.kind in _ORDERED
    return named or "=user" in one.keys or "city" in one.classes


def _is_exchanged(actors: Sequence[Pair]) -> bool:
    """Return whether two values of one kind stand in another order, other than in a list."""
    return any(
        (a.place - c.place) * (b.place - d.place) < 0
        and ((a.kind == c.kind and a.kind in _ORDERED) or "city" in a.classes & c.classes)
        for (a, b), (c, d) in combinations(actors, 2)
        if not {"and", "or", ",", "&"} & {a.before, b.before, c.before, d.before}
    )


def has_one_value(solid: Sequence[Pair]) -> bool:
    """Return whether they share a relation that has one value at a time."""
    ones = [(a, b) for a, b in solid if "one" in a.flags]
    soft = sum(a.keys <= _SOFT for a, _ in ones)
    weak = _SOFT | STATES | _PLACES
    return any("one" in b.flags and not a.keys <= weak for a, b in ones) or 0 < soft < len(solid)


def is_turned_round(parts: Alignment) -> bool:
    """Return whether one of them denies what the other says."""
    flips = sum(a.negated != b.negated and not (a.gone or b.gone or a.light) for a, b in parts.both)
    others = sum(item.negated for item in (*parts.old, *parts.new) if not item.gone)
    return flips > 0 and (flips + others) % 2 == 1
