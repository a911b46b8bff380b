"""A thread that sweeps at intervals."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from threading import Event, Lock, Thread

from holdfast.errors import Closed, HoldfastError


class TTLSweeper:
    """Calls `sweep` at intervals on a thread of its own, until it is stopped or the memory is closed."""

    def __init__(self, sweep: Callable[[], int]) -> None:
        self._sweep, self._log = sweep, logging.getLogger("holdfast")
        self._lock = Lock()
        self._stopped = Event()
        self._thread: Thread | None = None
        self._ended: Future[None] = Future()

    def start(self, minutes: float) -> Future[None]:
        """Start it unless it runs; the future ends with it, and stops it when it is cancelled."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._stopped, self._ended = Event(), Future()
                stopped, ended = self._stopped, self._ended
                ended.add_done_callback(lambda future: stopped.set() if future.cancelled() else None)
                self._thread = Thread(
                    target=self._run, args=(minutes * 60, stopped, ended), name="holdfast-ttl", daemon=True
                )
                self._thread.start()
            return self._ended

    def stop(self, timeout: float | None = None) -> bool:
        """Stop it, and return whether it has ended within so many seconds."""
        with self._lock:
            self._stopped.set()
            thread = self._thread
        if thread is not None:
            thread.join(timeout)
        return thread is None or not thread.is_alive()

    def _run(self, seconds: float, stopped: Event, ended: Future[None]) -> None:
        while not stopped.wait(seconds):
            try:
                count = self._sweep()
            except Closed:
                break
            except HoldfastError:
                # Such as a database that is locked; the next sweep deletes what this one did not.
                self._log.warning("A sweep of expired items failed.", exc_info=True)
            else:
                self._log.debug("swept %d expired items", count)
        # It may have been cancelled.
        with suppress(InvalidStateError):
            ended.set_result(None)
