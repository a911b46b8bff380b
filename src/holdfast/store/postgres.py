"""PostgreSQL: a server, through a pool of connections."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from holdfast.errors import Damaged, HoldfastError, MissingExtra, Unavailable
from holdfast.store import database
from holdfast.store.database import Connection, Database, Durability, Purged, Row, Value

try:
    import psycopg
    from psycopg_pool import ConnectionPool, PoolTimeout
except ImportError as error:
    raise MissingExtra("PostgreSQL needs psycopg.", "Run: pip install 'holdfast[postgres]'.") from error

POOL_SIZE = 10
# The tables that may hold words, or what tells of them.
_WORDS = "messages, calls, sessions, segments, records, summaries, uses, snapshots, runs, pads, jobs, watermarks, heard, spend"


class PostgreSQL(Database):
    """A PostgreSQL server through a pool; the tables live in the schema `holdfast`."""

    def __init__(self, url: str, durability: Durability) -> None:
        super().__init__()
        commit = "on" if durability == "full" else "off"
        settings: dict[str, Any] = {
            "autocommit": True,
            "client_encoding": "utf8",
            "options": f"-c search_path=holdfast -c synchronous_commit={commit} -c client_min_messages=warning "
            f"-c lock_timeout={database.BUSY_SECONDS}s "
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
            raise _explain(error) from error
        self._pool = ConnectionPool(
            url,
            kwargs=settings,
            min_size=1,
            max_size=POOL_SIZE,
            timeout=database.BUSY_SECONDS,
            open=True,
            name="holdfast",
        )

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """See `Database.reading`."""
        with self._connection() as connection:
            yield _Connection(connection)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """See `Database.writing`."""
        with self._connection() as connection, connection.transaction():
            yield _Connection(connection)

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection]:
        self.check_open()
        connection = None
        try:
            with self._pool.connection() as connection:
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

    def lock_schema(self, tx: Connection) -> None:
        """See `Database.lock_schema`."""
        tx.all("SELECT pg_advisory_xact_lock(hashtext('holdfast migrations'))")


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


def _explain(error: Exception) -> HoldfastError:
    text = " ".join(str(error).split())
    if getattr(error, "sqlstate", None) in {"42P01", "42703"}:  # there is no such table, or no such column
        return Damaged(f"The schema is not that of a Holdfast database ({text}).", "Restore a backup.")
    return Unavailable(
        f"PostgreSQL did not do what was asked ({text}).",
        "Check the URL, that the server runs and accepts connections, and that this user may create and write tables.",
    )
