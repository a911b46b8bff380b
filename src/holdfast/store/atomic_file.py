"""A new file that is complete or absent, and readable only by its owner."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import InvalidInput, Unavailable

# The files that SQLite keeps beside a database.
_SUFFIXES = ("", "-journal", "-wal", "-shm")


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield an empty draft beside a path, and move it there when the block has written it.

    A draft that a killed process left behind is overwritten.

    Raises:
        InvalidInput: the path exists.
        Unavailable: it cannot be written.

    """
    draft = path.with_name(f".{path.name}.draft")
    if os.path.lexists(path):
        raise _exists(path)
    try:
        _remove(draft)
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        try:
            yield draft
            _sync(draft)
            _publish(draft, path)
            _sync(path.parent)
        finally:
            _remove(draft)
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be written ({error.strerror or error}).",
            "Check that the folder exists, that you may write to it, and the space on the disk.",
        ) from error


def _exists(path: Path) -> InvalidInput:
    return InvalidInput(f"{path} exists already.", "Name another file.")


def _publish(draft: Path, path: Path) -> None:
    """Link a draft to its path; unlike a renaming, a link never replaces a file created there meanwhile."""
    try:
        path.hardlink_to(draft)
    except FileExistsError as error:
        raise _exists(path) from error
    except OSError:
        # The file system has no links.
        if os.path.lexists(path):
            raise _exists(path) from None
        draft.rename(path)


def _remove(draft: Path) -> None:
    for suffix in _SUFFIXES:
        draft.with_name(draft.name + suffix).unlink(missing_ok=True)


def _sync(path: Path) -> None:
    if path.is_dir() and os.name == "nt":
        # Windows opens no folders.
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
