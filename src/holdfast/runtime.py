"""What all handles on one database share: its connections, its search, its threads, and what is kept in memory only."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.errors import Closed
from holdfast.prompt.cache_prefix import unchanged
from holdfast.store import records
from holdfast.store.jobs import finish
from holdfast.store.message_rows import from_micros, to_micros
from holdfast.store.prompt_receipts import LastPrompt

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from holdfast.events import Events
    from holdfast.kinds import Kind
    from holdfast.llm.meter import Meter
    from holdfast.llm.model import Model
    from holdfast.prompt.cache_prefix import Fingerprint
    from holdfast.prompt.knowledge_block import KnowledgeBlock
    from holdfast.prompt.window import Policy
    from holdfast.records.intake import Intake
    from holdfast.search.search import Search
    from holdfast.settings import Learning
    from holdfast.store.database import Database
    from holdfast.store.jobs import Lease
    from holdfast.store.pads import ScratchpadKey
    from holdfast.store.snapshots import Snapshot
    from holdfast.text.tokens import CountTokens
    from holdfast.types import Receipt, Record, Scope, Writer

THREADS = 8  # that the awaited methods of one memory use at most
FROZEN = 256  # sessions of which the known part of the prompt is kept in memory: a few megabytes
PATIENCE = 15  # seconds that closing waits for workers
APPENDING = 0.2  # seconds after an append in which another one is expected
PROMPTED = 256  # chats of which it is kept what their last prompt was made of: a few megabytes


class Opened:
    """An open database and what belongs to it."""

    def __init__(
        self,
        database: Database,
        count_tokens: CountTokens,
        clock: Callable[[], datetime],
        kinds: Mapping[str, Kind],
        learning: Learning,
        policy: Policy,
        guard: Model | None = None,
    ) -> None:
        self.database = database
        self.count_tokens = count_tokens
        self.clock = clock
        self.kinds = kinds
        self.learning = learning
        self.policy = policy  # of windows, where none is named
        self.guard = guard  # of the caller
        self.events = _events()
        self.closing = False
        self.appended = 0.0  # when something was last appended, by `time.monotonic`
        self._workers = 0
        self.served = ""  # the space of the last user that was worked for, by who works for everyone
        self._held: list[Lease] = []
        self.lock = threading.Lock()
        self._ended = threading.Condition(self.lock)
        self.temporary: dict[ScratchpadKey, dict[str, str]] = {}  # pads: keys that are never stored
        self._frozen: dict[tuple[Scope, Snapshot], KnowledgeBlock] = {}
        self._prompted: dict[tuple[Scope, str], Fingerprint] = {}
        self._shown: dict[tuple[str, str], tuple[str, ...]] = {}
        self._unstored: dict[tuple[str, str], Receipt] = {}  # of chats that do not exist yet
        self.worker = os.urandom(
            8
        ).hex()  # its name among those whose prompts wait; "" for one that only looks
        self._executor: Executor | None = None
        self._search: Search | None = None
        self._closed = False

    @property
    def search(self) -> Search:
        """The search over this database."""
        # numpy is loaded by the first recall.
        from holdfast.search.search import Search

        with self.lock:
            if self._search is None:
                self._search = Search(self.database)
            return self._search

    @property
    def executor(self) -> Executor:
        """The threads that awaited methods run on."""
        # Only for those who await.
        from concurrent.futures import ThreadPoolExecutor

        with self.lock:
            if self._closed:
                raise Closed("The memory is closed.", "Open a new Memory.")
            if self._executor is None:
                self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="holdfast")
            return self._executor

    def intake(self, scope: Scope, by: Writer, chat: str = "") -> Intake:
        """Make what writes the records of a scope; see `Intake`."""
        # Loaded by the first write.
        from holdfast.records.intake import Intake

        return Intake(
            database=self.database,
            scope=scope,
            kinds=self.kinds,
            now=self.now(),
            by=by,
            similar=lambda draft, limit: self.search.similar(scope, draft, limit),
            chat=chat,
        )

    def meter(self, scope: Scope) -> Meter:
        """Make what notes the calls of models for a scope."""
        # Only for those who have a model.
        from holdfast.llm.meter import Meter

        return Meter(self.database, scope, self.count_tokens, self.now, self.learning.limits, self.events)

    @contextmanager
    def busy(self, held: Lease) -> Iterator[None]:
        """Register jobs as long as they are worked on."""
        with self.lock:
            self._held.append(held)
        try:
            yield
        finally:
            with self.lock:
                self._held.remove(held)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Register a worker, from its beginning to its account: closing waits for it."""
        with self.lock:
            self._workers += 1
        try:
            yield
        finally:
            with self._ended:
                self._workers -= 1
                self._ended.notify_all()

    def is_appended_to(self, since: float) -> bool:
        """Say whether something was appended a moment ago, and after a time of `time.monotonic`; not while closing."""
        return not self.closing and since < self.appended > time.monotonic() - APPENDING

    def now(self) -> int:
        """Give the time in microseconds since the epoch."""
        return to_micros(self.clock())

    def used(self, scope: Scope, found: list[Record]) -> list[Record]:
        """Count that records were asked for, where their kind wants it, and return them so."""
        counted = [one.id for one in found if one.kind in self.kinds and self.kinds[one.kind].counts_use]
        if not counted:
            return found
        now = self.now()
        records.count_use(self.database, scope.space, counted, now)
        return [
            replace(one, uses=one.uses + 1, used=from_micros(now)) if one.id in counted else one
            for one in found
        ]

    def frozen(self, key: tuple[Scope, Snapshot], make: Callable[[], KnowledgeBlock]) -> KnowledgeBlock:
        """Give what the prompts of a session show of what is known; made once for a snapshot, of which there are few."""
        with self.lock:
            known = self._frozen.get(key)
        if known is None:
            known = make()
            with self.lock:
                if len(self._frozen) >= FROZEN:
                    self._frozen.pop(next(iter(self._frozen)))
                self._frozen[key] = known
        return known

    def unchanged(self, key: tuple[Scope, str], prompt: Fingerprint) -> int:
        """Count the tokens that the prompt of a chat begins with as its last one did, and remember it for the next."""
        with self.lock:
            before = self._prompted.pop(key, ())
            if len(self._prompted) >= PROMPTED:
                self._prompted.pop(next(iter(self._prompted)))
            self._prompted[key] = prompt
        return unchanged(before, prompt)

    def show(self, space: str, chat: str, what: tuple[str, ...]) -> None:
        """Remember what was recalled for the last prompt of a chat: what is said next was said with it in view."""
        with self.lock:
            self._shown.pop((space, chat), None)
            if what:
                if len(self._shown) >= PROMPTED:
                    self._shown.pop(next(iter(self._shown)))
                self._shown[space, chat] = what

    def shown(self, space: str, chat: str) -> tuple[str, ...]:
        """Give what was recalled for the last prompt of a chat."""
        return self._shown.get((space, chat), ())

    def hold(self, space: str, chat: str, receipt: Receipt | None) -> None:
        """Keep the receipt of a prompt of a chat that does not exist until there is an answer to store it with."""
        with self.lock:
            self._unstored.pop((space, chat), None)
            if receipt is not None:
                if len(self._unstored) >= PROMPTED:
                    self._unstored.pop(next(iter(self._unstored)))
                self._unstored[space, chat] = receipt

    def asked(self, space: str, chat: str) -> LastPrompt:
        """Give what is known here only of the prompts of a chat."""
        return LastPrompt(self.worker, self.shown(space, chat), self._unstored.get((space, chat)))

    def forget(self, space: str, *, chat: str | None = None, run: str | None = None) -> None:
        """Let go of what is kept in memory only of a run, of a chat, or of a whole space."""
        with self.lock:
            for place in list(self.temporary):
                if place.space == space and chat in (None, place.chat) and run in (None, place.run):
                    del self.temporary[place]
            for scope, id in list(self._prompted) if run is None else ():
                if scope.space == space and chat in (None, id):
                    del self._prompted[scope, id]
            for key in list(self._shown) if run is None else ():
                if key[0] == space and chat in (None, key[1]):
                    del self._shown[key]
            for key in list(self._unstored) if run is None else ():
                if key[0] == space and chat in (None, key[1]):
                    del self._unstored[key]

    def close(self) -> None:
        """Wait for the calls that run, and close the connections.

        Workers end after the part of a job that they are at. One that takes longer than that loses its job, which is given back.
        """
        self.closing = True
        with self._ended:
            self._ended.wait_for(lambda: not self._workers, timeout=PATIENCE)
            left = list(self._held)
        try:
            for held in left:
                finish(self.database, held, "open", now=self.now(), due=self.now(), counted=False)
        finally:
            with self.lock:
                executor, self._executor, self._search = self._executor, None, None
                self._closed = True
            if executor is not None:
                executor.shutdown()
            self.database.close()


def _events() -> Events:
    # Not needed to import all the rest.
    from holdfast.events import Events

    return Events()
