"""Two statements side by side: what can be asked about them before it is decided how they relate."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.dedup.alignment import Difference
from holdfast.dedup.lexicon import weak_words
from holdfast.dedup.statement_parser import Item, Statement

_SOFT = frozenset(
    "=favourite =prefer =default =set =use =status =take =like =have =size =count =people =place =expire =interval".split()
)
TIMED = frozenset({"time", "date", "weekday"})
STATES = frozenset(
    "=enabled =opened =works =available =done =merged =approved =required =allowed =supported =cancelled =confirmed "
    "=married =paid =retire =over =born =end =begin =sold".split()
)
# Relations that say little beside the things they relate: kept in, found in, shown.
_WEAK = frozenset(
    "=create =send =show =take =keep =located =location =place =reside =host =scheduled =price =pay =paid =have =use =name "
    "=job =type =prefer =favourite =want =contains =receive =put =supply =say =release =answer =origin =work =be "
    "=cause =because =find =interval =request =count =set =config =file =acquired =require =required =must =people".split()
) | {"=store data", "=find under"}
_PLACES = frozenset(
    {"=ci", "=remote", "=on site", "=full time", "=part time", "=office", "=room", "=student", "=online"}
)
# Of a person, these are relations of their own.
PERSONAL = frozenset({"=reside", "=job", "=work", "=origin"})


def is_relation(item: Item) -> bool:
    """Say whether an item is a relation, not a thing."""
    return bool(item.flags & {"verb", "one", "change"})


def is_weak(item: Item) -> bool:
    """Say whether an item says little beside names and values."""
    return bool(item.keys & _WEAK) or (item.kind == "word" and not item.keys.isdisjoint(weak_words()))


@dataclass(slots=True)
class Pairing:
    """An old and a new statement, their difference, and the pairs in it that carry content."""

    old: Statement
    new: Statement
    parts: Difference
    solid: list[tuple[Item, Item]]

    def is_reordered(self) -> bool:
        """Say whether two things of one type have changed places: Anna leads Ben, Ben leads Anna."""
        actors = [(a, b) for a, b in self.parts.both if self._acts(a, b)]
        gone, come = (
            [p for p in actors if p[0].subject > p[1].subject],
            [p for p in actors if p[0].subject < p[1].subject],
        )
        user = any("=user" in a.keys for a, _ in gone + come)
        acting = any("verb" in a.flags and not a.light for a, _ in self.parts.both)
        return bool(gone and come and (acting or not user)) or self._is_exchanged(actors)

    def _acts(self, one: Item, other: Item) -> bool:
        """Say whether an item may do or suffer something."""
        named = "name" in (one.kind, other.kind) or one.kind in ("number", "version", "id")
        return named or "=user" in one.keys or "city" in one.classes

    def _is_exchanged(self, actors: list[tuple[Item, Item]]) -> bool:
        """Say whether two values of one kind stand in another order, other than in a list."""
        kinds = ("number", "version", "id")
        return any(
            (a.place - c.place) * (b.place - d.place) < 0
            and ((a.kind == c.kind and a.kind in kinds) or "city" in a.classes & c.classes)
            for n, (a, b) in enumerate(actors)
            for c, d in actors[:n]
            if not {"and", "or", ",", "&"} & {a.before, b.before, c.before, d.before}
        )

    def has_one_value(self) -> bool:
        """Say whether they share a relation that has one value at a time."""
        ones = [
            a
            for a, b in self.solid
            if "one" in a.flags and "one" in b.flags and not a.keys <= _SOFT | STATES | _PLACES
        ]
        soft = [a for a, _ in self.solid if "one" in a.flags and a.keys <= _SOFT]
        return bool(ones) or (bool(soft) and len(self.solid) > len(soft))

    def has_many_values(self) -> bool:
        """Say whether they share a relation whose values stand side by side."""
        return any("many" in a.flags for a, _ in self.solid)

    def is_turned_round(self) -> bool:
        """Say whether one of them denies what the other says."""
        flips = [
            a
            for a, b in self.parts.both
            if a.negated != b.negated and not a.gone and not b.gone and not a.light
        ]
        others = sum(item.negated for item in (*self.parts.old, *self.parts.new) if not item.gone)
        return bool(flips) and (len(flips) + others) % 2 == 1
