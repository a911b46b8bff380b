"""Whether a text tells that what another one says has changed: an announced change, a state that follows a state.

The wordings stand in `changes.txt`. A change is believed only when both texts speak of one thing, and neither of them
has a name, a condition or a qualifier of its own that may make it another thing. `decision.py` weighs values.
"""

from __future__ import annotations

from holdfast.learn.amounts import Amounts
from holdfast.learn.apart import GENERIC, NAMES, TITLES, is_attribute
from holdfast.learn.cues import DENIALS, MARKS, Cue, flags_of_kinds, may_change, signals
from holdfast.learn.difference import alike
from holdfast.learn.frames import framed, is_denied, is_retooled, is_unlike
from holdfast.learn.lexicon import stem
from holdfast.learn.pairing import STATES, TIMED, is_relation, is_weak
from holdfast.learn.slot import are_opposites, swapped
from holdfast.learn.statement import Item

__all__ = ["Change", "may_change"]

_ALSO = frozenset(
    "also too additionally another besides second both auch zusatzlich tambien aussi egalement anche ook 也 还".split()
)
_LONGEST_PARTICLE = 3
_STANDS = frozenset(
    "is are stands stand sits sit hangs hang lies lie lives live sleeps sleep works relocated shifted transferred moved put kept stored go goes".split()
)
_PLACES = frozenset("in on at under behind into to onto near beside inside".split())
_BY = frozenset("by von por par da door".split())
# What leaves by itself, and what goes before a verb that says what was done to a thing.
_ALONE = frozenset("left retired resigned died dead passed stepped shut gone quit verlassen weg".split())
_PASSIVE = frozenset("is are was were be been being has have had wurde worden est fue foi".split())
_SUCCEEDED = (
    "is the",
    "is now the",
    "took over as",
    "takes over as",
    "is the new",
    "holds the",
    "appointed",
    "elected",
    "became",
    "becomes",
    "has become",
    "was made",
    "now",
)
_PLACED = frozenset({"city", "country"})
_FROM = frozenset("from off out von 从".split())
_MOVED = frozenset(
    map(stem, "moved migrated switched transferred relocated shifted changed converted".split())
)


class Change(Amounts):
    """A pair of which it is asked whether the new text replaces the old one."""

    def decide(self) -> str:
        """Name the rule by which the new statement replaces the old one; nothing when none does."""
        if _ALSO.isdisjoint(self.new.words) and framed(self.old, self.new, self.parts):
            return "another value in the same words"
        if is_denied(self.old, self.new):
            return "the opposite of it"
        if self.new.plan or self.new.past or self.new.long or self.old.past:
            return ""
        if not _ALSO.isdisjoint(self.new.words) or self.is_other():
            return ""
        if self.is_numbered():
            return ""
        found = self._flipped() or self._replaced() or self.counted() or self._moved() or self._turned()
        found = found or self._placed() or self._opposed() or self._succeeded()
        if self.anchors() and is_retooled(self.rest(of_new=False), self.rest(of_new=True)):
            found = found or "another tool for the same"
        return found or ("another value in the same words" if swapped(self.old, self.new) else "")

    def is_doubtful(self) -> bool:
        """Say whether something speaks against an update that the values alone suggest."""
        if framed(self.old, self.new, self.parts):
            return False
        return is_unlike(self.old, self.new, self.parts) or Amounts.is_doubtful(self)

    def _flipped(self) -> str:
        """Name the state that came after the state that is told of."""
        flags = flags_of_kinds()
        before, after = signals(self.old).cues, signals(self.new).cues
        for cue in after:
            if cue.denied or not cue.side:
                continue
            marks = flags[cue.kind]
            for state in before:
                if (
                    state.kind != cue.kind
                    or state.denied
                    or not (
                        (state.side, cue.side) == ("<", ">") or ("sym" in marks and state.side != cue.side)
                    )
                ):
                    continue
                if self._follows(state, cue, marks):
                    return f"another state: {cue.kind}"
        return ""

    def _follows(self, state: Cue, cue: Cue, marks: frozenset[str]) -> bool:
        """Say whether the state that the new text tells of comes after the one that the old text tells of."""
        same = self.old.words[state.start : state.end] == self.new.words[cue.start : cue.end]
        if same or ("cue" in marks and not signals(self.new).of("now")):
            return False
        if self.has_kin(cue.end + 2) or any(
            c.kind == cue.kind and c.side == cue.side and not c.denied for c in signals(self.old).cues
        ):
            return False
        timed = [[i for i in of if i.kind in TIMED] for of in (self.parts.old, self.parts.new)]
        if all(timed) or ("sym" in marks and any(i.kind == "weekday" for i in timed[1])):
            return False
        clause = self._clause(cue)
        olds = [i for i in self.rest(of_new=False) if not state.start <= i.place < state.end]
        news = [i for i in self.rest(of_new=True) if i.clause in clause]
        if "value" in marks:
            unspaced = all(i.kind == "cjk" for i in (*self.rest(of_new=False), *self.rest(of_new=True)))
            return (self.shares_user() or unspaced) and self._gives_value(cue, news, clause)
        return self._is_of_one(state, cue, olds, news, alone="self" in marks)

    def _gives_value(self, cue: Cue, news: list[Item], clause: set[int]) -> bool:
        """Say whether a wording has a value, after it or, where the verb comes last, before it."""
        after = [i for i in self.parts.new if i.place >= cue.end]
        named = any(i.kind in (*NAMES, "number") or i.classes & _PLACED for i in news)
        named = named or bool(
            after and (cue.kind == "trade" or (cue.kind == "tier" and after[0].kind == "concept"))
        )
        others = [
            i for i in news if i.place < cue.start and (len(i.text) > _LONGEST_PARTICLE or i.kind == "cjk")
        ]
        last = not any(i.place >= cue.end and i.clause in clause and not i.light for i in self.new.items)
        return named and (not others or (len(others) == 1 and last))

    def _is_of_one(self, state: Cue, cue: Cue, olds: list[Item], news: list[Item], *, alone: bool) -> bool:
        """Say whether two states are of one thing, or of one person of whom they may be told alone."""
        early = [i for i in news if i.place < cue.start]
        user = [any("=user" in i.keys for i in of.items) for of in (self.old, self.new)]
        if (user[0] and any(i.kind in ("name", "first") for i in early)) or (
            user == [False, True] and any(i.subject for i in olds)
        ):
            return False
        named = all(any(i.kind in (*NAMES, "number") for i in left) for left in (olds, news))
        anchored = self._state_anchors(state, cue)
        if alone and not anchored:
            return not named and self.shares_user() and not any(i.kind in NAMES for i in early)
        foreign = any(i.kind in NAMES and i.subject for i in self.parts.new)
        if foreign and any(i.kind in NAMES for i in olds):
            return False
        if not anchored or named or (early and olds) or (olds and news and len(anchored) < 2):
            return False
        return any(b.clause in self._clause(cue) for _, b in anchored) and len(olds) <= 2

    def _state_anchors(self, state: Cue, cue: Cue) -> list[tuple[Item, Item]]:
        shared = self.anchors()
        if cue.kind in (
            "fail",
            "setup",
            "learning",
        ):  # what works or is missing may be named by a verb: can't swim
            shared = [
                p for p in self.solid if not (is_weak(p[0]) or p[0].keys <= GENERIC or p[0].keys & STATES)
            ]
        return [
            (a, b)
            for a, b in shared
            if a.kind == "name" or not (state.start <= a.place < state.end or cue.start <= b.place < cue.end)
        ]

    def _clause(self, cue: Cue) -> set[int]:
        """Give the clause of a cue, by the items that stand around it."""
        here = [i.clause for i in self.new.items if i.place <= cue.start]
        near = [i.clause for i in self.new.items if cue.start <= i.place < cue.end + 3]
        return {here[-1] if here else 0, *near}

    def _replaced(self) -> str:
        """Say whether the new text says that the old value is gone, and names another one."""
        values = [
            (a, b)
            for a, b in self.solid
            if not (
                (a.subject and self.new.words[b.place - 1] not in _BY)
                or a.negated
                or a.gone
                or is_relation(a)
                or a.kind in TIMED
                or a.keys <= GENERIC
            )
            and not (self._was_left(a) or a.unit or self._is_modifier(a))
            and a.text.lower() not in TITLES
        ]
        cues = signals(self.new).cues
        for cue in cues:
            if cue.kind not in ("leave", "away") or (cue.kind == "away" and not self._is_moving(cue)):
                continue
            for _, b in values:
                if b.clause in self._clause(cue) and self._is_left(b, cue):
                    return self._other_value(b, cue)
        return ""

    def _is_moving(self, cue: Cue) -> bool:
        """Say whether `from` goes with a verb that tells of a change, or the wording says it alone: instead of."""
        if self.new.words[cue.start] not in _FROM:
            return True
        moves = signals(self.new).of("moves") + signals(self.new).of("amount")
        return bool(moves) or any(stem(word) in _MOVED for word in self.new.words[: cue.start])

    def _is_modifier(self, item: Item) -> bool:
        return any(i.place == item.place + 1 and i.kind in ("word", "concept") for i in self.parts.old)

    def _was_left(self, item: Item) -> bool:
        return any(
            c.kind in ("away", "leave")
            and (c.end <= item.place <= c.end + 1 or c.start - 2 <= item.place < c.start)
            for c in signals(self.old).cues
        )

    def _is_left(self, item: Item, cue: Cue) -> bool:
        """Say whether a cue speaks of an item: directly after it, or before it as its subject."""
        between = self.new.words[cue.end : item.place]
        low, high = sorted((cue.start, item.place))
        inside = [i for i in self.new.items if low < i.place < high and not i.light and not is_relation(i)]
        if len([i for i in inside if i.kind != item.kind or i.kind == "word"]) > (
            self.new.words[cue.start] in DENIALS
        ):
            return cue.start <= item.place < cue.end
        if (
            item.place >= cue.end
            and not set(between) & (MARKS - {"."})
            and len(between) <= 2
            and not set(between) & {"to", "into", "for", "with"}
        ):
            return True
        if cue.kind == "away" or self.new.words[cue.start] in DENIALS:
            return cue.start < item.place < cue.end
        if not cue.start <= item.place < cue.end:
            if self.new.words[cue.start] not in _ALONE and self.new.words[cue.start - 1] not in _PASSIVE:
                return False
            between = self.new.words[item.place + 1 : cue.start]
            return item.place < cue.start and len(between) <= 3 and not set(between) & MARKS
        return True

    def _other_value(self, gone: Item, cue: Cue) -> str:
        olds, news = self.rest(of_new=False), self.rest(of_new=True)
        later = [
            i
            for i in news
            if i.kind in ("name", "id", "cjk") or i.classes or (i.kind == gone.kind and i.kind != "word")
        ]
        actors = [i for i in news if i.place < min(cue.start, gone.place) and i.clause == gone.clause]
        if self.new.words[cue.start] in DENIALS and any(i.subject for i in actors):
            return ""
        if any(i.kind in NAMES or "kin" in i.classes for i in actors):
            return ""
        late = [i for i in news if i.place > cue.end]
        if (
            not later
            and late
            and (cue.end - cue.start > 1 or self.new.words[late[0].place - 1] in ("with", "by"))
        ):
            later = late if cue.kind == "away" or self.new.words[late[0].place - 1] in ("with", "by") else []
        if cue.kind == "away" and cue.end - cue.start > 1 and not later:
            later = [i for i in news if i.kind != "number"]
        if not later and not olds:
            moved = cue.kind == "away" and cue.start > 0 and stem(self.new.words[cue.start - 1]) in _MOVED
            others = [a for a, b in self.anchors() if b is not gone and not a.conditional]
            ended = (
                cue.kind == "leave"
                and cue.end <= gone.place <= cue.end + 1
                and not news
                and self.shares_user()
            )
            subject = any(a.subject and b.subject and not a.unit for a, b in self.anchors() if b is not gone)
            left = cue.kind == "leave" and cue.end <= gone.place <= cue.end + 1 and subject
            ended = ended or (left and self.new.words[cue.start] == "left")
            return "it holds no longer" if (moved and others) or ended else ""
        if not later:
            return ""
        if any(i.subject and i.kind in NAMES for i in olds) or len(olds) > 2:
            return ""
        return "it names the value that it replaces"

    def _moved(self) -> str:
        """Say whether another name or value of a class is given, and that it is a change."""
        olds, news = _whole_names(self.rest(of_new=False)), _whole_names(self.rest(of_new=True))
        pairs = [(a, b) for a in olds for b in news if (label := alike(a, b)) and label[-1] != "?"]
        if len(pairs) != 1 or any("many" in a.flags for a, _ in self.solid) or self.has_kin(999):
            return ""
        a, b = pairs[0]
        cues = signals(self.new).of("moves") + signals(self.new).of("now")
        turned = a.subject and not b.subject and any(is_attribute(x) for x, _ in self.solid)
        if (
            (a.subject and not turned)
            or b.subject
            or a.kind == "number"
            or not cues
            or b.negated
            or a.negated
        ):
            return ""
        anchors, others = self.anchors(), len(olds) + len(news) - 2
        sure = any(x.kind in ("name", "id") or (x.subject and y.subject) for x, y in anchors)
        if turned or len(anchors) > 1:
            sure = len(anchors) > 1
        exact = sum(x.kind in ("name", "id", "number") for x, _ in anchors) > 1
        return "another value, and said to be a change" if sure and others <= exact else ""

    def _placed(self) -> str:
        """Say whether a thing is somewhere else than it was."""
        olds, news = (
            [i for i in self.rest(of_new=n) if i.text.lower() not in _STANDS] for n in (False, True)
        )
        if (
            len(olds) != 1
            or len(news) != 1
            or (self.new.event and not signals(self.new).of("moves"))
            or any(i.kind in TIMED for i in self.parts.new)
        ):
            return ""
        a, b = olds[0], news[0]
        subjects = [x for x, y in self.anchors() if x.place < a.place and y.place < b.place]
        if (
            not subjects
            or a.subject
            or b.subject
            or a.classes != b.classes
            or (a.kind == "name") != (b.kind == "name")
        ):
            return ""
        there = [_lead(of.words, i.place) for of, i in ((self.old, a), (self.new, b))]
        told = signals(self.new).of("now") + signals(self.new).of("moves")
        stands = not _STANDS.isdisjoint(self.new.words)
        return "it is in another place" if there[0] and there[1] and told and stands else ""

    def _succeeded(self) -> str:
        """Say whether somebody else has a role that one person has: Lea is the treasurer, Omar took over as treasurer."""
        olds, news = _whole_names(self.rest(of_new=False)), _whole_names(self.rest(of_new=True))
        if len(olds) != 1 or len(news) != 1 or not {olds[0].kind, news[0].kind} <= {"name", "first"}:
            return ""
        if any(i.kind in TIMED or i.conditional or i.negated for i in (*self.parts.old, *self.parts.new)):
            return ""
        words, told = self.old.words, " ".join(self.new.words)
        roles = [
            a
            for a, _ in self.solid
            if a.place > olds[0].place
            and ("kin" not in a.classes or "profession!" in a.classes)
            and words[a.place - 1] == "the"
            and words[a.place - 2] in ("is", "be")
        ]
        follows = any(f" {said} " in f" {told} " for said in _SUCCEEDED)
        return "another one has the role" if roles and follows else ""

    def _opposed(self) -> str:
        """Say whether a word of the new text is the opposite of one of the old text."""
        olds, news = self.rest(of_new=False), self.rest(of_new=True)
        if not (0 < len(olds) < 3 and 0 < len(news) < 3) or min(len(olds), len(news)) > 1:
            return ""
        if any(i.kind in NAMES or i.subject for i in olds + news if i.kind != "word") or not self.anchors():
            return ""
        found = any(are_opposites(a.text.lower(), b.text.lower()) for a in olds for b in news)
        return "the opposite of the same" if found else ""

    def _turned(self) -> str:
        """Say whether the new text denies what the old one says, and says that this is a change."""
        flips = [(a, b) for a, b in self.solid if a.negated != b.negated]
        others = sum(i.negated for i in (*self.parts.old, *self.parts.new) if not i.light)
        told = self.new.change or signals(self.new).of("switch")
        if len(flips) != 1 or others or not told or flips[0][0].subject != flips[0][1].subject:
            return ""
        olds, news = self.rest(of_new=False), self.rest(of_new=True)
        if any(i.kind in NAMES or "kin" in i.classes for i in news if i.place < flips[0][1].place):
            return ""
        if any(alike(a, b) for a in olds for b in news) or any(i.conditional for i in self.parts.new):
            return ""
        noun = not is_relation(flips[0][0]) or any(p[0] is not flips[0][0] for p in self.anchors())
        return "it holds no longer" if noun and len(olds) <= 2 and not (olds and news) else ""


def _lead(words: tuple[str, ...], place: int) -> bool:
    """Say whether a preposition of place goes before a word."""
    return not _PLACES.isdisjoint(words[max(0, place - 3) : place])


def _whole_names(items: list[Item]) -> list[Item]:
    """Give the items, of a name of several words its last word alone."""
    found: list[Item] = []
    for item in items:
        near = found and item.place - found[-1].place <= 2 and item.kind in ("name", "first")
        titled = near and found[-1].text.lower() in TITLES
        if titled or (near and item.kind == found[-1].kind == "name" and item.place - found[-1].place == 1):
            found[-1] = item
        else:
            found.append(item)
    return found
