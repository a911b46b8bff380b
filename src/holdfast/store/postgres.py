"""PostgreSQL: a server, through a pool of connections."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from holdfast.errors import Damaged, HoldfastError, MissingExtra, Unavailable
from holdfast.store import database
from holdfast.store.database import Connection, Database, Durability, Row, Value

try:
    import psycopg
    from psycopg_pool import ConnectionPool, PoolTimeout
except ImportError as error:
    raise MissingExtra("PostgreSQL needs psycopg.", "Run: pip install 'holdfast[postgres]'.") from error

POOL_SIZE = 10
# The tables that may hold words, or what tells of them.
_WORDS = "messages, calls, sessions, segments, records, summaries, uses, snapshots, runs, pads, jobs, watermarks, heard, spend, verdicts"


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

    def purge(self) -> None:
        """See `Database.purge`. The server's own logs and backups are its administrator's."""
        with self._connection() as connection:
            connection.execute(f"VACUUM {_WORDS}")

    def has_table(self, connection: Connection, table: str) -> bool:
        """See `Database.has_table`."""
        # Not to_regclass: within a transaction it may not see yet what was committed by another.
        sql = "SELECT 1 FROM pg_tables WHERE schemaname = 'holdfast' AND tablename = :table"
        return bool(connection.all(sql, table=table))

    def lock_schema(self, tx: Connection) -> None:
        """See `Database.lock_schema`."""
        tx.all("SELECT pg_advisory_xact_lock(hashtext('holdfast migrations'))")


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
