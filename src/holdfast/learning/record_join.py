"""Joins of records that a model proposes: one record stands for several.

A proposal may be refused, each time for a reason that is counted. All joins of an answer are one batch of
changes, each with its reason, which `undo` takes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from html import escape
from typing import TypeVar

from holdfast.dedup import adds, loses
from holdfast.errors import InvalidInput
from holdfast.learning.job_context import JobContext, UnitResult, Watermark
from holdfast.llm.json_answers import has, listed, parse, picked, table, text_of
from holdfast.llm.llm_request import Unreadable
from holdfast.records.draft import rules_of, scan
from holdfast.records.intake import Intake
from holdfast.safety import guard
from holdfast.store import records
from holdfast.store.record_changes import Writing
from holdfast.store.records import NOW, RecordFilter
from holdfast.text.clean import clean
from holdfast.text.shorten import shorten_line
from holdfast.types import Record, Wording

T = TypeVar("T")
# The actions of a version that stands for several, and of a later state.
MERGED, UPDATED = "merge", "update"
# In the metadata: what a text was made from, and which record another went into.
_OF, _INTO = "of", "into"
OVERHEAD = 100  # tokens of an answer around each text
# Why a proposal is refused.
OWN_WORDS, LOST, UNSAFE = "the user's own words", "lost a value", "unsafe"
_REASON = 200  # characters
_ABOUT = {"user": "the user", "env": "the environment"}
_TEXTS = {"text": {"type": "string"}, "why": {"type": "string"}}


class ProposalRefused(Exception):
    """A proposal of a model must not be carried out. Its text is the reason, without words of the model."""


@dataclass(frozen=True, slots=True)
class Join:
    """A record, `kept`, that is to stand for several, `parts`; `after` is its new version."""

    parts: tuple[Record, ...]
    kept: Record
    after: Record
    action: str
    why: str


# What a model is shown, and what it proposes


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


# Checking


def accepted(items: Sequence[T], read: Callable[[T], Join | None], dropped: Counter[str]) -> list[Join]:
    """Return the joins that are read out of proposals; those that are refused are counted."""
    joins = []
    for item in items:
        try:
            join = read(item)
        except ProposalRefused as refused:
            dropped[str(refused)] += 1
        else:
            joins += [join] if join else []
    return joins


def reworded(
    kept: Record,
    text: str,
    parts: Sequence[Record],
    intake: Intake,
    provenance: Mapping[str, object],
    spoken: Record | None = None,
) -> Record:
    """Return a record with the words of a model, or of the user in `spoken`, in place of several texts.

    Raises:
        ProposalRefused: the words say less or more than the texts do, or must not be stored.

    """
    texts = [one.text for one in parts]
    if not text:
        raise ProposalRefused("no text")
    if len(text) > min(sum(map(len, texts)), rules_of(intake.kinds, kept.kind).longest):
        raise ProposalRefused("too long")
    if spoken is None and is_unsafe(text, intake, kept.kind):
        raise ProposalRefused(UNSAFE)
    if loses(text, texts):
        raise ProposalRefused(LOST)
    if adds(text, texts):
        raise ProposalRefused("added a value")
    placed = spoken or next((one for one in parts if one.chat), kept)
    return replace(
        kept,
        text=text,
        by=spoken.by if spoken else intake.by,
        chat=placed.chat,
        messages=placed.messages,
        at=placed.at,
        meta={**kept.meta, **provenance},
        trust="trusted",
        flags=spoken.flags if spoken else (),
    )


def is_unsafe(text: str, intake: Intake, kind: str) -> bool:
    """Return whether a text would be quarantined, holds a credential, or is empty."""
    try:
        scanned = scan(Record("", kind, text), intake.by)
    except InvalidInput:
        return True
    return scanned.trust == "quarantined" or scanned.text != text


# Writing


def write(
    context: JobContext,
    joins: Sequence[Join],
    dropped: Mapping[str, int],
    note: str = "",
    done: Sequence[Watermark] = (),
) -> UnitResult:
    """Write joins and move the watermarks in one transaction, which is one batch to `undo`.

    A join that cannot be done any more is counted beside what was `dropped` before.

    Raises:
        LeaseLost: another worker has the job; nothing was stored.

    """
    intake = context.intake
    counted = Counter(dropped)
    written: list[Record] = []
    with context.transaction() as changes:
        context.advance(changes, *done)
        for join in joins:
            try:
                written += _write(changes, intake, join)
            except ProposalRefused as refused:
                counted[str(refused)] += 1
    context.events.tell_of(context.scope, written)
    return UnitResult(tuple(written), dict(+counted), note)


def _write(changes: Writing, intake: Intake, join: Join) -> list[Record]:
    """Write the record that stands for several, and then that the others went into it.

    An erasure that takes the one away brings the others back, since they have later versions.

    Raises:
        ProposalRefused: one of them is not what the model saw any more, or this was done before and undone.

    """
    ids = [one.id for one in join.parts]
    wanted = RecordFilter(ids=ids, agents=intake.agents)
    current = {one.id: one for one in records.read(changes.tx, intake.space, NOW.version, wanted)}
    if not all(one.id in current and _content(current[one.id]) == _content(one) for one in join.parts):
        raise ProposalRefused("changed since")
    kept, parts = current[join.kept.id], [current[identity] for identity in ids]
    former = records.versions_of(changes.tx, intake.space, kept.id)
    if any(one.meta.get(_OF) == ids and one.action in (MERGED, UPDATED) for one in former):
        raise ProposalRefused("taken back before")
    after = replace(join.after, meta={**join.after.meta, _OF: ids})
    if join.action == MERGED:
        after = _gathered(after, kept, parts)
    freed = sum(len(one.text) for one in parts if one.agent == kept.agent)
    if len(after.text) > freed:
        try:
            intake.check_total(changes, kept, len(after.text), freed)
        except InvalidInput as error:
            raise ProposalRefused("no room") from error
    written = [changes.put(after, kept, by=intake.by, action=join.action, why=join.why)]
    for one in parts:
        if one.id != kept.id:
            gone = replace(one, meta={**one.meta, _INTO: kept.id})
            written.append(intake.take_back(changes, gone, "retract", join.why))
    return written


def _content(record: Record) -> tuple[object, ...]:
    """Return what a proposal about a record rests on."""
    plain = (record.kind, record.target, record.agent, record.text, record.by, record.trust)
    return (*plain, record.since, record.until)


def _wordings(record: Record) -> Iterator[Wording]:
    """Yield all wordings of a record: another text that stands for it is still found by them."""
    yield Wording(record.text, by=record.by, chat=record.chat, messages=record.messages)
    yield from record.wordings


def _gathered(after: Record, kept: Record, parts: Sequence[Record]) -> Record:
    """Return a record with all that others have beside their texts: evidence, sources, tags, priority."""
    sources = dict.fromkeys(source for one in parts for source in (one.source, *one.sources))
    wordings = (said for one in parts for said in _wordings(one) if said.text != after.text)
    return replace(
        after,
        category=kept.category or next((one.category for one in parts if one.category), ""),
        tags=tuple(dict.fromkeys(tag for one in (kept, *parts) for tag in one.tags)),
        priority=max(one.priority for one in parts),
        evidence=sum(one.evidence for one in parts),
        at=max((one.at for one in parts if one.at), default=after.at),
        wordings=tuple(dict.fromkeys(wordings)),
        sources=tuple(source for source in sources if source not in ("", kept.source)),
    )
