"""Erasure and the files of the database: what is written anew, what is not, and that the receipt says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import erasures
import psycopg
import pytest
from erasures import Marks, fill, unavailable

from holdfast import Memory
from stored_texts import erasures_of

no_patience = erasures.no_patience


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


FOLDER = "SELECT current_setting('data_directory'), oid FROM pg_database WHERE datname = current_database()"
STATISTICS = (
    "SELECT most_common_vals::text, histogram_bounds::text FROM pg_stats WHERE schemaname = 'holdfast'"
)


def in_files(url: str) -> bytes:
    """Read all files of a database as they are on the server's disk: tables, indexes, catalogs."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        ((data, oid),) = connection.execute(FOLDER).fetchall()
    files = sorted(Path(data, "base", str(oid)).rglob("*"))
    return b"".join(file.read_bytes() for file in files if file.is_file())


def sampled(url: str) -> str:
    """Give what the planner's statistics show of our tables."""
    with psycopg.connect(url, autocommit=True) as connection:
        return repr(connection.execute(STATISTICS).fetchall())


@pytest.fixture
def ada(own_postgres_url: str) -> Iterator[Memory]:
    with Memory(own_postgres_url, user="ada", admin=True) as memory:
        yield memory


@pytest.mark.slow
@pytest.mark.parametrize("everything", [True, False])
def test_a_rewriting_erasure_leaves_no_byte_in_the_files_of_postgresql(
    ada: Memory, own_postgres_url: str, everything: bool
) -> None:
    mark, kept = Marks("f"), Marks("k")
    fill(ada, "secret", mark)
    for n in range(40):  # long enough to be stored beside the table
        ada.chat("secret").append(role="user", content=f"{mark(f'long {n}')} {uuid4()} " * 200)
    if not everything:
        ada.scoped(user="bob").chat("other").append(role="user", content=kept("of another user"))
    execute(own_postgres_url, "ANALYZE")
    assert mark.left_in(in_files(own_postgres_url))
    assert mark.left_in(sampled(own_postgres_url))
    receipt = ada.erase(user="ada", rewrite=True)
    assert mark.left_in(sampled(own_postgres_url)) == []
    assert mark.left_in(in_files(own_postgres_url)) == []
    assert {"messages", "records", "segments", "summaries", "planner statistics"} <= set(receipt.rewritten)
    assert receipt.remains == {}
    assert kept.left_in(in_files(own_postgres_url)) == list(kept.words)
    assert (ada.verify().problems, ada.scoped(user="bob").verify().problems) == ((), ())


@pytest.mark.slow
def test_a_plain_erasure_says_that_postgresql_keeps_the_bytes_and_a_rewrite_alone_removes_them(
    ada: Memory, own_postgres_url: str
) -> None:
    mark = Marks("p")
    fill(ada, "secret", mark)
    ada.chat("other").append(role="user", content="stays")
    execute(own_postgres_url, "ANALYZE")
    receipt = ada.erase(chat="secret")
    assert receipt.rewritten == ()
    assert "rewrite=True" in receipt.remains["files"]
    assert mark.left_in(in_files(own_postgres_url)), "else what the receipt says is not true"
    assert mark.left_in(sampled(own_postgres_url)) == []
    assert ada.verify().problems == (), "what was asked for was done"
    receipt = ada.erase(rewrite=True)
    assert (receipt.what, receipt.counts, receipt.remains) == ("files", {}, {})
    assert mark.left_in(in_files(own_postgres_url)) == []
    assert [one.text for one in ada.records()] == []
    assert [one.content for one in ada.chat("other").history()] == ["stays"]
    assert [(one.what, bool(one.rewritten), bool(one.remains)) for one in erasures_of(ada)] == [
        ("chat", False, True),
        ("files", True, False),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("rewrite", [True, False])
def test_an_older_transaction_that_is_open_is_named_and_the_next_erasure_ends_it(
    no_patience: None, own_postgres_url: str, rewrite: bool
) -> None:
    mark = Marks("o")
    with Memory(own_postgres_url, user="ada") as ada, psycopg.connect(own_postgres_url) as other:
        fill(ada, "secret", mark)
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT 1")
        receipt = unavailable("older than the erasure", lambda: ada.erase(chat="secret", rewrite=rewrite))
        assert "older than the erasure" in receipt.remains["messages"]
        assert "messages" not in receipt.rewritten
        assert dict(erasures_of(ada)[0].remains) == dict(receipt.remains)
        assert ada.chat("secret").history() == []
        assert mark.left_in(in_files(own_postgres_url))
        assert "interrupted" in ada.verify().problems[0]
        other.rollback()
        ada.erase(rewrite=True)
        assert mark.left_in(in_files(own_postgres_url)) == []
        assert ada.verify().problems == ()


@pytest.mark.slow
@pytest.mark.parametrize("rewrite", [True, False])
def test_a_role_that_does_not_own_the_tables_is_told(
    no_patience: None, own_postgres_url: str, rewrite: bool
) -> None:
    role = f"r{uuid4().hex}"
    with Memory(own_postgres_url, user="ada") as owner:
        owner.chat("secret").append(role="user", content="zqownedqz")
        execute(
            own_postgres_url,
            f"CREATE ROLE {role} LOGIN",
            f"GRANT USAGE ON SCHEMA holdfast TO {role}",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast TO {role}",
        )
        try:
            url = urlsplit(own_postgres_url)
            theirs = url._replace(netloc=url.netloc.replace("postgres:@", f"{role}:@")).geturl()
            with Memory(theirs, user="ada") as guest:
                receipt = unavailable("owns neither", lambda: guest.erase(chat="secret", rewrite=rewrite))
                assert guest.chat("secret").history() == []
            assert receipt.rewritten == ()
            assert {"messages", "records", "spend"} <= set(receipt.remains)
            assert not owner.verify().ok
            owner.erase(rewrite=True)
            assert owner.verify().ok
            assert b"zqownedqz" not in in_files(own_postgres_url)
        finally:
            execute(own_postgres_url, f"DROP OWNED BY {role}", f"DROP ROLE {role}")


# SQLite


def test_a_file_is_always_written_anew_and_the_receipt_says_so(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", user="ada") as ada:
        ada.chat("secret").append(role="user", content="zqfileqz")
        receipt = ada.erase(chat="secret")
        assert (receipt.rewritten, receipt.remains) == (("file",), {})
        assert ada.erase(rewrite=True).rewritten == ("file",)
        assert [one.rewritten for one in erasures_of(ada)] == [("file",), ("file",)]
    with Memory(":memory:", user="ada") as ada:
        ada.chat("secret").append(role="user", content="hello")
        assert ada.erase(chat="secret").rewritten == ("memory",)


def test_a_deferred_erasure_leaves_the_file_to_a_repair_or_to_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with Memory(path, user="ada") as memory:
        for name in ("monday", "tuesday", "wednesday"):
            memory.chat(name).append(role="user", content=f"My blood group on {name} is AB negative.")
        later = memory.erase(chat="monday", rewrite=None)
        assert later.counts["messages"] == 1
        assert "file" in later.remains
        assert not later.rewritten
        assert memory.recall("blood group monday", limit=1)[0].chat != "monday"
        problems = memory.verify().problems
        assert len(problems) == 1
        assert "verify(repair=True)" in problems[0]
        assert memory.verify(repair=True).ok
        assert memory.verify().ok
    assert b"on monday" not in path.read_bytes()
    assert b"on tuesday" in path.read_bytes()
    with Memory(path, user="ada") as memory:
        memory.erase(chat="tuesday", rewrite=None)
        assert memory.erase(chat="wednesday").rewritten == ("file",)
        assert memory.verify().ok
    assert b"on tuesday" not in path.read_bytes()
