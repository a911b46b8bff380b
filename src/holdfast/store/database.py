"""Connections and transactions: the only file that knows a dialect.

Everything else writes one SQL with `:name` parameters, in the subset that both databases share.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from holdfast.errors import (
    Closed,
    Damaged,
    HoldfastError,
    InvalidInput,
    MissingExtra,
    NewerSchema,
    Unavailable,
)

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
Durability = Literal["full", "normal"]
Row = tuple[Any, ...]
Value = str | int | float | bytes | None
BUSY_SECONDS = 30
POOL_SIZE = 10


class Connection(Protocol):
    """Run statements; inside `Database.writing` they are one transaction."""

    def all(self, sql: str, **values: Value) -> list[Row]:
        """Run a statement and return all its rows."""

    def many(self, sql: str, rows: Iterable[Mapping[str, Value]]) -> None:
        """Run a statement once per row of values."""

    def lock(self, space: str) -> None:
        """Let no other transaction that locks this space go on before this one has ended."""


class Database(ABC):
    """Hand out connections: `reading` for queries, `writing` for one transaction. Safe to share between threads."""

    def __init__(self) -> None:
        self._closed = False
        self._process = os.getpid()

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("The memory is closed.", "Open a new Memory.")
        if os.getpid() != self._process:
            raise Closed(
                "The memory was opened before this process was forked, and connections do not survive that.",
                "Open a Memory in each process.",
            )

    @abstractmethod
    def reading(self) -> _Context:
        """Open a connection for queries, each of which sees everything that was committed before it."""

    @abstractmethod
    def writing(self) -> _Context:
        """Open a transaction that commits at the end of the block and rolls back when the block raises."""

    def write(self, work: Callable[[Connection], T]) -> T:
        """Do some work in a transaction and return its result: `writing` in the fewest steps."""
        with self.writing() as tx:
            return work(tx)

    @abstractmethod
    def close(self) -> None:
        """Close all connections. Closing twice is harmless."""

    def check(self) -> list[str]:
        """Name what the database itself finds wrong with its files."""
        return []

    def dialect(self, statement: str) -> str:
        """Give a statement of the schema as this database wants it."""
        return statement

    def migrate(self) -> None:
        """Bring the schema up to date, each migration in a transaction of its own.

        Raises:
            NewerSchema: the database was written by a newer Holdfast.

        """
        known = migrations()
        while (version := self._schema_version()) < len(known):
            with self.writing() as tx:
                self._lock_schema(tx)
                if self._version_in(tx) != version:
                    continue  # another process was faster
                for statement in known[version]:
                    tx.all(self.dialect(statement))
                tx.all("INSERT INTO schema_version (version) VALUES (:version)", version=version + 1)
        if version > len(known):
            raise NewerSchema(
                f"The database has schema version {version}; this Holdfast knows versions up to {len(known)}.",
                "Upgrade the package: pip install --upgrade holdfast.",
            )

    def _schema_version(self) -> int:
        with self.reading() as connection:
            return self._version_in(connection)

    def _version_in(self, connection: Connection) -> int:
        if not self._has_table(connection, "schema_version"):
            return 0
        return int(connection.all("SELECT coalesce(max(version), 0) FROM schema_version")[0][0])

    @abstractmethod
    def _has_table(self, connection: Connection, table: str) -> bool: ...

    @abstractmethod
    def _lock_schema(self, tx: Connection) -> None:
        """Keep two processes from migrating at once."""


if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    _Context = AbstractContextManager[Connection]


@cache
def migrations() -> list[list[str]]:
    """Read the numbered migrations, each as its list of statements."""
    from importlib import resources  # noqa: PLC0415 - a fifth of what `import holdfast` would take

    folder = resources.files("holdfast.store") / "migrations"
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name
    )
    return [split_statements(file.read_text("utf-8")) for file in files]


def split_statements(script: str) -> list[str]:
    """Split a script into its statements, which must end at the end of a line."""
    statements, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending.strip())
            pending = ""
    return statements


def open_database(location: str | os.PathLike[str], durability: Durability = "full") -> Database:
    """Open or create the database at a path, at ":memory:", or at a postgresql:// URL.

    Raises:
        InvalidInput: the durability or the kind of URL is unknown.
        MissingExtra: PostgreSQL without the extra `postgres`.
        Unavailable: it cannot be reached, opened or written.
        Damaged: the file is not a database.
        NewerSchema: a newer Holdfast wrote it.

    """
    if durability not in ("full", "normal"):
        raise InvalidInput(f"{durability!r} is not a durability.", "Use 'full' or 'normal'.")
    text = _location_text(location)
    if re.match(r"postgres(ql)?://", text):
        database: Database = PostgreSQL(text, durability)
    elif re.match(r"[A-Za-z][\w+.-]+://", text):
        raise InvalidInput(
            f"Holdfast has no store for {text.split('://')[0]}://.", "Use a path or a postgresql:// URL."
        )
    else:
        database = SQLite(text, durability)
    try:
        database.migrate()
    except BaseException:
        database.close()
        raise
    return database


def _location_text(location: object) -> str:
    text = os.fspath(location) if isinstance(location, str | os.PathLike) else location
    with suppress(UnicodeEncodeError):
        if isinstance(text, str) and text and b"\x00" not in os.fsencode(text):
            return text
    raise InvalidInput(f"{location!r} is not a place for a database.", "Give a path or a postgresql:// URL.")


class _SQLiteConnection(sqlite3.Connection):
    """Say what is wrong in our own errors."""

    def all(self, sql: str, **values: Value) -> list[Row]:
        """See `Connection.all`."""
        try:
            return self.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise _explain_sqlite(error) from error

    def many(self, sql: str, rows: Iterable[Mapping[str, Value]]) -> None:
        """See `Connection.many`."""
        try:
            self.executemany(sql, rows)
        except sqlite3.Error as error:
            raise _explain_sqlite(error) from error

    def lock(self, space: str) -> None:
        """See `Connection.lock`; there is only one transaction at a time."""

    def __del__(self) -> None:
        with suppress(sqlite3.ProgrammingError):  # it could not be opened in the first place
            self.close()


class _Reader:
    """Close the connection of a thread when the thread is gone; a connection itself would wait for the collector."""

    def __init__(self, connection: _SQLiteConnection) -> None:
        self.connection = connection

    def __del__(self) -> None:
        self.connection.close()


class SQLite(Database):
    """One file in WAL mode, or memory: one connection that writes, and one that reads for each thread."""

    def __init__(self, path: str, durability: Durability) -> None:
        super().__init__()
        self._path = path
        self._memory = path == ":memory:"
        self._durability = durability
        self._lock = threading.RLock()
        self._local = threading.local()
        self._readers: weakref.WeakSet[_SQLiteConnection] = weakref.WeakSet()
        self._writer = self._connect()

    def _connect(self) -> _SQLiteConnection:
        try:
            connection = sqlite3.connect(
                self._path,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                factory=_SQLiteConnection,
                cached_statements=256,
            )
            # A hostile file must not run functions of its schema, nor lead the reader outside its pages.
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute(f"PRAGMA synchronous = {self._durability.upper()}")
            self._check_file(connection)
            if _use_wal(connection):
                # Fewer, larger checkpoints: the 99th percentile of an append is five times lower than at 1,000 pages.
                connection.execute("PRAGMA wal_autocheckpoint = 4000")
        except sqlite3.Error as error:
            raise _explain_sqlite(error, self._path) from error
        return connection

    def _check_file(self, connection: _SQLiteConnection) -> None:
        """Leave a database of another program, and one without its end, as it is.

        Even the change to WAL mode would stay in the file of the one; SQLite reads the missing end of the other as zeros.
        """
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        if tables and ("schema_version",) not in tables:
            raise Damaged(
                f"{self._path} is a database of another program.", "Give Holdfast a file of its own."
            )
        size, log = (_size(self._path + suffix) for suffix in ("", "-wal"))
        if size % connection.execute("PRAGMA page_size").fetchone()[0] and not log:
            raise Damaged(f"{self._path} is truncated: its last page is not whole.", "Restore a backup.")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """See `Database.reading`."""
        self._check_open()
        if self._memory:
            with self._lock:
                yield self._writer
            return
        reader: _Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = self._local.reader = _Reader(self._connect())
            reader.connection.execute("PRAGMA query_only = ON")
            self._readers.add(reader.connection)
        yield reader.connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """See `Database.writing`."""
        self._check_open()
        with self._lock:
            self._check_open()  # it may have been closed while this thread stood in line
            try:
                self._writer.all("BEGIN IMMEDIATE")
                yield self._writer
                self._writer.all("COMMIT")
            finally:
                if self._writer.in_transaction:
                    self._writer.all("ROLLBACK")

    def write(self, work: Callable[[Connection], T]) -> T:
        """See `Database.write`."""
        self._check_open()
        with self._lock:
            self._check_open()  # it may have been closed while this thread stood in line
            try:
                self._writer.all("BEGIN IMMEDIATE")
                result = work(self._writer)
                self._writer.all("COMMIT")
            finally:
                if self._writer.in_transaction:
                    self._writer.all("ROLLBACK")
        return result

    def close(self) -> None:
        """See `Database.close`."""
        with self._lock:
            self._closed = True
            if os.getpid() == self._process:  # closing a parent's connections would drop the parent's locks
                for reader in list(self._readers):
                    reader.close()
                self._writer.close()

    def check(self) -> list[str]:
        """See `Database.check`."""
        with self.reading() as connection:
            rows = connection.all("PRAGMA integrity_check")
        return [f"the file: {row[0]}" for row in rows if row[0] != "ok"]

    def dialect(self, statement: str) -> str:
        """Keep messages in the order of their key: an append then writes one page less, a window reads fewer."""
        if re.search(r"CREATE TABLE (?:messages|calls) ", statement):
            return statement.removesuffix(";") + " WITHOUT ROWID"
        return statement

    def _lock_schema(self, tx: Connection) -> None:
        pass  # there is one writer at a time

    def _has_table(self, connection: Connection, table: str) -> bool:
        return bool(
            connection.all("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :table", table=table)
        )


def _size(path: str) -> int:
    return Path(path).stat().st_size if Path(path).is_file() else 0


def _use_wal(connection: sqlite3.Connection) -> bool:
    """Switch to WAL mode, which memory does not have. SQLite does not wait when others switch at the same moment."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return bool(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


_DAMAGE = (
    "not a database",
    "malformed",
    "already exists",
    "no such table",
    "no such column",
    "Could not decode",
)


def _explain_sqlite(error: sqlite3.Error, path: str = "the database") -> HoldfastError | sqlite3.Error:
    text = str(error)
    if "closed database" in text:
        return Closed("The memory is closed.", "Open a new Memory.")
    if any(sign in text for sign in _DAMAGE):
        return Damaged(f"{path} is not a Holdfast database ({text}).", "Check the path, or restore a backup.")
    if "readonly" in text or "unable to open" in text:
        return Unavailable(
            f"{path} cannot be opened for writing ({text}).",
            "Check that the folder exists and that this user may write to it and to the file.",
        )
    if "locked" in text or "busy" in text:
        return Unavailable(
            f"{path} was locked by another process for {BUSY_SECONDS} seconds.",
            "Try again when that process is done.",
        )
    if isinstance(error, sqlite3.OperationalError) and ("full" in text or "I/O" in text):
        return Unavailable(f"{path} cannot be written ({text}).", "Free some disk space or repair the disk.")
    return error


class PostgreSQL(Database):
    """A PostgreSQL server through a pool; the tables live in the schema `holdfast`."""

    def __init__(self, url: str, durability: Durability) -> None:
        try:
            import psycopg  # noqa: PLC0415 - an optional dependency, loaded when it is used
            from psycopg_pool import ConnectionPool, PoolTimeout  # noqa: PLC0415 - as above
        except ImportError as error:
            raise MissingExtra(
                "PostgreSQL needs psycopg.", "Run: pip install 'holdfast[postgres]'."
            ) from error
        super().__init__()
        self._errors: tuple[type[Exception], ...] = (psycopg.Error, PoolTimeout)
        commit = "on" if durability == "full" else "off"
        settings: dict[str, Any] = {
            "autocommit": True,
            "client_encoding": "utf8",
            "options": f"-c search_path=holdfast -c synchronous_commit={commit} -c client_min_messages=warning "
            f"-c lock_timeout={BUSY_SECONDS}s "
            # Who was let through a lock must see what the one before has committed, whatever the server's default.
            r"-c default_transaction_isolation=read\ committed -c default_transaction_read_only=off",
        }
        try:
            with psycopg.connect(url, connect_timeout=10, **settings) as connection:
                encoding = connection.info.parameter_status("server_encoding")
                if encoding != "UTF8":
                    raise Unavailable(
                        f"The database has the encoding {encoding}, which cannot hold every text.",
                        "Create one with ENCODING 'UTF8'.",
                    )
                # Who may not create schemas can use one that is there.
                if connection.execute("SELECT to_regnamespace('holdfast')").fetchone() == (None,):
                    connection.execute("CREATE SCHEMA IF NOT EXISTS holdfast")
        except psycopg.errors.UniqueViolation:
            pass  # another process created the schema at this very moment
        except psycopg.Error as error:
            raise _explain_postgres(error) from error
        self._pool = ConnectionPool(
            url,
            kwargs=settings,
            min_size=1,
            max_size=POOL_SIZE,
            timeout=BUSY_SECONDS,
            open=True,
            name="holdfast",
        )

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """See `Database.reading`."""
        with self._connection() as connection:
            yield _PostgreSQLConnection(connection)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """See `Database.writing`."""
        with self._connection() as connection, connection.transaction():
            yield _PostgreSQLConnection(connection)

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection]:
        self._check_open()
        connection = None
        try:
            with self._pool.connection() as connection:
                yield connection
        except self._errors as error:
            self._check_open()  # it may have been closed in the meantime
            if connection is not None and connection.broken:
                self._pool.check()  # the others may have been lost as well
            raise _explain_postgres(error) from error

    def close(self) -> None:
        """See `Database.close`."""
        if not self._closed:
            self._closed = True
            if os.getpid() == self._process:  # the connections of a parent are the parent's
                self._pool.close()

    def _has_table(self, connection: Connection, table: str) -> bool:
        return connection.all("SELECT to_regclass(:table)::text", table=f"holdfast.{table}")[0][0] is not None

    def _lock_schema(self, tx: Connection) -> None:
        tx.all("SELECT pg_advisory_xact_lock(hashtext('holdfast migrations'))")


class _PostgreSQLConnection:
    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def all(self, sql: str, **values: Value) -> list[Row]:
        """See `Connection.all`."""
        cursor = self._connection.execute(_pyformat(sql), values, binary=True)
        return cursor.fetchall() if cursor.description else []

    def many(self, sql: str, rows: Iterable[Mapping[str, Value]]) -> None:
        """See `Connection.many`."""
        with self._connection.cursor() as cursor:
            cursor.executemany(_pyformat(sql), rows)

    def lock(self, space: str) -> None:
        """See `Connection.lock`. The lock ends after the commit is visible; two spaces may share one, and then wait."""
        self.all("SELECT pg_advisory_xact_lock(hashtextextended(:space, 0))", space=space)


@cache
def _pyformat(sql: str) -> Any:
    return re.sub(r"(?<![:\w]):([a-z]\w*)", r"%(\1)s", sql.replace("%", "%%"))


def _explain_postgres(error: Exception) -> HoldfastError:
    text = " ".join(str(error).split())
    if getattr(error, "sqlstate", None) in {"42P01", "42703"}:  # there is no such table, or no such column
        return Damaged(f"The schema is not that of a Holdfast database ({text}).", "Restore a backup.")
    return Unavailable(
        f"PostgreSQL did not do what was asked ({text}).",
        "Check the URL, that the server runs and accepts connections, and that this user may create and write tables.",
    )
