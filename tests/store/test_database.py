"""Databases that cannot be opened, read or written: a clear error, and nothing stored changes."""

from __future__ import annotations

import hashlib
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlite_files import CALLS, fill, put

from holdfast import ChatStats, Damaged, InvalidInput, Memory, Message, Unavailable
from programs import run
from tables import each


def fingerprint(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A closed database of 60 messages."""
    fill(tmp_path / "memory.db", 60)
    return tmp_path / "memory.db"


# What is no place for a database


@each("place", [None, 7, b"memory.db", "", "a\x00b", "\ud800", ["memory.db"], object()])
def test_what_names_no_place_is_refused(place: Any) -> None:
    with pytest.raises(InvalidInput, match="not a place"):
        Memory(place)


@each("url", ["sqlite:///memory.db", "http://localhost", "postgres+asyncpg://ada:secret@localhost/memory"])
def test_a_url_of_another_kind_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="Unsupported database") as error:
        Memory(url)
    assert "secret" not in str(error.value)


@each("durability", ["FULL", None, ["full"]])
def test_an_unknown_durability_is_refused(tmp_path: Path, durability: Any) -> None:
    with pytest.raises(InvalidInput, match="durability"):
        Memory(tmp_path / "memory.db", durability=durability)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_database_and_none_is_made(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="folder"):
        Memory(tmp_path)
    with pytest.raises(Unavailable, match="Check that the folder exists"):
        Memory(tmp_path / "no" / "memory.db")
    assert list(tmp_path.iterdir()) == []


@each("name", ["ünï 日本.db", "a b.db", "100%.db", "it's;.db", "a:b.db", "C:", "file:a.db?mode=memory"])
def test_a_file_may_have_any_name_and_be_empty(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    fill(tmp_path / name)
    with Memory(tmp_path / name, user="ada") as memory:
        assert memory.chat("monday").stats().messages == 1
    assert (tmp_path / name).stat().st_size


# Files that are not what they should be


@pytest.mark.parametrize(
    "content",
    [
        b"x",
        b"Dear diary. " * 200,
        b"SQLite format 3\x00" + b"\xff" * 5000,
        b"SQLite format 3\x00",
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


@pytest.mark.parametrize(("table", "mode"), [("messages", "WAL"), ("photos", "DELETE")])
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


@each("size", [1, 99, 512, 4095, 4096, 4097, 12_288, 0.5, 0.9, -4096, -1])
def test_a_truncated_database_is_noticed_and_left_alone(file: Path, size: float) -> None:
    content, short = file.read_bytes(), file.with_name("short.db")
    short.write_bytes(content[: int(len(content) * size if 0 < size < 1 else size)])
    before = fingerprint(short)
    assert read_all(short) is None
    assert fingerprint(short) == before


@each("share", [0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95])
def test_a_page_of_noise_is_noticed_or_hurts_nothing(file: Path, share: float) -> None:
    before, content, noisy = read_all(file), bytearray(file.read_bytes()), file.with_name("noisy.db")
    page = int(len(content) // 4096 * share) * 4096
    content[page : page + 4096] = hashlib.sha512(b"noise").digest() * 64
    noisy.write_bytes(content)
    assert before
    assert read_all(noisy) in [None, before]


@each(
    "damage",
    [
        "DROP TABLE messages",
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
    damaged = file.with_name("damaged.db")
    damaged.write_bytes(file.read_bytes())
    put(damaged, damage)
    with Memory(damaged, user="ada") as memory, pytest.raises(Damaged):
        everything(memory)


@each(
    "damage",
    [
        "DELETE FROM messages WHERE seq = 7",
        "DELETE FROM messages WHERE seq = 60",
        "UPDATE messages SET tokens = 7 WHERE seq = 7",
        "UPDATE messages SET doc = 700 WHERE seq = 7",
        "UPDATE messages SET content = CAST(x'c328ff' AS TEXT) WHERE seq = 7",
        "UPDATE messages SET raw = '{' WHERE seq = 7",
        "UPDATE sessions SET length = 59",
        "UPDATE sessions SET newest = 9223372036854775807",
        "DELETE FROM sessions",
    ],
)
def test_verify_reports_what_does_not_fit(file: Path, damage: str) -> None:
    damaged = file.with_name("damaged.db")
    damaged.write_bytes(file.read_bytes())
    put(damaged, damage)
    with Memory(damaged, user="ada") as memory:
        assert memory.verify().problems != ()


# Places where one may not write

AS_NOBODY = """
import os, sys
import encodings.idna, traceback
from holdfast import HoldfastError, Memory
with Memory(":memory:") as first:  # loads what nobody may not read
    first.chat("monday").append(role="user", content="Mend the bell.")
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


@pytest.mark.parametrize(
    ("file", "folder", "told"),
    [
        (None, 0o777, "stored"),
        (None, 0o555, "Unavailable"),
        (0o444, 0o555, "Unavailable"),
        (0o444, 0o777, "Unavailable"),
        (0o000, 0o777, "Unavailable"),
    ],
)
def test_a_place_that_cannot_be_written_or_read_is_reported(
    public: Path, file: int | None, folder: int, told: str
) -> None:
    place = public / "memory.db"
    if file is not None:
        fill(place)
        before = fingerprint(place)
        place.chmod(file)
    public.chmod(folder)
    assert run(AS_NOBODY, place).startswith(told)
    if file is not None:
        assert fingerprint(place) == before
    elif told == "Unavailable":
        assert list(public.iterdir()) == []


@pytest.mark.slow
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


# Values of another type than was stored: SQLite keeps any value in any column


WRONG_TYPES = [
    ("spaces", "version", "'x'"),
    ("sessions", "length", "'x'"),
    ("sessions", "title", "x'c3ff'"),
    ("messages", "doc", "doc || 'x'"),
    ("messages", "at", "'x'"),
    ("messages", "content", "x'c3ff'"),
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
    "jobs": lambda memory: memory.learning.jobs(),
}


@each(("table", "column", "value"), WRONG_TYPES)
def test_a_value_of_another_type_is_damage_wherever_it_is_read(
    tmp_path: Path, table: str, column: str, value: str
) -> None:
    file = tmp_path / f"{table} {column}.db"
    with Memory(file, user="ada") as memory:
        said = [{"role": "user", "content": f"the Berlin marathon {n}"} for n in range(5)]
        memory.chat("monday").append(said)
        memory.remember("the bib is 7", tags=["race"])
    put(file, f"UPDATE {table} SET {column} = {value}")
    named = 0
    with Memory(file, user="ada") as memory:
        for call in READS.values():
            try:
                call(memory)
            except Damaged:
                named += 1
        with suppress(Damaged):
            named += len(memory.verify().problems)
    assert named
