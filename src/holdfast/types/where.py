"""Filters on metadata: `where={"lang": "de", "stars": {"$gte": 4}}` as a tree, and whether metadata passes.

Everything about what a filter means stands here: what the store looks up is what `Condition.holds` accepts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import ge, gt, le, lt
from typing import Any, Literal, NamedTuple

from holdfast.errors import InvalidInput, shown
from holdfast.types.checks import check_name, is_number

Test = Literal["in", "exists", ">", ">=", "<", "<="]
# Levels of filters and their values, conditions and values of a filter, and characters of a text.
MAX_DEPTH, MAX_PARTS, MAX_TEXT = 32, 1_000, 10_000
# Numbers of floats, and whole numbers of their size.
_MAX_BITS = 1024
# Each operator with its test, its sign in texts, and whether it is the opposite of the test.
_OPERATORS: Mapping[str, tuple[Test, str, bool]] = {
    "$eq": ("in", "=", False),
    "$ne": ("in", "!=", True),
    "$gt": (">", ">", False),
    "$gte": (">=", ">=", False),
    "$lt": ("<", "<", False),
    "$lte": ("<=", "<=", False),
    "$in": ("in", "in", False),
    "$nin": ("in", "not in", True),
    "$exists": ("exists", "exists", False),
}
_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {">": gt, ">=": ge, "<": lt, "<=": le}
# Operators of mem0 that have no counterpart.
_OF_OTHERS = ("contains", "icontains")
_JOINS = {name: join for join in ("and", "or", "not") for name in (f"${join}", join.upper())}
_PLAIN_KEY = re.compile(r"[\w.\-]++")
_MISSING = object()
Metadata = Mapping[str, object]


class Comparable(NamedTuple):
    """A value of metadata as conditions compare it; of a list, the list itself and its items."""

    equal_to: frozenset[object]
    # The least and the greatest, None without any.
    numbers: tuple[float, float] | None
    texts: tuple[str, str] | None


class Values(dict[str, Comparable | None]):
    """The values of metadata by key, each looked up once; of several, the first that has a key counts."""

    def __init__(self, *metadata: Metadata) -> None:
        super().__init__()
        self._metadata = metadata

    def __missing__(self, key: str) -> Comparable | None:
        comparable = None
        for metadata in self._metadata:
            if (value := look_up(metadata, key)) is not _MISSING:
                comparable = _comparable(value)
                break
        self[key] = comparable
        return comparable


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """A test of the value that metadata have under a key; `negated` is its opposite, also where none is.

    A test of a list holds if it holds for the list itself or for one of its items.
    """

    key: str
    test: Test
    values: tuple[object, ...]
    negated: bool
    text: str
    # The values as `Comparable` has them: one look-up decides for a thousand.
    _wanted: frozenset[object] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_wanted", frozenset(map(_hashable, self.values)))

    def __str__(self) -> str:
        return self.text

    @property
    def holds_if_missing(self) -> bool:
        """Whether the test holds where there is no such key: only one for null does."""
        return self.test == "in" and None in self.values

    def holds(self, value: Comparable) -> bool:
        """Return whether the test holds for a value that is there, `negated` aside."""
        if self.test == "exists":
            return True
        if self.test == "in":
            return not self._wanted.isdisjoint(value.equal_to)
        bound: Any = self.values[0]
        ends: tuple[Any, Any] | None = value.texts if isinstance(bound, str) else value.numbers
        if ends is None:
            return False
        least, greatest = ends
        return _ORDER[self.test](greatest if self.test in (">", ">=") else least, bound)

    def passes(self, values: Values) -> bool:
        """Return whether metadata pass."""
        value = values[self.key]
        return (self.holds_if_missing if value is None else self.holds(value)) is not self.negated


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """A join of filters: all must hold, or at least one; or the only one must not."""

    join: Literal["and", "or", "not"]
    parts: tuple[Where, ...]

    def __str__(self) -> str:
        if self.join == "not":
            return f"not ({self.parts[0]})"
        return f" {self.join} ".join(
            f"({part})" if isinstance(part, Joined) else str(part) for part in self.parts
        )

    def passes(self, values: Values) -> bool:
        """Return whether metadata pass."""
        if self.join == "not":
            return not self.parts[0].passes(values)
        return (all if self.join == "and" else any)(part.passes(values) for part in self.parts)


Where = Condition | Joined


def look_up(metadata: Metadata, key: str) -> object:
    """Return the value of a key, with dots for nested objects; `_MISSING` for none."""
    if key in metadata:
        return metadata[key]
    head, dot, rest = key.partition(".")
    inner = metadata.get(head) if dot else None
    return look_up(inner, rest) if isinstance(inner, Mapping) else _MISSING


def clauses(where: Where) -> tuple[Where, ...]:
    """Return the filters that must all hold, one by one."""
    return where.parts if isinstance(where, Joined) and where.join == "and" else (where,)


def conditions(where: Where) -> list[Condition]:
    """Return all conditions of a filter."""
    if isinstance(where, Condition):
        return [where]
    return [condition for part in where.parts for condition in conditions(part)]


def check_where(where: object) -> Where | None:
    """Return a filter on metadata as a tree; None for none, and for an empty one.

    Raises:
        InvalidInput: it is no dict of keys, an operator is unknown or has a value of the wrong type, or it is
            too large or nested too deep.

    """
    if where is None:
        return None
    if not isinstance(where, Mapping):
        raise InvalidInput(f"`where` is {shown(where)}.", 'Pass a dict such as {"lang": "de"}.')
    return _Parser().filter(where, 0) if where else None


class _Parser:
    """A parser of filters that counts their parts."""

    def __init__(self) -> None:
        self._parts = 0

    def _count(self, depth: int) -> None:
        self._parts += 1
        if depth > MAX_DEPTH:
            raise InvalidInput(f"`where` is nested more than {MAX_DEPTH} levels deep.", "Make it flatter.")
        if self._parts > MAX_PARTS:
            what = f"`where` has more than {MAX_PARTS:,} conditions and values."
            raise InvalidInput(what, "Filter by less, or in several calls.")

    def filter(self, given: object, depth: int) -> Where:
        """Return the tree of a dict of keys and joins, which must all hold."""
        self._count(depth)
        if not isinstance(given, Mapping) or not given:
            raise InvalidInput(f"A part of `where` is {shown(given)}.", 'Pass a dict such as {"lang": "de"}.')
        parts: list[Where] = []
        for key, value in given.items():
            if isinstance(key, str) and key in _JOINS:
                parts.append(self._join(key, value, depth + 1))
            else:
                parts.append(self._of_key(_check_key(key), value, depth + 1))
        return _all(parts)

    def _join(self, key: str, value: object, depth: int) -> Where:
        join = _JOINS[key]
        if join == "not" and isinstance(value, Mapping):
            return Joined("not", (self.filter(value, depth),))
        if not isinstance(value, list | tuple) or not value:
            raise InvalidInput(f"`{key}` has {shown(value)}.", "Pass a list of filters, of at least one.")
        parts = tuple(self.filter(part, depth) for part in value)
        if join == "and":
            return _all(parts)
        either = parts[0] if len(parts) == 1 else Joined("or", parts)
        # None of several, as mem0 has it.
        return either if join == "or" else Joined("not", (either,))

    def _of_key(self, key: str, value: object, depth: int) -> Where:
        """Return the condition on a key: operators, a nested object, or the value itself."""
        self._count(depth)
        if not isinstance(value, Mapping):
            # So mem0 asks for any value.
            return self._condition(key, *(("$ne", None) if value == "*" else ("$eq", value)), depth)
        operators = [name for name in value if isinstance(name, str) and name.startswith("$")]
        if operators and len(operators) == len(value):
            return _all([self._operator(key, name, value[name], depth + 1) for name in operators])
        if operators or not value or all(f"${name}" in _OPERATORS or name in _OF_OTHERS for name in value):
            what = f"`{key}` has {shown(value)}, which is neither operators nor keys."
            raise InvalidInput(what, f"Write operators with $, as $gte; and a nested key as {key}.KEY.")
        nested = [self._of_key(f"{key}.{_check_key(name)}", part, depth + 1) for name, part in value.items()]
        return _all(nested)

    def _operator(self, key: str, operator: str, value: object, depth: int) -> Where:
        if operator == "$not":
            if not isinstance(value, Mapping):
                raise _wrong(key, operator, value, "Pass a dict of operators, or use $ne.")
            return Joined("not", (self._of_key(key, value, depth),))
        if operator not in _OPERATORS:
            raise InvalidInput(
                f"Unknown operator {shown(operator)} on `{key}`.",
                f"Use one of {', '.join(_OPERATORS)}, $not; $and and $or stand beside keys.",
            )
        return self._condition(key, operator, value, depth)

    def _condition(self, key: str, operator: str, value: object, depth: int) -> Condition:
        test, sign, negated = _OPERATORS[operator]
        if operator in ("$in", "$nin"):
            if not isinstance(value, list | tuple | set | frozenset):
                raise _wrong(key, operator, value, "Pass a list of values.")
            values = tuple(self._value(key, operator, item, depth) for item in value)
            return Condition(key, test, values, negated, f"{_written(key)} {sign} {_json(list(values))}")
        if operator == "$exists":
            if not isinstance(value, bool):
                raise _wrong(key, operator, value, "Pass True or False.")
            sign = "exists" if value else "does not exist"
            return Condition(key, test, (), not value, f"{_written(key)} {sign}")
        operand = self._value(key, operator, value, depth)
        if test != "in" and not (isinstance(operand, str) or is_number(operand)):
            raise _wrong(key, operator, value, "Compare with a number or a text.")
        return Condition(key, test, (operand,), negated, f"{_written(key)} {sign} {_json(operand)}")

    def _value(self, key: str, operator: str, value: object, depth: int) -> object:
        """Return a JSON value, with lists and dicts of its own."""
        self._count(depth)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            if len(value) > MAX_TEXT:
                raise _wrong(key, operator, value, f"Use at most {MAX_TEXT:,} characters.")
            return str(value)
        if isinstance(value, int) and int(value).bit_length() <= _MAX_BITS:
            return int(value)
        if isinstance(value, float) and math.isfinite(value):
            return float(value)
        if isinstance(value, list | tuple):
            return [self._value(key, operator, item, depth + 1) for item in value]
        if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
            return {name: self._value(key, operator, item, depth + 1) for name, item in value.items()}
        todo = (
            "Use text, numbers that are finite and not huge, True, False, None, and lists and dicts of them."
        )
        raise _wrong(key, operator, value, todo)


def _all(parts: Sequence[Where]) -> Where:
    every = tuple(clause for part in parts for clause in clauses(part))
    return every[0] if len(every) == 1 else Joined("and", every)


def _check_key(key: object) -> str:
    name = check_name(key, "A key of `where`")
    if name in _OPERATORS:
        raise InvalidInput(f"`{name}` stands beside keys.", f'Write {{"KEY": {{"{name}": VALUE}}}}.')
    if name.startswith("$"):
        raise InvalidInput(f"Unknown operator {shown(name)}.", "Beside keys, use $and, $or and $not.")
    return name


def _wrong(key: str, operator: str, value: object, todo: str) -> InvalidInput:
    return InvalidInput(f"`{operator}` of `{key}` has {shown(value)}.", todo)


def _comparable(value: object) -> Comparable:
    items = [value, *value] if isinstance(value, list) else [value]
    # NaN is neither below nor above any number.
    numbers = [
        item for item in items if is_number(item) and not (isinstance(item, float) and math.isnan(item))
    ]
    texts = [item for item in items if isinstance(item, str)]
    return Comparable(
        frozenset(map(_hashable, items)),
        (min(numbers), max(numbers)) if numbers else None,
        (min(texts), max(texts)) if texts else None,
    )


def _hashable(value: object, depth: int = 0) -> object:
    """Return a value that equals that of an equal JSON value: 1 is 1.0, and True is not 1."""
    if isinstance(value, bool):
        return bool, value
    if not isinstance(value, list | dict):
        return value
    if depth > MAX_DEPTH:
        # No value of a filter is nested as deep.
        return _MISSING
    if isinstance(value, list):
        return list, *(_hashable(item, depth + 1) for item in value)
    return dict, frozenset((name, _hashable(item, depth + 1)) for name, item in value.items())


def _written(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else _json(key)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
