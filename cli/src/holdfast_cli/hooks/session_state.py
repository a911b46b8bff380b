"""The state of a session between its hooks: its project, and the ids that it was shown."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from holdfast_cli.hooks import journal
from holdfast_cli.hooks.git_config import read_regular

_MOST = 4 << 20  # bytes that are read of a session
_KEPT = 60 * 86_400  # seconds after which what is remembered of a session is removed


@dataclass(slots=True)
class SessionState:
    """One session: its project ("" before the first call), and what it was shown, with the times.

    It is a file of JSON lines, so that a call adds to it by one write, without reading or locking it.
    """

    path: Path
    project: str = ""
    root: str = ""
    shown: list[tuple[float, tuple[str, ...]]] = field(default_factory=list)
    ended: bool = False

    @classmethod
    def of(cls, client: str, session: str) -> SessionState:
        """Read the state of a session; invalid lines are left out."""
        return _state(journal.folder() / "sessions" / f"{_hash(client, session)}.jsonl")

    def take(self, values: dict[str, object]) -> None:
        """Take what one line says."""
        match values:
            case {"project": str(project), "root": str(root)}:
                self.project, self.root = self.project or project, self.root or root
            case {"at": int() | float() as at, "shown": list(names)}:
                self.shown.append((at, tuple(name for name in names if isinstance(name, str))))
            case {"ended": bool(ended)}:
                self.ended = ended

    def note(self, **values: object) -> None:
        """Add a line; what cannot be written is not remembered."""
        with suppress(OSError):
            journal.append(self.path, f"{json.dumps(values)}\n")

    def shown_before(self, at: float | None = None) -> tuple[str, ...]:
        """Return the ids that the session was shown up to a time, each once."""
        names = [name for when, shown in self.shown if at is None or when <= at for name in shown]
        return tuple(dict.fromkeys(names))


def roots() -> dict[str, str]:
    """Return the folders of the projects that sessions had lately, the newest of each, by their names."""
    try:
        with os.scandir(journal.folder() / "sessions") as entries:
            files = sorted((entry.stat().st_mtime, entry.path) for entry in entries if entry.is_file())
    except OSError:
        return {}
    states = (_state(Path(path)) for _, path in files)
    return {state.project: state.root for state in states if state.project}


def tail_path(*names: str) -> Path:
    """Return the path of the file that says how far a transcript was imported."""
    return journal.folder() / "tails" / f"{_hash(*names)}.jsonl"


def prune(now: float | None = None) -> None:
    """Remove what is remembered of sessions that nobody has gone on with for two months."""
    oldest = (time.time() if now is None else now) - _KEPT
    for name in ("sessions", "tails"):
        try:
            with os.scandir(journal.folder() / name) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False) and entry.stat().st_mtime < oldest:
                        os.unlink(entry.path)  # noqa: PTH108 - the entry has a path, no Path
        except OSError:
            continue


def _state(path: Path) -> SessionState:
    state = SessionState(path)
    for values in journal.objects(read_regular(path, _MOST)):
        state.take(values)
    return state


def _hash(*names: str) -> str:
    return blake2b(json.dumps(names).encode(), digest_size=12).hexdigest()
