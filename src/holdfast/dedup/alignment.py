"""What two statements share and in what they differ."""

from __future__ import annotations

import re
from typing import NamedTuple

from holdfast.dedup.statement import ContentItem, Statement
from holdfast.text.value_tokens import same_value

Pair = tuple[ContentItem, ContentItem]
VALUES = frozenset({"number", "version", "time", "date", "weekday"})
# Letters of a word that may stand for a longer one: chem, conf.
_SHORTENED = 4
_THOUSANDS = re.compile(r"\d{1,3}[.]\d{3}")
_TIMES = frozenset({"time", "date", "weekday"})


class Alignment(NamedTuple):
    """The items of two statements: those in both, and those in one only."""

    both: list[Pair]
    old: list[ContentItem]
    new: list[ContentItem]


def same(one: ContentItem, other: ContentItem) -> bool:
    """Return whether two items may mean one thing."""
    if not one.keys.isdisjoint(other.keys):
        return True
    if "word" in (one.kind, other.kind) and {one.kind, other.kind} <= {"word", "first"}:
        a, b = sorted((one.text.lower(), other.text.lower()), key=len)
        return len(a) >= _SHORTENED and b.startswith(a)
    if one.kind == other.kind == "number":
        return _whole(one) in other.keys or _whole(other) in one.keys
    if one.kind == other.kind == "date":
        return same_value(next(iter(one.keys)), next(iter(other.keys)))
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
        found = next((other for other in come if same(item, other)), None)
        if found is None:
            gone.append(item)
        else:
            come.remove(found)
            both.append((item, found))
    # A concept that one statement names twice needs no second partner.
    gone = [item for item in gone if item.kind != "concept" or not any(same(item, b) for _, b in both)]
    come = [item for item in come if item.kind != "concept" or not any(same(item, a) for a, _ in both)]
    return Alignment(both, gone, come)


def alike(one: ContentItem, other: ContentItem) -> str:
    """Return the type that two differing items share: a kind of value, a class, name, id; "" for words."""
    if one.kind in VALUES or other.kind in VALUES:
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


def _alike_values(one: ContentItem, other: ContentItem) -> str:
    if {one.kind, other.kind} <= {"number", "version"}:
        if one.before == other.before == "at":
            return "time"
        return "number" if one.unit == other.unit else "amount" if not (one.unit and other.unit) else ""
    if {one.kind, other.kind} == {"number", "time"} and not (one.unit or other.unit):
        return "time"
    if {one.kind, other.kind} <= _TIMES:
        return "time" if one.kind == other.kind or "time" not in (one.kind, other.kind) else ""
    return ""
