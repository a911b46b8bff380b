"""Proposals of a model about records: how records are shown to it, and how its answer is read.

A proposal may still be refused, each time for a reason that is counted.
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
# Why a proposal is refused.
OWN_WORDS, LOST, UNSAFE = "the user's own words", "lost a value", "unsafe"
_REASON = 200  # characters
_ABOUT = {"user": "the user", "env": "the environment"}
_TEXTS = {"text": {"type": "string"}, "why": {"type": "string"}}


class ProposalRefused(Exception):
    """What a model proposes must not be done. `str` of it is the reason, in a few words of ours."""


def schema(name: str, fields: Mapping[str, object], required: Sequence[str]) -> Mapping[str, object]:
    """Return the schema of an object with a list of proposals, each of which may have a text and a reason."""
    item = {"type": "object", "properties": {**fields, **_TEXTS}, "required": required}
    return {"type": "object", "properties": {name: {"type": "array", "items": item}}, "required": [name]}


def entry(record: Record) -> str:
    """Return a record as one entry. Its other lines are indented, so that it cannot pose as another entry."""
    who = "the user's own words" if record.by == "user" else f"from {record.by}"
    times = (("", record.at), ("true since ", record.since), ("true until ", record.until))
    notes = [*(f"{what}{at.astimezone(UTC):%Y-%m-%d}" for what, at in times if at), who]
    text = "\n    ".join(escape(record.text, quote=False).splitlines())
    return f"[{', '.join(notes)}] {text}"


def about(target: str) -> str:
    """Return the target of records in words."""
    return _ABOUT.get(target) or escape(" ".join(target.split()), quote=False)


def proposals(answer: str, name: str) -> list[object]:
    """Return the list of proposals in an answer.

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


def proposed_text(proposal: Mapping[str, object]) -> str:
    """Return the text that is proposed, "" if there is none.

    Raises:
        ProposalRefused: there is something else in its place.

    """
    try:
        return text_of(picked(proposal, "text")).strip()
    except Unreadable as error:
        raise ProposalRefused("no text") from error


def proposed_reason(proposal: Mapping[str, object], default: str) -> str:
    """Return the reason of a model in one line, or the default where it has none that may be stored."""
    value = picked(proposal, "why")
    line = shorten_line(clean(value), _REASON) if isinstance(value, str) else ""
    return default if any(finding.severity == "high" for finding in guard.scan(line)) else line or default
