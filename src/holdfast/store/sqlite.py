"""SQLite: one file, or memory."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

from holdfast.errors import Damaged, Unavailable
from holdfast.store import database
from holdfast.store.database import Connection, Database, Durability, PurgeResult, Row, Value
from holdfast.store.group_commit import Caller, GroupCommit, join
from holdfast.store.schema import tables
from holdfast.store.sqlite_errors import LOCKED, SAVE, explain, result_code

T = TypeVar("T")

# The tables without row numbers.
WITHOUT_ROWID = ("messages", "calls", "records", "pads", "receipts", "agenda")


class _Connection(sqlite3.Connection):
    """A connection that raises the errors of Holdfast, and checks the types of results."""

    key = b""
    # Held by a statement that reads and by who closes: closing under a statement crashes the interpreter.
    # It can be held twice: a signal may close in the thread that reads.
    busy: AbstractContextManager[object]
    in_one_read = False

    def all(self, sql: str, **values: Value) -> list[Row]:
        """See `Connection.all`."""
        try:
            with self.busy:
                cursor = self.execute(sql, values)
                rows: list[Row] = cursor.fetchall()
        except sqlite3.Error as error:
            raise explain(error) from error
        if rows:
            if (types := _TYPES.get(sql)) is None:
                if len(_TYPES) == _MAX_STATEMENTS:
                    _TYPES.clear()
                types = _TYPES[sql] = _result_types([column[0] for column in cursor.description])
            _check_types(rows, types)
        return rows

    def all_large(self, columns: str, large: str, source: str, /, **values: Value) -> list[Row]:
        """See `Reader.all_large`; the table has row numbers. Large results would take thrice as long."""
        # A value that is not a blob is a result, so that its type is checked.
        none = f"iif(typeof({large}) = 'blob', x'', {large}) AS {large}"
        rows = self.all(f"SELECT {columns}, {none}, rowid FROM {source}", **values)
        table, _, _ = source.partition(" ")
        try:
            with self.busy:
                blobs = [self.blobopen(table, large, row, readonly=True).read() for *_, row in rows]
        except sqlite3.Error as error:
            raise explain(error) from error
        return [(*row[:-2], blob) for row, blob in zip(rows, blobs, strict=True)]

    def many(self, sql: str, rows: Iterable[Mapping[str, Value]]) -> None:
        """See `Connection.many`."""
        try:
            self.executemany(sql, rows)
        except sqlite3.Error as error:
            raise explain(error) from error

    add_messages = many

    def lock(self, space: str) -> None:
        """See `Connection.lock`; there is only one transaction at a time."""

    def __del__(self) -> None:
        # It may not have been opened in the first place.
        with suppress(sqlite3.ProgrammingError):
            self.close()


class _Reader:
    """Closes the connection of a thread when that ends; a connection itself would wait for the collector."""

    def __init__(self, connection: _Connection) -> None:
        self.connection = connection

    def __del__(self) -> None:
        with self.connection.busy:
            self.connection.close()


class SQLite(Database):
    """One file in WAL mode, or memory: one connection that writes, and one that reads for each thread."""

    find_versions = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'"

    def __init__(
        self, path: str, durability: Durability, key: bytes = b"", *, read_only: bool = False
    ) -> None:
        super().__init__(key, read_only=read_only)
        self._memory = path == ":memory:"
        # Absolute, because each thread opens it again, in whatever working directory; no URI of the caller.
        self._path = path if self._memory else str(Path(path).absolute())
        self._place = Path(self._path)
        self._uri = f"{self._place.as_uri()}?mode=ro" if read_only and not self._memory else ""
        self._file: tuple[int, int] | None = None
        self._durability = durability
        self._lock = threading.RLock()
        # Memory has one connection.
        self._read_lock = self._lock if self._memory else nullcontext()
        self._group = GroupCommit(self._write_all)
        self._local = threading.local()
        self._readers: weakref.WeakSet[_Connection] = weakref.WeakSet()
        # Held while a reader is opened, so that closing misses none.
        self._opening = threading.RLock()
        if not self._memory and not read_only:
            # It exists, or SQLite reports what is wrong.
            with suppress(OSError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        try:
            self._writer = self._connect()
        except Unavailable:
            # Where no file can be created beside it, SQLite reads it only as one that nobody changes.
            if not self._uri or _size(self._path + "-wal"):
                raise
            self._uri += _FROZEN
            self._writer = self._connect()
        self._file = None if self._memory else _identity(self._place)

    def _connect(self) -> _Connection:
        try:
            connection = sqlite3.connect(
                self._uri or self._path,
                uri=bool(self._uri),
                timeout=database.BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                factory=_Connection,
                cached_statements=256,
            )
            connection.key, connection.busy = self.key, threading.RLock()
            # A hostile file must not run functions of its schema, nor lead the reader outside its pages.
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute(f"PRAGMA synchronous = {self._durability.upper()}")
            self._check_file(connection)
            if not self.read_only and _use_wal(connection):
                # Fewer, larger checkpoints: the 99th percentile of an append is five times lower than at
                # 1,000 pages.
                connection.execute("PRAGMA wal_autocheckpoint = 4000")
                connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
        except sqlite3.Error as error:
            raise explain(error, self._path) from error
        return connection

    def _check_file(self, connection: _Connection) -> None:
        """Raise Damaged for a database of another program, and for a truncated one, and change neither.

        Even WAL mode would stay in the file of another program; SQLite reads a missing end as zeros.
        """
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        if tables and ("schema_version",) not in tables:
            what = f"{self._path} is a database of another program."
            raise Damaged(what, "Give Holdfast a file of its own.")
        size, log = (_size(self._path + suffix) for suffix in ("", "-wal"))
        if size % connection.execute("PRAGMA page_size").fetchone()[0] and not log:
            raise Damaged(f"{self._path} is damaged: its last page is not whole.", SAVE)

    @contextmanager
    def reading(self) -> Iterator[_Connection]:
        """See `Database.reading`."""
        self.check_open()
        with self._read_lock:
            yield self._reader()

    def all(self, sql: str, **values: Value) -> list[Row]:
        """See `Database.all`. To read one row, `reading` would take as long again."""
        self.check_open()
        with self._read_lock:
            return self._reader().all(sql, **values)

    def _reader(self) -> _Connection:
        if self._memory:
            return self._writer
        if self._uri.endswith(_FROZEN) and _size(self._path + "-wal"):
            what = f"{self._path} was opened as a file that nobody writes to, and somebody does now."
            raise Unavailable(what, "Open a new Memory.")
        reader: _Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            with self._opening:
                self.check_open()
                self._check_same_file()
                reader = self._local.reader = _Reader(self._connect())
                reader.connection.execute("PRAGMA query_only = ON")
                # In KiB: a prompt reads 140 messages all over the log, in a fifth less time than with 2,000.
                reader.connection.execute("PRAGMA cache_size = -8000")
                self._readers.add(reader.connection)
        return reader.connection

    @contextmanager
    def one_read(self) -> Iterator[None]:
        """See `Database.one_read`. A transaction that has only read needs no commit."""
        with self.reading() as connection:
            if self._memory or connection.in_one_read:
                # Nobody else writes to memory while its only connection is held.
                yield
                return
            self._check_same_file()
            try:
                connection.all("BEGIN")
                connection.in_one_read = True
                yield
            finally:
                connection.in_one_read = False
                # It may have been closed meanwhile.
                with suppress(sqlite3.ProgrammingError), connection.busy:
                    connection.rollback()

    @contextmanager
    def writing(self, *, lasting: bool = True) -> Iterator[Connection]:
        """See `Database.writing`."""
        self.check_writable()
        with self._lock, nullcontext() if lasting else self._without_waiting():
            # Within `try` as well: an interrupt may come when it has just begun.
            try:
                # Raises Closed if it was closed while this thread waited for the lock.
                self._begin()
                yield self._writer
                self._writer.all("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def write_together(self, work: Callable[[Connection], T]) -> T:
        """See `Database.write_together`."""
        self.check_writable()  # a forked process has none of the threads that it would wait for
        # The main thread writes by itself: a Ctrl-C, which may strike it between any two lines, is not to
        # touch what others wait for. Memory has nothing to wait for.
        if self._memory or threading.get_ident() == threading.main_thread().ident:
            return self._write(work)
        result: T = self._group.run(work)
        return result

    def _write_all(self, callers: Iterator[Caller[Callable[[Connection], object]]]) -> None:
        def work(tx: _Connection) -> None:
            # The first without a savepoint: what fails there undoes nobody else's work.
            leader = next(callers)
            leader.result = leader.work(tx)
            for caller in callers:
                join(caller, tx)

        self._write(work)

    def _write(self, work: Callable[[_Connection], T]) -> T:
        """Run `work` in a transaction as `writing` does, at half of its cost."""
        with self._lock:
            try:
                self._begin()
                result = work(self._writer)
                self._writer.all("COMMIT")
            except BaseException:
                self._roll_back()
                raise
        return result

    def _begin(self) -> None:
        """Begin a transaction that writes, and check that file and schema are those that were opened."""
        self._writer.all("BEGIN IMMEDIATE")
        self._check_same_file()
        if self._migrated:
            self.check_schema(self._writer.all(database.SCHEMA_VERSION)[0][0])

    def _check_same_file(self) -> None:
        """Raise Unavailable if the file was deleted or replaced: writes to it would be lost."""
        if self._file is not None and _identity(self._place) != self._file:
            # Once it is closed, anybody may move it.
            self.check_open()
            what = f"{self._path} was deleted, moved or replaced while it was open; nothing was written."
            raise Unavailable(what, "Put the file back, and open a new Memory.")

    def _roll_back(self) -> None:
        # A closed connection has no transaction.
        with suppress(sqlite3.ProgrammingError):
            if self._writer.in_transaction:
                self._writer.all("ROLLBACK")

    @contextmanager
    def _without_waiting(self) -> Iterator[None]:
        self._writer.all("PRAGMA synchronous = NORMAL")
        try:
            yield
        finally:
            self._writer.all(f"PRAGMA synchronous = {self._durability.upper()}")

    def close(self) -> None:
        """See `Database.close`. What has begun ends: a transaction that writes, a statement that reads."""
        self._closed = True
        # Closing the connections of a parent process would drop its locks; ours may be held by its threads.
        if os.getpid() == self._process:
            with self._lock, self._opening:
                for connection in (*self._readers, self._writer):
                    with connection.busy:
                        connection.close()

    def check(self) -> list[str]:
        """See `Database.check`."""
        with self.reading() as connection:
            rows = connection.all("PRAGMA integrity_check")
        return [f"the file: {row[0]}" for row in rows if row[0] != "ok"]

    def copy(self, path: str) -> None:
        """See `Database.copy`. Rebuilt row by row: the copy is compact, and no damage is copied."""
        self.check_open()
        self._check_same_file()
        own = nullcontext(self._writer) if self._memory else closing(self._connect())
        with self._read_lock, own as connection:
            connection.all("VACUUM INTO :path", path=path)

    # `rewrite` belongs to the interface; a file is always rewritten.
    def purge(self, *, rewrite: bool) -> PurgeResult:  # noqa: ARG002
        """See `Database.purge`. Takes as long as copying the file, and as much room beside it."""
        self.check_writable()
        with self._lock:
            try:
                self._writer.all("VACUUM")
            except Unavailable as error:
                return PurgeResult((), {"file": error.what}, done=False)
            if self._memory:
                return PurgeResult(("memory",), {}, done=True)
            if self._writer.all("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]:
                why = "others read it for longer than an erasure waits, so its log could not be emptied"
                return PurgeResult((), {"file": why}, done=False)
        return PurgeResult(("file",), {}, done=True)

    def dialect(self, statement: str) -> str:
        """Store rows in the order of their key: a write then touches one page less, a window reads fewer."""
        table = re.search(r"CREATE TABLE (\w+) ", statement)
        if table and table[1] in WITHOUT_ROWID:
            return statement.removesuffix(";") + " WITHOUT ROWID"
        return statement


# The names of the results of a statement, and their types.
_Types = tuple[tuple[str, frozenset[type] | None], ...]
_TYPES: dict[str, _Types] = {}
# Statements whose types are cached at once.
_MAX_STATEMENTS = 500


def _check_types(rows: list[Row], types: _Types) -> None:
    """Raise Damaged if a value has not the type of its column; SQLite stores any value in any column."""
    for (name, allowed), column in zip(types, zip(*rows, strict=True), strict=True):
        if allowed is not None and not allowed.issuperset(map(type, column)):
            raise Damaged(f"A value of `{name}` is not of the type that was stored.", "Restore a backup.")


def _result_types(names: Iterable[str]) -> _Types:
    """Return the types of results; None for a result whose columns have several."""
    results: list[tuple[str, frozenset[type] | None]] = []
    for name in names:
        types = {_column_types()[word] for word in re.findall(r"\w+", name) if word in _column_types()}
        only = types.pop() if len(types) == 1 else None
        results.append((name, frozenset((only, type(None))) if only else None))
    return tuple(results)


@cache
def _column_types() -> Mapping[str, type | None]:
    """Return the type of each column of the schema; None for a name that has several."""
    types: dict[str, type | None] = {}
    for column in (column for table in tables().values() for column in table.columns):
        type_ = column.python_type
        types[column.name] = type_ if types.get(column.name, type_) is type_ else None
    return types


def _size(path: str) -> int:
    return Path(path).stat().st_size if Path(path).is_file() else 0


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the device and the inode of a file, which identify it; None if it does not exist."""
    with suppress(OSError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None


def _use_wal(connection: sqlite3.Connection) -> bool:
    """Switch to WAL mode, which memory does not have; SQLite does not wait for others that switch."""
    deadline = time.monotonic() + database.BUSY_SECONDS
    while True:
        try:
            return bool(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal")
        except sqlite3.OperationalError as error:
            if result_code(error) not in LOCKED or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


# The option with which SQLite opens a file that nobody changes, and creates no other file.
_FROZEN = "&immutable=1"
# The size to which the write-ahead log is truncated after a checkpoint: 4,000 pages.
_LOG_BYTES = 16 << 20
