"""A database that is opened to be read only: it answers, writes nothing, and says so to who would write."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from holdfast import Denied, InvalidInput, Memory, Unavailable
from holdfast.store import database
from holdfast.store.schema import NEWEST
from programs import start
from tables import each


def fill(memory: Memory) -> None:
    memory.chat("monday").append([{"role": "user", "content": f"Race {n} in Berlin."} for n in range(300)])
    memory.remember("Trains for the race in Berlin", kind="finding")
    memory.remember("Never call before ten.", kind="constraint", by="user")
    memory.scratchpad["week"] = "1"


@pytest.fixture
def filled(shared_location: str) -> str:
    with Memory(shared_location, user="ada") as memory:
        fill(memory)
    return shared_location


def test_it_answers_as_one_that_may_be_written(filled: str) -> None:
    def answers(memory: Memory) -> list[object]:
        chat = memory.chat("monday")
        return [
            [message.content for message in chat.history()],
            [hit.id for hit in memory.recall("race in Berlin")],
            [hit.id for hit in memory.recall("race", where={"lang": None}, limit=3)],
            chat.prompt(2_000, "race").messages[-1],
            chat.prompt(2_000, "race").system,
            dict(memory.scratchpad),
            memory.verify().problems,
        ]

    with Memory(filled, user="ada", read_only=True) as memory:
        found = answers(memory)
    with Memory(filled, user="ada") as memory:
        assert found == answers(memory)


WRITES: list[Callable[[Memory], object]] = [
    lambda memory: memory.chat("monday").append(role="user", content="Hello"),
    lambda memory: memory.chat("monday").compact(budget=10),
    lambda memory: memory.chat("monday").refresh(),
    lambda memory: memory.remember("Has a dog"),
    lambda memory: memory.scratchpad.update(week="2"),
    lambda memory: memory.grants.add("user", to="user:bob"),
    lambda memory: memory.erase(chat="monday"),
    lambda memory: memory.erase(rewrite=True),
    lambda memory: memory.verify(repair=True),
]


def test_whoever_would_write_is_denied_and_nothing_is_changed(filled: str) -> None:
    with Memory(filled, user="ada", read_only=True) as memory:
        for write in WRITES:
            with pytest.raises(Denied, match="read only"):
                write(memory)
        assert memory.chat("monday").stats().messages == 300
        assert dict(memory.scratchpad) == {"week": "1"}
        assert memory.verify().ok


@each("wrong", [0, 1, "yes", None])
def test_it_is_true_or_false(wrong: object) -> None:
    with pytest.raises(InvalidInput, match="read_only"):
        Memory(":memory:", read_only=wrong)  # type: ignore[arg-type]  # that is what is tested


def test_what_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        Memory(tmp_path / "memory.db", read_only=True)
    (tmp_path / "empty.db").touch()
    with pytest.raises(Unavailable, match="schema version 0"):
        Memory(tmp_path / "empty.db", read_only=True)
    assert [path.name for path in tmp_path.iterdir()] == ["empty.db"]


def test_an_older_one_is_not_migrated(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "NEWEST", NEWEST + 1)
    with pytest.raises(Unavailable, match="Open it once without `read_only`"):
        Memory(filled, read_only=True)


@pytest.fixture
def closed() -> Iterator[Path]:
    """Make a folder that everyone may read, and nobody but its owner may write to."""
    with tempfile.TemporaryDirectory(prefix="hf-read-") as name:
        folder = Path(name)
        with Memory(folder / "memory.db", user="ada") as memory:
            fill(memory)
        yield folder
        folder.chmod(0o700)


AS_NOBODY = """
import os, sys
from holdfast import Memory, Unavailable
def answers(memory):
    chat = memory.chat("monday")
    chat.prompt(2_000, "race")
    return len(chat.history()), len(memory.recall("race in Berlin")), memory.verify().problems
for read_only in (True, False):  # nobody may be unable to read the modules
    with Memory(sys.argv[2], user="ada", read_only=read_only) as memory:
        answers(memory)
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    Memory(sys.argv[1], user="ada")
except Unavailable as error:
    print("read_only=True" in error.todo)
with Memory(sys.argv[1], user="ada", read_only=True) as memory:
    print(answers(memory), flush=True)
    input()
    try:
        print(len(memory.chat("monday").history()))
    except Unavailable as error:
        print(error)
"""


def ask_as_nobody(folder: Path, tmp_path: Path, meanwhile: Callable[[], object]) -> list[str]:
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    shutil.copy(folder / "memory.db", tmp_path / "own.db")
    (tmp_path / "own.db").chmod(0o600)
    program = start(AS_NOBODY, folder / "memory.db", tmp_path / "own.db")
    assert program.stdout is not None
    before = program.stdout.readline()
    before += program.stdout.readline() if before == "True\n" else ""
    meanwhile()
    after, errors = program.communicate("go\n")
    assert not errors, errors
    return (before + after).splitlines()


@pytest.mark.slow
def test_a_file_in_a_folder_that_cannot_be_written_is_read_until_somebody_writes_to_it(
    closed: Path, tmp_path: Path
) -> None:
    names, opened = list[str](), list[Memory]()

    def write() -> None:
        names.extend(path.name for path in closed.iterdir())
        for path in (closed, closed / "memory.db"):
            path.chmod(0o755)
        opened.append(Memory(closed / "memory.db", user="ada"))
        opened[0].chat("monday").append(role="user", content="One more race in Berlin.")

    answers = ask_as_nobody(closed, tmp_path, write)
    opened[0].close()
    assert (answers[:2], names) == (["True", "(300, 10, ())"], ["memory.db"])
    assert answers[2].endswith("and somebody does now. Open a new Memory.")


@pytest.mark.slow
def test_while_another_writes_to_it_what_is_new_is_read(closed: Path, tmp_path: Path) -> None:
    with Memory(closed / "memory.db", user="ada") as memory:
        memory.chat("monday").append(role="user", content="One more race in Berlin.")
        append = partial(memory.chat("monday").append, role="user", content="And another one.")
        assert ask_as_nobody(closed, tmp_path, append) == ["(301, 10, ())", "302"]
