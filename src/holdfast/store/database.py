"""Connections, transactions and migrations: what both databases have in common.

All SQL has `:name` parameters and keeps to the subset that both share; only `sqlite.py` and `postgres.py` know a dialect.
"""

from __future__ import annotations

import os
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import cache, wraps
from typing import Any, Literal, NamedTuple, ParamSpec, Protocol, TypeVar

from holdfast.errors import Closed, InvalidInput, NewerSchema, Unavailable, shown

Durability = Literal["full", "normal"]
Row = tuple[Any, ...]
Value = str | int | float | bytes | None
BUSY_SECONDS = 30  # that one waits for a lock that another process holds
TRIES = 5  # of what clashes with what others do at the same time
VERSIONS = "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL PRIMARY KEY)"
_TAKE_VERSION = """
    INSERT INTO schema_version (version) VALUES (:version) ON CONFLICT (version) DO NOTHING RETURNING version"""

P = ParamSpec("P")
T = TypeVar("T")


class Clash(Unavailable):
    """Others changed the same rows at the same time, and the database let them go first. Try again."""


def repeated(write: Callable[P, T]) -> Callable[P, T]:
    """Run a function again that clashes with others. All it does is one transaction, of which nothing is left then."""

    @wraps(write)
    def again(*args: P.args, **options: P.kwargs) -> T:
        for _ in range(TRIES - 1):
            with suppress(Clash):
                return write(*args, **options)
        return write(*args, **options)

    return again


class Purged(NamedTuple):
    """What was written anew, what was not and why, and whether that is all that was asked for."""

    rewritten: tuple[str, ...]
    remains: Mapping[str, str]
    done: bool


class Connection(Protocol):
    """Run statements; inside `Database.writing` they are one transaction."""

    key: bytes  # that rows are sealed with; empty for none

    def all(self, sql: str, **values: Value) -> list[Row]:
        """Run a statement and return all its rows."""

    def many(self, sql: str, rows: Iterable[Mapping[str, Value]]) -> None:
        """Run a statement once per row of values."""

    def lock(self, space: str) -> None:
        """Let no other transaction that locks this space go on before this one has ended."""


class Database(ABC):
    """Hand out connections: `reading` for queries, `writing` for one transaction, `one_read` for queries that belong together.

    Safe to share between threads.
    """

    def __init__(self, key: bytes = b"") -> None:
        self._closed = False
        self.key = key  # that rows are sealed with; empty for none
        self._process = os.getpid()

    def check_open(self) -> None:
        """Raise Closed if the database was closed, or opened by a process that this one was forked from."""
        if self._closed:
            raise Closed("The memory is closed.", "Open a new Memory.")
        if os.getpid() != self._process:
            raise Closed(
                "The memory was opened before this process was forked, and connections do not survive that.",
                "Open a Memory in each process.",
            )

    @abstractmethod
    def reading(self) -> AbstractContextManager[Connection]:
        """Open a connection for queries, each of which sees everything that was committed before it."""

    @abstractmethod
    def one_read(self) -> AbstractContextManager[None]:
        """Let all that this thread reads in the block see one state of the database, that of its first query.

        It may be opened within another one, and is then a part of that. Keep it short: while it is open SQLite cannot
        shorten its log, and in memory nobody else writes. So nothing that takes long is computed in it.
        """

    @abstractmethod
    def writing(self, *, lasting: bool = True) -> AbstractContextManager[Connection]:
        """Open a transaction that commits at the end of the block and rolls back when the block raises.

        One that is not `lasting` is seen by all at once as well, but does not wait for the disk: a failure of the machine may take it.
        """

    @abstractmethod
    def close(self) -> None:
        """Close all connections. Closing twice is harmless."""

    def check(self) -> list[str]:
        """Name what the database itself finds wrong with its files."""
        return []

    @abstractmethod
    def copy(self, path: str) -> None:
        """Write all that is committed now into an empty file, as a database of its own; others go on meanwhile.

        Raises:
            InvalidInput: this database has a tool of its own for that.
            Damaged: a part of it cannot be read.
            Unavailable: the file cannot be written.

        """

    @abstractmethod
    def purge(self, *, rewrite: bool) -> Purged:
        """Let go of what was deleted; with `rewrite`, write anew what the database keeps on disk, whatever that locks.

        What is in use by others is waited for, up to `BUSY_SECONDS`, and then named among the remains.
        """

    def dialect(self, statement: str) -> str:
        """Give a statement of the schema as this database wants it."""
        return statement

    def migrate(self) -> None:
        """Make the schema of a new database at once; bring an older one up to date, each migration in a transaction of its own.

        Raises:
            NewerSchema: the database was written by a newer Holdfast.

        """
        known = migrations()
        if self._schema_version() == 0:
            self._make(len(known))
        while (version := self._schema_version()) < len(known):
            with self.writing() as tx:
                tx.all(VERSIONS)
                if not tx.all(_TAKE_VERSION, version=version + 1):
                    continue  # another process was faster; this one waited for it here
                for statement in known[version]:
                    tx.all(self.dialect(statement))
        if version > len(known):
            raise NewerSchema(
                f"The database has schema version {version}; this Holdfast knows versions up to {len(known)}.",
                "Upgrade the package: pip install . in a newer checkout.",
            )

    def _make(self, newest: int) -> None:
        with self.writing() as tx:
            tx.all(VERSIONS)
            if tx.all(_TAKE_VERSION, version=1):  # else another process was faster
                for statement in schema():
                    tx.all(self.dialect(statement))
                for version in range(2, newest + 1):
                    tx.all(_TAKE_VERSION, version=version)

    def _schema_version(self) -> int:
        with self.reading() as connection:
            if not self.has_table(connection, "schema_version"):
                return 0
            return int(connection.all("SELECT coalesce(max(version), 0) FROM schema_version")[0][0])

    @abstractmethod
    def has_table(self, connection: Connection, table: str) -> bool:
        """Say whether there is a table of that name."""


@cache
def migrations() -> list[list[str]]:
    """Read the numbered migrations, each as its list of statements."""
    # A fifth of what `import holdfast` would take.
    from importlib import resources

    folder = resources.files("holdfast.store") / "migrations"
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name
    )
    return [split_statements(file.read_text("utf-8")) for file in files]


@cache
def schema() -> list[str]:
    """Read the statements that make what all migrations together make, in a fifth of the time."""
    from importlib import resources

    script = (resources.files("holdfast.store") / "schema.sql").read_text("utf-8")
    return [made for made in split_statements(script) if "CREATE TABLE schema_version" not in made]


def split_statements(script: str) -> list[str]:
    """Split a script into its statements, which must end at the end of a line."""
    statements, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending.strip())
            pending = ""
    return statements


def open_database(
    location: str | os.PathLike[str], durability: Durability = "full", key: bytes = b""
) -> Database:
    """Open or create the database at a path, at ":memory:", or at a postgresql:// URL; seal rows with a key, if any.

    Raises:
        InvalidInput: the durability or the kind of URL is unknown.
        MissingExtra: PostgreSQL without the extra `postgres`.
        Unavailable: it cannot be reached, opened or written.
        Damaged: the file is not a database.
        NewerSchema: a newer Holdfast wrote it.

    """
    if durability not in ("full", "normal"):
        raise InvalidInput(f"{durability!r} is not a durability.", "Use 'full' or 'normal'.")
    text = check_location(location)
    database: Database
    if re.match(r"postgres(ql)?://", text):
        # An extra, loaded when it is used.
        from holdfast.store.postgres import PostgreSQL

        database = PostgreSQL(text, durability, key)
    elif re.match(r"[A-Za-z][\w+.-]+://", text):
        raise InvalidInput(
            f"Holdfast has no store for {text.split('://')[0]}://.", "Use a path or a postgresql:// URL."
        )
    elif re.match(r"\s*postgres|.*\bpassword\s*=", text, re.IGNORECASE) and re.search(r"[:=]", text):
        # It is no file, and what is said of it must not have the password in it.
        raise InvalidInput(
            "This looks like the address of a PostgreSQL server, but is no URL.",
            "Begin it with postgresql://, or with ./ if it is a file.",
        )
    else:
        # A dialect knows this file, not the other way.
        from holdfast.store.sqlite import SQLite

        database = SQLite(text, durability, key)
    try:
        database.migrate()
    except BaseException:
        database.close()
        raise
    return database


def check_location(location: object) -> str:
    """Return a path or a URL as text.

    Raises:
        InvalidInput: it is none.

    """
    text = os.fspath(location) if isinstance(location, str | os.PathLike) else location
    with suppress(UnicodeEncodeError):
        if isinstance(text, str) and text and b"\x00" not in os.fsencode(text):
            return text
    named = "A URL that has a NUL in it" if isinstance(text, str) and "://" in text else shown(location)
    raise InvalidInput(f"{named} is not a place for a database.", "Give a path or a postgresql:// URL.")
