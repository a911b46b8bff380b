"""The schema: made and brought up to date by migrations, each of them whole or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from importlib import resources
from itertools import chain
from threading import Barrier, local
from typing import Any

import psycopg
import pytest

from holdfast import HoldfastError, Memory, NewerSchema
from holdfast.store import database, schema
from holdfast.store.connect import open_database
from holdfast.store.schema import migrations, split_statements
from programs import run_together

STORE = resources.files("holdfast.store")


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


def with_migration(monkeypatch: pytest.MonkeyPatch, *statements: str) -> None:
    with_migrations(monkeypatch, [*migrations(), list(statements)])


def with_migrations(monkeypatch: pytest.MonkeyPatch, all_of_them: list[list[str]]) -> None:
    monkeypatch.setattr(database, "migrations", lambda: all_of_them)
    monkeypatch.setattr(database, "NEWEST", len(all_of_them))


# What the migrations make


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


def postgres_catalog(location: str, schema: str) -> list[list[tuple[Any, ...]]]:
    return [
        query(location, sql.replace("SCHEMA", f"'{schema}'"), schema=schema)
        for sql in (
            """SELECT table_name, column_name, ordinal_position, data_type, is_nullable, column_default
            FROM information_schema.columns WHERE table_schema = SCHEMA ORDER BY 1, 3""",
            """SELECT tablename, indexname, replace(indexdef, SCHEMA || '.', '')
            FROM pg_indexes WHERE schemaname = SCHEMA ORDER BY 1, 2""",
            """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
            FROM pg_constraint WHERE connamespace = SCHEMA::regnamespace ORDER BY 1, 2""",
        )
    ]


def test_a_new_database_on_sqlite_is_what_the_migrations_make(tmp_path: Any) -> None:
    with (
        closing(open_database(tmp_path / "new.db")) as db,
        closing(sqlite3.connect(tmp_path / "migrated.db", isolation_level=None)) as connection,
    ):
        for statement in [database.CREATE_VERSIONS, *chain(*migrations())]:
            connection.execute(db.dialect(statement))
    assert sqlite_catalog(str(tmp_path / "new.db")) == sqlite_catalog(str(tmp_path / "migrated.db"))


@pytest.mark.slow
def test_a_new_database_on_postgresql_is_what_the_migrations_make(own_postgres_url: str) -> None:
    query(own_postgres_url, "CREATE SCHEMA migrated")
    for statement in [database.CREATE_VERSIONS, *chain(*migrations())]:
        query(own_postgres_url, statement, schema="migrated")
    Memory(own_postgres_url).close()
    assert postgres_catalog(own_postgres_url, "holdfast") == postgres_catalog(own_postgres_url, "migrated")


def test_the_tables_on_postgresql_stand_in_a_schema_of_their_own(own_postgres_url: str) -> None:
    query(own_postgres_url, "CREATE TABLE messages (mine TEXT)", schema="public")
    with Memory(own_postgres_url) as memory:
        memory.chat("monday").append(role="user", content="hello")
    assert query(own_postgres_url, "SELECT * FROM messages", schema="public") == []


def test_migrations_are_numbered_without_gaps() -> None:
    names = sorted(file.name for file in (STORE / "migrations").iterdir() if file.name.endswith(".sql"))
    assert [int(name.partition("_")[0]) for name in names] == list(range(1, len(names) + 1))


def test_every_word_of_a_migration_is_run() -> None:
    for file in (STORE / "migrations").iterdir():
        script = file.read_text("utf-8")
        assert "".join("".join(split_statements(script)).split()) == "".join(script.split())


def test_a_script_is_split_at_the_ends_of_its_statements() -> None:
    script = "-- a; b\nCREATE TABLE a (\n  x TEXT  -- no; end\n);\n\nINSERT INTO a VALUES ('x;\ny');\n"
    assert [statement.splitlines()[-1] for statement in split_statements(script)] == [");", "y');"]


# Opening


def test_a_new_database_has_the_newest_version(filled: str) -> None:
    assert version(filled) == len(migrations())


def test_opening_again_changes_nothing(filled: str) -> None:
    before = query(filled, "SELECT * FROM schema_version")
    Memory(filled).close()
    assert query(filled, "SELECT * FROM schema_version") == before


def test_an_older_database_is_brought_up_to_date(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_migration(
        monkeypatch, "ALTER TABLE messages ADD COLUMN mood TEXT", "CREATE TABLE moods (space TEXT NOT NULL)"
    )
    Memory(filled).close()
    assert (version(filled), columns(filled, "messages")[-1], columns(filled, "moods")) == (
        len(migrations()) + 1,
        "mood",
        ["space"],
    )


def test_what_was_stored_before_an_upgrade_is_there_after_it(
    filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_migration(monkeypatch, "ALTER TABLE messages ADD COLUMN mood TEXT")
    with Memory(filled, user="ada") as memory:
        memory.chat("monday").append(role="user", content="again")
        assert [message.content for message in memory.chat("monday").history()] == ["hello", "again"]
        assert memory.verify().problems == ()


BROKEN = [
    "CREATE TABLE moods (space TEXT NOT NULL)",
    "INSERT INTO moods (space) VALUES ('x')",
    "CREATE TABLE (",
]


def test_a_migration_that_fails_leaves_nothing_behind(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_migration(monkeypatch, *BROKEN)
    with pytest.raises((HoldfastError, sqlite3.Error)):
        Memory(filled)
    assert (version(filled), columns(filled, "moods")) == (len(migrations()), [])


def test_the_migrations_before_one_that_fails_stay(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    more = [*migrations(), ["ALTER TABLE messages ADD COLUMN mood TEXT"], BROKEN]
    with_migrations(monkeypatch, more)
    with pytest.raises((HoldfastError, sqlite3.Error)):
        Memory(filled)
    assert (version(filled), columns(filled, "messages")[-1], columns(filled, "moods")) == (
        len(migrations()) + 1,
        "mood",
        [],
    )


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
    assert version(shared_location) == len(migrations())


def test_after_a_migration_that_failed_the_database_opens(
    filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        with_migration(patch, *BROKEN)
        with pytest.raises((HoldfastError, sqlite3.Error)):
            Memory(filled)
    with Memory(filled, user="ada") as memory:
        assert memory.chat("monday").stats().messages == 1


def test_a_newer_database_is_refused(filled: str) -> None:
    query(filled, "INSERT INTO schema_version (version) VALUES (99)")
    with pytest.raises(NewerSchema, match=r"version 99.*[Uu]pgrade"):
        Memory(filled)


def test_a_newer_database_stays_as_it_is(filled: str) -> None:
    query(filled, "INSERT INTO schema_version (version) VALUES (99)")
    before = [
        query(filled, f"SELECT * FROM {table}")
        for table in ("schema_version", "messages", "spaces", "sessions")
    ]
    with pytest.raises(NewerSchema):
        Memory(filled)
    assert [
        query(filled, f"SELECT * FROM {t}") for t in ("schema_version", "messages", "spaces", "sessions")
    ] == before


def test_a_migration_that_another_has_just_run_is_not_run_again(
    filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_migration(monkeypatch, "CREATE TABLE moods (space TEXT NOT NULL)")
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
    assert query(filled, "SELECT version FROM schema_version ORDER BY 1")[-1] == (len(migrations()) + 1,)


def test_who_opened_it_before_a_migration_reads_and_does_not_write(filled: str) -> None:
    with Memory(filled, user="ada") as memory:
        query(filled, f"INSERT INTO schema_version (version) VALUES ({len(migrations()) + 1})")
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
        (number + 1,) for number in range(len(migrations()))
    ]
