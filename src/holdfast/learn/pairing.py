"""Two statements side by side: what can be asked about them before it is decided how they relate."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.learn.difference import Difference, alike
from holdfast.learn.lexicon import weak_words
from holdfast.learn.statement import Item, Statement

SOFT = frozenset(
    "=favourite =prefer =default =set =use =status =take =like =have =size =count =people =place =expire =interval".split()
)
TIMED = frozenset({"time", "date", "weekday"})
ANCHORS = frozenset({"number", "version", "time", "date", "weekday", "id", "name"})
STATES = frozenset(
    "=enabled =opened =works =available =done =merged =approved =required =allowed =supported =cancelled =confirmed "
    "=married =paid =retire =over =born =end =begin =sold".split()
)
ENDINGS = frozenset({"=cancelled", "=over", "=sold"})
# Relations that say little beside the things they relate: kept in, found in, shown.
WEAK = frozenset(
    "=create =send =show =take =keep =located =location =place =reside =host =scheduled =price =pay =paid =have =use =name "
    "=job =type =prefer =favourite =want =contains =receive =put =supply =say =release =answer =origin =work =be "
    "=cause =because =find =interval =request =count =set =config =file =acquired =require =required =must =people".split()
) | {"=store data", "=find under"}
EXCLUSIVE = frozenset({"marital!", "diet!"})
SWITCHED = frozenset(
    {"state!", "editor!", "browser!", "shell!", "os!", "presence!", "hours!", "indentation!"}
)
PLACES = frozenset(
    {"=ci", "=remote", "=on site", "=full time", "=part time", "=office", "=room", "=student", "=online"}
)
# Of a person, these are relations of their own.
PERSONAL = frozenset({"=reside", "=job", "=work", "=origin"})
FACETS = ("component", "direction", "device", "side")
EVENTS = frozenset("=visit =purchase =watch =read =pay =eat =receive =graduate".split())


def is_relation(item: Item) -> bool:
    """Say whether an item is a relation, not a thing."""
    return bool(item.flags & {"verb", "one", "change"})


def is_weak(item: Item) -> bool:
    """Say whether an item says little beside names and values."""
    return bool(item.keys & WEAK) or (item.kind == "word" and not item.keys.isdisjoint(weak_words()))


@dataclass(slots=True)
class Pairing:
    """An old and a new statement, their difference, and the pairs in it that carry content."""

    old: Statement
    new: Statement
    parts: Difference
    solid: list[tuple[Item, Item]]

    def denies(self, old: Item, new: Item) -> bool:
        """Say whether the new text denies what the old one names: REST, not GraphQL."""
        return (
            new.negated
            and not old.negated
            and (new.kind in ANCHORS or bool(new.classes))
            and new.before == "not"
        )

    def is_over(self, olds: list[Item], news: list[Item]) -> bool:
        """Say whether the new text only adds that the thing is over."""
        ended = [i for i in news if i.keys & ENDINGS]
        rest = [i for i in news if i not in ended and (i.kind not in TIMED or any(alike(a, i) for a in olds))]
        nouns = [a for a, _ in self.solid if not is_relation(a)]
        return bool(ended and nouns) and not rest and not any(i.subject for i in olds)

    def is_reordered(self) -> bool:
        """Say whether two things of one type have changed places: Anna leads Ben, Ben leads Anna."""
        actors = [(a, b) for a, b in self.parts.both if self.acts(a, b)]
        gone, come = (
            [p for p in actors if p[0].subject > p[1].subject],
            [p for p in actors if p[0].subject < p[1].subject],
        )
        user = any("=user" in a.keys for a, _ in gone + come)
        acting = any("verb" in a.flags and not a.light for a, _ in self.parts.both)
        return bool(gone and come and (acting or not user)) or self.is_exchanged(actors)

    def acts(self, one: Item, other: Item) -> bool:
        """Say whether an item may do or suffer something."""
        named = "name" in (one.kind, other.kind) or one.kind in ("number", "version", "id")
        return named or "=user" in one.keys or "city" in one.classes

    def is_exchanged(self, actors: list[tuple[Item, Item]]) -> bool:
        """Say whether two values of one kind stand in another order, other than in a list."""
        kinds = ("number", "version", "id")
        return any(
            (a.place - c.place) * (b.place - d.place) < 0
            and ((a.kind == c.kind and a.kind in kinds) or "city" in a.classes & c.classes)
            for n, (a, b) in enumerate(actors)
            for c, d in actors[:n]
            if not {"and", "or", ",", "&"} & {a.before, b.before, c.before, d.before}
        )

    def is_pinned(self) -> bool:
        """Say whether the values in both leave little doubt that they speak of one thing."""
        values = sum(a.kind in ANCHORS or b.kind in ANCHORS for a, b in self.solid)
        return values >= 2 or (values == 1 and len(self.solid) > 2)

    def is_implied(self, item: Item) -> bool:
        """Say whether a value in both tells what an item names: PostgreSQL the database, 1.28 the version."""
        if "=version" in item.keys:
            return any(a.kind in ("number", "version") for a, _ in self.solid)
        labels = {label.rstrip("!?") for a, _ in self.solid for label in a.classes}
        return any(key[1:] in labels for key in item.keys if key.startswith("="))

    def identifies(self, item: Item, of: Statement) -> bool:
        """Say whether an item tells of which thing, or under which condition."""
        return item.subject or self.is_condition(item) or ("kin" in item.classes and of is self.new)

    def has_another_subject(self, old_left: list[Item], new_left: list[Item]) -> bool:
        """Say whether the two speak of different persons or things."""
        names = ("name", "first", "id")

        def subjects(left: list[Item]) -> list[Item]:
            return [i for i in left if i.subject and not i.conditional and i.kind != "time"]

        a, b = subjects(old_left), subjects(new_left)
        for mine, theirs in ((a, self.parts.new), (b, self.parts.old)):
            if any(i.kind in names for i in mine) and any("=user" in i.keys for i in theirs):
                return True
        if any(i.kind in names or "kin" in i.classes for i in a + b):
            inverted = self.has_one_value() and len(a) + len(b) == 1
            return not inverted or any("kin" in i.classes for i in a + b)
        return bool(a and b) and not (
            len(a) == len(b) == 1 and self.has_one_value() and bool(alike(a[0], b[0]))
        )

    def has_one_value(self) -> bool:
        """Say whether they share a relation that has one value at a time."""
        ones = [
            a
            for a, b in self.solid
            if "one" in a.flags and "one" in b.flags and not a.keys <= SOFT | STATES | PLACES
        ]
        soft = [a for a, _ in self.solid if "one" in a.flags and a.keys <= SOFT]
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

    def tells(self, item: Item) -> bool:
        """Say whether an item alone can make another statement."""
        if item.keys & WEAK:
            return False
        classed = any(not label.startswith(FACETS) for label in item.classes)
        return (
            bool(item.keys & STATES)
            or classed
            or bool(item.flags & {"one", "many"} and "verb" not in item.flags)
            or "not" in item.flags
        )

    def is_condition(self, item: Item) -> bool:
        """Say whether an item names an environment, a season, a part of the day."""
        return any(label.endswith("?") and not label.startswith(FACETS) for label in item.classes)

    def is_paraphrase(self, olds: list[Item], news: list[Item]) -> bool:
        """Say whether all values are the same and few words differ."""
        if (self.new.change and not self.old.change) or any(
            i.kind in ANCHORS or i.conditional or i.negated or self.tells(i) for i in news
        ):
            return False
        if any("kin" in i.classes or self.is_condition(i) or i.negated or i.conditional for i in olds):
            return False
        if any(i.keys & (STATES | ENDINGS) for i in olds):
            return False
        rivals = [[i for i in left if not is_weak(i)] for left in (olds, news)]
        if all(any(i.subject for i in left) for left in rivals) or all(
            any(i.kind == "concept" for i in left) for left in rivals
        ):
            return False
        person = any("=user" in a.keys for a, _ in self.parts.both)
        if person and any(i.keys & PERSONAL for i in olds) and any(i.keys & PERSONAL for i in news):
            return False
        strong = [[i for i in left if "verb" in i.flags and not i.keys & WEAK] for left in (olds, news)]
        if all(strong) or self.is_reordered():
            return False
        weight = sum(2.0 if a.kind in ANCHORS or b.kind in ANCHORS else 1.0 for a, b in self.solid)
        extra = sum(0.4 if is_weak(i) else 1.0 for i in news)
        lost = sum(0.4 if is_weak(i) else 1.0 for i in olds)
        return weight >= 2.5 * extra + 0.5 and weight >= 1.2 * lost

    def has_its_own_subject(self) -> bool:
        """Say whether the new text has a subject of its own where the old one speaks of the user."""
        user = [any("=user" in i.keys for i in of.items) for of in (self.old, self.new)]
        return user == [True, False] and any(
            i.subject and not i.light and not i.keys & WEAK for i in self.parts.new
        )

    def replaces(self, one: Item, other: Item) -> bool:
        """Say whether one word stands where the other one stood."""
        if self.is_keyed():
            return not (one.subject or other.subject)
        if (self.old.indefinite or self.new.indefinite) and not self.new.change:
            return False
        plain = not any(is_relation(i) or i.keys & STATES or i.subject for i in (one, other))
        return plain and self.is_aligned(one, other)

    def is_keyed(self) -> bool:
        """Say whether both are a key and its value."""
        return self.old.keyed and self.new.keyed

    def is_aligned(self, one: Item, other: Item) -> bool:
        """Say whether two items stand in the same place."""
        return one.before == other.before or one.subject == other.subject
