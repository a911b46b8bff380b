"""How a new text relates to those that are stored: a duplicate, an update, unsure, or new. No model, no network.

Both texts are read as statements (`statement.py`), and what is left when their common content is taken away decides.
Nothing left: a duplicate. One value for another of its type, of a relation that has one value at a time: an update.
Another subject, another condition, a list that grows: new. A wrong update destroys, so doubt is said to be doubt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.learn.change import Change, may_change
from holdfast.learn.decision import Case, Relation
from holdfast.learn.difference import alike, difference
from holdfast.learn.pairing import EXCLUSIVE, SWITCHED
from holdfast.learn.statement import Statement, read
from holdfast.learn.wording import Wording

__all__ = ["Relation", "Verdict", "classify", "compare"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a text relates to another one: which, and by which rule; `why` never quotes a text."""

    relation: Relation
    place: int | None
    why: str


_RANK = {"duplicate": 3, "update": 2, "unsure": 1, "new": 0}


def classify(text: str, existing: Sequence[str]) -> Verdict:
    """Say how a text relates to those that exist; the most relevant of them decides.

    >>> classify("The user has moved to Lisbon.", ["The user has a dog.", "The user lives in Berlin."]).relation
    'update'
    """
    new = read(text)
    best, strength, tied = Verdict("new", None, "nothing like it is stored"), -1.0, False
    for place, other in enumerate(existing):
        old = read(other)
        if not _may_relate(old, new):
            continue
        verdict, score = _compare(old, new)
        rank = _RANK[verdict.relation] + score
        if verdict.relation == "new" or rank < strength:
            continue
        tied = verdict.relation == "update" == best.relation and rank == strength
        if rank > strength:
            best, strength = Verdict(verdict.relation, place, verdict.why), rank
    if tied:
        return Verdict("unsure", best.place, "it may update one of several")
    return best


def compare(old: str, new: str) -> Verdict:
    """Say how a new text relates to one old text; the place is 0, or None for new."""
    verdict, _ = _compare(read(old), read(new))
    return verdict


def _may_relate(old: Statement, new: Statement) -> bool:
    return old.plain == new.plain or not old.keys.isdisjoint(new.keys) or may_change(old, new)


def _compare(old: Statement, new: Statement) -> tuple[Verdict, float]:
    relation, why, score = _decide(old, new)
    return Verdict(relation, None if relation == "new" else 0, why), score


_Decision = tuple[Relation, str, float]


def _decide(old: Statement, new: Statement) -> _Decision:
    if old.plain == new.plain and old.long == new.long:
        return "duplicate", "the same words", 0.99
    if old.long or new.long:
        return "new", "too long to compare", 0.0
    parts = difference(old, new)
    solid = [pair for pair in parts.both if not pair[0].light]
    change = Change(old, new, parts, solid)
    if not solid and parts.both and new.plan == old.plan and new.past == old.past and change.is_bare():
        labels = {alike(a, b) for a in parts.old for b in parts.new if not b.negated}
        if labels & (EXCLUSIVE | SWITCHED if new.change else EXCLUSIVE) and not any(
            "kin" in i.classes for i in (*parts.old, *parts.new)
        ):
            return "update", "another state of the same", 0.5
    if not solid:
        changed = change.decide() if may_change(old, new) else ""
        return ("update", changed, 0.5) if changed else ("new", "nothing in common", 0.0)
    share = 2 * len(parts.both) / (len(old.items) + len(new.items))
    score = min(share, 0.98)
    case = Case(old, new, parts, solid)
    relation, why = case.decide()
    changed = change.decide() if relation != "update" else ""
    if changed:
        return "update", changed, score
    if Wording(case).explain().says_the_same(relation):
        return "duplicate", why if relation == "duplicate" else "the same in other words", score
    if relation == "duplicate":
        return "unsure", "almost the same, in doubt", score
    if relation == "update" and change.is_doubtful():
        return "unsure", "it may be another one", score
    if relation == "unsure" and share < 0.34:
        return "new", "little in common", 0.0
    return relation, why, score
