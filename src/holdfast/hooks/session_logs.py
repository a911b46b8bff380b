"""Session logs by the projects that they belong to, for an import of what was said before."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from holdfast.hooks.project import project_of
from holdfast.io import gemini
from holdfast.io.files import File
from holdfast.io.import_items import dict_of, text_of

_LINES, _LINE = 50, 1 << 20  # of a log: those that may name its folder, and the bytes of one


def logs_by_project(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """Return the session logs at some paths and in folders, by the names of their projects.

    A log belongs to the project of the first folder that it names, as the hooks name it. Under "" is what
    names none, and so is no session log.
    """
    found: dict[str, list[Path]] = defaultdict(list)
    for path in paths:
        for file in sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]:
            found[project_of_log(file)].append(file)
    return dict(found)


def project_of_log(log: Path) -> str:
    """Return the name of the project of a session log, "" if its first lines name no folder."""
    folder = _folder(log)
    return project_of(folder).name if folder else ""


def _folder(log: Path) -> str:
    """Return the folder that a session was started in, "" if its first lines name none."""
    try:
        with log.open("rb") as file:
            for _ in range(_LINES):
                try:
                    entry = json.loads(file.readline(_LINE))
                except (ValueError, RecursionError):
                    continue
                if folder := _named(log, entry):
                    return folder if os.path.isabs(folder) else ""  # noqa: PTH117 - raises for no path
    except OSError:
        # Whoever reads it reports that.
        return ""
    return ""


def _named(log: Path, entry: object) -> str:
    """Return the folder that a line names, or that stands beside a chat of Gemini CLI."""
    line = dict_of(entry)
    if gemini.is_chat(line):
        return gemini.folder_of(File.at(log), line)
    return text_of(line.get("cwd")) or text_of(dict_of(line.get("payload")).get("cwd"))
