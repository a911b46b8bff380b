"""The command that checks the hooks of coding agents: doctor."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from holdfast import __version__
from holdfast.errors import HoldfastError
from holdfast.port import safekeeping
from holdfast_cli.commands.options import Options
from holdfast_cli.commands.render.screen import Screen, count, plain
from holdfast_cli.commands.render.wording import in_options
from holdfast_cli.hooks import journal, pause
from holdfast_cli.hooks.clients import NAMES
from holdfast_cli.hooks.doctor import Evidences, HealthReport, examine
from holdfast_cli.hooks.install import home_folder
from holdfast_cli.hooks.installations import client_version, hooks_switch, installations
from holdfast_cli.hooks.project import project_of
from holdfast_cli.hooks.transcript_proof import deliveries

_SIGNS = {"ok": ("ok", "green"), "note": ("note", "cyan"), "action": ("action", "bold red")}


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorOptions(Options):
    """The memory to examine; it is not opened to guess the user."""

    guesses = False


def doctor(options: DoctorOptions) -> None:
    """Check that the hooks of coding agents run, answer in time, and reach the model.

    Reads the configurations and transcripts of the clients, and the journal of the hooks; prints no word of a
    conversation. Exits with 1 if something needs to be done.

    For example: holdfast doctor
    """
    home = home_folder()
    runs = journal.read()
    root = project_of(Path.cwd()).root
    installed = installations(home, root)
    if not options.database and (db := next((entry.database for entry in installed if entry.database), "")):
        # The database of the hooks, not that of this shell.
        options = replace(options, db=db)
    clients = {entry.client for entry in installed} | {run.client for run in runs if run.client in NAMES}
    versions = {name: version for name in sorted(clients) if (version := client_version(name))}
    evidence = Evidences(
        runs=runs,
        installed=installed,
        deliveries=deliveries(runs, home),
        database=_database(options),
        versions={"holdfast": __version__, "kernel": safekeeping.kernel_in_use(), **versions},
        pauses=pause.read(),
        unwritable="" if journal.is_writable() else str(journal.folder()),
        switched_off=hooks_switch(home, root),
    )
    report = examine(evidence, time.time())
    places = {"database": options.shown_location, "journal": str(journal.path())}
    screen = options.answer({"healthy": not report.needs_action, **places, **plain(report)})
    _render(screen, report, places)
    if report.needs_action:
        raise typer.Exit(1)


def _database(options: Options) -> safekeeping.FileState | str:
    """Return the state of the database, or an error; a file is neither made nor migrated."""
    if "://" not in options.location:
        return safekeeping.file_state(options.location)
    try:
        with options.open() as memory:
            memory.grants.users()
    except HoldfastError as error:
        return in_options(error.what)
    return ""


def _render(screen: Screen, report: HealthReport, places: Mapping[str, str]) -> None:
    screen.facts(
        ("versions", ", ".join(f"{name} {version}" for name, version in report.versions.items())),
        *places.items(),
        ("projects", _list_numbers(report.projects, "call")),
        ("injected", _list_numbers(report.tokens, "token")),
    )
    if timings := report.timings:
        screen.say()
        columns = {
            "client": [timing.client for timing in timings],
            "event": [timing.event for timing in timings],
            "calls": [f"{timing.runs:,}" for timing in timings],
            "failed": [f"{timing.failures:,}" for timing in timings],
            "p50 ms": [f"{timing.p50:,.0f}" for timing in timings],
            "p95 ms": [f"{timing.p95:,.0f}" for timing in timings],
            "limit ms": [f"{timing.limit:,.0f}" for timing in timings],
        }
        screen.table(columns)
    screen.say()
    for check in report.checks:
        sign, style = _SIGNS[check.state]
        screen.say((f"{sign:<8}", style), (f"{check.subject:<10}", "bold"), check.what, hang=18)
        if check.todo:
            screen.say("→ ", check.todo, indent=18, hang=2)


def _list_numbers(numbers: Mapping[str, int], noun: str) -> str:
    return ", ".join(f"{name}: {count(number, noun)}" for name, number in list(numbers.items())[:10])
