"""Opening the database that a path or a URL names."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.errors import InvalidInput, shown

if TYPE_CHECKING:
    from holdfast.store.database import Database, Durability


def open_database(
    location: str | os.PathLike[str],
    durability: Durability = "full",
    key: bytes = b"",
    *,
    read_only: bool = False,
) -> Database:
    """Open or create the database at a path, at ":memory:", or at a postgresql:// URL; `key` seals its rows.

    Raises:
        InvalidInput: the durability or the kind of URL is unknown.
        MissingExtra: PostgreSQL without the extra `postgres`.
        Unavailable: it cannot be reached, opened or written.
        Damaged: the file is not a database.
        NewerSchema: a newer Holdfast wrote it.
        UnreleasedSchema: one from before 0.1 wrote it.

    """
    if durability not in ("full", "normal"):
        raise InvalidInput(f"Unknown durability {durability!r}.", "Use 'full' or 'normal'.")
    database = _open(check_location(location), durability, key, read_only=read_only)
    try:
        database.migrate()
    except BaseException:
        database.close()
        raise
    return database


def _open(location: str, durability: Durability, key: bytes, *, read_only: bool) -> Database:
    if re.match(r"postgres(ql)?://", location):
        # An extra, loaded when it is used.
        from holdfast.store.postgres import PostgreSQL

        return PostgreSQL(location, durability, key, read_only=read_only)
    if other := re.match(r"([A-Za-z][\w+.-]+)://", location):
        raise InvalidInput(f"Unsupported database {other[1]}://.", "Use a path or a postgresql:// URL.")
    if re.match(r"\s*postgres|.*\bpassword\s*=", location, re.IGNORECASE) and re.search(r"[:=]", location):
        # It is no file, and the message about it must not have the password in it.
        raise InvalidInput(
            "This looks like the address of a PostgreSQL server, but is no URL.",
            "Begin it with postgresql://, or with ./ if it is a file.",
        )
    # Not for those who use a server.
    from holdfast.store.sqlite import SQLite

    return SQLite(location, durability, key, read_only=read_only)


def check_location(location: object) -> str:
    """Return a path or a URL as text.

    Raises:
        InvalidInput: it is neither.

    """
    text = os.fspath(location) if isinstance(location, str | os.PathLike) else location
    with suppress(UnicodeEncodeError):
        if isinstance(text, str) and text and b"\x00" not in os.fsencode(text):
            return text
    named = "A URL that has a NUL in it" if isinstance(text, str) and "://" in text else shown(location)
    raise InvalidInput(f"{named} is not a place for a database.", "Give a path or a postgresql:// URL.")
