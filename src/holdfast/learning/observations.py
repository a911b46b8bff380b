"""Observations in the answer of a model: read, checked, and grounded in the transcript that it was shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from holdfast.learning.echo_match import recalled_seqs
from holdfast.learning.grounding import (
    LONGEST,
    Observation,
    grounded,
    plain,
    says_too_little,
)
from holdfast.learning.question import FACT, TranscriptPart, text_line, transcript_lines
from holdfast.llm.json_answers import has, listed, picked, table, text_of
from holdfast.llm.llm_request import Unreadable
from holdfast.types import Message

# A part may have so many observations, and one more for each so many characters of it.
_FREE, _PER = 5, 100


class ReadObservations(NamedTuple):
    """The observations that were read, and how many items were dropped, by reason."""

    observations: tuple[Observation, ...]
    dropped: Counter[str]


def read(
    value: object, part: TranscriptPart, messages: Sequence[Message], kinds: Sequence[str]
) -> ReadObservations:
    """Return the observations in an answer about a part of `messages`, and how many were dropped, by reason.

    They are of the `kinds` that were asked for; a text that is of one of them is of none after it.

    Each is one line. What is blank, too short or too long, repeated, or no text is dropped, and so is what
    comes after as many as a part of that length may have: five, and one for each 100 characters.

    Raises:
        Unreadable: there are no lists of observations in it.

    """
    within = (one for one in messages if part.first <= one.seq <= part.last)
    lines = transcript_lines(within, recalled_seqs(messages)) if part.last else [text_line(part)]
    span = (part.first, part.last) if part.last else None
    most = _FREE + len(part.transcript) // _PER
    found: dict[str, Observation] = {}
    dropped: Counter[str] = Counter()
    for name, item in _items(value, kinds):
        try:
            text = plain(text_of(item, name))
        except Unreadable:
            dropped["no text"] += 1
            continue
        flaw = _flaw(text, found) or ("too many" if len(found) >= most else "")
        if flaw:
            dropped[flaw] += 1
            continue
        one = grounded(name, text, item, span, lines)
        found[text.casefold()] = replace(one, target=_target(item)) if name == FACT else one
    return ReadObservations(tuple(found.values()), dropped)


def _items(value: object, kinds: Sequence[str]) -> Iterator[tuple[str, object]]:
    """Yield the items of an answer with their kinds; those of a bare list are findings."""
    if isinstance(value, list):
        for one in value:
            yield from _items(one, kinds) if _has_any(one, kinds) else (("finding", one),)
        return
    given = table(value, "the answer")
    if given and not _has_any(given, kinds):
        raise Unreadable("it has none of the lists findings, insights and lessons.")
    for kind in kinds:
        yield from ((kind, item) for item in listed(picked(given, kind)))


def _has_any(value: object, kinds: Sequence[str]) -> bool:
    return isinstance(value, Mapping) and any(has(value, kind) for kind in kinds)


def _flaw(text: str, found: Mapping[str, Observation]) -> str:
    if not text:
        return "blank"
    if len(text) > LONGEST:
        return "too long"
    if says_too_little(text):
        return "too short"
    return "repeated" if text.casefold() in found else ""


def _target(item: object) -> str:
    target = picked(item, "target") if isinstance(item, Mapping) else None
    return "user" if target is None else str(target).strip().casefold()
