"""Databases that cannot be opened, reached, read or written: a clear error, and nothing stored changes."""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import tempfile
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier, Thread
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from holdfast import ChatStats, Closed, Damaged, InvalidInput, Memory, Message, MissingExtra, Unavailable
from holdfast.store import database, sqlite
from holdfast.store.connect import open_database
from programs import run


def fingerprint(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def fill(location: str | Path, messages: int = 1) -> None:
    with Memory(location, user="ada") as memory:
        for n in range(messages):
            memory.chat("monday").append(role="user", content=f"message {n} " + "words " * 50)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A closed database of 60 messages."""
    fill(tmp_path / "memory.db", 60)
    return tmp_path / "memory.db"


def put(file: Path, sql: str) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(sql)


# What is no place for a database


@pytest.mark.parametrize("location", [None, 7, b"memory.db", "", "a\x00b", "\ud800", ["memory.db"], object()])
def test_what_names_no_place_is_refused(location: Any) -> None:
    with pytest.raises(InvalidInput, match="not a place"):
        Memory(location)


@pytest.mark.parametrize(
    "url",
    [
        "mysql://localhost/memory",
        "sqlite:///memory.db",
        "http://localhost",
        "POSTGRESQL://localhost/memory",
        "postgresql+psycopg://localhost/memory",
        "postgres+asyncpg://ada:secret@localhost/memory",
    ],
)
def test_a_url_of_another_kind_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="Unsupported database") as error:
        Memory(url)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("durability", ["FULL", "", None, 1, ["full"], "off"])
def test_an_unknown_durability_is_refused(tmp_path: Path, durability: Any) -> None:
    with pytest.raises(InvalidInput, match="durability"):
        Memory(tmp_path / "memory.db", durability=durability)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="folder"):
        Memory(tmp_path)


def test_a_missing_folder_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="Check that the folder exists"):
        Memory(tmp_path / "no" / "memory.db")
    assert list(tmp_path.iterdir()) == []


def test_a_path_may_be_a_path(tmp_path: Path) -> None:
    fill(tmp_path / "memory.db")
    assert (tmp_path / "memory.db").is_file()


@pytest.mark.parametrize(
    "name", ["ünï 日本.db", "a b.db", "100%.db", "it's;.db", "a:b.db", "C:", "file:a.db?mode=memory"]
)
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    fill(tmp_path / name)
    assert (tmp_path / name).is_file()


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    (tmp_path / "memory.db").touch()
    fill(tmp_path / "memory.db")
    with Memory(tmp_path / "memory.db", user="ada") as memory:
        assert memory.chat("monday").stats().messages == 1


def test_each_memory_in_memory_is_one_of_its_own() -> None:
    with Memory(":memory:") as one, Memory(":memory:") as other:
        one.chat("monday").append(role="user", content="hello")
        assert other.chats() == []


# Files that are not what they should be


@pytest.mark.parametrize(
    "content",
    [
        b"x",
        b"Dear diary, today I ran." * 100,
        b'{"role": "user", "content": "hello"}\n' * 200,
        b"SQLite format 3\x00" + b"\xff" * 5000,
        b"SQLite format 3\x00",
        bytes(range(256)) * 64,
        b"\x00" * 8192,
    ],
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "memory.db"
    file.write_bytes(content)
    with pytest.raises(Damaged, match=r"memory\.db"):
        Memory(file)
    assert file.read_bytes() == content
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("table", ["messages", "photos"])
@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_the_database_of_another_program_is_refused_and_left_alone(
    tmp_path: Path, table: str, mode: str
) -> None:
    file = tmp_path / "other.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute(f"CREATE TABLE {table} (mine TEXT)")
        connection.execute(f"INSERT INTO {table} VALUES ('precious')")
        connection.commit()
    before = fingerprint(file)
    with pytest.raises(Damaged, match="another program"):
        Memory(file)
    assert fingerprint(file) == before


def everything(memory: Memory) -> tuple[list[Message], ChatStats]:
    return memory.chat("monday").history(), memory.chat("monday").stats()


def read_all(file: Path) -> list[Message] | None:
    """Read everything that a database holds; None when it is said to be damaged."""
    try:
        with Memory(file, user="ada") as memory:
            history, stats = everything(memory)
            return history if memory.verify().ok and len(history) == stats.messages else None
    except Damaged:
        return None


@pytest.mark.parametrize(
    "size", [1, 16, 99, 100, 512, 4095, 4096, 4097, 8192, 12_288, 0.3, 0.5, 0.9, -4096, -1]
)
def test_a_truncated_database_is_noticed_and_left_alone(file: Path, size: float) -> None:
    content = file.read_bytes()
    cut = content[: int(len(content) * size if 0 < size < 1 else size)]
    file.write_bytes(cut)
    assert read_all(file) is None
    assert file.read_bytes() == cut


@pytest.mark.parametrize("share", [0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95])
def test_a_page_of_noise_is_noticed_or_hurts_nothing(file: Path, share: float) -> None:
    before, content = read_all(file), bytearray(file.read_bytes())
    page = int(len(content) // 4096 * share) * 4096
    content[page : page + 4096] = hashlib.sha512(b"noise").digest() * 64
    file.write_bytes(content)
    assert read_all(file) in [None, before]


@pytest.mark.parametrize(
    "damage",
    [
        "DROP TABLE messages",
        "DROP TABLE sessions",
        "ALTER TABLE messages RENAME COLUMN content TO contents",
        "UPDATE messages SET content = CAST(x'c328ff' AS TEXT) WHERE seq = 7",
        "UPDATE messages SET raw = '{' WHERE seq = 7",
        "UPDATE messages SET meta = 'x' WHERE seq = 7",
        "UPDATE messages SET calls = '[[1]]' WHERE seq = 7",
        "UPDATE messages SET answers = '7' WHERE seq = 7",
        "UPDATE messages SET at = 9223372036854775807 WHERE seq = 7",
    ],
)
def test_a_message_that_cannot_be_read_is_reported(file: Path, damage: str) -> None:
    put(file, damage)
    with Memory(file, user="ada") as memory, pytest.raises(Damaged):
        everything(memory)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM messages WHERE seq = 7",
        "DELETE FROM messages WHERE seq = 60",
        "UPDATE messages SET tokens = 7 WHERE seq = 7",
        "UPDATE messages SET at = at - 1000000000 WHERE seq = 7",
        "UPDATE messages SET doc = 700 WHERE seq = 7",
        "UPDATE messages SET content = CAST(x'c328ff' AS TEXT) WHERE seq = 7",
        "UPDATE messages SET raw = '{' WHERE seq = 7",
        "UPDATE sessions SET length = 59",
        "UPDATE sessions SET newest = 9223372036854775807",
        "DELETE FROM sessions",
    ],
)
def test_verify_reports_what_does_not_fit(file: Path, damage: str) -> None:
    put(file, damage)
    with Memory(file, user="ada") as memory:
        assert memory.verify().problems != ()


def test_a_table_that_is_missing_on_postgresql_is_reported(postgres_url: str) -> None:
    fill(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP TABLE holdfast.messages")
    with Memory(postgres_url, user="ada") as memory, pytest.raises(Damaged):
        memory.chat("monday").history()


# Places where one may not write

AS_NOBODY = """
import os, sys
import encodings.idna, traceback
from holdfast import HoldfastError, Memory
from holdfast.store.schema import migrations
migrations()
with Memory(":memory:") as first:  # loads what nobody may not read
    first.chat("monday").append(role="user", content="hello")
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    with Memory(sys.argv[1], user="ada") as memory:
        memory.chat("monday").append(role="user", content="hello")
except HoldfastError as error:
    print(type(error).__name__, error)
else:
    print("stored")
"""


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that everyone can look into."""
    with tempfile.TemporaryDirectory(prefix="hf-") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)
        Path(folder).chmod(0o777)


def test_everyone_can_write_where_they_may(public: Path) -> None:
    assert run(AS_NOBODY, public / "memory.db") == "stored\n"


def test_a_folder_that_cannot_be_written_is_reported(public: Path) -> None:
    public.chmod(0o555)
    assert run(AS_NOBODY, public / "memory.db").startswith("Unavailable")
    assert list(public.iterdir()) == []


def test_a_file_in_a_folder_that_cannot_be_written_is_reported(public: Path) -> None:
    fill(public / "memory.db")
    before = fingerprint(public / "memory.db")
    (public / "memory.db").chmod(0o444)
    public.chmod(0o555)
    assert run(AS_NOBODY, public / "memory.db").startswith("Unavailable")
    assert fingerprint(public / "memory.db") == before


def test_a_file_that_cannot_be_written_is_reported(public: Path) -> None:
    fill(public / "memory.db")
    before = fingerprint(public / "memory.db")
    (public / "memory.db").chmod(0o444)
    assert run(AS_NOBODY, public / "memory.db").startswith("Unavailable")
    assert fingerprint(public / "memory.db") == before


def test_a_file_that_cannot_be_read_is_reported(public: Path) -> None:
    fill(public / "memory.db")
    (public / "memory.db").chmod(0o000)
    assert run(AS_NOBODY, public / "memory.db").startswith("Unavailable")


def test_a_full_disk_loses_nothing_and_is_reported(tmp_path: Path) -> None:
    script = """
import resource, sys
from holdfast import Memory, Unavailable
memory = Memory(sys.argv[1], user="ada")
chat = memory.chat("monday")
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, hard))
stored = 0
try:
    while True:
        chat.append(role="user", content=f"{stored} " + "x" * 10_000)
        stored += 1
except Unavailable as error:
    assert "disk" in str(error), error
assert stored > 5
assert chat.stats().messages == stored
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
chat.append(role="user", content=f"{stored} again")
assert [int(m.content.split()[0]) for m in chat.history()] == list(range(stored + 1))
assert memory.verify().ok
print("ok")
"""
    assert run(script, tmp_path / "memory.db") == "ok\n"


def test_a_failed_opening_is_silent_but_for_the_error(tmp_path: Path) -> None:
    script = """
import sys
from holdfast import Memory, Unavailable
try:
    Memory(sys.argv[1] + "/no/memory.db")
except Unavailable:
    print("ok")
"""
    assert run(script, tmp_path) == "ok\n"  # and nothing on stderr


# Servers that cannot be reached


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:secret@127.0.0.1:1/memory",
        "postgresql://ada:secret@/memory?host=/no/such/folder",
        "postgresql://ada:secret@no-such-host.invalid/memory",
        "postgresql://ada:secret@127.0.0.1:port/memory",
        "postgresql://ada:secret@127.0.0.1:1/memory?colour=red",
        "postgres://127.0.0.1:1/",
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
            f"CREATE DATABASE narrow ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0".encode()
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


def test_a_missing_extra_is_an_import_error() -> None:
    assert issubclass(MissingExtra, ImportError)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:sec%zzret@localhost/memory",
        "postgresql://ada:sec ret@localhost/memory",
        "postgresql://ada:sec/ret@localhost/memory",
        "postgresql://ada:1/secret@localhost/memory",
        "postgresql://ada:sec@ret@127.0.0.1:1/memory",
        "postgresql://ada:sec#ret@127.0.0.1:1/memory?a@b",
        "postgresql://ada:sec?ret@localhost/memory",
        "postgresql://ada:1?secret=ret@localhost/memory",
        "postgresql://ada:[secret@localhost/memory",
        "postgresql://ada:secret\x00@localhost/memory",
        "postgresql:/ada:secret@localhost/memory",
        "postgresql:ada:secret@localhost/memory",
        " postgresql://ada:secret@localhost/memory",
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


# A lock that another holds


@pytest.fixture
def locked(shared_location: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    """A memory on a database in which someone else has a transaction open that writes."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 1)
    fill(shared_location)
    with Memory(shared_location, user="ada") as memory:
        if shared_location.startswith("postgresql:"):
            with psycopg.connect(shared_location) as other:
                other.execute("LOCK TABLE holdfast.messages IN SHARE MODE")
                yield memory
        else:
            with closing(sqlite3.connect(shared_location, isolation_level=None)) as other_file:
                other_file.execute("BEGIN IMMEDIATE")
                yield memory
                other_file.execute("ROLLBACK")


@pytest.mark.slow
def test_a_lock_that_another_holds_for_long_is_reported(locked: Memory) -> None:
    with pytest.raises(Unavailable, match=r"lock"):
        locked.chat("monday").append(role="user", content="hello")
    assert locked.chat("monday").stats().messages == 1


def test_a_lock_that_another_holds_does_not_keep_from_reading(locked: Memory) -> None:
    assert len(locked.chat("monday").history()) == 1


@pytest.mark.slow
def test_after_a_lock_is_gone_writing_goes_on(shared_location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 1)
    with closing(open_database(shared_location)) as db, Memory(shared_location, user="ada") as memory:
        with db.writing() as tx:
            tx.lock(memory.scope.space)
            with pytest.raises(Unavailable):
                memory.chat("monday").append(role="user", content="hello")
        assert memory.chat("monday").append(role="user", content="hello").seq == 1


def test_a_lock_on_postgresql_is_not_said_to_be_a_matter_of_the_url(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 1)
    with closing(open_database(postgres_url)) as db, db.writing() as tx:
        tx.lock("x")
        with (
            closing(open_database(postgres_url)) as other,
            pytest.raises(Unavailable) as error,
            other.writing() as late,
        ):
            late.lock("x")
    assert "URL" not in str(error.value)
    assert "lock" in error.value.what


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


@pytest.mark.parametrize("call", ["append", "history"])
def test_a_database_without_a_table_is_damaged_whatever_the_language_of_the_server(
    postgres_url: str, call: str
) -> None:
    with Memory(postgres_url, user="ada") as memory:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("ALTER TABLE holdfast.messages RENAME COLUMN content TO contents")
        with pytest.raises(Damaged):
            CALLS[call](memory)


# The write-ahead log


@pytest.mark.slow
def test_the_log_shrinks_when_no_reader_holds_it_any_more(file: Path) -> None:
    log = file.with_name("memory.db-wal")
    with Memory(file, user="ada", durability="normal") as memory:
        chat = memory.chat("monday")
        with closing(sqlite3.connect(file, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM messages").fetchall()
            while log.stat().st_size < 40_000_000:
                chat.append([{"role": "user", "content": "words " * 200_000} for _ in range(5)])
        for _ in range(3):
            chat.append(role="user", content="words " * 5_000_000)
        chat.append(role="user", content="hello")
        assert log.stat().st_size <= 17_000_000


def test_a_path_stays_that_of_the_folder_in_which_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with Memory("memory.db", user="ada") as memory:
        memory.chat("monday").append(role="user", content="hello")
        monkeypatch.chdir(tmp_path / "elsewhere")
        with ThreadPoolExecutor(1) as pool:  # which opens a connection of its own
            assert len(pool.submit(memory.chat("monday").history).result()) == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []


# Memories that are closed

CALLS: dict[str, Callable[[Memory], object]] = {
    "append": lambda memory: memory.chat("monday").append(role="user", content="hello"),
    "append a list": lambda memory: memory.chat("monday").append([{"role": "user", "content": "hello"}]),
    "history": lambda memory: memory.chat("monday").history(),
    "stats": lambda memory: memory.chat("monday").stats(),
    "window": lambda memory: memory.chat("monday").window(),
    "prompt": lambda memory: memory.chat("monday").prompt(query="marathon"),
    "rename": lambda memory: memory.chat("monday").rename("Training"),
    "archive": lambda memory: memory.chat("monday").archive(),
    "chats": lambda memory: memory.chats(),
    "recall": lambda memory: memory.recall("marathon"),
    "rebuild": lambda memory: memory.rebuild(),
    "verify": lambda memory: memory.verify(),
    "a scoped handle": lambda memory: memory.scoped(user="bob").chats(),
}


@pytest.fixture(scope="module")
def closed_memories(tmp_path_factory: pytest.TempPathFactory) -> list[Memory]:
    memories = [Memory(":memory:"), Memory(tmp_path_factory.mktemp("closed") / "memory.db")]
    for memory in memories:
        memory.chat("monday").append(role="user", content="the Berlin marathon")
        memory.recall("marathon")
        memory.close()
    return memories


@pytest.mark.parametrize("name", CALLS)
def test_a_closed_memory_says_so(closed_memories: list[Memory], name: str) -> None:
    for memory in closed_memories:
        with pytest.raises(Closed, match="Open a new Memory"):
            CALLS[name](memory)


def test_a_closed_memory_on_postgresql_says_so(postgres_url: str) -> None:
    memory = Memory(postgres_url)
    memory.close()
    for call in CALLS.values():
        with pytest.raises(Closed, match="Open a new Memory"):
            call(memory)


def test_closing_twice_is_closing_once(location: str) -> None:
    memory = Memory(location)
    memory.close()
    memory.close()


def test_the_end_of_a_block_closes_the_memory(location: str) -> None:
    with Memory(location) as memory:
        pass
    with pytest.raises(Closed):
        memory.chats()


def test_an_error_in_a_block_closes_the_memory(location: str) -> None:
    with pytest.raises(KeyError), Memory(location) as memory:
        raise KeyError
    with pytest.raises(Closed):
        memory.chats()


def test_closing_leaves_one_file(file: Path) -> None:
    assert [path.name for path in file.parent.iterdir()] == ["memory.db"]


def test_a_memory_closed_under_its_readers_says_so_to_each(location: str) -> None:
    memory = Memory(location)
    memory.chat("monday").append([{"role": "user", "content": f"message {n}"} for n in range(200)])
    started = Barrier(5)

    def read() -> str:
        started.wait()
        try:
            while len(memory.chat("monday").history()) == 200:
                pass
        except Closed:
            return "closed"
        return "lost messages"

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(4)]
        started.wait()
        memory.close()
        assert {reader.result() for reader in readers} == {"closed"}


def test_a_program_that_does_not_close_its_memory_ends_in_silence(shared_location: str) -> None:
    script = """
import sys, threading
from holdfast import Memory
memory = Memory(sys.argv[1], user="ada")
memory.chat("monday").append(role="user", content="the Berlin marathon")
thread = threading.Thread(target=memory.recall, args=["marathon"])
thread.start()
thread.join()
print(len(memory.recall("marathon")))
"""
    assert run(script, shared_location) == "1\n"  # and nothing on stderr


def test_a_memory_that_is_forgotten_lets_go_of_its_file(file: Path) -> None:
    script = """
import gc, os, pathlib, sys
from holdfast import Memory
for _ in range(5):
    Memory(sys.argv[1], user="ada").chats()
    gc.collect()
links = [os.path.realpath(link) for link in pathlib.Path("/proc/self/fd").iterdir()]
print(sum(link.startswith(sys.argv[1]) for link in links))
"""
    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc to count open files")
    assert run(script, file) == "0\n"


def test_a_memory_closed_under_its_writers_keeps_what_they_were_told(
    shared_location: str, reopen: Callable[[], Memory]
) -> None:
    memory = Memory(shared_location, user="ada")
    started = Barrier(4)

    def write(thread: int) -> int:
        stored = 0
        started.wait()
        try:
            while True:
                memory.chat(f"chat {thread}").append(role="user", content="hello")
                stored += 1
        except Closed:
            return stored

    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(write, thread) for thread in range(3)]
        started.wait()
        while memory.chat("chat 0").stats().messages < 3:
            pass
        memory.close()
        told = [writer.result() for writer in writers]
    again = reopen()
    assert all(again.chat(f"chat {n}").stats().messages >= stored for n, stored in enumerate(told))
    assert again.verify().problems == ()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to count open files")
def test_threads_that_have_ended_leave_no_connections(file: Path) -> None:
    def opened() -> int:
        return sum(os.path.realpath(link).startswith(str(file)) for link in Path("/proc/self/fd").iterdir())

    with Memory(file, user="ada") as memory:
        memory.chats()
        before = opened()
        for _ in range(20):
            thread = Thread(target=memory.chats)
            thread.start()
            thread.join()
        assert opened() <= before + 3


# Processes that fork

FORK = """
import os, sys, warnings
from holdfast import Closed, Memory
warnings.simplefilter("ignore")  # newer Pythons warn of any fork of a process with threads
memory = Memory(sys.argv[1], user="ada")
memory.chat("monday").append(role="user", content="before")
memory.recall("before")
child = os.fork()
if not child:
    for call in (memory.chats, memory.verify, lambda: memory.chat("monday").append(role="user", content="child")):
        try:
            call()
            print("done")
        except Closed as error:
            print(error)
    memory.close()
    with Memory(sys.argv[1], user="ada") as own:
        own.chat("monday").append(role="user", content="child")
    sys.stdout.flush()
    if sys.argv[2] == "at once":
        os._exit(0)
    sys.exit(0)
os.waitpid(child, 0)
memory.chat("monday").append(role="user", content="after")
assert [message.content for message in memory.chat("monday").history()] == ["before", "child", "after"]
assert memory.verify().ok
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", ["at once", "as usual"])
def test_a_forked_process_is_told_to_open_its_own(shared_location: str, end: str) -> None:
    said = run(FORK, shared_location, end).splitlines()
    assert len(said) == 3
    assert all("forked" in line and "Open a Memory in each process" in line for line in said)


# Transactions


def count(db: database.Database) -> int:
    with db.reading() as connection:
        return int(connection.all("SELECT count(*) FROM spaces WHERE space = :space", space="x")[0][0])


INSERT = "INSERT INTO spaces (space, epoch) VALUES (:space, 0)"


def test_a_transaction_commits_at_its_end(location: str) -> None:
    with closing(open_database(location)) as db:
        with db.writing() as tx:
            tx.all(INSERT, space="x")
        assert count(db) == 1


def fail(db: database.Database, error: BaseException) -> None:
    with db.writing() as tx:
        tx.all(INSERT, space="x")
        raise error


@pytest.mark.parametrize("error", [ValueError(), KeyboardInterrupt(), GeneratorExit()])
def test_a_transaction_that_raises_leaves_nothing(location: str, error: BaseException) -> None:
    with closing(open_database(location)) as db:
        with pytest.raises(type(error)):
            fail(db, error)
        assert count(db) == 0


def test_after_a_transaction_that_raised_the_next_one_commits(location: str) -> None:
    with closing(open_database(location)) as db:
        with pytest.raises(KeyError):
            fail(db, KeyError())
        with db.writing() as tx:
            tx.all(INSERT, space="x")
        assert count(db) == 1


def test_a_transaction_is_not_seen_before_its_end(shared_location: str) -> None:
    with closing(open_database(shared_location)) as db, closing(open_database(shared_location)) as other:
        with db.writing() as tx:
            tx.all(INSERT, space="x")
            assert count(other) == 0
        assert count(other) == 1


def test_readers_cannot_write(tmp_path: Path) -> None:
    with (
        closing(open_database(tmp_path / "memory.db")) as db,
        db.reading() as connection,
        pytest.raises(Unavailable, match="readonly"),
    ):
        connection.all(INSERT, space="x")


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
def test_the_durability_on_sqlite_is_that_of_its_synchronous_writes(
    tmp_path: Path, durability: Any, level: int
) -> None:
    with closing(open_database(tmp_path / "memory.db", durability)) as db, db.writing() as tx:
        assert tx.all("PRAGMA synchronous") == [(level,)]


@pytest.mark.parametrize(("durability", "commit"), [("full", "on"), ("normal", "off")])
def test_the_durability_on_postgresql_is_that_of_its_commits(
    postgres_url: str, durability: Any, commit: str
) -> None:
    with closing(open_database(postgres_url, durability)) as db, db.writing() as tx:
        assert tx.all("SHOW synchronous_commit") == [(commit,)]


# What keeps two transactions apart on PostgreSQL


def test_a_space_is_locked_by_its_row_which_every_node_of_a_cluster_sees(postgres_url: str) -> None:
    free = b"SELECT space FROM holdfast.spaces FOR UPDATE SKIP LOCKED"
    with (
        closing(open_database(postgres_url)) as db,
        psycopg.connect(postgres_url, autocommit=True) as other,
    ):
        for _ in range(2):  # the first time there is no row yet
            with db.writing() as tx:
                tx.lock("x")
                assert other.execute(free).fetchall() == []
                locks = other.execute("SELECT locktype FROM pg_locks WHERE locktype = 'advisory'").fetchall()
                assert locks == []
            assert other.execute(free).fetchall() == [("x",)]


def test_a_lock_writes_no_new_version_of_the_row(postgres_url: str) -> None:
    place = b"SELECT ctid, xmin FROM holdfast.spaces"
    with closing(open_database(postgres_url)) as db, psycopg.connect(postgres_url, autocommit=True) as other:
        places = []
        for _ in range(3):
            with db.writing() as tx:
                tx.lock("x")
            places.append(other.execute(place).fetchall())
    assert len(places[0]) == 1
    assert places[0] == places[1] == places[2]


def test_what_waited_for_a_lock_decides_by_what_was_committed_meanwhile(own_postgres_url: str) -> None:
    """Whoever waits takes the next number, finds the call that it answers, and knows an id that is there."""
    call: dict[str, Any] = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
    }
    result = {"role": "tool", "tool_call_id": "c1", "content": "found"}
    with Memory(own_postgres_url, user="ada") as first, Memory(own_postgres_url, user="ada") as second:
        space = first.scope.space
        first.chat("monday").append(role="user", content="hello")
        with ThreadPoolExecutor(3) as pool, psycopg.connect(own_postgres_url, autocommit=True) as other:
            with first._open.database.writing() as tx:
                tx.lock(space)
                same = Message("user", "once", id="m1")
                waiting = [pool.submit(second.chat("monday").append, [same]) for _ in range(2)]
                while waiting_for_locks(other) < 2:
                    pass
            stored = [each.result()[0] for each in waiting]
            with first._open.database.writing() as tx:
                tx.lock(space)
                made = pool.submit(first.chat("monday").append, [call])
                while waiting_for_locks(other) < 1:
                    pass
                answered = pool.submit(second.chat("monday").append, [result])
                while waiting_for_locks(other) < 2:
                    pass
            seqs = [made.result()[0].seq, answered.result()[0].seq]
        assert stored[0] == stored[1]
        assert seqs == [3, 4]
        history = second.chat("monday").history()
        assert [message.seq for message in history] == [1, 2, 3, 4]
        assert history[-1].answers == ("c1",)


def waiting_for_locks(connection: psycopg.Connection) -> int:
    row = connection.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_a_write_to_the_pad_of_a_run_waits_for_its_end(own_postgres_url: str) -> None:
    with (
        Memory(own_postgres_url, user="ada") as memory,
        ThreadPoolExecutor(2) as pool,
        psycopg.connect(own_postgres_url, autocommit=True) as other,
    ):
        run = memory.chat("monday").run("r1")
        with memory._open.database.writing() as tx:
            tx.lock(memory.scope.space)
            ended = pool.submit(run.end)
            while waiting_for_locks(other) < 1:
                pass
            noted = pool.submit(run.pad.__setitem__, "step", "1")
            while waiting_for_locks(other) < 2 and not noted.done():
                pass
        ended.result()
        with pytest.raises(InvalidInput, match="ended"):
            noted.result()
        assert other.execute("SELECT name FROM holdfast.pads").fetchall() == []


# Transactions that clash with others

CLASHES = """
CREATE SEQUENCE holdfast.clashes;
CREATE FUNCTION holdfast.clash() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF nextval('holdfast.clashes') <= TIMES THEN RAISE EXCEPTION 'a clash' USING ERRCODE = 'STATE'; END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;
"""


def let_clash(url: str, times: int, state: str = "40001") -> None:
    """Let the first so many rows that are written fail as they do when others write the same."""
    script = CLASHES.replace("TIMES", str(times)).replace("STATE", state)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(script.encode())
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'holdfast'"
        ).fetchall()
        for (table,) in tables:
            connection.execute(
                f"CREATE TRIGGER clash BEFORE INSERT OR UPDATE OR DELETE ON holdfast.{table} "
                "FOR EACH ROW EXECUTE FUNCTION holdfast.clash()".encode()
            )


def clashes(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute("SELECT last_value FROM holdfast.clashes").fetchone()
    assert row is not None
    return int(row[0])


def remember_and_undo(memory: Memory) -> None:
    memory.remember("the bib is 7")
    memory.undo()


def note_for_a_run(memory: Memory) -> None:
    with memory.chat("monday").run("r1") as run:
        run.pad["step"] = "1"


WRITES: dict[str, Callable[[Memory], object]] = {
    "append": CALLS["append"],
    "append a list": CALLS["append a list"],
    "remember, undo": remember_and_undo,
    "rename": CALLS["rename"],
    "prompt": lambda memory: memory.chat("monday").prompt(),
    "compact": lambda memory: memory.chat("monday").compact(budget=500),
    "a run": note_for_a_run,
    "a pad": lambda memory: memory.pad.update(week="1"),
    "rebuild": lambda memory: memory.rebuild(),
    "end": lambda memory: memory.chat("monday").end(),
    "end and work": lambda memory: (memory.chat("monday").end(), memory.work(limit=1)),
    "erase": lambda memory: memory.erase(chat="monday", messages=(1, 2)),
}


@pytest.mark.parametrize("state", ["40001", "40P01"])
@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_clashes_is_tried_again(postgres_url: str, name: str, state: str) -> None:
    fill(postgres_url, 40)
    with Memory(postgres_url, user="ada") as memory:
        let_clash(postgres_url, 3, state)
        WRITES[name](memory)
        assert clashes(postgres_url) > 3
        assert memory.verify().ok
        history = memory.chat("monday").history()
        assert (
            len({message.id for message in history}) == len(history) == memory.chat("monday").stats().messages
        )


def test_a_write_that_clashes_each_time_is_given_up(postgres_url: str) -> None:
    with Memory(postgres_url, user="ada") as memory:
        let_clash(postgres_url, 1_000)
        with pytest.raises(Unavailable, match="at the same time"):
            memory.chat("monday").append(role="user", content="hello")
        assert clashes(postgres_url) == database.TRIES
        assert memory.chat("monday").history() == []


# Values of another type than was stored: SQLite keeps any value in any column


WRONG_TYPES = [
    ("spaces", "version", "'x'"),
    ("spaces", "epoch", "'x'"),
    ("sessions", "length", "'x'"),
    ("sessions", "newest", "'x'"),
    ("sessions", "title", "x'c3ff'"),
    ("messages", "doc", "doc || 'x'"),
    ("messages", "at", "'x'"),
    ("messages", "tokens", "'x'"),
    ("messages", "content", "x'c3ff'"),
    ("messages", "meta", "x'c3ff'"),
    ("records", "at", "'x'"),
    ("records", "text", "x'c3ff'"),
    ("records", "tags", "'7'"),
]
READS: dict[str, Callable[[Memory], object]] = {
    **{name: call for name, call in CALLS.items() if name != "a scoped handle"},
    "records": lambda memory: memory.records(),
    "changes": lambda memory: memory.changes(),
    "earlier": lambda memory: memory.at(1).recall("bib"),
    "remember": lambda memory: memory.remember("the shoes are size 43"),
    "compact": lambda memory: memory.chat("monday").compact(),
    "jobs": lambda memory: memory.jobs(),
}


@pytest.mark.parametrize(("table", "column", "value"), WRONG_TYPES)
def test_a_value_of_another_type_is_damage_wherever_it_is_read(
    tmp_path: Path, table: str, column: str, value: str
) -> None:
    file = tmp_path / "memory.db"
    with Memory(file, user="ada") as memory:
        memory.chat("monday").append(
            [{"role": "user", "content": f"the Berlin marathon {n}"} for n in range(5)]
        )
        memory.remember("the bib is 7", tags=["race"])
    put(file, f"UPDATE {table} SET {column} = {value}")
    said = set()
    with Memory(file, user="ada") as memory:
        for call in READS.values():
            try:
                call(memory)
            except Damaged:
                said.add("damaged")
        said.update("damaged" for problem in memory_problems(memory) if problem)
    assert said == {"damaged"}


def memory_problems(memory: Memory) -> tuple[str, ...]:
    try:
        return memory.verify().problems
    except Damaged as error:
        return (str(error),)


def test_what_is_kept_of_statements_is_bounded(quick: Memory) -> None:
    with quick._open.database.reading() as connection:
        for number in range(2 * sqlite._MAX_STATEMENTS):
            connection.all(f"SELECT {number} AS doc")
    assert len(sqlite._TYPES) <= sqlite._MAX_STATEMENTS
