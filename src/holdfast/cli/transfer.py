"""The command that takes in conversations: import."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from holdfast.cli.options import Options
from holdfast.cli.render.outcomes import interruptible
from holdfast.cli.render.screen import Screen, count, listed, plain
from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from holdfast.io.import_report import ImportReport, Skipped
    from holdfast.io.importing import Progress as ShowProgress
    from holdfast.memory import Memory

_CLAUDE_CODE = Path("~/.claude/projects")
_EDITS = {"add": "to add", "replace": "to replace", "retract": "to retract", "conflict": "in conflict"}
_EXAMPLES = 3  # places that are named for one reason


_Paths = Annotated[
    list[Path] | None,
    Argument(metavar="PATH", exists=True, help=f"Files, folders or zips; {_CLAUDE_CODE} when none is given."),
]
_ByProject = Annotated[
    bool, Option("--by-project", help="Each session log into the project of its folder, as hooks do.")
]
_Format = Annotated[
    str,
    Option(
        "--format", metavar="notes", help="Take all Markdown files, and no others, as notes: into records."
    ),
]
_Map = Annotated[
    list[str] | None,
    Option(
        "--map",
        metavar="FIELD=COLUMN,…",
        help="Take CSV or JSONL: as messages by content, role, at, chat, name, id, title, or as records by "
        "text, kind, category, tags and more; meta=* for all other columns.",
    ),
]
_Encoding = Annotated[str, Option("--encoding", help="That of CSV files, with --map.")]
_DryRun = Annotated[bool, Option("--dry-run", help="Only show what edits of exported records would change.")]


def import_(
    options: Options,
    *,
    paths: _Paths = None,
    by_project: _ByProject = False,
    dry_run: _DryRun = False,
    format: _Format = "",
    columns: _Map = None,
    encoding: _Encoding = "utf-8",
) -> None:
    """Import conversations from files, folders and zips.

    Reads what Claude Code, Codex, Gemini CLI, Cursor, Cline, Goose, SpecStory, ChatGPT, Letta, mem0,
    basic-memory, LangGraph and OpenAI Agents store, and chat-format JSONL and JSON, recognised by content;
    with --map, CSV and JSONL of any program. Each message and record is stored once, however often it is
    imported. Left out is what was marked as private, said while paused, or is covered by .holdfastignore.
    Edits in what `export --records` wrote are taken over as yours; of a record that changed here too, both
    texts are shown and neither is taken. Exits with 1 if something could not be read or stored; the rest is
    imported.

    For example: holdfast import ~/.claude/projects
    """
    # Only an import needs a progress bar and the importers.
    from holdfast.cli.render.progress import Progress
    from holdfast.hooks.session_logs import logs_by_project

    if columns and (by_project or dry_run or format):
        what = "With --map, files are read as it says."
        raise InvalidInput(what, "Leave out --by-project, --dry-run and --format.")
    take = _importer(columns, encoding, dry_run=dry_run, format=format)
    paths = paths or _claude_code_projects()
    groups = logs_by_project(paths) if by_project else {"": paths}
    others = groups.pop("", []) if by_project else []
    kept = "What was imported until now is kept."
    with interruptible(kept), options.open(create=True) as memory, Progress(paths) as progress:
        reports = {
            project: take(memory.scoped(project=project) if project else memory, some, progress)
            for project, some in groups.items()
        }
    _show_reports(options, reports, others, by_project=by_project)


def _importer(
    mapped: Sequence[str] | None, encoding: str, *, dry_run: bool, format: str
) -> "Callable[[Memory, Sequence[Path], ShowProgress], ImportReport]":
    """Return the function that imports files as the options say."""
    # Only an import needs the importers.
    from holdfast.hooks.privacy import Privacy
    from holdfast.io.importing import import_paths, import_tables

    columns: dict[str, str] = {}
    if not mapped:
        # What is private is read when the database is open: its errors come first.
        return lambda memory, paths, progress: import_paths(
            memory, paths, progress, rules=Privacy.read(), dry_run=dry_run, format=format
        )
    for pair in ",".join(mapped).split(","):
        field, given, column = pair.partition("=")
        if not given or field in columns:
            raise InvalidInput(
                f"--map has {pair!r}.", "Write each field once, as in content=text,role=speaker."
            )
        columns[field] = column

    def take(memory: "Memory", paths: Sequence[Path], progress: "ShowProgress") -> "ImportReport":
        return import_tables(memory, paths, columns, progress, encoding=encoding, rules=Privacy.read())

    return take


def _show_reports(
    options: Options, reports: dict[str, "ImportReport"], others: Sequence[Path], *, by_project: bool
) -> None:
    passed = {"passed_over": [str(path) for path in others]}
    told = {"projects": plain(reports), **passed} if by_project else plain(reports[""])
    screen = options.answer({**told, "database": options.shown_location})
    for project, report in reports.items():
        _show_report(screen, report, replace(options, project=project or options.project))
    if others:
        screen.say(f"Passed over, since they name no folder: {count(len(others), 'file')}.")
    if any(report.problems for report in reports.values()):
        raise typer.Exit(1)


def _claude_code_projects() -> list[Path]:
    folder = _CLAUDE_CODE.expanduser()
    if not folder.is_dir():
        raise typer.BadParameter(
            f"name the files or folders to import: there are no Claude Code sessions in {_CLAUDE_CODE}.",
            param_hint="PATH",
        )
    return [folder]


def _show_report(screen: Screen, report: "ImportReport", options: Options) -> None:
    if report.added or report.present:
        formats = ", ".join(report.formats)
        there = f"; {count(report.present, 'message')} had been imported before" if report.present else ""
        screen.say(
            (f"Imported {count(report.added, 'new message')}", "bold"),
            f" of {count(report.sessions, 'chat')} ({formats}) in {report.seconds:.1f} s{there}.",
        )
    elif not (report.records or report.records_present or report.edits):
        screen.say("There was nothing to import.")
    if report.records or report.records_present:
        there = f"; {report.records_present:,} had been imported before" if report.records_present else ""
        screen.say((f"Imported {count(report.records, 'record')}", "bold"), f"{there}.")
    _show_edits(screen, report)
    if others := {table: number for table, number in report.rows.items() if table != "messages"}:
        screen.say(f"Brought back: {listed(others)}.")
    if report.renumbered:
        screen.say(f"Renumbered {count(report.renumbered, 'version')}, because there were some already.")
    screen.say(f"Into {options.shown_location}{options.whose()}.")
    if report.unchanged:
        screen.say(f"Not read again, since nothing changed in them: {count(report.unchanged, 'file')}.")
    if report.ignored:
        endings = ", ".join(
            f"{number:,} {ending or 'without an ending'}" for ending, number in report.ignored.items()
        )
        screen.say(
            f"Passed over, by their endings: {count(sum(report.ignored.values()), 'file')} ({endings})."
        )
    _show_skipped(screen, "Could not be read", [one for one in report.skipped if one.problem])
    _show_skipped(screen, "Left out", [one for one in report.skipped if not one.problem])
    if report.added:
        screen.say("")
        screen.say(f"Next: {options.line('recall', 'what did we decide about …')}")
        screen.say(f"Or: {options.line('chats')}")


def _show_edits(screen: Screen, report: "ImportReport") -> None:
    """Print what edits of records change, and the texts of both sides where they cannot."""
    if report.edits:
        made = Counter(_EDITS[edit.action] for edit in report.edits)
        screen.say(", ".join(f"{number:,} {name}" for name, number in made.items()) + ":")
    for edit in report.edits:
        screen.say((f"{edit.action} ", "bold"), f"{edit.kind} {edit.id}", indent=2)
        for sign, text in (("-", edit.before), ("+", edit.after)):
            for line in text.splitlines():
                screen.say(f"{sign} {line}", indent=4)


def _show_skipped(screen: Screen, title: str, skipped: Sequence["Skipped"]) -> None:
    """Print what is missing by reason, most frequent first, with places to look at."""
    by_reason: dict[str, list[Skipped]] = defaultdict(list)
    for one in skipped:
        by_reason[one.reason].append(one)
    if not by_reason:
        return
    screen.say("")
    screen.say((f"{title}: {sum(one.count for one in skipped):,}", "bold yellow"))
    for reason, group in sorted(by_reason.items(), key=lambda item: -sum(one.count for one in item[1])):
        places = [f"{one.path}:{line}" if line else one.path for one in group for line in one.lines]
        more = ", …" if len(places) > _EXAMPLES else ""
        screen.say(f"{sum(one.count for one in group):,} × {reason}", indent=2)
        screen.say((", ".join(places[:_EXAMPLES]) + more, "dim"), indent=6)
