"""The worker: finds jobs that are due, leases them, and runs them one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import get_args

from holdfast.errors import Reason
from holdfast.events import Event
from holdfast.learning import scheduler, session
from holdfast.learning.job_context import JobContext, micros
from holdfast.learning.job_run import PLANS, JobRun
from holdfast.learning.results import WorkResult, together
from holdfast.learning.throttle import giving_way
from holdfast.learning.workers import Workers
from holdfast.llm.model import Model
from holdfast.settings import KINDS
from holdfast.store import jobs
from holdfast.store.jobs import Lease
from holdfast.store.message_rows import to_micros
from holdfast.types import Job

NEED_A_MODEL = ("judge", "consolidate", "reflect")
_FAILURES = 3  # of the model in a row, after which no more jobs are begun


@dataclass(slots=True)
class Worker:
    """Runs the jobs of a scope, and begins none from the time `until` on.

    `model` is None where there is none. `own` are the models that the memory was opened with, by the kind of
    job that uses them.
    """

    context: JobContext
    model: Model | None
    workers: Workers
    own: Mapping[str, Model] = field(default_factory=dict)
    until: datetime | None = None
    # The newest jobs, or chats of one, that failed because the model did.
    failures: int = field(default=0, init=False)
    # Kinds of jobs that a limit allows no call for now, each with the text of the error.
    limited: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        used = (self.model, *(self.own.get(kind) for kind in scheduler.OWN))
        model, guard, embedder = (one.name if one else "" for one in used)
        self.context = replace(self.context, model=model, guard=guard, embedder=embedder)

    @property
    def able(self) -> tuple[str, ...]:
        """The kinds of jobs that can be done."""
        learned = tuple(kind for kind in KINDS if self.model or kind not in NEED_A_MODEL)
        return (*self.own, *learned)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of jobs that can be done and are configured."""
        configured = (*self.own, *self.context.settings.kinds)
        return tuple(kind for kind in self.able if kind in configured)

    def stop_reason(self) -> str:
        """Return why no more is to be begun, "" to go on."""
        if self.workers.closing:
            return "The memory is being closed."
        ended = self.until is not None and self.context.now() >= to_micros(self.until)
        return "Deadline reached." if ended else ""

    def lease_end(self) -> int:
        """Return until when a job is leased: longer than a unit that asks twice can take."""
        settings = self.context.settings
        seconds = timedelta(seconds=2 * settings.patience + 60)
        return self.context.now() + micros(max(settings.lease, seconds))

    def _context_of(
        self, batch: Sequence[Job], payload: Mapping[str, object], held: Lease | None
    ) -> JobContext:
        """Return the context of a batch of jobs: that of their agent."""
        return replace(self.context.for_agent(batch[0].agent), jobs=batch, payload=payload, held=held)

    def estimate(self) -> WorkResult:
        """Return what the work due would cost, and add without a model; call no model, write nothing."""
        context, results = self.context, list[WorkResult]()
        due = sorted(scheduler.due(context, self.kinds), key=lambda job: job.kind != "observe")
        done: set[str] = set()
        for batch in scheduler.batches(due, context.settings.pairs):
            kind, payload = batch[0].kind, jobs.payload(context.database, context.space, batch[0].id)
            planned = PLANS[kind](self._context_of(batch, payload, None))
            units = [unit for unit in planned if kind not in session.OTHERS or unit.chat not in done]
            done.update(unit.chat for unit in units if unit.is_whole)
            records = tuple(record for unit in units for record in unit.preview())
            requests = [unit.request for unit in units if unit.request]
            tokens = sum(context.count_tokens(request.prompt) for request in requests)
            answers = sum(request.answer_tokens for request in requests)
            calls = "1 call" if len(requests) == 1 else f"{len(requests)} calls"
            cost = f"{calls}, {tokens:,} tokens of prompts" if requests else "needs no model"
            note = f"{batch[0].id}: {cost}"
            results.append(
                WorkResult(
                    records=records,
                    notes=(note,),
                    calls=len(requests),
                    prompt_tokens=tokens,
                    answer_tokens=answers,
                )
            )
        why = "A dry run: nothing was asked, and nothing written."
        return replace(together(results), done=tuple(due), why=why, dry_run=True)

    def run(
        self,
        limit: int | None = None,
        ids: Sequence[str] | None = None,
        progress: Callable[[WorkResult], object] = lambda _: None,
    ) -> WorkResult:
        """Run the jobs that are due, or only those with some ids, until there is none or the work is to end.

        It ends as well when the model has failed in three jobs, or three chats of one, in a row: the others
        would most likely fail and cost calls.
        """
        began, context = time.monotonic(), self.context
        # Appends before the work began are no reason to give way: often this thread made them.
        with self.workers.working(), giving_way(partial(self.workers.is_appended_to, began)):
            results = [WorkResult(failed=self._give_up())]
            if ids is None:
                scheduler.enqueue(context, scheduler.openings(context, self.kinds))
            why = self._run_jobs(results, limit, ids, progress)
            waiting = len(self._waiting())
        return replace(together(results), why=why, seconds=time.monotonic() - began, waiting=waiting)

    def _waiting(self) -> set[str]:
        """Return the ids of the jobs that are open, and, without a model, of those that one would run."""
        context, agent = self.context, self.context.scope.agent
        left = jobs.read(context.database, context.space, ("open",), (agent,) if agent else None)
        would = replace(context, model="any") if not self.model else context
        kinds = () if self.model else [kind for kind in KINDS if kind in context.settings.kinds]
        return {job.id for job in left} | {one.id for one in scheduler.openings(would, kinds)}

    def _run_jobs(
        self,
        results: list[WorkResult],
        limit: int | None,
        ids: Sequence[str] | None,
        progress: Callable[[WorkResult], object],
    ) -> str:
        """Run jobs, add their results, and return why the work ended."""
        why = ""
        while not why:
            if limit is not None and sum(one.count for one in results) >= limit:
                return f"The limit of {'1 job' if limit == 1 else f'{limit:,} jobs'} is reached."
            if reason := self.stop_reason():
                return reason
            held = self._claim(ids)
            if held is None:
                return next(iter(self.limited.values()), "Nothing more is due.")
            progress(WorkResult(why=_beginning(held)))
            result, why = self._run_job(held)
            results.append(result)
            progress(result)
        return why

    def _give_up(self) -> tuple[Job, ...]:
        """Fail the jobs that ended their worker each time."""
        context = self.context
        given_up = jobs.fail_crashed(
            context.database, context.space, context.now(), context.settings.attempts
        )
        for job in given_up:
            context.events.tell(Event("failed", context.scope, job=job, chat=job.chat, error=job.error))
        return tuple(given_up)

    def _claim(self, ids: Sequence[str] | None) -> Lease | None:
        context = self.context
        # A job that is named is done in any case.
        kinds = self.kinds if ids is None else self.able
        return jobs.claim(
            context.database,
            context.space,
            now=context.now(),
            lease=self.lease_end(),
            kinds=[kind for kind in kinds if kind not in self.limited],
            batches={"judge": context.settings.pairs},
            ids=ids,
            agent=context.scope.agent or None,
            but=() if self.model else get_args(Reason),
            unless=tuple(self.own),
            in_order=ids is None and "observe" not in self.limited and session.is_joined(context),
        )

    def _run_job(self, held: Lease) -> tuple[WorkResult, str]:
        """Run a job; return its result, and what keeps the next ones from being run, if anything."""
        began, kind = time.monotonic(), held.jobs[0].kind
        model = self.own.get(kind, self.model)
        context = self._context_of(held.jobs, held.payload, held)
        run = JobRun(context, held, model, self.stop_reason, self.lease_end)
        with self.workers.holding(held):
            why = run.finish()
        if run.limited:
            self.limited[kind] = run.limited
        if run.failures or run.calls:
            self.failures = self.failures + run.failures if run.failures else 0
        if not why and self.failures >= _FAILURES:
            why = "The model failed three times in a row; the jobs have the reasons."
        return run.result(time.monotonic() - began), why


def _beginning(held: Lease) -> str:
    """Return what is run next."""
    job, more = held.jobs[0], len(held.jobs) - 1
    of = f" of chat {job.chat}" if job.chat else f" of agent {job.agent}" if job.agent else ""
    return f"{job.id}: {job.kind}{of} begins{f', with {more} more' if more else ''}."
