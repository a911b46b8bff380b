"""Values of metadata as bytes whose order is that of the values, the same in both databases.

Numbers are exact, whole ones and floats in one order; texts are ordered by code point. What is longer than
`LONGEST` is cut, so two long values may have the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from holdfast.types.where import Condition

# Bytes of a value; with the other columns of the key they fit a row in a PostgreSQL index.
LONGEST = 256
# The first byte is the type. A key whose value is none of these, such as an empty list, is there all the
# same.
_OTHER, _NULL, _FALSE, _TRUE, _NUMBER, _TEXT, _END = (bytes([n]) for n in range(7))
# Then, of numbers, the sign.
_MINUS_INFINITY, _NEGATIVE, _ZERO, _POSITIVE, _INFINITY = (bytes([n]) for n in range(1, 6))
_BIAS = 1 << 31


class Ranges(NamedTuple):
    """The bytes of the values that pass: single ones, and from one (inclusive) to another (exclusive).

    Of values with the bytes in `unsure`, those that are cut, some pass.
    """

    single: tuple[bytes, ...]
    span: tuple[bytes, bytes] | None
    unsure: tuple[bytes, ...] = ()


def encoded_values(value: object) -> set[bytes]:
    """Return the bytes of a value that metadata have under a key; of a list, those of its items."""
    items = value if isinstance(value, list) else [value]
    return {one[:LONGEST] for one in map(_encoded, items) if one} or {_OTHER}


def ranges_of(condition: Condition) -> Ranges | None:
    """Return the values for which a test holds; None if bytes do not tell, as with lists and objects."""
    if condition.test == "exists":
        return Ranges((), (b"", _END))
    found = [_encoded(value) for value in condition.values]
    if not all(found):
        return None
    long = tuple(one[:LONGEST] for one in found if len(one) >= LONGEST)
    if condition.test == "in":
        return Ranges(tuple(dict.fromkeys(one for one in found if len(one) < LONGEST)), None, long)
    # A value that is cut sorts before the bound, or has its bytes; nothing lies between them.
    bound = found[0][:LONGEST]
    after = bound + b"\0"
    type_ = bound[:1]
    if condition.test in (">", ">="):
        first = after if condition.test == ">" or long else bound
        return Ranges((), (first, bytes([type_[0] + 1])), long)
    last = after if condition.test == "<=" and not long else bound
    return Ranges((), (type_, last), long)


def _encoded(value: object) -> bytes:
    """Return all bytes of a value; none for a list, an object and what is no number."""
    if value is None:
        return _NULL
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    if isinstance(value, str):
        return _TEXT + value.encode("utf-8", "surrogatepass")
    # Not a number that is none.
    if not isinstance(value, int | float) or math.isnan(value):
        return b""
    return _NUMBER + _number(value)


def _number(value: float) -> bytes:
    """Return a number: its sign, the power of two above it, and its digits, all reversed if negative."""
    if value == 0:
        return _ZERO
    if value in (math.inf, -math.inf):
        return _INFINITY if value > 0 else _MINUS_INFINITY
    whole, divisor = abs(value).as_integer_ratio()
    # The divisor is a power of two.
    power = whole.bit_length() - (divisor.bit_length() - 1) + _BIAS
    written = f"{whole:b}".rstrip("0")
    # Seven digits of two in a byte, so that the end of a negative number can stand above all of them.
    digits = [int(written[n : n + 7].ljust(7, "0"), 2) for n in range(0, len(written), 7)]
    if value > 0:
        return _POSITIVE + power.to_bytes(4, "big") + bytes(digits)
    return _NEGATIVE + (2 * _BIAS - power).to_bytes(4, "big") + bytes(127 - one for one in digits) + b"\xff"


def entries(key: str, metadata: Mapping[str, object]) -> Iterator[bytes]:
    """Yield the bytes of what metadata have under a key."""
    # Only for those who filter.
    from holdfast.types.where import is_missing, look_up

    value = look_up(metadata, key)
    if not is_missing(value):
        yield from encoded_values(value)
