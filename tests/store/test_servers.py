"""Servers that cannot be reached or used: a clear error without the password."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from sqlite_files import CALLS, fill, put

from holdfast import Damaged, InvalidInput, Memory, Message, Unavailable
from programs import run
from tables import each

# Servers that cannot be reached


@each(
    "url",
    [
        "postgresql://ada:secret@127.0.0.1:1/memory",
        "postgresql://ada:secret@/memory?host=/no/such/folder",
        "postgresql://ada:secret@no-such-host.invalid/memory",
        "postgresql://ada:secret@127.0.0.1:1/memory?colour=red",
    ],
)
def test_a_server_that_is_not_there_is_reported_without_the_password(url: str) -> None:
    with pytest.raises(Unavailable, match="Check the URL") as error:
        Memory(url)
    assert "secret" not in str(error.value)


def test_a_database_that_the_server_does_not_have_is_reported(postgres_url: str) -> None:
    with pytest.raises(Unavailable, match="nowhere"):
        Memory(urlsplit(postgres_url)._replace(path="/nowhere").geturl())


@pytest.fixture
def guarded_url(own_postgres_url: str) -> Iterator[str]:
    """The address of a user who needs a password, and has another one."""
    with psycopg.connect(own_postgres_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'")
        row = connection.execute("SHOW hba_file").fetchone()
        assert row is not None
        rules = Path(row[0])
        before = rules.read_bytes()
        rules.write_bytes(b"local all guarded scram-sha-256\n" + before)
        connection.execute("SELECT pg_reload_conf()")
        yield urlsplit(own_postgres_url)._replace(netloc="guarded:wrong@").geturl()
        rules.write_bytes(before)
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("DROP ROLE guarded")


def test_a_wrong_password_is_reported_and_not_shown(guarded_url: str) -> None:
    for _ in range(10_000):  # until the server has read its rules
        with pytest.raises(Unavailable) as error:
            Memory(guarded_url)
        if "password" in str(error.value):
            break
    assert "authentication failed" in str(error.value)
    assert "wrong" not in str(error.value)


def test_who_may_not_make_schemas_can_use_one_that_is_there(own_postgres_url: str) -> None:
    fill(own_postgres_url)
    with psycopg.connect(own_postgres_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE clerk LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA holdfast TO clerk")
        connection.execute("GRANT ALL ON ALL TABLES IN SCHEMA holdfast TO clerk")
    try:
        fill(urlsplit(own_postgres_url)._replace(netloc="clerk:@").geturl())
    finally:
        with psycopg.connect(own_postgres_url, autocommit=True) as connection:
            connection.execute("DROP OWNED BY clerk")
            connection.execute("DROP ROLE clerk")
    with Memory(own_postgres_url, user="ada") as memory:
        assert memory.chat("monday").stats().messages == 2


@pytest.mark.parametrize(
    "setting", ["default_transaction_isolation = 'serializable'", "default_transaction_read_only = on"]
)
def test_the_defaults_of_a_server_do_not_matter(own_postgres_url: str, setting: str) -> None:
    with psycopg.connect(own_postgres_url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {urlsplit(own_postgres_url).path[1:]} SET {setting}".encode())
    with Memory(own_postgres_url, user="ada") as memory, ThreadPoolExecutor(4) as pool:
        stored = pool.map(lambda n: memory.chat("monday").append(role="user", content=str(n)).seq, range(40))
        assert sorted(stored) == list(range(1, 41))


def test_the_encoding_of_a_client_does_not_matter(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with Memory(postgres_url, user="日本") as memory:
        assert memory.chat("monday").append(role="user", content="日本 😀").content == "日本 😀"


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_hold_every_text_is_refused(postgres_url: str, encoding: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE narrow ENCODING '{encoding}' "
            "LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0".encode()
        )
        try:
            with pytest.raises(Unavailable, match=f"{encoding}.*UTF8"):
                Memory(urlsplit(postgres_url)._replace(path="/narrow").geturl())
        finally:
            connection.execute("DROP DATABASE narrow WITH (FORCE)")


def test_after_a_broken_connection_the_next_calls_have_another(own_postgres_url: str) -> None:
    with Memory(own_postgres_url, user="ada") as memory:
        memory.chat("monday").append(role="user", content="one")
        with psycopg.connect(own_postgres_url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        with pytest.raises(Unavailable):
            memory.chat("monday").append(role="user", content="two")
        memory.chat("monday").append(role="user", content="three")
        assert [message.content for message in memory.chat("monday").history()] == ["one", "three"]


def test_without_psycopg_the_extra_is_named() -> None:
    script = """
import sys
sys.modules["psycopg"] = None
from holdfast import Memory, MissingExtra
try:
    Memory("postgresql://localhost/memory")
except MissingExtra as error:
    print(error)
"""
    assert "pip install '.[postgres]'" in run(script)


@each(
    "url",
    [
        "postgresql://ada:sec%zzret@localhost/memory",
        "postgresql://ada:sec/ret@localhost/memory",
        "postgresql://ada:sec#ret@127.0.0.1:1/memory?a@b",
        "postgresql://ada:1?secret=ret@localhost/memory",
        "postgresql://ada:[secret@localhost/memory",
        "postgresql://ada:secret\x00@localhost/memory",
        "postgresql:/ada:secret@localhost/memory",
        "host=localhost user=ada password=secret",
        "postgresql://localhost/memory?pooled=secret",
        "postgresql://localhost/memory?password=sec ret",
    ],
)
def test_the_password_of_a_malformed_url_is_in_no_error(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((InvalidInput, Unavailable)) as error:
        Memory(url)
    told = "".join(traceback.format_exception_only(error.value)) + "".join(
        str(one) for one in (error.value, error.value.__cause__, error.value.__context__ and "")
    )
    assert not re.search("sec|ret@", told)
    if not error.value.__suppress_context__:
        assert not re.search("sec|ret@", str(error.value.__context__))
    assert list(tmp_path.iterdir()) == []


# What contradicts itself


@pytest.mark.parametrize("damage", ["UPDATE sessions SET length = length - 1", "DELETE FROM sessions"])
def test_a_number_that_is_taken_already_is_said_to_be_damage(shared_location: str, damage: str) -> None:
    fill(shared_location, 3)
    if shared_location.startswith("postgresql:"):
        with psycopg.connect(shared_location, options="-c search_path=holdfast") as connection:
            connection.execute(damage.encode())
    else:
        put(Path(shared_location), damage)
    with Memory(shared_location, user="ada") as memory:
        before = memory.chat("monday").history()
        with pytest.raises(Damaged, match="contradict"):
            memory.chat("monday").append(role="user", content="hello")
        assert memory.chat("monday").history() == before


def test_a_database_without_a_table_or_column_is_damaged_whatever_the_language_of_the_server(
    postgres_url: str,
) -> None:
    def assert_damaged() -> None:
        for call in ("append", "history"):
            with pytest.raises(Damaged):
                CALLS[call](memory)

    with Memory(postgres_url, user="ada") as memory:
        for change in ("RENAME COLUMN content TO contents", "RENAME TO letters"):
            with psycopg.connect(postgres_url, autocommit=True) as connection:
                connection.execute(f"ALTER TABLE holdfast.messages {change}".encode())
            assert_damaged()


def test_an_opened_memory_holds_one_connection(postgres_url: str) -> None:
    newer = """
    SELECT count(*) FROM pg_stat_activity AS other
    JOIN pg_stat_activity AS own ON own.pid = pg_backend_pid() AND own.datname = other.datname
    WHERE other.backend_type = 'client backend' AND other.backend_start > own.backend_start
    """
    with psycopg.connect(postgres_url, autocommit=True) as connection, Memory(postgres_url):
        for _ in range(10_000):  # until the one that has checked the server has ended
            held = connection.execute(newer).fetchone()
            if held == (1,):
                break
        assert held == (1,)


def test_a_prompt_takes_nine_round_trips(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    execute, rollback = psycopg.Connection.execute, psycopg.Connection.rollback

    def counted(connection: psycopg.Connection, query: Any, *args: Any, **options: Any) -> Any:
        asked.append(query)
        return execute(connection, query, *args, **options)

    def ended(connection: psycopg.Connection) -> None:
        asked.append("rollback")
        rollback(connection)

    with Memory(postgres_url, user="ada") as memory:
        chat = memory.chat("a")
        chat.append([Message("user", f"Tulip {n} is red, the others are white.") for n in range(200)])
        chat.prompt(1_000, "white tulips")
        monkeypatch.setattr(psycopg.Connection, "execute", counted)
        monkeypatch.setattr(psycopg.Connection, "rollback", ended)
        assert chat.prompt(1_000, "red tulips").hits
    assert len(asked) <= 9, asked
