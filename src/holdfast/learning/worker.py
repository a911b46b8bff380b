"""The worker: finds what is to be done, leases it, does it a unit at a time, and says what became of it.

A unit is stored in one transaction together with its watermark, and only while its job is leased: a worker that is killed
anywhere leaves whole units behind, and whoever takes the job over goes on after them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol, get_args

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
from holdfast.learning.job_context import Outcome, Setting, Unit
from holdfast.learning.results import WorkResult
from holdfast.learning.throttle import rest
from holdfast.llm.llm_request import Unreadable
from holdfast.settings import KINDS
from holdfast.store import jobs, watermarks
from holdfast.store.database import retry_transaction
from holdfast.store.jobs import Lease, LeaseLost
from holdfast.types import Job, JobStatus

if TYPE_CHECKING:
    from holdfast.llm.meter import Meter
    from holdfast.llm.model import Model

LONGEST_WAIT = timedelta(hours=1)  # between two tries
NEED_A_MODEL = ("judge", "consolidate", "reflect")
_TAKEN_OVER = "another worker took it over, so nothing more was stored for it"
FOR_ALL = (
    "limit",
    "authentication",
    "quota",
    "unavailable",
)  # reasons for which a model would fail again at once
_MICROSECOND = timedelta(microseconds=1)
_FAILURES = (
    3  # jobs, or sessions of one, that fail in a row because the model does, after which no more are begun
)


class Stopped(Exception):
    """The work is to end. `str` of it says why."""


class Plan(Protocol):
    """Say of what units a job is made; reads, and writes nothing."""

    def __call__(
        self, setting: Setting, jobs: Sequence[Job], payload: Mapping[str, object]
    ) -> Iterator[Unit]:
        """Yield the units; of a batch of jobs, those for all of them together."""


PLANS: dict[str, Plan] = {
    "guard": guard_job.plan,
    "observe": extraction.plan,
    "episode": episodes.plan,
    "judge": merge_review_job.plan,
    "consolidate": consolidate.plan,
    "reflect": reflect.plan,
}


@dataclass(frozen=True, slots=True)
class Desk:
    """What a worker works with: the setting, a model and a guard of the caller if there are, their meter, and when to stop.

    `busy` registers the jobs that are held, so that closing the memory can wait for them, or give them back.
    """

    setting: Setting
    model: Model | None
    meter: Meter
    stopped: Callable[[], str]
    busy: Callable[[Lease], AbstractContextManager[None]]
    guard: Model | None = None

    @property
    def able(self) -> tuple[str, ...]:
        """The kinds of jobs that can be done."""
        learned = tuple(kind for kind in KINDS if self.model or kind not in NEED_A_MODEL)
        return (scheduler.GUARD, *learned) if self.guard else learned

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of jobs that can be done and are wanted."""
        wanted = (scheduler.GUARD, *self.setting.learning.kinds)
        return tuple(kind for kind in self.able if kind in wanted)

    def asked(self, kind: str) -> Model | None:
        """Return who is asked in jobs of a kind."""
        return self.guard if kind == scheduler.GUARD else self.model

    @property
    def lease(self) -> int:
        """Microseconds that a job is held: longer than a unit that asks twice can take."""
        learning = self.setting.learning
        return max(learning.lease, timedelta(seconds=2 * learning.patience + 60)) // _MICROSECOND


def estimate(desk: Desk) -> WorkResult:
    """Say what the work that is due would ask models for; nothing is asked, and nothing written."""
    setting = desk.setting
    due = scheduler.due(replace(setting, model=desk.model.name if desk.model else ""), desk.kinds)
    calls = prompts = answers = 0
    notes = []
    for batch in _batches(due, setting.learning.pairs):
        own = _own(desk, batch[0])
        payload = jobs.payload(setting.database, setting.space, batch[0].id)
        questions = [unit.question for unit in PLANS[batch[0].kind](own, batch, payload) if unit.question]
        tokens = sum(setting.count(question.prompt) for question in questions)
        calls, prompts = calls + len(questions), prompts + tokens
        answers += sum(question.answer_tokens for question in questions)
        calls_of_it = "1 call" if len(questions) == 1 else f"{len(questions)} calls"
        asked = f"{calls_of_it}, {tokens:,} tokens of prompts" if questions else "needs no model"
        notes.append(f"{batch[0].id}: {asked}")
    return WorkResult(
        done=tuple(due),
        notes=tuple(notes),
        calls=calls,
        prompt_tokens=prompts,
        answer_tokens=answers,
        why="A dry run: nothing was asked, and nothing written.",
        dry_run=True,
    )


def _batches(due: Sequence[Job], pairs: int) -> Iterator[list[Job]]:
    """Put what is judged together into batches, as `jobs.claim` does; all other jobs stand alone."""
    judged: dict[str, list[Job]] = {}
    for job in due:
        if job.kind == "judge":
            judged.setdefault(job.agent, []).append(job)
        else:
            yield [job]
    for several in judged.values():
        for start in range(0, len(several), pairs):
            yield several[start : start + pairs]


def _own(desk: Desk, job: Job, held: Lease | None = None) -> Setting:
    """Give the setting of a job: that of its agent, with the model that will be asked."""
    model = desk.model.name if desk.model else ""
    guard = desk.guard.name if desk.guard else ""
    return replace(desk.setting.of(job.agent), held=held, model=model, guard=guard)


# Doing it


class _Tally:
    """What was done so far."""

    def __init__(self) -> None:
        self.done: list[Job] = []
        self.postponed: list[Job] = []
        self.failed: list[Job] = []
        self.outcomes: list[Outcome] = []
        self.notes: list[str] = []
        self.calls: list[Call] = []
        self.in_a_row = 0  # the newest jobs, or sessions of one, that failed because the model did
        # Kinds of jobs that a limit allows no call for now, and what it says.
        self.limited: dict[str, str] = {}

    def add(self, other: _Tally) -> None:
        """Take in what was done for one more job."""
        self.done += other.done
        self.postponed += other.postponed
        self.failed += other.failed
        self.outcomes += other.outcomes
        self.notes += other.notes
        if other.in_a_row or other.calls:
            self.in_a_row = self.in_a_row + other.in_a_row if other.in_a_row else 0
        self.calls += other.calls
        self.limited |= other.limited

    @property
    def count(self) -> int:
        """Count the jobs."""
        return len(self.done) + len(self.postponed) + len(self.failed)

    def account(self, why: str = "", seconds: float = 0.0, waiting: int = 0) -> WorkResult:
        """Make the account of it."""
        dropped: Counter[str] = Counter()
        for outcome in self.outcomes:
            dropped.update(outcome.dropped)
        return WorkResult(
            done=tuple(self.done),
            postponed=tuple(self.postponed),
            failed=tuple(self.failed),
            records=tuple(record for outcome in self.outcomes for record in outcome.records),
            dropped=dict(+dropped),
            notes=tuple(self.notes),
            calls=len(self.calls),
            prompt_tokens=sum(call.prompt_tokens for call in self.calls),
            answer_tokens=sum(call.answer_tokens for call in self.calls),
            seconds=seconds,
            waiting=waiting,
            why=why,
        )


def work(
    desk: Desk,
    limit: int | None = None,
    ids: Sequence[str] | None = None,
    progress: Callable[[WorkResult], object] | None = None,
) -> WorkResult:
    """Do what is due, or of that only the jobs with some ids, until nothing is, or until it is to stop.

    It stops as well when the model has failed three jobs, or three sessions of one, in a row: the others would most likely
    fail and be paid for.
    """
    began, tally = time.monotonic(), _Tally()
    setting = desk.setting
    _give_up(desk, tally)
    able = desk.kinds if ids is None else desk.able  # what is asked for by name is done in any case
    if ids is None:
        asked = replace(setting, model=desk.model.name if desk.model else "")
        scheduler.leave(asked, scheduler.wanted(asked, desk.kinds))
    why = ""
    while not why:
        if limit is not None and tally.count >= limit:
            why = (
                "The limit of 1 job is reached." if limit == 1 else f"The limit of {limit:,} jobs is reached."
            )
        elif not (why := desk.stopped()):
            held = jobs.claim(
                setting.database,
                setting.space,
                now=setting.now(),
                lease=setting.now() + desk.lease,
                kinds=[kind for kind in able if kind not in tally.limited],
                batches={"judge": setting.learning.pairs},
                ids=ids,
                agent=setting.scope.agent or None,
                but=() if desk.model else get_args(Reason),
                unless=scheduler.GUARD,
            )
            if held is None:
                why = next(iter(tally.limited.values()), "Nothing more is due.")
            else:
                one, start = _Tally(), time.monotonic()
                if progress is not None:
                    progress(WorkResult(why=_beginning(held)))
                with desk.busy(held):
                    why = _run(desk, held, one)
                tally.add(one)
                if not why and tally.in_a_row >= _FAILURES:
                    why = "The model failed three times in a row; the jobs say how."
                if progress is not None:
                    progress(one.account(seconds=time.monotonic() - start))
    waiting = jobs.count(setting.database, setting.space, "open", setting.scope.agent or None)
    return tally.account(why, time.monotonic() - began, waiting)


def _beginning(held: Lease) -> str:
    """Say what is done next."""
    job, more = held.jobs[0], len(held.jobs) - 1
    of = f" of chat {job.chat}" if job.chat else f" of agent {job.agent}" if job.agent else ""
    return f"{job.id}: {job.kind}{of} begins{f', with {more} more' if more else ''}."


def _give_up(desk: Desk, tally: _Tally) -> None:
    """Let jobs have failed that ended their worker each time."""
    setting = desk.setting
    given_up = jobs.fail_crashed(setting.database, setting.space, setting.now(), setting.learning.attempts)
    tally.failed += given_up
    for job in given_up:
        setting.events.tell(Event("failed", setting.scope, job=job, chat=job.chat, error=job.error))


def _run(desk: Desk, held: Lease, tally: _Tally) -> str:
    """Run a job, note what became of it, whatever happens, and say what keeps the next ones from being run, if anything."""
    job = held.jobs[0]
    setting = _own(desk, job, held)
    try:
        if why := _units(desk, held, setting, tally):
            _end(desk, held, tally, "open", due=setting.now(), counted=False, error=why)
        else:
            _end(desk, held, tally, "done")
    except LeaseLost:
        tally.notes.append(f"{job.id}: {_TAKEN_OVER}")
    except Closed:
        raise  # `close` has given it back
    except ModelFailed as error:
        log_cause(job.id, error)
        if error.reason not in FOR_ALL:
            tally.in_a_row = max(1, tally.in_a_row)
            if error.reason == "timeout":
                tally.notes.append(f"{job.id}: {error.what}")
            _fail(desk, held, tally, error.reason, _explained(error))
            return ""
        limited = error.reason == "limit"
        due = setting.now() + setting.learning.backoff // _MICROSECOND
        due = replace(desk.meter, scope=setting.scope).free_at(job.kind) if limited else due
        _end(desk, held, tally, "open", due=due, counted=False, reason=error.reason, error=str(error))
        if not limited and job.kind != scheduler.GUARD:  # without a guard all the rest goes on
            return error.what
        tally.limited[job.kind] = error.what
    except HoldfastError as error:
        _fail(desk, held, tally, type(error).__name__, str(error))
    except Exception as error:
        # Only for what should not happen.
        import logging

        logging.getLogger("holdfast").exception("The job %s raised.", job.id)
        what = f"{type(error).__name__} was raised by Holdfast or a plug-in. The log says where."
        _fail(desk, held, tally, type(error).__name__, what)
    except BaseException:  # such as KeyboardInterrupt
        jobs.finish(setting.database, held, "open", now=setting.now(), due=setting.now(), counted=False)
        raise
    return ""


def log_cause(what: str, error: ModelFailed) -> None:
    """Log what a model raised, which a row cannot hold, for those who look at what is logged at the level of debugging."""
    # Only for those whose model fails.
    import logging

    logging.getLogger("holdfast").debug("A model failed: %s.", what, exc_info=error)


def _explained(error: ModelFailed) -> str:
    """Write a failure so that it can be read without its exception."""
    if error.reason != "error" or "exception" not in error.todo:
        return str(error)
    return f"{error.what} The logger 'holdfast' has the cause, at the level DEBUG."


def _units(desk: Desk, held: Lease, setting: Setting, tally: _Tally) -> str:
    """Do the units of a job, and say why it was stopped in the middle, if it was.

    A session that fails does not keep the others of the job from being done, unless the model fails three in a row; what
    follows in the same session waits, as its watermark must not pass what failed. At the end the first failure is raised.
    """
    job, failed = held.jobs[0], dict[str, HoldfastError]()
    for unit in PLANS[job.kind](setting, held.jobs, held.payload):
        if unit.chat in failed:
            continue
        rest()
        if why := desk.stopped():
            return why
        jobs.renew(setting.database, held, setting.now() + desk.lease)
        try:
            outcome = apply(desk, unit, setting, tally.calls, job)
        except Stopped as stop:
            return str(stop)
        except (ModelFailed, Conflict) as error:
            if isinstance(error, ModelFailed) and error.reason in FOR_ALL:
                raise
            failed[unit.chat] = error
            if unit.chat != job.chat:
                _put_last(setting, held, unit.chat)
            tally.in_a_row += isinstance(error, ModelFailed)
            if tally.in_a_row >= _FAILURES:
                break
            continue
        if unit.question is not None:
            tally.in_a_row = 0
        tally.outcomes.append(outcome)
        if outcome.note:
            tally.notes.append(f"{job.id}: {outcome.note}")
    for first in failed.values():
        raise first
    return ""


@retry_transaction
def _put_last(setting: Setting, held: Lease, chat: str) -> None:
    """Let the other sessions of a job come before one that could not be done."""
    with setting.database.writing() as tx:
        tx.lock(setting.space)
        held.check(tx)
        watermarks.postpone(tx, setting.space, chat, held.jobs[0].kind, setting.now())


def apply(desk: Desk, unit: Unit, setting: Setting, calls: list[Call], job: Job | None = None) -> Outcome:
    """Do a unit: ask, if there is a question, once more if the answer cannot be read, and store what comes of it.

    What was asked is added to `calls`, also when it failed.

    Raises:
        ModelFailed: the model failed, a limit does not allow asking it, or it answered twice what cannot be read.
        Stopped: it would have to be asked again, and the work is to end.

    """
    if unit.question is None:
        return unit.apply(None)
    model = desk.asked(unit.question.purpose)
    assert model is not None, "nothing is asked without a model"  # noqa: S101 - for the type checker
    patience, chat, name = setting.learning.patience, unit.chat, job.id if job else ""
    meter = replace(desk.meter, scope=setting.scope, calls=calls)
    answer = meter.ask(model, unit.question, patience, chat=chat, job=name)
    try:
        return unit.apply(answer)
    except Unreadable as why:
        if stop := desk.stopped():
            raise Stopped(stop) from why
        answer = meter.ask(model, unit.question.again(answer, why), patience, chat=chat, job=name)
    try:
        return unit.apply(answer)
    except Unreadable as why:
        raise ModelFailed(
            f"The model {model.name} answered twice what cannot be used: {why}",
            "Try again, or use another model.",
            reason="answer",
        ) from why


def _fail(desk: Desk, held: Lease, tally: _Tally, reason: str, error: str) -> None:
    """Have jobs tried again later, each time after a longer while; or say that they have failed for good."""
    learning = desk.setting.learning
    for job in held.jobs:
        one = held._replace(jobs=(job,))
        if job.attempts >= learning.attempts:
            _end(desk, one, tally, "failed", reason=reason, error=error)
            continue
        wait = min(learning.backoff * 2 ** min(job.attempts - 1, 20), LONGEST_WAIT)
        due = desk.setting.now() + wait // _MICROSECOND
        _end(desk, one, tally, "open", due=due, reason=reason, error=error)


def _end(
    desk: Desk,
    held: Lease,
    tally: _Tally,
    status: JobStatus,
    *,
    due: int = 0,
    reason: str = "",
    error: str = "",
    counted: bool = True,
) -> None:
    """Say what became of jobs, note it, and tell of failures: of those jobs that are still this worker's."""
    setting = desk.setting
    ended = jobs.finish(
        setting.database,
        held,
        status,
        now=setting.now(),
        due=due,
        reason=reason,
        error=error,
        counted=counted,
    )
    if len(ended) < len(held.jobs):
        tally.notes.append(f"{held.jobs[0].id}: {_TAKEN_OVER}")
    noted = {"done": tally.done, "open": tally.postponed, "failed": tally.failed}
    noted[status].extend(ended)
    if reason:
        for job in ended:
            setting.events.tell(Event("failed", setting.scope, job=job, chat=job.chat, error=error))
