"""What two statements share and in what they differ."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.dedup.statement_parser import Item, Statement
from holdfast.dedup.value_tokens import same_value

_VALUES = frozenset({"number", "version", "time", "date", "weekday"})
_SHORTENED = 4  # letters of a word that may stand for a longer one: chem, conf
_TIMES = frozenset({"time", "date", "weekday"})


@dataclass(frozen=True, slots=True)
class Difference:
    """The items of two statements: those in both, and those in one only."""

    both: tuple[tuple[Item, Item], ...]
    old: tuple[Item, ...]
    new: tuple[Item, ...]


def same(one: Item, other: Item) -> bool:
    """Say whether two items may mean one thing."""
    if not one.keys.isdisjoint(other.keys):
        return True
    if "word" in (one.kind, other.kind) and {one.kind, other.kind} <= {"word", "first"}:
        a, b = sorted((one.text.lower(), other.text.lower()), key=len)
        return len(a) >= _SHORTENED and b.startswith(a)
    if one.kind == other.kind == "date":
        return same_value(next(iter(one.keys)), next(iter(other.keys)))
    return False


def difference(old: Statement, new: Statement) -> Difference:
    """Pair the items of two statements that mean the same."""
    both: list[tuple[Item, Item]] = []
    left = list(new.items)
    rest: list[Item] = []
    for item in old.items:
        found = next((other for other in left if same(item, other)), None)
        if found is None:
            rest.append(item)
        else:
            left.remove(found)
            both.append((item, found))
    shown = {id(b) for _, b in both}
    # A word that is said in two places needs no partner twice.
    rest = [item for item in rest if not any(same(item, b) and item.kind == "concept" for _, b in both)]
    left = [
        item
        for item in left
        if id(item) in shown or not any(same(item, a) and item.kind == "concept" for a, _ in both)
    ]
    return Difference(tuple(both), tuple(rest), tuple(left))


def alike(one: Item, other: Item) -> str:
    """Say of what one type two differing items are: a kind of value, a class, name, id; nothing for two words."""
    if one.kind in _VALUES or other.kind in _VALUES:
        return _alike_values(one, other)
    shared = one.classes & other.classes
    if shared:
        return max(shared, key=lambda label: (label.endswith("!"), label))
    if one.kind == other.kind == "id":
        return "id"
    if {one.kind, other.kind} <= {"name", "first"} or (
        "name" in (one.kind, other.kind) and (one.classes or other.classes)
    ):
        return "name"
    return ""


def _alike_values(one: Item, other: Item) -> str:
    if {one.kind, other.kind} <= {"number", "version"}:
        if one.before == other.before == "at":
            return "time"
        return "number" if one.unit == other.unit else "amount" if not (one.unit and other.unit) else ""
    if {one.kind, other.kind} == {"number", "time"} and not (one.unit or other.unit):
        return "time"
    if {one.kind, other.kind} <= _TIMES:
        return "time" if one.kind == other.kind or "time" not in (one.kind, other.kind) else ""
    return ""
