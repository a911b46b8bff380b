"""PostgreSQL behind a pooler that gives each transaction another session: all holds that holds without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from urllib.parse import urlsplit

import psycopg
import pytest

from holdfast import InvalidInput, Memory, Unavailable
from holdfast.store import database
from holdfast.store.connect import open_database
from holdfast.testing import Conformance
from programs import run_together

pytestmark = pytest.mark.slow  # a program of its own, and several databases

SHOWN = """
    SELECT current_setting('search_path'), current_setting('synchronous_commit'),
        current_setting('lock_timeout'), current_setting('transaction_isolation')"""


@pytest.fixture
def bare_pooled_url(
    own_postgres_url: str, pooler: Callable[..., str], record_property: Callable[[str, object], None]
) -> str:
    """A database of its own without our tables, behind a pooler with one session of the server for all."""
    record_property("pooler", "pgbouncer")
    return f"postgresql://postgres@{pooler(1)}{urlsplit(own_postgres_url).path}"


class TestMemoryBehindAPooler(Conformance):
    """The whole suite."""

    @pytest.fixture(autouse=True)
    def _place(self, pooled_url: str) -> Iterator[None]:
        self._url = pooled_url
        self._opened: list[Memory] = []
        yield
        for memory in self._opened:
            memory.close()

    def make(self) -> Memory:
        self._opened.append(Memory(self._url, user="ada", admin=True))
        return self._opened[-1]


def use(memory: Memory) -> None:
    chat = memory.chat("monday")
    for n in range(12):  # more often than the driver needs to prepare a statement
        chat.append(role="user", content=f"message {n} about the Berlin marathon")
        memory.remember(f"Fact {n}: the bib is {n * 37}")
    assert len(chat.history()) == 12
    assert memory.recall("Berlin")
    chat.prompt(query="marathon")
    chat.compact()
    assert memory.verify().ok


def test_a_new_database_is_made_in_its_schema_and_leaves_nothing_in_the_session(bare_pooled_url: str) -> None:
    with psycopg.connect(bare_pooled_url, autocommit=True, prepare_threshold=None) as other:
        before = other.execute(SHOWN).fetchall()
        with Memory(bare_pooled_url, user="ada") as memory:
            use(memory)
            assert other.execute(SHOWN).fetchall() == before
            assert other.execute("SELECT name FROM pg_prepared_statements").fetchall() == []
            memory.erase(chat="monday")
            assert memory.verify().ok
        found = other.execute("SELECT DISTINCT schemaname FROM pg_tables WHERE tablename = 'messages'")
        assert found.fetchall() == [("holdfast",)]


@pytest.mark.parametrize(
    "setting",
    [
        "lock_timeout = 7",
        "default_transaction_isolation = 'serializable'",
        "default_transaction_read_only = on",
    ],
)
@pytest.mark.parametrize(("durability", "commit"), [("full", "on"), ("normal", "off")])
def test_each_query_and_transaction_has_its_settings(
    own_postgres_url: str,
    bare_pooled_url: str,
    setting: str,
    durability: database.Durability,
    commit: str,
) -> None:
    with psycopg.connect(own_postgres_url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {urlsplit(own_postgres_url).path[1:]} SET {setting}".encode())
    expected = [("holdfast", commit, "30s", "read committed")]
    with closing(open_database(bare_pooled_url, durability)) as db:
        with db.writing() as tx:
            assert tx.all(SHOWN) == expected
        with db.reading() as connection_:
            assert connection_.all(SHOWN) == expected


def test_after_a_query_that_failed_the_next_one_is_answered(pooled_url: str) -> None:
    def lock_and_fail() -> None:
        with db.writing() as tx:
            tx.lock("x")
            tx.all("SELECT 1 / 0")

    with closing(open_database(pooled_url)) as db:
        for _ in range(3):
            with pytest.raises(Unavailable), db.reading() as connection:
                connection.all("SELECT 1 / 0")
        with pytest.raises(Unavailable):
            lock_and_fail()
        with db.reading() as connection:
            assert connection.all("SELECT space FROM spaces WHERE space = :space", space="x") == []


APPEND = """
import sys
from holdfast import Memory
with Memory(sys.argv[1], user="ada") as memory:
    print("ready", flush=True)
    input()
    for n in range(30):
        memory.chat("monday").append(role="user", content=f"{sys.argv[2]} {n}")
"""


def test_processes_that_append_to_one_chat_take_every_number_once(pooled_url: str) -> None:
    run_together(APPEND, [(pooled_url, "one"), (pooled_url, "two"), (pooled_url, "three")])
    with Memory(pooled_url, user="ada") as memory:
        assert [message.seq for message in memory.chat("monday").history()] == list(range(1, 91))
        assert memory.verify().ok


def test_a_pooler_that_hides_itself_can_be_named(postgres_url: str) -> None:
    with closing(open_database(f"{postgres_url}&pooled=true")) as db, db.reading() as connection:
        assert connection.all(SHOWN) == [("holdfast", "on", "30s", "read committed")]
        assert connection.all("SELECT current_setting('application_name')") == [("",)]


@pytest.mark.parametrize("value", ["pooled", "pooled=", "pooled=yes", "pooled=true&pooled=0"])
def test_another_value_is_refused(postgres_url: str, value: str) -> None:
    with pytest.raises(InvalidInput, match="pooled"):
        open_database(f"{postgres_url}&{value}")
