"""Filters of the values of a LangGraph store.

A filter names keys of a value, or a path of keys where a name has dots and no key is called so. It gives each
a value to be equal to, an object whose keys are, or operators. A key that is missing is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt
from typing import Any, TypeGuard

from holdfast.errors import InvalidInput, shown

# Of two numbers, or of two texts.
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
_PLAIN = {str, int, float, bool, type(None)}
_OPERATORS = {"$eq", "$ne", *_ORDERS}


def check_filter(wanted: object) -> None:
    """Raise InvalidInput if it is no filter, or has an operator that there is not."""
    if not isinstance(wanted, Mapping) or not all(isinstance(key, str) for key in wanted):
        raise InvalidInput(f"The filter {shown(wanted)} is not a dict with text as keys.", "Pass one.")
    for value in wanted.values():
        _check_operators(value)


def passes(value: Mapping[str, object], wanted: Mapping[str, object]) -> bool:
    """Return whether a value passes a filter that was checked."""
    return all(_matches(_at(value, key), other) for key, other in wanted.items())


def _at(value: Mapping[str, object], key: str) -> object:
    """Return the value of a key, or at a path of keys."""
    if key in value or "." not in key:
        return value.get(key)
    inner: object = value
    for part in key.split("."):
        inner = inner.get(part) if isinstance(inner, Mapping) else None
    return inner


def _check_operators(value: object) -> None:
    if not isinstance(value, Mapping):
        return
    unknown = value.keys() - _OPERATORS
    if unknown and any(map(_is_operator, value)):
        what = f"{shown(min(unknown, key=str))} is no operator of a filter."
        raise InvalidInput(what, f"Use one of {', '.join(sorted(_OPERATORS))}.")
    for inner in value.values():
        _check_operators(inner)


def _is_operator(key: object) -> bool:
    return isinstance(key, str) and key.startswith("$")


def _matches(value: object, wanted: object) -> bool:
    # Most are plain, which takes a fifth of the time to see that a test for any mapping takes.
    if type(wanted) in _PLAIN or not isinstance(wanted, Mapping):
        return _equal(value, wanted)
    if any(map(_is_operator, wanted)):
        return all(_compares(value, operator, other) for operator, other in wanted.items())
    return isinstance(value, Mapping) and all(_matches(value.get(key), wanted[key]) for key in wanted)


def _compares(value: object, operator: str, other: object) -> bool:
    if operator in ("$eq", "$ne"):
        return _equal(value, other) == (operator == "$eq")
    if isinstance(value, str) and isinstance(other, str):
        return _ORDERS[operator](value, other)
    return _is_number(value) and _is_number(other) and _ORDERS[operator](value, other)


def _equal(value: object, other: object) -> bool:
    """Compare as JSON does: a truth value is no number, and the elements of a list may be partial objects."""
    if isinstance(other, list | tuple):
        return isinstance(value, list) and len(value) == len(other) and all(map(_matches, value, other))
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
