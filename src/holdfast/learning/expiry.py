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
from holdfast.store.record_expiry import Expiring
from holdfast.types import Record

KIND = "expire"
_BATCH = 250  # records that go in one transaction


def rules(kinds: Mapping[str, Kind]) -> list[Kind]:
    """Return the kinds whose records expire."""
    return [kind for kind in kinds.values() if any(kind.lifetimes)]


def next_due(context: JobContext) -> int | None:
    """Return when the first record of the scope expires, None for never."""
    due = partial(record_expiry.next_due, context.database, context.space, agents=context.intake.agents)
    times = map(due, rules(context.kinds))
    return min((time for time in times if time is not None), default=None)


def plan(context: JobContext) -> Iterator[WorkUnit]:
    """Plan a unit for each batch of records that are due, and one that purges files of what was erased."""
    for kind in rules(context.kinds):
        due = [record.version for _, record in _expired(context, context.database, kind)]
        for batch in batched(due, _BATCH):
            preview = partial(_preview, context, kind, batch)
            yield WorkUnit(None, partial(_expire, context, kind, batch), preview=preview)
        if due and kind.erase_expired:
            yield WorkUnit(None, lambda _: _purge(context))


def _preview(context: JobContext, kind: Kind, batch: Sequence[int]) -> list[Record]:
    return [gone for gone, _ in _expired(context, context.database, kind, batch)]


def _expired(
    context: JobContext, reader: Reader, kind: Kind, among: Sequence[int] | None = None
) -> list[tuple[Record, Record]]:
    """Return the records that are due, or those `among` some versions, each as it will be and as it is."""
    now = context.now()
    due = record_expiry.expiring(reader, context.space, kind, context.intake.agents, now, among)
    current = records.by_versions(reader, context.space, [row.version for row in due])
    why = [_why(kind, row, now) for row in due]
    return [
        (replace(current[row.version], retracted=True, action=KIND, why=reason), current[row.version])
        for row, reason in zip(due, why, strict=True)
    ]


def _why(kind: Kind, row: Expiring, now: int) -> str:
    """Return the reason for which a record expires."""
    said, used = kind.lifetimes
    what, kept, at = ("said or used", used or 0, row.last)
    if said is not None and row.said <= now - said:
        what, kept, at = "said", said, row.said
    return f"it was {what} {_span(now - at)} ago; its kind keeps it for {_span(kept)}"


def _span(time: int) -> str:
    hours = time // micros(timedelta(hours=1))
    number, unit = (hours // 24, "day") if hours >= 24 else (hours, "hour")
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


def _expire(context: JobContext, kind: Kind, batch: Sequence[int], _: str | None) -> UnitResult:
    """Retract or erase the records of a batch that are still due."""
    gone, receipt = list[Record](), None
    with context.transaction() as changes:
        context.advance(changes)
        due = _expired(context, changes.tx, kind, batch)
        if due and kind.erase_expired:
            worker = context.held.worker if context.held else ""
            receipt = erasure.erase_expired(changes, [record.id for _, record in due], worker)
        else:
            put = partial(changes.put, by="system", action=KIND)
            gone = [put(after, before, why=after.why) for after, before in due]
    if receipt is None:
        context.events.tell_of(context.scope, gone)
        return UnitResult(tuple(gone))
    context.events.tell(Event("erased", context.scope, erasure=receipt))
    return UnitResult(note=f"{len(due):,} of the kind {kind.name} were erased; the receipt is {receipt.id}")


def _purge(context: JobContext) -> UnitResult:
    erasure.purge_deferred(context.database)
    return UnitResult()
