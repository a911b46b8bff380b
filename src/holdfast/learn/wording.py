"""Whether two statements say the same in other words: each item explained by the other side, and what is not, weighed.

What differs between the items is looked up as words (`synonyms.py`): the same, derived, similar, wider; or another of
its kind, or the opposite, and then they do not say the same. Names, numbers and times must agree, whatever the words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from holdfast.learn import synonyms
from holdfast.learn.difference import alike
from holdfast.learn.lexicon import fillers, stem, weak_words
from holdfast.learn.pairing import PERSONAL, Pairing, is_relation, is_weak
from holdfast.learn.statement import Item
from holdfast.learn.synonyms import NOTHING, Relation

VALUES = frozenset({"number", "version", "time", "date", "weekday", "id"})
_DECISIVE = frozenset({"number", "version", "time", "date", "id", "name"})
_WEIGHTS = {"n": 2.0, "v": 1.5, "a": 1.2, "r": 0.7, "": 2.0}
_WEAK, _ANCHOR, _VAGUE = 0.4, 3.0, 8  # a word of so many senses says little
_SHARED_LETTERS = 5  # of two words of one family: commuter, commute
_SURE = 0.4
_FEW = 2
_TURNING = frozenset("by 's of is are was were".split())
_DAYS = {
    "=weekend": ({"weekday:5", "weekday:6"},),
    "=weekdays": ({"weekday:0", "weekday:4"}, {f"weekday:{n}" for n in range(5)}),
}
# Classes whose members are words as well: an import, a file that was read, a running server, a finished book.
_LOOSE = frozenset(
    "stage direction device transport animal component size length temper merge sport state side kin".split()
)
# Fitted by logistic regression to the labelled pairs in tests/data/merge and to such pairs with one noun exchanged, in
# the order of `features` and the three hints. `_ENOUGH` was set by cross-validation over them: 0.2 % wrong.
_FITTED = tuple(
    float(part)
    for part in (
        "-0.7 0.23 0.48 -0.0 0.05 -0.15 -0.25 -0.53 -1.42 -0.16 -1.29 0.76 0.28 1.06 -0.96 0.22 -0.6 "
        "-0.37 -1.49 1.76 0.0 -0.34 0.93 -1.78 0.12 -0.42 1.71 0.77 1.79 0.13 1.0 0.58 -1.09 -1.62"
    ).split()
)
_ENOUGH = -0.6
_ENOUGH_LESS = -0.8  # where the new text has nothing that the old one has not
_COUNTED = {"same": 1.0, "derived": 1.0, "similar": 0.9, "wider": 0.9, "narrower": 0.8, "denied": 0.8}


@lru_cache(maxsize=16_384)
def _words(item: Item) -> tuple[str, ...]:
    """Give the words under which an item may be found."""
    text = item.text.lower()
    said = item.kind != "concept" or (text not in fillers()["empty"] and stem(text) not in weak_words())
    found = [stem(text)] if said else []
    found.append(f"{found[0]} {stem(item.after)}" if found and item.after else "")
    for key in sorted(item.keys):
        name = key.lstrip("=")
        found.append(" ".join(map(stem, name.split())))
    return tuple(dict.fromkeys(filter(None, found)))


def is_anchor(item: Item) -> bool:
    """Say whether an item is a value or a name, which no other word can stand for."""
    if item.kind in VALUES:
        return item.text.lower() not in ("one", "single")
    if item.kind not in ("name", "first"):
        return False
    if stem(item.text.lower()) in weak_words():
        return False
    known = item.kind == "first" or item.text.isupper()  # ID, TV
    return not known or not synonyms.senses(stem(item.text.lower()))


def _head(item: Item) -> str:
    """Give the word that stands for an item: of a wording, what it is called in the table."""
    return stem(min(item.keys).lstrip("=").split()[0] if item.kind == "concept" else item.text.lower())


def weight(item: Item) -> float:
    """Say how much a text loses with an item."""
    if item.light:
        return 0.0
    if is_anchor(item):
        return _ANCHOR
    if is_weak(item):
        return _WEAK
    word = _head(item)
    heavy = _WEIGHTS[synonyms.kind(word)]
    return heavy * (0.6 if len(synonyms.senses(word)) >= _VAGUE else 1.0)


@lru_cache(maxsize=65_536)
def _relate(one: tuple[str, ...], other: tuple[str, ...]) -> Relation:
    best, worst = NOTHING, NOTHING
    for a in one:
        for b in other:
            found = synonyms.relate(a, b)
            if found.name in ("other", "opposite"):
                worst = max(worst, found, key=lambda r: r.score)
            elif found.name:
                best = max(best, found, key=lambda r: r.score * _COUNTED.get(r.name, 0.0))
    if best.score >= worst.score and best.name:
        return best
    if worst.name:
        return worst
    a, b = one[0], other[0]
    shared = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    if shared >= _SHARED_LETTERS and shared >= 0.6 * max(len(a), len(b)):
        return Relation("derived", 0.7)
    short, long = sorted((a, b), key=len)
    if len(short) >= _SHARED_LETTERS and (long.startswith(short) or long.endswith(short)):
        return Relation("similar", 0.6)  # a compound, and what it is made of
    return NOTHING


def relation(old: Item, new: Item) -> Relation:
    """Say how one item relates to another, as words."""
    if old.kind in VALUES or new.kind in VALUES or (is_anchor(old) and is_anchor(new)):
        return NOTHING
    return _relate(_words(old), _words(new))


def _denied(how: Relation, old: Item, new: Item) -> Relation:
    """Take the denial of the opposite for the same: not outside, inside."""
    if how.name != "opposite" or old.negated == new.negated:
        return how
    return Relation("denied", how.score)


@dataclass(slots=True)
class Wording:
    """What two statements share as words, and what not."""

    pairing: Pairing
    matched: float = 0.0
    anchors: float = 0.0
    doubtful: float = 0.0  # of what is explained, as far as the explanation is unsure
    olds: list[Item] = field(default_factory=list)  # unexplained
    news: list[Item] = field(default_factory=list)
    soft: list[tuple[Item, Item]] = field(default_factory=list)
    veto: str = ""

    def explain(self) -> Wording:
        """Pair what is left on both sides by what the words mean."""
        parts = self.pairing.parts
        if any(i.kind in _DECISIVE and is_anchor(i) for i in parts.new):
            self.veto = "a value or a name that is not in the old text"  # most texts differ so: no need to look further
            return self
        for a, b in parts.both:
            anchored = is_anchor(a) or is_anchor(b) or _is_value(a)
            self.matched += _ANCHOR if anchored else min(weight(a), weight(b))
            self.anchors += _ANCHOR if anchored else 0.0
        implied = self.pairing.is_implied
        olds, news = ([i for i in left if not (i.light or implied(i))] for left in (parts.old, parts.new))
        self._pair(olds, news)
        self._days()
        self._again()
        self.veto = self._object()
        return self

    def _pair(self, olds: list[Item], news: list[Item]) -> None:
        """Pair the items that mean the same, the surest first."""
        found = sorted(
            ((_denied(relation(a, b), a, b), n, m) for n, a in enumerate(olds) for m, b in enumerate(news)),
            key=lambda f: (-f[0].score * _COUNTED.get(f[0].name, 0.0), f[1], f[2]),
        )
        gone: set[int] = set()
        come: set[int] = set()
        for how, n, m in found:
            if (
                how.score
                and how.name in _COUNTED
                and n not in gone
                and m not in come
                and not _are_alternatives(olds[n], news[m])
            ):
                gone.add(n)
                come.add(m)
                heavy = min(weight(olds[n]), weight(news[m]))
                self.matched += heavy * how.score
                self.doubtful += heavy * (1 - how.score)
                if how.name != "denied":
                    self.soft.append((olds[n], news[m]))
        self.olds = [i for n, i in enumerate(olds) if n not in gone]
        self.news = [i for m, i in enumerate(news) if m not in come]

    def _days(self) -> None:
        """Let go the weekend beside its two days."""
        for left, others in ((self.olds, self.news), (self.news, self.olds)):
            whole = [i for i in left if i.keys & _DAYS.keys()]
            days = [i for i in others if i.kind == "weekday"]
            if whole and {k for i in days for k in i.keys} in _DAYS[next(iter(whole[0].keys & _DAYS.keys()))]:
                left.remove(whole[0])
                others[:] = [i for i in others if i not in days]
                self.matched += _ANCHOR
                self.anchors += _ANCHOR

    def _again(self) -> None:
        """Let go what is said by a word that has a partner already: the train that is taken, the commuter train."""
        items = (self.pairing.new.items, self.pairing.old.items)
        for left, others in ((self.olds, items[0]), (self.news, items[1])):
            for item in list(left):
                for other in others:
                    how = (
                        relation(item, other)
                        if not (other.light or _are_alternatives(item, other))
                        else NOTHING
                    )
                    if how.name in _COUNTED and how.score * _COUNTED[how.name] >= 0.5 and not item.negated:
                        left.remove(item)
                        self.doubtful += 0.3 * weight(item)
                        break

    def _object(self) -> str:
        """Say what speaks against it, whatever else agrees; nothing if nothing does."""
        if any(is_anchor(i) or _is_value(i) for i in self.news):
            return "a value or a name that is not in the old text"
        if self._has_alternatives():
            return "another value"
        if self._has_rivals():
            return "another thing"
        if self._has_a_subject_of_its_own():
            return "another subject"
        if self._leaves_out():
            return "it leaves out what it depends on"
        if self._is_turned():
            return "the other way round"
        return "" if self._has_equal_polarity() else "the opposite"

    def _has_alternatives(self) -> bool:
        """Say whether what is left on both sides are two values of a class, two of a kind, or opposites."""
        for a in self.olds:
            for b in self.news:
                how = relation(a, b)
                against = how.name in ("other", "opposite") and how.score > _SURE
                if _are_alternatives(a, b) or (against and not (is_weak(a) or is_weak(b))):
                    return True
        return False

    def _has_rivals(self) -> bool:
        """Say whether both sides have something of weight that the other one does not have."""
        sides = (self.olds, self.news)
        personal = [any(i.keys & PERSONAL for i in left) for left in sides]
        related = [any(i.kind == "concept" and is_relation(i) for i in left) for left in sides]
        exchanged = any(_are_exchanged(a, b) for a in self.olds for b in self.news)
        return exchanged or (personal[0] and related[1]) or (related[0] and personal[1])

    def _leaves_out(self) -> bool:
        """Say whether the new text leaves out of whom it speaks or on what it depends."""
        if any("kin" in i.classes and "=manager" not in i.keys for i in self.news + self.olds):
            return True
        if any(is_anchor(i) and i.kind not in VALUES and i.subject for i in self.olds):
            return True
        pairing = self.pairing
        return any(
            (i.conditional and weight(i) > 1) or pairing.is_condition(i) or "=only" in i.keys
            for i in self.olds
        )

    def _shares_little(self) -> bool:
        """Say whether one thing is shared, and more than that is left out."""
        solid = sum(weight(a) > _WEAK for a, _ in (*self.pairing.parts.both, *self.soft))
        return solid < _FEW and sum(map(weight, self.olds)) > _FEW

    def _is_turned(self) -> bool:
        """Say whether what is the subject, or what was, in one text is not so in the other: A leads B, B leads A.

        A passive or a genitive turns a sentence round and says the same: B is led by A, the leader of B.
        """
        if any(
            (a.gone or a.negated) != (b.gone or b.negated)
            for a, b in self.pairing.parts.both
            if a.gone or b.gone
        ):
            return True
        differ = set(self.pairing.old.plain) ^ set(self.pairing.new.plain)
        return self.pairing.is_reordered() and differ.isdisjoint(_TURNING)

    def _has_a_subject_of_its_own(self) -> bool:
        """Say whether the new text speaks of somebody or something else where the old one speaks of the user."""
        user = [any("=user" in i.keys for i in of.items) for of in (self.pairing.old, self.pairing.new)]
        return user == [True, False] and any(_is_noun(i) and i.subject and weight(i) > 1 for i in self.news)

    def _has_equal_polarity(self) -> bool:
        """Say whether both deny the same; a denial may stand at another word: avoid X, should not use X."""
        pairs = [pair for pair in (*self.pairing.parts.both, *self.soft) if not pair[0].light]
        flips = [
            a for a, b in pairs if a.negated != b.negated and not (a.gone or b.gone)
        ]  # not X, rather than X
        olds, news = ([i for i in left if i.negated] for left in (self.olds, self.news))
        if not flips:  # pnpm, not npm: the denied value may be left out
            return bool(olds) == bool(news) or all(is_anchor(i) or _is_value(i) for i in olds + news)
        if len(flips) > 1:
            return False
        moved = news if flips[0].negated else olds
        return bool(moved) and not any(is_anchor(i) or _is_value(i) or _is_noun(i) for i in moved)

    def says_the_same(self, rule: str) -> bool:
        """Decide by the score; `rule` is what the rules of `decision.py` say, and no more than a hint."""
        if self.veto or (rule != "duplicate" and self._shares_little()):
            return False
        hints = (float(rule == "duplicate"), float(rule == "new"), float(rule == "update"))
        values = zip(_FITTED, (*self.features(), *hints), strict=True)
        score = sum(factor * value for factor, value in values)
        return score >= (_ENOUGH if self.news or self.soft or rule != "duplicate" else _ENOUGH_LESS)

    def features(self) -> list[float]:
        """Give what the score is made of."""
        pairing = self.pairing
        rivals = [[i for i in left if _is_rival(i)] for left in (self.olds, self.news)]
        lost = sum(map(weight, self.olds))
        more = sum(map(weight, self.news))
        return [
            1.0,
            min(self.anchors, 9) / 3,
            min(self.matched - self.anchors, 10) / 2,
            more / 2,
            lost / 2,
            self.doubtful / 2,
            more / (more + self.matched + 0.5),
            lost / (lost + self.matched + 0.5),
            float(sum(_is_noun(i) and weight(i) > 1 for i in self.news)),
            float(more > 0 and not self.olds),
            float(pairing.new.change and not pairing.old.change),
            float((pairing.new.plan, pairing.new.past) != (pairing.old.plan, pairing.old.past)),
            float(pairing.is_reordered()),
            float(sum(i.negated for i in self.olds + self.news)),
            float(any(i.subject for i in self.olds) and any(i.subject for i in self.news)),
            float(any(pairing.tells(i) for i in self.news)),
            float(sum(is_anchor(i) or _is_value(i) for i in self.olds)),
            min(len(rivals[0]), len(rivals[1]), 2) / 2,
            float(len(rivals[0]) == len(rivals[1]) == len(self.olds) == len(self.news) == 1),
            float(all(any(map(_is_unknown, left)) for left in (self.olds, self.news))),
            float(all(any(i.text.endswith("ing") for i in r) for r in rivals)),
            float(any(i.subject for i in rivals[0]) and any(i.subject for i in rivals[1])),
            *self._overlap(lost, more),
        ]

    def _overlap(self, lost: float, more: float) -> list[float]:
        """Give how far the two have the same words and keys."""
        pairing = self.pairing
        old, new = set(pairing.old.plain), set(pairing.new.plain)
        keys = pairing.old.keys, pairing.new.keys
        return [
            float(not self.olds and not self.news),
            len(old & new) / max(1, min(len(old), len(new))),
            len(keys[0] & keys[1]) / max(1, len(keys[0] | keys[1])),
            min(lost * more, 9) / 4,
            abs(len(old) - len(new)) / max(1, len(old) + len(new)),
            float(not self.olds),
            float(not self.news),
            min(len(self.soft), 3) / 2,
            sum(not a.light and weight(a) > 1 for a, _ in pairing.parts.both) / 3,
        ]


def _are_alternatives(old: Item, new: Item) -> bool:
    """Say whether two items are values of one class, and not two writings of one: a window seat, by the window."""
    if not alike(old, new):
        return False
    named = all(key.startswith("=") for i in (old, new) for key in i.keys)  # every month, every year
    return named or (_head(old) != _head(new) and stem(old.text.lower()) != stem(new.text.lower()))


def _are_exchanged(old: Item, new: Item) -> bool:
    """Say whether two words stand between the same words: a refund for the chair, a replacement for the chair."""
    beside = (old.before, old.after) == (new.before, new.after) and bool(old.before or old.after)
    return beside and not (is_weak(old) or is_weak(new))


def _is_unknown(item: Item) -> bool:
    return not is_weak(item) and item.kind != "concept" and not synonyms.senses(_head(item))


def _is_value(item: Item) -> bool:
    """Say whether an item is of a class of values, such as editors or cities."""
    return not (is_weak(item) or is_relation(item)) and any(
        label.rstrip("!?") not in _LOOSE for label in item.classes
    )


def _is_rival(item: Item) -> bool:
    """Say whether an unexplained item, beside one of the other side, tells that they speak of two things."""
    known = item.kind == "concept" or synonyms.kind(_head(item)) in ("n", "a", "")
    known = known or item.text.endswith("ing")  # gardening, sailing
    return known and weight(item) > 1


def _is_noun(item: Item) -> bool:
    return synonyms.kind(_head(item)) in ("n", "") and "verb" not in item.flags
