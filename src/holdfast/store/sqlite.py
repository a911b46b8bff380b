"""SQLite: one file, or memory."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path

from holdfast.errors import Closed, Damaged, HoldfastError, Unavailable
from holdfast.store import database
from holdfast.store.database import Connection, Database, Durability, Row, Value


class _Connection(sqlite3.Connection):
    """Say what is wrong in our own errors."""

    key = b""

    def all(self, sql: str, **values: Value) -> list[Row]:
        """See `Connection.all`."""
        try:
            return self.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise _explain(error) from error

    def many(self, sql: str, rows: Iterable[Mapping[str, Value]]) -> None:
        """See `Connection.many`."""
        try:
            self.executemany(sql, rows)
        except sqlite3.Error as error:
            raise _explain(error) from error

    def lock(self, space: str) -> None:
        """See `Connection.lock`; there is only one transaction at a time."""

    def __del__(self) -> None:
        with suppress(sqlite3.ProgrammingError):  # it could not be opened in the first place
            self.close()


class _Reader:
    """Close the connection of a thread when the thread is gone; a connection itself would wait for the collector."""

    def __init__(self, connection: _Connection) -> None:
        self.connection = connection

    def __del__(self) -> None:
        self.connection.close()


class SQLite(Database):
    """One file in WAL mode, or memory: one connection that writes, and one that reads for each thread."""

    def __init__(self, path: str, durability: Durability, key: bytes = b"") -> None:
        super().__init__(key)
        self._path = path
        self._memory = path == ":memory:"
        self._durability = durability
        self._lock = threading.RLock()
        self._local = threading.local()
        self._readers: weakref.WeakSet[_Connection] = weakref.WeakSet()
        if not self._memory:
            with suppress(OSError):  # it is there, or SQLite will say what is wrong
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        self._writer = self._connect()

    def _connect(self) -> _Connection:
        try:
            connection = sqlite3.connect(
                self._path,
                timeout=database.BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                factory=_Connection,
                cached_statements=256,
            )
            connection.key = self.key
            # A hostile file must not run functions of its schema, nor lead the reader outside its pages.
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute(f"PRAGMA synchronous = {self._durability.upper()}")
            self._check_file(connection)
            if _use_wal(connection):
                # Fewer, larger checkpoints: the 99th percentile of an append is five times lower than at 1,000 pages.
                connection.execute("PRAGMA wal_autocheckpoint = 4000")
        except sqlite3.Error as error:
            raise _explain(error, self._path) from error
        return connection

    def _check_file(self, connection: _Connection) -> None:
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
            raise Damaged(
                f"{self._path} is damaged: its last page is not whole.",
                "Restore what `holdfast backup` made, or save what can be read with `holdfast salvage`.",
            )

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """See `Database.reading`."""
        self.check_open()
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
    def one_read(self) -> Iterator[None]:
        """See `Database.one_read`. A transaction that has only read needs no commit."""
        with self.reading() as connection:
            if self._memory or self._local.reader.connection.in_transaction:
                yield  # nobody else writes, as long as the one connection is held
                return
            connection.all("BEGIN")
            try:
                yield
            finally:
                with suppress(sqlite3.ProgrammingError):  # it was closed meanwhile
                    self._local.reader.connection.rollback()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """See `Database.writing`."""
        self.check_open()
        with self._lock:
            self.check_open()  # it may have been closed while this thread stood in line
            try:
                self._writer.all("BEGIN IMMEDIATE")
                yield self._writer
                self._writer.all("COMMIT")
            finally:
                if self._writer.in_transaction:
                    self._writer.all("ROLLBACK")

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

    def copy(self, path: str) -> None:
        """See `Database.copy`. Made anew row by row: it is compact, and damage cannot be copied."""
        self.check_open()
        with closing(self._connect()) if not self._memory else nullcontext(self._writer) as connection:
            connection.all("VACUUM INTO :path", path=path)

    def purge(self) -> None:
        """See `Database.purge`. Takes as long as copying the file, and as much room beside it."""
        self.check_open()
        with self._lock:
            self._writer.all("VACUUM")
            if not self._memory:
                busy = self._writer.all("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]
                if busy:
                    raise Unavailable(
                        "The words are erased, but the write-ahead log still holds them while others read the database.",
                        "Erase again, or open and close the database when nobody else uses it.",
                    )

    def dialect(self, statement: str) -> str:
        """Keep rows in the order of their key: a write then touches one page less, a window reads fewer."""
        if re.search(r"CREATE TABLE (?:messages|calls|records|pads) ", statement):
            return statement.removesuffix(";") + " WITHOUT ROWID"
        return statement

    def lock_schema(self, tx: Connection) -> None:
        """See `Database.lock_schema`; there is one writer at a time."""

    def has_table(self, connection: Connection, table: str) -> bool:
        """See `Database.has_table`."""
        return bool(
            connection.all("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :table", table=table)
        )


def _size(path: str) -> int:
    return Path(path).stat().st_size if Path(path).is_file() else 0


def _use_wal(connection: sqlite3.Connection) -> bool:
    """Switch to WAL mode, which memory does not have. SQLite does not wait when others switch at the same moment."""
    deadline = time.monotonic() + database.BUSY_SECONDS
    while True:
        try:
            return bool(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


_DAMAGE = (
    "not a database",
    "already exists",
    "no such table",
    "no such column",
    "Could not decode",
)


def _explain(error: sqlite3.Error, path: str = "the database") -> HoldfastError | sqlite3.Error:
    text = str(error)
    if "closed database" in text:
        return Closed("The memory is closed.", "Open a new Memory.")
    if "malformed" in text:
        return Damaged(
            f"{path} is damaged ({text}).",
            "Restore what `holdfast backup` made, or save what can be read with `holdfast salvage`.",
        )
    if any(sign in text for sign in _DAMAGE):
        return Damaged(
            f"{path} is not a Holdfast database ({text}), or its beginning is damaged.",
            "Check the path, restore what `holdfast backup` made, or save what can be read with `holdfast salvage`.",
        )
    if "readonly" in text or "unable to open" in text:
        return Unavailable(
            f"{path} cannot be opened for writing ({text}).",
            "Check that the folder exists and that this user may write to it and to the file.",
        )
    if "locked" in text or "busy" in text:
        return Unavailable(
            f"{path} was locked by another process for {database.BUSY_SECONDS} seconds.",
            "Try again when that process is done.",
        )
    if isinstance(error, sqlite3.OperationalError) and ("full" in text or "I/O" in text):
        return Unavailable(f"{path} cannot be written ({text}).", "Free some disk space or repair the disk.")
    return error
