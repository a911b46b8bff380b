"""The workers of this process: the jobs they hold, and whether they should give way or stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.store.jobs import Lease

PATIENCE = 15  # seconds that closing waits for workers
APPENDING = 0.2  # seconds after an append in which another one is expected


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
        """Register a worker as long as it works: closing waits for it."""
        with self._ended:
            self._running += 1
        try:
            yield
        finally:
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
