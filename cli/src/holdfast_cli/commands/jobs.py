"""The commands for jobs and their costs: learn jobs, learn usage."""

from collections.abc import Sequence
from datetime import datetime

import typer

from holdfast import Usage
from holdfast.port.handles import needs_model
from holdfast.types import Job, JobStatus
from holdfast_cli.commands.lookup import titles_of
from holdfast_cli.commands.options import Options, args
from holdfast_cli.commands.render.outcomes import calls_and_tokens, is_due, quiet, until
from holdfast_cli.commands.render.screen import Part, count, fit, plain, when
from holdfast_cli.commands.render.wording import in_options

_STYLES = {"failed": "bold red", "running": "bold green"}
_TITLE = 40  # columns of a title in a table
_PENDING = "asked"  # the outcome of a call that has none yet


def jobs(
    options: Options, *, status: JobStatus | None = None, retry: str | None = None, limit: int | None = None
) -> None:
    """List unfinished jobs, oldest first: open, running, and failed with the reason; or retry one.

    For example: holdfast learn jobs --status failed, or holdfast learn jobs --retry observe:porto-trip
    """
    if status is not None and retry is not None:
        raise typer.BadParameter("list some or retry one, not both at once.", param_hint="--retry")
    if retry is not None:
        _retry(options, retry)
        return
    with quiet(), options.open() as memory:
        rows, more = options.page(memory.learning.jobs(status=status), limit)
        titles = titles_of(memory, [job.chat for job in rows])
    about = [titles.get(job.chat) or job.chat or ", ".join(job.records) for job in rows]
    columns: dict[str, Sequence[Part]] = {
        "id": [job.id for job in rows],
        "about": [fit(text, _TITLE) for text in about],
        "status": [(job.status, _STYLES.get(job.status, "")) for job in rows],
        "when": [_when(job) for job in rows],
        "failures": [str(job.attempts - (job.status == "running")) for job in rows],
        "cost": [calls_and_tokens(job) for job in rows],
    }
    ends = options.line("chats", "end", "CHAT")
    todo = f"Queue some when a chat has ended: {ends}" if status in (None, "open") else ""
    nothing = f"No {status or 'unfinished'} jobs{options.whose()} here."
    screen = options.show_list({"jobs": plain(rows), "more": more}, columns, nothing, todo, whole="id")
    for job in rows:
        if job.error:
            screen.say((f"{job.id.removesuffix(':')}: ", "bold"), in_options(job.error), hang=4)
    if due := [job for job in rows if is_due(job)]:
        screen.say(f"→ Run what is due: {_work(options, due)}")
    if any(job.status == "failed" for job in rows):
        screen.say(f"→ Retry one: {options.line('learn', 'jobs', '--retry', 'ID')}")


def _retry(options: Options, identity: str) -> None:
    with quiet(), options.open() as memory:
        job = memory.learning.retry_job(identity)
    screen = options.answer({"job": plain(job)})
    if job.status == "running":
        screen.say(f"{job.id} is running: {_when(job)}.")
        screen.say(f"→ Look again: {options.line('learn', 'jobs')}")
    else:
        screen.say(("Reopened: ", "bold"), job.id)
        screen.say(f"→ Run it: {_work(options, [job])}")


def _work(options: Options, due: Sequence[Job]) -> str:
    """Return the command that runs some jobs."""
    return options.line("work", *args(llm="NAME" if any(map(needs_model, due)) else ""))


def _when(job: Job) -> str:
    """Return when the lease of a job expires, when it is due, or when it ended."""
    if job.status == "running" and not is_due(job):
        return f"leased until {until(job.due)}"
    return f"due {when(job.due)}" if job.status in ("open", "running") else when(job.ended or job.at)


def usage(options: Options, *, since: datetime | None = None, limit: int | None = None) -> None:
    """Sum up the calls of models by purpose, model and outcome, with tokens and time.

    For example: holdfast learn usage --since 7d
    """
    with quiet(), options.open() as memory:
        report = memory.learning.usage(since)
    lines, more = options.page(report.lines, limit)
    sums = ("calls", "prompt_tokens", "answer_tokens", "seconds", "counted")
    totals = {name: getattr(report, name) for name in sums}
    begins = f" since {when(report.since)}" if report.since else ""
    columns: dict[str, Sequence[Part]] = {
        "purpose": [line.purpose for line in lines],
        "model": [line.model for line in lines],
        "outcome": [line.outcome for line in lines],
        "calls": [f"{line.calls:,}" for line in lines],
        "prompts": [f"{line.prompt_tokens:,}" for line in lines],
        "answers": [f"{line.answer_tokens:,}" for line in lines],
        "seconds": [f"{line.seconds:,.1f}" for line in lines],
    }
    document = {**plain(report), "lines": plain(lines), **totals, "more": more}
    screen = options.show_list(document, columns, f"No calls of models{options.whose()}{begins}.")
    if not report.calls:
        return
    tokens = f"{count(report.prompt_tokens, 'token')} of prompts, {report.answer_tokens:,} of answers"
    calls = count(report.calls, "call")
    screen.say(("\nTotal: ", "bold"), f"{calls}, {tokens}, {report.seconds:,.1f} s{begins}.")
    screen.say((_token_source(report), "dim"))
    if any(line.outcome == _PENDING for line in report.lines):
        note = f"{_PENDING}: running, or killed; counted with the most that their answers may take."
        screen.say((note, "dim"))


def _token_source(report: Usage) -> str:
    """Return a sentence on how many calls have their tokens counted by the provider."""
    if report.counted == report.calls:
        return "The provider counted the tokens."
    if not report.counted:
        return "The tokens are estimated."
    return f"The provider counted the tokens of {report.counted:,} of them; the others are estimated."
