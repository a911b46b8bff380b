"""Whether a text tells that what another one says has changed: an announced change, a state that follows a state.

The wordings stand in `changes.txt`. A change is believed only when both texts speak of one thing, and neither of them
has a name, a condition or a qualifier of its own that may make it another thing. `decision.py` weighs values.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise

from holdfast.learn.difference import Difference, alike
from holdfast.learn.lexicon import stem, stems, weak_words
from holdfast.learn.measures import UNITS
from holdfast.learn.pairing import PERSONAL, PLACES, SOFT, STATES, TIMED, is_relation, is_weak
from holdfast.learn.slot import are_opposites, swapped
from holdfast.learn.statement import Item, Statement

_Phrase = tuple[str, ...]
_FLAGS = frozenset({"self", "sym", "value", "cue"})
_GAP = 3  # words that `_` may stand for
_DENIALS = frozenset(
    "not no never without nicht kein keine ne pas nunca non niet geen nao sin before until stop stopped cease ceased".split()
)
_UNSURE = frozenset(
    "will would could should if want wants hope plan plans almost nearly tries trying try soon sometimes often usually when".split()
)
_MARKS = frozenset(",.;!?:()、。，；")
_PREPOSITIONS = frozenset("of for in on at with by from to about 's bei von für de del para pour di per van".split())
# Speakers and parties whom every other text speaks of: alone they tell of no one thing.
_GENERIC = frozenset(
    stem(word)
    for word in "user customer client project team player party people company thing patient student day week today meeting app service system plan new".split()
) | {"=customer", "=user", "=people", "=company", "=project", "=we", "=every day", "=every week", "=every month"}
_NAMES = ("name", "first", "id", "cjk")
_NUMBERS = ("number", "version")
_WEIGHTS = frozenset({"g", "lb"})


@dataclass(frozen=True, slots=True)
class Cue:
    """A wording of a change: its kind, `<` for before and `>` for after, where it stands, whether it is denied."""

    kind: str
    side: str
    start: int
    end: int
    denied: bool = False


@dataclass(frozen=True, slots=True)
class Signals:
    """The wordings of change in a text, and where they stand."""

    cues: tuple[Cue, ...] = ()
    covered: frozenset[int] = frozenset()

    def of(self, kind: str) -> list[Cue]:
        """Give those of one kind that are not denied."""
        return [cue for cue in self.cues if cue.kind == kind and not cue.denied]


@cache
def _table() -> tuple[dict[str, list[tuple[_Phrase, str, str]]], dict[str, frozenset[str]]]:
    phrases: dict[str, list[tuple[_Phrase, str, str]]] = defaultdict(list)
    flags: dict[str, frozenset[str]] = {}
    for line in (resources.files("holdfast.learn") / "changes.txt").read_text("utf-8").splitlines():
        head, colon, body = line.partition(":")
        if not colon or line.startswith(("#", "facet")):
            continue
        name, *marks = head.split()
        kind, side = name.rstrip("<>"), name[-1] if name[-1] in "<>" else ""
        flags[kind] = flags.get(kind, frozenset()) | (_FLAGS & set(marks))
        for written in body.split(","):
            phrase = tuple(
                part for word in written.split() for part in ([word] if word[0] in "_=" else stems(word))
            )
            if phrase:
                phrases[phrase[0].lstrip("=")].append((phrase, kind, side))
    return dict(phrases), flags


def _fits(phrase: _Phrase, words: tuple[str, ...], exact: tuple[str, ...], place: int) -> int:
    """Say where a wording that begins here ends; 0 when it does not fit."""
    if phrase[0].startswith("=") and phrase[0][1:] != exact[place]:
        return 0
    end, gap = place + 1, 0
    for part in phrase[1:]:
        if part == "_":
            gap = _GAP
            continue
        while gap and end < len(words) and words[end] != part and words[end] not in _MARKS:
            end, gap = end + 1, gap - 1
        if end >= len(words) or words[end] != part:
            return 0
        end, gap = end + 1, 0
    return end


def signals(statement: Statement) -> Signals:
    """Give the wordings of change in a statement."""
    return _signals(statement.words)


@lru_cache(maxsize=8192)
def _signals(words: tuple[str, ...]) -> Signals:
    table, _ = _table()
    stemmed = tuple(map(stem, words))
    cues: dict[Cue, None] = {}
    covered: set[int] = set()
    for place, word in enumerate(stemmed):
        for phrase, kind, side in (*table.get(word, ()), *(table.get(words[place], ()) if word != words[place] else ())):
            end = _fits(phrase, stemmed, words, place)
            if end:
                cues[Cue(kind, side, place, end, _is_denied(words, place))] = None
                if kind not in ("leave", "away") and side != "<":
                    covered.update(range(place, end))
    return Signals(tuple(cues), frozenset(covered))


def _is_denied(words: tuple[str, ...], place: int) -> bool:
    for word in reversed(words[max(0, place - 3) : place]):
        if word in _MARKS:
            return False
        if word in _DENIALS or word in _UNSURE:
            return True
    return False


@lru_cache(maxsize=8192)
def _topics(words: tuple[str, ...]) -> frozenset[str]:
    _, flags = _table()
    return frozenset(cue.kind for cue in _signals(words).cues if "self" in flags[cue.kind])


def may_change(old: Statement, new: Statement) -> bool:
    """Say whether two texts without a common word may still be states of one person."""
    return not _topics(old.words).isdisjoint(_topics(new.words))


def _is_attribute(item: Item) -> bool:
    """Say whether an item is an attribute that has one value: rent, deadline, manager."""
    return "one" in item.flags and not item.keys & (SOFT | STATES | PLACES)


@dataclass(slots=True)
class Change:
    """An old and a new statement, and what is left of each beside what they share and beside the wordings of change."""

    old: Statement
    new: Statement
    parts: Difference
    solid: list[tuple[Item, Item]]

    def decide(self) -> str:
        """Name the rule by which the new statement replaces the old one; nothing when none does."""
        if self.new.plan or self.new.past or self.new.long or self.old.past:
            return ""
        if not _ALSO.isdisjoint(self.new.words) or self.is_other():
            return ""
        if self._is_numbered():
            return ""
        found = self._flipped() or self._replaced() or self._counted() or self._moved() or self._turned()
        found = found or self._placed() or self._opposed()
        return found or ("another value in the same words" if swapped(self.old, self.new) else "")

    # What is left

    def rest(self, *, of_new: bool) -> list[Item]:
        """Give what is left of a text that may tell of which thing it speaks."""
        statement, left = (self.new, self.parts.new) if of_new else (self.old, self.parts.old)
        covered = signals(statement).covered
        return [
            item
            for item in left
            if not (item.light or is_weak(item) or item.kind in TIMED)
            and item.place not in covered
            and not (is_relation(item) and (("verb" in item.flags and not item.subject) or "change" in item.flags))
            and item.text.lower() not in _BE
        ]

    def anchors(self) -> list[tuple[Item, Item]]:
        """Give what both speak of, but for the most general."""
        return [
            (a, b)
            for a, b in self.solid
            if not (is_relation(a) and is_relation(b) and not (a.subject and b.subject) and not _is_attribute(a))
            and not (is_weak(a) and not a.subject)
            and not a.keys <= _GENERIC
            and a.kind not in TIMED
            and not a.unit
            and a.text.lower() not in _LAST
            and b.text.lower() not in _LAST
        ]

    def is_other(self) -> bool:
        """Say whether they speak of different persons, things or conditions."""
        olds, news = self.rest(of_new=False), self.rest(of_new=True)
        if self._is_another_person() or self._is_other_facet() or self._is_per_other():
            return True
        if any(a.negated != b.negated for a, b in self.solid) and any(
            alike(a, b) == "name" for a in olds for b in news if not a.subject and not b.gone
        ):
            return True
        for a in olds:
            labels = {label for label in a.classes if label.endswith("?")}
            if not a.classes & {"frequency!"} and any(labels & b.classes for b in news):
                return True
        fresh = [i for i in news if i.classes & _CONDITIONS and not self._is_last(i)]
        if any(a.kind in _NUMBERS and a.subject != b.subject for a, b in self.solid):
            return True  # another one of several: player one has 3 lives, player two has 1
        return bool(fresh) or self._is_possession() or any(
            self._differ(a, b) for a, b in self.solid if a.subject or "verb" not in a.flags or a.place <= 1
        )

    def _is_another_person(self) -> bool:
        first = min((b.place for _, b in self.solid), default=999)
        return any("kin" in i.classes for i in self.parts.old) or self._has_kin(first)

    def _is_per_other(self) -> bool:
        """Say whether they are measured by different things: per user, per team."""
        mine, theirs = _per(self.old.words), _per(self.new.words)
        return bool(mine - theirs and theirs - mine)

    def _is_numbered(self) -> bool:
        """Say whether the new text speaks of one of several: test B, node 2."""
        return any(
            i.subject and i.place == b.place + 1 and (i.kind in _NUMBERS or len(i.text) == 1)
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
        return bool(item.classes & {"frequency!"}) or not _LAST.isdisjoint(around)

    def _is_possession(self) -> bool:
        """Say whether the new text speaks of what the user has where the old one speaks of the user: her firm moved."""
        if not any(a.keys & PERSONAL for a, _ in self.solid):
            return False
        return any(
            i.subject and i.place and self.new.words[i.place - 1] == "'s" and not i.light for i in self.parts.new
        )

    def _differ(self, a: Item, b: Item) -> bool:
        """Say whether a shared word is qualified differently: timeout for reads, timeout for writes."""
        mine, theirs = self._beside(a, self.parts.old, self.old), self._beside(b, self.parts.new, self.new)
        if any(i.place in signals(self.new).covered for i in theirs.values()):
            return False
        for side in mine.keys() & theirs.keys():
            one, other = mine[side], theirs[side]
            value = one.kind in TIMED or other.kind in TIMED or one.unit or other.unit
            value = value or (alike(one, other) and (a.classes & _CONDITIONS or "frequency!" in a.classes))
            value = value or (one.kind in _NUMBERS and other.kind in _NUMBERS and side == "before")
            value = value and not (one.unit == "nth" and one.subject and other.subject)
            if not value and (side != "after" or one.subject == other.subject):
                return True
        return False

    def _beside(self, item: Item, left: tuple[Item, ...], of: Statement) -> dict[str, Item]:
        found = {}
        for other in left:
            gap = item.place - other.place
            if gap == -2 and of.words[item.place + 1] in _PREPOSITIONS and other.kind not in _NUMBERS:
                found["after"] = other
            elif other.light or other.clause != item.clause or (is_relation(other) and "verb" in other.flags):
                continue
            elif gap == 1:
                found["before"] = other
            elif gap == -1 and other.subject and item.subject and other.kind not in _NUMBERS:
                found["head"] = other
            elif gap == -1 and other.kind in _NUMBERS and other.subject:
                found["number"] = other
        return found

    def _is_other_facet(self) -> bool:
        """Say whether they tell of two sides of a thing, each of which has a value: it opens at 8, it closes at 8."""
        mine, theirs = _facets(self.old.words), _facets(self.new.words)
        if not (mine and theirs) or not all(
            any(i.kind in TIMED or i.kind in _NUMBERS for i in left) for left in (self.parts.old, self.parts.new)
        ):
            return False
        return any((b, a) in theirs and (a, b) not in theirs and (b, a) not in mine for a, b in mine)

    def _has_kin(self, before: int) -> bool:
        return any("kin" in i.classes for i in self.parts.new if i.place < before)

    def _shares_user(self) -> bool:
        """Say whether both speak of the same person, whom they may leave out."""
        if any(a.keys & _GENERIC for a, _ in self.parts.both):
            return True
        leading = [[i for i in of.items if i.subject and not i.light] for of in (self.old, self.new)]
        return not any(leading)

    # The rules

    def _flipped(self) -> str:
        """Name the state that came after the state that is told of."""
        _, flags = _table()
        before, after = signals(self.old).cues, signals(self.new).cues
        for cue in after:
            if cue.denied or not cue.side:
                continue
            marks = flags[cue.kind]
            for state in before:
                if state.kind != cue.kind or state.denied or not (
                    (state.side, cue.side) == ("<", ">") or ("sym" in marks and state.side != cue.side)
                ):
                    continue
                if self._follows(state, cue, marks):
                    return f"another state: {cue.kind}"
        return ""

    def _follows(self, state: Cue, cue: Cue, marks: frozenset[str]) -> bool:
        if self.old.words[state.start : state.end] == self.new.words[cue.start : cue.end]:
            return False
        if "cue" in marks and not signals(self.new).of("now"):
            return False
        clause = self._clause(cue)
        olds = [i for i in self.rest(of_new=False) if not state.start <= i.place < state.end]
        news = [i for i in self.rest(of_new=True) if i.clause in clause]
        names = [[i for i in left if i.kind in (*_NAMES, "number")] for left in (olds, news)]
        early = [i for i in news if i.place < cue.start]
        if self._has_kin(cue.end + 2) or any(
            c.kind == cue.kind and c.side == cue.side and not c.denied for c in signals(self.old).cues
        ):
            return False
        timed = [[i for i in of if i.kind in TIMED] for of in (self.parts.old, self.parts.new)]
        if all(timed) or ("sym" in marks and any(i.kind == "weekday" for i in timed[1])):
            return False
        shared = self.anchors()
        if cue.kind == "fail":
            shared = [p for p in self.solid if not (is_weak(p[0]) or p[0].keys <= _GENERIC or p[0].keys & STATES)]
        anchored = [
            (a, b)
            for a, b in shared
            if a.kind == "name" or not (state.start <= a.place < state.end or cue.start <= b.place < cue.end)
        ]
        if "value" in marks:
            return bool(names[1]) and self._shares_user() and not early
        if "self" in marks and not anchored:
            return self._shares_user() and not any(i.kind in _NAMES for i in early)
        if not anchored or all(names) or (early and olds):
            return False
        return any(b.clause in clause for _, b in anchored) and len(olds) <= 2

    def _clause(self, cue: Cue) -> set[int]:
        """Give the clause of a cue, by the items that stand around it."""
        here = [i.clause for i in self.new.items if i.place <= cue.start]
        near = [i.clause for i in self.new.items if cue.start <= i.place < cue.end + 3]
        return {here[-1] if here else 0, *near}

    def _replaced(self) -> str:
        """Say whether the new text says that the old value is gone, and names another one."""
        values = [
            (a, b)
            for a, b in self.anchors()
            if not (a.subject or a.negated or a.gone or is_relation(a)) and not self._was_left(a)
        ]
        cues = signals(self.new).cues
        for cue in cues:
            if cue.kind not in ("leave", "away"):
                continue
            for _, b in values:
                if b.clause in self._clause(cue) and self._is_left(b, cue):
                    return self._other_value(b, cue)
        return ""

    def _was_left(self, item: Item) -> bool:
        return any(c.kind == "away" and c.end <= item.place <= c.end + 1 for c in signals(self.old).cues)

    def _is_left(self, item: Item, cue: Cue) -> bool:
        """Say whether a cue speaks of an item: directly after it, or before it as its subject."""
        between = self.new.words[cue.end : item.place]
        if item.place >= cue.end and len(between) <= 2 and not set(between) & {"to", "into", "for", "with"}:
            return True
        if cue.kind == "away":
            return False
        if not cue.start <= item.place < cue.end:
            between = self.new.words[item.place + 1 : cue.start]
            return item.place < cue.start and len(between) <= 3 and not set(between) & _MARKS
        return True

    def _other_value(self, gone: Item, cue: Cue) -> str:
        olds, news = self.rest(of_new=False), self.rest(of_new=True)
        later = [i for i in news if i.kind in ("name", "id", "cjk") or i.classes or (i.kind == gone.kind and i.kind != "word")]
        actors = [i for i in news if i.place < min(cue.start, gone.place) and i.clause == gone.clause]
        if any(i.kind in _NAMES or "kin" in i.classes for i in actors):
            return ""
        late = [i for i in news if i.place > cue.end]
        if not later and late and (cue.end - cue.start > 1 or self.new.words[late[0].place - 1] in ("with", "by")):
            later = late if cue.kind == "away" or self.new.words[late[0].place - 1] in ("with", "by") else []
        if cue.kind == "away" and cue.end - cue.start > 1 and not later:
            later = [i for i in news if i.kind != "number"]
        if not later and not olds:
            moved = cue.kind == "away" and cue.start > 0 and stem(self.new.words[cue.start - 1]) in _MOVED
            others = [a for a, b in self.anchors() if b is not gone and not a.conditional]
            ended = cue.kind == "leave" and cue.end <= gone.place <= cue.end + 1 and not news and self._shares_user()
            return "it holds no longer" if (moved and others) or ended else ""
        if not later:
            return ""
        if any(i.subject and i.kind in _NAMES for i in olds) or len(olds) > 2:
            return ""
        return "it names the value that it replaces"

    def _amounts(self) -> list[tuple[Item, Item, str]]:
        """Pair the amounts and times that differ."""
        pairs = [
            (a, b, label)
            for a in self.parts.old
            for b in self.parts.new
            if (label := alike(a, b)) in ("number", "time", "amount", "frequency!")
            and (not a.conditional or {self.old.words[a.place - 1], self.new.words[b.place - 1]} <= _UNTIL)
            and (b.place == 0 or self.new.words[b.place - 1] not in _SINCE)
        ]
        exact = [p for p in pairs if p[0].kind == p[1].kind]
        return exact if len(pairs) > 1 and exact else pairs

    def _counted(self) -> str:
        """Say whether another amount of the same is given."""
        pairs = self._amounts()
        if not pairs or len({p[0].place for p in pairs}) < len(pairs) or len({p[1].place for p in pairs}) < len(pairs):
            return ""
        a, b, label = pairs[0]
        if len(pairs) > 1 and {p[2] for p in pairs} != {"time"}:
            return ""
        if a.subject and b.subject and not self._counts_same(a, b):
            return ""
        values = [i for p in pairs for i in p[:2]]
        olds, news = ([i for i in self.rest(of_new=n) if i not in values] for n in (False, True))
        olds = [i for i in olds if not i.classes & {"daypart?", "frequency!"} and i.text.lower() not in ("every", "each")]
        if any(i.kind in (*_NAMES, "number") and not i.kind == "first" for i in olds) or self._has_kin(999):
            return ""
        signal = signals(self.new)
        cues = [c for c in signal.of("amount") + signal.of("now") + signal.of("moves") if c.start <= b.place + 3]
        anchors = [x for x in self.anchors() if not self._is_counted(*x)]
        if not anchors and self._counts_same(a, b) and not olds and not news:
            anchors = self.anchors()
        if not anchors:
            alone = a.unit and a.unit == b.unit and a.unit in _WEIGHTS and not olds and not news
            return "another amount of the same" if alone and cues and self._shares_user() else ""
        if cues:
            return self._announced(cues, b, (olds, news), label)
        if olds or news or self.old.event or self.new.event:
            return ""
        same = label == "number" and (bool(a.unit) or self._counts_same(a, b))
        return "another amount of the same" if same and self._is_whole() else ""

    def _announced(self, cues: list[Cue], value: Item, rest: tuple[list[Item], list[Item]], label: str) -> str:
        olds, news = [i for i in rest[0] if not self._is_done(i)], rest[1]
        start = min(c.start for c in cues)
        first = min(b.place for _, b in self.anchors())
        own = [i for i in news if first < start and i.place < start and i.clause == value.clause]
        verbs = [c for c in cues if c.kind == "amount" and self.new.words[c.end - 1] not in _PREPOSITIONS]
        if verbs and verbs[0].start < first < value.place:
            news = [i for i in news if i.place > verbs[0].start]  # who did it says nothing
        if own or len(olds) > 1 or (olds and news) or len(news) > 2:
            return ""
        amount = any(c.kind == "amount" for c in cues)
        return "another amount, and said to be a change" if amount or label != "amount" else ""

    def _is_done(self, item: Item) -> bool:
        """Say whether an item is the participle of a predicate: is heated to, is limited to."""
        return item.place > 0 and self.old.words[item.place - 1] in _BE and item.text.endswith(("ed", "en"))

    def _moved(self) -> str:
        """Say whether another name or value of a class is given, and that it is a change."""
        olds, news = _whole_names(self.rest(of_new=False)), _whole_names(self.rest(of_new=True))
        pairs = [(a, b) for a in olds for b in news if (label := alike(a, b)) and label[-1] != "?"]
        if len(pairs) != 1 or any("many" in a.flags for a, _ in self.solid) or self._has_kin(999):
            return ""
        a, b = pairs[0]
        cues = signals(self.new).of("moves") + signals(self.new).of("now")
        turned = a.subject and not b.subject and any(_is_attribute(x) for x, _ in self.solid)
        if (a.subject and not turned) or b.subject or a.kind == "number" or not cues or b.negated or a.negated:
            return ""
        anchors, others = self.anchors(), len(olds) + len(news) - 2
        sure = any(x.kind in ("name", "id") or (x.subject and y.subject) for x, y in anchors)
        if turned or self.new.words[b.place - 1] in (".", ","):
            sure = len(anchors) > 1
        exact = sum(x.kind in ("name", "id", "number") for x, _ in anchors) > 1
        return "another value, and said to be a change" if sure and others <= exact else ""

    def _placed(self) -> str:
        """Say whether a thing is somewhere else than it was."""
        olds, news = self.rest(of_new=False), self.rest(of_new=True)
        if len(olds) != 1 or len(news) != 1 or self.new.event or any(i.kind in TIMED for i in self.parts.new):
            return ""
        a, b = olds[0], news[0]
        subjects = [x for x, y in self.anchors() if x.place < a.place and y.place < b.place]
        if not subjects or a.subject or b.subject or a.classes != b.classes or a.kind != b.kind:
            return ""
        there = [_lead(of.words, i.place) for of, i in ((self.old, a), (self.new, b))]
        told = signals(self.new).of("now") + signals(self.new).of("moves")
        stands = not _STANDS.isdisjoint(self.new.words)
        return "it is in another place" if there[0] and there[1] and told and stands else ""

    def _opposed(self) -> str:
        """Say whether a word of the new text is the opposite of one of the old text."""
        olds, news = self.rest(of_new=False), self.rest(of_new=True)
        if not (0 < len(olds) < 3 and 0 < len(news) < 3) or min(len(olds), len(news)) > 1:
            return ""
        if any(i.kind in _NAMES or i.subject for i in olds + news if i.kind != "word") or not self.anchors():
            return ""
        found = any(are_opposites(a.text.lower(), b.text.lower()) for a in olds for b in news)
        return "the opposite of the same" if found else ""

    def _is_whole(self) -> bool:
        return not any(i.conditional for i in (*self.parts.old, *self.parts.new))

    def _is_counted(self, a: Item, b: Item) -> bool:
        """Say whether a shared noun is only what is counted."""
        before = {i.place + 1 for i in self.parts.old if i.kind in _NUMBERS}, {
            i.place + 1 for i in self.parts.new if i.kind in _NUMBERS
        }
        return a.place in before[0] and b.place in before[1]

    def _counts_same(self, a: Item, b: Item) -> bool:
        """Say whether the same noun follows two numbers."""
        return any(x.place == a.place + 1 and y.place == b.place + 1 for x, y in self.solid)

    def _turned(self) -> str:
        """Say whether the new text denies what the old one says, and says that this is a change."""
        flips = [(a, b) for a, b in self.solid if a.negated != b.negated]
        others = sum(i.negated for i in (*self.parts.old, *self.parts.new) if not i.light)
        if len(flips) != 1 or others or not self.new.change or flips[0][0].subject != flips[0][1].subject:
            return ""
        olds, news = self.rest(of_new=False), self.rest(of_new=True)
        if any(i.kind in _NAMES or "kin" in i.classes for i in news if i.place < flips[0][1].place):
            return ""
        if any(alike(a, b) for a in olds for b in news) or any(i.conditional for i in self.parts.new):
            return ""
        noun = not is_relation(flips[0][0]) or any(p[0] is not flips[0][0] for p in self.anchors())
        return "it holds no longer" if noun and len(olds) <= 2 and not (olds and news) else ""


@cache
def _opposites() -> dict[str, frozenset[tuple[str, str]]]:
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for line in (resources.files("holdfast.learn") / "changes.txt").read_text("utf-8").splitlines():
        if line.startswith("facet:"):
            for pair in line[6:].split(","):
                one, other = (stem(word) for word in pair.split())
                found[one].add((one, other))
                found[other].add((other, one))
    return {word: frozenset(pairs) for word, pairs in found.items()}


@lru_cache(maxsize=8192)
def _facets(words: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    """Give the words that have an opposite, each with it."""
    table = _opposites()
    return frozenset(pair for word in words for pair in table.get(stem(word), ()))


_ALSO = frozenset("also too additionally another besides second both auch zusatzlich tambien aussi egalement anche ook 也 还".split())
_STANDS = frozenset("is are stands stand sits sit hangs hang lies lie lives moved put kept stored go goes".split())
_PLACES = frozenset("in on at under behind into to onto near beside inside".split())
_TITLES = frozenset("mr mrs ms dr prof herr frau".split())


def _lead(words: tuple[str, ...], place: int) -> bool:
    """Say whether a preposition of place goes before a word."""
    return not _PLACES.isdisjoint(words[max(0, place - 3) : place])


def _whole_names(items: list[Item]) -> list[Item]:
    """Give the items, of a name of several words its last word alone."""
    found: list[Item] = []
    for item in items:
        near = found and item.place - found[-1].place <= 2 and item.kind == found[-1].kind == "name"
        if near and (item.place - found[-1].place == 1 or found[-1].text.lower() in _TITLES):
            found[-1] = item
        else:
            found.append(item)
    return found


_MOVED = frozenset(map(stem, "moved migrated switched transferred relocated shifted changed converted".split()))
_BE = frozenset("is are was were be been".split())
_LAST = frozenset("last this next past yesterday".split())
_UNTIL = frozenset("until till through bis hasta jusqu fino ate tot".split())
_SINCE = frozenset("since as of from starting seit ab desde depuis da dal sinds vanaf on".split()) - {"on"}
_SPANS = frozenset(UNITS) | frozenset("night quarter fortnight request call".split())


def _per(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(b for a, b in pairwise(words) if a in ("per", "pro", "por", "par", "each") and b not in _SPANS)


_CONDITIONS = frozenset({"environment?", "daypart?", "dayset?", "season?", "meal?", "plan tier?"})
