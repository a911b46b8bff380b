"""Revisions: go back to what was, and decide about what is in quarantine. Each writes new versions."""

from __future__ import annotations

from dataclasses import replace

from holdfast.errors import Denied, InvalidInput
from holdfast.kinds import Kind, nearest
from holdfast.records.draft import allow, named, no_version, policy, rules_of, says
from holdfast.records.intake import Intake
from holdfast.store import record_changes, records
from holdfast.store.database import retry_transaction
from holdfast.store.record_changes import Writing
from holdfast.store.records import NOW, RecordFilter
from holdfast.types import MAX_COUNT, Record, Writer


@retry_transaction
def rollback(intake: Intake, what: str, version: int) -> list[Record]:
    """Write what was at a version again; see `Memory.rollback`."""
    with intake.writing() as changes:
        if not 0 <= version <= changes.version:
            raise no_version(version, changes.version)
        if what in intake.kinds:
            kind = intake.kinds[what]
            allow(kind, intake.by, "roll back")
            back = _rollback_one if kind.one_per == "agent" else _rollback_kind
            return back(intake, changes, kind, version)
        wanted = RecordFilter(ids=(what,), agents=intake.agents, retracted=True)
        now = records.read(changes.tx, intake.space, NOW.version, wanted)
        then = records.read(changes.tx, intake.space, version, wanted)
        if not now:
            raise InvalidInput(
                f"There is no record and no kind {what!r}.", "Pass the id of a record, or a kind."
            )
        allow(rules_of(intake.kinds, now[0].kind), intake.by, "roll back")
        if not then or then[0].retracted:
            raise InvalidInput(
                f"There was no such record at version {version}.", "Choose one of `changes(id=…)`."
            )
        return [intake.put(changes, then[0], now[0], "rollback", f"to version {version}")]


def _rollback_kind(intake: Intake, changes: Writing, kind: Kind, version: int) -> list[Record]:
    wanted = RecordFilter(kinds=(kind.name,), agents=intake.agents, retracted=True)
    now = records.read(changes.tx, intake.space, NOW.version, wanted)
    then = {one.id: one for one in records.read(changes.tx, intake.space, version, wanted)}
    written = []
    why = f"to version {version}"
    for one in now:
        old = then.get(one.id)
        if (old is None or old.retracted) and not one.retracted:
            written.append(intake.take_back(changes, one, "rollback", why))
        elif old is not None and not old.retracted and _state(old) != _state(one):
            written.append(changes.put(old, one, by=intake.by, action="rollback", why=why))
    _check_totals(intake, changes, written)
    return written


def _rollback_one(intake: Intake, changes: Writing, kind: Kind, version: int) -> list[Record]:
    """Write again the one text that was shown at a version, and take back what stands before it."""
    wanted = RecordFilter(kinds=(kind.name,), agents=(intake.scope.agent, ""), retracted=True)
    now = records.read(changes.tx, intake.space, NOW.version, wanted)
    then = records.read(changes.tx, intake.space, version, replace(wanted, retracted=False))
    old = nearest(then, (), intake.scope.agent)
    written = []
    why = f"to version {version}"
    for one in now:
        if old is not None and one.id == old.id:
            written.append(changes.put(old, one, by=intake.by, action="rollback", why=why))
        elif not one.retracted and (old is None or (one.agent and not old.agent)):
            written.append(intake.take_back(changes, one, "rollback", why))
    if not written:
        raise InvalidInput(
            f"There was no {kind.name} at version {version}.",
            f"Choose one of `changes(kind={kind.name!r})`.",
        )
    return written


def _check_totals(intake: Intake, changes: Writing, written: list[Record]) -> None:
    """Check the caps when all is written: what one record frees, another may need."""
    for record in {(one.kind, one.target, one.agent, one.chat): one for one in written}.values():
        intake.check_total(changes, record)


@retry_transaction
def undo(intake: Intake, *, is_named: bool = True) -> list[Record]:
    """Take back the newest call that was not taken back yet; see `Memory.undo`.

    Where nobody `is_named` as the writer, it may do what an agent may: the call says neither who wants it nor of what.
    """
    allowed = intake.by if is_named else "agent"
    with intake.writing() as changes:
        versions = record_changes.undoable_versions(changes.tx, intake.space, intake.agents)
        if not versions:
            raise InvalidInput("There is nothing to undo.", "Remember something first.")
        written = [_undo_one(intake, changes, version, versions[-1], allowed) for version in versions]
        _check_totals(intake, changes, written)
        return written


def _undo_one(intake: Intake, changes: Writing, version: int, batch: int, by: Writer) -> Record:
    """Write what was before a version again, or that there was nothing."""
    tx, space, why = changes.tx, intake.space, f"of version {version}"
    (made,) = records.by_versions(tx, space, (version,)).values()
    allow(rules_of(intake.kinds, made.kind), by, "undo a change of")
    before = records.latest(tx, space, f"{records.OF_ID} AND ended = :version", id=made.id, version=version)
    now = records.latest(tx, space, f"{records.OF_ID} AND ended = :open", id=made.id, open=MAX_COUNT) or made
    if before is None or before.retracted:
        return intake.take_back(changes, now, "undo", why, undone=batch)
    return changes.put(before, now, by=intake.by, action="undo", why=why, undone=batch)


@retry_transaction
def release(intake: Intake, identity: str) -> Record:
    """Let a record out of quarantine; see `Memory.release`."""
    with intake.writing() as changes:
        held = _held(intake, changes, identity, "release")
        allow(policy(intake.kinds, held.kind), intake.by, "add")
        return set_free(intake, changes, held, replace(held, trust="released", replaces=""))


def set_free(intake: Intake, changes: Writing, held: Record, freed: Record, why: str = "") -> Record:
    """Write a record that was in quarantine as it is to be; where it was to replace another text, it does so now."""
    before = intake.single(changes, held) if policy(intake.kinds, held.kind).one_per else None
    if held.replaces and before is None:
        before = records.latest(
            changes.tx, intake.space, f"{records.OF_ID} AND ended = :open", id=held.replaces, open=MAX_COUNT
        )
    if before is None:
        return intake.put(changes, freed, held, "release", why)
    # What it says is now a version of the other record: who erases that one means this text as well.
    intake.take_back(
        changes, replace(held, replaces=before.id), "release", "it took the place of another version"
    )
    return intake.put(changes, replace(freed, agent=before.agent), before, "release", why)


@retry_transaction
def discard(intake: Intake, identity: str) -> Record:
    """Retract a record that is in quarantine; see `Memory.discard`."""
    with intake.writing() as changes:
        return intake.take_back(changes, _held(intake, changes, identity, "discard"), "discard")


def _held(intake: Intake, changes: Writing, identity: str, action: str) -> Record:
    if intake.by != "user":
        raise Denied(
            f"Only the user may {action} what is in quarantine, not {named(intake.by)}.",
            "Ask the user, and pass by='user'.",
        )
    wanted = RecordFilter(ids=(identity,), agents=intake.agents, run=None, trust=("quarantined",))
    found = records.read(changes.tx, intake.space, NOW.version, wanted)
    if not found:
        raise InvalidInput(f"There is no {identity!r} in quarantine.", "See `memory.quarantine()`.")
    return found[0]


def _state(record: Record) -> tuple[object, ...]:
    return says(record), record.evidence, record.sources, record.wordings
