"""Conflicts: which of two records that contradict each other is shown, and how a user settles them.

Nothing is compared here: a pair is what was known when the second record was stored.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.errors import InvalidInput
from holdfast.records.draft import allow, has_right, rules_of
from holdfast.store import record_conflicts
from holdfast.store.database import retry_transaction
from holdfast.store.message_rows import EPOCH, from_micros
from holdfast.store.records import NOW
from holdfast.types import CONFLICT, ConflictingRecords, Record

if TYPE_CHECKING:
    from holdfast.records.intake import Intake
    from holdfast.store.database import Reader
    from holdfast.store.record_changes import Writing


def pairs(
    reader: Reader,
    space: str,
    at: int,
    kinds: Collection[str],
    agents: Collection[str] | None,
    now: datetime,
) -> list[ConflictingRecords]:
    """Return the pairs as of a version of which both are true in the world at a time."""
    return [
        _pair(second, first, why)
        for second, first, why in record_conflicts.pairs(reader, space, at, kinds)
        if second.valid(now) and first.valid(now)
        if agents is None or (second.agent in agents and first.agent in agents)
    ]


def _pair(second: Record, first: Record, why: str) -> ConflictingRecords:
    right = has_right(second.by, first.by)
    is_later = (second.at or EPOCH) >= (first.at or EPOCH)
    shown, other = (second, first) if right > 0 or (right == 0 and is_later) else (first, second)
    return ConflictingRecords(shown, other, why)


@retry_transaction
def resolve(intake: Intake, keep: Sequence[str]) -> list[Record]:
    """Settle conflicts in one transaction; see `Memory.resolve`."""
    with intake.writing() as changes:
        now, kinds, space = from_micros(intake.now), intake.kinds, intake.space
        current = pairs(changes.tx, space, NOW.version, kinds, intake.agents, now)
        # Of several that are kept only what stands between them is settled.
        least = 2 if len(keep) > 1 else 1
        settled = [pair for pair in current if len(_ids(pair) & {*keep}) >= least]
        if not settled or {*keep} - {name for pair in settled for name in _ids(pair)}:
            raise InvalidInput(
                "What is to be kept is in no such conflict.", "See `memory.conflicts()` for what is."
            )
        rows = {record.id: record for pair in settled for record in (pair.shown, pair.other)}
        gone = {name: _take_back(intake, changes, rows[name], keep[0]) for name in rows if name not in keep}
        return [*(_settle(intake, changes, rows[name], {*rows}) for name in keep), *gone.values()]


def _ids(pair: ConflictingRecords) -> set[str]:
    return {pair.shown.id, pair.other.id}


def _take_back(intake: Intake, changes: Writing, record: Record, kept: str) -> Record:
    allow(rules_of(intake.kinds, record.kind), intake.by, "remove")
    return intake.take_back(changes, record, "retract", f"it contradicts {kept}, which was kept")


def _settle(intake: Intake, changes: Writing, record: Record, others: Collection[str]) -> Record:
    """Write a record that is kept without its conflicts with others."""
    left = tuple(name for name in record.conflicts if name not in others)
    flags = record.flags if left else tuple(flag for flag in record.flags if flag != CONFLICT)
    if (flags, left) == (record.flags, record.conflicts):
        return record
    return changes.put(replace(record, flags=flags, conflicts=left), record, by=intake.by, action="resolve")
