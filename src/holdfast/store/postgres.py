"""PostgreSQL: a server, through a pool of connections."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from holdfast.errors import Damaged, HoldfastError, InvalidInput, MissingExtra, Unavailable
from holdfast.store import database
from holdfast.store.database import (
    Connection,
    Database,
    Durability,
    PurgeResult,
    Row,
    SerializationFailure,
    Value,
)
from holdfast.store.group_commit import Caller, GroupsByKey

try:
    import psycopg
    from psycopg_pool import ConnectionPool, PoolTimeout

    from holdfast.store import postgres_purge
    from holdfast.store.postgres_alone import ALONE
except ImportError as error:
    raise MissingExtra.of("postgres") from error

POOL_SIZE = 10
_CLASHES = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)
# What undoes the append of one message, which then takes a transaction.
_REFUSALS = (*_CLASHES, psycopg.errors.NotNullViolation, psycopg.errors.UniqueViolation)
_LOCK = "SELECT space FROM spaces WHERE space = :space FOR UPDATE"
_KEEP = "UPDATE spaces SET docs = :doc WHERE space = :space"
_ADD_SPACE = "INSERT INTO spaces (space, epoch) VALUES (:space, 0) ON CONFLICT (space) DO NOTHING"


_Texts = Mapping[str, str | None]


class PostgreSQL(Database):
    """A PostgreSQL server through a pool; the tables live in the schema `holdfast`."""

    # Not to_regclass: within a transaction it may not see yet what was committed by another.
    find_versions = "SELECT 1 FROM pg_tables WHERE schemaname = 'holdfast' AND tablename = 'schema_version'"
    runs_alone = True
    before_migration = ("LOCK TABLE schema_version IN ACCESS EXCLUSIVE MODE",)

    def __init__(
        self, url: str, durability: Durability, key: bytes = b"", *, read_only: bool = False
    ) -> None:
        super().__init__(key, read_only=read_only)
        # Holds the connection of `one_read`, where a thread is in one.
        self._local = threading.local()
        self._appends = GroupsByKey(self._append_all)
        url, pooled = _read_url(url)
        settings = {
            "search_path": "holdfast",
            "synchronous_commit": "on" if durability == "full" else "off",
            "client_min_messages": "warning",
            "lock_timeout": f"{database.BUSY_SECONDS}s",
        }
        self._settings = "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in settings.items())
        # After a lock, a transaction must see what the one before has committed, whatever the server's
        # default.
        self._begin = f"BEGIN ISOLATION LEVEL READ COMMITTED READ {'ONLY' if read_only else 'WRITE'}"
        self._begin_read = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        self._pooled = self._prepare(url) or pooled
        session: dict[str, Any] = {"prepare_threshold": None}
        if self._pooled:
            # The next transaction may run in another session of the server: each takes its settings along.
            self._begin = f"{self._begin}; {self._settings}"
            self._begin_read = f"{self._begin_read}; {self._settings}"
        else:
            settings |= {
                "default_transaction_isolation": r"read\ committed",
                "default_transaction_read_only": "on" if read_only else "off",
            }
            session = {"options": " ".join(f"-c {name}={value}" for name, value in settings.items())}
        self._pool = ConnectionPool(
            url,
            kwargs={"autocommit": True, "client_encoding": "utf8", **session},
            min_size=1,
            max_size=POOL_SIZE,
            timeout=database.BUSY_SECONDS,
            open=True,
            name="holdfast",
        )

    def _prepare(self, url: str) -> bool:
        """Check the encoding, create the schema, and return whether a pooler stands in between."""
        try:
            with psycopg.connect(
                url, connect_timeout=10, autocommit=True, client_encoding="utf8", prepare_threshold=None
            ) as connection:
                encoding = connection.info.parameter_status("server_encoding")
                if encoding != "UTF8":
                    what = f"The database has the encoding {encoding}, which cannot hold every text."
                    raise Unavailable(what, "Create one with ENCODING 'UTF8'.")
                if not self.read_only:
                    self._make_schema(connection)
                # A pooler reports a process that is not the server's.
                pid = connection.execute("SELECT pg_backend_pid()").fetchone()
                return pid != (connection.info.backend_pid,)
        except psycopg.Error as error:
            raise _explain(error) from error

    def _make_schema(self, connection: psycopg.Connection) -> None:
        """Create the schema, and the table of versions, which serializes migrations."""
        for _ in range(database.TRIES):
            try:
                connection.execute(_constant(f"{self._begin}; {self._settings}"))
                # A role that may not create schemas can use an existing one.
                if connection.execute("SELECT to_regnamespace('holdfast')").fetchone() == (None,):
                    connection.execute("CREATE SCHEMA IF NOT EXISTS holdfast")
                if connection.execute("SELECT to_regclass('holdfast.schema_version')").fetchone() == (None,):
                    connection.execute(_constant(database.CREATE_VERSIONS))
                connection.commit()
            except psycopg.errors.UniqueViolation:
                # Another process created them at the same moment.
                connection.rollback()
            else:
                return

    def migrate(self) -> None:
        """See `Database.migrate`."""
        try:
            # A query that does not find the connection that is being made lets the pool make another one.
            self._pool.wait(database.BUSY_SECONDS)
        except PoolTimeout as error:
            raise _explain(error) from error
        super().migrate()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """See `Database.reading`."""
        held: _Connection | None = getattr(self._local, "held", None)
        if held is not None:
            self.check_open()
            yield held
            return
        with self._connection() as connection:
            yield _Reader(connection, self.key, self._begin if self._pooled else None)

    @contextmanager
    def one_read(self) -> Iterator[None]:
        """See `Database.one_read`."""
        if getattr(self._local, "held", None) is not None:
            yield
            return
        with self._connection() as connection:
            connection.execute(_constant(self._begin_read))
            self._local.held = _Connection(connection, self.key)
            try:
                # The pool ends the transaction.
                yield
            finally:
                self._local.held = None

    @contextmanager
    def writing(self, *, lasting: bool = True) -> Iterator[Connection]:
        """See `Database.writing`."""
        self.check_writable()
        begin = self._begin if lasting else f"{self._begin}; SET LOCAL synchronous_commit = off"
        with self._connection() as connection:
            if self._migrated:
                # In one message. A migration waits for the end of who has read the version.
                cursor = connection.execute(_constant(f"{begin}; {database.SCHEMA_VERSION}"))
                while cursor.nextset():
                    pass
                self.check_schema(next(cursor)[0])
            else:
                connection.execute(_constant(begin))
            yield _Connection(connection, self.key)

    def run_alone(self, statement: str, values: Mapping[str, Value]) -> Row:
        """See `Database.run_alone`. Threads that append to a space at the same time share a commit."""
        self.check_writable()
        # As texts: the driver would give numbers types by their sizes, and prepare a statement for each.
        texts = {name: None if value is None else str(value) for name, value in values.items()}
        texts["schema"] = str(self._migrated)
        # A receipt waits for no disk; why the main thread takes no part, SQLite's `write_together` says.
        if statement != "append" or threading.get_ident() == threading.main_thread().ident:
            return self._run_alone(ALONE[statement], [texts])[0]
        row: Row = self._appends.run(values["space"], texts)
        return row

    def _append_all(self, callers: Iterator[Caller[_Texts]]) -> None:
        group = list(callers)
        rows = self._run_alone(ALONE["append"], [caller.work for caller in group])
        for caller, row in zip(group, rows, strict=True):
            caller.result = row

    def _run_alone(self, sql: str, group: Sequence[_Texts]) -> list[Row]:
        """Run a statement with each of some values in one transaction; refused are all, or none."""
        with self._connection() as connection:
            if self._pooled or len(group) > 1:
                connection.execute(_constant(self._begin))
            try:
                run = _Connection(connection, b"")
                return [next(iter(run.all(sql, **texts)), ()) for texts in group]
            except (*_REFUSALS, psycopg.errors.FeatureNotSupported) as error:
                # A cluster may refuse every statement that changes several tables.
                self.runs_alone = isinstance(error, _REFUSALS)
                return [()] * len(group)

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection]:
        self.check_open()
        connection = None
        try:
            # Commits at its end, or rolls back.
            with self._pool.connection() as connection:
                yield connection
        except (psycopg.Error, PoolTimeout) as error:
            # It may have been closed in the meantime.
            self.check_open()
            if connection is not None and connection.broken:
                # The others may have been lost as well.
                self._pool.check()
            raise _explain(error) from error

    def close(self) -> None:
        """See `Database.close`."""
        if not self._closed:
            self._closed = True
            # The connections of a parent process stay open.
            if os.getpid() == self._process:
                self._pool.close()

    def copy(self, path: str) -> None:
        """See `Database.copy`."""
        raise InvalidInput(
            f"Cannot copy a PostgreSQL database into {path!r}.",
            "Use pg_dump --schema=holdfast, or `holdfast export --all` for one user.",
        )

    def purge(self, *, rewrite: bool) -> PurgeResult:
        """See `Database.purge`. The server's own logs, replicas and backups are up to its administrator."""
        self.check_writable()
        with self._connection() as connection:
            return postgres_purge.purge(connection, rewrite=rewrite)


class _Connection:
    """A connection within a transaction."""

    def __init__(self, connection: psycopg.Connection, key: bytes) -> None:
        self._connection = connection
        self.key = key

    def all(self, sql: str, **values: Value) -> list[Row]:
        """See `Connection.all`."""
        cursor = self._connection.execute(_pyformat(sql), values, binary=True)
        return cursor.fetchall() if cursor.description else []

    def all_large(self, columns: str, large: str, source: str, /, **values: Value) -> list[Row]:
        """See `Reader.all_large`."""
        return self.all(f"SELECT {columns}, {large} FROM {source}", **values)

    def many(self, sql: str, rows: Iterable[Mapping[str, Value]]) -> None:
        """See `Connection.many`."""
        with self._connection.cursor() as cursor:
            cursor.executemany(_pyformat(sql), rows)

    def add_messages(self, sql: str, rows: Sequence[Mapping[str, Value]]) -> None:
        """See `Connection.add_messages`. The last number is kept for `run_alone`."""
        self.many(sql, rows)
        self.all(_KEEP, space=rows[-1]["space"], doc=rows[-1]["doc"])

    def lock(self, space: str) -> None:
        """See `Connection.lock`. A row lock, because a cluster shares no others among its nodes."""
        if not self.all(_LOCK, space=space):
            self.all(_ADD_SPACE, space=space)
            self.all(_LOCK, space=space)


class _Reader(_Connection):
    """A connection for single queries. Behind a pooler each is a transaction with its own settings."""

    def __init__(self, connection: psycopg.Connection, key: bytes, begin: str | None) -> None:
        super().__init__(connection, key)
        self._begin = begin

    def all(self, sql: str, **values: Value) -> list[Row]:
        """See `Connection.all`. A query that clashes with others is run again."""
        for _ in range(database.TRIES - 1):
            try:
                return self._all(sql, **values)
            except _CLASHES:
                self._connection.rollback()
        return self._all(sql, **values)

    def _all(self, sql: str, **values: Value) -> list[Row]:
        if self._begin is None:
            return super().all(sql, **values)
        # One by one: of statements sent together a pooler may miss the end, and keep the session of the
        # server.
        self._connection.execute(_constant(self._begin))
        rows = super().all(sql, **values)
        self._connection.execute("COMMIT")
        return rows


@cache
def _pyformat(sql: str) -> Any:
    return re.sub(r"(?<![:\w]):([a-z]\w*)", r"%(\1)s", sql.replace("%", "%%"))


def _constant(sql: str) -> bytes:
    """Return a statement made of constants as the literal that the driver's types require."""
    return sql.encode()


def _read_url(url: str) -> tuple[str, bool]:
    """Split `pooled=true`, which is ours, off a URL. No error repeats the URL: it may have the password.

    Raises:
        InvalidInput: `pooled` has another value.
        Unavailable: it is not a URL of PostgreSQL.

    """
    address, _, query = url.partition("?")
    parts = [part for part in query.split("&") if part]
    own = [part for part in parts if part.startswith("pooled")]
    if set(own) - {"pooled=true"}:
        raise InvalidInput(
            "`pooled` in the URL has another value than true.", "Write pooled=true, or omit it."
        )
    url = "?".join([address, "&".join(part for part in parts if part not in own)]).removesuffix("?")
    server, _, name = address.partition("://")[2].partition("/")
    # The message of the driver has parts of the URL in it.
    with suppress(psycopg.ProgrammingError):
        ports = psycopg.conninfo.conninfo_to_dict(url).get("port") or ""
        if server.count("@") <= 1 and "@" not in name and re.fullmatch(r"[\d,]*", str(ports)):
            return url, bool(own)
    raise Unavailable(
        "The URL of the PostgreSQL server cannot be read.",
        "Check the URL, postgresql://user:password@host:port/database: characters other than letters, digits "
        "and -._~ in a name or a password are written as % and two digits, @ as %40.",
    )


_URL = "Check the URL, that the server runs and accepts connections, and that this user may use the database."
_RESTORE = "Restore a backup."
_LOCKED = "A lock that another transaction holds was not free in time"
_GRANT = "Grant it the use of the schema `holdfast` and of its tables."
# By the beginning of the SQLSTATE, or by several.
_ERRORS: tuple[tuple[str | tuple[str, ...], type[HoldfastError], str, str], ...] = (
    ("55P03", Unavailable, _LOCKED, "Try again when it has ended."),
    ("23", Damaged, "Stored values contradict each other", "Run `verify`, and restore a backup."),
    ("42501", Unavailable, "This user lacks a privilege", _GRANT),
    (("42P0", "427", "428", "3F"), Damaged, "The schema is not that of a Holdfast database", _RESTORE),
    ("XX00", Damaged, "The server finds its files damaged", _RESTORE),
    ("25006", Unavailable, "The server is read-only", "Use the URL of the one that writes."),
    ("53", Unavailable, "The server lacks disk space, memory or connections", "Give it more, and retry."),
    ("57", Unavailable, "The server interrupted the statement", "Try again when it accepts connections."),
    ("08", Unavailable, "The server cannot be reached", _URL),
    ("28", Unavailable, "The server rejects this user", _URL),
    ("3D", Unavailable, "The server does not have this database", _URL),
    ("", Unavailable, "The server reported an error", "Look at the server's log for the reason."),
)


def _explain(error: Exception) -> HoldfastError:
    text = " ".join(str(error).split())
    if isinstance(error, _CLASHES):
        return SerializationFailure(
            f"Others changed the same rows at the same time, {database.TRIES} times in a row ({text}).",
            "Try again.",
        )
    state: str | None = getattr(error, "sqlstate", None)
    if state is None:
        # It comes from the connection, not from the server.
        return Unavailable(f"PostgreSQL cannot be reached ({text}).", _URL)
    kind, what, todo = next(each[1:] for each in _ERRORS if state.startswith(each[0]))
    return kind(f"{what} ({text}).", todo)
