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
from functools import cache
from importlib import resources
from pathlib import Path

from holdfast.errors import Closed, Damaged, HoldfastError, InvalidInput, Unavailable
from holdfast.store import database
from holdfast.store.database import Connection, Database, Durability, Purged, Row, Value


class _Connection(sqlite3.Connection):
    """Say what is wrong in our own errors."""

    key = b""

    def all(self, sql: str, **values: Value) -> list[Row]:
        """See `Connection.all`."""
        try:
            cursor = self.execute(sql, values)
            rows: list[Row] = cursor.fetchall()
        except sqlite3.Error as error:
            raise _explain(error) from error
        if rows:
            if (kinds := _KINDS.get(sql)) is None:
                if len(_KINDS) == _STATEMENTS:
                    _KINDS.clear()
                kinds = _KINDS[sql] = _kinds_of([column[0] for column in cursor.description])
            _check_types(rows, kinds)
        return rows

    def run(self, sql: str) -> None:
        """Run a statement that gives no rows and takes no values."""
        try:
            self.execute(sql)
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
        self._memory = path == ":memory:"
        # The whole path: it is opened again for each thread, wherever the program has gone to, and is never a URI.
        self._path = path if self._memory else str(Path(path).absolute())
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
                connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
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
    def writing(self, *, lasting: bool = True) -> Iterator[Connection]:
        """See `Database.writing`."""
        self.check_open()
        with self._lock, nullcontext() if lasting else self._without_waiting():
            self._writer.run("BEGIN IMMEDIATE")  # says so if it was closed while this thread stood in line
            try:
                yield self._writer
                self._writer.run("COMMIT")
            finally:
                if self._writer.in_transaction:
                    self._writer.run("ROLLBACK")

    @contextmanager
    def _without_waiting(self) -> Iterator[None]:
        self._writer.run("PRAGMA synchronous = NORMAL")
        try:
            yield
        finally:
            self._writer.run(f"PRAGMA synchronous = {self._durability.upper()}")

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

    def purge(self, *, rewrite: bool) -> Purged:  # noqa: ARG002 - the file is always written anew
        """See `Database.purge`. Takes as long as copying the file, and as much room beside it."""
        self.check_open()
        with self._lock:
            try:
                self._writer.all("VACUUM")
            except Unavailable as error:
                return Purged((), {"file": error.what}, done=False)
            if self._memory:
                return Purged(("memory",), {}, done=True)
            if self._writer.all("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]:
                why = "others read it for longer than an erasure waits, so that its write-ahead log could not be emptied"
                return Purged((), {"file": why}, done=False)
        return Purged(("file",), {}, done=True)

    def dialect(self, statement: str) -> str:
        """Keep rows in the order of their key: a write then touches one page less, a window reads fewer."""
        if re.search(r"CREATE TABLE (?:messages|calls|records|pads|receipts) ", statement):
            return statement.removesuffix(";") + " WITHOUT ROWID"
        return statement

    def has_table(self, connection: Connection, table: str) -> bool:
        """See `Database.has_table`."""
        return bool(
            connection.all("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :table", table=table)
        )


_Kinds = tuple[tuple[str, frozenset[type] | None], ...]
_KINDS: dict[
    str, _Kinds
] = {}  # of each statement: the names of its results, and the types that they may have
_STATEMENTS = 500  # whose results are known at once


def _check_types(rows: list[Row], kinds: _Kinds) -> None:
    """Raise Damaged if a value has not the type of its column: SQLite keeps any value in any column."""
    for (name, known), column in zip(kinds, zip(*rows, strict=True), strict=True):
        if known is not None and not known.issuperset(map(type, column)):
            raise Damaged(f"A value of `{name}` is not of the type that was stored.", "Restore a backup.")


def _kinds_of(names: Iterable[str]) -> _Kinds:
    """Return the types of results, where they are known because all columns that they name have the same one."""
    found: list[tuple[str, frozenset[type] | None]] = []
    for name in names:
        kinds = {_columns()[word] for word in re.findall(r"\w+", name) if word in _columns()}
        kind = kinds.pop() if len(kinds) == 1 else None
        found.append((name, frozenset((kind, type(None))) if kind else None))
    return tuple(found)


@cache
def _columns() -> Mapping[str, type | None]:
    """Return the type of each column of the schema; None for a name that has several."""
    schema = (resources.files("holdfast.store") / "schema.sql").read_text("utf-8")
    kinds = {"TEXT": str, "BIGINT": int, "DOUBLE": float, "BYTEA": bytes}
    columns: dict[str, type | None] = {}
    for name, kind in re.findall(r"^ {4}(\w+) (TEXT|BIGINT|DOUBLE|BYTEA)\b", schema, re.MULTILINE):
        columns[name] = kinds[kind] if columns.get(name, kinds[kind]) == kinds[kind] else None
    return columns


def _size(path: str) -> int:
    return Path(path).stat().st_size if Path(path).is_file() else 0


def _use_wal(connection: sqlite3.Connection) -> bool:
    """Switch to WAL mode, which memory does not have. SQLite does not wait when others switch at the same moment."""
    deadline = time.monotonic() + database.BUSY_SECONDS
    while True:
        try:
            return bool(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal")
        except sqlite3.OperationalError as error:
            if _code(error) not in _LOCKED or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


_LOG_BYTES = (
    16 << 20
)  # of the write-ahead log that stay when its words are in the database: what 4,000 pages take

_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_NOT_WRITABLE = {
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_NOLFS,
}
_NO_ROOM = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM}
_FOREIGN = {
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_ERROR,  # our statements are right: a table or a column is missing
}
_SAVE = "Restore what `holdfast backup` made, or save what can be read with `holdfast salvage`."


def _code(error: sqlite3.Error) -> int | None:
    """Return the primary result code; None for what the driver itself found wrong."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _explain(error: sqlite3.Error, path: str = "the database") -> HoldfastError:
    code, text = _code(error), f"{error}"
    if code is None and isinstance(error, sqlite3.ProgrammingError):  # the connection is not open any more
        return Closed("The memory is closed.", "Open a new Memory.")
    if code is None:  # a text that is none
        return Damaged(f"{path} is damaged: it holds what cannot be read ({text}).", _SAVE)
    text = f"{text}, {getattr(error, 'sqlite_errorname', code)}"
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_MISMATCH}:
        return Damaged(f"{path} is damaged ({text}).", _SAVE)
    if code in _FOREIGN:
        return Damaged(
            f"{path} is not a Holdfast database ({text}), or its beginning is damaged.",
            f"Check the path. {_SAVE}",
        )
    if code == sqlite3.SQLITE_CONSTRAINT:
        return Damaged(
            f"{path} is damaged: what is stored contradicts itself ({text}).", f"Run `verify`. {_SAVE}"
        )
    if code in _NOT_WRITABLE:
        return Unavailable(
            f"{path} cannot be opened for writing ({text}).",
            "Check that the folder exists and that this user may write to it and to the file.",
        )
    if code in _LOCKED:
        return Unavailable(
            f"{path} was locked by another process for {database.BUSY_SECONDS} seconds.",
            "Try again when that process is done.",
        )
    if code in _NO_ROOM:
        return Unavailable(f"{path} cannot be written ({text}).", "Free some disk space or repair the disk.")
    if code == sqlite3.SQLITE_TOOBIG:
        return InvalidInput(f"A text is longer than {path} can hold ({text}).", "Split it.")
    return Unavailable(f"{path} did not do what was asked ({text}).", "Try again, and report it if it stays.")
