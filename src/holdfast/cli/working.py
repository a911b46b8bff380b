"""The command that learns in the background: work."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Protocol

import typer

from holdfast.cli.options import Options, complain
from holdfast.cli.outcomes import (
    Titles,
    described,
    fail,
    interruptible,
    show_cost,
    show_jobs,
    show_work,
)
from holdfast.cli.reading import known_chats
from holdfast.cli.screen import Screen, answer, count, when
from holdfast.errors import Unavailable
from holdfast.learn.results import WorkResult
from holdfast.memory import Memory
from holdfast.types import Job

_FOR_ALL = ("authentication", "quota")  # why a model fails that would fail the next jobs as well


class Turn(Protocol):
    """Do some of what is due."""

    def __call__(self, *, limit: int | None) -> WorkResult:
        """Do at most so many jobs."""


Show = Callable[[WorkResult], None]


def work(
    options: Options,
    *,
    llm: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The model, such as openai:gpt-5-mini; without one, what needs none is done.",
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many jobs.")] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Stay and look again and again, until an interrupt.")
    ] = False,
    every: Annotated[
        int, typer.Option(min=1, metavar="SECONDS", help="How long to wait before looking again.")
    ] = 30,
    everyone: Annotated[
        bool, typer.Option("--everyone", help="For all users of this tenant, not only this one.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what it would ask the model, and what that takes.")
    ] = False,
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=VERSION|PATH",
            help="Another prompt for a kind of jobs, such as observe=v1; may be repeated.",
        ),
    ] = None,
) -> None:
    """Do what is due, and say what came of it: learn from the sessions that have ended, keep what is known tidy.

    What fails is tried again later, and `holdfast jobs` says why. Any number of workers may run at once.
    Exits with 1 when a job has failed for good. For example: holdfast work --llm openai:gpt-5-mini --watch
    """
    if watch and (dry_run or limit is not None):
        raise typer.BadParameter("it goes on until an interrupt, without a limit.", param_hint="--watch")
    with interruptible(), options.open() as memory:
        ask = partial(memory.work, llm=llm, everyone=everyone, prompts=_prompts(prompt))
        show = partial(_show_turn, options, memory, everyone=everyone)
        if dry_run:
            _report_estimate(options, ask(limit=limit, dry_run=True), llm, _titles(memory, everyone=everyone))
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
            _show_account(options, results, llm)
            _show_left(options, results[-1].waiting, [] if everyone else memory.jobs(status="open"), llm)
            fail([job for done in results for job in done.failed])


def _prompts(given: Sequence[str] | None) -> dict[str, str]:
    prompts = {}
    for text in given or ():
        kind, _, version = text.partition("=")
        if not (kind and version):
            raise typer.BadParameter(f"{text!r} is not like observe=v1.", param_hint="--prompt")
        prompts[kind] = version
    return prompts


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
        if done.noop or any(job.reason in _FOR_ALL for job in done.postponed):
            return
        left = None if left is None else left - 1


def _show_turn(options: Options, memory: Memory, done: WorkResult, *, everyone: bool) -> None:
    if done.noop:
        return
    if options.json:
        answer(described(done))
    else:
        show_work(Screen(), options, done, _titles(memory, everyone=everyone))


def _watch(options: Options, ask: Turn, show: Show, every: int, *, one_by_one: bool) -> None:
    """Do what is due, wait, and look again, until an interrupt."""
    if not options.json:
        Screen().say((f"Looking for work every {every:,} s. Ctrl-C ends it.", "dim"))
    while True:
        look(ask, show, every, one_by_one=one_by_one)
        time.sleep(every)  # an interrupt ends it at once


def look(ask: Turn, show: Show, every: int, *, one_by_one: bool) -> None:
    """Do what is due until nothing is. A database that cannot be reached is left for the next time."""
    try:
        for done in turns(ask, None, one_by_one=one_by_one):
            show(done)
            sys.stdout.flush()  # whoever reads it from a pipe is to see it now
    except Unavailable as error:
        complain(error.what, f"{error.todo} It is tried again in {every:,} s.")


def _show_account(options: Options, results: Sequence[WorkResult], llm: str | None) -> None:
    screen = Screen()
    if all(done.noop for done in results):
        screen.say(f"Nothing is due{options.whose()}.")
        ends = options.line("end", "CHAT")
        screen.say(f"→ A session is learned from when it has been silent for a while, or after: {ends}")
        return
    screen.say("")
    show_cost(screen, results, llm)


def _show_left(options: Options, waiting: int, open_jobs: Sequence[Job], llm: str | None) -> None:
    """Say what is left: what needs a model, what is not due yet, and what there was no time for."""
    from holdfast.learn.work import NEED_A_MODEL  # noqa: PLC0415 - what learns is loaded by those who work

    screen = Screen()
    if waiting and not open_jobs:
        screen.say(f"{count(waiting, 'job')} of all users left: not due yet, or in need of a model.")
        return
    now = datetime.now(UTC)
    stuck = [job for job in open_jobs if not llm and job.kind in NEED_A_MODEL]
    later = [job.due for job in open_jobs if job not in stuck and job.due and job.due > now]
    due = len(open_jobs) - len(stuck) - len(later)
    if later:
        screen.say(f"Not due yet: {count(len(later), 'job')}, the next at {when(min(later))}.")
    if stuck:
        screen.say(f"In need of a model: {count(len(stuck), 'job')}.")
        screen.say(f"→ Name one: {options.line('work', '--llm', 'NAME')}")
    if due:
        screen.say(f"Left: {count(due, 'job')}.")
        screen.say(f"→ Go on: {options.line('work', *(('--llm', llm) if llm else ()))}")


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
    if llm is None:
        screen.say("Without a model nothing would be asked.")
        screen.say(f"→ What one would be asked: {options.line('work', '--dry-run', '--llm', 'NAME')}")
        return
    screen.say(
        ("It would ask ", "bold"),
        f"{llm} {count(found.calls, 'time')}: {count(found.prompt_tokens, 'token')} of prompts, and about "
        f"{found.answer_tokens:,} of answers at most.",
    )
    screen.say(f"→ Do it: {options.line('work', '--llm', llm)}")
