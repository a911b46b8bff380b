"""The worker: finds jobs that are due, leases them, does them a unit at a time, and accounts for them.

A unit is stored in one transaction together with its watermark, and only while its job is leased. A worker
that is killed leaves whole units behind, and the one that takes the job over goes on after them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import get_args

from holdfast.errors import Closed, Conflict, HoldfastError, ModelFailed, Reason
from holdfast.events import Call, Event
from holdfast.learning import (
    consolidate,
    episodes,
    extraction,
    guard_job,
    merge_review_job,
    reflect,
    scheduler,
)
from holdfast.learning.job_context import JobContext, UnitResult, WorkUnit
from holdfast.learning.model_answers import FOR_ALL, Stopped, ask_and_read
from holdfast.learning.results import WorkResult, together
from holdfast.learning.throttle import rest
from holdfast.llm.llm_request import LLMRequest
from holdfast.llm.meter import Meter
from holdfast.llm.model import Model
from holdfast.settings import KINDS
from holdfast.store import jobs, watermarks
from holdfast.store.database import retry_transaction
from holdfast.store.jobs import Lease, LeaseLost
from holdfast.types import Job, JobStatus, Record

LONGEST_WAIT = timedelta(hours=1)  # between two attempts
NEED_A_MODEL = ("judge", "consolidate", "reflect")
_TAKEN_OVER = "another worker took it over, so nothing more was stored for it"
_MICROSECOND = timedelta(microseconds=1)
_FAILURES = 3  # of the model in a row, in jobs or in the chats of one, after which no more are begun

PLANS: Mapping[str, Callable[[JobContext], Iterator[WorkUnit]]] = {
    "guard": guard_job.plan,
    "observe": extraction.plan,
    "episode": episodes.plan,
    "judge": merge_review_job.plan,
    "consolidate": consolidate.plan,
    "reflect": reflect.plan,
}


@dataclass(slots=True)
class Worker:
    """Does the jobs of a scope. `model` and `guard` are None where there is none.

    `stop_reason` returns why the work is to end, "" to go on. `leasing` registers the jobs that are leased,
    so that closing the memory can wait for them, or give them back.
    """

    context: JobContext
    model: Model | None
    meter: Meter
    stop_reason: Callable[[], str]
    leasing: Callable[[Lease], AbstractContextManager[None]]
    guard: Model | None = None
    # The newest jobs, or chats of one, that failed because the model did.
    failures: int = field(default=0, init=False)
    # Kinds of jobs that a limit allows no call for now, each with the text of the error.
    limited: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        model, guard = (one.name if one else "" for one in (self.model, self.guard))
        self.context = replace(self.context, model=model, guard=guard)

    @property
    def able(self) -> tuple[str, ...]:
        """The kinds of jobs that can be done."""
        learned = tuple(kind for kind in KINDS if self.model or kind not in NEED_A_MODEL)
        return (scheduler.GUARD, *learned) if self.guard else learned

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of jobs that can be done and are configured."""
        configured = (scheduler.GUARD, *self.context.settings.kinds)
        return tuple(kind for kind in self.able if kind in configured)

    @property
    def lease(self) -> int:
        """Microseconds that a job is leased: longer than a unit that asks twice can take."""
        settings = self.context.settings
        return max(settings.lease, timedelta(seconds=2 * settings.patience + 60)) // _MICROSECOND

    def context_of(
        self, batch: Sequence[Job], payload: Mapping[str, object], held: Lease | None
    ) -> JobContext:
        """Return the context of a batch of jobs: that of their agent."""
        return replace(self.context.for_agent(batch[0].agent), jobs=batch, payload=payload, held=held)

    def estimate(self) -> WorkResult:
        """Return the calls and tokens that the work due would take; calls no model, writes nothing."""
        context, results = self.context, list[WorkResult]()
        due = scheduler.due(context, self.kinds)
        for batch in scheduler.batches(due, context.settings.pairs):
            payload = jobs.payload(context.database, context.space, batch[0].id)
            units = PLANS[batch[0].kind](self.context_of(batch, payload, None))
            requests = [unit.request for unit in units if unit.request]
            tokens = sum(context.count_tokens(request.prompt) for request in requests)
            answers = sum(request.answer_tokens for request in requests)
            calls = "1 call" if len(requests) == 1 else f"{len(requests)} calls"
            cost = f"{calls}, {tokens:,} tokens of prompts" if requests else "needs no model"
            note = f"{batch[0].id}: {cost}"
            results.append(
                WorkResult(notes=(note,), calls=len(requests), prompt_tokens=tokens, answer_tokens=answers)
            )
        why = "A dry run: nothing was asked, and nothing written."
        return replace(together(results), done=tuple(due), why=why, dry_run=True)

    def run(
        self,
        limit: int | None = None,
        ids: Sequence[str] | None = None,
        progress: Callable[[WorkResult], object] | None = None,
    ) -> WorkResult:
        """Do the jobs that are due, or only those with some ids, until there is none or the work is to end.

        It ends as well when the model has failed in three jobs, or three chats of one, in a row: the others
        would most likely fail and cost calls.
        """
        began, context, why = time.monotonic(), self.context, ""
        results = [WorkResult(failed=self._give_up())]
        if ids is None:
            scheduler.enqueue(context, scheduler.openings(context, self.kinds))
        while not why:
            if limit is not None and sum(one.count for one in results) >= limit:
                why = f"The limit of {'1 job' if limit == 1 else f'{limit:,} jobs'} is reached."
            elif not (why := self.stop_reason()):
                held = self._claim(ids)
                if held is None:
                    why = next(iter(self.limited.values()), "Nothing more is due.")
                    break
                if progress is not None:
                    progress(WorkResult(why=_beginning(held)))
                result, why = self._do(held)
                results.append(result)
                if progress is not None:
                    progress(result)
        waiting = jobs.count(context.database, context.space, "open", context.scope.agent or None)
        return replace(together(results), why=why, seconds=time.monotonic() - began, waiting=waiting)

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
            lease=context.now() + self.lease,
            kinds=[kind for kind in kinds if kind not in self.limited],
            batches={"judge": context.settings.pairs},
            ids=ids,
            agent=context.scope.agent or None,
            but=() if self.model else get_args(Reason),
            unless=scheduler.GUARD,
        )

    def _do(self, held: Lease) -> tuple[WorkResult, str]:
        """Do a job; return its account, and what keeps the next ones from being done, if anything."""
        began, run = time.monotonic(), _JobRun(self, held)
        with self.leasing(held):
            why = run.finish()
        if run.failures or run.calls:
            self.failures = self.failures + run.failures if run.failures else 0
        if not why and self.failures >= _FAILURES:
            why = "The model failed three times in a row; the jobs say how."
        return run.account(time.monotonic() - began), why


def _beginning(held: Lease) -> str:
    """Return what is done next."""
    job, more = held.jobs[0], len(held.jobs) - 1
    of = f" of chat {job.chat}" if job.chat else f" of agent {job.agent}" if job.agent else ""
    return f"{job.id}: {job.kind}{of} begins{f', with {more} more' if more else ''}."


class _JobRun:
    """One attempt at a leased job, or batch of jobs, and the account of it."""

    def __init__(self, worker: Worker, held: Lease) -> None:
        self._worker = worker
        self._held = held
        self._job = held.jobs[0]
        self._context = worker.context_of(held.jobs, held.payload, held)
        self._ended: dict[JobStatus, list[Job]] = {"done": [], "open": [], "failed": []}
        self._records: list[Record] = []
        self._dropped: Counter[str] = Counter()
        self._notes: list[str] = []
        self.calls: list[Call] = []
        # The newest units that failed because the model did.
        self.failures = 0

    def account(self, seconds: float) -> WorkResult:
        """Return the account of the job."""
        done, postponed, failed = map(tuple, self._ended.values())
        return WorkResult(
            done,
            postponed,
            failed,
            records=tuple(self._records),
            dropped=dict(+self._dropped),
            notes=tuple(self._notes),
            calls=len(self.calls),
            prompt_tokens=sum(call.prompt_tokens for call in self.calls),
            answer_tokens=sum(call.answer_tokens for call in self.calls),
            seconds=seconds,
        )

    def finish(self) -> str:
        """Do the job and store its new status; return what keeps the next ones from being done."""
        now = self._context.now
        try:
            if why := self._do_units():
                self._end("open", due=now(), counted=False, error=why)
            else:
                self._end("done")
        except LeaseLost:
            self._note(_TAKEN_OVER)
        except Closed:
            # `close` has given the job back.
            raise
        except ModelFailed as error:
            return self._model_failed(error)
        except HoldfastError as error:
            self._fail(type(error).__name__, str(error))
        except Exception as error:
            # Only for what should not happen.
            import logging

            logging.getLogger("holdfast").exception("The job %s raised.", self._job.id)
            name = type(error).__name__
            self._fail(name, f"{name} was raised by Holdfast or a plug-in. The log says where.")
        except BaseException:
            # Such as KeyboardInterrupt.
            jobs.finish(self._context.database, self._held, "open", now=now(), due=now(), counted=False)
            raise
        return ""

    def _do_units(self) -> str:
        """Do the units of the job; return why it was stopped in the middle, if it was.

        A chat that fails does not keep the others of the job from being done, unless the model fails three
        times in a row. What follows in the same chat waits, as its watermark must not pass what failed. The
        first failure is raised last.
        """
        context, failed = self._context, dict[str, HoldfastError]()
        for unit in PLANS[self._job.kind](context):
            if unit.chat in failed:
                continue
            rest()
            if why := self._worker.stop_reason():
                return why
            jobs.renew(context.database, self._held, context.now() + self._worker.lease)
            try:
                result = self._apply(unit)
            except Stopped as stop:
                return str(stop)
            except (ModelFailed, Conflict) as error:
                if isinstance(error, ModelFailed) and error.reason in FOR_ALL:
                    raise
                failed[unit.chat] = error
                if unit.chat != self._job.chat:
                    self._put_last(unit.chat)
                self.failures += isinstance(error, ModelFailed)
                if self.failures >= _FAILURES:
                    break
                continue
            self._add(unit, result)
        for first in failed.values():
            raise first
        return ""

    def _apply(self, unit: WorkUnit) -> UnitResult:
        if unit.request is None:
            return unit.apply(None)
        worker = self._worker
        model = worker.guard if unit.request.purpose == scheduler.GUARD else worker.model
        # For the type checker: without a model no unit has a request.
        assert model is not None  # noqa: S101
        meter = replace(worker.meter, scope=self._context.scope, calls=self.calls)
        patience = self._context.settings.patience

        def ask(request: LLMRequest) -> str:
            return meter.ask(model, request, patience, chat=unit.chat, job=self._job.id)

        return ask_and_read(ask, unit.request, unit.apply, model.name, worker.stop_reason)

    def _add(self, unit: WorkUnit, result: UnitResult) -> None:
        if unit.request is not None:
            self.failures = 0
        self._records += result.records
        self._dropped.update(result.dropped)
        if result.note:
            self._note(result.note)

    @retry_transaction
    def _put_last(self, chat: str) -> None:
        """Let the other chats of the job come before one that could not be done."""
        context = self._context
        with context.database.writing() as tx:
            tx.lock(context.space)
            self._held.check(tx)
            watermarks.postpone(tx, context.space, chat, self._job.kind, context.now())

    def _model_failed(self, error: ModelFailed) -> str:
        """Store that the model failed; return what keeps the next jobs from being done, if anything."""
        context, job = self._context, self._job
        # Only for those whose model fails. A row cannot hold what the model raised.
        import logging

        logging.getLogger("holdfast").debug("A model failed: %s.", job.id, exc_info=error)
        if error.reason not in FOR_ALL:
            self.failures = max(1, self.failures)
            if error.reason == "timeout":
                self._note(error.what)
            self._fail(error.reason, _explained(error))
            return ""
        limited = error.reason == "limit"
        due = context.now() + context.settings.backoff // _MICROSECOND
        due = replace(self._worker.meter, scope=context.scope).free_at(job.kind) if limited else due
        self._end("open", due=due, counted=False, reason=error.reason, error=str(error))
        # Without a guard all the rest goes on.
        if not limited and job.kind != scheduler.GUARD:
            return error.what
        self._worker.limited[job.kind] = error.what
        return ""

    def _fail(self, reason: str, error: str) -> None:
        """Have the jobs tried again later, each time after a longer wait, or fail them for good."""
        settings, held = self._context.settings, self._held
        for job in held.jobs:
            one = held._replace(jobs=(job,))
            wait = min(settings.backoff * 2 ** min(job.attempts - 1, 20), LONGEST_WAIT)
            due = self._context.now() + wait // _MICROSECOND
            status: JobStatus = "failed" if job.attempts >= settings.attempts else "open"
            self._end(status, one, due=due, reason=reason, error=error)

    def _end(
        self,
        status: JobStatus,
        held: Lease | None = None,
        *,
        due: int = 0,
        reason: str = "",
        error: str = "",
        counted: bool = True,
    ) -> None:
        """Store the new status of the jobs that are still leased, and emit events of failures."""
        context, held = self._context, held or self._held
        ended = jobs.finish(
            context.database,
            held,
            status,
            now=context.now(),
            due=due,
            reason=reason,
            error=error,
            counted=counted,
        )
        if len(ended) < len(held.jobs):
            self._note(_TAKEN_OVER, held.jobs[0])
        self._ended[status].extend(ended)
        if reason:
            for job in ended:
                context.events.tell(Event("failed", context.scope, job=job, chat=job.chat, error=error))

    def _note(self, text: str, job: Job | None = None) -> None:
        self._notes.append(f"{(job or self._job).id}: {text}")


def _explained(error: ModelFailed) -> str:
    """Return the text of a failure as it can be read without its exception."""
    if error.reason != "error" or "exception" not in error.todo:
        return str(error)
    return f"{error.what} The logger 'holdfast' has the cause, at the level DEBUG."
