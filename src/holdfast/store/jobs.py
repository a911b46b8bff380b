"""Jobs: a durable queue. A worker leases jobs; when its lease is over, another worker may claim them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast import types
from holdfast.errors import Damaged
from holdfast.store import agenda
from holdfast.store.database import RolledBack, decoding, matching, one_of, retry_transaction
from holdfast.store.message_rows import from_micros, to_micros
from holdfast.text.json_text import load_object

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Reader, Row, Value
    from holdfast.types import Job, JobStatus

# Each is a field of `Job`.
_FIELDS = (
    "id kind at status agent chat due attempts ended reason error calls prompt_tokens answer_tokens".split()
)
_LAST = to_micros(datetime.max.replace(tzinfo=UTC))  # what is due later, by a clock near the end, is due then
_LEASED_UNTIL = "CASE WHEN status = 'running' THEN lease ELSE due END"
_COLUMNS = f"{', '.join(_FIELDS)}, record, other".replace("due", _LEASED_UNTIL, 1)
_BY_ID = f"SELECT {_COLUMNS} FROM jobs WHERE space = :space AND id = :id"
_ADD = """
    INSERT INTO jobs (space, id, kind, status, record, other, at, agent, chat, payload, due)
    VALUES (:space, :id, :kind, 'open', '', '', :at, :agent, :chat, :payload, :due)
    ON CONFLICT (space, id) DO UPDATE SET
        status = 'open', at = excluded.at, attempts = 0, reason = '', error = '', payload = excluded.payload,
        due = CASE WHEN excluded.due < jobs.ended + :pause THEN jobs.ended + :pause ELSE excluded.due END
    WHERE jobs.status = 'done' OR (:again = 1 AND jobs.status <> 'running')"""
_DUE = """
    SELECT id, kind, agent, attempts, record FROM jobs
    WHERE space = :space AND ((status = 'open' AND due <= :now) OR (status = 'running' AND lease <= :now))"""
_CLAIM = f"""
    UPDATE jobs SET status = 'running', worker = :worker, lease = :lease, attempts = attempts + 1, due = 0
    WHERE space = :space AND id = :id RETURNING {_COLUMNS}, payload"""
# Episodes and reflections come after the observation of the same messages, which may make them needless.
_READING = "(o.status = 'running' OR (o.status = 'open' AND o.due <= :now))"
_AFTER = f"""
    AND NOT (kind = 'episode' AND EXISTS (
        SELECT 1 FROM jobs o WHERE o.space = :space AND o.id = 'observe:' || jobs.chat AND {_READING}))
    AND NOT (kind = 'reflect' AND EXISTS (
        SELECT 1 FROM jobs o WHERE o.space = :space AND o.kind = 'observe' AND o.agent = jobs.agent
        AND {_READING}))"""
# A running job that is added again is opened again when it has ended.
_ADD_AGAIN = "UPDATE jobs SET due = :due WHERE space = :space AND id = :id AND status = 'running'"
# Extraction from a text, or from some messages, is done once.
_DROP = """
    DELETE FROM jobs WHERE space = :space AND id = :id AND status = 'done' AND kind = 'observe'
    AND id <> kind || ':' || chat"""
_FAIL_CRASHED = f"""
    UPDATE jobs SET status = 'failed', ended = :now, reason = 'crash', error = :error
    WHERE space = :space AND status = 'running' AND lease <= :now AND attempts >= :most
    RETURNING {_COLUMNS}"""
_FAIL_DAMAGED = """
    UPDATE jobs SET status = 'failed', reason = 'Damaged', error = :error, at = 0, due = 0, ended = :now,
        payload = NULL
    WHERE space = :space AND id = :id"""
_CRASHED = "Its worker died each time. Fix what ends it, then retry the job."
# If a job that is done was added again while it ran, it has a time at which it is due.
_FINISH = f"""
    UPDATE jobs SET worker = '', reason = :reason, error = :error,
        status = CASE WHEN :status = 'done' AND due > 0 THEN 'open' ELSE :status END,
        payload = CASE WHEN :status = 'done' AND due = 0 THEN NULL ELSE payload END,
        attempts = CASE WHEN :status = 'done' THEN 0 ELSE attempts - :uncounted END,
        due = CASE WHEN :status = 'open' THEN :due ELSE due END,
        ended = CASE WHEN :status = 'open' THEN ended ELSE :now END
    WHERE space = :space AND id = :id AND worker = :worker RETURNING {_COLUMNS}"""
_REVOKE = """
    UPDATE jobs SET status = 'open', worker = ''
    WHERE space = :space AND status = 'running' AND worker <> :but"""
_RETRY = """
    UPDATE jobs SET status = 'open', due = :now, attempts = 0
    WHERE space = :space AND id = :id AND status <> 'running' AND (:any = 1 OR agent = :agent)"""
_FORGIVE = """
    UPDATE watermarks SET failures = 0 WHERE space = :space AND kind = (
        SELECT kind FROM jobs WHERE space = :space AND id = :id AND (:any = 1 OR agent = :agent))"""


class LeaseLost(Exception):
    """Another worker has the job by now, or it was erased."""


class Lease(NamedTuple):
    """Jobs that a worker has claimed for a time; results are stored only while it holds all of them."""

    space: str
    worker: str
    jobs: tuple[Job, ...]
    payload: Mapping[str, object]

    def check(self, tx: Connection) -> None:
        """Raise LeaseLost unless the worker still holds all of them; `tx` has locked the space."""
        sql = "SELECT worker FROM jobs WHERE space = :space AND id = :id AND status = 'running'"
        if any(tx.all(sql, space=self.space, id=job.id) != [(self.worker,)] for job in self.jobs):
            raise LeaseLost


def job_id(kind: str, key: str) -> str:
    """Return the id of the only job of a kind for a chat or an agent."""
    return f"{kind}:{key}"


def add(
    tx: Connection,
    space: str,
    kind: str,
    *,
    now: int,
    agent: str = "",
    chat: str = "",
    id: str | None = None,
    due: int | None = None,
    payload: Mapping[str, object] | None = None,
    again: bool = False,
    pause: int = 0,
) -> str:
    """Add a job and return its id: by default, that of its kind for its chat or else its agent.

    A job that is done is opened again, due when the `pause` since then is over. One that waits, runs, or
    failed stays as it is unless it is added `again`; a running one is then opened when it has ended.
    """
    identity = job_id(kind, chat or agent) if id is None else id
    values: dict[str, Value] = {"space": space, "id": identity, "due": now if due is None else due}
    if again:
        tx.all(_ADD_AGAIN, **values)
    values |= {"kind": kind, "at": now, "agent": agent, "chat": chat, "again": int(again), "pause": pause}
    tx.all(_ADD, payload=None if payload is None else json.dumps(payload), **values)
    agenda.touch(tx, space)
    return identity


class Claim(NamedTuple):
    """The jobs that a worker may lease: of some `kinds`, of some `ids` and of an `agent`, None for any.

    Jobs whose last failure had one of the reasons `but` are left out, unless they are of one of the kinds
    `unless`. With `in_order`, episodes and reflections wait for observations of the same chats. At most
    `pairs` jobs about pairs of records are leased together, until the time `lease`.
    """

    now: int
    lease: int
    kinds: Sequence[str]
    pairs: int = 1
    ids: Sequence[str] | None = None
    agent: str | None = None
    but: Sequence[str] = ()
    unless: Sequence[str] = ()
    in_order: bool = False

    def condition(self) -> tuple[str, dict[str, Value]]:
        """Return the SQL condition on the jobs, and its parameters."""
        condition, values = matching({"agent": self.agent}, {"kind": self.kinds, "id": self.ids})
        if self.but:
            reasons, named = one_of("reason", self.but)
            exempt: dict[str, Value] = {f"unless{n}": kind for n, kind in enumerate(self.unless)}
            kept = ", ".join(f":{name}" for name in exempt) or "NULL"
            condition += f" AND (kind IN ({kept}) OR NOT {reasons})"
            values |= {**named, **exempt}
        return condition + (_AFTER if self.in_order else ""), values


def claim(db: Database, space: str, wanted: Claim) -> Lease | None:
    """Lease the job that is due longest, and others of its kind for one batch; None if none is due.

    A job whose lease is over is due as well.
    """

    @retry_transaction
    def lease() -> list[Row]:
        with db.writing_to(space) as tx:
            return _claim(tx, space, wanted)

    while rows := lease():
        try:
            return _to_lease(space, rows)
        except Damaged as error:
            _fail_damaged(db, space, [row[0] for row in rows], str(error), wanted.now)
    return None


def count_due(db: Database, space: str, wanted: Claim) -> int:
    """Return the number of jobs that workers could lease now one after the other."""
    condition, values = wanted._replace(in_order=False).condition()
    sql = f"SELECT count(*) FROM ({_DUE}{condition}) AS due"
    return int(db.all(sql, space=space, now=wanted.now, **values)[0][0])


@retry_transaction
def preview(db: Database, space: str, wanted: Claim, add: Callable[[Connection], None]) -> list[Lease]:
    """Return the leases that workers would get, in their order, after `add`; nothing is stored."""
    leases = []
    with suppress(RolledBack), db.writing_to(space) as tx:
        add(tx)
        while rows := _claim(tx, space, wanted):
            leases.append(_to_lease(space, rows))
        raise RolledBack
    return leases


def _to_lease(space: str, rows: Sequence[Row]) -> Lease:
    with decoding("The payload of a job"):
        payload = load_object(rows[0][-2] or "{}")
    return Lease(space, rows[0][-1], tuple(_to_job(row[:-2]) for row in rows), payload)


def _claim(tx: Connection, space: str, wanted: Claim) -> list[Row]:
    worker = f"{wanted.now:x}{random.getrandbits(64):016x}"
    condition, values = wanted.condition()
    sql = _DUE + condition
    due = tx.all(f"{sql} ORDER BY due, at, id LIMIT 1", space=space, now=wanted.now, **values)
    if not due:
        return []
    _, kind, owner, attempts, record = due[0]
    # One that failed is tried alone.
    if record and not attempts:
        sql += " AND kind = :batch AND agent = :owner AND record <> '' AND attempts = 0"
        sql += " ORDER BY due, at, id LIMIT :most"
        batch: dict[str, Value] = {"batch": kind, "owner": owner, "most": wanted.pairs}
        due = tx.all(sql, space=space, now=wanted.now, **batch, **values)
    claimed = [tx.all(_CLAIM, space=space, id=row[0], worker=worker, lease=wanted.lease)[0] for row in due]
    return [(*row, worker) for row in claimed]


@retry_transaction
def _fail_damaged(db: Database, space: str, ids: Sequence[str], error: str, now: int) -> None:
    with db.writing_to(space) as tx:
        tx.many(_FAIL_DAMAGED, [{"space": space, "id": id, "error": error, "now": now} for id in ids])


@retry_transaction
def fail_crashed(db: Database, space: str, now: int, most: int) -> list[Job]:
    """Fail the jobs whose workers have died `most` times, and return them."""
    with db.writing_to(space) as tx:
        rows = tx.all(_FAIL_CRASHED, space=space, now=now, most=most, error=_CRASHED)
    return [_to_job(row) for row in rows]


@retry_transaction
def renew(db: Database, held: Lease, lease: int) -> None:
    """Extend the lease of jobs.

    Raises:
        LeaseLost: another worker has one of them by now.

    """
    sql = "UPDATE jobs SET lease = :lease WHERE space = :space AND id = :id"
    with db.writing_to(held.space) as tx:
        held.check(tx)
        tx.many(sql, [{"space": held.space, "id": job.id, "lease": lease} for job in held.jobs])


@retry_transaction
def finish(
    db: Database,
    held: Lease,
    status: JobStatus,
    *,
    now: int,
    due: int = 0,
    reason: str = "",
    error: str = "",
    counted: bool = True,
) -> list[Job]:
    """Store the outcome of jobs: done, open for another attempt, or failed; return those still held.

    An attempt that is not `counted` does not bring a job nearer to its final failure.
    """
    values: dict[str, Value] = {"status": status, "now": now, "due": due, "reason": reason, "error": error}
    values |= {"worker": held.worker, "uncounted": int(not counted)}
    ended = []
    with db.writing_to(held.space) as tx:
        for job in held.jobs:
            rows = tx.all(_FINISH, space=held.space, id=job.id, **values)
            ended += [_to_job(row) for row in rows]
            if rows and status == "done":
                tx.all(_DROP, space=held.space, id=job.id)
    return ended


def revoke_leases(tx: Connection, space: str, but: str = "") -> None:
    """Revoke the leases of all workers of a space but one, so that no words are stored that are erased."""
    tx.all(_REVOKE, space=space, but=but)


@retry_transaction
def retry(db: Database, space: str, identity: str, now: int, agent: str | None = None) -> Job | None:
    """Open a job again, unless it runs; None if there is no such job, or it is another agent's."""
    keys: dict[str, Value] = {"space": space, "id": identity, "any": int(agent is None), "agent": agent or ""}
    with db.writing_to(space) as tx:
        tx.all(_RETRY, now=now, **keys)
        tx.all(_FORGIVE, **keys)
        agenda.touch(tx, space)
    return next((job for job in by_ids(db, space, [identity]) if agent in (None, job.agent)), None)


def read(
    db: Reader, space: str, statuses: Sequence[JobStatus], agents: Sequence[str] | None = None
) -> list[Job]:
    """Return the jobs of a space, the oldest first; of some agents, or of all."""
    condition, values = matching({}, {"status": statuses, "agent": agents})
    sql = f"SELECT {_COLUMNS} FROM jobs WHERE space = :space {condition} ORDER BY at, id"
    return [_to_job(row) for row in db.all(sql, space=space, **values)]


def by_ids(db: Reader, space: str, ids: Sequence[str]) -> list[Job]:
    """Return the jobs with some ids; those that were deleted are left out."""
    return [_to_job(row) for identity in ids for row in db.all(_BY_ID, space=space, id=identity)]


def _to_job(row: Row) -> Job:
    *values, record, other = row
    fields: dict[str, Any] = dict(zip(_FIELDS, values, strict=True))
    with decoding(f"Job {fields['id']!r}"):
        fields["at"] = from_micros(fields["at"])
        for name in ("due", "ended"):
            fields[name] = from_micros(min(fields[name], _LAST)) if fields[name] else None
    return types.Job(**fields, records=(record, other) if record else ())
