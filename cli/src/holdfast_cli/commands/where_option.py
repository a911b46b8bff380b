"""The option --where: a filter on metadata, as `stars>=4`, `lang=de`, `tags in vip,new` or as JSON."""

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

import typer

from holdfast.errors import InvalidInput
from holdfast.types.where import check_where

_OPERATORS = {
    ">=": "$gte",
    "<=": "$lte",
    "!=": "$ne",
    "==": "$eq",
    "=": "$eq",
    ">": "$gt",
    "<": "$lt",
    "in": "$in",
    "not in": "$nin",
}
_QUOTED = r'"(?:[^"\\]|\\.)*+"'
# A key with blanks or signs stands in quotes.
_KEY = rf'\s*+({_QUOTED}|[^\s=<>!"~,;&|]++)'
# A value that begins like an operator, as in stars=>4, is a slip; in quotes it is one.
_COMPARED = re.compile(rf"{_KEY}\s*+(>=|<=|!=|==|=|>|<)\s*+((?:[^\s=<>!].*+)?)", re.DOTALL)
_LISTED = re.compile(rf"{_KEY}\s++(not\s++in|in)\s++(.*+)", re.DOTALL)
_PRESENT = re.compile(rf"\s*+(!?){_KEY}\s*+", re.DOTALL)
# What stands between commas; one within quotes parts nothing.
_ITEM = re.compile(rf"\s*+({_QUOTED}(?=\s*+,)|[^,]*+)[^,]*+,")
# What joins filters elsewhere, within a value without quotes.
_JOINED = re.compile(r"(?:\s(?:and|or)\s|&&|\|\||[,;])\s*+[\w.]++\s*+[=<>!]", re.IGNORECASE)
# More than those of any number that a filter takes.
_MOST_DIGITS = 400


@dataclass(frozen=True, slots=True)
class MetaFilter:
    """A filter on metadata."""

    where: dict[str, object]


def read_where(text: str) -> MetaFilter:
    """Return the filter that a text names: a key, an operator and a value; KEY or !KEY alone; or JSON.

    A value is JSON, or else the words as they stand; a key may stand in quotes.

    Raises:
        typer.BadParameter: it is none of these, or no filter.

    """
    found: object = None
    if text.lstrip().startswith("{"):
        found = _json(text)
    elif compared := _COMPARED.fullmatch(text):
        written = compared[3].strip()
        value = _json(written)
        if value == written and _JOINED.search(written):
            todo = "give --where once for each, JSON for $or, or the value in quotes."
            raise typer.BadParameter(f"{text[:80]!r} is several filters: {todo}")
        found = {_key(compared[1]): {_OPERATORS[compared[2]]: value}}
    elif listed := _LISTED.fullmatch(text):
        several = _items(listed[3])
        found = several and {_key(listed[1]): {_OPERATORS[" ".join(listed[2].split())]: several}}
    elif present := _PRESENT.fullmatch(text):
        found = {_key(present[2]): {"$exists": not present[1]}}
    if not isinstance(found, dict):
        raise typer.BadParameter(
            f"{text[:80]!r} is no filter: write stars>=4, lang=de, lang in de,en, a key alone, or JSON."
        )
    try:
        check_where(found)
    except InvalidInput as error:
        raise typer.BadParameter(str(error)) from error
    return MetaFilter(found)


def _json(text: str) -> object:
    """Return the value of a JSON text; of other text, the text."""
    try:
        return json.loads(text, parse_constant=_no_number, parse_int=_whole)
    except (ValueError, RecursionError):
        return text


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON.")


def _whole(text: str) -> float:
    """Return a whole number; one that no filter takes as infinite, as a float of its size is."""
    return int(text) if len(text) <= _MOST_DIGITS else math.inf


def _key(text: str) -> str:
    """Return a key, which may stand in quotes."""
    key = _json(text) if text.startswith('"') else text
    if not isinstance(key, str) or key.startswith('"'):
        raise typer.BadParameter(f"{text[:80]!r} is no key: write it in quotes as JSON does.")
    return key


def _items(text: str) -> list[object]:
    """Return the values of a list: JSON, or what stands between commas; none where one of them is empty."""
    values = _json(text)
    if isinstance(values, list):
        return values
    words = [one.strip() for one in _ITEM.findall(f"{text},")]
    return [] if "" in words else list(map(_json, words))


def joined(filters: Iterable[MetaFilter] | None) -> dict[str, object] | None:
    """Return the filter that asks for all of some; None for none."""
    several = [one.where for one in filters or ()]
    return {"$and": several} if several else None
