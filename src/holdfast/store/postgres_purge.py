"""Purging PostgreSQL of deleted rows, and proving that they are gone."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from holdfast.store import database
from holdfast.store.database import PurgeResult
from holdfast.store.schema import tables

# The tables that may hold text of users, or what refers to it.
PERSONAL = [table for table in tables() if table not in ("spaces", "erasures")]
_STATISTICS = "planner statistics"
# The transaction of the newest erasure, which wrote this row; and one newer than all others.
_ERASED = "SELECT xmin::text FROM holdfast.spaces WHERE space = '*'"
_NOW = "SELECT pg_current_xact_id()::xid::text"
# A vacuumed table has no row that was deleted before its `relfrozenxid`. The command itself does not report
# rows that had to stay because a transaction may still see them.
_LEFT = """
    SELECT c.relname, pg_has_role(c.relowner, 'USAGE') OR pg_has_role(d.datdba, 'USAGE')
    FROM pg_class c LEFT JOIN pg_class t ON t.oid = c.reltoastrelid
    JOIN pg_database d ON d.datname = current_database()
    WHERE c.oid = ANY (%(tables)s::regclass[]) AND c.relkind = 'r'
    AND greatest(age(c.relfrozenxid), age(t.relfrozenxid)) >= age(%(since)s::xid)"""
_SAMPLED = """
    SELECT c.oid::regclass::text, a.attname, format_type(a.atttypid, a.atttypmod)
    FROM pg_stats s JOIN pg_class c ON c.oid = to_regclass(format('%%I.%%I', s.schemaname, s.tablename))
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = s.attname
    WHERE c.oid = ANY (%(tables)s::regclass[]) AND c.reltuples = 0 AND pg_has_role(c.relowner, 'USAGE')"""


def purge(connection: psycopg.Connection, *, rewrite: bool) -> PurgeResult:
    """Vacuum the tables that may hold text of users; with `rewrite`, rewrite them and planner statistics."""
    tables = [f"holdfast.{table}" for table in PERSONAL]
    remains = _vacuum(connection, tables, _ERASED, "FULL, ANALYZE" if rewrite else "FREEZE, ANALYZE")
    remains |= _forget_emptied(connection, tables)
    if not rewrite:
        done = not remains
        remains["files"] = (
            "PostgreSQL frees the space of deleted rows without overwriting it; `rewrite=True` does"
        )
        return PurgeResult((), remains, done)
    if left := _vacuum(connection, ["pg_catalog.pg_statistic"], _NOW, "FULL"):
        remains[_STATISTICS] = " ".join(left.values())
    rewritten = tuple(part for part in (*PERSONAL, _STATISTICS) if part not in remains)
    return PurgeResult(rewritten, remains, not remains)


def _vacuum(connection: psycopg.Connection, tables: Sequence[str], since: str, how: str) -> dict[str, str]:
    """Vacuum tables, and return those that may still have deleted rows, each with the reason."""
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
    """Wait until no transaction can see deleted rows, as VACUUM of a small table shows."""
    table = "holdfast.schema_version"
    deadline = time.monotonic() + database.BUSY_SECONDS
    while time.monotonic() < deadline:
        connection.execute(f"VACUUM (FREEZE) {table}".encode())
        held = connection.execute(_LEFT, {**values, "tables": [table]}).fetchone()
        if held is None or not held[1]:
            return
        time.sleep(0.05)


def _forget_emptied(connection: psycopg.Connection, tables: Sequence[str]) -> dict[str, str]:
    """Drop the planner statistics of tables that are empty now; ANALYZE does not."""
    try:
        for table, column, kind in connection.execute(_SAMPLED, {"tables": tables}).fetchall():
            # The type stays the same: no row is written, and the statistics of the column are removed.
            connection.execute(f'ALTER TABLE {table} ALTER COLUMN "{column}" TYPE {kind}'.encode())
    except psycopg.errors.LockNotAvailable as error:
        return {_STATISTICS: " ".join(str(error).split())}
    return {}
