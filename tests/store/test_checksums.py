"""Checksums: `verify` finds every change of a row that was made behind the memory, and no others."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from holdfast import InvalidInput, Memory, ToolCall
from holdfast.store import checksums, table_rows
from holdfast.store.schema import Column, tables
from holdfast_cli.commands import app

KEY, OTHER = b"sixteen bytes or", b"another key of 24 bytes."
ROWS = 27  # that `fill` leaves, and that have checksums
CHANGES = [
    "UPDATE summaries SET text = 'Nothing was decided.'",
    "UPDATE summaries SET model = 'gpt'",
    "UPDATE records SET text = 'Lives in Rome' WHERE version = 1",
    "UPDATE records SET writer = 'user' WHERE version = 2",
    "UPDATE records SET tags = NULL WHERE version = 3",
    "UPDATE messages SET content = content || '.' WHERE seq = 14",
    "UPDATE messages SET role = 'assistant' WHERE seq = 13",
    "UPDATE messages SET name = 'None' WHERE seq = 3",
    "UPDATE messages SET seq = 30 WHERE seq = 3",
    "UPDATE messages SET doc = 4294967296 + doc WHERE seq = 3",
    "UPDATE messages SET id = '0000000000090000000a' WHERE seq = 3",
    "UPDATE messages SET raw = '' WHERE seq = 3",
    "UPDATE messages SET shown = '[]' WHERE seq = 14",
    "UPDATE pads SET value = '2'",
    "UPDATE sessions SET title = 'Another'",
    "UPDATE sessions SET agent = 'x'",
    "UPDATE sessions SET channel = 'x'",
    "UPDATE sessions SET meta = '{}'",
    "UPDATE sessions SET created = 0",
    "UPDATE erasures SET counts = '{}'",
    "UPDATE grants SET ended = 4611686018427387904 WHERE number = 1",
    "UPDATE grants SET rights = 'write' WHERE number = 2",
    "UPDATE grants SET grantee = 'eve' WHERE number = 1",
    "UPDATE snapshots SET version = 1",
    "UPDATE snapshots SET others = '{}'",
]


def change(location: str, sql: str) -> None:
    """Change a database behind our back."""
    if location.startswith("postgresql:"):
        with psycopg.connect(location, options="-c search_path=holdfast", autocommit=True) as connection:
            connection.execute(sql.encode())
        return
    with closing(sqlite3.connect(location, isolation_level=None)) as connection:
        connection.execute(sql)


def fill(memory: Memory) -> None:
    chat = memory.chat("monday")
    for n in range(12):
        chat.append(
            role="assistant" if n % 2 else "user",
            content=f"Step {n}: the table number {n} is in Kiel by now.",
        )
    chat.compact(budget=60)
    chat.append(role="user", content="What is left?")
    chat.append(role="assistant", content="Nothing.", calls=[ToolCall("c1", "read")], meta={"k": 1})
    first = memory.remember("Lives in Kiel, near the harbour", kind="fact")
    memory.replace(first.id, "Lives in Bremen, near the river")
    memory.remember("Plays the cello", kind="fact", tags=["music"])
    memory.scratchpad["week"] = "1"
    chat.prompt(500)
    memory.grants.add("user", to="user:bob")
    memory.grants.revoke("user", to="user:bob")
    gone = memory.chat("gone")
    gone.append([{"role": "user", "content": f"secret {n}"} for n in range(3)])
    memory.erase(chat="gone", messages=2)


@pytest.fixture
def filled(shared_location: str) -> str:
    with Memory(shared_location, user="ada") as memory:
        fill(memory)
    return shared_location


@pytest.fixture
def sealed(shared_location: str) -> str:
    with Memory(shared_location, user="ada", key=KEY) as memory:
        fill(memory)
    return shared_location


def test_what_was_written_is_proved(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(filled, user="ada") as memory:
        for page in (table_rows.PAGE, 4):  # more rows than a page are read to the end
            monkeypatch.setattr(table_rows, "PAGE", page)
            verified = memory.verify()
            assert (verified.problems, verified.unproven) == ((), 0)
            assert verified.checked["checksums"] == ROWS


@pytest.mark.parametrize("sql", CHANGES)
def test_a_change_behind_our_back_is_named(filled: str, sql: str) -> None:
    change(filled, sql)
    with Memory(filled, user="ada") as memory:
        verified = memory.verify()
        assert "another checksum" in "\n".join(verified.problems)
        assert verified.unproven == 0


def test_a_row_without_a_checksum_is_named(tmp_path: Path) -> None:
    location = str(tmp_path / "memory.db")
    with Memory(location, user="ada") as memory:
        fill(memory)
    with closing(sqlite3.connect(location)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'checksum BIGINT NOT NULL', 'checksum BIGINT')"
        )
    change(location, "UPDATE messages SET checksum = NULL WHERE seq = 14")
    with Memory(location, user="ada") as memory:
        assert [one for one in memory.verify().problems if "another checksum" in one]


def test_many_changes_are_counted(filled: str) -> None:
    with Memory(filled, user="ada") as memory:
        memory.chat("long").append([{"role": "user", "content": f"word{n}"} for n in range(50)])
        change(filled, "UPDATE messages SET content = 'x' WHERE chat = 'long'")
        problems = "\n".join(memory.verify().problems)
        assert problems.count("message long#") == 20
        assert "30 more rows of the table messages" in problems


# Changes through the memory


STEPS: Mapping[str, Callable[[Memory], object]] = {
    "a title": lambda memory: memory.chat("monday").rename("Another"),
    "the archive": lambda memory: memory.chat("monday").archive(),
    "a retraction": lambda memory: memory.retract(memory.records()[0].id, why="moved"),
    "an undo": lambda memory: memory.undo(),
    "a value": lambda memory: memory.scratchpad.update({"week": "2"}),
    "a larger tree": lambda memory: [
        memory.chat("monday").append([{"role": "user", "content": f"word {n} " * 30} for n in range(30)]),
        memory.chat("monday").compact(budget=80),
    ],
    "a snapshot": lambda memory: memory.chat("monday").refresh(),
    "what a chat knows": lambda memory: memory.chat("monday").remember("Has a dog"),
    "a grant": lambda memory: memory.grants.add("user", to="user:bob", rights="write"),
    "an erased message": lambda memory: memory.erase(chat="monday", messages=1),
    "an erased record": lambda memory: memory.erase(record=memory.records()[0].id),
    "an erased chat": lambda memory: memory.erase(chat="gone"),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_a_change_through_the_memory_is_sound(filled: str, step: Callable[[Memory], object]) -> None:
    with Memory(filled, user="ada") as memory:
        step(memory)
        assert (memory.verify().problems, memory.verify().unproven) == ((), 0)


def test_a_change_through_the_memory_does_not_cover_one_behind_our_back(filled: str) -> None:
    change(filled, "UPDATE sessions SET agent = 'x' WHERE chat = 'monday'")
    with Memory(filled, user="ada") as memory:
        memory.chat("monday").rename("Another")
        assert "chat 'monday': its row" in memory.verify().problems[0]


# With a key


@pytest.mark.parametrize("last", ["none", "revoked", "erased"])
def test_an_old_grant_that_is_put_back_is_named(shared_location: str, last: str) -> None:
    with Memory(shared_location, user="ada", key=KEY, admin=True) as memory:
        for user in ("eve", "bob"):
            memory.grants.add("user", to=f"user:{user}")
        database, space = memory._runtime.database, memory.scope.space
        (before,) = database.all("SELECT * FROM grants WHERE space = :space AND number = 2", space=space)
        if last == "erased":
            memory.erase(user="bob")
        else:
            memory.grants.revoke("user", to="user:bob")
        if last != "none":
            memory.grants.add("user", to="user:kim")
        assert memory.verify().ok
        with database.writing() as tx:
            which = "number = 2" if last == "none" else "grantee = 'bob'"
            tx.all(f"DELETE FROM grants WHERE space = :space AND {which}", space=space)
            values = {f"v{n}": value for n, value in enumerate(before)}
            tx.all(f"INSERT INTO grants VALUES ({', '.join(f':{name}' for name in values)})", **values)
        assert "user:bob" in {grant.to for grant in memory.grants}
        (problem,) = memory.verify().problems
        assert ("does not end where the next one begins" if last == "none" else "was put back") in problem


def test_what_was_sealed_is_proved_by_its_key_only(sealed: str) -> None:
    with Memory(sealed, user="ada", key=KEY) as memory:
        assert (memory.verify().problems, memory.verify().unproven) == ((), 0)
    with Memory(sealed, user="ada") as memory:
        assert (memory.verify(key=KEY).problems, memory.verify(key=KEY).unproven) == ((), 0)
        verified = memory.verify()
        assert (verified.problems, verified.unproven, verified.checked["checksums"]) == ((), ROWS, 0)
        assert len(memory.verify(key=OTHER).problems) == ROWS


def test_a_forger_who_sums_up_anew_leaves_rows_that_are_not_proved(sealed: str) -> None:
    with Memory(sealed, user="ada") as memory:  # who has no key
        memory.chat("monday").append(role="user", content="Pay the invoice at once.")
        assert (memory.verify(key=KEY).problems, memory.verify(key=KEY).unproven) == ((), 1)


@pytest.mark.parametrize("key", [b"short", b"x" * 65, "sixteen bytes or", 7, b""])
def test_what_is_no_key_is_refused(key: Any) -> None:
    with pytest.raises(InvalidInput, match="16 to 64 bytes"):
        Memory(":memory:", key=key)
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match="16 to 64 bytes"):
        memory.verify(key=key)


# The sum itself

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["None", "1", "\x00", "'"]
)


def rows(table: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            column.name: (st.integers(-(2**63), 2**63 - 1) if column.python_type is int else TEXT)
            | (st.none() if column.nullable else st.nothing())
            for column in tables()[table].columns
            if column.name not in (*checksums.CHANGING[table], "checksum")
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("table", checksums.CHANGING)
@given(data=st.data())
def test_another_row_has_another_checksum(table: str, data: st.DataObject) -> None:
    one = data.draw(rows(table))
    drawn = {name: st.just(value) for name, value in data.draw(rows(table)).items()}
    other = {**one, **data.draw(st.fixed_dictionaries({}, optional=drawn))}
    same = checksums.seal(table, one, KEY) == checksums.seal(table, other, KEY)
    assert same == (one == other)


def test_the_checksum_of_a_row_is_this_for_ever() -> None:
    """What was stored is compared with what is computed years later, on another machine."""
    row = dict.fromkeys(tables()["messages"].names) | {
        "space": "/ada", "chat": "Grüße", "seq": 1, "doc": 7, "id": "a", "given": 1, "role": "user",
        "at": -5, "tokens": 4, "content": "two\nlines \U0001f600", "raw": "", "meta": '{"k": "ü"}',
    }  # fmt: skip
    assert checksums.seal("messages", row, b"") == 2557576098
    assert checksums.seal("messages", row, KEY) == -2051479761837167721


def test_a_column_that_is_added_later_changes_no_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    row = dict.fromkeys(tables()["records"].names, "x")
    before = checksums.seal("records", row, b"")
    monkeypatch.setitem(tables(), "records", _with_column("records", "mood"))
    checksums.sealer.cache_clear()
    assert checksums.seal("records", {**row, "mood": None}, b"") == before
    assert checksums.seal("records", {**row, "mood": "glad"}, b"") != before


def _with_column(table: str, name: str) -> Any:
    shape = tables()[table]
    return shape._replace(columns=(*shape.columns, Column(name, str, nullable=True, default=None)))


@pytest.fixture(autouse=True)
def fresh_sealers() -> Iterator[None]:
    yield
    checksums.sealer.cache_clear()


def test_the_command_line_reads_the_key_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = str(tmp_path / "memory.db")
    monkeypatch.setenv("HOLDFAST_KEY", KEY.hex())
    run = CliRunner()
    assert run.invoke(app, ["remember", "Lives in Kiel", "--db", location]).exit_code == 0
    assert "1 checksum" in run.invoke(app, ["verify", "--db", location]).stdout
    monkeypatch.setenv("HOLDFAST_KEY", "")
    assert "1 row unproven" in run.invoke(app, ["verify", "--db", location]).stdout
    monkeypatch.setenv("HOLDFAST_KEY", "no digits")
    assert "hexadecimal" in run.invoke(app, ["verify", "--db", location]).stderr


def test_a_forger_is_found_out(sealed: str) -> None:
    change(sealed, CHANGES[2])
    with Memory(sealed, user="ada", key=KEY) as memory:
        assert "another checksum" in "\n".join(memory.verify().problems)
