"""The schema: made at once, brought up to date by migrations, each of them whole or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier, local
from typing import Any

import psycopg
import pytest

from frozen_database import thaw
from holdfast import HoldfastError, Memory, NewerSchema, UnreleasedSchema
from holdfast.store import database, schema
from holdfast.store.schema import FIRST, NEWEST, split_statements
from programs import run_together


def query(location: str, sql: str, *, schema: str = "holdfast") -> list[tuple[Any, ...]]:
    """Ask a database directly."""
    if location.startswith("postgresql:"):
        with psycopg.connect(location, options=f"-c search_path={schema}", autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []
    with closing(sqlite3.connect(location, isolation_level=None)) as connection:
        return connection.execute(sql).fetchall()


def version(location: str) -> int:
    return int(query(location, "SELECT max(version) FROM schema_version")[0][0])


def columns(location: str, table: str) -> list[str]:
    if location.startswith("postgresql:"):
        names = (
            f"SELECT column_name FROM information_schema.columns WHERE table_schema = 'holdfast' AND "
            f"table_name = '{table}'"
        )
    else:
        names = f"SELECT name FROM pragma_table_info('{table}')"
    return [row[0] for row in query(location, names)]


@pytest.fixture
def postgres_url(bare_postgres_url: str) -> str:
    """Let all tests of this file begin without our tables."""
    return bare_postgres_url


@pytest.fixture
def filled(shared_location: str) -> str:
    """A database with one chat in it."""
    with Memory(shared_location, user="ada") as memory:
        memory.chat("monday").append(role="user", content="hello")
    return shared_location


def with_migrations(monkeypatch: pytest.MonkeyPatch, *scripts: Sequence[str]) -> None:
    added = {number: "".join(f"{one};\n" for one in each) for number, each in enumerate(scripts, NEWEST + 1)}
    monkeypatch.setattr(database, "MIGRATIONS", added)
    for module in (database, schema):
        monkeypatch.setattr(module, "NEWEST", NEWEST + len(scripts))


# The schema


def sqlite_catalog(location: str) -> list[list[tuple[Any, ...]]]:
    tables = "(SELECT name AS tbl FROM sqlite_master WHERE type = 'table')"
    return [
        query(location, sql)
        for sql in (
            "SELECT type, name, tbl_name FROM sqlite_master ORDER BY 1, 2",
            f"SELECT tbl, c.* FROM {tables}, pragma_table_xinfo(tbl) c ORDER BY tbl, cid",
            (
                f"SELECT tbl, i.*, c.* FROM {tables}, pragma_index_list(tbl) i, pragma_index_xinfo(i.name) c "
                f"ORDER BY 1, 3, 7"
            ),
        )
    ]


def test_what_0_1_wrote_is_brought_to_the_schema_of_a_new_database(tmp_path: Path) -> None:
    for path in (thaw(tmp_path), tmp_path / "new.db"):
        Memory(path).close()
    assert sqlite_catalog(str(tmp_path / "0.1.db")) == sqlite_catalog(str(tmp_path / "new.db"))


TYPES = {"text": "TEXT", "bigint": "BIGINT", "bytea": "BYTEA"}
SQLITE_COLUMNS = """SELECT m.name, c.name, c.type, c."notnull", c.dflt_value
FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'"""
POSTGRES_COLUMNS = """SELECT table_name, column_name, data_type, is_nullable, column_default
FROM information_schema.columns WHERE table_schema = 'holdfast'"""
SQLITE_INDEXES = """SELECT m.name, i."unique", i.partial, (
    SELECT group_concat(name, ', ') FROM (SELECT name FROM pragma_index_info(i.name) ORDER BY seqno))
FROM sqlite_master m, pragma_index_list(m.name) i WHERE m.type = 'table'"""
POSTGRES_INDEXES = """SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'holdfast'"""


def test_both_databases_have_the_same_tables_columns_and_indexes(tmp_path: Path, postgres_url: str) -> None:
    file = str(tmp_path / "new.db")
    for location in (file, postgres_url):
        Memory(location).close()
    columns = [
        (table, name, TYPES[kind], int(nullable == "NO"), default and default.partition("::")[0])
        for table, name, kind, nullable, default in query(postgres_url, POSTGRES_COLUMNS)
    ]
    assert sorted(query(file, SQLITE_COLUMNS)) == sorted(columns)
    indexes = [
        (table, int("UNIQUE" in made), int(" WHERE " in made), made.partition("(")[2].partition(")")[0])
        for table, made in query(postgres_url, POSTGRES_INDEXES)
    ]
    assert sorted(query(file, SQLITE_INDEXES)) == sorted(indexes)


def test_the_tables_on_postgresql_stand_in_a_schema_of_their_own(own_postgres_url: str) -> None:
    query(own_postgres_url, "CREATE TABLE messages (mine TEXT)", schema="public")
    with Memory(own_postgres_url) as memory:
        memory.chat("monday").append(role="user", content="hello")
    assert query(own_postgres_url, "SELECT * FROM messages", schema="public") == []


def test_a_script_is_split_at_the_ends_of_its_statements() -> None:
    script = "-- a; b\nCREATE TABLE a (\n  x TEXT  -- no; end\n);\n\nINSERT INTO a VALUES ('x;\ny');\n"
    assert [statement.splitlines()[-1] for statement in split_statements(script)] == [");", "y');"]


# Opening


def test_opening_again_changes_nothing(filled: str) -> None:
    before = query(filled, "SELECT * FROM schema_version")
    assert version(filled) == NEWEST
    Memory(filled).close()
    assert query(filled, "SELECT * FROM schema_version") == before


MOODS = "CREATE TABLE moods (space TEXT NOT NULL)"


def test_an_older_database_is_brought_up_to_date(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_migrations(monkeypatch, ["ALTER TABLE messages ADD COLUMN mood TEXT", MOODS])
    with Memory(filled, user="ada") as memory:
        memory.chat("monday").append(role="user", content="again")
        assert [message.content for message in memory.chat("monday").history()] == ["hello", "again"]
        assert memory.verify().problems == ()
    assert version(filled) == NEWEST + 1
    assert (columns(filled, "messages")[-1], columns(filled, "moods")) == ("mood", ["space"])


def test_a_new_database_needs_no_migration(shared_location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_migrations(monkeypatch, [MOODS])
    Memory(shared_location).close()
    assert (version(shared_location), columns(shared_location, "moods")) == (NEWEST + 1, [])


BROKEN = [MOODS, "INSERT INTO moods (space) VALUES ('x')", "CREATE TABLE ("]


def test_a_migration_that_fails_leaves_nothing_behind(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        with_migrations(patch, BROKEN)
        with pytest.raises((HoldfastError, sqlite3.Error)):
            Memory(filled)
    assert (version(filled), columns(filled, "moods")) == (NEWEST, [])
    with Memory(filled, user="ada") as memory:
        assert memory.chat("monday").stats().messages == 1
    # What was migrated before one that fails stays.
    with_migrations(monkeypatch, ["ALTER TABLE messages ADD COLUMN mood TEXT"], BROKEN)
    with pytest.raises((HoldfastError, sqlite3.Error)):
        Memory(filled)
    assert (version(filled), columns(filled, "messages")[-1]) == (NEWEST + 1, "mood")
    assert columns(filled, "moods") == []


def test_a_new_database_that_cannot_be_made_is_left_empty(
    shared_location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        made = [*schema.schema(), *BROKEN]
        patch.setattr(database, "schema", lambda: made)
        with pytest.raises((HoldfastError, sqlite3.Error)):
            Memory(shared_location)
    assert columns(shared_location, "messages") == []
    Memory(shared_location).close()
    assert version(shared_location) == NEWEST


def test_a_newer_database_is_refused_and_stays_as_it_is(filled: str) -> None:
    query(filled, "INSERT INTO schema_version (version) VALUES (99)")
    tables = ("schema_version", "messages", "spaces", "sessions")
    before = [query(filled, f"SELECT * FROM {table}") for table in tables]
    with pytest.raises(NewerSchema, match=r"version 99.*[Uu]pgrade"):
        Memory(filled)
    assert [query(filled, f"SELECT * FROM {table}") for table in tables] == before


@pytest.mark.parametrize("read_only", [False, True])
def test_a_database_from_before_0_1_is_refused_and_stays_as_it_is(filled: str, *, read_only: bool) -> None:
    query(filled, f"DELETE FROM schema_version WHERE version > {FIRST}")
    query(filled, "UPDATE schema_version SET version = 21")
    with pytest.raises(UnreleasedSchema, match=r"version 21, of a Holdfast before 0\.1.*[Ee]xport"):
        Memory(filled, read_only=read_only)
    assert query(filled, "SELECT version FROM schema_version") == [(21,)]
    assert query(filled, "SELECT chat, seq FROM messages") == [("monday", 1)]


def test_a_migration_that_another_has_just_run_is_not_run_again(
    filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_migrations(monkeypatch, [MOODS])
    read_version, both, first = database.Database._schema_version, Barrier(2), local()

    def read_version_together(self: database.Database) -> int:
        found = read_version(self)
        if not hasattr(first, "done"):
            first.done = True
            both.wait()
        return found

    monkeypatch.setattr(database.Database, "_schema_version", read_version_together)
    with ThreadPoolExecutor(2) as pool:
        for memory in pool.map(Memory, [filled, filled]):
            memory.close()
    assert query(filled, "SELECT version FROM schema_version ORDER BY 1")[-1] == (NEWEST + 1,)


def test_who_opened_it_before_a_migration_reads_and_does_not_write(filled: str) -> None:
    with Memory(filled, user="ada") as memory:
        query(filled, f"INSERT INTO schema_version (version) VALUES ({NEWEST + 1})")
        chat = memory.chat("monday")
        before = query(filled, "SELECT chat, seq, content FROM messages")
        writes: list[Callable[[], object]] = [
            lambda: chat.append(role="user", content="again"),
            lambda: memory.remember("Has a dog"),
            lambda: memory.erase(chat="monday"),
            lambda: memory.scratchpad.update(week="1"),
        ]
        with ThreadPoolExecutor(1) as pool:
            for write in writes:
                for run in (write, lambda one=write: pool.submit(one).result()):
                    with pytest.raises(NewerSchema, match=r"nothing was written.*Start this program again"):
                        run()
        assert [message.content for message in chat.history()] == ["hello"]
        assert query(filled, "SELECT chat, seq, content FROM messages") == before
        assert query(filled, "SELECT count(*) FROM records") == [(0,)]


OPEN_AND_APPEND = """
import sys
from holdfast import Memory
print("ready", flush=True)
input()
with Memory(sys.argv[1], user="ada") as memory:
    memory.chat("monday").append(role="user", content="hello")
"""


@pytest.mark.slow
def test_processes_that_open_a_new_database_at_once_make_it_once(
    shared_location: str, reopen: Callable[[], Memory]
) -> None:
    run_together(OPEN_AND_APPEND, [(shared_location,)] * 4)
    assert reopen().chat("monday").stats().messages == 4
    assert query(shared_location, "SELECT version FROM schema_version ORDER BY 1") == [
        (number,) for number in range(FIRST, NEWEST + 1)
    ]
