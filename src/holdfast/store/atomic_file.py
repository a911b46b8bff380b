"""A new file that is there whole or not at all, and is only its owner's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import InvalidInput, Unavailable

_BESIDE = ("", "-journal", "-wal", "-shm")  # what SQLite keeps beside a file


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Make a file of what the block writes into the empty one that it is given, which lies beside the new one.

    One that was left by a process that was killed is begun anew.

    Raises:
        InvalidInput: there is something at the path.
        Unavailable: it cannot be written.

    """
    draft = path.with_name(f".{path.name}.draft")
    if os.path.lexists(path):
        raise _taken(path)
    try:
        _remove(draft)
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        try:
            yield draft
            _sync(draft)
            _name(draft, path)
            _sync(path.parent)
        finally:
            _remove(draft)
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be written ({error.strerror or error}).",
            "Check that the folder exists, that you may write to it, and the space on the disk.",
        ) from error


def _taken(path: Path) -> InvalidInput:
    return InvalidInput(f"There is something at {path} already.", "Name another file.")


def _name(draft: Path, path: Path) -> None:
    """Give a file its name; unlike a renaming, a link never takes the place of what came there meanwhile."""
    try:
        path.hardlink_to(draft)
    except FileExistsError as error:
        raise _taken(path) from error
    except OSError:  # the file system has no links
        if os.path.lexists(path):
            raise _taken(path) from None
        draft.rename(path)


def _remove(draft: Path) -> None:
    for ending in _BESIDE:
        draft.with_name(draft.name + ending).unlink(missing_ok=True)


def _sync(path: Path) -> None:
    if path.is_dir() and os.name == "nt":
        return  # Windows opens no folders
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
