"""Value preservation: whether a text in place of others loses or adds values."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.dedup.alignment import VALUES
from holdfast.dedup.statement import ContentItem, Statement
from holdfast.dedup.statement_parser import parse_statement

_VALUES = VALUES | {"name", "first", "id", "cjk"}


def loses(text: str, texts: Sequence[str]) -> bool:
    """Return whether a text lacks a value of others; see `holdfast.dedup.loses`."""
    said, others = parse_statement(text), [parse_statement(other) for other in texts]
    if said.long or any(other.long for other in others):
        return True
    return any(not _is_stated(value, [said]) for other in others for value in _values(other))


def adds(text: str, texts: Sequence[str]) -> bool:
    """Return whether a text has a value that no other one has; see `holdfast.dedup.adds`."""
    others = [parse_statement(other) for other in texts]
    values = (value for value in _values(parse_statement(text)) if value.kind != "first")
    return any(not _is_stated(value, others) for value in values)


def _values(statement: Statement) -> list[ContentItem]:
    return [
        item
        for item in statement.items
        if item.negated or (not item.light and (item.kind in _VALUES or item.classes))
    ]


def _is_stated(value: ContentItem, statements: Sequence[Statement]) -> bool:
    return any(
        item.negated == value.negated and _covers(item, value)
        for statement in statements
        for item in statement.items
    )


def _covers(item: ContentItem, value: ContentItem) -> bool:
    """Return whether an item has the meaning of a value; a date may be more exact."""
    if not item.keys.isdisjoint(value.keys):
        return True
    if item.kind != "date" or value.kind != "date":
        return False
    days = zip(_day(item), _day(value), strict=True)
    return all(wanted in ("", there) for there, wanted in days)


def _day(date: ContentItem) -> list[str]:
    """Return year, month and day of a date, "" for a part that it leaves open."""
    (key,) = date.keys
    return f"{key[len('date:') :]}--".split("-")[:3]
