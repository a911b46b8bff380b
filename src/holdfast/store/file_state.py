"""The state of a database file, read without changing or migrating it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from holdfast.store.sqlite_errors import LOCKED, SAVE, result_code


class FileState(NamedTuple):
    """The state of a database file.

    `schema` is its version; 0 stands for a file without one. `problem` is the error of SQLite, "" if it
    can be read; `todo` says what to do then.
    """

    exists: bool
    writable: bool = False
    locked: bool = False
    schema: int = 0
    problem: str = ""
    todo: str = SAVE


def file_state(path: str) -> FileState:
    """Return the state of a database file: whether it is there, can be written, and is locked now."""
    if not Path(path).is_file():
        is_there = os.path.lexists(path)
        return FileState(exists=is_there, problem="it is no file" if is_there else "")
    writable = os.access(path, os.W_OK) and os.access(Path(path).absolute().parent, os.W_OK)
    try:
        # Nothing waits: a lock is what is asked for.
        uri = f"{Path(path).absolute().as_uri()}?mode={'rw' if writable else 'ro'}"
        with closing(sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            schema, locked = _schema(connection), writable and _is_locked(connection)
            return FileState(exists=True, writable=writable, locked=locked, schema=schema)
    except sqlite3.Error as error:
        locked = result_code(error) in LOCKED
        return FileState(exists=True, writable=writable, locked=locked, problem="" if locked else str(error))


def _schema(connection: sqlite3.Connection) -> int:
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    if ("schema_version",) not in tables:
        return 0
    (version,) = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()
    return version if isinstance(version, int) else 0


def _is_locked(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        if result_code(error) in LOCKED:
            return True
        raise
    return False
