"""The rules that keep content out of the memory: pauses and ignored paths, by the folder of a session."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

from holdfast.errors import Unavailable
from holdfast_cli.formats.private_tags import private_ranges, without_ranges
from holdfast_cli.hooks import pause
from holdfast_cli.hooks.ignore import IgnoreRules
from holdfast_cli.hooks.location import user_folder
from holdfast_cli.hooks.project import Project, project_of

WHILE_PAUSED = "said while Holdfast was paused"
IGNORED_PROJECT = "its project is covered by .holdfastignore"
_PLACEHOLDER = re.compile(r"\[(?:Image|Pasted text)\b[^\[\]\n]{0,400}\]")
DAMAGED = "the list of pauses is damaged, so everything is taken as paused"


class Privacy:
    """The rules of the user of this machine, as `import_paths` takes them: `rules=Privacy.read()`."""

    def __init__(self, pauses: pause.Pauses, home: Path, own: Path, now: datetime, started_in: str) -> None:
        self._pauses, self._home, self._now = pauses, home, now
        self._started_in = started_in
        self._project_of = cache(project_of)
        self._rules = cache(partial(IgnoreRules, home=home, own=own))
        self._covers_root = cache(lambda root: self._rules(root).covers_root())

    @classmethod
    def read(cls, started_in: str = "") -> Privacy:
        """Return the rules as they are now, for a session that was started in a folder if one is named.

        Raises:
            Unavailable: the list of pauses is damaged, so nobody knows what may be stored.

        """
        pauses = pause.read()
        if pauses.is_damaged:
            what = f"The list of pauses, {pause.path()}, is damaged, so nothing is imported."
            todo = "Repair its lines, or delete it: then what was said in earlier pauses can be imported."
            raise Unavailable(what, todo)
        return cls(pauses, Path.home(), user_folder("config") / "ignore", datetime.now(UTC), started_in)

    def leaves_out(self, cwd: str, at: datetime | None) -> str:
        """Return why nothing that was said in a folder at a time is stored; "" if it is.

        A session belongs to the project that it was started in as well, wherever it goes.
        """
        reasons = (self._reason(folder, at) for folder in dict.fromkeys((cwd, self._started_in or cwd)))
        return next(filter(None, reasons), "")

    def _reason(self, cwd: str, at: datetime | None) -> str:
        project = self._project(cwd)
        name, root = (project.name, str(project.root)) if project else (pause.EVERYTHING, "")
        if self._pauses.covers(name, root, at or self._now):
            return WHILE_PAUSED
        return IGNORED_PROJECT if project and self.is_ignored(project) else ""

    def covers(self, path: str, cwd: str, *, follow: bool) -> bool:
        """Return whether the user ignores a path, as it is written from a folder."""
        project = self._project(cwd)
        return self._rules(project.root if project else self._home).covers(path, cwd, follow=follow)

    def is_ignored(self, project: Project) -> bool:
        """Return whether nothing of a project is to be stored."""
        return self._covers_root(project.root)

    def _project(self, cwd: str) -> Project | None:
        return self._project_of(cwd) if cwd and "\x00" not in cwd else None


def why_withheld(project: Project) -> str:
    """Return why nothing of a project is to be stored or injected now; "" if it is."""
    pauses = pause.read()
    if pauses.is_damaged:
        return DAMAGED
    if pauses.now(project.name, str(project.root)):
        return WHILE_PAUSED
    return IGNORED_PROJECT if Privacy.read().is_ignored(project) else ""


def as_query(prompt: str) -> str:
    """Return the part of a prompt that may be searched for and logged: all that is not marked private.

    What a client writes in place of a picture or a paste is left out as well.
    """
    return _PLACEHOLDER.sub(" ", without_ranges(prompt, private_ranges(prompt, to_end=True), " ")).strip()
