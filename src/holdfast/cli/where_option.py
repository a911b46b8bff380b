"""The option --where: a filter on metadata, as `stars>=4`, `lang=de`, `tags in vip,new` or as JSON."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import typer
from typer import Option

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
# A value that begins like an operator, as in stars=>4, is a slip; in quotes it is one.
_COMPARED = re.compile(r"\s*+([^\s=<>!]++)\s*+(>=|<=|!=|==|=|>|<)\s*+((?:[^\s=<>!].*+)?)", re.DOTALL)
_LISTED = re.compile(r"\s*+([^\s=<>!]++)\s++(not\s++in|in)\s++(.*+)", re.DOTALL)
_PRESENT = re.compile(r"\s*+(!?)([^\s=<>!]++)\s*+")


@dataclass(frozen=True, slots=True)
class MetaFilter:
    """A filter on metadata."""

    where: dict[str, object]


def read_where(text: str) -> MetaFilter:
    """Return the filter that a text names: a key, an operator and a value; KEY or !KEY alone; or JSON.

    A value is JSON, or else the words as they stand.

    Raises:
        typer.BadParameter: it is none of these, or no filter.

    """
    found: object = None
    if text.lstrip().startswith("{"):
        found = _json(text)
    elif compared := _COMPARED.fullmatch(text):
        found = {compared[1]: {_OPERATORS[compared[2]]: _json(compared[3].strip())}}
    elif listed := _LISTED.fullmatch(text):
        values = _json(listed[3])
        several = values if isinstance(values, list) else [_json(one.strip()) for one in listed[3].split(",")]
        found = None if "" in several else {listed[1]: {_OPERATORS[" ".join(listed[2].split())]: several}}
    elif present := _PRESENT.fullmatch(text):
        found = {present[2]: {"$exists": not present[1]}}
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
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return text


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON.")


def joined(filters: Iterable[MetaFilter] | None) -> dict[str, object] | None:
    """Return the filter that asks for all of some; None for none."""
    several = [one.where for one in filters or ()]
    return {"$and": several} if several else None


Wheres = Annotated[
    list[MetaFilter] | None,
    Option(
        "--where",
        parser=read_where,
        metavar="FILTER",
        help="Only with this metadata, may be repeated: stars>=4, lang=de, lang in de,en, KEY, !KEY, JSON.",
    ),
]
