"""The option --where: a filter on metadata, as `stars>=4`, `lang=de`, `tags in vip,new` or as JSON."""

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

import typer

from holdfast.errors import InvalidInput
from holdfast.types.where import check_where
from holdfast_cli.commands.render.wording import in_options

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
_STRING = r'"(?:[^"\\]|\\.)*+"'
# A key with blanks or signs stands in quotes.
_KEY = rf'\s*+({_STRING}|[^\s=<>!"~,;&|]++)'
# A value that begins like an operator, as in stars=>4, is a slip; in quotes it is one.
_COMPARISON = re.compile(rf"{_KEY}\s*+(>=|<=|!=|==|=|>|<)\s*+((?:[^\s=<>!].*+)?)", re.DOTALL)
_CHOICE = re.compile(rf"{_KEY}\s++(not\s++in|in)\s++(.*+)", re.DOTALL)
_PRESENCE = re.compile(rf"\s*+(!?){_KEY}\s*+", re.DOTALL)
# What stands between commas; one within quotes parts nothing.
_ITEM = re.compile(rf"\s*+({_STRING}(?=\s*+,)|[^,]*+)[^,]*+,")
# Several filters, joined as other languages do, in a value without quotes.
_SEVERAL = re.compile(r"(?:\s(?:and|or)\s|&&|\|\||[,;])\s*+[\w.]++\s*+[=<>!]", re.IGNORECASE)
# More than any number that a filter takes has.
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
    where: object = None
    if text.lstrip().startswith("{"):
        where = _json(text)
    elif comparison := _COMPARISON.fullmatch(text):
        operand = comparison[3].strip()
        value = _json(operand)
        if value == operand and _SEVERAL.search(operand):
            todo = "give --where once for each, JSON for $or, or the value in quotes."
            raise typer.BadParameter(f"{text[:80]!r} is several filters: {todo}")
        where = {_key(comparison[1]): {_OPERATORS[comparison[2]]: value}}
    elif choice := _CHOICE.fullmatch(text):
        several = _items(choice[3])
        where = several and {_key(choice[1]): {_OPERATORS[" ".join(choice[2].split())]: several}}
    elif presence := _PRESENCE.fullmatch(text):
        where = {_key(presence[2]): {"$exists": not presence[1]}}
    if not isinstance(where, dict):
        todo = "write stars>=4, lang=de, lang in de,en, a key alone, or JSON."
        raise typer.BadParameter(f"{text[:80]!r} is no filter: {todo}")
    try:
        check_where(where)
    except InvalidInput as error:
        raise typer.BadParameter(in_options(str(error))) from error
    return MetaFilter(where)


def _json(text: str) -> object:
    """Return the value of a JSON text; of other text, the text."""
    try:
        return json.loads(text, parse_constant=_no_number, parse_int=_whole)
    except (ValueError, RecursionError):
        return text


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON.")


def _whole(text: str) -> float:
    """Return an integer, or infinity for one that is too long for a filter."""
    return int(text) if len(text) <= _MOST_DIGITS else math.inf


def _key(text: str) -> str:
    """Return a key, which may stand in quotes."""
    key = _json(text) if text.startswith('"') else text
    if not isinstance(key, str) or key.startswith('"'):
        raise typer.BadParameter(f"{text[:80]!r} is no key: write it in quotes as JSON does.")
    return key


def _items(text: str) -> list[object]:
    """Return the values of a list, in JSON or between commas; none if one of them is empty."""
    values = _json(text)
    if isinstance(values, list):
        return values
    words = [word.strip() for word in _ITEM.findall(f"{text},")]
    return [] if "" in words else list(map(_json, words))


def join_filters(filters: Iterable[MetaFilter] | None) -> dict[str, object] | None:
    """Join filters into one that requires all of them; None for none."""
    several = [meta_filter.where for meta_filter in filters or ()]
    return {"$and": several} if several else None
