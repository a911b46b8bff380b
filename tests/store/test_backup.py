"""Backups: online, whole or not at all, and their owner's only."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest

from every_space import SPACES, fill_every_space, told_of_every_space
from holdfast import Damaged, InvalidInput, Memory, Unavailable
from holdfast.store.salvage import salvage
from programs import run


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with Memory(path, tenant="acme", user="ada", admin=True) as memory:
        memory.chat("a").append([{"role": "user", "content": f"word {n}"} for n in range(200)])
        memory.remember("Lives in Kiel", kind="fact")
        memory.scoped(user="bob").remember("Lives in Bremen", kind="fact")
        memory.recall("word")
    return path


def test_a_backup_is_a_database_with_everything_of_everybody(filled: Path, tmp_path: Path) -> None:
    with Memory(filled, tenant="acme", user="ada") as memory:
        found = memory.backup(tmp_path / "copy.db")
        assert found.ok
        assert (found.checked["spaces"], found.checked["checksums"]) == (2, 203)
        expected = memory.chat("a").history(), [hit.text for hit in memory.recall("word 7")]
    with Memory(tmp_path / "copy.db", tenant="acme", user="ada", admin=True) as copy:
        assert (copy.chat("a").history(), [hit.text for hit in copy.recall("word 7")]) == expected
        assert [record.text for record in copy.scoped(user="bob").records()] == ["Lives in Bremen"]
        assert copy.verify().ok
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600


def test_every_kind_of_space_is_in_a_backup(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", durability="normal") as app:
        fill_every_space(app)
        found = app.backup(tmp_path / "copy.db")
        assert (found.ok, found.checked["spaces"]) == (True, SPACES)
        expected = told_of_every_space(app)
    with Memory(tmp_path / "copy.db") as copy:
        assert told_of_every_space(copy) == expected


def test_a_copy_has_no_remains_of_an_erasure_that_left_them_in_the_file(filled: Path, tmp_path: Path) -> None:
    with Memory(filled, tenant="acme", user="ada") as memory:
        memory.erase(chat="a", rewrite=None)
        (left,) = memory.verify().problems
        assert "deferred" in left
        assert memory.backup(tmp_path / "copy.db").ok
        assert memory.verify().problems == (left,)
    salvage(filled, tmp_path / "saved.db")
    for name in ("copy.db", "saved.db"):
        assert b"word 1" not in (tmp_path / name).read_bytes()
        with Memory(tmp_path / name, tenant="acme", user="ada") as copy:
            assert copy.verify().problems == ()


def test_what_is_there_is_never_replaced_and_no_folder_is_made(filled: Path, tmp_path: Path) -> None:
    file, folder, link = (tmp_path / name for name in ("precious", "folder", "link"))
    file.write_text("precious")
    folder.mkdir()
    link.symlink_to(tmp_path / "nowhere")
    with Memory(filled) as memory:
        for target in (file, folder, link):
            with pytest.raises(InvalidInput, match="already"):
                memory.backup(target)
        with pytest.raises(Unavailable, match="Check that the folder exists"):
            memory.backup(tmp_path / "no" / "copy.db")
    assert file.read_text() == "precious"
    assert list(folder.iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"memory.db", "precious", "folder", "link"}


def test_others_go_on_writing_and_the_copy_is_of_one_moment(filled: Path, tmp_path: Path) -> None:
    ended, began = Event(), Event()

    def write() -> None:
        with Memory(filled, tenant="acme", user="ada", durability="normal") as other:
            chat = other.chat("b")
            while not ended.is_set():
                chat.append([{"role": "user", "content": "one"}, {"role": "user", "content": "two"}])
                began.set()

    thread = Thread(target=write)
    thread.start()
    began.wait()
    with Memory(filled, tenant="acme", user="ada") as memory:
        for n in range(3):
            memory.backup(tmp_path / f"copy{n}.db")
    ended.set()
    thread.join()
    for n in range(3):
        with Memory(tmp_path / f"copy{n}.db", tenant="acme", user="ada") as copy:
            assert copy.verify().ok
            assert copy.chat("b").stats().messages % 2 == 0


FULL = """
import resource, sys
from pathlib import Path
from holdfast import Memory, Unavailable
memory = Memory(sys.argv[1], tenant="acme", user="ada")
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))
try:
    memory.backup(sys.argv[2])
except Unavailable as error:
    print("refused" if "disk" in str(error) else error)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
print(memory.backup(sys.argv[2]).ok)
"""


@pytest.mark.slow
def test_a_full_disk_leaves_no_half_of_a_file(filled: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    assert run(FULL, filled, folder / "copy.db") == "refused\nTrue\n"
    assert [path.name for path in folder.iterdir()] == ["copy.db"]


def test_a_changed_row_is_copied_and_named(filled: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(filled, isolation_level=None)) as connection:
        connection.execute("UPDATE records SET text = 'Lives in Rome' WHERE text = 'Lives in Kiel'")
    with Memory(filled) as memory:
        found = memory.backup(tmp_path / "copy.db")
    assert "version 1 of what is known has another checksum" in found.problems[0]
    assert (tmp_path / "copy.db").is_file()


def test_a_damaged_database_is_not_copied(filled: Path, tmp_path: Path) -> None:
    content = bytearray(filled.read_bytes())
    at = content.index(b"word 100")
    page = at // 4096 * 4096
    content[page : page + 64] = bytes(range(64))
    filled.write_bytes(content)
    with (
        Memory(filled, tenant="acme", user="ada") as memory,
        pytest.raises(Damaged, match=r"is damaged.*salvage"),
    ):
        memory.backup(tmp_path / "copy.db")
    assert list(tmp_path.glob("*copy*")) == []


def test_on_postgresql_its_own_tool_is_named(postgres_url: str, tmp_path: Path) -> None:
    with Memory(postgres_url) as memory, pytest.raises(InvalidInput, match="pg_dump"):
        memory.backup(tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


def test_a_new_database_is_its_owners_only_and_one_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    Memory(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    with Memory(path) as memory:
        memory.chat("a").append(role="user", content="x")
        assert {stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir()} == {0o640}
