"""The decision how two statements relate, from what they share and in what they differ."""

from __future__ import annotations

from typing import Literal

from holdfast.learn.apart import PAST_LIFE
from holdfast.learn.difference import alike
from holdfast.learn.pairing import ANCHORS, EVENTS, EXCLUSIVE, STATES, TIMED, Pairing, is_relation, is_weak
from holdfast.learn.statement import Item

_LEADING = frozenset("leads lead owns own manages manage maintains maintain heads runs".split())
Relation = Literal["new", "duplicate", "update", "unsure"]
Pairs = list[tuple[Item, Item, str]]  # an item of the old text, one of the new text, their common type


class Case(Pairing):
    """A pairing that is decided; each step gives the relation and the rule that names it."""

    def decide(self) -> tuple[Relation, str]:
        """Decide, and name the rule."""
        old_left, new_left = (
            [item for item in left if not (item.light or item.gone or self.is_implied(item))]
            for left in (self.parts.old, self.parts.new)
        )
        if self.has_another_subject(old_left, new_left):
            return "new", "another subject"
        if (self.old.plan, self.old.past) != (self.new.plan, self.new.past):
            return (
                ("unsure", "a plan or the past beside a fact")
                if not (old_left and new_left)
                else ("new", "a plan or the past beside a fact")
            )
        replaced = [
            a for a, b in self.solid if not a.gone and not is_relation(a) and (b.gone or self.denies(a, b))
        ]
        if replaced:
            return self._replaced(old_left, new_left)
        if self.is_turned_round():
            return self._negated(old_left, new_left)
        if old_left and new_left and not self.is_over(old_left, new_left):
            return self._values(old_left, new_left)
        if self.is_over(old_left, new_left):
            return "update", "it is over"
        if new_left and self.is_paraphrase([], new_left):
            return "duplicate", "the same values in other words"
        if new_left:
            return (
                ("new", "another subject")
                if any(self.identifies(item, self.new) for item in new_left)
                else ("unsure", "it adds detail")
            )
        if old_left:
            return self._less(old_left)
        return self._equal()

    def _equal(self) -> tuple[Relation, str]:
        if self.is_reordered():
            return "unsure", "the same words in another order"
        return "duplicate", "the same content"

    def _less(self, left: list[Item]) -> tuple[Relation, str]:
        left = [item for item in left if not is_weak(item) or self.is_condition(item)]
        subjects = [item for item in left if item.subject]
        if len(subjects) == 1 and self.is_pinned() and subjects[0].kind not in ANCHORS:
            left = [item for item in left if not item.subject]
        if any("kin" in item.classes for item in subjects):
            return "new", "another subject"
        if any(
            self.identifies(item, self.old)
            or item.conditional
            or (item.negated and not any(alike(item, a) for a, _ in self.solid))
            or "=only" in item.keys
            for item in left
        ):
            return "unsure", "it leaves out a condition or the subject"
        if len(self.solid) < 2 and len(left) > 1:
            return "unsure", "it says much less"
        if self.is_reordered():
            return "unsure", "the same words in another order"
        return "duplicate", "it says less"

    def _negated(self, old_left: list[Item], new_left: list[Item]) -> tuple[Relation, str]:
        if not old_left and not new_left:
            return "update", "the opposite of it"
        tame = not any(
            self.identifies(i, self.new)
            or i.conditional
            or i.kind == "time"
            or (i.kind == "number" and not (self.new.change and i.unit))
            for i in new_left
        )
        if tame and all(i.kind in ANCHORS for i in old_left) and (self.new.change or not new_left):
            return "update", "it holds no longer"
        states = any(a.keys & STATES and a.negated != b.negated for a, b in self.solid)
        nouns = sum(not is_relation(a) for a, _ in self.solid)
        if (
            states
            and nouns
            and tame
            and not any(i.subject for i in old_left)
            and not any(alike(a, b) for a in old_left for b in new_left)
        ):
            return "update", "another state"
        if old_left and new_left:
            return "new", "the opposite, of another thing"
        return "unsure", "the opposite in part"

    def _replaced(self, old_left: list[Item], new_left: list[Item]) -> tuple[Relation, str]:
        values = [item for item in new_left if not item.subject]
        swapped = [b for a, b in self.solid if a.gone and not b.gone]
        if (
            (values or swapped)
            and len(old_left) <= 2
            and not any(self.identifies(i, self.old) for i in old_left)
        ):
            return "update", "it names the value that it replaces"
        return "unsure", "it names what was"

    def _values(self, old_left: list[Item], new_left: list[Item]) -> tuple[Relation, str]:
        pairs: Pairs = []
        olds, news = list(old_left), list(new_left)
        for a in old_left:
            found = next(((b, alike(a, b)) for b in news if alike(a, b)), None)
            if found:
                pairs.append((a, *found))
                olds.remove(a)
                news.remove(found[0])
        if any(label.endswith("?") for *_, label in pairs):
            return "new", "another condition"
        if any(i.conditional for i in old_left + new_left):
            return "unsure", "values under a condition"
        if any(i.gone and any(alike(i, b) for _, b, _ in pairs) for i in self.parts.new):
            return "new", "it replaces another value"
        paraphrase = not pairs and self.is_paraphrase(olds, news)
        if paraphrase:
            return "duplicate", "the same values in other words"
        attributes = [[i for i in left if "one" in i.flags] for left in (olds, news)]
        if all(attributes) and not any("change" in i.flags for i in attributes[1]):
            return "new", "another attribute"
        if self.has_many_values() and not self.has_one_value():
            return "new", "a list that grows"
        return self._weigh(pairs, olds, news)

    def _weigh(self, pairs: Pairs, olds: list[Item], news: list[Item]) -> tuple[Relation, str]:
        strong, change = self.has_one_value(), self.new.change
        if self._leads_another([*olds, *news, *(i for p in pairs for i in p[:2])]):
            return "new", "another thing of the same person"
        if not pairs:
            if (
                len(olds) == len(news) == 1
                and self.replaces(olds[0], news[0])
                and (strong or self.is_keyed())
            ):
                return "update", "another value of the attribute"
            return "unsure", "other words about the same"
        doubt = self._doubt(pairs, olds, news)
        if doubt:
            return doubt
        labels = {label for *_, label in pairs}
        olds = [i for i in olds if not is_relation(i)]
        news = [i for i in news if not is_relation(i) and not (change and i.kind in TIMED)]
        if not olds and not news:
            exclusive = labels <= {"number", "time"} or any(label.endswith("!") for label in labels)
            return self._clean(pairs[0], exclusive=exclusive, strong=strong)
        if any("kin" in i.classes for i in olds + news):
            return "new", "another subject"
        if any(i.subject for i in olds) and any(i.subject for i in news):
            return "new", "another subject"
        if self._leaves_doubt(olds + news) or (labels == {"amount"} and not strong):
            return "unsure", "another value, and perhaps another subject"
        nouns = sum(
            a.kind not in TIMED and a.kind != "number" and "frequency!" not in a.classes
            for a, _ in self.solid
        )
        said = change or "stage!" in labels
        if said and max(len(olds), len(news)) <= 1 and len(olds) + len(news) <= nouns:
            return "update", "another value, and said to be a change"
        return "unsure", "another value, and more"

    def _doubt(self, pairs: Pairs, olds: list[Item], news: list[Item]) -> tuple[Relation, str] | None:
        """Say what speaks against one value having replaced another one; None for nothing."""
        labels = {label for *_, label in pairs}
        if any(a.negated and b.negated and label == "stage!" for a, b, label in pairs):
            return "unsure", "two denials"
        if any(a.text.lower() in PAST_LIFE and not self.new.change for a, _ in self.solid):
            return "new", "another time of life"
        if any(label == "stage!" and b.before in ("the", "a", "an") for _, b, label in pairs):
            return "unsure", "a state that is a noun"
        timed = self.has_one_value() and labels == {"time"}
        if any(a.subject and b.subject and not timed for a, b, _ in pairs):
            return "new", "another subject"
        if len(pairs) > 1 and labels != {"time"}:
            return "unsure", "several values differ"
        displaced = any(i.subject and i.kind in ("name", "first") for i in self.parts.old)
        if displaced and any(
            b.subject and not a.subject and b.kind in ("name", "first") for a, b in self.solid
        ):
            return "unsure", "another role"
        if any("=vintage" in i.keys for i in olds + news):
            return "unsure", "the old one beside the new one"
        if any(i.negated for i in olds + news):
            return "unsure", "a value and a denial"
        return None

    def _leads_another(self, left: list[Item]) -> bool:
        """Say whether somebody leads or owns two things: one who leads the payments team may lead another one."""
        return not self.new.change and any(
            a.text.lower() in _LEADING and b.text.lower() in _LEADING and not any(x.subject for x in left)
            for a, b in self.solid
        )

    def _leaves_doubt(self, left: list[Item]) -> bool:
        moved = any(a.kind in ("name", "first") and a.subject != b.subject for a, b in self.solid)
        return moved or self.has_its_own_subject() or any(self.is_condition(i) for i in left)

    def _clean(self, pair: tuple[Item, Item, str], *, exclusive: bool, strong: bool) -> tuple[Relation, str]:
        a, b, label = pair
        if any(x.keys & EVENTS for x, _ in self.solid) or (
            self.old.event and self.new.event and not strong and label in ("time", "number")
        ):
            return "new", "another event"
        if strong or self.is_keyed():
            return "update", "another value of the attribute"
        if self.new.change and (exclusive or label == "name" or self.is_aligned(a, b)):
            return "update", "another value, and said to be a change"
        if (
            label == "number"
            and not a.subject
            and not b.subject
            and (len(self.solid) > 1 or a.before == b.before)
        ):
            return "update", "the same words but for a number"
        preferring = any(x.keys & {"=prefer", "=favourite", "=default"} for x, _ in self.solid)
        if (
            label in EXCLUSIVE
            or (preferring and label.endswith("!"))
            or (label == "stage!" and a.before == b.before)
        ):
            return "update", "another state of the same"
        if label == "time" and any("=user" in x.keys for x, _ in self.parts.both):
            return "unsure", "another time that may hold beside it"
        if exclusive and not self.new.indefinite and self.is_aligned(a, b) and len(self.solid) > 1:
            return "update", "the same words but for a value"
        return "unsure", "another value that may hold beside it"
