"""JSON text: written so that it reads back equal."""

from __future__ import annotations

import json
from typing import Any

from holdfast.errors import InvalidInput

# Levels of JSON, so that what is stored can be read, however little is left of Python's stack.
_DEEPEST = 200
# json.dumps makes an encoder for each call with separators, and json.loads looks for whitespace and bytes:
# together more than half of their time for a short text.
_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().raw_decode


def dump(value: object, what: str) -> str:
    """Return a value as JSON text that reads back equal.

    Raises:
        InvalidInput: `value` is not JSON, too deep, or would come back as something else (tuples, numbers as
            keys, …).

    """
    try:
        text = _encode(value)
        back = load(text)
        equal = back == value or ("NaN" in text and same_json(back, value))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{what} is not JSON ({error}).", "Use dicts, lists, text, numbers, booleans and None."
        ) from error
    if not equal:
        raise InvalidInput(
            f"{what} would change when it is stored as JSON.",
            "Use lists for tuples, text for keys, and whole characters for pairs of surrogates.",
        )
    if text.count("[") + text.count("{") > _DEEPEST and _too_deep(back):
        raise InvalidInput(f"{what} is nested more than {_DEEPEST} levels deep.", "Make it flatter.")
    return text


def load(text: str) -> Any:
    """Return the value of JSON text that was written by this package: no whitespace stands around it.

    Raises:
        ValueError: it is not JSON.

    """
    value, end = _decode(text)
    if end != len(text):
        raise ValueError(f"A JSON value ends at character {end} of {len(text)}.")
    return value


def load_object(text: str) -> dict[str, Any]:
    """Return the JSON object of a text as `load` does; raise TypeError for another value."""
    if isinstance(value := load(text), dict):
        return value
    raise TypeError(f"{type(value).__name__} stands for an object")


def load_texts(text: str) -> tuple[str, ...]:
    """Return the list of texts of a JSON text as `load` does; raise TypeError for another value."""
    if isinstance(value := load(text), list) and all(isinstance(part, str) for part in value):
        return tuple(value)
    raise TypeError(f"{type(value).__name__} stands for a list of texts")


def same_json(left: object, right: object) -> bool:
    """Return whether two JSON values are equal, where NaN equals NaN."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_json(part, right[key]) for key, part in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    # Only NaN differs from itself.
    return left == right or (left != left and right != right)  # noqa: PLR0124


def _too_deep(value: object) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        holders = [part for part in level if isinstance(part, dict | list)]
        level = [part for node in holders for part in (node.values() if isinstance(node, dict) else node)]
    return any(isinstance(part, dict | list) for part in level)
