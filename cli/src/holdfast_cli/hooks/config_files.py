"""Configuration files of clients: read as they are written, replaced at one stroke, kept as backups."""

import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from holdfast.errors import Conflict


def read_config(path: Path) -> str | None:
    """Return the text of a configuration, None if there is none.

    Raises:
        Conflict: it is no text.

    """
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise Conflict(f"{path} is not text in UTF-8.", "Add the entry by hand; --print shows it.") from error


def write_config(path: Path, before: str | None, after: str | None, *, private: bool = False) -> Path | None:
    """Replace a configuration, or remove it where `after` is None, and return the path of the backup.

    With `private`, nobody but its owner may read what is written.

    Raises:
        Conflict: it was changed since it was read.

    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _lock(path.parent):
        if read_config(path) != before:
            raise Conflict(f"{path} was changed at this moment.", "Close the client, then try again.")
        if before is None:
            _put(path, after or "", mode=0o600)
            return None
        mode = stat.S_IMODE(path.stat().st_mode)
        backup = _backup(path, before, mode)
        if after is None:
            path.unlink()
        else:
            _put(path, after, mode=mode & 0o700 if private else mode)
        return backup


def check_writable(path: Path) -> None:
    """Check that a configuration may be changed, whatever the rights of the user are.

    Raises:
        Conflict: it is read-only.

    """
    if path.exists() and not path.stat().st_mode & stat.S_IWUSR:
        raise Conflict(f"{path} is read-only.", "Make it writable, or add the entries by hand.")


def _put(path: Path, text: str, *, mode: int) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def _backup(path: Path, text: str, mode: int) -> Path:
    """Write the text of a file to a name that nothing has, not even a link to nowhere: earlier ones stay."""
    names = (path.with_name(f"{path.name}.bak{number or ''}") for number in count())
    backup = next(name for name in names if not os.path.lexists(name))
    _put(backup, text, mode=mode)
    return backup


def backups(path: Path) -> list[Path]:
    """Return the backups of a file, the newest first."""
    form = re.compile(rf"{re.escape(path.name)}\.bak([0-9]{{0,6}})")
    numbers = {
        int(match[1] or 0): file
        for file in (path.parent.iterdir() if path.parent.is_dir() else ())
        if (match := form.fullmatch(file.name)) and file.is_file()
    }
    return [numbers[number] for number in sorted(numbers, reverse=True)]


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Let others that write here wait, where the system has locks of this kind."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
