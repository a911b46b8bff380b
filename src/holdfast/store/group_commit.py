"""Group commit: threads that write at the same time share one flush of the disk.

A thread that comes while a transaction is committed waits, and the next transaction does the work of all that
wait. No thread waits for others to join, and there is none beside those that write.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

from holdfast.errors import HoldfastError, Unavailable
from holdfast.store.database import Connection

T = TypeVar("T")


class Transaction(Connection, Protocol):
    """A transaction of SQLite, which has savepoints."""

    @property
    def in_transaction(self) -> bool:
        """Whether it is open; an error of the disk may have ended it."""


class Caller(Generic[T]):
    """A call that waits until its work is stored, or until it is its turn to lead."""

    __slots__ = ("error", "result", "settled", "turn", "work")
    result: Any

    def __init__(self, work: T) -> None:
        self.work = work
        self.error: BaseException | None = None
        self.settled = False
        self.turn = Lock()
        self.turn.acquire()

    def settle(self, failure: BaseException | None) -> None:
        """Let the caller go on, with the error of the whole transaction, if any."""
        if isinstance(failure, HoldfastError):
            # Each thread raises one of its own.
            self.error = copy(failure)
        elif failure is not None:
            self.error = Unavailable(
                f"The transaction that this call shared with others was broken off ({failure!r}).",
                "Nothing of it was stored; try again.",
            )
        self.settled = True
        self.turn.release()


def join(caller: Caller[Callable[[Connection], object]], tx: Transaction) -> None:
    """Do the work of a caller in a savepoint; a failure is undone, and its error goes to this caller only."""
    tx.all("SAVEPOINT caller")
    try:
        caller.result = caller.work(tx)
    except Exception as error:
        if not tx.in_transaction:
            # Nobody's work is left.
            raise
        caller.error = error
        tx.all("ROLLBACK TO caller")
    tx.all("RELEASE caller")


class GroupCommit(Generic[T]):
    """Shared transactions of several threads; one thread does the work of all that wait."""

    def __init__(self, write: Callable[[Iterator[Caller[T]]], None]) -> None:
        # Does the work of callers in a transaction, the first of which is the thread that runs it.
        self._write = write
        self._lock = Lock()
        self._leader: Caller[T] | None = None
        self._waiting: deque[Caller[T]] = deque()

    def run(self, work: T) -> Any:
        """Return the result of `work` when it is committed, or raise its error when that is undone."""
        caller = Caller(work)
        try:
            with self._lock:
                if self._leader is None:
                    self._leader = caller
                else:
                    self._waiting.append(caller)
            if self._leader is not caller:
                caller.turn.acquire()
            if not caller.settled:
                self._lead(caller)
        finally:
            self._leave(caller)
        if caller.error is not None:
            try:
                raise caller.error
            finally:
                # Its traceback refers to the caller.
                caller.error = None
        return caller.result

    def _lead(self, leader: Caller[T]) -> None:
        group: list[Caller[T]] = []
        failure: BaseException | None = None

        def callers() -> Iterator[Caller[T]]:
            yield leader
            while self._waiting:
                group.append(self._waiting.popleft())
                yield group[-1]

        try:
            self._write(callers())
        except BaseException as error:
            failure = error
            raise
        finally:
            for caller in group:
                caller.settle(failure)

    def _leave(self, caller: Caller[Any]) -> None:
        """Hand the lead on; remove a caller that was interrupted while it waited."""
        with self._lock:
            if self._leader is caller:
                self._leader = self._waiting.popleft() if self._waiting else None
                if self._leader is not None:
                    self._leader.turn.release()
            elif not caller.settled:
                with suppress(ValueError):
                    self._waiting.remove(caller)


class GroupsByKey(Generic[T]):
    """Group commits by key; one whose threads have ended is gone."""

    def __init__(self, write: Callable[[Iterator[Caller[T]]], None]) -> None:
        self._write = write
        self._lock = Lock()
        self._groups: WeakValueDictionary[object, GroupCommit[T]] = WeakValueDictionary()

    def run(self, key: object, work: T) -> Any:
        """Return the result of `work` as `GroupCommit.run` does, together with those of this key."""
        with self._lock:
            group = self._groups.get(key)
            if group is None:
                self._groups[key] = group = GroupCommit(self._write)
        return group.run(work)
