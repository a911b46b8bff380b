"""Learning from history: the jobs, what they cost, and what they gave. `memory.learning`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from holdfast.compaction.compactor import resolved
from holdfast.errors import Damaged, InvalidInput, shown
from holdfast.events import logged
from holdfast.learning.throttle import rest
from holdfast.store import jobs, llm_calls, sessions
from holdfast.store.database import retry_transaction
from holdfast.store.message_rows import to_micros
from holdfast.text.references import write_reference
from holdfast.types import (
    Job,
    JobStatus,
    Scope,
    Time,
    Writer,
    as_time,
    check_count,
    check_flag,
    check_name,
    check_range,
    scope_of,
)

if TYPE_CHECKING:
    from holdfast.events import Events
    from holdfast.kinds import Kind
    from holdfast.learning.job_context import JobContext
    from holdfast.learning.ranking import Ranking, Strategy
    from holdfast.learning.results import Extraction, Relearning, Usage, WorkResult
    from holdfast.learning.worker import Worker
    from holdfast.learning.workers import Workers
    from holdfast.llm.llm_request import LLMRequest
    from holdfast.llm.meter import Meter
    from holdfast.llm.model import LLM, Model
    from holdfast.records.intake import Intake
    from holdfast.records.view import View
    from holdfast.search.search import Search
    from holdfast.settings import Learning
    from holdfast.store.database import Database
    from holdfast.text.tokens import CountTokens

UNFINISHED: tuple[JobStatus, ...] = ("open", "running", "failed")
_EARLIER = 3  # turns that are looked at, to tell what was said before
_FOR_EVERYONE = ("authentication", "quota", "unavailable")  # reasons for which a model fails for every user
SHORTEST = 50  # characters of a text that is worth extracting from


@dataclass(frozen=True, slots=True)
class Resources:
    """What learning works with, for all scopes of one open database.

    `view` makes what reads the records of a scope, `intake` what writes them, `meter` what notes the calls of models.
    `guard` is the caller's own, if there is one.
    """

    database: Database
    kinds: Mapping[str, Kind]
    clock: Callable[[], datetime]
    count_tokens: CountTokens
    settings: Learning
    events: Events
    workers: Workers
    search: Callable[[], Search]
    view: Callable[[Scope], View]
    intake: Callable[[Scope, Writer, str], Intake]
    meter: Callable[[Scope], Meter]
    guard: Model | None = None

    def now(self) -> int:
        """Return the time in microseconds since the epoch."""
        return to_micros(self.clock())


class Learner:
    """Learn from what was said, in the background or now. `memory.learning`."""

    def __init__(
        self, resources: Resources, scope: Scope, check_scope: Callable[[Scope | None], None]
    ) -> None:
        self._resources = resources
        self._scope = scope
        # Raises Denied where this handle may not act for a scope; None stands for all users.
        self._check_scope = check_scope

    @logged
    def work(
        self,
        *,
        llm: LLM | None = None,
        limit: int | None = None,
        until: Time | None = None,
        everyone: bool = False,
        dry_run: bool = False,
        prompts: Mapping[str, str] | None = None,
        progress: Callable[[WorkResult], object] | None = None,
    ) -> WorkResult:
        """Do what is due: learn from the sessions that have ended, reflect, keep the facts tidy.

        Sessions that `Chat.end` named, or without a message for `Learning.idle`, are extracted from and get an episode.
        With a model, agents reflect on their sessions, and what merging left unsure is judged. Nothing of it happens
        elsewhere: call this from a thread, a schedule, or leave it to `holdfast work --watch`. Any number of workers
        may do so at once; a job is done by one of them. A job that fails is tried again later, after `Learning.backoff`
        and twice as long each time; what became of it is in the result and in `jobs`, and not raised. One that failed
        with a model waits for one. A worker whose awaiting is cancelled goes on to the end of what it began.

        Args:
            llm: the model, as for `Chat.compact`; without one, what needs none is done.
            limit: at most so many jobs.
            until: begin none at this time or later.
            everyone: for all users of this tenant, not only this one. A handle that names a user needs `admin=True`.
            dry_run: only say what it would ask the model, and how many tokens that is.
            progress: is called before each job, with an account of nothing whose `why` names the job, and after it with the
                account of it; of an awaited call, on another thread.
            prompts: other prompts for kinds of jobs: a version ("v1") or the path of a file, as for `relearn`.

        Raises:
            InvalidInput: no model, a negative limit, or no time.
            Denied: `everyone` from a handle of one user.
            MissingExtra: the model needs a package that is not installed.
            Unavailable: the database cannot be written at the moment.

        """
        model, stop_at = resolved(llm), as_time(until, "until")
        most = None if limit is None else check_count(limit, "limit")
        check_flag(dry_run, "dry_run")
        observer: object = progress
        if observer is not None and not callable(observer):
            raise InvalidInput(
                f"`progress` is {shown(observer)}.", "Pass a function of one account, or None."
            )
        # Not needed to import all the rest.
        from holdfast.learning.results import WorkResult, explained, together

        if not check_flag(everyone, "everyone"):
            return explained(self._work(model, most, stop_at, prompts, dry_run=dry_run, progress=progress))
        self._check_scope(None)

        results: list[WorkResult] = []
        for scope in self._everyone():
            left = None if most is None else most - sum(one.count for one in results)
            if left == 0 or (results and any(job.reason in _FOR_EVERYONE for job in results[-1].postponed)):
                break
            self._resources.workers.last_served = scope.space
            try:
                one = self._of(scope)
                done = Learner._work(one, model, left, stop_at, prompts, dry_run=dry_run, progress=progress)
                results.append(done)
            except Damaged as error:  # of one user, which must not keep the others from being served
                results.append(WorkResult(notes=(f"user {scope.user!r}: {error}",), why=error.what))
        return explained(together(results))

    def _of(self, scope: Scope) -> Learner:
        return Learner(self._resources, scope, self._check_scope)

    def _work(
        self,
        model: Model | None,
        limit: int | None,
        until: datetime | None,
        prompts: Mapping[str, str] | None,
        *,
        dry_run: bool = False,
        ids: Sequence[str] | None = None,
        progress: Callable[[WorkResult], object] | None = None,
    ) -> WorkResult:
        # What learns is loaded by those who work.
        from holdfast.learning.throttle import giving_way

        worker = self._worker(model, until, prompts)
        if dry_run:
            return worker.estimate()
        # What was appended before is no reason to wait: often it is this thread that did so.
        workers = self._resources.workers
        with workers.working(), giving_way(partial(workers.is_appended_to, time.monotonic())):
            return worker.run(limit, ids, progress)

    def _everyone(self) -> Iterator[Scope]:
        """Yield the users of this tenant that have chats, and the tenant itself."""
        # From the one after the last that was served, so that a limit does not always serve the same ones.
        own, last = self._scope, self._resources.workers.last_served
        after, rounds = last, 2 if last else 1
        while rounds:
            space = sessions.next_space(self._resources.database, after)
            if space is None or (rounds == 1 and last and space > last):
                after, rounds = "", rounds - 1
                continue
            after, scope = space, scope_of(space)
            if scope.tenant == own.tenant:
                yield Scope(scope.tenant, scope.user, own.agent)

    def _worker(
        self, model: Model | None, until: datetime | None = None, prompts: Mapping[str, str] | None = None
    ) -> Worker:
        resources = self._resources
        workers = resources.workers

        def stopped() -> str:
            if workers.closing:
                return "The memory is being closed."
            return "Deadline reached." if until is not None and resources.clock() >= until else ""

        from holdfast.learning.worker import Worker

        return Worker(self._setting(prompts), model, self._meter(), stopped, workers.holding, resources.guard)

    def _setting(self, prompts: Mapping[str, str] | None = None) -> JobContext:
        from holdfast.llm.prompt_files import load

        resources = self._resources
        if prompts is not None and not isinstance(prompts, Mapping):
            raise InvalidInput("`prompts` is no dict.", 'Pass {"observe": "v1"} or the like.')
        for name, version in (prompts or {}).items():
            load(name, version)
        from holdfast.learning.job_context import JobContext

        return JobContext(
            resources.database,
            self._scope,
            resources.kinds,
            resources.count_tokens,
            resources.now,
            resources.settings,
            resources.events,
            lambda scope: replace(resources.intake(scope, "reflect", ""), throttle=rest),
            self._earlier_messages,
            dict(prompts or {}),
        )

    def _earlier_messages(self, scope: Scope, text: str, before: datetime) -> list[str]:
        """Return the messages from before a time that are most like a text."""
        from holdfast.search.filters import check

        # numpy is loaded by the first recall.
        from holdfast.search.query import has_words

        if not has_words(text):
            return []
        wanted = check(sources=("message",), until=before, limit=_EARLIER, valid_at=self._resources.clock())
        return [hit.text for hit in self._resources.search().recall(scope, text, wanted)]

    def _meter(self) -> Meter:
        return self._resources.meter(self._scope)

    @logged
    def extract(
        self,
        text: str | None = None,
        *,
        chat: str | None = None,
        messages: int | tuple[int, int] | None = None,
        step: str = "",
        type: str = "",
        llm: LLM | None = None,
    ) -> Extraction:
        """Extract findings, insights and lessons from a text, such as the output of a step, or from a chat.

        What is known already is not stored again. Texts below 50 characters are skipped, long ones are read in parts,
        split between paragraphs. If the model fails, the result says why, and a job is left that tries it again. Without
        a model, the sentences that tell a decision are kept as insights.

        Args:
            text: what to learn from.
            chat: the chat to learn from, in place of a text; `Chat.extract` does the same.
            messages: the `seq` of a message of the chat, or of the first and the last; None for all since the last
                extraction.
            step: the name of the step that gave the text; of a chat, its id by default.
            type: its type, such as "GOAL"; the records have the source "{type}:{step}".
            llm: the model, as for `Chat.compact`.

        Raises:
            InvalidInput: something is not text, or there are no such messages, or there is no such model.

        """
        for value, what in ((step, "step"), (type, "type")):
            check_name(value, what, empty=True)
        if chat is not None:
            if text is not None:
                raise InvalidInput("Both a text and a chat are given.", "Pass one of them.")
            return self._extract_chat(
                check_name(chat, "The id of a chat"), messages, step, type, resolved(llm)
            )
        if not isinstance(text, str):
            raise InvalidInput(f"The text must be text, not {text.__class__.__name__}.", "Pass a string.")
        return self._extract_text(text, step, type, resolved(llm))

    def _extract_text(self, text: str, step: str, type: str, model: Model | None) -> Extraction:
        from holdfast.learning.results import Extraction

        if (size := len(text.strip())) < SHORTEST:
            return Extraction(
                why=f"Skipped: the text has {size} characters, and from {SHORTEST} on they are read."
            )
        # Loads OpenSSL, which hardly any program needs.
        from hashlib import sha256

        named = f"{self._scope.agent}\0{type}\0{step}\0{text}"
        key = sha256(named.encode("utf-8", "replace")).hexdigest()[:32]
        payload = {"text": text, "step": step, "type": type or "text"}
        return self._extract(f"observe text:{key}", "", payload, model)

    def _extract_chat(
        self,
        chat: str,
        messages: int | tuple[int, int] | None,
        step: str,
        type: str,
        model: Model | None,
    ) -> Extraction:
        span, database, space = check_range(messages, chat), self._resources.database, self._scope.space
        last, agent = sessions.length(database, space, chat), sessions.agent(database, space, chat)
        if span is not None and span[1] > last:
            raise InvalidInput(
                f"There is no message {write_reference(chat, span[1])}; the last is {write_reference(chat, last)}.",
                "Pass numbers of its messages.",
            )
        payload: dict[str, object] = {"step": step, "type": type or "session"}
        job = None
        if span is not None:
            payload["messages"] = list(span)
            job = f"observe {span[0]}-{span[1]}:{chat}"
        return Learner._extract(self._of(replace(self._scope, agent=agent)), job, chat, payload, model)

    def _extract(
        self, job: str | None, chat: str, payload: Mapping[str, object] | None, model: Model | None
    ) -> Extraction:
        """Leave a job for an extraction, do it at once, and say what it gave."""
        from holdfast.learning.results import Extraction

        left_job = self._leave("observe", chat=chat, id=job, payload=payload)
        done = self._work(model, None, None, None, ids=[left_job])
        left = next(iter((*done.postponed, *done.failed)), None)
        dropped = {why: number for why, number in done.dropped.items() if number}
        why = left.error if left else ""
        if not why and not done.done:
            why = "Another worker is at it."
        if not why and not done.records:
            why = "; ".join(note.removeprefix(f"{left_job}: ") for note in done.notes)
        return Extraction(
            done.records,
            dropped,
            why,
            left.id if left else "",
            done.calls,
            done.prompt_tokens,
            done.answer_tokens,
        )

    @retry_transaction
    def _leave(
        self,
        kind: str,
        *,
        chat: str = "",
        agent: str | None = None,
        id: str | None = None,
        payload: Mapping[str, object] | None = None,
    ) -> str:
        """Leave a job that is due now, and return its id."""
        resources, scope = self._resources, self._scope
        with resources.database.writing() as tx:
            tx.lock(scope.space)
            return jobs.add(
                tx,
                scope.space,
                kind,
                now=resources.now(),
                agent=scope.agent if agent is None else agent,
                chat=chat,
                id=id,
                payload=payload,
                again=True,
            )

    def reflect(self, *, llm: LLM, prompts: Mapping[str, str] | None = None) -> WorkResult:
        """Reflect now on the sessions with news, of this agent or of all, as the worker does every hour.

        The model reads a batch of them, the one that was reflected on longest ago first, and may rewrite the profile and
        add observations. It has no way to constraints and soul. What changed is in `records`; running sessions keep the
        profile that their prompts began with.

        Raises:
            InvalidInput: there is no such model.

        """
        return self._now("reflect", llm, prompts)

    def consolidate(
        self, *, llm: LLM, prompts: Mapping[str, str] | None = None, target: str | None = None
    ) -> WorkResult:
        """Let a model keep the facts tidy: judge what merging left unsure, and join facts that say parts of the same.

        Each decision is a change with its reason, and `undo` takes it back. There are never more facts than before.

        Args:
            llm: the model, as for `Chat.compact`.
            prompts: other prompts, as for `work`.
            target: only the facts about this, "user" or "env"; None for all.

        Raises:
            InvalidInput: there is no such model, or no such target.

        """
        judged = [job for job in self.jobs(status="open") if job.kind == "judge"]
        if target is not None:
            targets = self._resources.kinds["fact"].targets
            if target not in targets:
                raise InvalidInput(
                    f"A fact has no target {shown(target)}.", f"Use one of {', '.join(targets)}."
                )
            about = {record.id for record in self._view().records(kind="fact", target=target)}
            judged = [job for job in judged if about.issuperset(job.records)]
        return self._now("consolidate", llm, prompts, [job.id for job in judged], target)

    def _now(
        self,
        kind: str,
        llm: LLM,
        prompts: Mapping[str, str] | None,
        more: Sequence[str] = (),
        target: str | None = None,
    ) -> WorkResult:
        model = resolved(llm)
        if model is None:
            raise InvalidInput("There is no model.", "Pass llm=.")
        # What learns is loaded by those who do.
        from holdfast.learning import scheduler

        setting = self._setting()
        every = scheduler.owners(setting) if kind == "consolidate" else scheduler.agents(setting, kind)
        own = [self._scope.agent] if self._scope.agent else every
        if target is None:
            left = [self._leave(kind, agent=agent) for agent in own]
        else:  # a job of its own, so that the one about all facts stays what it is
            left = [
                self._leave(kind, agent=agent, id=f"{kind} {target}:{agent}", payload={"target": target})
                for agent in own
            ]
        from holdfast.learning.results import explained

        return explained(self._work(model, None, None, prompts, ids=[*more, *left]))

    def relearn(
        self,
        kind: str = "observations",
        *,
        llm: LLM,
        prompt: str | None = None,
        dry_run: bool = False,
    ) -> Relearning:
        """Learn anew, with another prompt or model, from the sessions that observations came from.

        What comes is compared with what is stored: what says the same stays, what is new is added, what is found no
        more is retracted. Each session is one change that `undo` takes back. What the user wrote or changed is left alone,
        and so are facts, unless the prompt asks for them.

        Args:
            kind: what is learned anew: "observations".
            llm: the model, as for `Chat.compact`. It is asked in a dry run as well.
            prompt: a version of the prompt, "v1", or the path of a file; None for the newest.
            dry_run: only show the difference.

        Raises:
            InvalidInput: no such kind, prompt or model.

        """
        # What learns is loaded by those who do.
        from holdfast.learning.relearn import relearn

        model = resolved(llm)
        if model is None:
            raise InvalidInput("There is no model.", "Pass llm=.")
        meter, setting = self._meter(), self._setting()

        def ask(question: LLMRequest, chat: str) -> str:
            return meter.ask(
                model, replace(question, purpose="relearn"), setting.settings.patience, chat=chat
            )

        setting = replace(setting, model=model.name)
        return relearn(setting, kind, prompt, ask, meter.calls, apply=not check_flag(dry_run, "dry_run"))

    def episodes(
        self,
        query: str | None = None,
        *,
        strategy: Strategy = "index",
        limit: int = 5,
        llm: LLM | None = None,
    ) -> Ranking:
        """Find what was done in earlier sessions: their episodes, the one that answers a query best first.

        Without a query, the newest first. What is in quarantine, because its session used sources from outside, is not among
        them until `release`.

        Args:
            query: a question or some words.
            strategy: "index", as `recall` ranks; "projection", by the similarity of the words in random projections;
                "recency", the newest session first; "llm", by a model, of at most 20 that the index finds first. An
                answer that cannot be read, or none, gives "recency", and the result says so in `why`.
            limit: at most so many.
            llm: the model for "llm", as for `Chat.compact`.

        Raises:
            InvalidInput: no such strategy, or no model for "llm".

        """
        # As for relearn.
        from holdfast.learning.ranking import CANDIDATES, rank

        # numpy is loaded by the first recall.
        from holdfast.search.query import has_words

        if query is not None and not isinstance(query, str):
            raise InvalidInput(f"A query must be text, not {type(query).__name__}.", "Pass a string.")
        model, most = resolved(llm), check_count(limit, "limit")
        hits: list[str] = []
        if query is not None and strategy in ("index", "llm") and has_words(query):
            found = self._view().recall(
                query, sources=("record",), kinds=("episode",), limit=max(most, CANDIDATES)
            )
            hits = [hit.id for hit in found]
        ask = None
        if model is not None:
            ask = partial(self._meter().ask, model, patience=self._resources.settings.patience)
        return rank(strategy, self._view().records(kind="episode"), query, most, hits=hits, ask=ask)

    def jobs(self, *, status: JobStatus | None = None) -> list[Job]:
        """List what is left to do, runs, or has failed for good, the oldest first; or only the jobs of a status.

        Raises:
            InvalidInput: an unknown status.

        """
        if status is not None and status not in (*UNFINISHED, "done"):
            raise InvalidInput(f"{shown(status)} is no status.", "Use open, running, done or failed.")
        agents = (self._scope.agent,) if self._scope.agent else None
        return jobs.read(
            self._resources.database, self._scope.space, UNFINISHED if status is None else (status,), agents
        )

    def retry_job(self, id: str) -> Job:
        """Open a job again that has failed for good, or let one that waits be due now; one that runs is left alone.

        Raises:
            InvalidInput: there is no such job.

        """
        check_name(id, "The id of a job")
        own = self._scope.agent or None
        job = jobs.retry(self._resources.database, self._scope.space, id, self._resources.now(), own)
        if job is None:
            raise InvalidInput(f"There is no job {id!r}.", "See `memory.learning.jobs()`.")
        return job

    def usage(self, since: Time | timedelta | None = None) -> Usage:
        """Sum up what models were asked for this user: every call, by what for, which model and how it ended.

        Args:
            since: from this time on, or in the time that has passed since; None for all.

        Raises:
            InvalidInput: `since` is no time.

        """
        from holdfast.learning.results import Usage, UsageLine

        try:
            start = (
                self._resources.clock() - since if isinstance(since, timedelta) else as_time(since, "since")
            )
        except OverflowError as error:
            raise InvalidInput(f"{since!r} is longer than time.", "Pass a shorter timedelta.") from error
        rows = llm_calls.totals(
            self._resources.database, self._scope.space, 0 if start is None else to_micros(start)
        )
        return Usage(
            start,
            tuple(
                UsageLine(purpose, model, outcome, calls, prompts, answers, micros / 1_000_000, counted)
                for purpose, model, outcome, calls, prompts, answers, micros, counted in (
                    (*row[:3], *map(int, row[3:])) for row in rows
                )
            ),
        )

    def _view(self) -> View:
        return self._resources.view(self._scope)

    def __repr__(self) -> str:
        return f"Learner({self._scope})"


@retry_transaction
def end_chat(
    database: Database, space: str, chat: str, kinds: Sequence[str], now: Callable[[], int]
) -> list[Job]:
    """Leave the jobs that a chat which has ended gives, and return them; see `Chat.end`."""
    agent = sessions.agent(database, space, chat)
    due = [kind for kind in ("observe", "episode") if kind in kinds]
    with database.writing() as tx:
        tx.lock(space)
        left = [jobs.add(tx, space, kind, now=now(), agent=agent, chat=chat, again=True) for kind in due]
    return jobs.by_ids(database, space, left)
