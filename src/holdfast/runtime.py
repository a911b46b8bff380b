"""The state that all handles on one database share: connections, search, threads, temporary data."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import TYPE_CHECKING

from holdfast.errors import Closed, InvalidInput, shown
from holdfast.learning.workers import Workers
from holdfast.prompt.prompt_cache import PromptCache
from holdfast.records.reader import PointInTime, RecordReader
from holdfast.records.view import View
from holdfast.store.granted import restrict
from holdfast.store.jobs import finish
from holdfast.store.message_rows import check_time, to_micros
from holdfast.text.zones import local

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from holdfast.compaction.compactor import ChatCompactor
    from holdfast.compaction.explorer import SummaryExplorer
    from holdfast.kinds import Kind
    from holdfast.learning.guard_job import Guard
    from holdfast.learning.service import Learner
    from holdfast.learning.worker import Worker
    from holdfast.llm.embedding import Embed, Embedder
    from holdfast.llm.meter import Meter
    from holdfast.llm.model import Model
    from holdfast.prompt.assembly import ChatReader
    from holdfast.prompt.window import CheckedPolicy, Policy
    from holdfast.records.intake import Intake
    from holdfast.records.writing import RecordWriter
    from holdfast.search.search import Search
    from holdfast.settings import Learning
    from holdfast.store.database import Database
    from holdfast.store.pads import ScratchpadKey
    from holdfast.text.tokens import CountTokens
    from holdfast.types import Scope, Writer

THREADS = 8  # that the awaited methods of one memory use at most


class Runtime:
    """An open database with its settings, and the services that work on it for a scope."""

    def __init__(
        self,
        database: Database,
        count_tokens: CountTokens,
        clock: Callable[[], datetime],
        kinds: Mapping[str, Kind],
        learning: Learning | None,
        policy: CheckedPolicy | None,
        cache_bytes: int,
        *,
        guard: Model | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        # Not needed to import all the rest.
        from holdfast.events import Events

        self.database = database
        self.count_tokens = count_tokens
        self.clock = clock
        self.kinds = kinds
        self._learning = learning
        self._policy = policy
        self._cache_bytes = cache_bytes
        # Of the caller.
        self.guard = guard
        self.embedder = embedder
        self.events = Events()
        self.workers = Workers()
        self.prompts = PromptCache(worker=os.urandom(8).hex())
        self.lock = threading.Lock()
        # Scratchpads: names that are never stored.
        self.temporary: dict[ScratchpadKey, dict[str, str]] = {}
        self._executor: Executor | None = None
        self._search: Search | None = None
        self._closed = False

    @property
    def learning(self) -> Learning:
        """The settings of learning."""
        # Who only asks needs none.
        from holdfast.settings import Learning

        return self._learning or Learning()

    @property
    def policy(self) -> CheckedPolicy:
        """The policy of windows, where none is named."""
        # Who only asks needs no windows.
        from holdfast.prompt.window import Lossless

        return self._policy or Lossless()

    def search(self) -> Search:
        """Return the search over this database."""
        # numpy is loaded by the first recall.
        from holdfast.search.meaning import QueryEmbedder
        from holdfast.search.search import Search

        with self.lock:
            if self._search is None:
                own = self.embedder
                embed = QueryEmbedder(own, self.meter, self.learning.query_patience) if own else None
                self._search = Search(self.database, self.events, embed, self._cache_bytes)
            return self._search

    def executor(self) -> Executor:
        """Return the threads that awaited methods run on."""
        # Only for those who await.
        from concurrent.futures import ThreadPoolExecutor

        with self.lock:
            if self._closed:
                raise Closed("The memory is closed.", "Open a new Memory.")
            if self._executor is None:
                self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="holdfast")
            return self._executor

    def now(self) -> int:
        """Return the time in microseconds since the epoch."""
        return to_micros(self.clock())

    def database_of(self, scope: Scope) -> Database:
        """Return the database as a scope may use it: checked where it reads spaces of others."""
        return restrict(self.database, scope)

    # Services ---------------------------------------------------------------------------------------------

    def view(self, scope: Scope, at: PointInTime | None = None) -> View:
        """Return the view of the records of a scope for a program."""
        return View(self.record_reader(scope, at))

    def record_reader(self, scope: Scope, at: PointInTime | None = None) -> RecordReader:
        """Return the reader of the records of a scope, which also recalls."""
        # As of an earlier version no vectors are compared.
        embed_missing = (lambda: self.worker(scope).embed_now()) if at is None else lambda: None
        database, at = self.database_of(scope), at or PointInTime()
        return RecordReader(database, scope, self.kinds, self.clock, self.search, at, embed_missing)

    def writer(self, scope: Scope, chat: str = "") -> RecordWriter:
        """Return the writer of the records of a scope, or only of those of a chat."""
        # Who only asks writes nothing.
        from holdfast.records.writing import RecordWriter

        return RecordWriter(self.database_of(scope), scope, self.kinds, self.intake, self.events, chat)

    def intake(self, scope: Scope, by: Writer, chat: str = "") -> Intake:
        """Return the intake that checks, compares and stores records of a scope."""
        # Loaded by the first write.
        from holdfast.records.intake import Intake

        return Intake(
            database=self.database_of(scope),
            scope=scope,
            kinds=self.kinds,
            now=self.now(),
            by=by,
            similar=lambda draft, limit: self.search().similar(scope, draft, limit),
            chat=chat,
        )

    def reader(self, scope: Scope, chat: str) -> ChatReader:
        """Return the maker of the windows and prompts of a chat."""
        from holdfast.prompt.assembly import ChatReader

        return ChatReader(
            self.database_of(scope),
            scope,
            chat,
            self.kinds,
            self.clock,
            self.count_tokens,
            self.policy,
            self.search,
            self.prompts,
        )

    def explorer(self, scope: Scope, chat: str) -> SummaryExplorer:
        """Return the reader of a chat by its summaries."""
        from holdfast.compaction.explorer import SummaryExplorer

        return SummaryExplorer(self.database_of(scope), scope, chat, self.clock, self.search)

    def compactor(self, scope: Scope, chat: str) -> ChatCompactor:
        """Return the compactor of a chat."""
        from holdfast.compaction.compactor import ChatCompactor

        return ChatCompactor(
            self.database_of(scope),
            scope,
            chat,
            count_tokens=self.count_tokens,
            now=self.now,
            policy=self.policy,
            events=self.events,
            meter=lambda: self.meter(scope),
        )

    def learner(self, scope: Scope, check_scope: Callable[[Scope | None], None]) -> Learner:
        """Return the learner of a scope; `check_scope` raises Denied where another scope is not allowed."""
        # Takes a fifth of the time of importing all the rest.
        from holdfast.learning.service import Learner

        return Learner(self.worker(scope), self.view(scope), check_scope, partial(self.writer, scope))

    def worker(self, scope: Scope) -> Worker:
        """Return the worker for the jobs of a scope."""
        from holdfast.learning.job_context import JobContext
        from holdfast.learning.worker import Worker
        from holdfast.learning.workers import rest

        context = JobContext(
            database=self.database_of(scope),
            scope=scope,
            kinds=self.kinds,
            count_tokens=self.count_tokens,
            now=self.now,
            settings=self.learning,
            events=self.events,
            intake_of=lambda scope: replace(
                self.intake(scope, "reflect"),
                throttle=rest,
                # In the background an embedder may be waited for.
                similar=partial(self.search().similar, scope, by_meaning=True),
            ),
            search=self.search,
        )
        documents = self.embedder.documents if self.embedder else None
        own = {"guard": self.guard, "embed": documents}
        return Worker(context, self.workers, {kind: model for kind, model in own.items() if model})

    def meter(self, scope: Scope) -> Meter:
        """Return the meter of the calls of models for a scope."""
        # Only for those who have a model.
        from holdfast.llm.meter import Meter

        return Meter(
            self.database_of(scope), scope, self.count_tokens, self.now, self.learning.limits, self.events
        )

    # The end ----------------------------------------------------------------------------------------------

    def forget(self, space: str, *, chat: str | None = None, run: str | None = None) -> None:
        """Drop the temporary data of a run, of a chat, or of a whole space."""
        with self.lock:
            for place in list(self.temporary):
                if place.space == space and chat in (None, place.chat) and run in (None, place.run):
                    del self.temporary[place]
        if run is None:
            self.prompts.forget(space, chat)

    def close(self) -> None:
        """Wait for the calls that run, and close the connections.

        Workers end after the part of a job that they are at. One that takes longer than that loses its job,
        which is given back.
        """
        try:
            # Another call of this may have closed the database, and given them back.
            with suppress(Closed):
                for held in self.workers.stop():
                    finish(self.database, held, "open", now=self.now(), due=self.now(), counted=False)
        finally:
            with self.lock:
                executor, self._executor, self._search, self._closed = self._executor, None, None, True
            if executor is not None:
                executor.shutdown()
            self.database.close()


def checked_clock(clock: Callable[[], datetime], zone: tzinfo) -> Callable[[], datetime]:
    """Return a clock of a zone; it raises InvalidInput where the given one returns no time of UTC."""

    def now() -> datetime:
        at: object = clock()
        if not isinstance(at, datetime):
            raise InvalidInput(f"`clock` returned {shown(at)}.", "Let it return a datetime.")
        check_time(at)
        return local(at if at.tzinfo else at.replace(tzinfo=UTC), zone)

    if not callable(clock):
        raise InvalidInput(f"`clock` is {shown(clock)}.", "Pass a function that returns a datetime.")
    return now


def check_settings(learning: Learning | None) -> None:
    """Raise InvalidInput unless it is a `Learning` or None."""
    if learning is not None:
        # Who only asks needs none.
        from holdfast.settings import Learning

        if not isinstance(learning, Learning):
            raise InvalidInput(f"`learning` is {learning!r}.", "Pass a holdfast.Learning.")


def check_policy(policy: Policy | None) -> CheckedPolicy | None:
    """Return the policy, checked, or raise InvalidInput unless it is one or None."""
    if policy is None:
        return None
    # Who only asks needs no windows.
    from holdfast.prompt import window

    return window.check_policy(policy)


def guard_model(guard: Guard | None) -> Model | None:
    """Return a classifier of the caller's as a model."""
    if guard is None:
        return None
    # Only for those who have a guard.
    from holdfast.learning.guard_job import model_of

    return model_of(guard)


def embedder_of(embed: Embed | None) -> Embedder | None:
    """Return an embedder of the caller's, or with "auto" that of the environment, if it names any."""
    if embed is None:
        return None
    # Only for those who have an embedder.
    from holdfast.llm.embedding import configured, embedder

    if isinstance(embed, str) and embed == "auto":
        embed = configured()
    return None if embed is None else embedder(embed)


def runtime_of(handle: object) -> Runtime | None:
    """Return the runtime of a `Memory` or a `Chat`; None for a null memory and for other providers."""
    runtime = getattr(handle, "_runtime", None)
    return runtime if isinstance(runtime, Runtime) else None
