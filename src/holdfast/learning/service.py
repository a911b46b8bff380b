"""`memory.learning`: the methods that users call, with checks of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from holdfast.compaction.compactor import resolved
from holdfast.errors import InvalidInput, shown
from holdfast.events import logged
from holdfast.learning.results import EmbeddingProgress, Extraction, Usage, UsageLine, WorkResult
from holdfast.store import jobs, llm_calls, segments, vectors
from holdfast.store.message_rows import from_micros, to_micros
from holdfast.types import (
    SOURCES,
    Hit,
    Job,
    JobStatus,
    Scope,
    Time,
    as_time,
    check_count,
    check_flag,
    check_name,
    check_range,
)
from holdfast.types.handles import Handle

if TYPE_CHECKING:
    from holdfast.learning.ranking import Ranker, Ranking, Strategy
    from holdfast.learning.results import Relearning
    from holdfast.learning.worker import Worker
    from holdfast.llm.model import LLM, Model
    from holdfast.records.view import View
    from holdfast.records.writing import RecordWriter
    from holdfast.types import Record, Writer

_UNFINISHED: tuple[JobStatus, ...] = ("open", "running", "failed")


class Learner(Handle):
    """Learn from chats, in the background or now. `memory.learning`.

    `check_scope` raises Denied where this handle may not act for a scope; None stands for all users.
    """

    def __init__(
        self,
        worker: Worker,
        view: View,
        check_scope: Callable[[Scope | None], None],
        writer: Callable[[], RecordWriter],
    ) -> None:
        self._worker = worker
        self._context = worker.context
        self._scope = worker.context.scope
        self._view = view
        self._check_scope = check_scope
        self._writer = writer

    @logged
    def work(
        self,
        *,
        llm: LLM | None = None,
        limit: int | None = None,
        until: Time | None = None,
        everyone: bool = False,
        dry_run: bool = False,
        prompts: Mapping[str, str] | None = None,
        progress: Callable[[WorkResult], object] | None = None,
    ) -> WorkResult:
        """Run the jobs that are due: embedding, extraction, episodes, reflection, tidying, expiry.

        Chats are learned from after `Chat.end`, or after `Learning.idle` without a new message. Any number of
        workers may run at once; each job is run by one of them. A job that fails is tried again after
        a minute, then twice as long each time; the failure is in the result and in `jobs`, not raised.

        Args:
            llm: the model, as for `Chat.compact`; without one, only jobs that need none are run.
            limit: the most jobs to run.
            until: begin no job at this time or later.
            everyone: for all users of this tenant; a handle that names a user needs `admin=True`.
            dry_run: only return the calls and tokens it would take, and the records added without a model.
            prompts: other prompts for kinds of jobs: a version ("v1") or the path of a file.
            progress: called before each job, with an empty result whose `why` names it and whose `waiting`
                counts the due jobs behind it, of the same user; and then with its result.

        Raises:
            InvalidInput: an invalid model, limit, time or prompt.
            Denied: `everyone` from a handle of one user.
            MissingExtra: the model needs a package that is not installed.
            Unavailable: the database cannot be written at the moment.

        """
        worker = self._worker.using(resolved(llm), prompts, as_time(until, "until"))
        most = None if limit is None else check_count(limit, "limit")
        if check_flag(everyone, "everyone"):
            self._check_scope(None)
        dry_run = check_flag(dry_run, "dry_run")
        return worker.work(most, _check_progress(progress), everyone=everyone, dry_run=dry_run)

    @logged
    def extract(
        self,
        text: str | None = None,
        *,
        chat: str | None = None,
        messages: int | tuple[int, int] | None = None,
        step: str = "",
        type: str = "",
        llm: LLM | None = None,
    ) -> Extraction:
        """Extract findings, insights and lessons from a text, such as the output of a step, or from a chat.

        What is known already is not stored again. Texts below 50 characters are skipped. If the model fails,
        the result has the reason, and a job is queued that tries again. Without a model, the sentences that
        state a decision become insights, and the result says that a chat waits for one.

        Args:
            text: what to learn from.
            chat: the chat to learn from, in place of a text; `Chat.extract` does the same.
            messages: the `seq` of one message, or of the first and the last; None for all that are new.
            step: the name of the step that gave the text; of a chat, its id by default.
            type: its type, such as "GOAL"; the records have the source "{type}:{step}".
            llm: the model, as for `Chat.compact`.

        Raises:
            InvalidInput: an argument of the wrong type, unknown messages, or an invalid model.

        """
        for value, what in ((step, "step"), (type, "type")):
            check_name(value, what, empty=True)
        if chat is not None:
            if text is not None:
                raise InvalidInput("Both a text and a chat are given.", "Pass one of them.")
            span = check_range(messages, check_name(chat, "The id of a chat"))
            return self._worker.using(resolved(llm)).extract_chat(chat, span, step, type)
        if not isinstance(text, str):
            raise InvalidInput(f"The text must be text, not {text.__class__.__name__}.", "Pass a string.")
        return self._worker.using(resolved(llm)).extract_text(text, step, type)

    def reflect(self, *, llm: LLM, prompts: Mapping[str, str] | None = None) -> WorkResult:
        """Reflect now on the chats with new messages, of this agent or of all, as `work` does every hour.

        The model reads a batch of them, the one whose last reflection is oldest first, and may rewrite the
        profile and add observations, but no constraints and no soul. The changes are in `records`; chats that
        are open keep the profile that their prompts began with.

        Args:
            llm: the model, as for `Chat.compact`.
            prompts: other prompts, as for `work`.

        Raises:
            InvalidInput: an invalid model.

        """
        return self._worker.using(_require(llm), prompts).run_now("reflect")

    def consolidate(
        self, *, llm: LLM, prompts: Mapping[str, str] | None = None, target: str | None = None
    ) -> WorkResult:
        """Join facts that say parts of the same, and settle the pairs that merging left unsure, with a model.

        Each decision is a change with its reason, which `undo` takes back. There are never more facts than
        before.

        Args:
            llm: the model, as for `Chat.compact`.
            prompts: other prompts, as for `work`.
            target: only the facts about this, "user" or "env"; None for all.

        Raises:
            InvalidInput: an invalid model, or an unknown target.

        """
        unsettled = [job.id for job in self._pair_jobs(target)]
        return self._worker.using(_require(llm), prompts).run_now("tidy", target, unsettled)

    def _pair_jobs(self, target: str | None) -> list[Job]:
        """Return the open jobs for pairs of records, or only those for facts about a target."""
        pairs = [job for job in self.jobs(status="open") if job.records]
        if target is None:
            return pairs
        targets = self._context.kinds["fact"].targets
        if target not in targets:
            raise InvalidInput(f"A fact has no target {shown(target)}.", f"Use one of {', '.join(targets)}.")
        about = {record.id for record in self._view.records(kind="fact", target=target)}
        return [job for job in pairs if about.issuperset(job.records)]

    @logged
    def expire(self, *, dry_run: bool = False) -> WorkResult:
        """Let expire what the rules of kinds say, as `work` does: it is retracted, or erased with a receipt.

        A batch of 250 records is one change to `undo`. What came back, by `undo` or another way, has its
        whole time before it again. `records` of the result are those that went, each with its `why`; of those
        that were erased, `notes` name the receipts. See `docs/forgetting.md`.

        Args:
            dry_run: only return what would go.

        Raises:
            Unavailable: the database cannot be written at the moment.

        """
        return self._worker.expire_now(dry_run=check_flag(dry_run, "dry_run"))

    def relearn(
        self,
        kind: str = "observations",
        *,
        llm: LLM | None = None,
        prompt: str | None = None,
        dry_run: bool = False,
    ) -> Relearning:
        """Learn again, with another prompt or model, from the chats that such records came from.

        The results are compared with what is stored: what says the same stays, what is new is added, what is
        not found again is retracted. Each chat is one change that `undo` takes back. What the user wrote or
        changed is left alone. Facts are learned again by themselves, or with observations if the prompt asks
        for them. Of an episode there is a new version; what came from outside waits as before.

        A kind with `learn` (`holdfast.Kind`) is learned from all chats, also from those that nothing was
        learned from. What was learned so and retracted since is not found again.

        Args:
            kind: what is learned again: "observations", "facts", "episodes", or a kind with `learn`.
            llm: the model, as for `Chat.compact`. It is called in a dry run as well.
            prompt: a version of the prompt, or the path of a file; None for the usual one. "session" has a
                short one, "v1", and a thorough one, "v2".
            dry_run: only return the difference; its `diff` is to be read.

        Raises:
            InvalidInput: an unknown kind or prompt, an invalid model or none, or a prompt that asks for no
                facts.

        """
        # Not needed for any other method.
        from holdfast.learning.relearn import relearn

        return relearn(self._context, kind, prompt, _require(llm), apply=not check_flag(dry_run, "dry_run"))

    def episodes(
        self,
        query: str | None = None,
        *,
        strategy: Strategy | Ranker = "index",
        limit: int = 5,
        llm: LLM | None = None,
    ) -> Ranking:
        """Return the episodes of earlier chats, the best for a query first; without a query, the newest.

        Those in quarantine, with words that may come from external sources, are left out until `release`.

        Args:
            query: a question or some words.
            strategy: "index", as `recall` ranks; "projection", by the cosine of their words, which random
                projections estimate; "recency", the newest chat first; "llm", by a model, of at most 20 that
                the index finds first. If it fails, or its answer cannot be read, the order is "recency", and
                `why` of the result has the reason. Or a function of your own from the query and all
                episodes, the newest first, to the best of them.
            limit: the most episodes to return.
            llm: the model for "llm", as for `Chat.compact`.

        Raises:
            InvalidInput: an unknown strategy, no model for "llm", or a function that returns something else.

        """
        if query is not None and not isinstance(query, str):
            raise InvalidInput(f"A query must be text, not {type(query).__name__}.", "Pass a string.")
        model, most = resolved(llm), check_count(limit, "limit")
        # Not needed for any other method.
        from holdfast.learning.ranking import CANDIDATES, KIND, rank

        hits: list[str] = []
        if query is not None and strategy in ("index", "llm"):
            # numpy is loaded by the first recall.
            from holdfast.search.query import has_words

            if has_words(query):
                wanted = max(most, CANDIDATES)
                recalled = self._view.recall(query, sources=("record",), kinds=(KIND,), limit=wanted)
                hits = [hit.id for hit in recalled]
        ask = None
        if model is not None:
            ask = partial(self._context.meter().ask, model, patience=self._context.settings.patience)
        return rank(strategy, self._view.records(kind="episode"), query, most, hits=hits, ask=ask)

    @logged
    def feedback(self, hit: Hit | str, *, helpful: bool, query: str = "", by: Writer | None = None) -> Record:
        """Store whether a hit helped; a change that ranks nothing.

        Args:
            hit: a hit, or what `Memory.explain` takes for one.
            helpful: whether it did.
            query: what was asked for.
            by: who says so, the user unless another writer is named; see `Memory`.

        """
        target = hit if isinstance(hit, Hit) else self._view.explain(query, hit).hit
        return self._writer().feedback(target, query, helpful=helpful, by=by)

    def jobs(self, *, status: JobStatus | None = None) -> list[Job]:
        """Return the jobs that wait, run, or have failed, the oldest first.

        Args:
            status: only those of this one: "open", "running", "failed" or "done".

        Raises:
            InvalidInput: an unknown status.

        """
        if status is not None and status not in (*_UNFINISHED, "done"):
            raise InvalidInput(f"Unknown status {shown(status)}.", "Use open, running, done or failed.")
        agents = (self._scope.agent,) if self._scope.agent else None
        statuses = _UNFINISHED if status is None else (status,)
        return jobs.read(self._context.database, self._scope.space, statuses, agents)

    def retry_job(self, id: str) -> Job:
        """Open a job that has failed, or make one that waits due now; one that runs is left as it is.

        Args:
            id: of the job.

        Raises:
            InvalidInput: there is no such job.

        """
        check_name(id, "The id of a job")
        context, agent = self._context, self._scope.agent or None
        job = jobs.retry(context.database, context.space, id, context.now(), agent)
        if job is None:
            raise InvalidInput(f"There is no job {id!r}.", "See `memory.learning.jobs()`.")
        return job

    def embedding(self) -> list[EmbeddingProgress]:
        """Return how far each embedder has come with the vectors of this user, the oldest first.

        The vectors of one serve until those of another are complete, and go then.
        """
        database, space = self._context.database, self._context.space
        with database.one_read():
            state, rows = segments.index_state(database, space), vectors.sets(database, space)
        total = sum(getattr(state, source) for source in SOURCES)
        return [
            EmbeddingProgress(row.model, row.dimension, sum(map(row.done, SOURCES)), total) for row in rows
        ]

    def usage(self, since: Time | timedelta | None = None) -> Usage:
        """Return the calls of models for this user, by purpose, model and outcome.

        Args:
            since: a time, or how long ago; None for all calls.

        Raises:
            InvalidInput: `since` is no time.

        """
        try:
            if isinstance(since, timedelta):
                start: datetime | None = from_micros(self._context.now()) - since
            else:
                start = as_time(since, "since")
        except OverflowError as error:
            raise InvalidInput(f"{since!r} is longer than time.", "Pass a shorter timedelta.") from error
        begin = 0 if start is None else to_micros(start)
        rows = llm_calls.totals(self._context.database, self._scope.space, begin)
        return Usage(start, tuple(map(UsageLine.of_row, rows)))

    def __repr__(self) -> str:
        return f"Learner({self._scope})"


def _check_progress(progress: object) -> Callable[[WorkResult], object]:
    """Return a function that is called with results; one that does nothing for None."""
    if progress is None:
        return lambda _: None
    if not callable(progress):
        raise InvalidInput(f"`progress` is {shown(progress)}.", "Pass a function of one result, or None.")
    return progress


def _require(llm: LLM | None) -> Model:
    model = resolved(llm)
    if model is None:
        raise InvalidInput("There is no model.", "Pass llm=.")
    return model
