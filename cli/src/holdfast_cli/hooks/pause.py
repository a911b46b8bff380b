"""When the user paused the memory: a file of one line a change, which is only ever added to."""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from holdfast.errors import Unavailable
from holdfast_cli.hooks import journal

EVERYTHING = ""
"""The name that stands for all projects."""

_NAME = "pauses.jsonl"
_MOST = 4 << 20  # bytes of the file; one as large is not ours
_CHANGES = ("pause", "resume")


@dataclass(frozen=True, slots=True)
class Pause:
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
            one
            for one in self.pauses
            if one.is_open and one.is_of(project, root) and (one.until is None or now < one.until)
        ]

    def included(self, project: str, root: str, at: datetime) -> bool:
        """Return whether something was said in a pause of a project or of all."""
        return any(one.is_of(project, root) and one.includes(at) for one in self.pauses)


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
    known = Pauses(is_damaged=len(content) > _MOST or (content != b"" and not content.endswith(b"\n")))
    changes = []
    for line in content.splitlines():
        change = _change(line)
        known.is_damaged |= change is None
        changes += [change] if change else []
    known.pauses = list(_folded(changes))
    return known


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
    known = [one for one in _undamaged().now(project, root, now=now) if bool(one.project) == bool(project)]
    for one in known:
        # By the name that it had then: that of a project can change.
        _add("resume", one.project, one.root, None, now)
    return bool(known)


def _undamaged() -> Pauses:
    known = read()
    if known.is_damaged:
        what = f"The list of pauses, {path()}, is damaged, so everything is taken as paused."
        todo = "Repair its lines, or delete it: then what was said in earlier pauses can be imported."
        raise Unavailable(what, todo)
    return known


@dataclass(frozen=True, slots=True)
class _Change:
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
        or not all(one.tzinfo for one in (at, end or at))
    ):
        return None
    return _Change(do, project, root, at, end)


def _folded(changes: Iterable[_Change]) -> Iterator[Pause]:
    """Yield the pauses that changes amount to: those that ended, then those that last."""
    last: dict[str, Pause] = {}
    for one in changes:
        open_pause = last.pop(one.project, None)
        if open_pause and open_pause.until and open_pause.until <= one.at:
            # It had ended by itself.
            yield open_pause
            open_pause = None
        if one.do == "pause":
            since = min(open_pause.since, one.at) if open_pause else one.at
            last[one.project] = Pause(one.project, one.root, since, one.until)
        elif open_pause:
            # A clock that was set back in between: what it showed is within all the same.
            since, until = sorted((open_pause.since, one.at))
            yield Pause(open_pause.project, open_pause.root, since, until, is_open=False)
    yield from last.values()


def _add(do: str, project: str, root: str, until: datetime | None, now: datetime | None) -> None:
    _undamaged()
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
