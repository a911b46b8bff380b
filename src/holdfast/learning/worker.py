"""The worker: leases the jobs that are due, and runs them one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeAlias, get_args

from holdfast.errors import Damaged, InvalidInput, Reason
from holdfast.events import Event
from holdfast.learning import embed_job, job_queue, session
from holdfast.learning.job_context import JobContext
from holdfast.learning.job_run import PLANS, JobRun, Shift
from holdfast.learning.question import SHORTEST
from holdfast.learning.results import Extraction, WorkResult, explained, together
from holdfast.learning.workers import Workers
from holdfast.llm.model import Model
from holdfast.settings import KINDS
from holdfast.store import jobs, sessions
from holdfast.store.jobs import Lease
from holdfast.types import Job, Range, Scope, scope_of
from holdfast.types.references import write_reference

NEED_A_MODEL = ("tidy", "reflect")
Progress: TypeAlias = Callable[[WorkResult], object]
# Reasons for which a model fails for every user.
_OUTAGES = ("authentication", "quota", "unavailable")


@dataclass(slots=True)
class Worker:
    """Runs the jobs of a scope, and begins none from the time `until` on.

    `own` are the models that the memory was opened with, by the kind of job that uses them; `model` is None
    where there is none.
    """

    context: JobContext
    workers: Workers
    own: Mapping[str, Model] = field(default_factory=dict)
    model: Model | None = None
    until: datetime | None = None
    shift: Shift = field(init=False)

    def __post_init__(self) -> None:
        used = (self.model, *(self.own.get(kind) for kind in job_queue.OWN))
        model, guard, embedder = (one.name if one else "" for one in used)
        self.context = replace(self.context, model=model, guard=guard, embedder=embedder)
        self.shift = Shift(self.context, self.workers, self.until)

    def using(
        self,
        model: Model | None,
        prompts: Mapping[str, str] | None = None,
        until: datetime | None = None,
    ) -> Worker:
        """Return a worker like this one with a model, other prompts, and a time to end at."""
        return replace(self, context=self.context.with_prompts(prompts), model=model, until=until)

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

    # Running

    def work(self, limit: int | None, progress: Progress, *, everyone: bool, dry_run: bool) -> WorkResult:
        """Run at most `limit` jobs that are due, of everyone in turn, or return what a dry run would cost."""
        if not everyone:
            return explained(self.estimate() if dry_run else self.run(limit, progress=progress))
        results: list[WorkResult] = []
        for scope in self._scopes():
            left = None if limit is None else limit - sum(one.count for one in results)
            if left == 0 or (results and any(job.reason in _OUTAGES for job in results[-1].postponed)):
                break
            self.workers.last_served = scope.space
            own = replace(self, context=replace(self.context, scope=scope))
            try:
                results.append(own.estimate() if dry_run else own.run(left, progress=progress))
            except Damaged as error:
                # The damage of one user must not keep the others from being served.
                results.append(WorkResult(notes=(f"user {scope.user!r}: {error}",), why=error.what))
        return explained(together(results))

    def _scopes(self) -> Iterator[Scope]:
        """Yield the scopes of the users of this tenant that have chats, and of the tenant itself."""
        # From the one after the last that was served, so that a limit does not always serve the same ones.
        own, last = self.context.scope, self.workers.last_served
        after, rounds = last, 2 if last else 1
        while rounds:
            space = sessions.next_space(self.context.database, after)
            if space is None or (rounds == 1 and last and space > last):
                after, rounds = "", rounds - 1
                continue
            after, scope = space, scope_of(space)
            if scope.tenant == own.tenant:
                yield replace(scope, agent=own.agent)

    def estimate(self) -> WorkResult:
        """Return what the work due would cost, and add without a model; call no model, write nothing."""
        context, results, done = self.context, list[WorkResult](), set[tuple[str, str]]()
        due = job_queue.preview(context, self.kinds, self._wanted(None)._replace(in_order=False))
        for held in sorted(due, key=lambda held: held.jobs[0].kind != "observe"):
            job, planned = held.jobs[0], PLANS[held.jobs[0].kind](self._context_of(held, None))
            units = [unit for unit in planned if (job.kind, unit.chat) not in done]
            done.update((kind, unit.chat) for unit in units for kind in unit.also if kind != job.kind)
            requests = [unit.request for unit in units if unit.request]
            tokens = sum(context.count_tokens(request.prompt) for request in requests)
            calls = "1 call" if len(requests) == 1 else f"{len(requests)} calls"
            cost = f"{calls}, {tokens:,} tokens of prompts" if requests else "needs no model"
            results.append(
                WorkResult(
                    done=tuple(replace(one, status="open", attempts=one.attempts - 1) for one in held.jobs),
                    records=tuple(record for unit in units for record in unit.preview()),
                    notes=(f"{job.id}: {cost}",),
                    calls=len(requests),
                    prompt_tokens=tokens,
                    answer_tokens=sum(request.answer_tokens for request in requests),
                )
            )
        return replace(
            together(results), why="A dry run: nothing was asked, and nothing written.", dry_run=True
        )

    def run(
        self,
        limit: int | None = None,
        ids: Sequence[str] | None = None,
        progress: Progress = lambda _: None,
    ) -> WorkResult:
        """Run the jobs that are due, or only those with some ids, until there is none or the work is to end.

        It ends as well when the model has failed three times in a row: the others would most likely fail and
        cost calls.
        """
        began = time.monotonic()
        with self.workers.working():
            results = [WorkResult(failed=self._give_up())]
            if ids is None:
                job_queue.enqueue(self.context, self.kinds)
            why = self._run_jobs(results, limit, ids, progress)
            waiting = len(self._waiting())
        return replace(together(results), why=why, seconds=time.monotonic() - began, waiting=waiting)

    def _waiting(self) -> set[str]:
        """Return the ids of the jobs that are open, and, without a model, of those that one would run."""
        context, agent = self.context, self.context.scope.agent
        left = jobs.read(context.database, context.space, ("open",), (agent,) if agent else None)
        would = replace(context, model="any") if not self.model else context
        kinds = () if self.model else [kind for kind in KINDS if kind in context.settings.kinds]
        return {job.id for job in left} | {one.id for one in job_queue.openings(would, kinds)}

    def _run_jobs(
        self, results: list[WorkResult], limit: int | None, ids: Sequence[str] | None, progress: Progress
    ) -> str:
        """Run jobs, add their results, and return why the work ended."""
        why = ""
        while not why:
            if limit is not None and sum(one.count for one in results) >= limit:
                return f"The limit of {'1 job' if limit == 1 else f'{limit:,} jobs'} is reached."
            if reason := self.shift.stop_reason():
                return reason
            held = jobs.claim(self.context.database, self.context.space, self._wanted(ids))
            if held is None:
                return next(iter(self.shift.limited.values()), "Nothing more is due.")
            progress(WorkResult(why=_beginning(held)))
            began, kind = time.monotonic(), held.jobs[0].kind
            attempt = JobRun(self.shift, self._context_of(held, held), held, self.own.get(kind, self.model))
            with self.workers.holding(held):
                why = attempt.finish()
            results.append(attempt.result(time.monotonic() - began))
            progress(results[-1])
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

    def _wanted(self, ids: Sequence[str] | None) -> jobs.Claim:
        """Return which jobs are claimed: one that is named in any case."""
        context, kinds = self.context, self.kinds if ids is None else self.able
        return jobs.Claim(
            now=context.now(),
            lease=self.shift.lease_end(),
            kinds=[kind for kind in kinds if kind not in self.shift.limited],
            pairs=context.settings.pairs,
            ids=ids,
            agent=context.scope.agent or None,
            but=() if self.model else get_args(Reason),
            unless=tuple(self.own),
            in_order=ids is None and "observe" not in self.shift.limited and bool(session.joined(context)),
        )

    def _context_of(self, batch: Lease, held: Lease | None) -> JobContext:
        """Return the context of a batch of jobs: that of their agent."""
        own = self.context.for_agent(batch.jobs[0].agent)
        return replace(own, jobs=batch.jobs, payload=batch.payload, held=held)

    # At once

    def run_now(self, kind: str, target: str | None = None, more: Sequence[str] = ()) -> WorkResult:
        """Run a kind of job for the agent of the scope, or for all agents, and the jobs of `more` ids."""
        context = self.context
        agents = [context.scope.agent]
        if not agents[0]:
            all_agents = kind == "tidy"
            agents = job_queue.owners(context) if all_agents else job_queue.agents(context, kind)
        # A job about one target has its own id, so that the one about all stays as it is.
        payload = {"target": target} if target else None
        ids = [
            job_queue.add_now(
                context.for_agent(agent),
                kind,
                id=f"{kind} {target}:{agent}" if target else None,
                payload=payload,
            )
            for agent in agents
        ]
        return explained(self.run(ids=[*more, *ids]))

    def embed_now(self) -> str | None:
        """Embed what has no vector yet, a thousand texts at most; return what was left out and why, or None.

        Raises:
            InvalidInput: the memory was opened without an embedder.

        """
        if job_queue.EMBED not in self.able:
            raise InvalidInput("There is no embedder.", "Open the memory with one: Memory(embed=…).")
        if job_queue.is_embedded(self.context):
            return None
        payload = embed_job.payload(embed_job.FRESH)
        done = self.run(ids=[job_queue.add_now(self.context, job_queue.EMBED, payload=payload)])
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
            return Extraction(
                why=f"Skipped: the text has {size} characters, and from {SHORTEST} on they are read."
            )
        named = f"{self.context.scope.agent}\0{type}\0{step}\0{text}"
        id = f"observe text:{sha256(named.encode('utf-8', 'replace')).hexdigest()[:32]}"
        payload = {"text": text, "step": step, "type": type or "text"}
        return self._extract(self.context, payload, id=id)

    def extract_chat(self, chat: str, span: Range | None, step: str, type: str) -> Extraction:
        """Extract now from messages of a chat, None for all since the last extraction.

        Raises:
            InvalidInput: there are no such messages.

        """
        database, space = self.context.database, self.context.space
        last = sessions.length(database, space, chat)
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
        return Extraction(
            done.records,
            {reason: number for reason, number in done.dropped.items() if number},
            why,
            left.id if left else "" if done.done else queued,
            done.calls,
            done.prompt_tokens,
            done.answer_tokens,
        )


def _beginning(held: Lease) -> str:
    """Return what is run next."""
    job, more = held.jobs[0], len(held.jobs) - 1
    of = f" of chat {job.chat}" if job.chat else f" of agent {job.agent}" if job.agent else ""
    return f"{job.id}: {job.kind}{of} begins{f', with {more} more' if more else ''}."
