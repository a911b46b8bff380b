"""The command that takes in conversations: import."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from holdfast import Memory
from holdfast.errors import InvalidInput
from holdfast.port.safekeeping import freeze_index
from holdfast_cli.commands.options import Options
from holdfast_cli.commands.parameters import CLAUDE_CODE
from holdfast_cli.commands.render.outcomes import interruptible
from holdfast_cli.commands.render.screen import Screen, count, plain, tally
from holdfast_cli.hooks import location

if TYPE_CHECKING:
    from holdfast_cli.formats.import_report import ImportReport, Skipped

_EDITS = {"add": "to add", "replace": "to replace", "retract": "to retract", "conflict": "in conflict"}
KEPT = "What was imported until now is kept."
_EXAMPLES = 3  # places that are named for one reason


def import_(
    options: Options,
    *,
    paths: list[Path] | None = None,
    no_projects: bool = False,
    dry_run: bool = False,
    format: str = "",
    columns: list[str] | None = None,
    encoding: str = "utf-8",
) -> None:
    """Import conversations from files, folders and zips.

    Reads what Claude Code, Codex, Gemini CLI, GitHub Copilot, Cursor, aider, opencode, Cline, Roo, Kilo,
    Continue, Goose, SpecStory, Claude.ai, ChatGPT, Open WebUI, LibreChat, ADK, SWE-agent, Letta, mem0,
    basic-memory, LangGraph and OpenAI Agents store, and chat-format JSONL and JSON, recognised by content;
    with --map, CSV, JSONL and JSON of any program. A session of Claude Code, Codex or Gemini CLI goes into
    the project of its folder, unless --project names one. Each message and record is stored once. Left out is
    what was marked as private, said while paused, or is covered by .holdfastignore. Edits in what `export
    --records` wrote are taken over as yours; of a record that changed here too, both texts are shown and
    neither is taken. Exits with 1 if something could not be read or stored; the rest is imported.

    For example: holdfast import ~/.claude/projects
    """
    # Only an import needs a progress bar and the importers.
    from holdfast_cli.commands.render.progress import importing
    from holdfast_cli.formats.importing import check_path, import_paths, import_tables
    from holdfast_cli.hooks.privacy import Privacy

    project_of = options.project_of(no_projects=no_projects)
    take = partial(import_paths, dry_run=dry_run, format=format, project_of=project_of)
    if columns:
        if dry_run or format:
            raise InvalidInput("With --map, files are read as it says.", "Leave out --dry-run and --format.")
        take = partial(import_tables, columns=_columns(columns), encoding=encoding)
    paths = paths or _claude_code_projects()
    if not format and not location.is_there(options.location):
        check_path(paths, _columns(columns) if columns else {}, encoding)
    with interruptible(KEPT), options.open(create=True) as memory:
        with importing() as progress:
            # What is private is read when the database is open: its errors come first.
            report = take(memory, paths, progress=progress, rules=Privacy.read())
        index(memory, [report])
    _show_report(report, options, paths)
    if report.problems:
        raise typer.Exit(1)


def index(memory: Memory, reports: Sequence["ImportReport"]) -> None:
    """Make the index of what was imported, so that the first recall does not wait for it."""
    new = [report for report in reports if report.added or report.records or report.rows]
    names = {name for report in new for name in report.projects}
    # An export of everything has projects of its own.
    names.update(memory.grants.projects() if any(report.rows for report in new) else ())
    for handle in (memory, *(memory.scoped(project=name) for name in sorted(names))) if new else ():
        freeze_index(handle)


def _columns(pairs: Sequence[str]) -> dict[str, str]:
    """Return the columns that --map names, by field."""
    columns: dict[str, str] = {}
    for pair in ",".join(pairs).split(","):
        field, equals, column = pair.partition("=")
        if not equals or field in columns:
            todo = "Write each field once, as in content=text,role=speaker."
            raise InvalidInput(f"--map has {pair!r}.", todo)
        columns[field] = column
    return columns


def _claude_code_projects() -> list[Path]:
    folder = Path(CLAUDE_CODE).expanduser()
    if not folder.is_dir():
        what = f"name the files or folders to import: there are no Claude Code sessions in {CLAUDE_CODE}."
        raise typer.BadParameter(what, param_hint="PATH")
    return [folder]


def _show_report(report: "ImportReport", options: Options, paths: Sequence[Path]) -> None:
    screen = options.answer({**plain(report), "database": options.shown_location})
    if report.added or report.present:
        formats = ", ".join(report.formats)
        repeats = f"; {count(report.present, 'message')} had been imported before" if report.present else ""
        screen.say(
            (f"Imported {count(report.added, 'new message')}", "bold"),
            f" of {count(report.sessions, 'chat')} ({formats}) in {report.seconds:.1f} s{repeats}.",
        )
    elif not (report.records or report.records_present or report.edits):
        screen.say("There was nothing to import.")
    if report.records or report.records_present:
        repeats = f"; {report.records_present:,} had been imported before" if report.records_present else ""
        screen.say((f"Imported {count(report.records, 'record')}", "bold"), f"{repeats}.")
    _show_edits(screen, report)
    if others := {table: number for table, number in report.rows.items() if table != "messages"}:
        screen.say(f"Brought back: {tally(others)}.")
    if report.renumbered:
        screen.say(f"Renumbered {count(report.renumbered, 'version')}, because there were some already.")
    screen.say(f"Into {options.shown_location}{options.whose()}.")
    if report.projects:
        shares = ", ".join(f"{name} ({number:,})" for name, number in report.projects.items())
        screen.say(f"Into projects: {shares}.")
    if report.unchanged:
        screen.say(f"Not read again, since nothing changed in them: {count(report.unchanged, 'file')}.")
    if report.ignored:
        endings = ", ".join(f"{n:,} {ending or 'without an ending'}" for ending, n in report.ignored.items())
        passed = count(report.ignored.total(), "file")
        screen.say(f"Passed over, by their endings: {passed} ({endings}).")
    names = list(map(str, paths))
    _show_skipped(screen, "Could not be read", [skip for skip in report.skipped if skip.problem], names)
    _show_skipped(screen, "Left out", [skip for skip in report.skipped if not skip.problem], names)
    if report.added:
        _show_next(screen, report, options)


def _show_next(screen: Screen, report: "ImportReport", options: Options) -> None:
    """Print how to ask for what was imported, in the project with most of it."""
    if report.projects:
        options = replace(options, project=report.projects.most_common(1)[0][0])
    screen.say(f"\nNext: {options.line('recall', 'what did we decide about …')}")
    screen.say(f"Or: {options.line('chats')}")


def _show_edits(screen: Screen, report: "ImportReport") -> None:
    """Print what edits of records change, and the texts of both sides where they cannot."""
    if report.edits:
        counts = Counter(_EDITS[edit.action] for edit in report.edits)
        screen.say(", ".join(f"{number:,} {name}" for name, number in counts.items()) + ":")
    for edit in report.edits:
        screen.say((f"{edit.action} ", "bold"), f"{edit.kind} {edit.id}", indent=2)
        for sign, text in (("-", edit.before), ("+", edit.after)):
            for line in text.splitlines():
                screen.say(f"{sign} {line}", indent=4)


def _show_skipped(screen: Screen, title: str, skipped: Sequence["Skipped"], names: Sequence[str]) -> None:
    """Print skipped places by reason, most frequent first: some of each, and all that were named."""
    by_reason: dict[str, list[Skipped]] = defaultdict(list)
    for skip in skipped:
        by_reason[skip.reason].append(skip)
    if not by_reason:
        return
    screen.say((f"\n{title}: {sum(skip.count for skip in skipped):,}", "bold yellow"))
    for reason, group in sorted(by_reason.items(), key=lambda item: -sum(skip.count for skip in item[1])):
        places = [f"{skip.path}:{line}" if line else skip.path for skip in group for line in skip.lines]
        examples = [place for n, place in enumerate(places) if n < _EXAMPLES or place in names]
        more = ", …" if len(places) > len(examples) else ""
        screen.say(f"{sum(skip.count for skip in group):,} × {reason}", indent=2)
        screen.say((", ".join(examples) + more, "dim"), indent=6)
