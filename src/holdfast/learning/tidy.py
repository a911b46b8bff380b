"""Tidying: join facts that say parts of the same, and settle the pairs of records that merging left unsure.

The proposals of a model are checked before anything is written: no value may be lost or invented, the user's
own words stay as they are, and there are never more records than before. All changes of one answer are one
batch, each with its reason, which `undo` takes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from html import escape
from typing import NamedTuple

from holdfast.dedup import LONGEST, adds, loses
from holdfast.errors import InvalidInput
from holdfast.learning.job_context import JobContext, UnitResult, Watermark, WorkUnit
from holdfast.learning.question import pack
from holdfast.llm.json_answers import has, listed, numbers_of, parse, picked, table, text_of
from holdfast.llm.llm_request import LLMRequest, Unreadable, exactly
from holdfast.records.draft import allow, has_right, rules_of, scan
from holdfast.records.intake import Intake
from holdfast.safety import guard
from holdfast.store import records
from holdfast.store.message_rows import EPOCH
from holdfast.store.record_changes import Writing
from holdfast.store.records import NOW, RecordFilter
from holdfast.text.clean import clean
from holdfast.text.shorten import shorten_line
from holdfast.types import Record, Wording, Writer

KIND = "tidy"
# The actions of a version that stands for several, and of a later state.
_MERGED, _UPDATED = "merge", "update"
# In the metadata: what a text was made from, and which record another went into.
_OF, _INTO = "of", "into"
# Why a change is refused.
_OWN_WORDS, _LOST, _UNSAFE = "the user's own words", "lost a value", "unsafe"
_UNTOUCHED = ("constraint", "soul", "profile")
_SHOWN = 8_000  # characters of facts in one prompt
_OVERHEAD = 100  # tokens of an answer around each text
_REASON = 200  # characters
_ABOUT = {"user": "the user", "env": "the environment"}
_CHANGE = {
    "entries": {"type": "array", "items": {"type": "integer"}},
    "change": {"type": "string", "enum": ["same", "update"]},
    "text": {"type": "string"},
    "why": {"type": "string"},
}
_ITEM = {"type": "object", "properties": _CHANGE, "required": ["entries", "change", "why"]}
_SCHEMA = exactly({"changes": {"type": "array", "items": _ITEM}})


class _Refused(Exception):
    """A proposal of a model must not be carried out. Its text is the reason, without words of the model."""


class _Group(NamedTuple):
    """Records that may say the same, the oldest first: facts about one target, or a pair."""

    records: Sequence[Record]
    is_pair: bool

    def shown(self, first: int) -> str:
        """Return the group as a model is shown it, numbered from `first` on."""
        record = self.records[0]
        about = _ABOUT.get(record.target) or escape(" ".join(record.target.split()), quote=False)
        of = f" about {about}" if record.target else ""
        what = "Two" if self.is_pair else "Some"
        lines = [f"{what} of the kind {escape(record.kind, quote=False)}{of}:"]
        lines += [f"{number}. {_entry(record)}" for number, record in enumerate(self.records, first)]
        return "\n".join(lines)


class _Join(NamedTuple):
    """A record, `kept`, that is to stand for several, `parts`; `after` is its new version."""

    parts: Sequence[Record]
    kept: Record
    after: Record
    action: str
    why: str


def due(context: JobContext) -> bool:
    """Return whether the agent has facts that could be joined, one of them written since the watermark.

    A join is no news.
    """
    seen, scope = context.watermark("", _watermark_kind(context)), context.scope
    if not records.changed_since(context.database, scope.space, "fact", scope.agent, seen, but=_MERGED):
        return False
    return any(_is_news(facts, seen) for groups in _fact_groups(context).values() for facts in groups)


def plan(context: JobContext) -> Iterator[WorkUnit]:
    """Plan one request about the pairs of the jobs, or requests about the facts of the agent.

    Raises:
        Denied: the learner may not change facts.

    """
    return _plan_pairs(context) if context.jobs and context.jobs[0].records else _plan_facts(context)


def _plan_pairs(context: JobContext) -> Iterator[WorkUnit]:
    """Plan a request about the pairs; those that cannot be judged any more are left out and counted."""
    intake = context.intake
    wanted = RecordFilter(ids=[id for job in context.jobs for id in job.records], agents=intake.agents)
    current = {record.id: record for record in context.read_records(wanted)}
    pairs, left_out = [], Counter[str]()
    for job in context.jobs:
        pair = [current[id] for id in job.records if id in current]
        if unfit := _unfit(pair, intake):
            left_out[unfit] += 1
        else:
            # What was said later is the later state, whichever came in first.
            came, known = pair
            pairs.append(_Group(sorted((known, came), key=lambda record: record.at or EPOCH), is_pair=True))
    if pairs:
        yield _unit(context, pairs, left_out)
    else:
        yield WorkUnit(None, lambda _: UnitResult(dropped=dict(left_out)))


def _unfit(pair: Sequence[Record], intake: Intake) -> str:
    """Return why records are no pair to be judged, "" if they are."""
    if len(pair) != 2:
        return "gone"
    record, other = pair
    if (record.kind, record.target) != (other.kind, other.target):
        return "of different kinds"
    if record.kind in _UNTOUCHED or intake.by not in rules_of(intake.kinds, record.kind).writers:
        return "not to be touched"
    return "too long" if max(len(record.text), len(other.text)) > LONGEST else ""


def _plan_facts(context: JobContext) -> Iterator[WorkUnit]:
    """Plan requests about the facts of the agent: those about the user, then those about the environment.

    Where the payload names a target, only those about it; then the watermark stays, as the others were not
    looked at. Where there are many, a request is about facts that were first written one after the other, and
    only made if one of them is news. The watermark moves with the last request, to the version that the space
    had before the facts were read.
    """
    target_only = context.payload.get("target")
    mark = Watermark("", _watermark_kind(context), records.version(context.database, context.space))
    done = () if target_only else (mark,)
    allow(rules_of(context.kinds, "fact"), context.intake.by, "change")
    seen = context.watermark("", mark.kind)
    chosen = [
        facts
        for target, groups in _fact_groups(context).items()
        for facts in groups
        if target_only in (None, target) and (len(groups) == 1 or _is_news(facts, seen))
    ]
    for number, facts in enumerate(chosen, 1):
        marks = done if number == len(chosen) else ()
        yield _unit(context, [_Group(facts, is_pair=False)], Counter(), marks)
    if not chosen:
        yield context.pass_over("", *done)


def _watermark_kind(context: JobContext) -> str:
    return f"{KIND}:{context.scope.agent}"


def _is_news(facts: Sequence[Record], seen: int) -> bool:
    return any(fact.version > seen and fact.action != _MERGED for fact in facts)


def _fact_groups(context: JobContext) -> dict[str, list[list[Record]]]:
    """Return the facts of the agent by target, in groups of two or more that fit one prompt.

    Facts of no agent are left alone: joined with them, what one agent knows would be known to all.
    """
    by_target: dict[str, list[Record]] = {}
    wanted = RecordFilter(("fact",), agents=(context.scope.agent,), trust=("trusted",))
    for fact in context.read_records(wanted):
        by_target.setdefault(fact.target, []).append(fact)
    return {
        target: [group for group in pack(facts, lambda fact: len(fact.text), _SHOWN) if len(group) > 1]
        for target, facts in by_target.items()
    }


# What a model is shown, and what it proposes


def _unit(
    context: JobContext, groups: Sequence[_Group], left_out: Counter[str], done: Sequence[Watermark] = ()
) -> WorkUnit:
    prompt, shown, numbered = context.prompt(KIND), list[str](), dict[int, tuple[_Group, Record]]()
    for group in groups:
        shown.append(group.shown(len(numbered) + 1))
        numbered |= {len(numbered) + n: (group, record) for n, record in enumerate(group.records, 1)}
    text = "\n\n".join(shown)
    answer_tokens = _OVERHEAD * len(groups) + context.count_tokens(text)
    request = LLMRequest(KIND, prompt.fill(groups=text), _SCHEMA, prompt.label, answer_tokens)
    return WorkUnit(request, _Proposals(context, numbered, left_out, prompt.label, done).apply)


def _entry(record: Record) -> str:
    """Return a record as one entry. Its other lines are indented, so that it cannot pose as another entry."""
    who = "the user's own words" if record.by == "user" else f"from {record.by}"
    times = (("", record.at), ("true since ", record.since), ("true until ", record.until))
    notes = [*(f"{what}{at.astimezone(UTC):%Y-%m-%d}" for what, at in times if at), who]
    text = "\n    ".join(escape(record.text, quote=False).splitlines())
    return f"[{', '.join(notes)}] {text}"


def _changes(answer: str, dropped: Counter[str]) -> list[Mapping[str, object]]:
    value = parse(answer)
    if not isinstance(value, list):
        given = table(value, "the answer")
        if not has(given, "changes"):
            raise Unreadable('it has no "changes".')
        value = listed(picked(given, "changes"))
    changes = [change for change in value if isinstance(change, Mapping)]
    if value and not changes:
        raise Unreadable("none of its changes is an object.")
    dropped["no change"] += len(value) - len(changes)
    return changes


def _take(
    change: Mapping[str, object], unused: dict[int, tuple[_Group, Record]]
) -> tuple[_Group, list[Record]]:
    """Take the records that a change names, for good: so the work for an answer is bounded."""
    numbers = sorted(set(numbers_of(picked(change, "entries"))))
    taken = [unused[number] for number in numbers if number in unused]
    if len(numbers) < 2 or len(taken) < len(numbers) or any(group is not taken[0][0] for group, _ in taken):
        raise _Refused("no such entries")
    for number in numbers:
        del unused[number]
    return taken[0][0], [record for _, record in taken]


def _text(change: Mapping[str, object]) -> str:
    try:
        return text_of(picked(change, "text")).strip()
    except Unreadable as error:
        raise _Refused("no text") from error


def _reason(change: Mapping[str, object], default: str) -> str:
    """Return the reason of a model in one line, or the default where it has none that may be stored."""
    value = picked(change, "why")
    line = shorten_line(clean(value), _REASON) if isinstance(value, str) else ""
    return default if guard.scan(line) else line or default


# Checking


@dataclass(frozen=True, slots=True)
class _Proposals:
    """The records that a model was shown, by number, and the checks and writes of its proposals."""

    context: JobContext
    numbered: Mapping[int, tuple[_Group, Record]]
    left_out: Counter[str]
    label: str
    done: Sequence[Watermark]

    def apply(self, answer: str | None) -> UnitResult:
        """Write the proposals of an answer that pass the checks, and count the others.

        It is one transaction, which is one batch to `undo`, and moves the watermarks.

        Raises:
            LeaseLost: another worker has the job; nothing was stored.

        """
        unused, joins, dropped = dict(self.numbered), list[_Join](), Counter(self.left_out)
        for change in _changes(answer or "", dropped):
            try:
                group, parts = _take(change, unused)
                is_update = str(picked(change, "change")).strip().casefold() == _UPDATED
                joins.append((self._update if is_update and group.is_pair else self._same)(parts, change))
            except _Refused as refused:
                dropped[str(refused)] += 1
        context, written = self.context, list[Record]()
        with context.transaction() as changes:
            context.advance(changes, *self.done)
            for join in joins:
                try:
                    written += _write(changes, context.intake, join)
                except _Refused as refused:
                    dropped[str(refused)] += 1
        context.events.tell_of(context.scope, written)
        return UnitResult(tuple(written), dict(+dropped))

    def _same(self, parts: Sequence[Record], change: Mapping[str, object]) -> _Join:
        """Return the join of records into the one that may stand for all, with its own words if it says all.

        No words yield to those of less right, nor what all agents know to what one of them knows.
        """
        able = [part for part in parts if all(_may_replace(part, other) for other in parts)]
        if not able:
            raise _Refused(_OWN_WORDS)
        if len({(part.since, part.until) for part in parts}) > 1:
            raise _Refused(_LOST)
        text, texts = _text(change), [part.text for part in parts]
        is_spoken = any(part.by == "user" for part in parts)
        kept = next((part for part in able if part.text == text), None)
        if kept is None and (is_spoken or not text):
            kept = next((part for part in able if not loses(part.text, texts)), None)
        if kept is None and is_spoken:
            raise _Refused(_OWN_WORDS)
        if kept is not None and loses(kept.text, texts):
            raise _Refused(_LOST)
        after = kept or self._reword(able[0], text, parts)
        return _Join(parts, kept or able[0], after, _MERGED, _reason(change, "they say the same"))

    def _update(self, parts: Sequence[Record], change: Mapping[str, object]) -> _Join:
        """Return the join that puts the later text in place of the former; the model's own is left out."""
        old, new = parts
        if has_right(new.by, old.by) < 0:
            raise _Refused(_OWN_WORDS)
        if old.agent not in ("", new.agent):
            raise _Refused("of another agent")
        if new.by != "user" and _is_unsafe(new.text, self.context.intake.by, new.kind):
            raise _Refused(_UNSAFE)
        after = replace(
            new,
            agent=old.agent,
            category=new.category or old.category,
            tags=new.tags or old.tags,
            meta={**old.meta, **new.meta, **self.context.provenance(self.label)},
        )
        return _Join(parts, old, after, _UPDATED, _reason(change, "it tells a later state"))

    def _reword(self, kept: Record, text: str, parts: Sequence[Record]) -> Record:
        """Return a record with the words of a model in place of several texts, unless they add anything."""
        texts, intake = [part.text for part in parts], self.context.intake
        if not text:
            raise _Refused("no text")
        if len(text) > min(sum(map(len, texts)), rules_of(intake.kinds, kept.kind).longest):
            raise _Refused("too long")
        if _is_unsafe(text, intake.by, kept.kind):
            raise _Refused(_UNSAFE)
        if loses(text, texts):
            raise _Refused(_LOST)
        if adds(text, texts):
            raise _Refused("added a value")
        placed = next((part for part in parts if part.chat), kept)
        meta = {**kept.meta, **self.context.provenance(self.label)}
        told = replace(kept, text=text, by=intake.by, meta=meta, flags=(), conflicts=())
        return replace(told, chat=placed.chat, messages=placed.messages, at=placed.at)


def _may_replace(record: Record, other: Record) -> bool:
    return has_right(record.by, other.by) >= 0 and record.agent in ("", other.agent)


def _is_unsafe(text: str, by: Writer, kind: str) -> bool:
    """Return whether a text would be quarantined, holds a credential, or is empty."""
    try:
        scanned = scan(Record("", kind, text), by)
    except InvalidInput:
        return True
    return scanned.trust == "quarantined" or scanned.text != text


# Writing


def _write(changes: Writing, intake: Intake, join: _Join) -> list[Record]:
    """Write the record that stands for several, then retract the others.

    An erasure of the record brings the others back, since they have later versions.
    """
    ids = [part.id for part in join.parts]
    wanted = RecordFilter(ids=ids, agents=intake.agents)
    current = {record.id: record for record in records.read(changes.tx, intake.space, NOW.version, wanted)}
    if not all(part.id in current and _content(current[part.id]) == _content(part) for part in join.parts):
        raise _Refused("changed since")
    kept, parts = current[join.kept.id], [current[identity] for identity in ids]
    former = records.versions_of(changes.tx, intake.space, kept.id)
    if any(version.meta.get(_OF) == ids and version.action in (_MERGED, _UPDATED) for version in former):
        raise _Refused("taken back before")
    pinned = any(part.pinned for part in current.values())
    after = replace(join.after, meta={**join.after.meta, _OF: ids}, pinned=pinned)
    if join.action == _MERGED:
        after = _gather(after, kept, parts)
    freed = sum(len(part.text) for part in parts if part.agent == kept.agent)
    if len(after.text) > freed:
        try:
            intake.check_total(changes, kept, len(after.text), freed)
        except InvalidInput as error:
            raise _Refused("no room") from error
    written = [changes.put(after, kept, by=intake.by, action=join.action, why=join.why)]
    for part in parts:
        if part.id != kept.id:
            gone = replace(part, meta={**part.meta, _INTO: kept.id})
            written.append(intake.take_back(changes, gone, "retract", join.why))
    return written


def _content(record: Record) -> tuple[object, ...]:
    """Return the fields of a record that a proposal rests on."""
    plain = (record.kind, record.target, record.agent, record.text, record.by, record.trust)
    return (*plain, record.since, record.until)


def _gather(after: Record, kept: Record, parts: Sequence[Record]) -> Record:
    """Return a record with all that others have beside their texts: evidence, sources, tags, priority.

    It is still found by their wordings.
    """
    sources = dict.fromkeys(source for part in parts for source in (part.source, *part.sources))
    own = ((Wording(part.text, by=part.by, chat=part.chat, messages=part.messages), part) for part in parts)
    wordings = (said for first, part in own for said in (first, *part.wordings) if said.text != after.text)
    return replace(
        after,
        category=kept.category or next((part.category for part in parts if part.category), ""),
        tags=tuple(dict.fromkeys(tag for part in (kept, *parts) for tag in part.tags)),
        priority=max(part.priority for part in parts),
        evidence=sum(part.evidence for part in parts),
        at=max((part.at for part in parts if part.at), default=after.at),
        wordings=tuple(dict.fromkeys(wordings)),
        sources=tuple(source for source in sources if source not in ("", kept.source)),
    )
