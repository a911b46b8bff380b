"""The agenda of workers: the spaces that were changed since one looked, and when each is to look again.

Who changes a space, with the space locked, touches it: a row that is there until a worker comes. That worker
then writes a row for each registered worker, as what one is unable to do another may do. Neither depends on
a clock, so no clock that goes wrong hides a change. Workers of the same abilities have the same name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from holdfast.store.database import retry_transaction
from holdfast.types import MAX_COUNT

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database

# In place of the name of a worker.
TOUCHED = "*"
IS_TOUCHED = f"SELECT count(*) FROM agenda WHERE space = :space AND worker = '{TOUCHED}'"
_TOUCH = f"""
    INSERT INTO agenda (space, worker, due) VALUES (:space, '{TOUCHED}', 0)
    ON CONFLICT (space, worker) DO NOTHING"""
_TAKE = f"DELETE FROM agenda WHERE space = :space AND worker = '{TOUCHED}' RETURNING due"
# A worker is registered by its row of the shared space, with 0 until all spaces have a row.
_REGISTERED = f"""
    SELECT worker, due FROM agenda
    WHERE space = :space AND worker <> '{TOUCHED}' AND (due = 0 OR due > :dead)"""
_SET = """
    INSERT INTO agenda (space, worker, due) VALUES (:space, :worker, :due)
    ON CONFLICT (space, worker) DO UPDATE SET due = excluded.due"""
_SET_SOONER = f"{_SET} WHERE agenda.due > excluded.due"
_LEASE = """
    UPDATE agenda SET due = :lease
    WHERE space = :space AND worker = :worker AND due > 0 AND due <= :now RETURNING due"""
# Unless the space was touched meanwhile, and another worker has noted it.
_SET_NEXT = "UPDATE agenda SET due = :due WHERE space = :space AND worker = :worker AND due = :lease"
_DROP = "DELETE FROM agenda WHERE space = :space AND worker = :worker AND due = :lease"
# It crosses spaces, as `spaces_below`.
_PAGE_OF = """
    SELECT space, worker, due FROM agenda WHERE (space, worker) > (:after, :last)
    ORDER BY space, worker LIMIT :page"""
_PAGE = 500
# A worker looks at the shared space as often, in microseconds; one that is as long overdue is no more.
_MONTH = 30 * 86_400_000_000


class WorkerKey(NamedTuple):
    """A worker of a tenant, given by its shared space, with a name for what it is able to do."""

    shared: str
    name: str


def register(db: Database, worker: WorkerKey, spaces: Iterable[str], now: int) -> None:
    """Let a worker look at all `spaces` of the tenant, unless it is known already.

    In pages, so that no append waits for all of them; a worker that is killed meanwhile begins anew.
    """
    known = db.all(_REGISTERED, space=worker.shared, dead=now - _MONTH)
    if any(name == worker.name and due for name, due in known):
        return
    _set(db, worker, [worker.shared], 0)
    names = (space for space in spaces if space != worker.shared)
    while page := list(islice(names, _PAGE)):
        _set(db, worker, page, now)
    _set(db, worker, [worker.shared], now)


@retry_transaction
def _set(db: Database, worker: WorkerKey, spaces: Iterable[str], due: int) -> None:
    with db.writing() as tx:
        tx.many(_SET, [{"space": space, "worker": worker.name, "due": due} for space in spaces])


def touch(tx: Connection, space: str) -> None:
    """Let all workers look at a space, which `tx` has locked and changed."""
    tx.all(_TOUCH, space=space)


def due(db: Database, worker: WorkerKey, now: int, after: str = "") -> Iterator[str]:
    """Iterate over the spaces that a worker is to look at, in the order of the database; all, or `after` one.

    Linear in the spaces that were touched or wait for a time. Rows of workers that are no more are deleted.
    """
    space, last, seen, dead = after or worker.shared, "", after, now - _MONTH
    live = {TOUCHED, *(name for name, _ in db.all(_REGISTERED, space=worker.shared, dead=dead))}
    while rows := db.all(_PAGE_OF, after=space, last=last, page=_PAGE):
        for space, last, when in rows:
            if not space.startswith(worker.shared):
                return
            if space != seen and (last == TOUCHED or (last == worker.name and 0 < when <= now)):
                seen = space
                yield space
            if last not in live and when < dead:
                with db.writing(lasting=False) as tx:
                    tx.all(_DROP, space=space, worker=last, lease=when)
        if len(rows) < _PAGE:
            return


@retry_transaction
def claim(db: Database, worker: WorkerKey, space: str, now: int, lease: int) -> bool:
    """Return whether it is this worker's turn to look at a space, which is no other's until `lease`.

    What was committed before is to be seen by who looks; what comes later touches the space anew.
    """
    with db.writing_to(space, lasting=False) as tx:
        if tx.all(_TAKE, space=space):
            known = tx.all(_REGISTERED, space=worker.shared, dead=now - _MONTH)
            tx.many(_SET_SOONER, [{"space": space, "worker": name, "due": now} for name, _ in known])
        return bool(tx.all(_LEASE, space=space, worker=worker.name, now=now, lease=lease))


@retry_transaction
def release(db: Database, worker: WorkerKey, space: str, lease: int, due: int | None) -> None:
    """Note when the worker is to look at the space again, None for when it is touched, unless that was noted.

    What was looked at under a lease that was never released is looked at again when that is over.
    """
    if space == worker.shared:
        due = min(due or MAX_COUNT, lease + _MONTH)
    sql = _DROP if due is None else _SET_NEXT
    with db.writing(lasting=False) as tx:
        tx.all(sql, space=space, worker=worker.name, due=due, lease=lease)
