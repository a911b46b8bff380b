"""Expiry: what the rule of a kind lets go is retracted, or erased, a batch of records a transaction.

The application makes the rules, so the changes are signed by it. Each batch is one change to `undo`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from holdfast.events import Event
from holdfast.kinds import Kind
from holdfast.learning.job_context import JobContext, UnitResult, WorkUnit, micros
from holdfast.store import erasure, record_expiry, records
from holdfast.store.database import Reader, batched
from holdfast.store.record_expiry import Expiring, Rule
from holdfast.types import Record
from holdfast.types.checks import as_duration

KIND = "expire"
_BATCH = 250  # records that go in one transaction


def rules(kinds: Mapping[str, Kind]) -> tuple[Rule, ...]:
    """Return the rules of the kinds that have one."""
    return tuple(
        Rule(kind.name, _micros(kind.expires), _micros(kind.expires_unused), kind.erase_expired)
        for kind in kinds.values()
        if kind.does_expire
    )


def _micros(kept: str | timedelta | None) -> int | None:
    duration = as_duration(kept, "expires")
    return None if duration is None else micros(duration)


def next_due(context: JobContext) -> int | None:
    """Return when the first record of the scope expires, None for never."""
    due = partial(record_expiry.next_due, context.database, context.space, agents=context.intake.agents)
    times = [due(rule) for rule in rules(context.kinds)]
    return min((time for time in times if time is not None), default=None)


def plan(context: JobContext) -> Iterator[WorkUnit]:
    """Plan a unit for each batch of records that are due, and one that purges files of what was erased."""
    for rule in rules(context.kinds):
        due = _due(context, context.database, rule)
        for batch in batched([row.version for row in due], _BATCH):
            apply, preview = partial(_expire, context, rule, batch), partial(_preview, context, rule, batch)
            yield WorkUnit(None, apply, preview=preview)
        if due and rule.erases:
            yield WorkUnit(None, lambda _: _purge(context))


def _due(
    context: JobContext, reader: Reader, rule: Rule, among: Sequence[int] | None = None
) -> list[Expiring]:
    agents, now = context.intake.agents, context.now()
    return record_expiry.expiring(reader, context.space, rule, agents, now, among)


def _preview(context: JobContext, rule: Rule, batch: Sequence[int]) -> list[Record]:
    return [gone for gone, _ in _expired(context, context.database, rule, batch)]


def _expired(
    context: JobContext, reader: Reader, rule: Rule, batch: Sequence[int]
) -> list[tuple[Record, Record]]:
    """Return the records of a batch that are still due, each as it is to be and as it is."""
    due = {row.version: row for row in _due(context, reader, rule, batch)}
    current = records.by_versions(reader, context.space, list(due))
    why = {version: _why(rule, due[version], context.now()) for version in current}
    return [
        (replace(record, retracted=True, action=KIND, why=why[version]), record)
        for version, record in current.items()
    ]


def _why(rule: Rule, row: Expiring, now: int) -> str:
    """Return the reason for which a record expires."""
    is_old = rule.said is not None and row.said <= now - rule.said
    kept, since = (rule.said, row.said) if is_old else (rule.used, row.last)
    what = "said" if is_old else "said or used"
    return f"it was {what} {_span(now - since)} ago; a {rule.kind} is kept for {_span(kept or 0)} after that"


def _span(time: int) -> str:
    hours = time // micros(timedelta(hours=1))
    number, unit = (hours // 24, "day") if hours >= 24 else (hours, "hour")
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


def _expire(context: JobContext, rule: Rule, batch: Sequence[int], _: str | None) -> UnitResult:
    """Retract or erase the records of a batch that are still due."""
    gone, receipt = list[Record](), None
    with context.transaction() as changes:
        context.advance(changes)
        due = _expired(context, changes.tx, rule, batch)
        if due and rule.erases:
            worker = context.held.worker if context.held else ""
            receipt = erasure.erase_expired(changes, [record.id for _, record in due], worker)
        else:
            put = partial(changes.put, by="system", action=KIND)
            gone = [put(after, before, why=after.why) for after, before in due]
    if receipt is None:
        context.events.tell_of(context.scope, gone)
        return UnitResult(tuple(gone))
    context.events.tell(Event("erased", context.scope, erasure=receipt))
    return UnitResult(note=f"{len(due):,} of the kind {rule.kind} were erased; the receipt is {receipt.id}")


def _purge(context: JobContext) -> UnitResult:
    erasure.purge_deferred(context.database)
    return UnitResult()
