"""`HookLimit`: the time after which an event gives up, in computing and in all."""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import NamedTuple

PATIENCE = "HOLDFAST_HOOK_MS"
"""The environment variable for the milliseconds after which any event gives up, for slow disks."""

# Seconds of computing, and seconds in all, from the start of the process: an empty answer is better than a
# client that waits. A machine that compiles lets a process compute for a part of the time, which is no reason
# to answer with nothing; the timeouts that `clients.py` sets for the events are longer than all of these.
LIMITS = {
    "session-start": (1.5, 8.0),
    "prompt": (1.0, 8.0),
    "before-compaction": (1.0, 8.0),
    "session-end": (1.0, 2.5),
    "stop": (1.0, 5.0),
}
DETACHED = 600.0
"""Seconds for what no client waits for."""

# A process that computes less than this in a second is not short of a processor: it waits for a disk.
_STILL, _LEAST = 1.0, 0.003


class HookLimit(NamedTuple):
    """Seconds of computing, seconds in all since a process began, and seconds in which it does not go on.

    The clocks may be others.
    """

    computing: float
    elapsed: float
    began: float
    still: float = _STILL
    clock: Callable[[], float] = time.time
    computing_clock: Callable[[], float] = time.process_time

    @classmethod
    def of(cls, event: str, began: float) -> "HookLimit":
        """Return the limit of an event, or the one that `HOLDFAST_HOOK_MS` sets for all of them.

        Raises:
            ValueError: the variable is no number of milliseconds.

        """
        value = os.environ.get(PATIENCE, "")
        if not value:
            return cls(*LIMITS[event], began)
        limit = 0.0
        with suppress(ValueError):
            limit = float(value) / 1000
        if not 0 < limit <= DETACHED:
            most = int(DETACHED * 1000)
            raise ValueError(f"{PATIENCE} is {value[:40]!r}: set milliseconds from 1 to {most}, or unset it.")
        return cls(inf, limit, began, inf)

    def left(self) -> float:
        """Return the seconds until the limit, at the latest; 0 or less once it is over."""
        return min(self.computing - self.computing_clock(), self.began + self.elapsed - self.clock())

    def wait(self, done: threading.Event) -> str:
        """Wait until all is done, and return ""; or until the limit is over, and return by how much."""
        at, computed = self.clock(), self.computing_clock()
        while (left := self.left()) > 0:
            if done.wait(min(left, self.still)):
                return ""
            if self.computing_clock() - computed >= _LEAST:
                at, computed = self.clock(), self.computing_clock()
            elif self.clock() - at >= self.still:
                return f"{self.still * 1000:.0f} ms in which it could not go on"
        if self.computing_clock() >= self.computing:
            return f"{self.computing * 1000:.0f} ms of computing"
        return f"{self.elapsed * 1000:.0f} ms"
