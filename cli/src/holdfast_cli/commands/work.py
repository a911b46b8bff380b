"""The command that learns in the background: work."""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import typer

from holdfast import Memory, WorkResult
from holdfast.errors import Unavailable
from holdfast.port.handles import needs_model
from holdfast.types import Job
from holdfast_cli.commands.lookup import titles_of
from holdfast_cli.commands.options import Options, args, complain
from holdfast_cli.commands.render import outcomes
from holdfast_cli.commands.render.screen import Screen, count
from holdfast_cli.commands.render.wording import in_options

# Failures of a model that the next jobs would meet as well, each with its remedy.
_FOR_ALL = {
    "authentication": ("the provider of the model does not accept the key", "Mend it, then go on"),
    "quota": ("a rate limit or a quota of the model is used up", "Wait, or raise it, then go on"),
}
# What jobs wait for, in the singular and the plural.
_DUE, _LATER, _STUCK, _ELSEWHERE = _WAITS = (
    ("is due", "are due"),
    ("waits", "wait, the first"),
    ("needs a model", "need a model"),
    ("is leased by another worker", "are leased by other workers, the first"),
)


@dataclass(frozen=True, slots=True)
class _Worker:
    """A memory and how its jobs are run."""

    options: Options
    memory: Memory
    llm: str | None
    everyone: bool

    def run(
        self, limit: int | None, before: int = 0, *, alone: bool = False, dry_run: bool = False
    ) -> WorkResult:
        """Run the due jobs up to a limit, or the next one `alone`, after those that have run `before`."""
        # Loaded only for a progress bar.
        from holdfast_cli.commands.render.progress import working

        with working(self.llm, before, limit, everyone=self.everyone) as progress:
            return self.memory.learning.work(
                llm=self.llm,
                limit=1 if alone else limit,
                everyone=self.everyone,
                dry_run=dry_run,
                progress=progress,
            )

    def turns(self, limit: int | None = None) -> Iterator[WorkResult]:
        """Run what is due; yield the result of each job when it has ended, or one for all users together."""
        if self.everyone:
            yield self.run(limit)
            return
        for before in range(limit or sys.maxsize):
            yield (result := self.run(limit, before, alone=True))
            if result.noop or _stop(result):
                return

    def titles(self, result: WorkResult) -> dict[str, str]:
        """Find the titles of chats; none of everyone's, since chats of two users may have one id."""
        jobs = (*result.done, *result.postponed, *result.failed)
        return {} if self.everyone else titles_of(self.memory, [job.chat for job in jobs])

    def show(self, result: WorkResult) -> None:
        """Print the result of a turn, if there is any."""
        if result.noop:
            return
        # A job may be of any user.
        options = replace(self.options, user="USER") if self.everyone else self.options
        outcomes.show_work(Screen(), options, result, self.titles(result))

    def again(self) -> str:
        """Return the command that goes on."""
        return self.options.line("work", *args(llm=self.llm, everyone=self.everyone))

    def embedding(self, results: Sequence[WorkResult]) -> str:
        """Return the progress of the embedder; "" if it did not run, and for all users together."""
        jobs = [job for result in results for job in (*result.done, *result.postponed, *result.failed)]
        if self.everyone or all(job.kind != outcomes.EMBED for job in jobs):
            return ""
        rows = self.memory.learning.embedding()
        return "; ".join(f"{row.done:,} of {row.total:,}, by {row.model}" for row in rows)

    def backlog(self) -> dict[tuple[str, str], list[Job]]:
        """Return the unfinished jobs by what they wait for; none of everyone's."""
        backlog: dict[tuple[str, str], list[Job]] = defaultdict(list)
        for job in () if self.everyone else self.memory.learning.jobs():
            if job.status == "failed" or self.options.agent not in ("", job.agent):
                continue
            if job.status == "running" and not outcomes.is_due(job):
                backlog[_ELSEWHERE].append(job)
            elif self.llm is None and needs_model(job):
                backlog[_STUCK].append(job)
            else:
                backlog[_DUE if outcomes.is_due(job) else _LATER].append(job)
        return backlog


def work(
    options: Options,
    *,
    llm: str | None = None,
    limit: int | None = None,
    watch: bool = False,
    every: int = 30,
    everyone: bool = False,
    dry_run: bool = False,
) -> None:
    """Run the jobs that are due: learn from ended chats, keep records tidy, embed.

    Without a model, only what needs none is done. If $HOLDFAST_EMBED names an embedder, what is new is
    embedded. Any number of workers may run at once. Failed jobs are retried later. Exits with 1 if one has
    failed for good.

    For example: holdfast work --llm openai:gpt-5-mini --watch
    """
    if watch and (dry_run or limit is not None):
        raise typer.BadParameter("it goes on until an interrupt, without a limit.", param_hint="--watch")
    with outcomes.interruptible(), options.open(embed=True) as memory:
        worker = _Worker(options, memory, llm, everyone)
        if dry_run:
            _report_estimate(worker, worker.run(limit, dry_run=True))
        elif watch:
            _watch(worker, every)
        elif options.json:
            result = worker.run(limit)
            options.answer(outcomes.work_data(result))
            outcomes.fail(result.failed)
        else:
            _work(worker, limit)


def _work(worker: _Worker, limit: int | None) -> None:
    results = []
    for result in worker.turns(limit):
        worker.show(result)
        results.append(result)
    screen = Screen()
    if stop := _stop(results[-1]):
        why, todo = _FOR_ALL[stop]
        screen.say(("Stopped", "bold yellow"), f": {why}.")
        screen.say(f"→ {todo}: {worker.again()}")
    backlog = worker.backlog()
    clauses = _clauses(backlog, results[-1].waiting if worker.everyone else 0)
    _show_account(screen, worker, results, "; ".join(clauses))
    if not stop and backlog[_DUE]:
        screen.say(f"→ Go on: {worker.again()}")
    if not stop and backlog[_STUCK]:
        screen.say(f"→ Name a model: {worker.options.line('work', '--llm', 'NAME')}")
    outcomes.fail([job for result in results for job in result.failed])


def _stop(result: WorkResult) -> str:
    """Return the reason why no more jobs are started, "" for none."""
    return next((job.reason for job in result.postponed if job.reason in _FOR_ALL), "")


def _watch(worker: _Worker, every: int) -> None:
    """Run what is due, wait, and look again, until an interrupt."""
    as_json = worker.options.json
    if not as_json:
        Screen().say((f"Looking for work every {every:,} s. Ctrl-C ends it.", "dim"))

    def show(result: WorkResult) -> None:
        if not as_json:
            worker.show(result)
            if stop := _stop(result):
                Screen().say(("Stopped until the next look", "bold yellow"), f": {_FOR_ALL[stop][0]}.")
        elif not result.noop:
            outcomes.say_line(outcomes.work_data(result))

    notice = "Stopped looking for work. What was learned until now is kept."
    outcomes.repeat(lambda: look(worker.turns, show, every), every, notice)


def look(turns: Callable[[], Iterable[WorkResult]], show: Callable[[WorkResult], None], every: int) -> None:
    """Run what is due until nothing is. A database that cannot be reached is left for the next time."""
    try:
        for result in turns():
            show(result)
            sys.stdout.flush()  # whoever reads it from a pipe is to see it now
    except Unavailable as error:
        complain(in_options(error.what), f"{in_options(error.todo)} It is tried again in {every:,} s.")


def _clauses(backlog: Mapping[tuple[str, str], Sequence[Job]], of_all: int) -> Iterator[str]:
    """Yield a clause on the unfinished jobs for each reason to wait."""
    if of_all:
        waits = "waits for its time" if of_all == 1 else "wait for their time"
        yield f"{count(of_all, 'job')} of all users {waits} or for a model"
    for how in _WAITS:
        if jobs := backlog.get(how):
            first = min((job.due for job in jobs if job.due), default=None)
            end = f" until {outcomes.until(first)}" if how in (_LATER, _ELSEWHERE) else ""
            yield f"{count(len(jobs), 'job')} {how[len(jobs) > 1]}{end}"


def _show_account(screen: Screen, worker: _Worker, results: Sequence[WorkResult], rest: str) -> None:
    """Print the results, and what is left."""
    options = worker.options
    if not all(result.noop for result in results):
        screen.say("")
        outcomes.show_cost(screen, results, worker.llm, worker.embedding(results))
        if rest:
            screen.say(f"Left: {rest}.")
    elif rest:
        screen.say(f"Nothing is due{options.whose()}: {rest}.")
    else:
        ends = options.line("chats", "end", "CHAT")
        todo = f"A chat is learned from when it has been silent for a while, or after: {ends}"
        options.say_nothing(screen, f"Nothing is due{options.whose()}.", todo)


def _report_estimate(worker: _Worker, estimate: WorkResult) -> None:
    options, llm = worker.options, worker.llm
    screen = options.answer(outcomes.work_data(estimate))
    if estimate.noop:
        screen.say(f"Nothing is due{options.whose()}.")
        return
    outcomes.show_jobs(screen, options, estimate, worker.titles(estimate))
    screen.say("")
    if estimate.records:
        screen.say((f"Without a model it would learn {count(len(estimate.records), 'record')}:", "bold"))
        outcomes.show_records(screen, estimate.records, {})
        screen.say("")
    if llm is None:
        screen.say("Without a model nothing would be asked.")
        screen.say(f"→ What one would be asked: {options.line('work', '--dry-run', '--llm', 'NAME')}")
    elif not estimate.calls:
        screen.say(f"{llm} would not be asked: none of it needs a model.")
        screen.say(f"→ Run it: {options.line('work')}")
    else:
        prompts, answers = count(estimate.prompt_tokens, "token"), f"{estimate.answer_tokens:,}"
        tokens = f"{prompts} of prompts, and about {answers} of answers."
        screen.say(("It would ask ", "bold"), f"{llm} {count(estimate.calls, 'time')}: {tokens}")
        screen.say(f"→ Run it: {options.line('work', '--llm', llm)}")
