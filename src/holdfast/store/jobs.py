"""Jobs: a durable queue of what is left to do. A worker leases a job; one whose worker died is anybody's again."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import Damaged
from holdfast.store.database import repeated
from holdfast.store.message_rows import from_micros
from holdfast.types import Job, JobStatus

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Row, Value

_COLUMNS = (
    "id, kind, record, other, at, status, agent, chat, CASE WHEN status = 'running' THEN lease ELSE due END, attempts, ended, reason, error, calls, prompt_tokens, "
    "answer_tokens"
)
_BY_ID = f"SELECT {_COLUMNS} FROM jobs WHERE space = :space AND id = :id"
_ADD = """
    INSERT INTO jobs (space, id, kind, status, record, other, at, agent, chat, payload, due)
    VALUES (:space, :id, :kind, 'open', '', '', :at, :agent, :chat, :payload, :due)
    ON CONFLICT (space, id) DO UPDATE SET
        status = 'open', at = excluded.at, attempts = 0, reason = '', error = '', payload = excluded.payload,
        due = CASE WHEN excluded.due < jobs.ended + :pause THEN jobs.ended + :pause ELSE excluded.due END
    WHERE jobs.status = 'done' OR (:again = 1 AND jobs.status <> 'running')"""
_CLAIM = f"""
    UPDATE jobs SET status = 'running', worker = :worker, lease = :lease, attempts = attempts + 1, due = 0
    WHERE space = :space AND id = :id RETURNING {_COLUMNS}, payload"""
# A job that is wanted again while it runs is opened again when it has ended.
_WANT_AGAIN = "UPDATE jobs SET due = :due WHERE space = :space AND id = :id AND status = 'running'"
# What was extracted once from a text, or from some messages, is not waited for again.
_DROP = """
    DELETE FROM jobs WHERE space = :space AND id = :id AND status = 'done' AND kind = 'observe'
    AND id <> kind || ':' || chat"""
_GIVE_UP_ON_CRASHES = f"""
    UPDATE jobs SET status = 'failed', ended = :now, reason = 'crash', error = :error
    WHERE space = :space AND status = 'running' AND lease <= :now AND attempts >= :most
    RETURNING {_COLUMNS}"""
_DIED = "Its worker died each time. Mend what ends it, then retry the job."
_FINISHED = {
    # Who wanted it again while it ran has set a time at which it is due.
    "done": """UPDATE jobs SET status = CASE WHEN due > 0 THEN 'open' ELSE 'done' END, attempts = 0,
        payload = CASE WHEN due > 0 THEN payload END,
        worker = '', ended = :now, reason = '', error = ''
        WHERE space = :space AND id = :id AND worker = :worker RETURNING id""",
    "open": """UPDATE jobs SET status = 'open', worker = '', due = :due, reason = :reason, error = :error,
        attempts = attempts - :uncounted WHERE space = :space AND id = :id AND worker = :worker RETURNING id""",
    "failed": """UPDATE jobs SET status = 'failed', worker = '', ended = :now, reason = :reason, error = :error
        WHERE space = :space AND id = :id AND worker = :worker RETURNING id""",
}


class Lost(Exception):
    """Another worker has the job by now, or it was erased."""


class Held(NamedTuple):
    """Jobs that a worker has claimed, until `lease`; what it does for them is stored only while they are its own."""

    space: str
    worker: str
    jobs: tuple[Job, ...]
    payload: Mapping[str, object]

    def check(self, tx: Connection) -> None:
        """Raise Lost unless all of them are still the worker's; within a transaction that has locked the space."""
        for job in self.jobs:
            rows = tx.all(
                "SELECT worker FROM jobs WHERE space = :space AND id = :id AND status = 'running'",
                space=self.space,
                id=job.id,
            )
            if rows != [(self.worker,)]:
                raise Lost


def name(kind: str, key: str) -> str:
    """Give the id of the one job of a kind for a chat or an agent."""
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
    """Leave a job and return its id: by default, that of the one job of its kind for its chat or else its agent.

    One that is done is opened again, and is not due before the `pause` since then is over. One that waits, runs, or
    failed for good, stays as it is unless it is wanted `again`; one that runs is then opened when it has ended.
    """
    identity = name(kind, chat or agent) if id is None else id
    if again:
        tx.all(_WANT_AGAIN, space=space, id=identity, due=now if due is None else due)
    tx.all(
        _ADD,
        space=space,
        id=identity,
        kind=kind,
        at=now,
        agent=agent,
        chat=chat,
        payload=None if payload is None else json.dumps(payload),
        due=now if due is None else due,
        again=int(again),
        pause=pause,
    )
    return identity


@repeated
def claim(
    db: Database,
    space: str,
    *,
    now: int,
    lease: int,
    kinds: Sequence[str],
    batches: Mapping[str, int],
    ids: Sequence[str] | None = None,
    agent: str | None = None,
    but: Sequence[str] = (),
    unless: str = "",
) -> Held | None:
    """Take the job that is due longest, and of its kind as many more as go into one batch; None if none is due.

    A job whose lease is over is due as well. Those whose last failure had one of the reasons `but` are left, unless they
    are of the kind `unless`.
    """
    marks: dict[str, Value] = {f"kind{n}": kind for n, kind in enumerate(kinds)}
    wanted = f"AND kind IN ({', '.join(f':{mark}' for mark in marks) or 'NULL'})"
    if ids is not None:
        chosen: dict[str, Value] = {f"id{n}": identity for n, identity in enumerate(ids)}
        wanted += f" AND id IN ({', '.join(f':{mark}' for mark in chosen) or 'NULL'})"
        marks |= chosen
    if agent is not None:
        wanted += " AND agent = :agent"
        marks["agent"] = agent
    if but:
        reasons: dict[str, Value] = {f"reason{n}": reason for n, reason in enumerate(but)}
        wanted += f" AND (kind = :unless OR reason NOT IN ({', '.join(f':{mark}' for mark in reasons)}))"
        marks |= {**reasons, "unless": unless}
    worker = f"{now:x}{random.getrandbits(64):016x}"
    ready = f"""SELECT id, kind, agent, attempts FROM jobs WHERE space = :space {wanted} AND
        ((status = 'open' AND due <= :now) OR (status = 'running' AND lease <= :now))"""
    with db.writing() as tx:
        tx.lock(space)
        due = tx.all(f"{ready} ORDER BY due, at, id LIMIT 1", space=space, now=now, **marks)
        if not due:
            return None
        _, kind, owner, attempts = due[0]
        if kind in batches and not attempts:  # one that failed is tried alone
            like: dict[str, Value] = {"batch": kind, "owner": owner, "most": batches[kind]}
            due = tx.all(
                f"{ready} AND kind = :batch AND agent = :owner AND attempts = 0 ORDER BY due, at, id LIMIT :most",
                space=space,
                now=now,
                **like,
                **marks,
            )
        rows = [tx.all(_CLAIM, space=space, id=row[0], worker=worker, lease=lease)[0] for row in due]
    try:
        held = Held(space, worker, tuple(_to_job(row[:-1]) for row in rows), _to_payload(rows[0][-1]))
    except Damaged as error:
        with db.writing() as tx:
            tx.lock(space)
            for row in rows:
                tx.all(
                    "UPDATE jobs SET status = 'failed', reason = 'Damaged', error = :error, at = 0, due = 0, ended = :now, "
                    "payload = NULL WHERE space = :space AND id = :id",
                    space=space,
                    id=row[0],
                    error=str(error),
                    now=now,
                )
        return claim(
            db,
            space,
            now=now,
            lease=lease,
            kinds=kinds,
            batches=batches,
            ids=ids,
            agent=agent,
            but=but,
            unless=unless,
        )
    return held


@repeated
def give_up(db: Database, space: str, now: int, most: int) -> list[Job]:
    """Let jobs have failed whose workers have died `most` times, and return them."""
    with db.writing() as tx:
        tx.lock(space)
        rows = tx.all(_GIVE_UP_ON_CRASHES, space=space, now=now, most=most, error=_DIED)
    return [_to_job(row) for row in rows]


@repeated
def renew(db: Database, held: Held, lease: int) -> None:
    """Keep jobs for longer.

    Raises:
        Lost: another worker has one of them by now.

    """
    with db.writing() as tx:
        tx.lock(held.space)
        held.check(tx)
        for job in held.jobs:
            tx.all(
                "UPDATE jobs SET lease = :lease WHERE space = :space AND id = :id",
                space=held.space,
                id=job.id,
                lease=lease,
            )


@repeated
def finish(
    db: Database,
    held: Held,
    status: JobStatus,
    *,
    now: int,
    due: int = 0,
    reason: str = "",
    error: str = "",
    counted: bool = True,
) -> list[Job]:
    """Say what became of jobs: done, to be tried again when due, or failed; and return those that were still the worker's.

    An attempt that is not `counted` brings a job no nearer to failing for good.
    """
    values: dict[str, Value] = {
        "now": now,
        "due": due,
        "reason": reason,
        "error": error,
        "uncounted": int(not counted),
    }
    used = {name: value for name, value in values.items() if f":{name}" in _FINISHED[status]}
    with db.writing() as tx:
        tx.lock(held.space)
        ended = []
        for job in held.jobs:
            keys: dict[str, Value] = {"space": held.space, "id": job.id}
            if tx.all(_FINISHED[status], worker=held.worker, **keys, **used):
                ended += [_to_job(row) for row in tx.all(_BY_ID, **keys)]
                if status == "done":
                    tx.all(_DROP, **keys)
    return ended


def take_away(tx: Connection, space: str) -> None:
    """Take the jobs of a space from their workers: these may have read what was erased meanwhile, and store nothing."""
    tx.all(
        "UPDATE jobs SET status = 'open', worker = '' WHERE space = :space AND status = 'running'",
        space=space,
    )


@repeated
def retry(db: Database, space: str, identity: str, now: int, agent: str | None = None) -> Job | None:
    """Open a job again, whatever became of it, unless it runs; None if there is no such job, or it is another agent's."""
    with db.writing() as tx:
        tx.lock(space)
        tx.all(
            "UPDATE jobs SET status = 'open', due = :now, attempts = 0 "
            "WHERE space = :space AND id = :id AND status <> 'running' AND (:any = 1 OR agent = :agent)",
            space=space,
            id=identity,
            now=now,
            any=int(agent is None),
            agent=agent or "",
        )
        tx.all(
            "UPDATE watermarks SET failures = 0 WHERE space = :space AND kind = "
            "(SELECT kind FROM jobs WHERE space = :space AND id = :id AND (:any = 1 OR agent = :agent))",
            space=space,
            id=identity,
            any=int(agent is None),
            agent=agent or "",
        )
    found = by_ids(db, space, [identity])
    return next((job for job in found if agent in (None, job.agent)), None)


def read(
    db: Database, space: str, statuses: Sequence[JobStatus], agents: Sequence[str] | None = None
) -> list[Job]:
    """Read the jobs of a space, the oldest first; of some agents, or of all."""
    marks: dict[str, Value] = {f"status{n}": status for n, status in enumerate(statuses)}
    wanted = f"AND status IN ({', '.join(f':{mark}' for mark in marks) or 'NULL'})"
    if agents is not None:
        chosen: dict[str, Value] = {f"agent{n}": agent for n, agent in enumerate(agents)}
        wanted += f" AND agent IN ({', '.join(f':{mark}' for mark in chosen)})"
        marks |= chosen
    with db.reading() as connection:
        rows = connection.all(
            f"SELECT {_COLUMNS} FROM jobs WHERE space = :space {wanted} ORDER BY at, id",
            space=space,
            **marks,
        )
    return [_to_job(row) for row in rows]


def count(db: Database, space: str, status: JobStatus, agent: str | None = None) -> int:
    """Count the jobs of a status; of an agent, or of all."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT count(*) FROM jobs WHERE space = :space AND status = :status AND (:any = 1 OR agent = :agent)",
            space=space,
            status=status,
            any=int(agent is None),
            agent=agent or "",
        )
    return int(rows[0][0])


def by_ids(db: Database, space: str, ids: Sequence[str]) -> list[Job]:
    """Read the jobs of some ids; those that are gone are left out."""
    with db.reading() as connection:
        rows = [row for identity in ids for row in connection.all(_BY_ID, space=space, id=identity)]
    return [_to_job(row) for row in rows]


def payload(db: Database, space: str, identity: str) -> Mapping[str, object]:
    """Read what a job was left with."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT payload FROM jobs WHERE space = :space AND id = :id", space=space, id=identity
        )
    return _to_payload(rows[0][0]) if rows else {}


def _to_payload(text: str | None) -> Mapping[str, object]:
    try:
        found = json.loads(text) if text else {}
    except ValueError as error:
        raise Damaged("What a job was left with cannot be read.", "Restore a backup.") from error
    return found if isinstance(found, dict) else {}


def _to_job(row: Row) -> Job:
    (
        identity, kind, record, other, at, status, agent, chat, due, attempts, ended, reason, error, calls,
        prompt_tokens, answer_tokens,
    ) = row  # fmt: skip
    try:
        times = [from_micros(time) for time in (at, due, ended)]
    except (OverflowError, TypeError) as error_:
        raise Damaged(f"Job {identity!r} has a time that is none.", "Restore a backup.") from error_
    return Job(
        identity,
        kind,
        (record, other) if record else (),
        times[0],
        status=status,
        agent=agent,
        chat=chat,
        due=times[1] if due else None,
        attempts=attempts,
        ended=times[2] if ended else None,
        reason=reason,
        error=error,
        calls=calls,
        prompt_tokens=prompt_tokens,
        answer_tokens=answer_tokens,
    )
