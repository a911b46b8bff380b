"""The worker: leases the jobs that are due, and runs them one after the other, a unit at a time.

A unit is stored in one transaction together with its watermark, and only while its job is leased. A worker
that is killed leaves whole units behind, and the one that takes the job over goes on after them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, takewhile
from typing import TypeAlias, TypeVar, get_args

from holdfast.errors import Closed, Conflict, Damaged, HoldfastError, InvalidInput, ModelFailed, Reason
from holdfast.events import Event
from holdfast.learning import embed_job, expiry, guard_job, job_queue, session, tidy
from holdfast.learning.job_context import JobContext, WorkUnit, micros
from holdfast.learning.question import SHORTEST
from holdfast.learning.results import Extraction, WorkResult, explain, total
from holdfast.learning.workers import Workers, rest
from holdfast.llm.errors import logged
from holdfast.llm.llm_request import Ask, LLMRequest, Unreadable
from holdfast.llm.model import Model
from holdfast.llm.prompt_files import check_versions
from holdfast.settings import KINDS
from holdfast.store import agenda, jobs, sessions, watermarks
from holdfast.store.database import retry_transaction
from holdfast.store.jobs import Lease, LeaseLost
from holdfast.store.message_rows import to_micros
from holdfast.types import Job, JobStatus, Range, Scope, scope_of
from holdfast.types.references import write_reference

T = TypeVar("T")
Progress: TypeAlias = Callable[[WorkResult], object]
NEED_A_MODEL = ("tidy", "reflect")
# Reasons for which a model fails for every user; with that of a limit, it would fail again at once.
_OUTAGES = ("authentication", "quota", "unavailable")
FOR_ALL = ("limit", *_OUTAGES)
_FAILURES = 3  # of the model in a row, after which it is called no more
_BACKOFF, _LONGEST_WAIT = timedelta(minutes=1), timedelta(hours=1)  # before the second attempt, and at most
_LEASE = timedelta(minutes=5)  # how long a job belongs to a worker that does not report
_PAIRS = 20  # of records that a model is asked about in one call
_TAKEN_OVER = "another worker took it over, so nothing more was stored for it"

PLANS: Mapping[str, Callable[[JobContext], Iterator[WorkUnit]]] = {
    guard_job.KIND: guard_job.plan,
    embed_job.KIND: embed_job.plan,
    "observe": session.observe,
    "episode": session.episode,
    tidy.KIND: tidy.plan,
    session.REFLECT: session.reflect,
    expiry.KIND: expiry.plan,
}


@dataclass(slots=True)
class Worker:
    """A worker for the jobs of a scope, which begins none at the time `until` or later.

    `own` are the models that the memory was opened with, by the kind of job that uses them; `model` is None
    where there is none.
    """

    context: JobContext
    workers: Workers
    own: Mapping[str, Model] = field(default_factory=dict)
    model: Model | None = None
    until: datetime | None = None
    # How often the model has failed since it last answered.
    failures: int = field(default=0, init=False)
    # The kinds of jobs whose limit is reached, each with the text of the error.
    limited: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        used = (self.model, *(self.own.get(kind) for kind in job_queue.OWN))
        model, guard, embedder = (llm.name if llm else "" for llm in used)
        self.context = replace(self.context, model=model, guard=guard, embedder=embedder)

    def using(
        self, model: Model | None, prompts: Mapping[str, str] | None = None, until: datetime | None = None
    ) -> Worker:
        """Return a copy of the worker with another model, other prompts, and an end time."""
        versions = self.context.prompt_versions if prompts is None else check_versions(prompts)
        context = replace(self.context, prompt_versions=versions)
        return replace(self, context=context, model=model, until=until)

    @property
    def able(self) -> tuple[str, ...]:
        """The kinds of jobs that can be done."""
        can = (kind for kind in KINDS if self.model or kind not in NEED_A_MODEL)
        return (*self.own, *self._expiring, *can)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of jobs that can be done and are configured."""
        configured = (*self.own, *self._expiring, *self.context.settings.kinds)
        return tuple(kind for kind in self.able if kind in configured)

    @property
    def _expiring(self) -> tuple[str, ...]:
        return (expiry.KIND,) if expiry.rules(self.context.kinds) else ()

    # Running

    def work(self, limit: int | None, progress: Progress, *, everyone: bool, dry_run: bool) -> WorkResult:
        """Run at most `limit` due jobs, of one user or of all in turn; in a dry run, return their cost."""
        if not everyone:
            return explain(self.estimate() if dry_run else self.run(limit, progress=progress))
        results: list[WorkResult] = []
        for scope in self._scopes(dry_run=dry_run):
            left = None if limit is None else limit - sum(result.count for result in results)
            if left == 0 or (results and any(job.reason in _OUTAGES for job in results[-1].postponed)):
                break
            self.workers.last_served = scope.space
            own = replace(self, context=replace(self.context, scope=scope))
            try:
                results.append(own.estimate() if dry_run else own.look(left, progress))
            except Damaged as error:
                # The damage of one user must not keep the others from being served.
                results.append(WorkResult(notes=(f"user {scope.user!r}: {error}",), why=error.what))
        return explain(total(results))

    def _scopes(self, *, dry_run: bool) -> Iterator[Scope]:
        """Yield the scopes of this tenant that may have something to do; for a dry run, all with chats."""
        database, now, last = self.context.database, self.context.now(), self.workers.last_served
        worker = self._on_agenda()
        spaces = sessions.spaces_below(database, worker.shared, itself=True)
        if not dry_run:
            agenda.register(database, worker, spaces, now)
            # Begin after the user served last, so that a limit does not always serve the same users. That may
            # be one of another tenant.
            last = last if last.startswith(worker.shared) else ""
            until = takewhile(lambda space: space <= last, agenda.due(database, worker, now))
            spaces = chain(agenda.due(database, worker, now, after=last), until)
        for space in spaces:
            yield replace(scope_of(space), agent=self.context.scope.agent)

    def _on_agenda(self) -> agenda.WorkerKey:
        """Return the name of the worker for all users: what it is able to do, and by which names it knows."""
        scope, context = self.context.scope, self.context
        able = (scope.agent, self.kinds, bool(self.model), context.guard, context.embedder)
        rules = [(kind.name, kind.lifetimes) for kind in expiry.rules(context.kinds)]
        return agenda.WorkerKey(scope.shared.space, repr((*able, *rules)))

    def look(self, limit: int | None, progress: Progress) -> WorkResult:
        """Run the due jobs of a space on the agenda, and note when its turn comes again."""
        context, began, lease = self.context, self.context.now(), self.lease_end()
        worker, claim = self._on_agenda(), self._claim(None)
        if not agenda.claim(context.database, worker, context.space, began, lease):
            return WorkResult()
        done = self.run(limit, progress=progress)
        # What was done may be a reason for more.
        again = began if done.count else job_queue.next_look(context, claim, began)
        agenda.release(context.database, worker, context.space, lease, again)
        return done

    def estimate(self) -> WorkResult:
        """Return the cost of the due work, and the records it adds without a model; write nothing."""
        context, results, done = self.context, list[WorkResult](), set[tuple[str, str]]()
        due = job_queue.preview(context, self.kinds, self._claim(None)._replace(in_order=False))
        for held in sorted(due, key=lambda held: held.jobs[0].kind != "observe"):
            job, planned = held.jobs[0], PLANS[held.jobs[0].kind](context.of(held))
            units = [unit for unit in planned if (job.kind, unit.chat) not in done]
            done.update((kind, unit.chat) for unit in units for kind in unit.also if kind != job.kind)
            requests = [unit.request for unit in units if unit.request]
            tokens = sum(context.count_tokens(request.prompt) for request in requests)
            calls = "1 call" if len(requests) == 1 else f"{len(requests)} calls"
            cost = f"{calls}, {tokens:,} tokens of prompts" if requests else "needs no model"
            results.append(
                WorkResult(
                    done=tuple(replace(job, status="open", attempts=job.attempts - 1) for job in held.jobs),
                    records=tuple(record for unit in units for record in unit.preview()),
                    notes=(f"{job.id}: {cost}",),
                    calls=len(requests),
                    prompt_tokens=tokens,
                    answer_tokens=sum(request.answer_tokens for request in requests),
                )
            )
        why = "A dry run: nothing was asked, and nothing written."
        return replace(total(results), why=why, dry_run=True)

    def run(
        self, limit: int | None = None, ids: Sequence[str] | None = None, progress: Progress = lambda _: None
    ) -> WorkResult:
        """Run the jobs that are due, or only those with some ids, until there is none or the work is to end.

        It ends as well when the model has failed three times in a row: the others would most likely fail and
        cost calls.
        """
        began, context, agent = time.monotonic(), self.context, self.context.scope.agent
        with self.workers.working():
            # Jobs whose worker died at each attempt.
            most = context.settings.attempts
            given_up = jobs.fail_crashed(context.database, context.space, context.now(), most)
            for job in given_up:
                context.events.tell(Event("failed", context.scope, job=job, chat=job.chat, error=job.error))
            results = [WorkResult(failed=tuple(given_up))]
            if ids is None:
                job_queue.enqueue(context, self.kinds)
            why = self._run_jobs(results, limit, ids, progress)
            # Open jobs, and without a model also those that a model would run.
            waiting = jobs.read(context.database, context.space, ("open",), (agent,) if agent else None)
            kinds = [] if self.model else [kind for kind in KINDS if kind in context.settings.kinds]
            openings = job_queue.openings(replace(context, model="any"), kinds)
            left = {job.id for job in waiting} | {opening.id for opening in openings}
        return replace(total(results), why=why, seconds=time.monotonic() - began, waiting=len(left))

    def _run_jobs(
        self, results: list[WorkResult], limit: int | None, ids: Sequence[str] | None, progress: Progress
    ) -> str:
        """Run jobs, add their results, and return why the work ended."""
        why = ""
        while not why:
            if limit is not None and sum(result.count for result in results) >= limit:
                return f"The limit of {'1 job' if limit == 1 else f'{limit:,} jobs'} is reached."
            if reason := self.stop_reason():
                return reason
            claim = self._claim(ids)
            # A look at what most often is nothing locks nothing.
            due = jobs.count_due(self.context.database, self.context.space, claim)
            held = jobs.claim(self.context.database, self.context.space, claim) if due else None
            if held is None:
                return next(iter(self.limited.values()), "Nothing more is due.")
            progress(WorkResult(why=_beginning(held), waiting=max(due - len(held.jobs), 0)))
            began, attempt = time.monotonic(), _Attempt(self, self.context.of(held, held=held), held)
            with self.workers.holding(held):
                why = attempt.finish()
            results.append(attempt.result(time.monotonic() - began))
            progress(results[-1])
        return why

    def stop_reason(self) -> str:
        """Return why no more is to be begun, "" to go on."""
        if self.workers.closing:
            return "The memory is being closed."
        ended = self.until is not None and self.context.now() >= to_micros(self.until)
        return "Deadline reached." if ended else ""

    def lease_end(self) -> int:
        """Return until when a job is leased: longer than a unit that asks twice can take."""
        seconds = timedelta(seconds=2 * self.context.settings.patience + 60)
        return self.context.now() + micros(max(_LEASE, seconds))

    def _claim(self, ids: Sequence[str] | None) -> jobs.Claim:
        """Return the claim for the next jobs; jobs named by `ids` need not be configured."""
        context, kinds = self.context, self.kinds if ids is None else self.able
        return jobs.Claim(
            now=context.now(),
            lease=self.lease_end(),
            kinds=[kind for kind in kinds if kind not in self.limited],
            pairs=_PAIRS,
            ids=ids,
            agent=context.scope.agent or None,
            but=() if self.model else get_args(Reason),
            unless=tuple(self.own),
            in_order=ids is None and "observe" not in self.limited and bool(session.joined_kinds(context)),
        )

    # At once

    def run_now(self, kind: str, target: str | None = None, more: Sequence[str] = ()) -> WorkResult:
        """Run a kind of job for the agent of the scope, or for all agents, and the jobs of `more` ids."""
        context = self.context
        agents = [context.scope.agent]
        if not agents[0]:
            agents = job_queue.owners(context) if kind == tidy.KIND else job_queue.agents(context, kind)
        # A job about one target has its own id, so that the one about all stays as it is.
        payload, ids = {"target": target} if target else None, [*more]
        for agent in agents:
            id = f"{kind} {target}:{agent}" if target else None
            ids.append(job_queue.add_now(context.for_agent(agent), kind, id=id, payload=payload))
        return explain(self.run(ids=ids))

    def expire_now(self, *, dry_run: bool) -> WorkResult:
        """Let expire what is due in the scope, or only return it with the reasons."""
        context = self.context
        if not self._expiring:
            return WorkResult(why="No kind has a rule by which its records expire.", dry_run=dry_run)
        if not dry_run:
            return explain(self.run(ids=[job_queue.add_now(context, expiry.KIND)]))
        due = tuple(record for unit in expiry.plan(context) for record in unit.preview())
        return WorkResult(records=due, why="A dry run: nothing was written.", dry_run=True)

    def embed_now(self) -> str | None:
        """Embed up to a thousand texts without vectors; return why some have none still, or None.

        Raises:
            InvalidInput: the memory was opened without an embedder.

        """
        if embed_job.KIND not in self.able:
            raise InvalidInput("There is no embedder.", "Open the memory with one: Memory(embed=…).")
        if job_queue.is_embedded(self.context):
            return None
        payload = {embed_job.MOST: embed_job.FRESH}
        done = self.run(ids=[job_queue.add_now(self.context, embed_job.KIND, payload=payload)])
        if left := (*done.postponed, *done.failed):
            return f"Not all is embedded: {left[0].error}"
        if job_queue.is_embedded(self.context):
            return None
        why = f"more than {embed_job.FRESH:,} texts had no vector, or another worker embeds them"
        return f"Not all is embedded: {why}. Run `learning.work`."

    def extract_text(self, text: str, step: str, type: str) -> Extraction:
        """Extract from a text now, unless it is too short."""
        # Only for those who extract from a text. `hashlib` loads OpenSSL.
        from hashlib import sha256

        if (size := len(text.strip())) < SHORTEST:
            why = f"Skipped: the text has {size} characters, and from {SHORTEST} on they are read."
            return Extraction(why=why)
        named = f"{self.context.scope.agent}\0{type}\0{step}\0{text}"
        id = f"observe text:{sha256(named.encode('utf-8', 'replace')).hexdigest()[:32]}"
        return self._extract(self.context, {"text": text, "step": step, "type": type or "text"}, id=id)

    def extract_chat(self, chat: str, span: Range | None, step: str, type: str) -> Extraction:
        """Extract now from messages of a chat, None for all since the last extraction.

        Raises:
            InvalidInput: there are no such messages.

        """
        database, space = self.context.database, self.context.space
        last = self.context.length(chat)
        context = self.context.for_agent(sessions.agent(database, space, chat))
        payload: dict[str, object] = {"step": step, "type": type or "session"}
        if span is None:
            return self._extract(context, payload, chat)
        if span[1] > last:
            unknown, newest = write_reference(chat, span[1]), write_reference(chat, last)
            raise InvalidInput(
                f"There is no message {unknown}; the last is {newest}.", "Pass numbers of its messages."
            )
        payload["messages"] = list(span)
        return self._extract(context, payload, chat, f"observe {span[0]}-{span[1]}:{chat}")

    def _extract(
        self, context: JobContext, payload: Mapping[str, object], chat: str = "", id: str | None = None
    ) -> Extraction:
        queued = job_queue.add_now(context, "observe", chat=chat, id=id, payload=payload)
        done = replace(self, context=context).run(ids=[queued])
        left = next(iter((*done.postponed, *done.failed)), None)
        why = left.error if left else "" if done.done else "Another worker has leased the job."
        if not why and not done.records:
            why = "; ".join(note.removeprefix(f"{queued}: ") for note in done.notes)
        if not why and self.model is None:
            why = "Without a model, only rules have read it" + (": the chat waits for one." if chat else ".")
        job = left.id if left else "" if done.done else queued
        spent = (done.calls, done.prompt_tokens, done.answer_tokens)
        return Extraction(done.records, done.dropped, why, job, *spent)


def _beginning(held: Lease) -> str:
    """Return the line of progress for jobs that begin."""
    job, more = held.jobs[0], len(held.jobs) - 1
    of = f" of chat {job.chat}" if job.chat else f" of agent {job.agent}" if job.agent else ""
    return f"{job.id}: {job.kind}{of} begins{f', with {more} more' if more else ''}."


# One attempt


class _Stopped(Exception):
    """The work is to end before a unit is begun or a request is made again. Its text is the reason."""


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


class _Attempt:
    """One attempt of a worker at a leased job, or batch of jobs."""

    def __init__(self, worker: Worker, context: JobContext, held: Lease) -> None:
        self._worker = worker
        self._context = context
        self._held = held
        self._job = held.jobs[0]
        self._model = worker.own.get(self._job.kind, worker.model)
        self._meter = context.meter()
        self._results: list[WorkResult] = []

    def result(self, seconds: float) -> WorkResult:
        """Return the account of the job."""
        calls, prompts, answers = self._meter.spent()
        spent = WorkResult(calls=calls, prompt_tokens=prompts, answer_tokens=answers, seconds=seconds)
        return total([*self._results, spent])

    def finish(self) -> str:
        """Run the job and store its new status; return why no further job may run, "" if one may."""
        try:
            self._do_units()
            self._end("done")
        except _Stopped as stop:
            self._end("open", due=self._context.now(), counted=False, error=str(stop))
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
            self._end("open", due=self._context.now(), counted=False)
            raise
        return ""

    def _do_units(self) -> None:
        """Do the units of the job.

        The failure of one chat does not stop the others, unless the model fails three times in a row. Later
        units of the same chat wait, as its watermark must not pass the failed one. The first failure is
        raised at the end.
        """
        worker, context, failed = self._worker, self._context, dict[str, HoldfastError]()
        for unit in PLANS[self._job.kind](context):
            if unit.chat in failed:
                continue
            rest()
            self._go_on()
            jobs.renew(context.database, self._held, worker.lease_end())
            try:
                self._apply(unit)
            except (ModelFailed, Conflict) as error:
                if isinstance(error, ModelFailed) and error.reason in FOR_ALL:
                    raise
                failed[unit.chat] = error
                if unit.chat != self._job.chat:
                    self._put_last(unit.chat)
                worker.failures += isinstance(error, ModelFailed)
                if worker.failures >= _FAILURES:
                    break
        for first in failed.values():
            raise first

    def _go_on(self) -> None:
        if why := self._worker.stop_reason():
            raise _Stopped(why)

    def _apply(self, unit: WorkUnit) -> None:
        """Do a unit, and note its results."""
        # Without a model no unit has a request.
        if unit.request is None or self._model is None:
            result = unit.apply(None)
        else:
            ask = partial(self._ask, self._model, unit)
            result = ask_and_read(ask, unit.request, unit.apply, self._model.name)
            self._worker.failures = 0
        self._results.append(WorkResult(records=result.records, dropped=result.dropped))
        for note in result.note.splitlines():
            self._note(note)

    def _ask(self, model: Model, unit: WorkUnit, question: LLMRequest) -> str:
        if question is not unit.request:
            self._go_on()
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
        """Store the failure of the model; return why no further job may run, "" if one may."""
        worker, kind, why = self._worker, self._job.kind, logged(error, self._job.id)
        if error.reason not in FOR_ALL:
            if error.reason == "timeout":
                self._note(error.what)
            self._fail(error.reason, why)
            many = worker.failures >= _FAILURES
            return "The model failed three times in a row; the jobs have the reasons." if many else ""
        is_limit = error.reason == "limit"
        due = self._meter.free_at(kind) if is_limit else self._context.now() + micros(_BACKOFF)
        self._end("open", due=due, counted=False, reason=error.reason, error=str(error))
        # Without a guard or an embedder all the rest goes on.
        if not is_limit and kind not in job_queue.OWN:
            return error.what
        worker.limited[kind] = error.what
        return ""

    def _fail(self, reason: str, error: str) -> None:
        """Have the jobs tried again later, each time after a longer wait, or fail them for good."""
        for job in self._held.jobs:
            due = self._context.now() + micros(min(_BACKOFF * 2 ** min(job.attempts - 1, 20), _LONGEST_WAIT))
            status: JobStatus = "failed" if job.attempts >= self._context.settings.attempts else "open"
            self._end(status, self._held._replace(jobs=(job,)), due=due, reason=reason, error=error)

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
        done, postponed, failed = (ended if status == case else () for case in ("done", "open", "failed"))
        self._results.append(WorkResult(done, postponed, failed))
        for job in ended if reason else ():
            context.events.tell(Event("failed", context.scope, job=job, chat=job.chat, error=error))

    def _note(self, text: str, job: Job | None = None) -> None:
        self._results.append(WorkResult(notes=(f"{(job or self._job).id}: {text}",)))
