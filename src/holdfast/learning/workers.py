"""The workers of this process: the jobs they hold, whether they are to stop, and how they give way.

Only one thread of a process computes at once, and each statement of an append waits for it. While there are
appends, a worker computes in slices of some milliseconds, and sleeps nine times as long after each.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.store.jobs import Lease

PATIENCE = 15  # seconds that closing waits for workers
APPENDING = 0.2  # seconds after an append in which another one is expected
SLICE = 0.005  # seconds of computing between two sleeps
SHARE = 9  # the ratio of sleeping to computing
_NAP = 0.02  # seconds of sleep until it checks again for appends

_local = threading.local()


class Workers:
    """The workers of one open database, so that closing it can wait for them."""

    def __init__(self) -> None:
        self.closing = False
        # When something was last appended, by `time.monotonic`.
        self.appended = 0.0
        # The space of the user who was last worked for, by a worker for everyone.
        self.last_served = ""
        self._ended = threading.Condition()
        self._running = 0
        self._held: list[Lease] = []

    @contextmanager
    def holding(self, held: Lease) -> Iterator[None]:
        """Register jobs as long as they are worked on."""
        with self._ended:
            self._held.append(held)
        try:
            yield
        finally:
            with self._ended:
                self._held.remove(held)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Register a worker as long as it works: closing waits for it, and it gives way to appends."""
        before: _Pace | None = getattr(_local, "pace", None)
        # Appends before the work began are no reason to give way: often this thread made them.
        _local.pace = _Pace(self, time.monotonic(), time.thread_time())
        with self._ended:
            self._running += 1
        try:
            yield
        finally:
            _local.pace = before
            with self._ended:
                self._running -= 1
                self._ended.notify_all()

    def is_appended_to(self, since: float) -> bool:
        """Return whether something was appended a moment ago, and after `since`; not while closing."""
        return not self.closing and since < self.appended > time.monotonic() - APPENDING

    def stop(self) -> list[Lease]:
        """Wait for workers to end the unit they are at, and return the leases that are still held then."""
        self.closing = True
        with self._ended:
            self._ended.wait_for(lambda: not self._running, timeout=PATIENCE)
            return list(self._held)


@dataclass(slots=True)
class _Pace:
    """The pace of a worker's thread: when it began to work, and the time it had computed at its last rest.

    Waiting for a model or a lock does not count.
    """

    workers: Workers
    began: float
    rested: float


def rest() -> None:
    """Sleep if it is time to, on the thread of a worker; elsewhere do nothing.

    Call it between two pieces of work, never within a transaction or with a lock held: others would wait for
    it.
    """
    pace: _Pace | None = getattr(_local, "pace", None)
    if pace is None or (computed := time.thread_time() - pace.rested) < SLICE:
        return
    owed = SHARE * computed
    while owed > 0 and pace.workers.is_appended_to(pace.began):
        time.sleep(min(owed, _NAP))
        owed -= _NAP
    pace.rested = time.thread_time()
