"""Whether two texts speak of one thing: names, conditions, qualifiers and measures that make them speak of two."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.learn.cues import facets, per, signals
from holdfast.learn.difference import Difference, alike
from holdfast.learn.lexicon import stem
from holdfast.learn.pairing import PERSONAL, PLACES, SOFT, STATES, TIMED, is_relation, is_weak
from holdfast.learn.statement import Item, Statement

PREPOSITIONS = frozenset(
    "of for in on at with by from to about 's bei von für de del para pour di per van chez presso bij".split()
)
# Speakers and parties whom every other text speaks of: alone they tell of no one thing.
GENERIC = frozenset(
    stem(word)
    for word in "user customer client project team player party people company thing patient student day week today meeting app service system plan new".split()
) | {
    "=customer",
    "=user",
    "=people",
    "=company",
    "=project",
    "=we",
    "=every day",
    "=every week",
    "=every month",
    "=work",
}
NAMES = ("name", "first", "id", "cjk")
NUMBERS = ("number", "version")
CONDITIONS = frozenset({"environment?", "daypart?", "dayset?", "season?", "meal?", "plan tier?"})
BE = frozenset("is are was were be been".split())
_DETERMINERS = frozenset("the a an 's my our their his her this".split())
_GROUP = 3  # digits between the marks of a long number
_OF = frozenset({"for", "of"})  # after these stands a noun
LAST = frozenset("last this next past yesterday".split())
PAST_LIFE = frozenset("lived worked studied played resided".split())  # there may have been several
_LEADING = frozenset("in on for during under at with within".split())
TITLES = frozenset("mr mrs ms dr prof herr frau".split())


def is_attribute(item: Item) -> bool:
    """Say whether an item is an attribute that has one value: rent, deadline, manager."""
    return "one" in item.flags and not item.keys & (SOFT | STATES | PLACES)


def _is_same_hour(one: Item, other: Item) -> bool:
    """Say whether a number and a time are one: UTC+2, UTC+02:00."""
    if {one.kind, other.kind} != {"number", "time"}:
        return False
    number, time = (next(iter(i.keys)) for i in sorted((one, other), key=lambda i: i.kind))
    return number[1:].isdigit() and time == f"time:{int(number[1:]) * 60}"


def is_written_otherwise(one: Item, other: Item) -> bool:
    """Say whether two numbers may be one in two ways of writing it: 1.200, 1200."""
    a, b = (i.text.replace(",", ".").replace(" ", "") for i in (one, other))
    if one.kind not in NUMBERS or other.kind not in NUMBERS or a == b:
        return False
    return any(
        "." in x and len(x.split(".")[-1]) == _GROUP and x.replace(".", "") == y for x, y in ((a, b), (b, a))
    )


def _counts_kin(number: Item, thing: Item) -> bool:
    """Say whether a number stands before relatives whom it counts: two daughters."""
    return number.kind == "number" and thing.place == number.place + 1 and "kin" in thing.classes


def _is_value(of: Item, one: Item, other: Item, side: str) -> bool:
    """Say whether two words beside a shared one are values that may replace each other, not qualifiers."""
    if one.kind == other.kind == "version" and one.subject and other.subject:
        return False
    if one.kind in NUMBERS and other.kind in NUMBERS and side == "before":
        return not (one.unit == "nth" and one.subject and other.subject)
    if one.kind in TIMED or other.kind in TIMED or one.unit or other.unit:
        return not (one.unit == "nth" and one.subject and other.subject)
    return bool(alike(one, other) and (of.classes & CONDITIONS or "frequency!" in of.classes))


@dataclass(slots=True)
class Apart:
    """An old and a new statement, and what is left of each beside what they share and beside the wordings of change."""

    old: Statement
    new: Statement
    parts: Difference
    solid: list[tuple[Item, Item]]
    _left: dict[bool, list[Item]] = field(default_factory=dict)
    _shared: list[tuple[Item, Item]] | None = None

    def rest(self, *, of_new: bool) -> list[Item]:
        """Give what is left of a text that may tell of which thing it speaks."""
        if of_new not in self._left:
            self._left[of_new] = self._find_rest(of_new=of_new)
        return self._left[of_new]

    def _find_rest(self, *, of_new: bool) -> list[Item]:
        statement, left = (self.new, self.parts.new) if of_new else (self.old, self.parts.old)
        covered = signals(statement).covered
        return [
            item
            for item in left
            if not (item.light or is_weak(item) or item.kind in TIMED)
            and item.place not in covered
            and not (
                is_relation(item)
                and (
                    ("verb" in item.flags and not item.subject and item.before not in _OF)
                    or "change" in item.flags
                )
            )
            and item.text.lower() not in BE
            and item.text.lower() not in PREPOSITIONS
        ]

    def anchors(self) -> list[tuple[Item, Item]]:
        """Give what both speak of, but for the most general."""
        if self._shared is None:
            self._shared = self._find_anchors()
        return self._shared

    def _find_anchors(self) -> list[tuple[Item, Item]]:
        return [
            (a, b)
            for a, b in self.solid
            if not (
                is_relation(a) and is_relation(b) and not (a.subject and b.subject) and not is_attribute(a)
            )
            and not (is_weak(a) and not a.subject)
            and not a.keys <= GENERIC
            and a.kind not in TIMED
            and a.text.lower() not in TITLES
            and not a.unit
            and a.text.lower() not in LAST
            and b.text.lower() not in LAST
        ]

    def is_other(self) -> bool:
        """Say whether they speak of different persons, things or conditions."""
        olds, news = self.rest(of_new=False), self.rest(of_new=True)
        if (
            self._is_another_person()
            or self._is_other_facet()
            or self._is_per_other()
            or self._is_other_setting()
        ):
            return True
        if any(a.negated != b.negated for a, b in self.solid) and any(
            alike(a, b) == "name" for a in olds for b in news if not a.subject and not b.gone
        ):
            return True
        for a in olds:
            labels = {label for label in a.classes if label.endswith("?")}
            if not a.classes & {"frequency!"} and any(labels & b.classes for b in news):
                return True
        fresh = [i for i in news if i.classes & CONDITIONS and not self._is_last(i)]
        led = all(any(i.subject for i in of.items) for of in (self.old, self.new))
        if led and any(a.kind in NUMBERS and a.subject != b.subject for a, b in self.solid):
            return True  # another one of several: player one has 3 lives, player two has 1
        promoted = "promoted" in self.new.words
        return (
            bool(fresh)
            or self._is_possession()
            or (
                not promoted
                and any(
                    self._differ(a, b)
                    for a, b in self.solid
                    if a.subject or "verb" not in a.flags or self._is_noun(a)
                )
            )
        )

    def _is_another_person(self) -> bool:
        first = min((b.place for _, b in self.solid), default=999)
        named = {a.place for a, _ in self.solid if a.kind in ("name", "first")}
        kin = [i for i in self.parts.old if "kin" in i.classes and "=married" not in i.keys]
        return any(i.place + 1 not in named for i in kin) or self.has_kin(first) or self._is_side()

    def _is_side(self) -> bool:
        """Say whether `left` names a side, where it was taken for leaving."""
        return any(
            b.text.lower() == "left" != a.text.lower()
            and self.new.words[b.place - 1] in ("the", "his", "her", "my")
            for a, b in self.solid
            if b.place
        )

    def is_doubtful(self) -> bool:
        """Say whether something speaks against an update that the values alone suggest."""
        user = [any("=user" in i.keys for i in of.items) for of in (self.old, self.new)]
        for own, other, left in ((0, 1, self.parts.new), (1, 0, self.parts.old)):
            if user[own] and not user[other]:
                news = [
                    i
                    for i in left
                    if i.subject and i.kind in ("word", "concept") and not i.light and not is_weak(i)
                ]
                relations = any(is_attribute(i) for i in news)
                if news and not relations and not signals(self.new).of("amount"):
                    return True
        subjects = [[i for i in self.rest(of_new=n) if i.subject and i.kind == "word"] for n in (False, True)]
        if all(subjects) and not any(alike(a, b) for a in subjects[0] for b in subjects[1]):
            return True
        if any(is_written_otherwise(a, b) for a in self.parts.old for b in self.parts.new):
            return True
        if any(
            _counts_kin(a, x) and not any(_counts_kin(b, y) for b in self.parts.new)
            for a in self.parts.old
            for x, y in self.solid
        ):
            return True
        return self.is_other() or any(_is_same_hour(a, b) for a in self.parts.old for b in self.parts.new)

    def _is_per_other(self) -> bool:
        """Say whether they are measured by different things: per user, per team."""
        mine, theirs = per(self.old.words), per(self.new.words)
        return bool(mine - theirs and theirs - mine)

    def _is_other_setting(self) -> bool:
        """Say whether both begin with where or when they hold: in debug builds, in release builds."""
        if not {self.old.words[0], self.new.words[0]} <= _LEADING:
            return False
        return all(
            any(i.place <= 2 and not i.light for i in left) for left in (self.parts.old, self.parts.new)
        )

    def is_numbered(self) -> bool:
        """Say whether the new text speaks of one of several: test B, node 2."""
        return any(
            i.subject and i.place == b.place + 1 and (i.kind in NUMBERS or len(i.text) == 1)
            for _, b in self.solid
            if b.subject
            for i in self.parts.new
        )

    def is_bare(self) -> bool:
        """Say whether at most one of them says more than the values in which they differ."""
        return min(len(self.rest(of_new=False)), len(self.rest(of_new=True))) <= 1

    def _is_last(self, item: Item) -> bool:
        """Say whether an item only tells when: last summer, this morning."""
        around = self.new.words[max(0, item.place - 2) : item.place]
        return bool(item.classes & {"frequency!"}) or not LAST.isdisjoint(around)

    def _is_possession(self) -> bool:
        """Say whether the new text speaks of what the user has where the old one speaks of the user: her firm moved."""
        if not any(a.keys & PERSONAL for a, _ in self.solid):
            return False
        return any(
            i.subject and i.place and self.new.words[i.place - 1] == "'s" and not i.light
            for i in self.parts.new
        )

    def _differ(self, a: Item, b: Item) -> bool:
        """Say whether a shared word is qualified differently: timeout for reads, timeout for writes."""
        mine, theirs = self._beside(a, self.parts.old, self.old), self._beside(b, self.parts.new, self.new)
        told = {
            n
            for c in signals(self.new).cues
            if c.kind in ("amount", "now", "moves")
            for n in range(c.start, c.end)
        }
        if any(i.place in told for i in theirs.values()):
            return False
        for side in mine.keys() & theirs.keys():
            one, other = mine[side], theirs[side]
            if not _is_value(a, one, other, side) and (side != "after" or one.subject == other.subject):
                return True
        return False

    def _is_verb(self, item: Item, other: Item, of: Statement) -> bool:
        """Say whether a word beside a shared one is a verb; after an article it qualifies: the login query."""
        if not (is_relation(other) and "verb" in other.flags):
            return False
        after_article = other.place > 0 and of.words[other.place - 1] in _DETERMINERS | PREPOSITIONS
        qualifies = after_article or (item.subject and other.subject) or other.place == 0
        return not (item.place - other.place == 1 and qualifies)

    def _is_noun(self, item: Item) -> bool:
        """Say whether a word that may be a verb is a noun here: the train, a TTL for users."""
        after = self.old.words[item.place + 1 : item.place + 2]
        return item.place <= 1 and (self.old.words[0] == "the" or after in (("for",), ("of",)))

    def _beside(self, item: Item, left: tuple[Item, ...], of: Statement) -> dict[str, Item]:
        found = {}
        for other in left:
            gap = item.place - other.place
            if gap == -2 and of.words[item.place + 1] in PREPOSITIONS and other.kind not in NUMBERS:
                found["after"] = other
            elif (
                other.light
                and gap == 1
                and other.place
                and "verb" not in item.flags
                and of.words[other.place - 1] in _DETERMINERS
            ):
                found["before"] = other
            elif other.light or other.clause != item.clause or self._is_verb(item, other, of):
                continue
            elif gap == 1:
                found["before"] = other
            elif gap == -1 and other.subject and item.subject and other.kind not in NUMBERS:
                found["head"] = other
            elif gap == -1 and other.kind in NUMBERS and other.subject:
                found["number"] = other
        return found

    def _is_other_facet(self) -> bool:
        """Say whether they tell of two sides of a thing, each of which has a value: it opens at 8, it closes at 8."""
        mine, theirs = facets(self.old.words), facets(self.new.words)
        if not (mine and theirs) or not all(
            any(i.kind in TIMED or i.kind in NUMBERS for i in left)
            for left in (self.parts.old, self.parts.new)
        ):
            return False
        return any((b, a) in theirs and (a, b) not in theirs and (b, a) not in mine for a, b in mine)

    def has_kin(self, before: int) -> bool:
        """Say whether a relative whom the old text does not know stands before a place of the new text."""
        return any("kin" in i.classes for i in self.parts.new if i.place < before)

    def shares_user(self) -> bool:
        """Say whether both speak of the same person, whom they may leave out."""
        if any(a.keys & GENERIC for a, _ in self.parts.both):
            return True
        leading = [
            [i for i in of.items if i.subject and not i.light and i.place not in signals(of).covered]
            for of in (self.old, self.new)
        ]
        return not any(leading)
