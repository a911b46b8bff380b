"""Changes of records: append-only; a transaction gives each change the next version of its space."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast import types
from holdfast.errors import Conflict
from holdfast.kinds import FEEDBACK
from holdfast.store import agenda, table_rows
from holdfast.store.checksums import seal
from holdfast.store.database import decoding, matching
from holdfast.store.message_rows import from_micros
from holdfast.store.record_rows import to_row, to_wordings
from holdfast.store.records import STATE, SpaceState
from holdfast.types import MAX_COUNT, Record

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.store.database import Connection, Database, Reader, Row, Value
    from holdfast.types import Change, Scope, Writer

# The priority of a record for which none was given.
_USUAL = 5
_END = """
    UPDATE records SET ended = :version WHERE space = :space AND version = :before AND ended = :open
    RETURNING born"""
_END_AT_NEXT = """
    UPDATE records SET ended = (
        SELECT min(n.version) FROM records n
        WHERE n.space = records.space AND n.id = records.id AND n.version > records.version)
    WHERE space = :space AND ended > (
        SELECT min(n.version) FROM records n
        WHERE n.space = records.space AND n.id = records.id AND n.version > records.version)"""
_LAST_MESSAGE = """
    SELECT at FROM messages WHERE space = :space AND chat = :chat AND seq BETWEEN :first AND :last
    ORDER BY seq DESC LIMIT 1"""
_SET_VERSION = """
    INSERT INTO spaces (space, epoch, version) VALUES (:space, 0, :version)
    ON CONFLICT (space) DO UPDATE SET version = excluded.version"""
_READ = """
    SELECT r.version, r.action, r.kind, r.id, b.text, b.retracted, r.text, r.retracted, r.writer, r.chat,
        r.created, r.why, r.batch, r.wordings, r.agent
    FROM records r LEFT JOIN records b ON b.space = r.space AND b.id = r.id AND b.ended = r.version
    WHERE r.space = :space AND r.version <= :at"""
_PAGE = 200  # changes that are read at once for a timeline
_WRITTEN = f"""{_READ}
    AND (r.created > :since OR (r.created = :since AND r.version > :version)) AND r.created < :until
    AND r.run = '' AND r.trust <> 'quarantined' AND r.action <> 'duplicate' AND r.kind <> '{FEEDBACK}'
    AND (:agent = '' OR r.agent IN ('', :agent)) ORDER BY r.created, r.version LIMIT :page"""
_UNDONE = "SELECT undone FROM records WHERE space = :space AND undone > 0"
_BATCHES = """
    SELECT version, batch FROM records
    WHERE space = :space AND version < :before AND undone = 0 AND run = '' ORDER BY version DESC LIMIT 64"""
_BATCH = """
    SELECT version, agent FROM records WHERE space = :space AND version >= :batch AND batch = :batch
    ORDER BY version DESC"""

_COUNTERPARTS = "SELECT other, other_version FROM moves WHERE space = :space AND version = :version"


class Writing:
    """A transaction that writes changes of records: a batch, each with the next version of the space.

    `seen` is the state of the space at its beginning: records that were read in the same state are unchanged.
    """

    def __init__(self, tx: Connection, space: str, now: int) -> None:
        self.tx = tx
        self.space = space
        self.now = now
        version, epoch, self._doc = tx.all(STATE, space=space)[0]
        self.version: int = version
        self.seen = SpaceState(version, epoch)
        self._batch = self.version + 1

    def put(
        self,
        record: Record,
        before: Record | None,
        *,
        by: Writer,
        action: str,
        why: str = "",
        undone: int = 0,
    ) -> Record:
        """Write the next version of a record, after `before` if there is one, and return it as stored.

        `by` makes the change; `record.by` wrote the text. A record without a time gets that of its messages.

        Raises:
            Conflict: `before` was changed or erased since it was read.

        """
        self.version += 1
        record = replace(
            record,
            id=before.id if before else f"rec_{self.version:08x}{random.getrandbits(32):08x}",
            version=self.version,
            priority=record.priority or _USUAL,
            at=record.at or self.message_time(record),
            created=from_micros(self.now),
            action=action,
            why=why,
        )
        row = to_row(record)
        row |= {"space": self.space, "ended": MAX_COUNT, "born": self._end(before), "batch": self._batch}
        row |= {"undone": undone, "doc": self._doc, "writer": by}
        table_rows.add(self.tx, "records", {**row, "checksum": seal("records", row, self.tx.key)})
        return record

    def _end(self, before: Record | None) -> int:
        """End the previous version of a record, and return its first one."""
        if before is None:
            return self.version
        numbers = {"version": self.version, "before": before.version, "open": MAX_COUNT}
        rows = self.tx.all(_END, space=self.space, **numbers)
        if not rows:
            raise Conflict(
                "The record was changed or erased meanwhile; nothing was stored.", "Read it again."
            )
        return int(rows[0][0])

    def message_time(self, record: Record) -> datetime:
        """Return the time of the last message that a record was learned from; now, if it names none."""
        rows: list[Row] = []
        if record.messages:
            first, last = record.messages
            rows = self.tx.all(_LAST_MESSAGE, space=self.space, chat=record.chat, first=first, last=last)
        return from_micros(rows[0][0] if rows else self.now)

    def end(self, record: Record, *, why: str) -> Record:
        """Retract a record in the name of the system."""
        return self.put(replace(record, retracted=True), record, by="system", action="retract", why=why)

    def add_job(self, kind: str, record: Record, other: Record) -> None:
        """Add a job about two records."""
        identity = f"job_{self.version:08x}{random.getrandbits(32):08x}"
        row = {"space": self.space, "id": identity, "kind": kind, "status": "open", "agent": record.agent}
        table_rows.add(self.tx, "jobs", {**row, "record": record.id, "other": other.id, "at": self.now})

    def finish(self) -> None:
        """Store the newest version of the space."""
        if self.version >= self._batch:
            self.tx.all(_SET_VERSION, space=self.space, version=self.version)
            agenda.touch(self.tx, self.space)


def end_at_next(db: Database, space: str) -> None:
    """End each version of a record where the next one begins, so that only one is current."""
    with db.writing_to(space) as tx:
        tx.all(_END_AT_NEXT, space=space)


@contextmanager
def writing(db: Database, space: str, now: int) -> Iterator[Writing]:
    """Open a transaction for changes of a space; nobody else changes the space meanwhile."""
    with db.writing_to(space) as tx:
        changes = Writing(tx, space, now)
        yield changes
        changes.finish()


def read(
    db: Reader,
    space: str,
    at: int,
    *,
    kind: str | None = None,
    identity: str | None = None,
    agents: Sequence[str] | None = None,
    limit: int | None = None,
) -> list[Change]:
    """Return changes up to a version, the newest first, with the texts of quarantined records."""
    condition, values = matching({"r.kind": kind, "r.id": identity}, {"r.agent": agents})
    sql = f"{_READ}{condition} ORDER BY r.version DESC LIMIT :limit"
    limit = MAX_COUNT if limit is None else limit
    return [_to_change(row) for row in db.all(sql, space=space, at=at, limit=limit, **values)]


def written(db: Reader, scope: Scope, since: int, until: int) -> Iterator[Change]:
    """Yield what became known between two times, in its order: no notes of runs, and nothing quarantined."""
    values: dict[str, Value] = {"at": MAX_COUNT, "until": until, "agent": scope.agent, "page": _PAGE}
    after = since, 0
    while rows := db.all(_WRITTEN, space=scope.space, since=after[0], version=after[1], **values):
        yield from map(_to_change, rows)
        after = rows[-1][10], rows[-1][0]


def undoable_versions(tx: Connection, space: str, agents: Sequence[str] | None) -> list[int]:
    """Return the versions of the newest batch that is not an undo and was not undone, if any."""
    passed = {row[0] for row in tx.all(_UNDONE, space=space)}
    before = MAX_COUNT
    while rows := tx.all(_BATCHES, space=space, before=before):
        for _, batch in rows:
            if batch in passed:
                continue
            members = tx.all(_BATCH, space=space, batch=batch)
            if agents is None or all(agent in agents for _, agent in members):
                return [row[0] for row in members]
            # It belongs to another agent.
            passed.add(batch)
        before = rows[-1][0]
    return []


def link(tx: Connection, here: tuple[str, int], there: tuple[str, int]) -> None:
    """Store that two versions, each with its space, were made by one move or copy, in both spaces."""
    for (space, version), (other, other_version) in ((here, there), (there, here)):
        row = {"space": space, "version": version, "other": other, "other_version": other_version}
        table_rows.add(tx, "moves", row)


def counterparts(reader: Reader, space: str, versions: Sequence[int]) -> list[tuple[str, int]]:
    """Return the versions of other spaces that were made by the same moves, each with its space."""
    results = (reader.all(_COUNTERPARTS, space=space, version=version) for version in versions)
    return [(str(other), int(version)) for rows in results for other, version in rows]


def _to_change(row: Row) -> Change:
    (
        number, action, kind, identity, before, gone_before, after, gone, by, chat,
        at, why, batch, wordings, agent,
    ) = row  # fmt: skip
    with decoding(f"Version {number} of the records"):
        said = to_wordings(wordings)[-1:] if action == "duplicate" else ()
        moment = from_micros(at)
    return types.Change(
        version=number,
        action=action,
        kind=kind,
        id=identity,
        before=None if gone_before is None or gone_before else before,
        after=None if gone else after,
        by=by,
        chat=chat,
        at=moment,
        why=why,
        batch=batch,
        said=said[0].text if said else "",
        agent=agent,
    )
