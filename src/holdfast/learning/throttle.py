"""The throttle of a worker: full speed, unless the same process appends; then a tenth of the time.

Only one thread of a process computes at once, and each statement of an append waits for it. While there are
appends, the worker computes in slices of some milliseconds, and sleeps nine times as long after each.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SLICE = 0.005  # seconds of computing between two sleeps
SHARE = 9  # the ratio of sleeping to computing
_NAP = 0.02  # seconds of sleep until it checks again for appends

_local = threading.local()


class _Pace:
    """How long a thread has computed since it slept last, and whether it has to sleep."""

    def __init__(self, is_appended_to: Callable[[], bool]) -> None:
        self._is_appended_to = is_appended_to
        # The time of the thread: waiting for a model or a lock does not count.
        self._began = time.thread_time()

    def rest(self) -> None:
        computed = time.thread_time() - self._began
        if computed < SLICE:
            return
        owed = SHARE * computed
        while owed > 0 and self._is_appended_to():
            time.sleep(min(owed, _NAP))
            owed -= _NAP
        self._began = time.thread_time()


@contextmanager
def giving_way(is_appended_to: Callable[[], bool]) -> Iterator[None]:
    """Let this thread rest within the block, as long as something is appended."""
    before: _Pace | None = getattr(_local, "pace", None)
    _local.pace = _Pace(is_appended_to)
    try:
        yield
    finally:
        _local.pace = before


def rest() -> None:
    """Sleep if it is time to, on the thread of a worker; elsewhere do nothing.

    Call it between two pieces of work, never within a transaction or with a lock held: others would wait for
    it.
    """
    pace: _Pace | None = getattr(_local, "pace", None)
    if pace is not None:
        pace.rest()
