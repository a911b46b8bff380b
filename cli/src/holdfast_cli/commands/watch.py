"""The command that imports what clients write as they write it: watch."""

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast_cli.commands.options import Options
from holdfast_cli.commands.render.outcomes import interruptible, repeat, say_line
from holdfast_cli.commands.render.screen import Screen, count, plain
from holdfast_cli.commands.render.wording import in_options
from holdfast_cli.commands.transfer import KEPT, index

if TYPE_CHECKING:
    from holdfast_cli.formats.watching import Seen


def watch(options: Options, *, folders: list[Path], every: int = 5, no_projects: bool = False) -> None:
    """Keep importing what clients write into folders, until interrupted.

    Reads what import reads, each message once, and prints a line for each import. A look at which nothing is
    new reads no file. It may be ended and started again at any time; with --json, prints one document per
    line.

    For example: holdfast watch ~/.claude/projects ~/.codex/sessions
    """
    # Only a watch needs the importers.
    from holdfast_cli.formats.watching import FolderWatch
    from holdfast_cli.hooks.privacy import Privacy

    project_of = options.project_of(no_projects=no_projects)
    with interruptible(KEPT), options.open(create=True) as memory:
        if not options.json:
            Screen().say((f"Looking for what is new every {every:,} s. Ctrl-C ends it.", "dim"))
        roots = [folder.resolve() for folder in folders]
        watcher = FolderWatch(roots, memory, Privacy.read, project_of=project_of)

        def look() -> None:
            reports = []
            for file in watcher.look():
                _show(options, file)
                reports.append(file.report)
            index(memory, reports)

        repeat(look, every, f"Stopped watching. {KEPT}")


def _show(options: Options, file: "Seen") -> None:
    if options.json:
        say_line({"path": str(file.path), "problem": file.problem, **plain(file.report)})
    else:
        Screen().say((f"{datetime.now().astimezone():%H:%M:%S} ", "dim"), _line(file))
    sys.stdout.flush()  # whoever reads it from a pipe is to see it now


def _line(file: "Seen") -> str:
    report, parts = file.report, []
    kinds = {"new message": report.added, "new record": report.records}
    if added := " and ".join(count(number, what) for what, number in kinds.items() if number):
        parts.append(f"{added} ({', '.join(report.formats)})")
    parts += [f"{skip.count:,} × {skip.reason}" for skip in report.skipped if skip.problem or 0 in skip.lines]
    return f"{file.path}: {'; '.join([*parts, *filter(None, [in_options(file.problem)])])}"
