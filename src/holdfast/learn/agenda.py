"""The agenda: what there is a reason to do, found in what was said and what is known; jobs are left for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from holdfast.learn import consolidate, reflect
from holdfast.store import jobs, records, watermarks
from holdfast.store.records import NOW
from holdfast.store.rows import from_micros, to_micros
from holdfast.types import Job

if TYPE_CHECKING:
    from holdfast.learn.setting import Setting

OF_A_CHAT = ("observe", "episode")
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
        return jobs.name(self.kind, self.chat or self.agent)


def wanted(setting: Setting, kinds: Sequence[str]) -> list[Wanted]:
    """Find what there is a reason to do: sessions that have ended with news, facts that changed, agents with news."""
    now, idle = setting.now(), setting.learning.idle // _MICROSECOND
    agent = setting.scope.agent or None
    found = [
        Wanted(kind, news.agent, news.chat, news.newest + idle)
        for kind in OF_A_CHAT
        if kind in kinds
        for news in watermarks.news(setting.database, setting.space, kind, agent=agent, quiet=now - idle)
    ]
    if "consolidate" in kinds:
        found += [Wanted("consolidate", one, "", now) for one in _agents_with_facts(setting)]
    if "reflect" in kinds:
        found += [Wanted("reflect", one, "", now) for one in reflect.due(setting)]
    return [one for one in found if agent in (None, one.agent)]


def _agents_with_facts(setting: Setting) -> Iterable[str]:
    facts = records.read(setting.database, setting.space, NOW.version, records.Wanted(kinds=("fact",)))
    agents = dict.fromkeys(fact.agent for fact in facts)
    return (agent for agent in agents if consolidate.due(setting.of(agent)))


def leave(setting: Setting, found: Sequence[Wanted]) -> None:
    """Leave jobs for what there is a reason to do; one that waits or runs is left as it is.

    So is one of a session that failed for good. What is done every hour is tried again in the next one.
    """
    left = jobs.read(setting.database, setting.space, ("open", "running", "failed"))
    present = {job.id for job in left if job.chat or job.status != "failed" or _rests(setting, job)}
    fresh = [one for one in found if one.id not in present]
    if not fresh:
        return
    pause = setting.learning.every // _MICROSECOND
    with setting.database.writing() as tx:
        tx.lock(setting.space)
        for one in fresh:
            jobs.add(
                tx,
                setting.space,
                one.kind,
                now=setting.now(),
                agent=one.agent,
                chat=one.chat,
                due=one.due,
                pause=0 if one.chat else pause,
                again=not one.chat,
            )


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
        again = ("done",) if one.chat else ("done", "failed")
        if job is None or (job.status in again and (one.chat or not _rests(setting, job))):
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
