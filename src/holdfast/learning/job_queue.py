"""The queue of jobs: the reasons for new ones, adding them, and a preview of the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from holdfast.learning import embed_job, expiry, guard_job, session, tidy
from holdfast.learning.job_context import JobContext, micros
from holdfast.store import jobs, records, segments, sessions, vectors, verdicts, watermarks
from holdfast.store.database import Connection, Database, retry_transaction
from holdfast.store.message_rows import to_micros
from holdfast.types import Job

_OF_A_CHAT = ("observe", "episode")
_OF_AN_AGENT = (tidy.KIND, session.REFLECT)
OWN = (guard_job.KIND, embed_job.KIND)
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
    """Return the jobs there is a reason for: ended chats with news, changed facts, agents with news.

    Texts that the caller's guard has not judged, or that have no vector, are news however new they are.
    """
    database, space, now = context.database, context.space, context.now()
    agent, idle = context.scope.agent or None, micros(context.settings.idle)
    reasons = [
        Opening(kind, news.agent, news.chat, news.newest + idle)
        for kind in _OF_A_CHAT
        if kind in kinds
        for news in watermarks.pending_chats(
            database, space, context.watermark_kinds(kind)[0], agent=agent, quiet=now - idle, now=now
        )
    ]
    reasons += [
        Opening(kind, who, "", now) for kind in _OF_AN_AGENT if kind in kinds for who in agents(context, kind)
    ]
    if guard_job.KIND in kinds:
        news_of_guard = watermarks.pending_chats(database, space, guard_job.KIND, agent=agent)
        owners = verdicts.agents_without_verdicts(database, space)
        if agent is not None and not owners.isdisjoint((agent, "")):
            owners = {agent}
        reasons += [Opening(guard_job.KIND, news.agent, news.chat, now) for news in news_of_guard]
        reasons += [Opening(guard_job.KIND, owner, "", now) for owner in sorted(owners)]
    if embed_job.KIND in kinds and not is_embedded(context):
        reasons.append(Opening(embed_job.KIND, context.scope.agent, "", now))
    if expiry.KIND in kinds and (due := expiry.next_due(context)) is not None and due <= now:
        reasons.append(Opening(expiry.KIND, context.scope.agent, "", now))
    return [opening for opening in reasons if agent in (None, opening.agent)]


def next_look(context: JobContext, claim: jobs.Claim, began: int) -> int | None:
    """Return when there may be more to do for a worker that has looked for jobs since `began`.

    None stands for no time: then something has to happen first.
    """
    database, space, settings, agent = context.database, context.space, context.settings, claim.agent
    left = jobs.read(database, space, ("open", "running", "failed"), None if agent is None else (agent,))
    left = [job for job in left if job.kind in claim.kinds]
    times = [
        to_micros(job.due) if job.due else began
        for job in left
        if job.status != "failed" and (job.reason not in claim.but or job.kind in claim.unless)
    ]
    # See `_is_retried`, and `openings`.
    idle, every = micros(settings.idle), micros(settings.every)
    failed = [to_micros(job.ended) for job in left if job.status == "failed" and job.ended]
    later = [ended + pause for ended in failed for pause in (idle, every)]
    for kind in claim.kinds:
        if kind in _OF_A_CHAT or kind == session.REFLECT:
            news = watermarks.pending_chats(database, space, context.watermark_kinds(kind)[0], agent=agent)
            later += [chat.newest + idle for chat in news] + [chat.seen_at + watermarks.DAY for chat in news]
    if expiry.KIND in claim.kinds and (due := expiry.next_due(context)) is not None:
        later.append(due)
    return min([*times, *(time for time in later if time > began)], default=None)


def is_embedded(context: JobContext) -> bool:
    """Return whether the embedder has embedded all documents."""
    done = vectors.set_of(context.database, context.space, context.embedder)
    return done.is_complete(segments.index_state(context.database, context.space))


def agents(context: JobContext, kind: str) -> list[str]:
    """Return the agents for which reflection, or tidying, is due; "" is no agent."""
    if kind == session.REFLECT:
        return session.reflection_due(context)
    return [agent for agent in owners(context) if tidy.due(context.for_agent(agent))]


def owners(context: JobContext) -> list[str]:
    """Return the agents that have facts."""
    return records.agents_with_records(context.database, context.space, "fact")


def enqueue(context: JobContext, kinds: Sequence[str]) -> None:
    """Queue the jobs there is a reason for; one that waits or runs is left as it is."""
    fresh = _fresh(context, kinds)

    @retry_transaction
    def add_page(start: int) -> None:
        with context.database.writing_to(context.space) as tx:
            _add(tx, context, fresh[start : start + _PAGE])

    # In pages, so that no append waits for all of them.
    for start in range(0, len(fresh), _PAGE):
        add_page(start)


def preview(context: JobContext, kinds: Sequence[str], claim: jobs.Claim) -> list[jobs.Lease]:
    """Return the leases that a worker would claim in turn, with the jobs that are not queued yet."""
    fresh = _fresh(context, kinds)
    # The clock goes on, so that new jobs are due after the time of the claim.
    claim = claim._replace(now=context.now())
    return jobs.preview(context.database, context.space, claim, lambda tx: _add(tx, context, fresh))


def _fresh(context: JobContext, kinds: Sequence[str]) -> list[tuple[Opening, bool]]:
    """Return the jobs to queue, each with whether to open it again whatever its status.

    One that failed for good is tried again when its chat goes on; what is done every hour, in the next one.
    """
    left = jobs.read(context.database, context.space, ("open", "running", "failed"))
    queued = {job.id: job for job in left}
    return [
        (opening, opening.id in queued or not opening.chat)
        for opening in openings(context, kinds)
        if opening.id not in queued or _is_retried(context, opening, queued[opening.id])
    ]


def _is_retried(context: JobContext, opening: Opening, job: Job) -> bool:
    if job.status != "failed" or job.ended is None:
        return False
    ended, settings = to_micros(job.ended), context.settings
    if not opening.chat:
        return ended + micros(settings.every) <= context.now()
    return opening.due - micros(settings.idle) > ended


def _add(tx: Connection, context: JobContext, fresh: Sequence[tuple[Opening, bool]]) -> None:
    for opening, again in fresh:
        jobs.add(
            tx,
            context.space,
            opening.kind,
            now=context.now(),
            agent=opening.agent,
            chat=opening.chat,
            due=opening.due,
            pause=micros(context.settings.every) if opening.kind in _OF_AN_AGENT else 0,
            again=again,
        )


@retry_transaction
def end_chat(
    database: Database, space: str, chat: str, kinds: Sequence[str], now: Callable[[], int]
) -> list[Job]:
    """Queue the jobs for a chat that has ended, and return them; see `Chat.end`."""
    agent = sessions.agent(database, space, chat)
    due = [kind for kind in _OF_A_CHAT if kind in kinds]
    with database.writing_to(space) as tx:
        ids = [jobs.add(tx, space, kind, now=now(), agent=agent, chat=chat, again=True) for kind in due]
    return jobs.by_ids(database, space, ids)


@retry_transaction
def add_now(
    context: JobContext,
    kind: str,
    *,
    chat: str = "",
    id: str | None = None,
    payload: Mapping[str, object] | None = None,
) -> str:
    """Queue a job that is due now for the agent of the scope, and return its id."""
    with context.database.writing_to(context.space) as tx:
        return jobs.add(
            tx,
            context.space,
            kind,
            now=context.now(),
            agent=context.scope.agent,
            chat=chat,
            id=id,
            payload=payload,
            again=True,
        )
