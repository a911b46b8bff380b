"""SQLite files of other programs, read and never written, and trusted in nothing.

A reader names a table and its columns and says no SQL, so no view, trigger, virtual table or computed column
of the file is ever run.
"""

import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from holdfast.errors import Unavailable
from holdfast_cli.formats.files import File

Cell = str | int | float | bytes | None

_MAGIC = b"SQLite format 3\x00"
_WRITES_AHEAD = 18  # the byte of a file that is 2 where there is, or was, a write-ahead log beside it
_LOG = "-wal"
_TEXT = "CAST(? AS TEXT)"  # of bytes
_WAIT = 5.0  # seconds for the lock of whoever writes
_MAX_VALUE = 256 << 20  # bytes of one value
_MAX_CHECKED = 1 << 30  # bytes of a file whose tables are checked before they are read
_STEPS = 1_000_000  # of SQLite's machine, between which the budget is looked at
_STEPS_PER_BYTE = 16  # a table of the smallest rows takes fewer


class ForeignSQLite:
    """An open database of another program: its tables with their columns, and the rows of each.

    What is no ordinary table is not among `tables`, and what is computed not among the columns.
    """

    def __init__(self, connection: sqlite3.Connection, *, check: bool) -> None:
        self._connection = connection
        self._read = 0
        self._is_closed = False
        self.tables = _tables(connection)
        self._unchecked = set(self.tables) if check else set()

    def tell(self) -> int:
        """Return the bytes of the values that were read.

        Raises:
            ValueError: it is read no more.

        """
        if self._is_closed:
            raise ValueError("The database is closed.")
        return self._read

    def close(self) -> None:
        """End it: it is read no more."""
        self._is_closed = True

    def has(self, table: str, *columns: str) -> bool:
        """Return whether there is a table with these columns, besides others."""
        return table in self.tables and self.tables[table].issuperset(columns)

    def rows(
        self,
        table: str,
        columns: Sequence[str],
        *,
        where: Mapping[str, str | int] | None = None,
        prefix: tuple[str, str] | None = None,
        order: Sequence[str] = (),
    ) -> Iterator[tuple[Cell, ...]]:
        """Return the values of some columns, row by row. They are of any type, whatever that of the column.

        Text that is not UTF-8 has its bytes as lone surrogates.

        Args:
            table: one of `tables`.
            columns: of the table; "rowid" is the number of a row.
            where: the values that columns must have.
            prefix: a column, and what its text must begin with.
            order: the columns that rows are sorted by.

        Raises:
            Unavailable: there is no such table, or it is damaged.

        """
        same, (of, beginning) = where or {}, prefix or ("", "")
        self._check(table, {*columns, *same, *order, *([of] if of else ())})
        conditions = [
            f"{_quote(column)} = {_TEXT if isinstance(same[column], str) else '?'}" for column in same
        ]
        params = [_bytes(value) if isinstance(value, str) else value for value in same.values()]
        if of:
            # Comparisons, unlike LIKE, are answered by an index.
            conditions += [f"{_quote(of)} >= {_TEXT}", f"{_quote(of)} < {_TEXT}"]
            first = _bytes(beginning)
            params += [first, first[:-1] + bytes([first[-1] + 1])]
        # Names that the file has, in quotes; values are parameters.
        sql = f"SELECT {', '.join(map(_quote, columns))} FROM {_quote(table)}"  # noqa: S608
        sql += f" WHERE {' AND '.join(conditions)}" if conditions else ""
        sql += f" ORDER BY {', '.join(map(_quote, order))}" if order else ""
        return map(self._counted, self._connection.execute(sql, params))

    def _counted(self, row: tuple[Cell, ...]) -> tuple[Cell, ...]:
        self._read += sum(len(cell) for cell in row if isinstance(cell, str | bytes))
        return row

    def _check(self, table: str, columns: set[str]) -> None:
        if missing := columns - self.tables.get(table, frozenset()):
            what = f"The database has no table {table!r} with {', '.join(sorted(missing))}."
            raise Unavailable(what, "Export it from its program.")
        if table in self._unchecked:
            self._unchecked.remove(table)
            for (answer,) in self._connection.execute(f"PRAGMA quick_check({_quote(table)})"):
                if answer != "ok":
                    what = f"The table {table!r} of the database is damaged."
                    raise Unavailable(what, "Repair it with its program.")


def is_sqlite(start: bytes) -> bool:
    """Return whether a file that begins so is a database of SQLite."""
    return start.startswith(_MAGIC)


def fingerprint(path: Path) -> bytes:
    """Return a mark that changes with a database: head, size and time of its file and of its log."""
    parts = []
    for file in (path, path.resolve().with_name(f"{path.resolve().name}{_LOG}")):
        try:
            with file.open("rb") as stream:
                status = os.fstat(stream.fileno())
                parts += [stream.read(100).hex(), str(status.st_size), str(status.st_mtime_ns)]
        except FileNotFoundError:
            parts.append("")
    return "|".join(parts).encode()


@contextmanager
def open_database(file: File) -> Iterator[ForeignSQLite]:
    """Open a database of another program, as of one moment, while its program runs or not.

    Nothing of it is changed, and the program is not kept waiting: it is read beside its write-ahead log, or,
    where it has none, from a copy that SQLite keeps in memory and in a file without a name.

    Raises:
        Unavailable: it is in a zip, no database, damaged, locked, or was written while it was read.

    """
    if file.location is None:
        what = "A database is not read in a zip; unpack the zip and import the folder."
        raise Unavailable(what, "Unpack it.")
    try:
        path = file.location.resolve(strict=True)
        with path.open("rb") as stream:
            head = stream.read(100)
        if not is_sqlite(head):
            raise Unavailable("The file is no SQLite database.", "Check the path.")
        before = _sizes(path)
        with closing(_connect(path, is_ahead=head[_WRITES_AHEAD] == 2)) as connection:
            _limit(connection, sum(before.values()))
            is_checked = sum(before.values()) <= _MAX_CHECKED
            with closing(ForeignSQLite(connection, check=is_checked)) as database:
                file.tells.append(database.tell)
                yield database
        if not before[_LOG] and before != _sizes(path):
            raise Unavailable("The database was written while it was read.", "Try again.")
    except (sqlite3.Error, OSError) as error:
        what = f"The database cannot be read: {_why(error)}."
        raise Unavailable(what, "Repair that and try again.") from error


def _sizes(path: Path) -> dict[str, int]:
    """Return the bytes of a database and its write-ahead log."""
    files = {suffix: path.with_name(path.name + suffix) for suffix in ("", _LOG)}
    return {suffix: file.stat().st_size if file.exists() else 0 for suffix, file in files.items()}


def _connect(path: Path, *, is_ahead: bool) -> sqlite3.Connection:
    if not is_ahead:
        return _copy(path)
    # Where there is no log, nobody writes, and SQLite would make one.
    mode = "mode=ro" if path.with_name(path.name + _LOG).exists() else "mode=ro&immutable=1"
    connection = _connection(f"{path.as_uri()}?{mode}")
    connection.execute("BEGIN")
    return connection


def _copy(path: Path) -> sqlite3.Connection:
    copy = _connection("")
    try:
        with closing(_connection(f"{path.as_uri()}?mode=ro")) as original:
            # Waits for a lock as long as a connection may; a backup alone would wait without end.
            original.execute("BEGIN")
            original.execute("SELECT count(*) FROM sqlite_master").fetchall()
            original.backup(copy)
    except BaseException:
        copy.close()
        raise
    return copy


def _connection(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, timeout=_WAIT, isolation_level=None, check_same_thread=False)
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
        connection.execute(f"PRAGMA {pragma}")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.text_factory = lambda value: value.decode("utf-8", "surrogateescape")
    return connection


def _limit(connection: sqlite3.Connection, size: int) -> None:
    """Stop a reader that takes more steps than the size of a file explains: its pages form a maze."""
    # Constraints may call functions; a check of a table would.
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute("PRAGMA query_only = ON")
    left = 1 + _STEPS_PER_BYTE * size // _STEPS

    def is_over() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    connection.set_progress_handler(is_over, _STEPS)


def _tables(connection: sqlite3.Connection) -> dict[str, frozenset[str]]:
    """Return the stored columns of the ordinary tables, with that of the row numbers where there are any."""
    sql = """
        SELECT a.name, b.name, a.wr FROM pragma_table_list AS a JOIN pragma_table_xinfo(a.name) AS b
        WHERE a.schema = 'main' AND a.type = 'table' AND a.name NOT GLOB 'sqlite_*' AND b.hidden = 0"""
    tables: dict[str, set[str]] = defaultdict(set)
    for table, column, is_without_rowid in connection.execute(sql):
        tables[table] |= {column} if is_without_rowid else {column, "rowid"}
    return {table: frozenset(columns) for table, columns in tables.items()}


def _bytes(text: str) -> bytes:
    # Half a character is found nowhere, and is no error.
    return text.encode("utf-8", "surrogatepass")


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _why(error: Exception) -> str:
    """Return the reason why a file cannot be read; messages of SQLite may have words of the file."""
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return "another program writes to it"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return "it is damaged"
        case sqlite3.SQLITE_TOOBIG:
            return f"a value is longer than {_MAX_VALUE >> 20} MiB"
        case sqlite3.SQLITE_INTERRUPT:
            return "it is made so that reading it does not end"
        case sqlite3.SQLITE_READONLY:
            return "its program was interrupted, and must be started to repair it"
        case sqlite3.SQLITE_FULL:
            return "the temporary folder has no room for a copy of it"
    return getattr(error, "sqlite_errorname", "") or getattr(error, "strerror", "") or type(error).__name__
