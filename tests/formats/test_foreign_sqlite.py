"""Databases of other programs: read as they are at one moment, never changed, trusted in nothing."""

from __future__ import annotations

import signal
import sqlite3
import struct
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from holdfast import Unavailable
from holdfast_cli.formats import foreign_sqlite
from holdfast_cli.formats.files import File
from holdfast_cli.formats.foreign_sqlite import open_database


def make(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def notes(path: Path) -> list[tuple[object, ...]]:
    with open_database(File.at(path)) as database:
        return list(database.rows("notes", ["id", "text"], order=["id"]))


NOTES = ("CREATE TABLE notes (id INTEGER PRIMARY KEY, text)", "INSERT INTO notes VALUES (2, 'b'), (1, 'a')")
READ = [(1, "a"), (2, "b")]


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return make(tmp_path / "plain ?#%.db", *NOTES)


@contextmanager
def unchanged(folder: Path) -> Iterator[None]:
    def state() -> dict[str, tuple[bytes, int]]:
        return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()}

    before = state()
    yield
    assert state() == before


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_file_that_nobody_writes_is_left_as_it_is(plain: Path, mode: str) -> None:
    make(plain, f"PRAGMA journal_mode = {mode}")
    with unchanged(plain.parent):
        assert notes(plain) == READ


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_running_program_is_read_up_to_its_last_commit_and_goes_on_writing(plain: Path, mode: str) -> None:
    with closing(sqlite3.connect(plain, isolation_level=None, timeout=0)) as program:
        program.execute(f"PRAGMA journal_mode = {mode}")
        program.execute("INSERT INTO notes VALUES (3, 'c')")
        with open_database(File.at(plain)) as database:
            rows = database.rows("notes", ["text"], order=["id"])
            assert next(rows) == ("a",)
            program.execute("INSERT INTO notes VALUES (4, 'd')")
            if mode == "wal":
                assert list(rows) == [("b",), ("c",)]
        assert notes(plain)[2:] == [(3, "c"), (4, "d")]


def test_a_link_is_followed_to_the_log_of_its_file(plain: Path) -> None:
    link = plain.parent / "link.db"
    link.symlink_to(plain)
    with closing(sqlite3.connect(plain, isolation_level=None)) as program:
        program.execute("PRAGMA journal_mode = wal")
        program.execute("INSERT INTO notes VALUES (3, 'c')")
        assert notes(link)[2:] == [(3, "c")]


def test_a_program_that_holds_the_lock_is_named_as_the_reason(
    plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_sqlite, "_WAIT", 0.01)
    with closing(sqlite3.connect(plain, isolation_level=None)) as program:
        program.execute("BEGIN EXCLUSIVE")
        with pytest.raises(Unavailable, match="another program writes"):
            notes(plain)


def test_a_file_that_was_written_without_a_log_meanwhile_is_reported(plain: Path) -> None:
    make(plain, "PRAGMA journal_mode = wal")

    def read() -> None:
        with open_database(File.at(plain)) as database:
            assert list(database.rows("notes", ["id"])) == [(1,), (2,)]
            make(plain, "INSERT INTO notes SELECT id + 10, hex(randomblob(9000)) FROM notes")

    with pytest.raises(Unavailable, match="written while"):
        read()


def test_what_an_interrupted_program_left_half_written_is_reported(plain: Path) -> None:
    program = f"""
        import os, signal, sqlite3
        connection = sqlite3.connect({str(plain)!r}, isolation_level=None)
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        for n in range(9):
            connection.execute("UPDATE notes SET text = hex(randomblob(90000))")
        os.kill(os.getpid(), signal.SIGKILL)
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(plain.parent.iterdir())) == 2  # the journal
    with unchanged(plain.parent), pytest.raises(Unavailable, match="was interrupted"):
        notes(plain)


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TABLE other (id, text)", "CREATE VIEW notes AS SELECT * FROM other"),
        ("CREATE TABLE notes (id, text AS (zeroblob(100000000)))", "INSERT INTO notes VALUES (1)"),
        ("CREATE VIRTUAL TABLE notes USING fts5(id, text)",),
        ("CREATE TABLE notes (id)",),
        ("CREATE TABLE other (id, text)",),
    ],
    ids=["view", "computed", "virtual", "no column", "no table"],
)
def test_only_what_a_table_stores_is_read(tmp_path: Path, statements: tuple[str, ...]) -> None:
    path = make(tmp_path / "x.db", *statements)
    with pytest.raises(Unavailable, match="no table 'notes' with"):
        notes(path)


def test_nothing_that_the_schema_says_is_run(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.create_function("harm", 1, lambda _: 1, deterministic=True)
        connection.execute("CREATE TABLE notes (id, text CHECK (harm(text)))")
        connection.execute("CREATE INDEX harmful ON notes (harm(text))")
        connection.execute("INSERT INTO notes VALUES (1, 'a')")
    # A function that it does not know would be an error, if it were called.
    assert notes(path) == [(1, "a")]


def test_values_are_of_any_type_and_bytes_that_are_no_text_stay_recognisable(tmp_path: Path) -> None:
    path = make(
        tmp_path / "x.db",
        "CREATE TABLE notes (id TEXT, text INTEGER) ",
        "INSERT INTO notes VALUES (1, x'00ff'), (2, 1.5), (3, NULL), (4, CAST(x'61ff' AS TEXT))",
    )
    assert [text for _, text in notes(path)] == [b"\x00\xff", 1.5, None, "a\udcff"]


def test_a_value_without_measure_is_not_loaded(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_sqlite, "_MAX_VALUE", 1 << 20)
    make(plain, "INSERT INTO notes VALUES (3, zeroblob(2000000))")
    with pytest.raises(Unavailable, match="longer than 1 MiB"):
        notes(plain)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Make a table whose pages have one page above them, and no index."""
    return make(
        tmp_path / "large.db",
        "PRAGMA page_size = 512",
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, text)",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) "
        "INSERT INTO notes SELECT i, hex(zeroblob(40)) FROM n",
    )


def test_damage_is_reported_before_rows_are_read(large: Path) -> None:
    content = bytearray(large.read_bytes())
    content[512 * 5 : 512 * 6] = b"\xff" * 512
    large.write_bytes(content)
    with pytest.raises(Unavailable, match="damaged"):
        notes(large)
    large.write_bytes(content[: 512 * 4])
    with pytest.raises(Unavailable, match="damaged"):
        notes(large)
    large.write_bytes(b"SQLite format 3\x00" + b"\xff" * 2000)
    with pytest.raises(Unavailable):
        notes(large)


@pytest.mark.slow
def test_pages_that_form_a_maze_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Too large to be checked first, and each level leads 50 times to the next: 50 ** 8 rows.
    monkeypatch.setattr(foreign_sqlite, "_MAX_CHECKED", 0)
    path = make(
        tmp_path / "maze.db",
        "PRAGMA page_size = 512",
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, text)",
        "INSERT INTO notes VALUES (1, 'a')",
    )
    content = bytearray(path.read_bytes())
    (leaf,) = struct.unpack(">I", content[28:32])
    content[512 * (leaf - 1) : 512 * leaf], kept = b"", bytes(content[512 * (leaf - 1) : 512 * leaf])
    for level in range(8):
        below = leaf + level + 1
        cells = b"".join(struct.pack(">IB", below, number) for number in range(1, 51))
        starts = [512 - len(cells) + 5 * number for number in range(50)]
        head = struct.pack(">BHHHBI", 5, 0, 50, starts[0], 0, below)
        page = head + b"".join(struct.pack(">H", start) for start in starts)
        content += page.ljust(512 - len(cells), b"\x00") + cells
    content += kept
    content[28:32] = struct.pack(">I", len(content) // 512)
    path.write_bytes(content)
    with pytest.raises(Unavailable, match="does not end"):
        notes(path)


def test_what_is_no_database_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("SQLite format")
    for path in (tmp_path / "empty", tmp_path / "text"):
        with pytest.raises(Unavailable, match="no SQLite database"):
            notes(path)
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(Unavailable, match="cannot be read"):
            notes(path)
