"""Alignment of two statements: the items that they share, and those of each alone."""

from __future__ import annotations

import re
from typing import NamedTuple

from holdfast.dedup.statement import ContentItem, Statement
from holdfast.text.value_tokens import same_value

Pair = tuple[ContentItem, ContentItem]
VALUES = frozenset({"number", "version", "time", "date", "weekday"})
# Letters, at least, of an abbreviation: chem, conf.
_SHORTENED = 4
_THOUSANDS = re.compile(r"\d{1,3}[.]\d{3}")


class Alignment(NamedTuple):
    """The items of two statements: those in both, and those in one only."""

    both: list[Pair]
    old: list[ContentItem]
    new: list[ContentItem]


def same(item: ContentItem, other: ContentItem) -> bool:
    """Return whether two items may mean one thing."""
    if not item.keys.isdisjoint(other.keys):
        return True
    if "word" in (item.kind, other.kind) and {item.kind, other.kind} <= {"word", "first"}:
        a, b = sorted((item.text.lower(), other.text.lower()), key=len)
        return len(a) >= _SHORTENED and b.startswith(a)
    if item.kind == other.kind == "number":
        return _whole(item) in other.keys or _whole(other) in item.keys
    if item.kind == other.kind == "date":
        return same_value(next(iter(item.keys)), next(iter(other.keys)))
    return False


def _whole(number: ContentItem) -> str:
    """Return the key of a number whose point stands for a comma, as in 1.200 for 1200; "" for others."""
    if not _THOUSANDS.fullmatch(number.text):
        return ""
    (key,) = number.keys
    return key.replace(f"#{float(number.text):g}", "#" + number.text.replace(".", ""), 1)


def difference(old: Statement, new: Statement) -> Alignment:
    """Pair the items of two statements that mean the same."""
    both: list[Pair] = []
    come = list(new.items)
    gone: list[ContentItem] = []
    for item in old.items:
        partner = next((other for other in come if same(item, other)), None)
        if partner is None:
            gone.append(item)
        else:
            come.remove(partner)
            both.append((item, partner))
    # A concept that one statement names twice needs no second partner.
    gone = [item for item in gone if item.kind != "concept" or not any(same(item, b) for _, b in both)]
    come = [item for item in come if item.kind != "concept" or not any(same(item, a) for a, _ in both)]
    return Alignment(both, gone, come)


def alike(old: ContentItem, new: ContentItem) -> str:
    """Return the type that two differing items share: a kind of value, a class, name, id; "" for words."""
    if old.kind in VALUES or new.kind in VALUES:
        return _alike_values(old, new)
    shared = old.classes & new.classes
    if shared:
        return max(shared, key=lambda label: (label.endswith("!"), label))
    if old.kind == new.kind == "id":
        return "id"
    if {old.kind, new.kind} <= {"name", "first"} or (
        "name" in (old.kind, new.kind) and (old.classes or new.classes)
    ):
        return "name"
    return ""


def _alike_values(old: ContentItem, new: ContentItem) -> str:
    if {old.kind, new.kind} <= {"number", "version"}:
        if old.before == new.before == "at":
            return "time"
        return "number" if old.unit == new.unit else "amount" if not (old.unit and new.unit) else ""
    if {old.kind, new.kind} == {"number", "time"} and not (old.unit or new.unit):
        return "time"
    if {old.kind, new.kind} <= {"time", "date", "weekday"}:
        return "time" if old.kind == new.kind or "time" not in (old.kind, new.kind) else ""
    return ""
