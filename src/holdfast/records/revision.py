"""Revisions of stored records: replace, retract, undo, roll back, release. Each writes new versions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from holdfast.errors import Denied, InvalidInput
from holdfast.kinds import Kind, nearest
from holdfast.records.draft import (
    RecordDraft,
    allow,
    as_record,
    check_expected,
    check_length,
    content_of,
    policy,
    rules_of,
    scan,
    unknown_version,
    writer_name,
)
from holdfast.records.intake import Intake, overwrite
from holdfast.records.moving import undo_linked
from holdfast.safety.guard import mask
from holdfast.store import branches, record_changes, records, runs
from holdfast.store.database import retry_transaction
from holdfast.store.message_rows import from_micros
from holdfast.store.record_changes import Writing
from holdfast.store.records import NOW, RecordFilter
from holdfast.text.clean import clean
from holdfast.text.shorten import shorten_line
from holdfast.types import MAX_COUNT, Record, Writer

# Records shown when a text names several.
_MAX_LISTED = 10


@retry_transaction
def replace_text(
    intake: Intake, what: str, draft: RecordDraft, *, kind: str | None, expected: int | None = None
) -> Record:
    """Write another text for a record; see `Memory.replace`."""
    scanned = scan(as_record(draft), intake.by)
    with intake.writing() as changes:
        before = find(intake, changes, what, kind, draft.run)
        check_expected(before, expected)
        rules = rules_of(intake.kinds, before.kind)
        allow(rules, intake.by, "change")
        check_length(scanned.text, rules)
        if before.run:
            runs.check_run(changes.tx, intake.space, before.run)
        ready = replace(scanned, kind=before.kind, target=before.target, agent=before.agent, run=before.run)
        if ready.trust == "quarantined":
            return intake.quarantine(changes, replace(ready, chat=ready.chat or before.chat), before)
        if not ready.chat or rules.one_per == "chat" or before.kind == "note":
            now = from_micros(intake.now)
            ready = replace(ready, chat=before.chat, messages=before.messages, at=ready.at or now)
        ready = replace(ready, since=ready.since or before.since, until=ready.until or before.until)
        return intake.put(changes, overwrite(before, ready), before, "replace")


@retry_transaction
def retract(
    intake: Intake, what: str, *, kind: str | None, run: str = "", why: str = "", expected: int | None = None
) -> Record:
    """Retract a record; see `Memory.retract`."""
    with intake.writing() as changes:
        before = find(intake, changes, what, kind, run)
        check_expected(before, expected)
        allow(rules_of(intake.kinds, before.kind), intake.by, "remove")
        return intake.take_back(changes, before, "retract", why)


@retry_transaction
def pin(intake: Intake, what: str, *, kind: str | None, action: Literal["pin", "unpin"]) -> Record:
    """Pin a record, or end that; one that is so already stays as it is. See `Memory.pin`."""
    with intake.writing() as changes:
        before = find(intake, changes, what, kind)
        allow(rules_of(intake.kinds, before.kind), intake.by, action)
        if before.pinned == (action == "pin"):
            return before
        return intake.put(changes, replace(before, pinned=not before.pinned), before, action)


@retry_transaction
def retract_all(intake: Intake, wanted: RecordFilter, passes: Callable[[Record], bool]) -> list[Record]:
    """Retract all records that pass the filters, in one transaction; see `Memory.retract_all`."""
    with intake.writing() as changes:
        matches = list(filter(passes, records.read(changes.tx, intake.space, NOW.version, wanted)))
        for record in matches:
            allow(rules_of(intake.kinds, record.kind), intake.by, "remove")
        return [intake.take_back(changes, record, "retract", "cleared") for record in matches]


def find(intake: Intake, changes: Writing, what: object, kind: str | None, run: str = "") -> Record:
    """Return the one current record with an id, with a part of its text, or of a kind that has only one.

    Raises:
        InvalidInput: there is none, or there are several: their ids and beginnings are shown.
        Denied: it is the one that the tenant shares.

    """
    if not isinstance(what, str) or not what.strip():
        raise InvalidInput("No record is named.", "Pass its id or a part of its text.")
    if kind is not None:
        policy(intake.kinds, kind)
    named = intake.kinds.get(what)
    if named and named.one_per == "agent" and kind in (None, what) and not run:
        return _find_one(intake, changes, what)
    what = clean(what)
    wanted = RecordFilter(kinds=None if kind is None else (kind,), agents=intake.agents, run=run)
    by_id = replace(wanted, ids=(what,))
    # With the chat, the session notes of its other agents as well.
    for condition in (by_id, replace(by_id, chat=intake.chat)) if intake.chat else (by_id,):
        if matches := records.read(changes.tx, intake.space, NOW.version, condition):
            return matches[0]
    return _one_with_text(records.read(changes.tx, intake.space, NOW.version, wanted), what)


def _one_with_text(current: list[Record], what: str) -> Record:
    """Return the one record with a part of a text; of several, the one whose whole text it is."""
    part, quoted = what.strip().casefold(), shorten_line(mask(what), 60)
    matches = [record for record in current if part in record.text.casefold()]
    if len(matches) > 1:
        matches = [record for record in matches if part == record.text.casefold()] or matches
    if not matches:
        raise InvalidInput(
            f"No record has the id or the text {quoted!r}.", "See `memory.records()` for what is there."
        )
    if len(matches) > 1:
        listed = "; ".join(
            f"{match.id} ({match.kind}) {shorten_line(match.text, 60)!r}" for match in matches[:_MAX_LISTED]
        )
        more = f" and {len(matches) - _MAX_LISTED} more" if len(matches) > _MAX_LISTED else ""
        raise InvalidInput(
            f"{len(matches)} records have the text {quoted!r}: {listed}{more}.",
            "Pass the id of one, or more of its text.",
        )
    return matches[0]


def _find_one(intake: Intake, changes: Writing, kind: str) -> Record:
    effective = intake.shown_one(changes, kind)
    if effective is None:
        raise InvalidInput(f"There is no {kind}.", "Write one first.")
    own = records.read(changes.tx, intake.space, NOW.version, RecordFilter(ids=(effective.id,)))
    if not own:
        raise Denied(
            f"The {kind} is the one that the tenant shares, which is not this user's to change.",
            "Change it through a handle of the tenant: memory.scoped(user='').",
        )
    return own[0]


@retry_transaction
def rollback(intake: Intake, what: str, version: int) -> list[Record]:
    """Restore a record or a kind as of a version; see `Memory.rollback`."""
    with intake.writing() as changes:
        if not 0 <= version <= changes.version:
            raise unknown_version(version, changes.version)
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
    then = {record.id: record for record in records.read(changes.tx, intake.space, version, wanted)}
    written = []
    why = f"to version {version}"
    for current in now:
        old = then.get(current.id)
        if (old is None or old.retracted) and not current.retracted:
            written.append(intake.take_back(changes, current, "rollback", why))
        elif old is not None and not old.retracted and _state(old) != _state(current):
            written.append(changes.put(old, current, by=intake.by, action="rollback", why=why))
    _check_totals(intake, changes, written)
    return written


def _rollback_one(intake: Intake, changes: Writing, kind: Kind, version: int) -> list[Record]:
    """Write again the one text that was shown at a version, and retract what would be shown before it."""
    wanted = RecordFilter(kinds=(kind.name,), agents=(intake.scope.agent, ""), retracted=True)
    now = records.read(changes.tx, intake.space, NOW.version, wanted)
    then = records.read(changes.tx, intake.space, version, replace(wanted, retracted=False))
    old = nearest(then, (), intake.scope.agent)
    written = []
    why = f"to version {version}"
    for current in now:
        if old is not None and current.id == old.id:
            written.append(changes.put(old, current, by=intake.by, action="rollback", why=why))
        elif not current.retracted and (old is None or (current.agent and not old.agent)):
            written.append(intake.take_back(changes, current, "rollback", why))
    if not written:
        raise InvalidInput(
            f"There was no {kind.name} at version {version}.", f"Choose one of `changes(kind={kind.name!r})`."
        )
    return written


def _check_totals(intake: Intake, changes: Writing, written: list[Record]) -> None:
    """Check the caps when all is written: one record may need what another frees."""
    for record in {(new.kind, new.target, new.agent, new.chat): new for new in written}.values():
        intake.check_total(changes, record)


@retry_transaction
def undo(intake: Intake, *, is_named: bool = True) -> list[Record]:
    """Undo the newest call that was not undone yet; see `Memory.undo`.

    Where no writer `is_named`, only what an agent may change is undone.
    """
    allowed = intake.by if is_named else "agent"
    with intake.writing() as changes:
        versions = record_changes.undoable_versions(changes.tx, intake.space, intake.agents)
        moved = branches.undoable(changes.tx, intake.space, intake.agents)
        if moved and moved.version >= max(versions, default=0):
            mover = branches.Mover(changes.tx, intake.scope, moved.chat, intake.now)
            mover.move(moved.before, "undo", moved.number)
            return []
        if not versions:
            raise InvalidInput("There is nothing to undo.", "Remember something first.")
        written = [_undo_one(intake, changes, version, versions[-1], allowed) for version in versions]
        _check_totals(intake, changes, written)
        for other, there, version in undo_linked(intake, changes, versions):
            batch = records.batch_of(there.tx, other.space, version)
            if batch is not None:
                # Not among those returned, which are of this space.
                _undo_one(other, there, version, batch, allowed)
                there.finish()
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
    """Release a record from quarantine; see `memory.quarantine.release`."""
    with intake.writing() as changes:
        return release_within(intake, identity, changes)


def release_within(intake: Intake, identity: str, changes: Writing) -> Record:
    """Release a record from quarantine within a transaction."""
    return _free(intake, changes, _find_held(intake, changes, identity, "release"))


@retry_transaction
def release_all(intake: Intake, chat: str | None) -> list[Record]:
    """Release all records from quarantine, or those of a chat; see `memory.quarantine.release_all`."""
    with intake.writing() as changes:
        _check_user(intake, "release")
        wanted = RecordFilter(agents=intake.agents, run=None, trust=("quarantined",))
        held = records.read(changes.tx, intake.space, NOW.version, wanted)
        return [_free(intake, changes, record) for record in held if chat is None or record.chat == chat]


def _free(intake: Intake, changes: Writing, held: Record) -> Record:
    allow(policy(intake.kinds, held.kind), intake.by, "add")
    return set_free(intake, changes, held, replace(held, trust="released", replaces=""))


def set_free(intake: Intake, changes: Writing, held: Record, freed: Record, why: str = "") -> Record:
    """Write a released record, in place of the text that it was to replace, if any."""
    before = intake.single(changes, held) if policy(intake.kinds, held.kind).one_per else None
    if held.replaces and before is None:
        before = records.latest(
            changes.tx, intake.space, f"{records.OF_ID} AND ended = :open", id=held.replaces, open=MAX_COUNT
        )
    if before is None:
        return intake.put(changes, freed, held, "release", why)
    # The text is now a version of the other record: erasing that record has to erase this one as well.
    done = "it took the place of another version"
    intake.take_back(changes, replace(held, replaces=before.id), "release", done)
    return intake.put(
        changes, replace(freed, agent=before.agent, pinned=before.pinned), before, "release", why
    )


@retry_transaction
def discard(intake: Intake, identity: str) -> Record:
    """Retract a record that is in quarantine; see `memory.quarantine.discard`."""
    with intake.writing() as changes:
        return intake.take_back(changes, _find_held(intake, changes, identity, "discard"), "discard")


def _check_user(intake: Intake, action: str) -> None:
    if intake.by != "user":
        raise Denied(
            f"Only the user may {action} what is in quarantine, not {writer_name(intake.by)}.",
            "Ask the user, and pass by='user'.",
        )


def _find_held(intake: Intake, changes: Writing, identity: str, action: str) -> Record:
    _check_user(intake, action)
    wanted = RecordFilter(ids=(identity,), agents=intake.agents, run=None, trust=("quarantined",))
    matches = records.read(changes.tx, intake.space, NOW.version, wanted)
    if not matches:
        raise InvalidInput(f"There is no {identity!r} in quarantine.", "See `memory.quarantine`.")
    return matches[0]


def _state(record: Record) -> tuple[object, ...]:
    return content_of(record), record.evidence, record.sources, record.wordings
