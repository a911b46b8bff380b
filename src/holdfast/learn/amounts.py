"""Whether another amount or time of the same thing is given: a rent was raised, a meeting was moved."""

from __future__ import annotations

from holdfast.learn.apart import BE, NAMES, NUMBERS, PREPOSITIONS, Apart, is_written_otherwise
from holdfast.learn.cues import Cue, signals
from holdfast.learn.difference import alike
from holdfast.learn.statement import Item

_WEIGHTS = frozenset({"g", "lb"})
_UNTIL = frozenset("until till through bis hasta jusqu fino ate tot".split())
_AT = frozenset("at um a las to auf".split())
_SINCE = frozenset("since as of from starting seit ab desde depuis da dal sinds vanaf on".split()) - {"on"}


class Amounts(Apart):
    """A pair of which the amounts are compared."""

    def counted(self) -> str:
        """Say whether another amount of the same is given."""
        pairs = self._amounts()
        if (
            not pairs
            or len({p[0].place for p in pairs}) < len(pairs)
            or len({p[1].place for p in pairs}) < len(pairs)
        ):
            return ""
        a, b, label = pairs[0]
        if len(pairs) > 1 and {p[2] for p in pairs} != {"time"}:
            return ""
        if a.subject and b.subject and not self._counts_same(a, b):
            return ""
        values = [i for p in pairs for i in p[:2]]
        olds, news = ([i for i in self.rest(of_new=n) if i not in values] for n in (False, True))
        olds = [
            i
            for i in olds
            if not i.classes & {"daypart?", "frequency!"} and i.text.lower() not in ("every", "each")
        ]
        if any(i.kind in (*NAMES, "number") and i.kind != "first" for i in olds) or self.has_kin(999):
            return ""
        signal = signals(self.new)
        cues = [
            c for c in signal.of("amount") + signal.of("now") + signal.of("moves") if c.start <= b.place + 3
        ]
        anchors = [x for x in self.anchors() if not (self._is_counted(*x) or x[1].conditional)]
        if not anchors and self._counts_same(a, b) and not olds and not news:
            anchors = self.anchors()
        if not anchors:
            alone = a.unit and a.unit == b.unit and a.unit in _WEIGHTS and not olds and not news
            return "another amount of the same" if alone and cues and self.shares_user() else ""
        if cues:
            return self._announced(cues, b, (olds, news), label)
        if olds or news or self.old.event or self.new.event:
            return ""
        same = label == "number" and (bool(a.unit) or self._counts_same(a, b))
        return "another amount of the same" if same and self._is_whole() else ""

    def _amounts(self) -> list[tuple[Item, Item, str]]:
        """Pair the amounts and times that differ."""
        pairs = [
            (a, b, label)
            for a in self.parts.old
            for b in self.parts.new
            if (label := alike(a, b)) in ("number", "time", "amount", "frequency!")
            and not is_written_otherwise(a, b)
            and (not a.conditional or {self.old.words[a.place - 1], self.new.words[b.place - 1]} <= _UNTIL)
            and (b.place == 0 or self.new.words[b.place - 1] not in _SINCE)
        ]
        pairs = [p for p in pairs if {p[0].kind, p[1].kind} != {"number", "time"} or p[1].before in _AT]
        exact = [p for p in pairs if p[0].kind == p[1].kind]
        return exact if len(pairs) > 1 and exact else pairs

    def _announced(
        self, cues: list[Cue], value: Item, rest: tuple[list[Item], list[Item]], label: str
    ) -> str:
        olds, news = [i for i in rest[0] if not self._is_done(i)], rest[1]
        start = min(c.start for c in cues)
        first = min(b.place for _, b in self.anchors())
        own = [i for i in news if first < start and i.place < start and i.clause == value.clause]
        verbs = [c for c in cues if c.kind == "amount" and self.new.words[c.end - 1] not in PREPOSITIONS]
        if verbs and verbs[0].start < first < value.place:
            news = [i for i in news if i.place > verbs[0].start]  # who did it says nothing
        if own or len(olds) > 1 or (olds and news) or len(news) > 2:
            return ""
        amount = any(c.kind == "amount" for c in cues)
        bare = label == "amount" and bool(olds)
        return "another amount, and said to be a change" if (amount and not bare) or label != "amount" else ""

    def _is_done(self, item: Item) -> bool:
        """Say whether an item is the participle of a predicate: is heated to, is limited to."""
        return item.place > 0 and self.old.words[item.place - 1] in BE and item.text.endswith(("ed", "en"))

    def _is_whole(self) -> bool:
        return not any(i.conditional for i in (*self.parts.old, *self.parts.new))

    def _is_counted(self, a: Item, b: Item) -> bool:
        """Say whether a shared noun is only what is counted."""
        before = (
            {i.place + 1 for i in self.parts.old if i.kind in NUMBERS},
            {i.place + 1 for i in self.parts.new if i.kind in NUMBERS},
        )
        return a.place in before[0] and b.place in before[1]

    def _counts_same(self, a: Item, b: Item) -> bool:
        """Say whether the same noun follows two numbers."""
        return any(x.place == a.place + 1 and y.place == b.place + 1 for x, y in self.solid)
