"""The journal of hook calls: one JSON line a call, with its time and what went wrong, of bounded size."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from holdfast_cli.hooks.location import user_folder

STATE = "HOLDFAST_STATE"
"""The environment variable that names another folder for the journal and the state of sessions."""

_NAME = "hooks.jsonl"
_MOST = 4 << 20  # bytes of the journal; what is older is in one earlier file of that size
_TAIL = 16 << 10  # bytes that a hook reads of its end
_LONGEST = 300  # characters of an error
_ALWAYS = {"at", "client", "event"}
_START = "session-start"


class HookRun(NamedTuple):
    """One call of a hook.

    `at` is in seconds since the epoch, `ms` the time to the answer; `tokens` is the estimated size of the
    answer, `shown` holds the ids of what it showed, `error` says what went wrong, `note` why there was no
    answer, and `told` the error of an earlier call that this one reported.
    """

    at: float
    client: str
    event: str
    session: str = ""
    project: str = ""
    ms: float = 0.0
    tokens: int = 0
    shown: tuple[str, ...] = ()
    error: str = ""
    note: str = ""
    told: str = ""


def folder() -> Path:
    """Return the folder of the journal and of what is remembered of sessions; it may not exist."""
    setting = os.environ.get(STATE)
    return Path(setting) if setting else user_folder("state")


def is_writable() -> bool:
    """Return whether the folder of the journal can be written, or be made."""
    place = folder()
    while not place.exists() and place != place.parent:
        place = place.parent
    return place.is_dir() and os.access(place, os.W_OK)


def path() -> Path:
    """Return the path of the journal."""
    return folder() / _NAME


def append(file: Path, text: str, *, sync: bool = False) -> int:
    """Add text to a private file, which is made if it is not there, and return the bytes that it has then.

    It is one write in append mode, so that processes at the same time do not mix or replace their lines.

    Raises:
        OSError: it cannot be written.

    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, text.encode())
        if sync:
            os.fsync(handle)
        return os.fstat(handle).st_size
    finally:
        os.close(handle)


def write(run: HookRun) -> bool:
    """Add a call to the journal, and return whether that was possible; it raises no OSError."""
    values = run._asdict()
    values["error"] = run.error[:_LONGEST]
    # What is empty is left out: the journal is read back by names.
    row = {name: value for name, value in values.items() if name in _ALWAYS or value not in ("", (), 0)}
    line = json.dumps(row)
    file = path()
    try:
        if append(file, f"{line}\n") > _MOST:
            file.replace(file.with_suffix(".1.jsonl"))
    except OSError:
        return False
    return True


def read() -> list[HookRun]:
    """Return the calls of the journal, oldest first; lines that are none are left out."""
    current = path()
    data = b"\n".join(_bytes(file, _MOST * 2) for file in (current.with_suffix(".1.jsonl"), current))
    return list(filter(None, map(_run, objects(data))))


def tail() -> list[HookRun]:
    """Return the newest calls of the journal, oldest first."""
    return list(filter(None, map(_run, objects(_bytes(path(), _TAIL)))))


def untold_error(runs: Sequence[HookRun], client: str, session: str) -> str:
    """Return the newest error of a client that was not reported to the person; "" if there is none.

    One that goes on is told once a session.
    """
    own = [run for run in runs if run.client == client]
    last = max((place for place, run in enumerate(own) if run.told), default=0)
    error = next((run.error for run in reversed(own[last:]) if run.error), "")
    earlier = {run.told for run in own if run.session == session}
    return "" if error in earlier else error


def last_start(runs: Sequence[HookRun], client: str, project: str) -> float:
    """Return when a session of a client last began in a project and was answered; 0 if none is known."""
    times = (run.at for run in runs if (run.event, run.client, run.project) == (_START, client, project))
    return max(times, default=0.0)


def _bytes(file: Path, most: int) -> bytes:
    """Return the last bytes of a file; nothing if it is not there or cannot be read."""
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - most))
            return stream.read(most)
    except OSError:
        return b""


def objects(data: bytes) -> Iterator[dict[str, object]]:
    """Yield the JSON objects of lines; lines that are none are left out."""
    for line in data.splitlines():
        with suppress(ValueError, RecursionError):
            value = json.loads(line)
            if isinstance(value, dict):
                yield value


def _run(values: dict[str, object]) -> HookRun | None:
    """Return a call from a line, None if it is none: the file may be from a later version or be damaged."""
    types = {"at": (int, float), "ms": (int, float), "tokens": (int,), "shown": (list,)}
    row = {
        name: value
        for name, value in values.items()
        if name in HookRun._fields and isinstance(value, types.get(name, (str,)))
    }
    if not row.keys() >= _ALWAYS:
        return None
    shown = values.get("shown")
    row["shown"] = tuple(name for name in shown if isinstance(name, str)) if isinstance(shown, list) else ()
    return HookRun(**row)  # type: ignore[arg-type]  # each was checked by its name
