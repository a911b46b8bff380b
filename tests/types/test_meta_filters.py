"""What a filter on metadata means, and which filters are refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from holdfast import InvalidInput
from holdfast.types.where import (
    MAX_DEPTH,
    MAX_PARTS,
    MAX_TEXT,
    Values,
    check_where,
    clauses,
)
from metadata import FILTERS, METADATA, passes
from tables import each


def matches(where: object, *metadata: dict[str, Any]) -> bool:
    tree = check_where(where)
    assert tree is not None
    return tree.passes(Values(*metadata))


@given(where=FILTERS, own=METADATA, of_chat=METADATA)
def test_a_filter_means_what_the_documentation_says(
    where: dict[str, Any], own: dict[str, Any], of_chat: dict[str, Any]
) -> None:
    assert matches(where, own) == passes(where, own)
    assert matches(where, own, of_chat) == passes(where, own, of_chat)


@each(
    ("where", "metadata", "expected"),
    [
        # Missing keys and null.
        ({"a": {"$exists": False}}, {"a": None}, False),
        ({"a": "*"}, {"a": None}, False),
        ({"a": {"$eq": "*"}}, {"a": "x"}, False),
        # Types.
        ({"a": True}, {"a": 1}, False),
        ({"a": {"$in": [0, 1]}}, {"a": False}, False),
        ({"a": {"$gt": 2**53}}, {"a": 2**53 + 1}, True),
        ({"a": {"$gt": float(2**63)}}, {"a": 2**63}, False),
        ({"a": {"$lt": 2**63}}, {"a": 2**63 - 1}, True),
        # Lists and objects.
        ({"a": ["y", "x"]}, {"a": ["x", "y"]}, False),
        ({"a": {"$gt": 4, "$lt": 2}}, {"a": [1, 5]}, True),
        ({"a.b": 1}, {"a.b": 1, "a": {"b": 2}}, True),
        ({"a": {"$eq": {"b": 1}}}, {"a": {"b": 1.0}}, True),
        # Joins, also as mem0 writes them.
        ({"a": {"$in": []}}, {"a": 1}, False),
    ],
)
def test_what_a_filter_means(where: dict[str, Any], metadata: dict[str, Any], expected: bool) -> None:
    assert matches(where, metadata) is expected
    assert passes(where, metadata) is expected


def deep(levels: int, inner: object = "x") -> object:
    value = inner
    for n in range(levels):
        value = {"k": value} if n % 2 else [value]
    return value


@each(
    ("where", "value", "expected"),
    [
        ({"a": deep(25)}, deep(25), True),
        ({"a": deep(25)}, deep(25, "y"), False),
        # No filter is nested as deep, and no depth of what is stored breaks one.
        ({"a": {"$in": [deep(25), 1]}}, deep(600), False),
        ({"a": {"$in": [[1, True], {"k": 1}]}}, [[True, 1]], False),
        ({"a": {"$in": [[1, True], {"k": 1}]}}, [[1.0, True]], True),
        ({"a": {"$in": [{"k": [1], "m": 2}]}}, {"m": 2.0, "k": [1]}, True),
        ({"a": {"$gt": 1}}, [float("nan"), 2], True),
        ({"a": {"$lt": 1}}, [float("nan"), 2], False),
    ],
)
def test_what_values_in_lists_and_objects_mean(where: dict[str, Any], value: object, expected: bool) -> None:
    assert matches(where, {"a": value}) is expected


def test_no_filter_is_none() -> None:
    assert check_where(None) is None
    assert check_where({}) is None


def nested(levels: int) -> dict[str, Any]:
    where: dict[str, Any] = {"a": 1}
    for _ in range(levels):
        where = {"$not": where}
    return where


ENDLESS: dict[str, Any] = {}
ENDLESS["$not"] = ENDLESS


@each(
    ("where", "what"),
    [
        ("lang", "Pass a dict"),
        ({"a": {"$regex": "x"}}, "Unknown operator '$regex' on `a`"),
        ({"a": {"$and": [{"b": 1}]}}, "Unknown operator"),
        ({"$gte": 4}, "stands beside keys"),
        ({"a": {"gte": 4}}, "Write operators with $"),
        ({"a": {"icontains": "x"}}, "neither operators nor keys"),
        ({"a": {"$not": "de"}}, "Pass a dict of operators, or use $ne"),
        ({"a": {"b": {"$gte": None}}}, "Compare with a number or a text"),
        ({"a": {"$in": "de"}}, "Pass a list"),
        ({"a": {"$exists": 1}}, "Pass True or False"),
        ({"$or": []}, "at least one"),
        ({"$and": {"a": 1}}, "Pass a list of filters"),
        ({"$or": [1]}, "Pass a dict"),
        ({"a": float("nan")}, "finite"),
        ({"a": 2**1025}, "not huge"),
        ({"a": b"x"}, "Use text"),
        ({"a": {"$eq": {1: 2}}}, "Use text"),
        ({"a": "x" * (MAX_TEXT + 1)}, f"{MAX_TEXT:,} characters"),
        ({1: 2}, "must be text"),
        ({"": 2}, "is blank"),
        ({"a\0": 2}, "control character"),
        ({"\ud800": 2}, "half a character"),
        ({"k" * 600: 2}, "600 bytes"),
        (nested(10_000), f"more than {MAX_DEPTH} levels"),
        (ENDLESS, f"more than {MAX_DEPTH} levels"),
        ({"a": {"$in": list(range(10**6))}}, f"more than {MAX_PARTS:,}"),
        ({"$or": [{"a": 1}] * MAX_PARTS}, f"more than {MAX_PARTS:,}"),
    ],
)
def test_what_is_refused(where: object, what: str) -> None:
    with pytest.raises(InvalidInput, match="(?s).*" + what.replace("$", r"\$")):
        check_where(where)


def test_a_filter_is_written_as_it_reads() -> None:
    tree = check_where(
        {"stars": {"$gte": 4}, "$or": [{"t g": "x"}, {"$not": {"a": None}}], "b": {"$exists": False}}
    )
    assert tree is not None
    assert [str(one) for one in clauses(tree)] == [
        "stars >= 4",
        '"t g" = "x" or (not (a = null))',
        "b does not exist",
    ]
