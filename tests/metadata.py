"""Filters on metadata by a plain reading of the documentation, and random metadata and filters to compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

KEYS = ("lang", "stars", "tags", "who", "who.name", "who.age")

NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, 2**63, 2**63 - 1, -(2**63), 2**70, 10**30]),
    st.sampled_from([0.5, -0.5, -0.0, 1.0, 2.0**53, 2.0**63, 1e300, -1e300, 5e-324, 0.1]),
)
# Around the length at which what is stored of a value is cut.
_LONG = ["x" * 300, "x" * 300 + "y", "x" * 255, "x" * 254, "y" * 400]
TEXTS = st.one_of(
    st.sampled_from(["de", "en", "De", "", "ä", "z", "Z", "\U0001f600", "\uffff", "a\0", "a", "1", "*x"]),
    st.integers(0, 4).map(lambda n: _LONG[n]),
)
SCALARS: st.SearchStrategy[Any] = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
VALUES: st.SearchStrategy[Any] = st.one_of(
    SCALARS, st.lists(SCALARS, max_size=3), st.just([]), st.just({}), st.just([["de"]])
)
METADATA: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "lang": VALUES,
        "stars": st.one_of(NUMBERS, VALUES),
        "tags": st.lists(st.sampled_from(["vip", "new", 1, True]), max_size=3),
        "who": st.one_of(SCALARS, st.fixed_dictionaries({}, optional={"name": TEXTS, "age": NUMBERS})),
        "who.name": TEXTS,
    },
)


def _tests() -> st.SearchStrategy[Any]:
    bounds = st.one_of(NUMBERS, TEXTS)
    return st.one_of(
        TEXTS.filter(lambda text: text != "*"),
        NUMBERS,
        st.sampled_from([None, True, "*"]),
        st.lists(SCALARS, max_size=2),
        st.fixed_dictionaries({"$eq": VALUES}),
        st.fixed_dictionaries({"$ne": VALUES}),
        st.fixed_dictionaries({"$gt": bounds}),
        st.fixed_dictionaries({"$gte": bounds, "$lt": bounds}),
        st.fixed_dictionaries({"$lte": bounds}),
        st.fixed_dictionaries({"$in": st.lists(VALUES, max_size=3)}),
        st.fixed_dictionaries({"$nin": st.lists(VALUES, max_size=3)}),
        st.fixed_dictionaries({"$exists": st.booleans()}),
        st.fixed_dictionaries({"$not": st.fixed_dictionaries({"$gte": bounds})}),
    )


_OF_KEYS: st.SearchStrategy[Any] = st.one_of(
    st.dictionaries(st.sampled_from(KEYS), _tests(), min_size=1, max_size=2),
    st.fixed_dictionaries({"who": st.fixed_dictionaries({"name": TEXTS})}),
)
FILTERS: st.SearchStrategy[dict[str, Any]] = st.recursive(
    _OF_KEYS,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"$and": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"$or": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"$not": inner}),
        st.fixed_dictionaries({"NOT": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"lang": _tests(), "OR": st.lists(inner, min_size=1, max_size=2)}),
    ),
    max_leaves=4,
)

ABSENT = object()


def passes(where: Mapping[str, Any], *layers: Mapping[str, Any]) -> bool:
    """Return whether metadata pass a filter; of several, the first that has a key counts for it."""
    return all(_holds(key, test, layers) for key, test in where.items())


def _holds(key: str, test: Any, layers: Sequence[Mapping[str, Any]]) -> bool:
    if key in ("$and", "AND"):
        return all(passes(one, *layers) for one in test)
    if key in ("$or", "OR"):
        return any(passes(one, *layers) for one in test)
    if key in ("$not", "NOT"):
        return not any(passes(one, *layers) for one in (test if isinstance(test, list) else [test]))
    value = next((found for layer in layers if (found := value_of(layer, key)) is not ABSENT), ABSENT)
    if isinstance(test, dict) and not any(name.startswith("$") for name in test):
        return all(_holds(f"{key}.{name}", one, layers) for name, one in test.items())
    if test == "*" and isinstance(test, str):
        test = {"$ne": None}
    if not isinstance(test, dict):
        test = {"$eq": test}
    return all(_operator(operator, value, bound) for operator, bound in test.items())


def value_of(metadata: Any, key: str) -> Any:
    """Return the value under a key, or under the part of it before a dot and then the rest."""
    if not isinstance(metadata, dict):
        return ABSENT
    if key in metadata:
        return metadata[key]
    head, dot, rest = key.partition(".")
    return value_of(metadata.get(head), rest) if dot else ABSENT


def _operator(operator: str, value: Any, bound: Any) -> bool:
    if operator == "$not":
        return not all(_operator(name, value, one) for name, one in bound.items())
    if operator == "$exists":
        return (value is not ABSENT) is bound
    if operator in ("$ne", "$nin"):
        return not _operator({"$ne": "$eq", "$nin": "$in"}[operator], value, bound)
    if operator == "$in":
        return any(_operator("$eq", value, one) for one in bound)
    if operator == "$eq" and value is ABSENT:
        return bound is None
    several = [value, *value] if isinstance(value, list) else [value]
    return any(_compared(operator, one, bound) for one in several)


def _compared(operator: str, value: Any, bound: Any) -> bool:
    if operator == "$eq":
        return equal(value, bound)
    both = (value, bound)
    if not (all(isinstance(one, str) for one in both) or all(type(one) in (int, float) for one in both)):
        return False
    signs = {"$gt": value > bound, "$gte": value >= bound, "$lt": value < bound, "$lte": value <= bound}
    return bool(signs[operator])


def equal(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; a number is no truth value."""
    if type(one) is bool or type(other) is bool:
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    return bool(one == other)
