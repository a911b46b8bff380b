"""A join: one record stands for several. What it says is checked, and all joins of an answer are one batch to `undo`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.dedup.value_preservation import adds, loses
from holdfast.errors import InvalidInput
from holdfast.learning.job_context import Mark, Outcome
from holdfast.learning.record_proposals import LOST, UNSAFE, Refused
from holdfast.records.draft import rules_of, scan
from holdfast.store import record_changes, records
from holdfast.store.record_changes import Writing
from holdfast.store.records import NOW, RecordFilter
from holdfast.types import Record, Wording

if TYPE_CHECKING:
    from holdfast.learning.job_context import Setting
    from holdfast.records.intake import Intake

MERGED, UPDATED = "merge", "update"  # the actions of a version that stands for several, and of a later state
_OF, _INTO = "of", "into"  # in the metadata: from what a text was made, and into what a record went


@dataclass(frozen=True, slots=True)
class Join:
    """Let one record, `kept`, stand for several, `parts`, all as the model saw them; `after` is what becomes of it."""

    parts: tuple[Record, ...]
    kept: Record
    after: Record
    action: str
    why: str


# Checking


def worded(
    kept: Record,
    wording: str,
    parts: Sequence[Record],
    intake: Intake,
    signed: Mapping[str, object],
    spoken: Record | None = None,
) -> Record:
    """Give a record, in place of several texts, the words of a model, or those that the user has `spoken`.

    Raises:
        Refused: the words say less or more than the texts do, or must not be kept.

    """
    texts = [one.text for one in parts]
    if not wording:
        raise Refused("no text")
    if len(wording) > min(sum(map(len, texts)), rules_of(intake.kinds, kept.kind).longest):
        raise Refused("too long")
    if spoken is None and is_unsafe(wording, intake, kept.kind):
        raise Refused(UNSAFE)
    if loses(wording, texts):
        raise Refused(LOST)
    if adds(wording, texts):
        raise Refused("added a value")
    placed = spoken or next((one for one in parts if one.chat), kept)
    return replace(
        kept,
        text=wording,
        by=spoken.by if spoken else intake.by,
        chat=placed.chat,
        messages=placed.messages,
        at=placed.at,
        meta={**kept.meta, **signed},
        trust="trusted",
        flags=spoken.flags if spoken else (),
    )


def is_unsafe(text: str, intake: Intake, kind: str) -> bool:
    """Say whether a text would be quarantined, holds a secret, or shows nothing."""
    try:
        scanned = scan(Record("", kind, text), intake.by)
    except InvalidInput:
        return True
    return scanned.trust == "quarantined" or scanned.text != text


# Writing


def write(
    setting: Setting,
    joins: Sequence[Join],
    dropped: Mapping[str, int],
    note: str = "",
    marks: Sequence[Mark] = (),
) -> Outcome:
    """Write joins and move the watermarks in one transaction, which is one batch to `undo`.

    What cannot be done any more is counted beside what was `dropped` before.

    Raises:
        Lost: another worker has the job; nothing was stored.

    """
    intake = setting.intake(setting.scope)
    counted = Counter(dropped)
    written: list[Record] = []
    with record_changes.writing(setting.database, setting.space, intake.now) as changes:
        setting.settle(changes, *marks)
        for join in joins:
            try:
                written += _write(changes, intake, join)
            except Refused as refused:
                counted[str(refused)] += 1
    setting.events.tell_of(setting.scope, written)
    return Outcome(tuple(written), dict(+counted), note)


def _write(changes: Writing, intake: Intake, join: Join) -> list[Record]:
    """Write what stands for several records, and then that the others went into it.

    An erasure that takes the one away brings the others back, since they have later versions.

    Raises:
        Refused: one of them is not what the model saw any more, or this was done before and taken back.

    """
    ids = [one.id for one in join.parts]
    wanted = RecordFilter(ids=ids, agents=intake.agents)
    there = {one.id: one for one in records.read(changes.tx, intake.space, NOW.version, wanted)}
    if not all(one.id in there and _shown(there[one.id]) == _shown(one) for one in join.parts):
        raise Refused("changed since")
    kept, parts = there[join.kept.id], [there[identity] for identity in ids]
    former = records.versions_of(changes.tx, intake.space, kept.id)
    if any(one.meta.get(_OF) == ids and one.action in (MERGED, UPDATED) for one in former):
        raise Refused("taken back before")
    after = replace(join.after, meta={**join.after.meta, _OF: ids})
    if join.action == MERGED:
        after = _gathered(after, kept, parts)
    freed = sum(len(one.text) for one in parts if one.agent == kept.agent)
    if len(after.text) > freed:
        try:
            intake.check_total(changes, kept, len(after.text), freed)
        except InvalidInput as error:
            raise Refused("no room") from error
    written = [changes.put(after, kept, by=intake.by, action=join.action, why=join.why)]
    for one in parts:
        if one.id != kept.id:
            gone = replace(one, meta={**one.meta, _INTO: kept.id})
            written.append(intake.take_back(changes, gone, "retract", join.why))
    return written


def _shown(record: Record) -> tuple[object, ...]:
    """Give what a proposal about a record rests on."""
    plain = (record.kind, record.target, record.agent, record.text, record.by, record.trust)
    return (*plain, record.since, record.until)


def _words(record: Record) -> Iterator[Wording]:
    """Yield all words in which something was said: what another text stands for is still found by them."""
    yield Wording(record.text, by=record.by, chat=record.chat, messages=record.messages)
    yield from record.wordings


def _gathered(after: Record, kept: Record, parts: Sequence[Record]) -> Record:
    """Add to a record what others have beside their texts: evidence, sources, tags, priority."""
    sources = dict.fromkeys(source for one in parts for source in (one.source, *one.sources))
    return replace(
        after,
        category=kept.category or next((one.category for one in parts if one.category), ""),
        tags=tuple(dict.fromkeys(tag for one in (kept, *parts) for tag in one.tags)),
        priority=max(one.priority for one in parts),
        evidence=sum(one.evidence for one in parts),
        at=max((one.at for one in parts if one.at), default=after.at),
        wordings=tuple(
            dict.fromkeys(said for one in parts for said in _words(one) if said.text != after.text)
        ),
        sources=tuple(source for source in sources if source not in ("", kept.source)),
    )
