"""The command that learns in the background: work."""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Annotated, NamedTuple, Protocol

import typer

from holdfast.cli.chats import known_chats
from holdfast.cli.options import INTERRUPTED, Options, complain
from holdfast.cli.render.outcomes import (
    Titles,
    described,
    fail,
    interruptible,
    is_due,
    needs_model,
    prompt_version,
    show_cost,
    show_jobs,
    show_work,
    thinking,
    until,
)
from holdfast.cli.render.screen import Screen, answer, count
from holdfast.cli.render.wording import in_options
from holdfast.errors import Unavailable
from holdfast.learning.results import WorkResult
from holdfast.memory import Memory
from holdfast.types import Job

# Why a model fails that would fail the next jobs as well, and what is done about it.
_FOR_ALL = {
    "authentication": ("the provider of the model does not accept the key", "Mend it, then go on"),
    "quota": ("a rate limit or a quota of the model is used up", "Wait, or raise it, then go on"),
}


class Turn(Protocol):
    """A function that runs some of the due jobs."""

    def __call__(self, *, limit: int | None) -> WorkResult:
        """Run at most `limit` jobs."""


class _Left(NamedTuple):
    """The jobs that are left: due, later, in need of a model, or leased by another worker."""

    due: list[Job]
    later: list[Job]
    stuck: list[Job]
    elsewhere: list[Job]


Show = Callable[[WorkResult], None]


_Llm = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The model, such as openai:gpt-5-mini; without one, what needs none is done.",
    ),
]
_Watch = Annotated[
    bool,
    typer.Option(
        "--watch",
        help="Keep looking for jobs until interrupted; with --json, print one document per line.",
    ),
]
_Every = Annotated[int, typer.Option(min=1, metavar="SECONDS", help="How long to wait before looking again.")]
_Everyone = Annotated[
    bool, typer.Option("--everyone", help="For all users of this tenant, not only this one.")
]
_DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only say what it would ask the model, and what that takes.")
]
_Prompt = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KIND=VERSION|PATH",
        help="Another prompt for a kind of jobs, such as observe=v1; may be repeated. A file is a path "
        "with a folder, or ends with .md.",
    ),
]


_Limit = Annotated[int | None, typer.Option(min=1, help="At most so many jobs.")]


def work(
    options: Options,
    *,
    llm: _Llm = None,
    limit: _Limit = None,
    watch: _Watch = False,
    every: _Every = 30,
    everyone: _Everyone = False,
    dry_run: _DryRun = False,
    prompt: _Prompt = None,
) -> None:
    """Run the jobs that are due: learn from ended chats, and keep records tidy.

    Any number of workers may run at once. Failed jobs are retried later. Exits with 1 if one has failed for
    good.

    For example: holdfast work --llm openai:gpt-5-mini --watch
    """
    if watch and (dry_run or limit is not None):
        raise typer.BadParameter("it goes on until an interrupt, without a limit.", param_hint="--watch")
    with interruptible(), options.open() as memory:
        run = partial(memory.learning.work, llm=llm, everyone=everyone, prompts=_prompts(prompt))
        ask = partial(_ask, run, llm)
        again = options.line("work", *(("--llm", llm) if llm else ()), *(["--everyone"] if everyone else []))
        show = partial(_show_turn, options, memory, everyone=everyone, again="" if watch else again)
        if dry_run:
            _report_estimate(options, run(limit=limit, dry_run=True), llm, _titles(memory, everyone=everyone))
        elif watch:
            _watch(options, ask, show, every, one_by_one=not everyone)
        elif options.json:
            done = ask(limit=limit)
            answer(described(done))
            fail(done.failed)
        else:
            results = []
            for done in turns(ask, limit, one_by_one=not everyone):
                show(done)
                results.append(done)
            _show_results(options, memory, results, llm, again, everyone=everyone)
            fail([job for done in results for job in done.failed])


def _show_results(
    options: Options,
    memory: Memory,
    results: list[WorkResult],
    llm: str | None,
    again: str,
    *,
    everyone: bool,
) -> None:
    left = _Left([], [], [], []) if everyone else _left(options, memory, llm)
    waiting = _told_of_all(results[-1].waiting) if everyone else _told(left)
    _show_account(options, results, "; ".join(waiting), llm)
    if not _stop(results[-1]):
        _show_way_on(options, left, again)


def _prompts(given: Sequence[str] | None) -> dict[str, str]:
    prompts = {}
    for text in given or ():
        kind, _, version = text.partition("=")
        if not (kind and version):
            raise typer.BadParameter(f"{text!r} is not like observe=v1.", param_hint="--prompt")
        prompts[kind] = prompt_version(version)
    return prompts


def _ask(run: Turn, llm: str | None, *, limit: int | None) -> WorkResult:
    with thinking(llm):
        return run(limit=limit)


def _titles(memory: Memory, *, everyone: bool) -> Titles:
    """Find the titles of chats; none of everyone's, since chats of two users may have one id."""
    return {} if everyone else known_chats(memory)


def turns(ask: Turn, limit: int | None, *, one_by_one: bool) -> Iterator[WorkResult]:
    """Do what is due, and give the account of each job when it has ended, or one of all of them together."""
    if not one_by_one:
        yield ask(limit=limit)
        return
    left = limit
    while left != 0:
        done = ask(limit=1)
        yield done
        if done.noop or _stop(done):
            return
        left = None if left is None else left - 1


def _stop(done: WorkResult) -> str:
    """Return the reason why no more jobs are started, "" for none."""
    return next((job.reason for job in done.postponed if job.reason in _FOR_ALL), "")


def _show_turn(options: Options, memory: Memory, done: WorkResult, *, everyone: bool, again: str) -> None:
    if done.noop:
        return
    if options.json:
        sys.stdout.write(json.dumps(described(done), separators=(",", ":")) + "\n")  # a line, all of it ASCII
    else:
        shown = replace(options, user="USER") if everyone else options  # whoever has the job
        show_work(Screen(), shown, done, _titles(memory, everyone=everyone))
        if stop := _stop(done):
            _show_stop(Screen(), stop, again)


def _show_stop(screen: Screen, stop: str, again: str) -> None:
    """Print why no more jobs are started, and how to go on."""
    why, todo = _FOR_ALL[stop]
    screen.say((f"Stopped{'' if again else ' until the next look'}", "bold yellow"), f": {why}.")
    if again:
        screen.say(f"→ {todo}: {again}")


def _watch(options: Options, ask: Turn, show: Show, every: int, *, one_by_one: bool) -> None:
    """Do what is due, wait, and look again, until an interrupt."""
    if not options.json:
        Screen().say((f"Looking for work every {every:,} s. Ctrl-C ends it.", "dim"))
    try:
        while True:
            look(ask, show, every, one_by_one=one_by_one)
            time.sleep(every)  # an interrupt ends it at once
    except KeyboardInterrupt as error:
        Screen(sys.stderr).say("Stopped looking for work. What was learned until now is kept.")
        raise typer.Exit(INTERRUPTED) from error


def look(ask: Turn, show: Show, every: int, *, one_by_one: bool) -> None:
    """Do what is due until nothing is. A database that cannot be reached is left for the next time."""
    try:
        for done in turns(ask, None, one_by_one=one_by_one):
            show(done)
            sys.stdout.flush()  # whoever reads it from a pipe is to see it now
    except Unavailable as error:
        complain(error.what, f"{in_options(error.todo)} It is tried again in {every:,} s.")


# What is left


def _left(options: Options, memory: Memory, llm: str | None) -> _Left:
    left = _Left([], [], [], [])
    for job in memory.learning.jobs():
        if job.status == "failed" or options.agent not in ("", job.agent):
            continue
        if job.status == "running" and not is_due(job):
            left.elsewhere.append(job)
        elif llm is None and needs_model(job):
            left.stuck.append(job)
        else:
            (left.due if is_due(job) else left.later).append(job)
    return left


def _told(left: _Left) -> Iterator[str]:
    """Yield what is left, a clause for each reason."""
    if jobs := left.due:
        yield _some(jobs, "is due", "are due")
    if jobs := left.later:
        yield f"{_some(jobs, 'waits', 'wait, the first')} until {until(_first(jobs))}"
    if jobs := left.stuck:
        yield _some(jobs, "needs a model", "need a model")
    if jobs := left.elsewhere:
        where = _some(jobs, "is leased by another worker", "are leased by other workers, the first")
        yield f"{where} until {until(_first(jobs))}"


def _some(jobs: Sequence[Job], one: str, several: str) -> str:
    return f"{count(len(jobs), 'job')} {one if len(jobs) == 1 else several}"


def _first(jobs: Iterable[Job]) -> datetime | None:
    return min((job.due for job in jobs if job.due), default=None)


def _told_of_all(waiting: int) -> Iterator[str]:
    if waiting:
        waits = "waits for its time" if waiting == 1 else "wait for their time"
        yield f"{count(waiting, 'job')} of all users {waits} or for a model"


def _show_account(options: Options, results: Sequence[WorkResult], left: str, llm: str | None) -> None:
    """Print the results, and what is left."""
    screen = Screen()
    if not all(done.noop for done in results):
        screen.say("")
        show_cost(screen, results, llm)
        if left:
            screen.say(f"Left: {left}.")
    elif left:
        screen.say(f"Nothing is due{options.whose()}: {left}.")
    else:
        screen.say(f"Nothing is due{options.whose()}.")
        ends = options.line("chats", "end", "CHAT")
        usual = f"A session is learned from when it has been silent for a while, or after: {ends}"
        screen.say(f"→ {options.others() or usual}")


def _show_way_on(options: Options, left: _Left, again: str) -> None:
    """Print how to go on with what is due, or needs a model."""
    if left.due:
        Screen().say(f"→ Go on: {again}")
    if left.stuck:
        Screen().say(f"→ Name a model: {options.line('work', '--llm', 'NAME')}")


# What it would take


def _report_estimate(options: Options, found: WorkResult, llm: str | None, titles: Titles) -> None:
    if options.json:
        answer(described(found))
        return
    screen = Screen()
    if found.noop:
        screen.say(f"Nothing is due{options.whose()}.")
        return
    show_jobs(screen, options, found, titles)
    screen.say("")
    if llm and not found.calls:
        screen.say(f"{llm} would not be asked: none of it needs a model.")
        screen.say(f"→ Run it: {options.line('work')}")
        return
    if llm is None:
        screen.say("Without a model nothing would be asked.")
        screen.say(f"→ What one would be asked: {options.line('work', '--dry-run', '--llm', 'NAME')}")
        return
    screen.say(
        ("It would ask ", "bold"),
        f"{llm} {count(found.calls, 'time')}: {count(found.prompt_tokens, 'token')} of prompts, and about "
        f"{found.answer_tokens:,} of answers.",
    )
    screen.say(f"→ Run it: {options.line('work', '--llm', llm)}")
