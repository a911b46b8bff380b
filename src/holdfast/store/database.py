"""Connections, transactions and migrations: what both databases have in common.

All SQL has `:name` parameters and keeps to the subset that both share; only `sqlite.py` and `postgres.py`
know a dialect.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any, ClassVar, Literal, NamedTuple, ParamSpec, Protocol, TypeVar

from holdfast.errors import Closed, Damaged, Denied, NewerSchema, Unavailable
from holdfast.store.schema import FIRST, MIGRATIONS, NEWEST, check_number, schema, split_statements

Durability = Literal["full", "normal"]
Row = tuple[Any, ...]
Value = str | int | float | bytes | None
# How long a transaction waits for a lock that another process holds.
BUSY_SECONDS: float = 30
# How often a transaction is tried that clashes with others.
TRIES = 5
CREATE_VERSIONS = "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL PRIMARY KEY)"
SCHEMA_VERSION = "SELECT coalesce(max(version), 0) FROM schema_version"
_TAKE_VERSION = """
    INSERT INTO schema_version (version) VALUES (:version)
    ON CONFLICT (version) DO NOTHING RETURNING version"""

P = ParamSpec("P")
T = TypeVar("T")


class SerializationFailure(Unavailable):
    """Others changed the same rows at the same time, and the database let them go first. Try again."""


def retry_transaction(write: Callable[P, T]) -> Callable[P, T]:
    """Run a transaction again when it clashes with others; the database has rolled it back by then."""

    @wraps(write)
    def again(*args: P.args, **options: P.kwargs) -> T:
        for _ in range(TRIES - 1):
            try:
                return write(*args, **options)
            except SerializationFailure:
                continue
        return write(*args, **options)

    return again


class RolledBack(Exception):
    """Ends a transaction that is to be rolled back."""


# What decoding a value of a damaged row may raise.
DECODING_ERRORS = (ValueError, TypeError, LookupError, OverflowError, RecursionError)


def damage_error(what: str, error: Exception) -> Damaged:
    """Return the error of a stored value that cannot be decoded."""
    return Damaged(f"{what} cannot be read ({error}).", "Restore a backup of the database.")


def first_value(reader: Reader, of: Callable[[Any], T], sql: str, **values: Value) -> T | None:
    """Return the first value that a query finds, as a type; None for NULL, and for none."""
    rows = reader.all(sql, **values)
    return of(rows[0][0]) if rows and rows[0][0] is not None else None


@contextmanager
def decoding(what: str) -> Iterator[None]:
    """Raise Damaged, naming `what`, if the block cannot decode a stored value."""
    try:
        yield
    except DECODING_ERRORS as error:
        raise damage_error(what, error) from error


def one_of(column: str, values: Iterable[Value]) -> tuple[str, dict[str, Value]]:
    """Return the SQL condition that a column has one of some values, and its parameters."""
    name = column.rpartition(".")[2]
    parameters = {f"{name}{n}": value for n, value in enumerate(values)}
    return f"{column} IN ({', '.join(f':{parameter}' for parameter in parameters) or 'NULL'})", parameters


def of_each(sql: str, spaces: Iterable[str]) -> tuple[str, dict[str, Value]]:
    """Return the query for what `sql` finds in each of some spaces, behind its place, and its parameters."""
    values: dict[str, Value] = {f"space{n}": space for n, space in enumerate(spaces)}
    found = enumerate(sql.replace(":space", f":{name}") for name in values)
    return " UNION ALL ".join(f"SELECT {n} AS place, one.* FROM ({one}) AS one" for n, one in found), values


def batched(values: Sequence[T], size: int = 500) -> Iterator[Sequence[T]]:
    """Iterate over values in parts that are small enough for one statement."""
    return (values[start : start + size] for start in range(0, len(values), size))


def matching(
    equal: Mapping[str, Value], among: Mapping[str, Iterable[Value] | None]
) -> tuple[str, dict[str, Value]]:
    """Return the SQL condition that columns have a value, or one of several, and its parameters.

    None stands for any value. The condition begins with AND.
    """
    conditions, values = [], dict[str, Value]()
    for column, value in equal.items():
        if value is not None:
            name = column.rpartition(".")[2]
            conditions.append(f" AND {column} = :{name}")
            values[name] = value
    for column, several in among.items():
        if several is not None:
            condition, parameters = one_of(column, several)
            conditions.append(f" AND {condition}")
            values |= parameters
    return "".join(conditions), values


class PurgeResult(NamedTuple):
    """The rewritten parts, the remaining ones with the reasons, and whether the purge is complete."""

    rewritten: tuple[str, ...]
    remains: Mapping[str, str]
    done: bool


class Reader(Protocol):
    """Something that runs queries: a connection, or a database, which runs each on its own."""

    def all(self, sql: str, **values: Value) -> list[Row]:
        """Run a statement and return all its rows."""

    def all_large(self, columns: str, large: str, source: str, /, **values: Value) -> list[Row]:
        """Return columns and, last, a column of large values; `source` is a table and a condition."""


class Connection(Reader, Protocol):
    """Run statements; inside `Database.writing` they are one transaction."""

    # The key of checksums; empty for none.
    key: bytes

    def many(self, sql: str, rows: Iterable[Mapping[str, Value]]) -> None:
        """Run a statement once per row of values."""

    def add_messages(self, sql: str, rows: Sequence[Mapping[str, Value]]) -> None:
        """Do what `many` does with messages of one space, of which the last has the newest number."""

    def lock(self, space: str) -> None:
        """Let no other transaction that locks this space go on before this one has ended."""


class Database(ABC):
    """A database, which hands out connections; safe to share between threads.

    `reading` is for queries, `one_read` for queries that belong together, `writing` for one transaction.
    """

    # A query that finds the table of versions, if it is there.
    find_versions: ClassVar[str] = ""
    # Whether `run_alone` is there.
    runs_alone = False
    # Statements that let those who write end before a migration, and others wait for it.
    before_migration: ClassVar[Sequence[str]] = ()

    def __init__(self, key: bytes = b"", *, read_only: bool = False) -> None:
        self._closed = False
        self.key = key
        self.read_only = read_only
        # The version of the schema as of `migrate`; 0 before that.
        self._migrated = 0
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

    def check_writable(self) -> None:
        """Raise Closed as `check_open` does, and Denied if the database was opened to be read only."""
        self.check_open()
        if self.read_only:
            todo = "Open it without `read_only`, as a user who may write to it and to its folder."
            raise Denied("The database was opened to be read only; nothing was changed.", todo)

    def check_schema(self, version: int) -> None:
        """Raise NewerSchema if the schema has changed since it was opened; call this in a transaction.

        A process would neither write nor erase tables that it does not know.
        """
        if version != self._migrated:
            what = (
                f"The database was migrated to schema version {version} while it was open here; nothing was"
            )
            raise NewerSchema(f"{what} written.", "Start this program again, with the package that did so.")

    def all(self, sql: str, **values: Value) -> list[Row]:
        """Run a query on its own and return all its rows."""
        with self.reading() as connection:
            return connection.all(sql, **values)

    def all_large(self, columns: str, large: str, source: str, /, **values: Value) -> list[Row]:
        """Return columns and, last, a column of large values; `source` is a table and a condition."""
        with self.one_read(), self.reading() as connection:
            return connection.all_large(columns, large, source, **values)

    @abstractmethod
    def reading(self) -> AbstractContextManager[Connection]:
        """Open a connection for queries; each sees everything that was committed before it."""

    @abstractmethod
    def one_read(self) -> AbstractContextManager[None]:
        """Let all queries of this thread in the block see the state of the database at the first query.

        A block within another one is a part of it. Keep it short: while it is open, SQLite cannot shorten its
        write-ahead log, and nobody else writes to a database in memory.
        """

    @abstractmethod
    def writing(self, *, lasting: bool = True) -> AbstractContextManager[Connection]:
        """Open a transaction that commits at the end of the block and rolls back when the block raises.

        One that is not `lasting` does not wait for the disk: it is visible to all, but may be lost in a
        crash.
        """

    @contextmanager
    def writing_to(self, space: str, *, lasting: bool = True) -> Iterator[Connection]:
        """Open a transaction as `writing` does, and let no other one change the space meanwhile."""
        with self.writing(lasting=lasting) as tx:
            tx.lock(space)
            yield tx

    def write_together(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a lasting transaction, and return its result when that is committed.

        Threads that call this at the same time may share a commit. The work of each is stored whole or not at
        all, and its errors are its own. It may run in the thread of another caller.
        """
        with self.writing() as tx:
            return work(tx)

    def run_alone(self, statement: str, values: Mapping[str, Value]) -> Row:
        """Run a transaction that is one statement, and return its row; nothing if it takes a longer one."""
        raise NotImplementedError

    @abstractmethod
    def close(self) -> None:
        """Close all connections. Closing twice is harmless."""

    def check(self) -> list[str]:
        """Return the defects that the database's own check reports."""
        return []

    @abstractmethod
    def copy(self, path: str) -> None:
        """Write all committed rows into an empty file, as a database of its own; others go on meanwhile.

        Raises:
            InvalidInput: this database has its own tool for backups.
            Damaged: a part of it cannot be read.
            Unavailable: the file cannot be written.

        """

    @abstractmethod
    def purge(self, *, rewrite: bool) -> PurgeResult:
        """Release the space of deleted rows; with `rewrite`, rewrite the files, whatever that locks.

        Locks of others are waited for, up to `BUSY_SECONDS`; parts still locked are named in `remains`.
        """

    def dialect(self, statement: str) -> str:
        """Return a statement of the schema in the dialect of this database."""
        return statement

    def migrate(self) -> None:
        """Create the schema of a new database; migrate an older one, each migration in its own transaction.

        Raises:
            NewerSchema: the database was written by a newer Holdfast.
            UnreleasedSchema: it was written before 0.1.

        """
        while (version := self._schema_version()) != NEWEST:
            if version:
                check_number("The database", version)
            if self.read_only:
                what = f"The database has schema version {version}, which is read as version {NEWEST} only."
                raise Unavailable(what, "Open it once without `read_only`, as who may write, to migrate it.")
            # A new database takes all numbers at once.
            numbers = range(version + 1, version + 2) if version else range(FIRST, NEWEST + 1)
            with self.writing() as tx:
                tx.all(CREATE_VERSIONS)
                for statement in self.before_migration:
                    tx.all(statement)
                # Not so if another process was faster; this one waited for it here.
                if all(tx.all(_TAKE_VERSION, version=number) for number in numbers):
                    for statement in split_statements(MIGRATIONS[version + 1]) if version else schema():
                        tx.all(self.dialect(statement))
        self._migrated = NEWEST

    def _schema_version(self) -> int:
        with self.reading() as connection:
            return int(connection.all(SCHEMA_VERSION)[0][0]) if connection.all(self.find_versions) else 0
