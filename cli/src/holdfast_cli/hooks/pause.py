"""The pauses of the memory: a file of one line a change, which is only ever added to."""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import Unavailable
from holdfast_cli.hooks import journal

EVERYTHING = ""
"""The name that stands for all projects."""

_NAME = "pauses.jsonl"
_MOST = 4 << 20  # bytes of the file; one as large is not ours
_CHANGES = ("pause", "resume")


class Pause(NamedTuple):
    """A time in which nothing of a project is stored or injected; `until` is None while it lasts.

    `project` is its name, or "" for all, and `root` its folder, by which it is known where it has no name.
    `is_open` is False once the pause was ended by the user; an open one may have a time at which it ends.
    """

    project: str
    root: str
    since: datetime
    until: datetime | None = None
    is_open: bool = True

    def includes(self, at: datetime) -> bool:
        """Return whether something was said in this pause; one that lasts has no beginning after now."""
        return self.since <= at and (self.until is None or at <= self.until)

    def is_of(self, project: str, root: str) -> bool:
        """Return whether it is of a project, or of all."""
        if self.project == EVERYTHING:
            return True
        within = root == self.root or root.startswith(self.root.rstrip("/\\") + os.sep)
        return self.project == project or (self.root != "" and within)


@dataclass(slots=True)
class Pauses:
    """All pauses, and whether the file that lists them is damaged, so that nobody knows."""

    pauses: list[Pause] = field(default_factory=list)
    is_damaged: bool = False

    def now(self, project: str, root: str = "", *, now: datetime | None = None) -> list[Pause]:
        """Return the pauses that last, of a project or of all.

        A clock that was set back ends none: only the user does, or the time at which it was to end.
        """
        now = now or datetime.now(UTC)
        return [
            entry
            for entry in self.pauses
            if entry.is_open and entry.is_of(project, root) and (entry.until is None or now < entry.until)
        ]

    def covers(self, project: str, root: str, at: datetime) -> bool:
        """Return whether something was said in a pause of a project or of all."""
        return any(entry.is_of(project, root) and entry.includes(at) for entry in self.pauses)


def path() -> Path:
    """Return the path of the file, which is there once something was paused."""
    return journal.folder() / _NAME


def read() -> Pauses:
    """Return all pauses; of a damaged file, those that can be read."""
    try:
        with path().open("rb") as stream:
            content = stream.read(_MOST + 1)
    except FileNotFoundError:
        return Pauses()
    except OSError:
        return Pauses(is_damaged=True)
    pauses = Pauses(is_damaged=len(content) > _MOST or (content != b"" and not content.endswith(b"\n")))
    changes = []
    for line in content.splitlines():
        change = _change(line)
        pauses.is_damaged |= change is None
        changes += [change] if change else []
    pauses.pauses = list(_pauses_of(changes))
    return pauses


def pause(project: str, root: str, *, until: datetime | None = None, now: datetime | None = None) -> None:
    """Pause a project, or all with ""; of one that is paused, only the time at which it ends changes.

    Raises:
        Unavailable: the file cannot be written, or is damaged.

    """
    _add("pause", project, root, until, now)


def resume(project: str, root: str, *, now: datetime | None = None) -> bool:
    """End the pause of a project, or with "" that of all, and return whether there was one.

    Raises:
        Unavailable: the file cannot be written, or is damaged.

    """
    current = [entry for entry in _load().now(project, root, now=now) if bool(entry.project) == bool(project)]
    for entry in current:
        # By the name that it had then: that of a project can change.
        _add("resume", entry.project, entry.root, None, now)
    return bool(current)


def _load() -> Pauses:
    pauses = read()
    if pauses.is_damaged:
        what = f"The list of pauses, {path()}, is damaged, so everything is taken as paused."
        todo = "Repair its lines, or delete it: then what was said in earlier pauses can be imported."
        raise Unavailable(what, todo)
    return pauses


class _Change(NamedTuple):
    """A line of the file."""

    do: str
    project: str
    root: str
    at: datetime
    until: datetime | None


def _change(line: bytes) -> _Change | None:
    """Return the change of a line, None if it is none."""
    try:
        values: dict[str, str] = json.loads(line)
        do, project, root = values["do"], values["project"], values["root"]
        at, until = datetime.fromisoformat(values["at"]), values["until"]
        end = datetime.fromisoformat(until) if until else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if (
        do not in _CHANGES
        or {type(project), type(root)} != {str}
        or not all(time.tzinfo for time in (at, end or at))
    ):
        return None
    return _Change(do, project, root, at, end)


def _pauses_of(changes: Iterable[_Change]) -> Iterator[Pause]:
    """Yield the pauses that result from changes: those that ended, then those that last."""
    last: dict[str, Pause] = {}
    for change in changes:
        open_pause = last.pop(change.project, None)
        if open_pause and open_pause.until and open_pause.until <= change.at:
            # It had ended by itself.
            yield open_pause
            open_pause = None
        if change.do == "pause":
            since = min(open_pause.since, change.at) if open_pause else change.at
            last[change.project] = Pause(change.project, change.root, since, change.until)
        elif open_pause:
            # A clock that was set back in between: what it showed is within all the same.
            since, until = sorted((open_pause.since, change.at))
            yield Pause(open_pause.project, open_pause.root, since, until, is_open=False)
    yield from last.values()


def _add(do: str, project: str, root: str, until: datetime | None, now: datetime | None) -> None:
    _load()
    change = {
        "at": (now or datetime.now(UTC)).isoformat(),
        "do": do,
        "project": project,
        "root": root,
        "until": until.isoformat() if until else None,
    }
    file = path()
    try:
        journal.append(file, f"{json.dumps(change)}\n", sync=True)
    except OSError as error:
        what = f"The list of pauses, {file}, cannot be written ({error.strerror or error})."
        todo = "Check that you may write to its folder, and the space on the disk."
        raise Unavailable(what, todo) from error
