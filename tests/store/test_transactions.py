"""Transactions: what they lock, see and leave, and how they are tried again."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest
from sqlite_files import CALLS, fill

from holdfast import InvalidInput, Memory, Message, Unavailable
from holdfast.store import database
from holdfast.store.connect import open_database

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
def test_a_lock_that_another_holds_for_long_is_reported_and_keeps_nobody_from_reading(locked: Memory) -> None:
    with pytest.raises(Unavailable, match=r"lock") as error:
        locked.chat("monday").append(role="user", content="hello")
    assert "URL" not in str(error.value)
    assert locked.chat("monday").stats().messages == len(locked.chat("monday").history()) == 1


@pytest.mark.slow
def test_after_a_lock_is_gone_writing_goes_on(shared_location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 1)
    with closing(open_database(shared_location)) as db, Memory(shared_location, user="ada") as memory:
        with db.writing() as tx:
            tx.lock(memory.scope.space)
            with pytest.raises(Unavailable) as error:
                memory.chat("monday").append(role="user", content="hello")
        assert "URL" not in str(error.value)
        assert memory.chat("monday").append(role="user", content="hello").seq == 1


# Transactions


def count(db: database.Database) -> int:
    with db.reading() as connection:
        return int(connection.all("SELECT count(*) FROM spaces WHERE space = :space", space="x")[0][0])


INSERT = "INSERT INTO spaces (space, epoch) VALUES (:space, 0)"


@pytest.mark.parametrize("error", [ValueError(), KeyboardInterrupt(), GeneratorExit()])
def test_a_transaction_that_raises_leaves_nothing(location: str, error: BaseException) -> None:
    def fail() -> None:
        with db.writing() as tx:
            tx.all(INSERT, space="x")
            raise error

    with closing(open_database(location)) as db:
        with pytest.raises(type(error)):
            fail()
        assert count(db) == 0
        with db.writing() as tx:
            tx.all(INSERT, space="x")
        assert count(db) == 1


def test_a_transaction_is_not_seen_before_its_end(shared_location: str) -> None:
    with closing(open_database(shared_location)) as db, closing(open_database(shared_location)) as other:
        with db.writing() as tx:
            tx.all(INSERT, space="x")
            assert count(other) == 0
        assert count(other) == 1


@pytest.mark.parametrize(("durability", "level", "commit"), [("full", 2, "on"), ("normal", 1, "off")])
def test_the_durability_is_that_of_the_database(
    shared_location: str, durability: Any, level: int, commit: str
) -> None:
    sqlite = not shared_location.startswith("postgresql:")
    with closing(open_database(shared_location, durability)) as db, db.writing() as tx:
        found = tx.all("PRAGMA synchronous" if sqlite else "SHOW synchronous_commit")
        assert found == [(level if sqlite else commit,)]


# What keeps two transactions apart on PostgreSQL


def test_a_space_is_locked_by_its_row_which_every_node_of_a_cluster_sees(postgres_url: str) -> None:
    free = b"SELECT space FROM holdfast.spaces FOR UPDATE SKIP LOCKED"
    places = []
    with (
        closing(open_database(postgres_url)) as db,
        psycopg.connect(postgres_url, autocommit=True) as other,
    ):
        for _ in range(3):  # the first time there is no row yet
            with db.writing() as tx:
                tx.lock("x")
                assert other.execute(free).fetchall() == []
                locks = other.execute("SELECT locktype FROM pg_locks WHERE locktype = 'advisory'").fetchall()
                assert locks == []
            assert other.execute(free).fetchall() == [("x",)]
            places.append(other.execute("SELECT ctid, xmin FROM holdfast.spaces").fetchall())
    assert places[0] == places[1] == places[2], "a lock has written a new version of the row"


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
            with first._runtime.database.writing() as tx:
                tx.lock(space)
                same = Message("user", "once", id="m1")
                waiting = [pool.submit(second.chat("monday").append, [same]) for _ in range(2)]
                while waiting_for_locks(other) < 2:
                    pass
            stored = [each.result()[0] for each in waiting]
            with first._runtime.database.writing() as tx:
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


# While an append waits for its space, a transaction erases the chat, or restores a row; or the space has not
# been counted yet. What is expected are the seq and the document number.
MEANWHILE = {
    "erased": (b"DELETE FROM sessions; DELETE FROM messages; UPDATE spaces SET docs = 3", (1, 4)),
    "restored": (
        b"""INSERT INTO messages (space, chat, seq, doc, id, given, role, at, tokens, content, checksum)
            SELECT space, 'tuesday', 1, 4, id, given, role, at, tokens, content, checksum
            FROM messages WHERE seq = 3""",
        (4, 5),
    ),
    "uncounted": (b"UPDATE spaces SET docs = 0", (4, 4)),
}


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_one_statement_stores_what_a_transaction_would(own_postgres_url: str, meanwhile: str) -> None:
    script, expected = MEANWHILE[meanwhile]
    with (
        Memory(own_postgres_url, user="ada") as memory,
        ThreadPoolExecutor(1) as pool,
        psycopg.connect(own_postgres_url, options="-c search_path=holdfast") as other,
        psycopg.connect(own_postgres_url, autocommit=True) as watching,
    ):
        chat = memory.chat("monday")
        for text in ("The bib is 37.", "It is blue.", "It is lost."):
            chat.append(role="user", content=text)
        other.execute("SELECT space FROM spaces FOR UPDATE")
        appended = pool.submit(lambda: chat.append(role="user", content="It is found."))
        while waiting_for_locks(watching) < 1:
            pass
        other.execute(script)
        other.commit()
        assert appended.result().seq == expected[0]
        assert chat.append(role="user", content="It is red.").seq == expected[0] + 1
        docs = watching.execute("SELECT doc FROM holdfast.messages ORDER BY doc DESC LIMIT 2").fetchall()
        assert docs == [(expected[1] + 1,), (expected[1],)]


def test_an_append_is_one_statement(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run, seen = psycopg.Connection.execute, list[object]()

    def execute(self: Any, query: Any, *args: Any, **options: Any) -> Any:
        seen.append(query)
        return run(self, query, *args, **options)

    with Memory(postgres_url, user="ada", agent="coach") as memory:
        chat = memory.chat("monday")
        chat.append(role="user", content="The bib is 37.")
        memory.chat("tuesday").prompt(query="Which bib?")
        memory.chat("tuesday").append(role="user", content="Which bib?")
        monkeypatch.setattr(psycopg.Connection, "execute", execute)
        for role in ("user", "assistant"):
            chat.append(role=role, content="It is blue.", meta={"k": 1}, name="ada")
        memory.chat("tuesday").append(role="user", content="And which colour?")
        assert len(seen) == 3


def test_a_write_to_the_pad_of_a_run_waits_for_its_end(own_postgres_url: str) -> None:
    with (
        Memory(own_postgres_url, user="ada") as memory,
        ThreadPoolExecutor(2) as pool,
        psycopg.connect(own_postgres_url, autocommit=True) as other,
    ):
        run = memory.chat("monday").run("r1")
        with memory._runtime.database.writing() as tx:
            tx.lock(memory.scope.space)
            ended = pool.submit(run.end)
            while waiting_for_locks(other) < 1:
                pass
            noted = pool.submit(run.scratchpad.__setitem__, "step", "1")
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


def test_a_cluster_that_refuses_one_statement_runs_a_transaction(own_postgres_url: str) -> None:
    with Memory(own_postgres_url, user="ada") as memory:
        chat = memory.chat("monday")
        chat.append(role="user", content="The bib is 37.")
        let_clash(own_postgres_url, 1, "0A000")
        assert [chat.append(role="user", content="It is blue.").seq for _ in range(2)] == [2, 3]
        assert memory.verify().ok


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
        run.scratchpad["step"] = "1"


WRITES: dict[str, Callable[[Memory], object]] = {
    "append": CALLS["append"],
    "remember, undo": remember_and_undo,
    "prompt": lambda memory: memory.chat("monday").prompt(),
    "compact": lambda memory: memory.chat("monday").compact(budget=500),
    "a run": note_for_a_run,
    "rebuild": lambda memory: memory.verify(repair=True),
    "end and work": lambda memory: (memory.chat("monday").end(), memory.learning.work(limit=1)),
    "erase": lambda memory: memory.erase(chat="monday", messages=(1, 2)),
}


@pytest.mark.slow
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
