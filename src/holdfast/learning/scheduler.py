"""The scheduler: finds the jobs that new messages and records give a reason for, and queues them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from holdfast.learning import consolidate, reflect
from holdfast.learning.job_context import JobContext, micros
from holdfast.store import jobs, records, segments, vectors, verdicts, watermarks
from holdfast.store.database import retry_transaction
from holdfast.store.message_rows import from_micros, to_micros
from holdfast.types import Job

OF_A_CHAT = ("observe", "episode")
OF_AN_AGENT = ("consolidate", "reflect")
GUARD, EMBED = OWN = ("guard", "embed")
"""The kinds of jobs that use what the memory was opened with, in place of the model of the worker."""
_PAGE = 200  # jobs that are queued in one transaction


class Opening(NamedTuple):
    """A job that there is a reason for, whether it is queued or not."""

    kind: str
    agent: str
    chat: str
    due: int

    @property
    def id(self) -> str:
        """The id that the job has, or will have."""
        return jobs.job_id(self.kind, self.chat or self.agent)


def openings(context: JobContext, kinds: Sequence[str]) -> list[Opening]:
    """Return the jobs there is a reason for: ended chats with news, changed facts, agents with news."""
    now, idle = context.now(), micros(context.settings.idle)
    agent = context.scope.agent or None
    found = [
        Opening(kind, news.agent, news.chat, news.newest + idle)
        for kind in OF_A_CHAT
        if kind in kinds
        for news in watermarks.pending_chats(
            context.database,
            context.space,
            context.watermark_kinds(kind)[0],
            agent=agent,
            quiet=now - idle,
            now=now,
        )
    ]
    found += [
        Opening(kind, one, "", now) for kind in OF_AN_AGENT if kind in kinds for one in agents(context, kind)
    ]
    if GUARD in kinds:
        found += _unjudged(context, agent, now)
    if EMBED in kinds and not is_embedded(context):
        found.append(Opening(EMBED, context.scope.agent, "", now))
    return [one for one in found if agent in (None, one.agent)]


def is_embedded(context: JobContext) -> bool:
    """Return whether the embedder has come to the newest of all that there is."""
    done = vectors.set_of(context.database, context.space, context.embedder)
    return done.is_complete(segments.index_state(context.database, context.space))


def _unjudged(context: JobContext, agent: str | None, now: int) -> list[Opening]:
    """Return the jobs for chats and agents with texts that the caller's guard has not judged, however new."""
    news = watermarks.pending_chats(context.database, context.space, GUARD, agent=agent)
    owners = verdicts.agents_with_unjudged(context.database, context.space)
    if agent is not None and not owners.isdisjoint((agent, "")):
        owners = {agent}
    return [
        *(Opening(GUARD, one.agent, one.chat, now) for one in news),
        *(Opening(GUARD, owner, "", now) for owner in sorted(owners)),
    ]


def agents(context: JobContext, kind: str) -> list[str]:
    """Return the agents for which reflection, or consolidation, is due; "" is no agent."""
    if kind == "reflect":
        return reflect.due(context)
    return [agent for agent in owners(context) if consolidate.due(context.for_agent(agent))]


def owners(context: JobContext) -> list[str]:
    """Return the agents that have facts."""
    return records.agents_with_records(context.database, context.space, "fact")


@retry_transaction
def enqueue(context: JobContext, found: Sequence[Opening]) -> None:
    """Queue jobs; one that waits or runs is left as it is.

    One that failed for good is tried again when its chat goes on; what is done every hour, in the next one.
    """
    left = jobs.read(context.database, context.space, ("open", "running", "failed"))
    queued = {job.id: job for job in left}
    fresh = [one for one in found if one.id not in queued or _is_retried(context, one, queued[one.id])]
    pause = micros(context.settings.every)
    # In pages, so that no append waits for all of them.
    for start in range(0, len(fresh), _PAGE):
        with context.database.writing() as tx:
            tx.lock(context.space)
            for one in fresh[start : start + _PAGE]:
                jobs.add(
                    tx,
                    context.space,
                    one.kind,
                    now=context.now(),
                    agent=one.agent,
                    chat=one.chat,
                    due=one.due,
                    pause=pause if one.kind in OF_AN_AGENT else 0,
                    again=one.id in queued or not one.chat,
                )


def _is_retried(context: JobContext, opening: Opening, job: Job) -> bool:
    """Return whether a job that failed for good is tried again: in another hour, or if its chat went on."""
    if job.status != "failed":
        return False
    if not opening.chat:
        return not _is_paused(context, job)
    newest = opening.due - micros(context.settings.idle)
    return job.ended is not None and newest > to_micros(job.ended)


def _is_paused(context: JobContext, job: Job) -> bool:
    """Return whether what is done every hour was done, or given up, in this one."""
    pause = micros(context.settings.every)
    return job.ended is not None and to_micros(job.ended) + pause > context.now()


def due(context: JobContext, kinds: Sequence[str]) -> list[Job]:
    """Return the jobs that are due now, including those that are not queued yet; writes nothing."""
    now = from_micros(context.now())
    every = jobs.read(context.database, context.space, ("open", "running", "failed", "done"))
    queued = {job.id: job for job in every}
    fresh = [
        Job(one.id, one.kind, (), now, agent=one.agent, chat=one.chat)
        for one in openings(context, kinds)
        if _begins(context, one, queued.get(one.id))
    ]
    agent = context.scope.agent or None
    return fresh + [
        job
        for job in every
        if job.status == "open"
        and job.kind in kinds
        and agent in (None, job.agent)
        and (not job.due or job.due <= now)
    ]


def _begins(context: JobContext, opening: Opening, job: Job | None) -> bool:
    """Return whether a job would be queued anew, given the last one of its id."""
    if job is None or _is_retried(context, opening, job):
        return True
    return job.status == "done" and (opening.kind not in OF_AN_AGENT or not _is_paused(context, job))


def batches(due: Sequence[Job], pairs: int) -> Iterator[list[Job]]:
    """Yield batches as `jobs.claim` does: pairs are judged together, all other jobs stand alone."""
    judged: dict[str, list[Job]] = {}
    for job in due:
        if job.kind == "judge":
            judged.setdefault(job.agent, []).append(job)
        else:
            yield [job]
    for several in judged.values():
        for start in range(0, len(several), pairs):
            yield several[start : start + pairs]
