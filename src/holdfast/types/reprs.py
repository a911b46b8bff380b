"""The `repr` of large objects: one line with their distinctive fields."""

from __future__ import annotations

from dataclasses import MISSING, fields
from datetime import datetime
from reprlib import Repr
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class _Short(Repr):
    """Cut long texts in the middle, and count the items of lists."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 80
        self.maxdict = 10

    def repr_datetime(self, at: datetime, _level: int) -> str:
        return at.isoformat(" ", "seconds")

    def repr_float(self, number: float, _level: int) -> str:
        return f"{number:.3f}"

    def repr_tuple(self, items: tuple[object, ...], level: int) -> str:
        plain = all(isinstance(member, str | int) for member in items)
        return super().repr_tuple(items, level) if plain else f"<{len(items)}>"

    def repr_list(self, items: list[object], _level: int) -> str:
        return f"<{len(items)}>"


_SHORT = _Short()


def brief(item: DataclassInstance) -> str:
    """Return the `repr` of a dataclass on one line: the fields that are not as usual, cut where long."""
    told = []
    for field in fields(item):
        value = getattr(item, field.name)
        usual = field.default if field.default_factory is MISSING else field.default_factory()
        if field.repr and value != usual:
            told.append(f"{field.name}={_SHORT.repr(value)}")
    return f"{type(item).__name__}({', '.join(told)})"
