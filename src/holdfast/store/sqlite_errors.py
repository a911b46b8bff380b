"""The errors of SQLite as those of Holdfast: what happened, and what to do about it."""

from __future__ import annotations

import sqlite3

from holdfast.errors import Closed, Damaged, HoldfastError, InvalidInput, Unavailable
from holdfast.store import database

SAVE = "Restore what `holdfast backup` made, or save what can be read with `holdfast salvage`."
LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_ACCESS = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
_ACCESS |= {sqlite3.SQLITE_NOLFS}
_NO_SPACE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM}
# Our statements are right: after SQLITE_ERROR a table or a column is missing.
_FOREIGN = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR}
_NO_DATABASE = "is not a Holdfast database ({text}), or its beginning is damaged"
_CHECK_ACCESS = (
    "Check that the folder exists and this user may write to it and to the file, or pass read_only=True."
)
_CONTRADICTORY = "is damaged: stored values contradict each other ({text})"
_LOCKED = "was locked by another process for {seconds} seconds"
_ERRORS: tuple[tuple[set[int], type[HoldfastError], str, str], ...] = (
    ({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_MISMATCH}, Damaged, "is damaged ({text})", SAVE),
    (_FOREIGN, Damaged, _NO_DATABASE, f"Check the path. {SAVE}"),
    ({sqlite3.SQLITE_CONSTRAINT}, Damaged, _CONTRADICTORY, f"Run `verify`. {SAVE}"),
    (_ACCESS, Unavailable, "cannot be opened for writing ({text})", _CHECK_ACCESS),
    (LOCKED, Unavailable, _LOCKED, "Try again when that process is done."),
    (_NO_SPACE, Unavailable, "cannot be written ({text})", "Free some disk space or repair the disk."),
    ({sqlite3.SQLITE_TOOBIG}, InvalidInput, "cannot hold a text of this length ({text})", "Split the text."),
)


def result_code(error: sqlite3.Error) -> int | None:
    """Return the primary result code; None for what the driver itself found wrong."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def explain(error: sqlite3.Error, path: str = "the database") -> HoldfastError:
    """Return the error of Holdfast for one of the driver, which names the database."""
    code = result_code(error)
    if code is None and isinstance(error, sqlite3.ProgrammingError):
        # The connection is not open any more.
        return Closed("The memory is closed.", "Open a new Memory.")
    if code is None:
        return Damaged(f"{path} is damaged: it holds text that cannot be decoded ({error}).", SAVE)
    text = f"{error}, {getattr(error, 'sqlite_errorname', code)}"
    for codes, kind, what, todo in _ERRORS:
        if code in codes:
            return kind(f"{path} {what.format(text=text, seconds=database.BUSY_SECONDS)}.", todo)
    return Unavailable(f"{path} reported an error ({text}).", "Try again, and report it if it stays.")
