"""The runner of jobs: queues what is to be learned at once, and starts workers for one user or for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from holdfast.errors import Damaged, InvalidInput
from holdfast.learning.results import Extraction, WorkResult, explained, together
from holdfast.store import jobs, sessions
from holdfast.store.database import retry_transaction
from holdfast.types import Job, Range, Scope, scope_of
from holdfast.types.references import write_reference

if TYPE_CHECKING:
    from holdfast.learning.job_context import JobContext
    from holdfast.learning.worker import Worker
    from holdfast.learning.workers import Workers
    from holdfast.llm.model import Model
    from holdfast.store.database import Database

Progress: TypeAlias = Callable[[WorkResult], object]
# Reasons for which a model fails for every user.
_OUTAGES = ("authentication", "quota", "unavailable")


@dataclass(frozen=True, slots=True)
class JobRunner:
    """Queues jobs for the scope of a context, and runs them.

    `own` are the models that the memory was opened with, by the kind of job that uses them.
    """

    context: JobContext
    workers: Workers
    own: Mapping[str, Model]

    def worker(
        self,
        scope: Scope,
        model: Model | None,
        prompts: Mapping[str, str] | None = None,
        until: datetime | None = None,
    ) -> Worker:
        """Return a worker for a scope of this tenant, which begins no job from a time on."""
        # Takes a fifth of the time of importing all the rest.
        from holdfast.learning.worker import Worker

        context = replace(self.context, scope=scope).with_prompts(prompts)
        return Worker(context, model, self.workers, self.own, until)

    def run(
        self, worker_of: Callable[[Scope], Worker], limit: int | None, progress: Progress, *, dry_run: bool
    ) -> WorkResult:
        """Run the jobs of the scope that are due, at most `limit`, or return what a dry run would cost."""
        worker = worker_of(self.context.scope)
        return explained(worker.estimate() if dry_run else worker.run(limit, progress=progress))

    def run_for_everyone(
        self, worker_of: Callable[[Scope], Worker], limit: int | None, progress: Progress, *, dry_run: bool
    ) -> WorkResult:
        """Run the jobs of the users of this tenant in turn, as `run` does, and return the sum."""
        results: list[WorkResult] = []
        for scope in self._scopes():
            left = None if limit is None else limit - sum(one.count for one in results)
            if left == 0 or (results and any(job.reason in _OUTAGES for job in results[-1].postponed)):
                break
            self.workers.last_served = scope.space
            try:
                worker = worker_of(scope)
                results.append(worker.estimate() if dry_run else worker.run(left, progress=progress))
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

    def run_now(
        self,
        kind: str,
        model: Model,
        prompts: Mapping[str, str] | None,
        target: str | None = None,
        more: Sequence[str] = (),
    ) -> WorkResult:
        """Run a kind of job for the agent of the scope, or for all agents, and the jobs of `more` ids."""
        from holdfast.learning import scheduler

        agents = [self.context.scope.agent]
        if not agents[0]:
            all_agents = kind == "consolidate"
            agents = scheduler.owners(self.context) if all_agents else scheduler.agents(self.context, kind)
        # A job about one target has its own id, so that the one about all stays as it is.
        payload = {"target": target} if target else None
        ids = [
            self._queue(kind, agent, id=f"{kind} {target}:{agent}" if target else None, payload=payload)
            for agent in agents
        ]
        return explained(self.worker(self.context.scope, model, prompts).run(ids=[*more, *ids]))

    def embed_now(self) -> str | None:
        """Embed what has no vector yet, a thousand texts at most; return what was left out and why, or None.

        Raises:
            InvalidInput: the memory was opened without an embedder.

        """
        from holdfast.learning import embed_job, scheduler

        worker = self.worker(self.context.scope, None)
        if scheduler.EMBED not in worker.able:
            raise InvalidInput("There is no embedder.", "Open the memory with one: Memory(embed=…).")
        if scheduler.is_embedded(worker.context):
            return None
        job = self._queue(
            scheduler.EMBED, self.context.scope.agent, payload=embed_job.payload(embed_job.FRESH)
        )
        done = worker.run(ids=[job])
        if left := (*done.postponed, *done.failed):
            return f"Not all is embedded: {left[0].error}"
        if scheduler.is_embedded(worker.context):
            return None
        why = f"more than {embed_job.FRESH:,} texts had no vector, or another worker embeds them"
        return f"Not all is embedded: {why}. Run `learning.work`."

    def extract_text(self, text: str, step: str, type: str, model: Model | None) -> Extraction:
        """Extract from a text now, unless it is too short."""
        # Only for those who extract. `hashlib` loads OpenSSL.
        from hashlib import sha256

        from holdfast.learning.extraction_prompt import SHORTEST

        if (size := len(text.strip())) < SHORTEST:
            return Extraction(
                why=f"Skipped: the text has {size} characters, and from {SHORTEST} on they are read."
            )
        named = f"{self.context.scope.agent}\0{type}\0{step}\0{text}"
        id = f"observe text:{sha256(named.encode('utf-8', 'replace')).hexdigest()[:32]}"
        payload = {"text": text, "step": step, "type": type or "text"}
        return self._extract(self.context.scope, payload, model, id=id)

    def extract_chat(
        self, chat: str, span: Range | None, step: str, type: str, model: Model | None
    ) -> Extraction:
        """Extract now from messages of a chat, None for all since the last extraction.

        Raises:
            InvalidInput: there are no such messages.

        """
        database, space = self.context.database, self.context.space
        last = sessions.length(database, space, chat)
        scope = replace(self.context.scope, agent=sessions.agent(database, space, chat))
        payload: dict[str, object] = {"step": step, "type": type or "session"}
        if span is None:
            return self._extract(scope, payload, model, chat=chat)
        if span[1] > last:
            unknown, newest = write_reference(chat, span[1]), write_reference(chat, last)
            raise InvalidInput(
                f"There is no message {unknown}; the last is {newest}.", "Pass numbers of its messages."
            )
        payload["messages"] = list(span)
        return self._extract(scope, payload, model, chat=chat, id=f"observe {span[0]}-{span[1]}:{chat}")

    def _extract(
        self,
        scope: Scope,
        payload: Mapping[str, object],
        model: Model | None,
        *,
        chat: str = "",
        id: str | None = None,
    ) -> Extraction:
        queued = self._queue("observe", scope.agent, chat=chat, id=id, payload=payload)
        done = self.worker(scope, model).run(ids=[queued])
        left = next(iter((*done.postponed, *done.failed)), None)
        why = left.error if left else "" if done.done else "Another worker has leased the job."
        if not why and not done.records:
            why = "; ".join(note.removeprefix(f"{queued}: ") for note in done.notes)
        if not why and model is None:
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

    @retry_transaction
    def _queue(
        self,
        kind: str,
        agent: str,
        *,
        chat: str = "",
        id: str | None = None,
        payload: Mapping[str, object] | None = None,
    ) -> str:
        """Queue a job that is due now, and return its id."""
        space, now = self.context.space, self.context.now()
        with self.context.database.writing() as tx:
            tx.lock(space)
            return jobs.add(
                tx, space, kind, now=now, agent=agent, chat=chat, id=id, payload=payload, again=True
            )


@retry_transaction
def end_chat(
    database: Database, space: str, chat: str, kinds: Sequence[str], now: Callable[[], int]
) -> list[Job]:
    """Queue the jobs for a chat that has ended, and return them; see `Chat.end`."""
    agent = sessions.agent(database, space, chat)
    due = [kind for kind in ("observe", "episode") if kind in kinds]
    with database.writing() as tx:
        tx.lock(space)
        ids = [jobs.add(tx, space, kind, now=now(), agent=agent, chat=chat, again=True) for kind in due]
    return jobs.by_ids(database, space, ids)
