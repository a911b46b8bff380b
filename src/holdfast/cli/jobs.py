"""The commands for jobs and their costs: jobs, usage."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, cast, get_args

import typer
from rich.cells import cell_len, set_cell_size

from holdfast.cli.arguments import moment, one_of
from holdfast.cli.chats import known_chats
from holdfast.cli.options import Options
from holdfast.cli.render.outcomes import Titles, is_due, needs_model, quiet, until
from holdfast.cli.render.screen import Screen, answer, count, plain, safe, when
from holdfast.cli.render.summaries import fitted
from holdfast.cli.render.wording import in_options
from holdfast.errors import InvalidInput
from holdfast.learning.results import Usage
from holdfast.memory import Memory
from holdfast.types import Job, JobStatus

_STATUSES: tuple[str, ...] = get_args(JobStatus)
_STYLES = {"failed": "bold red", "running": "bold green"}
_TITLE = 40  # columns of a title in a table
_SUMMED = ("calls", "prompt_tokens", "answer_tokens", "seconds", "counted")
_ASKED = "asked"  # the outcome of a call that has none yet


# jobs and end


_Status = Annotated[
    str | None,
    typer.Option(
        parser=one_of(_STATUSES),
        metavar="STATUS",
        help=f"Only those that are so: {', '.join(_STATUSES)}.",
    ),
]
_Retry = Annotated[
    str | None, typer.Option(metavar="ID", help="Open this one again, to be done by the next worker.")
]


def jobs(
    options: Options,
    *,
    status: _Status = None,
    retry: _Retry = None,
) -> None:
    """List unfinished jobs, oldest first: open, running, and failed with the reason; or retry one.

    For example: holdfast jobs --status failed, or holdfast jobs --retry observe:porto-trip
    """
    if status is not None and retry is not None:
        raise typer.BadParameter("list some or retry one, not both at once.", param_hint="--retry")
    with quiet(), options.open() as memory:
        if retry is not None:
            _report_retry(options, _retried(memory, retry))
            return
        found = memory.learning.jobs(status=cast("JobStatus | None", status))
        titles = known_chats(memory)
    if options.json:
        answer({"jobs": plain(found)})
        return
    screen = Screen()
    if not found:
        screen.say(f"No {status or 'unfinished'} jobs{options.whose()} here.")
        if others := options.others():
            screen.say(f"→ {others}")
        elif status in (None, "open"):
            screen.say(f"→ Queue some when a chat has ended: {options.line('chats', 'end', 'CHAT')}")
        return
    _show_table(screen, found, titles)
    if due := [job for job in found if is_due(job)]:
        screen.say(f"→ Run what is due: {_work(options, due)}")
    if any(job.status == "failed" for job in found):
        screen.say(f"→ Retry one: {options.line('jobs', '--retry', 'ID')}")


def _retried(memory: Memory, identity: str) -> Job:
    try:
        return memory.learning.retry_job(identity)
    except InvalidInput as error:
        raise InvalidInput(error.what, "`holdfast jobs` lists those there are, with their ids.") from error


def _report_retry(options: Options, job: Job) -> None:
    if options.json:
        answer({"job": plain(job)})
        return
    screen = Screen()
    if job.status == "running":
        screen.say(f"{job.id} is running: {_when(job)}.")
        screen.say(f"→ Look again: {options.line('jobs')}")
        return
    screen.say(("Reopened: ", "bold"), job.id)
    screen.say(f"→ Run it: {_work(options, [job])}")


def _work(options: Options, due: Sequence[Job]) -> str:
    """Return the command that runs some jobs."""
    return options.line("work", *(("--llm", "NAME") if any(map(needs_model, due)) else ()))


def _show_table(screen: Screen, found: Sequence[Job], titles: Titles) -> None:
    """Print jobs in columns, each with its last error below it."""
    names = ("id", "kind", "about", "status", "when", "failures", "cost")
    rows = [[" ".join(safe(cell).split()) for cell in _row(job, titles)] for job in found]
    widths = [max(map(cell_len, cells)) for cells in zip(names, *rows, strict=True)]
    screen.say((_aligned(names, widths), "bold"))
    for job, row in zip(found, rows, strict=True):
        screen.say((_aligned(row, widths), _STYLES.get(job.status, "")))
        if job.error:
            screen.say((in_options(job.error), "dim"), indent=4)


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (set_cell_size(cell, width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip()


def _row(job: Job, titles: Titles) -> tuple[str, ...]:
    title = titles[job.chat].title if job.chat in titles else ""
    about = title or job.chat or ", ".join(job.records)
    tokens = job.prompt_tokens + job.answer_tokens
    return (
        job.id,
        job.kind,
        fitted(about, _TITLE),
        job.status,
        _when(job),
        str(job.attempts - (job.status == "running")),
        f"{count(job.calls, 'call')}, {count(tokens, 'token')}" if job.calls else "",
    )


def _when(job: Job) -> str:
    """Return when the lease of a job expires, when it is due, or when it ended."""
    if job.status == "running" and not is_due(job):
        return f"leased until {until(job.due)}"
    return f"due {when(job.due)}" if job.status in ("open", "running") else when(job.ended or job.at)


# usage


def usage(
    options: Options,
    *,
    since: Annotated[
        datetime | None,
        typer.Option(
            parser=moment, metavar="7d|24h|DATE", help="Only from so long ago, or this date or time, on."
        ),
    ] = None,
) -> None:
    """Sum up the calls of models by purpose, model and outcome, with tokens and time.

    For example: holdfast usage --since 7d
    """
    with quiet(), options.open() as memory:
        found = memory.learning.usage(since)
    if options.json:
        summed = {name: getattr(found, name) for name in _SUMMED}
        answer({**plain(found), **summed})
        return
    screen = Screen()
    begins = f" since {when(found.since)}" if found.since else ""
    if not found.calls:
        screen.say(f"No calls of models{options.whose()}{begins}.")
        if others := options.others():
            screen.say(f"→ {others}")
        return
    _show_spend(screen, found)
    screen.say("")
    screen.say(
        ("Total: ", "bold"),
        f"{count(found.calls, 'call')}, {count(found.prompt_tokens, 'token')} of prompts, "
        f"{found.answer_tokens:,} of "
        f"answers, {found.seconds:,.1f} s{begins}.",
    )
    screen.say((_reckoned(found), "dim"))
    if any(line.outcome == _ASKED for line in found.lines):
        screen.say(
            (f"{_ASKED}: running, or killed; counted with the most that their answers may take.", "dim"),
        )


def _reckoned(found: Usage) -> str:
    """Return how many calls have their tokens counted by the provider."""
    if found.counted == found.calls:
        return "The provider counted the tokens."
    if not found.counted:
        return "The tokens are estimated."
    return f"The provider counted the tokens of {found.counted:,} of them; the others are estimated."


def _show_spend(screen: Screen, found: Usage) -> None:
    screen.table(
        ["purpose", "model", "outcome", "calls", "prompts", "answers", "seconds"],
        [
            (
                line.purpose,
                line.model,
                line.outcome,
                f"{line.calls:,}",
                f"{line.prompt_tokens:,}",
                f"{line.answer_tokens:,}",
                f"{line.seconds:,.1f}",
            )
            for line in found.lines
        ],
    )
