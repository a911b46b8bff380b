"""Moves and copies of records between spaces: one transaction, a change in each space that it writes."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.errors import Conflict, InvalidInput
from holdfast.records.draft import allow, rules_of
from holdfast.store import grants, records
from holdfast.store.database import retry_transaction
from holdfast.store.record_changes import Writing, counterparts, link
from holdfast.store.records import NOW, RecordFilter
from holdfast.types import scope_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from holdfast.events import Events
    from holdfast.records.intake import Intake
    from holdfast.types import Record, Scope

    Release = Callable[[Writing], Record] | None


def carry(
    intake: Intake, identity: str, to: str, events: Events, *, keep: bool = False, free: Release = None
) -> Record:
    """Move a record from the nearest space that has it to another one, or with `keep` copy it.

    Returns the record there. `free` releases it before that, where it waits in quarantine.

    Raises:
        InvalidInput: there is no such record or space, it is in quarantine, of a run, or there already.
        Denied: a right is missing on one of the spaces, or this writer may not change the kind.
        Conflict: the other space has one like it.

    """
    target = intake.scope.named(to)
    linked = _carry(intake, identity, target, keep=keep, free=free)
    for scope, record in linked:
        events.tell_of(scope, [record])
    return replace(linked[0][1], space=intake.scope.reference(target.space))


@retry_transaction
def _carry(
    intake: Intake, identity: str, target: Scope, *, keep: bool, free: Release
) -> list[tuple[Scope, Record]]:
    """Return the record there and, of a move, the retracted record here, each with its scope."""
    with _writing(intake, {*intake.scope.spaces, target.space}) as changes:
        record = free(changes[intake.space]) if free else None
        source, record = (intake.space, record) if record else _find(intake, changes, identity)
        if source == target.space:
            raise InvalidInput(f"{identity!r} is in this space already.", "Name another space.")
        here, there = _in(intake, source), _in(intake, target.space)
        grants.check(changes[source].tx, intake.scope, source, "read" if keep else "write")
        grants.check(changes[source].tx, intake.scope, target.space, "write")
        allow(rules_of(intake.kinds, record.kind), intake.by, "add")
        _check_new(there, changes[target.space], record)
        # Its chat is one of the space that it leaves.
        wordings = tuple(replace(wording, chat="", messages=None) for wording in record.wordings)
        alone = replace(record, chat="", messages=None, wordings=wordings, replaces="", uses=0, used=None)
        alone = replace(alone, conflicts=())
        origin = f"from {target.reference(source)} ({record.id})"
        made = there.put(changes[target.space], alone, None, "copy" if keep else "move", origin)
        if keep:
            return [(there.scope, made)]
        allow(rules_of(intake.kinds, record.kind), intake.by, "remove")
        away = f"moved to {intake.scope.reference(target.space)} ({made.id})"
        gone = here.take_back(changes[source], record, "retract", away)
        link(changes[source].tx, (source, gone.version), (target.space, made.version))
        return [(there.scope, made), (here.scope, gone)]


def _in(intake: Intake, space: str) -> Intake:
    """Return an intake of the same agent and writer for another space."""
    return replace(intake, scope=replace(scope_of(space), agent=intake.scope.agent), chat="")


@contextmanager
def _writing(intake: Intake, spaces: Collection[str]) -> Iterator[Mapping[str, Writing]]:
    """Open one transaction for changes of spaces, which are locked in one order whoever comes."""
    with intake.database.writing() as tx, ExitStack() as last:
        for space in sorted(spaces):
            tx.lock(space)
        changes = {space: Writing(tx, space, intake.now) for space in spaces}
        yield changes
        for writing in changes.values():
            last.callback(writing.finish)


def _find(intake: Intake, changes: Mapping[str, Writing], identity: str) -> tuple[str, Record]:
    wanted = RecordFilter(ids=(identity,), agents=intake.agents)
    for space in intake.scope.spaces:
        grants.check(changes[space].tx, intake.scope, space)
        if matches := records.read(changes[space].tx, space, NOW.version, wanted):
            return space, matches[0]
    raise InvalidInput(
        f"No record that is read here has the id {identity!r}.", "See `memory.records()` for what is there."
    )


def _check_new(there: Intake, changes: Writing, record: Record) -> None:
    """Raise Conflict where the other space has the text already, or another text of its kind."""
    rules = there.kinds.get(record.kind)
    if rules and rules.one_per and (single := there.single(changes, record)) and not single.retracted:
        raise Conflict(f"There is a {record.kind} in that space already.", "Retract it there first.")
    wanted = RecordFilter(kinds=(record.kind,), agents=(record.agent,), target=record.target)
    same = records.read(changes.tx, changes.space, NOW.version, wanted)
    if any(other.text == record.text for other in same):
        raise Conflict("That space has a record of this text already.", "Retract one of the two.")


# Fields of a moved record that a later change may have altered.
_MOVED = ("text", "category", "tags", "meta", "since", "until", "retracted")


def undo_linked(intake: Intake, changes: Writing, versions: list[int]) -> list[tuple[Intake, Writing, int]]:
    """Return the other half of each move among some versions: intake and locked changes there, and version.

    What was erased there does not come back.

    Raises:
        Denied: the right to write there is missing.
        Conflict: the record was changed there since.

    """
    halves = []
    for space, version in counterparts(changes.tx, changes.space, versions):
        grants.check(changes.tx, intake.scope, space, "write")
        changes.tx.lock(space)
        moved = records.by_versions(changes.tx, space, (version,)).get(version)
        if moved is None:
            continue
        newest = records.latest(changes.tx, space, records.OF_ID, id=moved.id)
        if newest and any(getattr(newest, name) != getattr(moved, name) for name in _MOVED):
            what = f"The record {moved.id} was changed in the other space since it was moved."
            raise Conflict(what, "Undo that change there first, or write the record anew here.")
        halves.append((_in(intake, space), Writing(changes.tx, space, intake.now), version))
    return halves
