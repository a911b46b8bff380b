"""PostgreSQL: a server, through a pool of connections."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from holdfast.errors import Damaged, HoldfastError, InvalidInput, MissingExtra, Unavailable
from holdfast.store import database
from holdfast.store.database import Clash, Connection, Database, Durability, Purged, Row, Value

try:
    import psycopg
    from psycopg_pool import ConnectionPool, PoolTimeout
except ImportError as error:
    raise MissingExtra.of("postgres") from error

POOL_SIZE = 10
# The tables that may hold words, or what tells of them.
_WORDS = "messages, calls, sessions, segments, records, summaries, uses, snapshots, runs, pads, jobs, watermarks, heard, spend, verdicts, imports, receipts"
_CLASHES = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)
_LOCK = "SELECT space FROM spaces WHERE space = :space FOR UPDATE"
_ADD_SPACE = "INSERT INTO spaces (space, epoch) VALUES (:space, 0) ON CONFLICT (space) DO NOTHING"


class PostgreSQL(Database):
    """A PostgreSQL server through a pool; the tables live in the schema `holdfast`."""

    def __init__(self, url: str, durability: Durability, key: bytes = b"") -> None:
        super().__init__(key)
        self._local = threading.local()  # the connection of `one_read`, where a thread is in one
        url, pooled = _read_url(url)
        settings = {
            "search_path": "holdfast",
            "synchronous_commit": "on" if durability == "full" else "off",
            "client_min_messages": "warning",
            "lock_timeout": f"{database.BUSY_SECONDS}s",
        }
        self._settings = "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in settings.items())
        # Who was let through a lock must see what the one before has committed, whatever the server's default.
        self._begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
        self._begin_read = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        self._pooled = self._prepare(url) or pooled
        for_session: dict[str, Any] = {"prepare_threshold": None}
        if (
            self._pooled
        ):  # the next transaction may run in another session of the server: each takes its settings along
            self._begin = f"{self._begin}; {self._settings}"
            self._begin_read = f"{self._begin_read}; {self._settings}"
        else:
            isolation = {
                "default_transaction_isolation": r"read\ committed",
                "default_transaction_read_only": "off",
            }
            options = " ".join(f"-c {name}={value}" for name, value in (settings | isolation).items())
            for_session = {"options": options}
        self._pool = ConnectionPool(
            url,
            kwargs={"autocommit": True, "client_encoding": "utf8", **for_session},
            min_size=1,
            max_size=POOL_SIZE,
            timeout=database.BUSY_SECONDS,
            open=True,
            name="holdfast",
        )

    def _prepare(self, url: str) -> bool:
        """See that the server can hold every text and has our schema; return whether a pooler stands in between."""
        try:
            with psycopg.connect(
                url, connect_timeout=10, autocommit=True, client_encoding="utf8", prepare_threshold=None
            ) as connection:
                encoding = connection.info.parameter_status("server_encoding")
                if encoding != "UTF8":
                    raise Unavailable(
                        f"The database has the encoding {encoding}, which cannot hold every text.",
                        "Create one with ENCODING 'UTF8'.",
                    )
                self._make_schema(connection)
                # A pooler answers in the name of a session that is not the server's.
                pid = connection.execute("SELECT pg_backend_pid()").fetchone()
                return pid != (connection.info.backend_pid,)
        except psycopg.Error as error:
            raise _explain(error) from error

    def _make_schema(self, connection: psycopg.Connection) -> None:
        """Make the schema and the table of versions, by which migrations of several processes stand in a line."""
        for _ in range(database.TRIES):
            try:
                connection.execute(_constant(f"{self._begin}; {self._settings}"))
                # Who may not create schemas can use one that is there.
                if connection.execute("SELECT to_regnamespace('holdfast')").fetchone() == (None,):
                    connection.execute("CREATE SCHEMA IF NOT EXISTS holdfast")
                if connection.execute("SELECT to_regclass('holdfast.schema_version')").fetchone() == (None,):
                    connection.execute(_constant(database.VERSIONS))
                connection.commit()
            except psycopg.errors.UniqueViolation:  # another process made them at this very moment
                connection.rollback()
            else:
                return

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
                yield  # the pool ends the transaction
            finally:
                self._local.held = None

    @contextmanager
    def writing(self, *, lasting: bool = True) -> Iterator[Connection]:
        """See `Database.writing`."""
        begin = self._begin if lasting else f"{self._begin}; SET LOCAL synchronous_commit = off"
        with self._connection() as connection:
            connection.execute(_constant(begin))
            yield _Connection(connection, self.key)

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection]:
        self.check_open()
        connection = None
        try:
            with self._pool.connection() as connection:  # commits at its end, or rolls back
                yield connection
        except (psycopg.Error, PoolTimeout) as error:
            self.check_open()  # it may have been closed in the meantime
            if connection is not None and connection.broken:
                self._pool.check()  # the others may have been lost as well
            raise _explain(error) from error

    def close(self) -> None:
        """See `Database.close`."""
        if not self._closed:
            self._closed = True
            if os.getpid() == self._process:  # the connections of a parent are the parent's
                self._pool.close()

    def copy(self, path: str) -> None:
        """See `Database.copy`."""
        raise InvalidInput(
            f"A PostgreSQL server is not copied into {path!r}.",
            "Use pg_dump --schema=holdfast, or `holdfast export --all` for one user.",
        )

    def purge(self, *, rewrite: bool) -> Purged:
        """See `Database.purge`. The server's own logs, replicas and backups are its administrator's."""
        tables = [f"holdfast.{table}" for table in _WORDS.split(", ")]
        with self._connection() as connection:
            remains = _vacuum(connection, tables, _ERASED, "FULL, ANALYZE" if rewrite else "FREEZE, ANALYZE")
            remains |= _forget_emptied(connection, tables)
            if rewrite:
                left = _vacuum(connection, ["pg_catalog.pg_statistic"], _NOW, "FULL")
                remains |= dict.fromkeys([_STATISTICS] if left else [], " ".join(left.values()))
        done = not remains
        if not rewrite:
            remains |= {
                "files": "PostgreSQL frees the room of deleted rows and does not overwrite it; `rewrite=True` does"
            }
        parts = [*_WORDS.split(", "), _STATISTICS] if rewrite else []
        return Purged(tuple(part for part in parts if part not in remains), remains, done)

    def has_table(self, connection: Connection, table: str) -> bool:
        """See `Database.has_table`."""
        # Not to_regclass: within a transaction it may not see yet what was committed by another.
        sql = "SELECT 1 FROM pg_tables WHERE schemaname = 'holdfast' AND tablename = :table"
        return bool(connection.all(sql, table=table))


_STATISTICS = "planner statistics"
# The transaction of the newest erasure, which wrote this row; and one that is newer than all before it.
_ERASED = "SELECT xmin::text FROM holdfast.spaces WHERE space = '*'"
_NOW = "SELECT pg_current_xact_id()::xid::text"
# A table that was vacuumed has no row any more that was deleted before its `relfrozenxid`. That tells what the command
# itself does not: whether somebody may still see such rows, and so they had to stay.
_LEFT = """
    SELECT c.relname, pg_has_role(c.relowner, 'USAGE') OR pg_has_role(d.datdba, 'USAGE')
    FROM pg_class c LEFT JOIN pg_class t ON t.oid = c.reltoastrelid JOIN pg_database d ON d.datname = current_database()
    WHERE c.oid = ANY (%(tables)s::regclass[]) AND c.relkind = 'r'
    AND greatest(age(c.relfrozenxid), age(t.relfrozenxid)) >= age(%(since)s::xid)"""
_SAMPLED = """
    SELECT c.oid::regclass::text, a.attname, format_type(a.atttypid, a.atttypmod)
    FROM pg_stats s JOIN pg_class c ON c.oid = to_regclass(format('%%I.%%I', s.schemaname, s.tablename))
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = s.attname
    WHERE c.oid = ANY (%(tables)s::regclass[]) AND c.reltuples = 0 AND pg_has_role(c.relowner, 'USAGE')"""


def _vacuum(connection: psycopg.Connection, tables: Sequence[str], since: str, how: str) -> dict[str, str]:
    """Vacuum tables, and name those that may still have rows which a transaction deleted, each with the reason."""
    values: dict[str, Any] = {"tables": tables, "since": connection.execute(since.encode()).fetchall()[0][0]}
    remains: dict[str, str] = {}
    _wait_for_others(connection, values)
    for table in tables:
        try:
            connection.execute(f"VACUUM ({how}) {table}".encode())
        except psycopg.Error as error:
            if connection.broken:
                raise
            remains[table.partition(".")[2]] = " ".join(str(error).split())
    for table, owned in connection.execute(_LEFT, values):
        why = (
            "a transaction that is older than the erasure is still open, here, on a replica or prepared"
            if owned
            else "this role owns neither the table nor the database, and may not vacuum it"
        )
        remains.setdefault(table, why)
    return remains


def _wait_for_others(connection: psycopg.Connection, values: Mapping[str, Any]) -> None:
    """Wait until nobody can see what was deleted; a table of a few rows tells."""
    table = "holdfast.schema_version"
    deadline = time.monotonic() + database.BUSY_SECONDS
    while time.monotonic() < deadline:
        connection.execute(f"VACUUM (FREEZE) {table}".encode())
        held = connection.execute(_LEFT, {**values, "tables": [table]}).fetchone()
        if held is None or not held[1]:
            return
        time.sleep(0.05)


def _forget_emptied(connection: psycopg.Connection, tables: Sequence[str]) -> dict[str, str]:
    """Drop what the planner has sampled of tables that are empty now, since ANALYZE leaves it as it is."""
    try:
        for table, column, kind in connection.execute(_SAMPLED, {"tables": tables}).fetchall():
            # To the type that it has: no row is written, and what was sampled of the column is removed.
            connection.execute(f'ALTER TABLE {table} ALTER COLUMN "{column}" TYPE {kind}'.encode())
    except psycopg.errors.LockNotAvailable as error:
        return {_STATISTICS: " ".join(str(error).split())}
    return {}


class _Connection:
    def __init__(self, connection: psycopg.Connection, key: bytes) -> None:
        self._connection = connection
        self.key = key

    def all(self, sql: str, **values: Value) -> list[Row]:
        """See `Connection.all`."""
        return _rows(self._connection.execute(_pyformat(sql), values, binary=True))

    def many(self, sql: str, rows: Iterable[Mapping[str, Value]]) -> None:
        """See `Connection.many`."""
        with self._connection.cursor() as cursor:
            cursor.executemany(_pyformat(sql), rows)

    def lock(self, space: str) -> None:
        """See `Connection.lock`. A row, because a cluster keeps its rows, and not other locks, for all nodes."""
        if not self.all(_LOCK, space=space):
            self.all(_ADD_SPACE, space=space)
            self.all(_LOCK, space=space)


class _Reader(_Connection):
    """Run queries, each on its own. Behind a pooler each is a transaction, which brings its settings along."""

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
        # One after the other: of what is sent at once, a pooler may miss the end, and keep the session of the server.
        self._connection.execute(_constant(self._begin))
        rows = super().all(sql, **values)
        self._connection.execute("COMMIT")
        return rows


def _rows(cursor: psycopg.Cursor) -> list[Row]:
    return cursor.fetchall() if cursor.description else []


@cache
def _pyformat(sql: str) -> Any:
    return re.sub(r"(?<![:\w]):([a-z]\w*)", r"%(\1)s", sql.replace("%", "%%"))


def _constant(sql: str) -> bytes:
    """Let a statement that is made of constants pass for the literal that the driver's types ask for."""
    return sql.encode()


def _read_url(url: str) -> tuple[str, bool]:
    """Take `pooled=true`, which is ours, out of a URL. No error repeats a part of one that may be cut in the wrong place.

    Raises:
        InvalidInput: `pooled` has another value.
        Unavailable: it is not a URL of PostgreSQL.

    """
    address, _, query = url.partition("?")
    parts = [part for part in query.split("&") if part]
    ours = [part for part in parts if part.startswith("pooled")]
    if set(ours) - {"pooled=true"}:
        raise InvalidInput("`pooled` in the URL is not true.", "Write pooled=true, or leave it out.")
    url = "?".join([address, "&".join(part for part in parts if part not in ours)]).removesuffix("?")
    server, _, name = address.partition("://")[2].partition("/")
    try:
        ports = psycopg.conninfo.conninfo_to_dict(url).get("port") or ""
        if server.count("@") <= 1 and "@" not in name and re.fullmatch(r"[\d,]*", str(ports)):
            return url, bool(ours)
    except psycopg.ProgrammingError:
        pass  # what it says has parts of the URL in it
    raise Unavailable(
        "The URL of the PostgreSQL server cannot be read.",
        "Check the URL, postgresql://user:password@host:port/database: other characters than letters, digits and -._~ "
        "in a name or a password are written as % and two digits, @ as %40.",
    )


_URL = "Check the URL, that the server runs and accepts connections, and that this user may use the database."
_OTHER_SCHEMA, _RESTORE = "The schema is not that of a Holdfast database", "Restore a backup."
_ERRORS: tuple[tuple[str, type[HoldfastError], str, str], ...] = (
    (
        "55P03",
        Unavailable,
        "A lock that another transaction holds was not free in time",
        "Try again when it has ended.",
    ),
    ("23", Damaged, "What is stored contradicts itself", "Run `verify`, and restore a backup."),
    (
        "42501",
        Unavailable,
        "This user may not do that",
        "Grant it the use of the schema `holdfast` and of its tables.",
    ),
    ("42P0", Damaged, _OTHER_SCHEMA, _RESTORE),
    ("427", Damaged, _OTHER_SCHEMA, _RESTORE),
    ("428", Damaged, _OTHER_SCHEMA, _RESTORE),
    ("3F", Damaged, _OTHER_SCHEMA, _RESTORE),
    ("XX00", Damaged, "The server finds its files damaged", "Restore a backup."),
    ("25006", Unavailable, "The server only reads", "Use the URL of the one that writes."),
    ("53", Unavailable, "The server is out of room, memory or connections", "Give it more, then try again."),
    ("57", Unavailable, "The server did not let it go on", "Try again when it accepts connections."),
    ("08", Unavailable, "The server cannot be reached", _URL),
    ("28", Unavailable, "The server does not let this user in", _URL),
    ("3D", Unavailable, "The server does not have this database", _URL),
    ("", Unavailable, "The server did not do what was asked", "Look at the server's log for the reason."),
)


def _explain(error: Exception) -> HoldfastError:
    text = " ".join(str(error).split())
    if isinstance(error, _CLASHES):
        return Clash(
            f"Others changed the same rows at the same time, {database.TRIES} times in a row ({text}).",
            "Try again.",
        )
    state: str | None = getattr(error, "sqlstate", None)
    if state is None:  # it comes from the connection, not from the server
        return Unavailable(f"PostgreSQL cannot be reached ({text}).", _URL)
    kind, what, todo = next(each[1:] for each in _ERRORS if state.startswith(each[0]))
    return kind(f"{what} ({text}).", todo)
