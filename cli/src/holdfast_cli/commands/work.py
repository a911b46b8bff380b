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
from holdfast_cli.commands.arguments import prompt_versions
from holdfast_cli.commands.lookup import titles_of
from holdfast_cli.commands.options import Options, complain, given
from holdfast_cli.commands.render import outcomes
from holdfast_cli.commands.render.screen import Screen, count
from holdfast_cli.commands.render.wording import in_options

# Why a model fails that would fail the next jobs as well, and what is done about it.
_FOR_ALL = {
    "authentication": ("the provider of the model does not accept the key", "Mend it, then go on"),
    "quota": ("a rate limit or a quota of the model is used up", "Wait, or raise it, then go on"),
}
# What jobs wait for, of one and of several.
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
    prompts: Mapping[str, str]

    def run(self, limit: int | None = None, *, dry_run: bool = False) -> WorkResult:
        """Run some of the due jobs."""
        with outcomes.thinking(None if dry_run else self.llm):
            return self.memory.learning.work(
                limit=limit, llm=self.llm, everyone=self.everyone, prompts=self.prompts, dry_run=dry_run
            )

    def turns(self, limit: int | None = None) -> Iterator[WorkResult]:
        """Run what is due; yield the result of each job when it has ended, or one for all users together."""
        if self.everyone:
            yield self.run(limit)
            return
        left = limit
        while left != 0:
            done = self.run(1)
            yield done
            if done.noop or _stop(done):
                return
            left = None if left is None else left - 1

    def titles(self, done: WorkResult) -> dict[str, str]:
        """Find the titles of chats; none of everyone's, since chats of two users may have one id."""
        jobs = (*done.done, *done.postponed, *done.failed)
        return {} if self.everyone else titles_of(self.memory, [job.chat for job in jobs])

    def show(self, done: WorkResult) -> None:
        """Print the result of a turn, if there is any."""
        if done.noop:
            return
        # Whoever has the job.
        shown = replace(self.options, user="USER") if self.everyone else self.options
        outcomes.show_work(Screen(), shown, done, self.titles(done))

    def again(self) -> str:
        """Return the command that goes on."""
        return self.options.line("work", *given(llm=self.llm, everyone=self.everyone))

    def embedded(self, results: Sequence[WorkResult]) -> str:
        """Return how far the embedder has come, "" if it was not at work; nothing of everyone's."""
        jobs = [job for one in results for job in (*one.done, *one.postponed, *one.failed)]
        if self.everyone or all(job.kind != outcomes.EMBED for job in jobs):
            return ""
        return "; ".join(
            f"{one.done:,} of {one.total:,}, by {one.model}" for one in self.memory.learning.embedding()
        )

    def left(self) -> dict[tuple[str, str], list[Job]]:
        """Return the unfinished jobs by what they wait for; none of everyone's."""
        left: dict[tuple[str, str], list[Job]] = defaultdict(list)
        for job in () if self.everyone else self.memory.learning.jobs():
            if job.status == "failed" or self.options.agent not in ("", job.agent):
                continue
            if job.status == "running" and not outcomes.is_due(job):
                left[_ELSEWHERE].append(job)
            elif self.llm is None and needs_model(job):
                left[_STUCK].append(job)
            else:
                left[_DUE if outcomes.is_due(job) else _LATER].append(job)
        return left


def work(
    options: Options,
    *,
    llm: str | None = None,
    limit: int | None = None,
    watch: bool = False,
    every: int = 30,
    everyone: bool = False,
    dry_run: bool = False,
    prompt: list[str] | None = None,
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
        worker = _Worker(options, memory, llm, everyone, prompt_versions(prompt, "session=v2"))
        if dry_run:
            _report_estimate(worker, worker.run(limit, dry_run=True))
        elif watch:
            _watch(worker, every)
        elif options.json:
            done = worker.run(limit)
            options.answer(outcomes.described(done))
            outcomes.fail(done.failed)
        else:
            _work(worker, limit)


def _work(worker: _Worker, limit: int | None) -> None:
    results = []
    for done in worker.turns(limit):
        worker.show(done)
        results.append(done)
    screen = Screen()
    if stop := _stop(results[-1]):
        why, todo = _FOR_ALL[stop]
        screen.say(("Stopped", "bold yellow"), f": {why}.")
        screen.say(f"→ {todo}: {worker.again()}")
    left = worker.left()
    _show_account(
        screen, worker, results, "; ".join(_waiting(left, results[-1].waiting if worker.everyone else 0))
    )
    if not stop and left[_DUE]:
        screen.say(f"→ Go on: {worker.again()}")
    if not stop and left[_STUCK]:
        screen.say(f"→ Name a model: {worker.options.line('work', '--llm', 'NAME')}")
    outcomes.fail([job for done in results for job in done.failed])


def _stop(done: WorkResult) -> str:
    """Return the reason why no more jobs are started, "" for none."""
    return next((job.reason for job in done.postponed if job.reason in _FOR_ALL), "")


def _watch(worker: _Worker, every: int) -> None:
    """Run what is due, wait, and look again, until an interrupt."""
    as_json = worker.options.json
    if not as_json:
        Screen().say((f"Looking for work every {every:,} s. Ctrl-C ends it.", "dim"))

    def show(done: WorkResult) -> None:
        if not as_json:
            worker.show(done)
            if stop := _stop(done):
                Screen().say(("Stopped until the next look", "bold yellow"), f": {_FOR_ALL[stop][0]}.")
        elif not done.noop:
            outcomes.say_line(outcomes.described(done))

    stopped = "Stopped looking for work. What was learned until now is kept."
    outcomes.repeat(lambda: look(worker.turns, show, every), every, stopped)


def look(turns: Callable[[], Iterable[WorkResult]], show: Callable[[WorkResult], None], every: int) -> None:
    """Run what is due until nothing is. A database that cannot be reached is left for the next time."""
    try:
        for done in turns():
            show(done)
            sys.stdout.flush()  # whoever reads it from a pipe is to see it now
    except Unavailable as error:
        complain(error.what, f"{in_options(error.todo)} It is tried again in {every:,} s.")


def _waiting(left: Mapping[tuple[str, str], Sequence[Job]], of_all: int) -> Iterator[str]:
    """Yield what is left, a clause for each reason."""
    if of_all:
        waits = "waits for its time" if of_all == 1 else "wait for their time"
        yield f"{count(of_all, 'job')} of all users {waits} or for a model"
    for how in _WAITS:
        if jobs := left.get(how):
            first = min((job.due for job in jobs if job.due), default=None)
            end = f" until {outcomes.until(first)}" if how in (_LATER, _ELSEWHERE) else ""
            yield f"{count(len(jobs), 'job')} {how[len(jobs) > 1]}{end}"


def _show_account(screen: Screen, worker: _Worker, results: Sequence[WorkResult], left: str) -> None:
    """Print the results, and what is left."""
    options = worker.options
    if not all(done.noop for done in results):
        screen.say("")
        outcomes.show_cost(screen, results, worker.llm, worker.embedded(results))
        if left:
            screen.say(f"Left: {left}.")
    elif left:
        screen.say(f"Nothing is due{options.whose()}: {left}.")
    else:
        ends = options.line("chats", "end", "CHAT")
        todo = f"A chat is learned from when it has been silent for a while, or after: {ends}"
        options.say_nothing(screen, f"Nothing is due{options.whose()}.", todo)


def _report_estimate(worker: _Worker, found: WorkResult) -> None:
    options, llm = worker.options, worker.llm
    screen = options.answer(outcomes.described(found))
    if found.noop:
        screen.say(f"Nothing is due{options.whose()}.")
        return
    outcomes.show_jobs(screen, options, found, worker.titles(found))
    screen.say("")
    if found.records:
        screen.say((f"Without a model it would learn {count(len(found.records), 'record')}:", "bold"))
        outcomes.show_records(screen, found.records, {})
        screen.say("")
    if llm is None:
        screen.say("Without a model nothing would be asked.")
        screen.say(f"→ What one would be asked: {options.line('work', '--dry-run', '--llm', 'NAME')}")
    elif not found.calls:
        screen.say(f"{llm} would not be asked: none of it needs a model.")
        screen.say(f"→ Run it: {options.line('work')}")
    else:
        prompts, answers = count(found.prompt_tokens, "token"), f"{found.answer_tokens:,}"
        often = f"{llm} {count(found.calls, 'time')}"
        screen.say(
            ("It would ask ", "bold"), f"{often}: {prompts} of prompts, and about {answers} of answers."
        )
        screen.say(f"→ Run it: {options.line('work', '--llm', llm)}")
