"""What a model proposes about records: how they are shown to it, and how its answer is read.

What it proposes may still be refused, each time for a reason that is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from html import escape

from holdfast.llm.json_answers import has, listed, parse, picked, table, text_of
from holdfast.llm.llm_request import Unreadable
from holdfast.safety import guard
from holdfast.text.clean import clean
from holdfast.text.shorten import shorten_line
from holdfast.types import Record

OVERHEAD = 100  # tokens of an answer around each text
OWN_WORDS, LOST, UNSAFE = "the user's own words", "lost a value", "unsafe"  # why something is refused
_REASON = 200  # characters
_ABOUT = {"user": "the user", "env": "the environment"}
_TEXTS = {"text": {"type": "string"}, "why": {"type": "string"}}


class Refused(Exception):
    """What a model proposes must not be done. `str` of it says why, in a few words of ours."""


def schema(name: str, fields: Mapping[str, object], required: Sequence[str]) -> Mapping[str, object]:
    """Write the schema of an object with a list of proposals, each of which may have a text and a reason."""
    item = {"type": "object", "properties": {**fields, **_TEXTS}, "required": required}
    return {"type": "object", "properties": {name: {"type": "array", "items": item}}, "required": [name]}


# What is shown


def entry(record: Record) -> str:
    """Write a record as one entry; only what we write begins a line, so that no text can pose as another entry."""
    who = "the user's own words" if record.by == "user" else f"from {record.by}"
    times = (("", record.at), ("true since ", record.since), ("true until ", record.until))
    notes = [*(f"{what}{at.astimezone(UTC):%Y-%m-%d}" for what, at in times if at), who]
    text = "\n    ".join(escape(record.text, quote=False).splitlines())
    return f"[{', '.join(notes)}] {text}"


def about(target: str) -> str:
    """Say in words what records are about."""
    return _ABOUT.get(target) or escape(" ".join(target.split()), quote=False)


# What is answered


def items(answer: str, name: str) -> list[object]:
    """Read the list that was asked for.

    Raises:
        Unreadable: there is none.

    """
    value = parse(answer)
    if isinstance(value, list):
        return value
    given = table(value, "the answer")
    if not has(given, name):
        raise Unreadable(f'it has no "{name}".')
    return listed(picked(given, name))


def wording(given: Mapping[str, object]) -> str:
    """Read the text that is proposed, "" if there is none.

    Raises:
        Refused: what stands in its place is no text.

    """
    try:
        return text_of(picked(given, "text")).strip()
    except Unreadable as error:
        raise Refused("no text") from error


def reason(given: Mapping[str, object], plain: str) -> str:
    """Give the reason of a model in one line, or a plain one where it gives none that may be kept."""
    value = picked(given, "why")
    line = shorten_line(clean(value), _REASON) if isinstance(value, str) else ""
    return plain if any(finding.severity == "high" for finding in guard.scan(line)) else line or plain
