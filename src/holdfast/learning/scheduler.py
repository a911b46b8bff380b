"""The agenda: what there is a reason to do, found in what was said and what is known; jobs are left for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from holdfast.learning import consolidate, reflect
from holdfast.store import jobs, records, verdicts, watermarks
from holdfast.store.database import retry_transaction
from holdfast.store.message_rows import from_micros, to_micros
from holdfast.types import Job

if TYPE_CHECKING:
    from holdfast.learning.job_context import Setting

OF_A_CHAT = ("observe", "episode")
OF_AN_AGENT = ("consolidate", "reflect")
GUARD = "guard"
_PAGE = 200  # jobs that are left in one transaction
_MICROSECOND = timedelta(microseconds=1)


class Wanted(NamedTuple):
    """A job that there is a reason for."""

    kind: str
    agent: str
    chat: str
    due: int

    @property
    def id(self) -> str:
        """The id that the job has, or will have."""
        return jobs.job_id(self.kind, self.chat or self.agent)


def wanted(setting: Setting, kinds: Sequence[str]) -> list[Wanted]:
    """Find what there is a reason to do: sessions that have ended with news, facts that changed, agents with news."""
    now, idle = setting.now(), setting.learning.idle // _MICROSECOND
    agent = setting.scope.agent or None
    found = [
        Wanted(kind, news.agent, news.chat, news.newest + idle)
        for kind in OF_A_CHAT
        if kind in kinds
        for news in watermarks.pending_chats(
            setting.database, setting.space, setting.passes(kind)[0], agent=agent, quiet=now - idle, now=now
        )
    ]
    for kind in OF_AN_AGENT:
        if kind in kinds:
            found += [Wanted(kind, one, "", now) for one in agents(setting, kind)]
    if GUARD in kinds:
        found += _to_be_judged(setting, agent, now)
    return [one for one in found if agent in (None, one.agent)]


def _to_be_judged(setting: Setting, agent: str | None, now: int) -> list[Wanted]:
    """Find the sessions and the agents with texts that the guard of the caller was not asked about, however new."""
    news = watermarks.pending_chats(setting.database, setting.space, GUARD, agent=agent)
    owners = verdicts.agents_with_unjudged(setting.database, setting.space)
    if agent is not None and not owners.isdisjoint((agent, "")):
        owners = {agent}
    return [
        *(Wanted(GUARD, one.agent, one.chat, now) for one in news),
        *(Wanted(GUARD, owner, "", now) for owner in sorted(owners)),
    ]


def agents(setting: Setting, kind: str) -> list[str]:
    """List the agents that there is a reason for to reflect, or to consolidate their facts; "" is no agent."""
    if kind == "reflect":
        return reflect.due(setting)
    return [agent for agent in owners(setting) if consolidate.due(setting.of(agent))]


def owners(setting: Setting) -> list[str]:
    """List the agents that have facts."""
    return records.agents_with_records(setting.database, setting.space, "fact")


@retry_transaction
def leave(setting: Setting, found: Sequence[Wanted]) -> None:
    """Leave jobs for what there is a reason to do; one that waits or runs is left as it is.

    One that failed for good is tried again when its session goes on; what is done every hour, in the next one.
    """
    left = jobs.read(setting.database, setting.space, ("open", "running", "failed"))
    there = {job.id: job for job in left}
    fresh = [one for one in found if one.id not in there or _is_tried_again(setting, one, there[one.id])]
    pause = setting.learning.every // _MICROSECOND
    for start in range(0, len(fresh), _PAGE):  # nobody who appends is to wait for all of them
        with setting.database.writing() as tx:
            tx.lock(setting.space)
            for one in fresh[start : start + _PAGE]:
                jobs.add(
                    tx,
                    setting.space,
                    one.kind,
                    now=setting.now(),
                    agent=one.agent,
                    chat=one.chat,
                    due=one.due,
                    pause=pause if one.kind in OF_AN_AGENT else 0,
                    again=one.id in there or not one.chat,
                )


def _is_tried_again(setting: Setting, wanted: Wanted, job: Job) -> bool:
    """Say whether a job that failed for good is tried again: in another hour, or because its session went on since."""
    if job.status != "failed":
        return False
    if not wanted.chat:
        return not _rests(setting, job)
    newest = wanted.due - setting.learning.idle // _MICROSECOND
    return job.ended is not None and newest > to_micros(job.ended)


def _rests(setting: Setting, job: Job) -> bool:
    """Say whether what is done every hour was done, or given up, in this one."""
    pause = setting.learning.every // _MICROSECOND
    return job.ended is not None and to_micros(job.ended) + pause > setting.now()


def due(setting: Setting, kinds: Sequence[str]) -> list[Job]:
    """List the jobs that are due now, those included that there is only a reason for; writes nothing."""
    now = setting.now()
    every = jobs.read(setting.database, setting.space, ("open", "running", "failed", "done"))
    there = {job.id: job for job in every}
    fresh = []
    for one in wanted(setting, kinds):
        job = there.get(one.id)
        again = job is not None and _is_tried_again(setting, one, job)
        if (
            job is None
            or again
            or (job.status == "done" and (one.kind not in OF_AN_AGENT or not _rests(setting, job)))
        ):
            fresh.append(Job(one.id, one.kind, (), from_micros(now), agent=one.agent, chat=one.chat))
    agent = setting.scope.agent or None
    return fresh + [
        job
        for job in every
        if job.status == "open"
        and job.kind in kinds
        and agent in (None, job.agent)
        and (job.due is None or job.due <= from_micros(now))
    ]
