"""Results of learning: jobs, records, what was dropped, and the cost."""

import json
import logging
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import NoReturn

import typer

from holdfast import Extraction, Relearning, WorkResult
from holdfast.types import CompactionResult, Job, Record
from holdfast_cli.commands.options import INTERRUPTED, Options, complain
from holdfast_cli.commands.render.record_lines import kind_name, place, short
from holdfast_cli.commands.render.screen import Part, Screen, count, plain, when
from holdfast_cli.commands.render.wording import in_options

Titles = Mapping[str, str]
Cost = WorkResult | Extraction | Relearning | CompactionResult
EMBED = "embed"
_DATABASE_LOGGERS = ("psycopg", "psycopg.pool")  # they repeat at length what our errors say in two lines


@contextmanager
def quiet() -> Iterator[None]:
    """Keep database drivers from logging between our lines."""
    before = {logger: logger.level for logger in map(logging.getLogger, _DATABASE_LOGGERS)}
    for logger in before:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in before.items():
            logger.setLevel(level)


@contextmanager
def interruptible(
    kept: str = "What was learned until now is kept.", todo: str = "The same command goes on from there."
) -> Iterator[None]:
    """Handle SIGTERM as Ctrl-C: the running job is released, and what was learned is kept."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with quiet():
            yield
    except KeyboardInterrupt as error:
        complain(f"Interrupted. {kept}".rstrip(), todo)
        raise typer.Exit(INTERRUPTED) from error
    finally:
        signal.signal(signal.SIGTERM, before)


def repeat(look: Callable[[], None], every: int, notice: str) -> NoReturn:
    """Call `look` at intervals until an interrupt, and print a notice then."""
    try:
        while True:
            look()
            time.sleep(every)  # an interrupt ends it at once
    except KeyboardInterrupt as error:
        Screen(sys.stderr).say(notice)
        raise typer.Exit(INTERRUPTED) from error


def say_line(document: Mapping[str, object]) -> None:
    """Print a JSON document on a line, all of it ASCII."""
    sys.stdout.write(json.dumps(document, separators=(",", ":")) + "\n")


def thinking(llm: str | None) -> AbstractContextManager[object]:
    """Show a spinner on a terminal while a model works."""
    if llm is None:
        return nullcontext()
    # Loaded only for a spinner.
    from holdfast_cli.commands.render.progress import waiting

    return waiting(llm)


def is_due(job: Job) -> bool:
    """Return whether a worker would take a job now, including one whose lease has expired."""
    return job.status in ("open", "running") and (job.due is None or job.due <= datetime.now(UTC))


def until(at: datetime | None) -> str:
    """Write the end of a period; the time alone if it is today."""
    clock = when(at)
    return clock[11:] if clock[:10] == when(datetime.now(UTC))[:10] else clock


def fail(unfinished: Sized) -> None:
    """Exit with 1 if any work is unfinished."""
    if len(unfinished):
        raise typer.Exit(1)


def work_data(result: WorkResult) -> dict[str, object]:
    """Return the JSON data of a result of work."""
    return {"noop": result.noop, **plain(result)}


def show_work(screen: Screen, options: Options, result: WorkResult, titles: Titles) -> None:
    """Print a result of work: the jobs with their outcomes, the records, and what was left out."""
    show_jobs(screen, options, result, titles)
    show_records(screen, result.records, result.dropped)
    if result.done and not (result.records or result.notes):
        is_embedding = result.done[0].kind == EMBED
        screen.say(("embedded what was new" if is_embedding else "nothing new", "dim"), indent=4)


def show_jobs(screen: Screen, options: Options, result: WorkResult, titles: Titles) -> None:
    """Print a line for each job, or for several of one id, and below it the notes and the error."""
    notes = list(result.notes)
    for group in _group((*result.done, *result.postponed, *result.failed)):
        job = group[0]
        screen.say((job.kind, "bold"), *_about(group, titles), *_ending(job), hang=4)
        for member in group:
            own = [note for note in notes if note.startswith(f"{member.id}: ")]
            for note in own:
                notes.remove(note)
                screen.say(note.removeprefix(f"{member.id}: "), indent=4)
        for error in dict.fromkeys(member.error for member in group if member.error):
            screen.say((in_options(error), "red"), indent=4)
        if job.status == "failed":
            screen.say(f"→ Retry it: {options.line('learn', 'jobs', '--retry', job.id)}", indent=4)
    for note in notes:
        screen.say(note)


def _group(jobs: Sequence[Job]) -> list[list[Job]]:
    """Group the jobs that ran together, and those of several users with one id."""
    groups: defaultdict[tuple[str, str], list[Job]] = defaultdict(list)
    for job in jobs:
        groups[job.kind if job.records else job.id, job.status].append(job)
    return list(groups.values())


def _about(group: Sequence[Job], titles: Titles) -> list[Part]:
    """Return the subject of jobs: a chat, pairs of records, or an agent."""
    job = group[0]
    if job.records:
        return [f"  {count(len(group), 'pair')} of records"]
    several = f"  for {count(len(group), 'user')}" if len(group) > 1 else ""
    if job.chat:
        title = titles.get(job.chat)
        return [f"  {title}" if title else "", (f"  ({job.chat})", "dim"), several]
    return [f"  agent {job.agent}" if job.agent else "", several]


def _ending(job: Job) -> list[Part]:
    """Return how a job ended, unless it is done."""
    if job.status == "failed":
        return [(f"  failed after {count(job.attempts, 'attempt')}", "bold red")]
    is_tried_again = job.status == "open" and job.error
    return [(f"  retried from {when(job.due)} on", "yellow")] if is_tried_again else []


def show_records(screen: Screen, records: Iterable[Record], dropped: Mapping[str, int]) -> None:
    """Print what was learned (+), known already (=) or taken back (−), and what was left out, and why."""
    for record in records:
        screen.say(
            _sign(record),
            (kind_name(record.kind, record.target), "bold"),
            f"  {short(record.text)}  ",
            (f"({', '.join(filter(None, _details(record)))})", "dim"),
            indent=4,
            hang=2,
        )
    if dropped:
        reasons = ", ".join(f"{number:,} {why}" for why, number in dropped.items())
        screen.say((f"left out: {reasons}", "dim"), indent=4)


def _sign(record: Record) -> Part:
    if record.retracted:
        return "− ", "red"
    if record.action == "duplicate":
        return "= ", "dim"
    return ("+ quarantined: ", "yellow") if record.trust == "quarantined" else ("+ ", "green")


def _details(record: Record) -> Iterator[str]:
    """Yield a record's id, messages, evidence, and the reason for a retraction."""
    yield record.id
    yield place(record)
    if record.action == "duplicate":
        yield f"now said {count(record.evidence, 'time')}"
    if record.retracted:
        yield record.why


def count_new(records: Iterable[Record]) -> int:
    """Count the records that say something new."""
    return sum(not record.retracted and record.action != "duplicate" for record in records)


def show_cost(screen: Screen, results: Sequence[WorkResult], llm: str | None, embedding: str = "") -> None:
    """Print the outcome of some work and its cost."""
    jobs = {
        "done": sum(len(result.done) for result in results),
        "to be retried": sum(len(result.postponed) for result in results),
        "failed": sum(len(result.failed) for result in results),
    }
    screen.facts(
        ("jobs", ", ".join(f"{number:,} {how}" for how, number in jobs.items() if number)),
        ("learned", count(sum(count_new(result.records) for result in results), "record")),
        ("embedded", embedding),
        ("model", model_use(results, llm)),
        ("took", f"{sum(result.seconds for result in results):.1f} s"),
    )


def model_use(costs: Sequence[Cost], llm: str | None) -> str:
    """Write the name of the model, its calls and its tokens."""
    if llm is None:
        return "none"
    calls = sum(cost.calls for cost in costs)
    if not calls:
        return f"{llm}, not asked"
    prompts, answers = sum(cost.prompt_tokens for cost in costs), sum(cost.answer_tokens for cost in costs)
    return f"{llm}, {count(calls, 'call')}, {count(prompts, 'token')} of prompts, {answers:,} of answers"


def calls_and_tokens(job: Job) -> str:
    """Write what a job has cost, "" if no model was asked."""
    tokens = job.prompt_tokens + job.answer_tokens
    return f"{count(job.calls, 'call')}, {count(tokens, 'token')}" if job.calls else ""
