"""One attempt at a leased job: done a unit at a time, and accounted for.

A unit is stored in one transaction together with its watermark, and only while its job is leased. A worker
that is killed leaves whole units behind, and the one that takes the job over goes on after them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from holdfast.errors import Closed, Conflict, HoldfastError, ModelFailed
from holdfast.events import Event
from holdfast.learning import embed_job, guard_job, session, tidy
from holdfast.learning.job_context import JobContext, WorkUnit, micros
from holdfast.learning.job_queue import EMBED, GUARD, OWN
from holdfast.learning.results import WorkResult, together
from holdfast.learning.workers import Workers, rest
from holdfast.llm.errors import logged
from holdfast.llm.llm_request import Ask, LLMRequest, Unreadable
from holdfast.llm.model import Model
from holdfast.store import jobs, watermarks
from holdfast.store.database import retry_transaction
from holdfast.store.jobs import Lease, LeaseLost
from holdfast.store.message_rows import to_micros
from holdfast.types import Job, JobStatus

T = TypeVar("T")
# Reasons for which a model would fail again at once.
FOR_ALL = ("limit", "authentication", "quota", "unavailable")
FAILURES = 3  # of the model in a row, after which it is asked no more
_LONGEST_WAIT = timedelta(hours=1)  # between two attempts
_TAKEN_OVER = "another worker took it over, so nothing more was stored for it"

PLANS: Mapping[str, Callable[[JobContext], Iterator[WorkUnit]]] = {
    GUARD: guard_job.plan,
    EMBED: embed_job.plan,
    "observe": session.observe,
    "episode": session.episode,
    tidy.KIND: tidy.plan,
    session.REFLECT: session.reflect,
}


@dataclass(slots=True)
class Shift:
    """The time in which a worker runs jobs, which may have an end, and how its model did in it."""

    context: JobContext
    workers: Workers
    until: datetime | None = None
    # How often the model has failed since it last answered.
    failures: int = 0
    # Kinds of jobs that a limit allows no call for now, each with the text of the error.
    limited: dict[str, str] = field(default_factory=dict)

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


class Stopped(Exception):
    """The work is to end before a request is made again. Its text is the reason."""


def ask_and_read(ask: Ask, request: LLMRequest, read: Callable[[str], T], model: str) -> T:
    """Return what `read` makes of a model's answer. An answer that cannot be read is requested once more.

    Raises:
        ModelFailed: the model failed, a limit does not allow the call, or both answers cannot be read.

    """
    answer = ask(request)
    try:
        return read(answer)
    except Unreadable as why:
        answer = ask(request.again(answer, why))
    try:
        return read(answer)
    except Unreadable as why:
        raise ModelFailed(
            f"The model {model} answered twice what cannot be used: {why}",
            "Try again, or use another model.",
            reason="answer",
        ) from why


class JobRun:
    """One attempt of a worker at a leased job, or batch of jobs."""

    def __init__(self, shift: Shift, context: JobContext, held: Lease, model: Model | None) -> None:
        self._shift = shift
        self._context = context
        self._held = held
        self._job = held.jobs[0]
        self._model = model
        self._meter = context.meter()
        self._results: list[WorkResult] = []

    def result(self, seconds: float) -> WorkResult:
        """Return the account of the job."""
        calls = self._meter.calls
        asked = WorkResult(
            calls=len(calls),
            prompt_tokens=sum(call.prompt_tokens for call in calls),
            answer_tokens=sum(call.answer_tokens for call in calls),
            seconds=seconds,
        )
        return together([*self._results, asked])

    def finish(self) -> str:
        """Run the job and store its new status; return what keeps the next ones from being run."""
        try:
            if why := self._do_units():
                self._end("open", due=self._context.now(), counted=False, error=why)
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
            self._fail(name, f"{name} was raised by Holdfast or a plug-in. The log has the traceback.")
        except BaseException:
            # Such as KeyboardInterrupt.
            now = self._context.now()
            jobs.finish(self._context.database, self._held, "open", now=now, due=now, counted=False)
            raise
        return ""

    def _do_units(self) -> str:
        """Do the units of the job; return why it was stopped in the middle, if it was.

        A chat that fails does not keep the others of the job from being done, unless the model fails three
        times in a row. What follows in the same chat waits, as its watermark must not pass what failed. The
        first failure is raised last.
        """
        shift, context, failed = self._shift, self._context, dict[str, HoldfastError]()
        for unit in PLANS[self._job.kind](context):
            if unit.chat in failed:
                continue
            rest()
            if why := shift.stop_reason():
                return why
            jobs.renew(context.database, self._held, shift.lease_end())
            try:
                self._apply(unit)
            except Stopped as stop:
                return str(stop)
            except (ModelFailed, Conflict) as error:
                if isinstance(error, ModelFailed) and error.reason in FOR_ALL:
                    raise
                failed[unit.chat] = error
                if unit.chat != self._job.chat:
                    self._put_last(unit.chat)
                shift.failures += isinstance(error, ModelFailed)
                if shift.failures >= FAILURES:
                    break
        for first in failed.values():
            raise first
        return ""

    def _apply(self, unit: WorkUnit) -> None:
        """Do a unit, and note its results."""
        # Without a model no unit has a request.
        if unit.request is None or self._model is None:
            result = unit.apply(None)
        else:
            ask = partial(self._ask, self._model, unit)
            result = ask_and_read(ask, unit.request, unit.apply, self._model.name)
            self._shift.failures = 0
        self._results.append(WorkResult(records=result.records, dropped=result.dropped))
        for note in result.note.splitlines():
            self._note(note)

    def _ask(self, model: Model, unit: WorkUnit, question: LLMRequest) -> str:
        if question is not unit.request and (why := self._shift.stop_reason()):
            raise Stopped(why)
        patience = self._context.settings.patience
        return self._meter.ask(model, question, patience, chat=unit.chat, job=self._job.id)

    @retry_transaction
    def _put_last(self, chat: str) -> None:
        """Let the other chats of the job come before one that could not be done."""
        context = self._context
        with context.database.writing_to(context.space) as tx:
            self._held.check(tx)
            watermarks.postpone(tx, context.space, chat, self._job.kind, context.now())

    def _model_failed(self, error: ModelFailed) -> str:
        """Store that the model failed; return what keeps the next jobs from being run, if anything."""
        context, job = self._context, self._job
        why = logged(error, job.id)
        if error.reason not in FOR_ALL:
            if error.reason == "timeout":
                self._note(error.what)
            self._fail(error.reason, why)
            many = self._shift.failures >= FAILURES
            return "The model failed three times in a row; the jobs have the reasons." if many else ""
        is_limit = error.reason == "limit"
        backoff = context.now() + micros(context.settings.backoff)
        due = self._meter.free_at(job.kind) if is_limit else backoff
        self._end("open", due=due, counted=False, reason=error.reason, error=str(error))
        # Without a guard or an embedder all the rest goes on.
        if is_limit or job.kind in OWN:
            self._shift.limited[job.kind] = error.what
            return ""
        return error.what

    def _fail(self, reason: str, error: str) -> None:
        """Have the jobs tried again later, each time after a longer wait, or fail them for good."""
        settings, held = self._context.settings, self._held
        for job in held.jobs:
            wait = min(settings.backoff * 2 ** min(job.attempts - 1, 20), _LONGEST_WAIT)
            due = self._context.now() + micros(wait)
            status: JobStatus = "failed" if job.attempts >= settings.attempts else "open"
            self._end(status, held._replace(jobs=(job,)), due=due, reason=reason, error=error)

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
        context, held, now = self._context, held or self._held, self._context.now()
        ended = tuple(
            jobs.finish(
                context.database, held, status, now=now, due=due, reason=reason, error=error, counted=counted
            )
        )
        if len(ended) < len(held.jobs):
            self._note(_TAKEN_OVER, held.jobs[0])
        done, postponed, failed = (ended if status == one else () for one in ("done", "open", "failed"))
        self._results.append(WorkResult(done, postponed, failed))
        if reason:
            for job in ended:
                context.events.tell(Event("failed", context.scope, job=job, chat=job.chat, error=error))

    def _note(self, text: str, job: Job | None = None) -> None:
        self._results.append(WorkResult(notes=(f"{(job or self._job).id}: {text}",)))
