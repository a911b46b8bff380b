"""A damaged file: it is called so, what can be read is saved, and what cannot is named."""

from __future__ import annotations

import os
import random
import re
import signal
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from every_space import KINDS, fill_every_space, handles, told_of_every_space
from holdfast import Damaged, InvalidInput, Memory
from holdfast.store import space_rows
from holdfast.store.salvage import salvage
from holdfast.store.sqlite_pages import Pages, RawRow
from holdfast.types.references import read_reference
from programs import start
from stored_texts import erasures_of

PAGE = 4096


def fill(path: Path, chats: int = 6, messages: int = 100) -> None:
    """Leave rows on some hundred pages, and a long one that takes several."""
    with Memory(path, tenant="acme", user="ada", durability="normal") as memory:
        for n in range(chats):
            chat = memory.chat(f"chat{n}", channel="telegram", meta={"n": n})
            chat.append(
                [
                    {
                        "role": "user" if k % 2 == 0 else "assistant",
                        "content": f"Chat {n}, message {k}: {'words ' * k}",
                    }
                    for k in range(messages)
                ]
            )
            chat.scratchpad["n"] = str(n)
        memory.chat("long").append(role="user", content="a long message " * 3_000)
        for n in range(50):
            memory.remember(f"The number of {chr(97 + n % 26) * 3}{n} is {n * 37}", kind="finding")
        memory.chat("chat0").compact(budget=300)
        memory.recall("message")
        memory.chat("long").prompt(500, "long")
        memory.chat("long").append(role="assistant", content="42 kilometres.")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "memory.db"
    fill(path)
    return path


def noise(content: bytearray, page: int, dice: random.Random) -> None:
    content[(page - 1) * PAGE : page * PAGE] = dice.randbytes(PAGE)


def rows(path: Path) -> dict[str, dict[Any, Any]]:
    messages = "SELECT chat, seq, id, role, content, tokens, at, raw FROM messages"
    with closing(sqlite3.connect(path)) as connection:
        records = connection.execute("SELECT version, id, kind, text, ended FROM records").fetchall()
        return {
            "messages": {row[:3]: row for row in connection.execute(messages)},
            "records": {row[0]: row for row in records},
        }


def on_page(path: Path) -> dict[int, set[Any]]:
    """Return which message or record lies on which page; all but the long one fit on one."""
    found: dict[int, set[Any]] = {}
    for one in Pages(path).rows():
        if isinstance(one, RawRow) and one.is_index and len(one.values) > 15:
            key = (one.values[1], one.values[2]) if isinstance(one.values[1], str) else one.values[1]
            found.setdefault(one.page, set()).add(key)
    return found


def test_of_a_sound_file_everything_is_saved(sound: Path, tmp_path: Path) -> None:
    saved = salvage(sound, tmp_path / "new.db")
    assert saved.lost == ()
    assert (saved.rows["messages"], saved.rows["receipts"]) == (602, 1)
    assert rows(tmp_path / "new.db") == rows(sound)
    with (
        Memory(sound, tenant="acme", user="ada") as one,
        Memory(tmp_path / "new.db", tenant="acme", user="ada") as new,
    ):
        before, after = (
            list(space_rows.read(memory._runtime.database, memory.scope.space)) for memory in (one, new)
        )
        assert [row for row in after if row[0] != "spaces"] == [row for row in before if row[0] != "spaces"]
        assert (new.verify().problems, new.verify().unproven) == ((), 0)
        new.chat("chat0").append(role="user", content="It goes on.")
        new.remember("And so does this", kind="fact")
        assert new.verify().problems == ()
    assert stat.S_IMODE((tmp_path / "new.db").stat().st_mode) == 0o600


def test_every_kind_of_space_is_saved(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", durability="normal") as app:
        fill_every_space(app)
        expected = told_of_every_space(app)
    saved = salvage(tmp_path / "memory.db", tmp_path / "new.db")
    assert (saved.lost, saved.rows["moves"], saved.rows["grants"]) == ((), 2, 3)
    with Memory(tmp_path / "new.db") as app:
        assert told_of_every_space(app) == expected
        problems = {name: memory.verify().problems for name, memory in handles(app).items()}
        assert problems == dict.fromkeys(KINDS, ())
        app.scoped(user="ada").undo(by="user")
        assert "Ada reviews on Mondays." in {one.text for one in handles(app)["a project"].records()}


@pytest.mark.parametrize(
    ("listed", "is_read"), [("[[", False), ('[["a", 2]]', False), ("[[1, 4000000000000000000]]", True)]
)
def test_a_damaged_receipt_is_saved_and_named(tmp_path: Path, listed: str, is_read: bool) -> None:
    with Memory(tmp_path / "memory.db") as memory:
        memory.chat("a").append([{"role": "user", "content": f"word {n}"} for n in range(3)])
        memory.erase(chat="a", messages=2)
    with closing(sqlite3.connect(tmp_path / "memory.db", isolation_level=None)) as connection:
        connection.execute("UPDATE erasures SET docs = ?", (listed,))
    saved = salvage(tmp_path / "memory.db", tmp_path / "new.db")
    assert saved.rows["erasures"] == 1
    assert any("cannot be read" in one for one in saved.lost) is not is_read


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_every_row_that_is_not_on_a_damaged_page_is_saved(sound: Path, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    content = bytearray(sound.read_bytes())
    last = len(content) // PAGE
    pages = dice.sample(range(2 if seed % 3 else 1, last + 1), dice.choice([1, 3, 12]))
    lying = on_page(sound)
    for page in pages:
        noise(content, page, dice)
    damaged = tmp_path / "memory.db"
    damaged.write_bytes(content)
    before = rows(sound)
    saved = salvage(damaged, tmp_path / "new.db")
    assert damaged.read_bytes() == bytes(content)
    after = rows(tmp_path / "new.db")
    gone = set().union(*(lying.get(page, set()) for page in pages))
    for key, row in before["messages"].items():
        if key[:2] not in gone and key[0] != "long":
            assert after["messages"][key] == row
    for version, record in before["records"].items():
        if version not in gone:
            assert after["records"][version] == record
    assert all(before["messages"][key] == row for key, row in after["messages"].items())
    missing = len(before["messages"]) - len(after["messages"])
    assert saved.lost or after == before  # an index is no loss
    with Memory(tmp_path / "new.db", tenant="acme", user="ada") as memory:
        assert memory.verify().problems == ()
        assert sum(memory.chat(info.id).stats().messages for info in memory.chats()) == len(after["messages"])
        assert sum(receipt.counts.get("messages", 0) for receipt in erasures_of(memory)) == missing
        memory.chat("chat1").compact(budget=200)
        memory.chat("chat1").append(role="user", content="It goes on.")
        assert memory.recall("message", limit=3)
        assert memory.verify().problems == ()


def test_messages_that_are_lost_are_named_as_they_are_asked_for(sound: Path, tmp_path: Path) -> None:
    content = bytearray(sound.read_bytes())
    lying = on_page(sound)
    page = next(page for page, keys in lying.items() if ("chat3", 50) in keys)
    noise(content, page, random.Random(1))
    (tmp_path / "memory.db").write_bytes(content)
    lost = "\n".join(salvage(tmp_path / "memory.db", tmp_path / "new.db").lost)
    named = [read_reference(word) for word in re.findall(r"chat\d#[\d-]+", lost)]
    assert {(one.chat, seq) for one in named if one for seq in range(one.first, one.last + 1)} == lying[page]


def test_a_changed_byte_is_saved_as_it_is_and_named_by_verify(sound: Path, tmp_path: Path) -> None:
    content = bytearray(sound.read_bytes())
    at = content.index(b"Chat 3, message 17:")
    content[at] = ord("B")
    (tmp_path / "memory.db").write_bytes(content)
    salvage(tmp_path / "memory.db", tmp_path / "new.db")
    with Memory(tmp_path / "new.db", tenant="acme", user="ada") as memory:
        assert [problem for problem in memory.verify().problems if "checksum" in problem] == [
            "message chat3#18 has another checksum than when it was written"
        ]


def test_what_is_in_the_write_ahead_log_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, tenant="acme", user="ada") as memory:
        memory.chat("a").append([{"role": "user", "content": f"word {n}"} for n in range(30)])
        for ending in ("", "-wal"):
            (tmp_path / f"copy.db{ending}").write_bytes((tmp_path / f"memory.db{ending}").read_bytes())
    saved = salvage(tmp_path / "copy.db", tmp_path / "new.db")
    assert (saved.rows["messages"], saved.lost) == (30, ())


def test_a_truncated_file_is_saved_up_to_its_end(sound: Path, tmp_path: Path) -> None:
    content = sound.read_bytes()
    (tmp_path / "memory.db").write_bytes(content[: len(content) // 2 + 100])
    with pytest.raises(Damaged, match=r"is damaged.*salvage"):
        Memory(tmp_path / "memory.db")
    saved = salvage(tmp_path / "memory.db", tmp_path / "new.db")
    assert saved.rows["messages"] > 50
    with Memory(tmp_path / "new.db", tenant="acme", user="ada") as memory:
        assert memory.verify().problems == ()


@pytest.mark.parametrize("content", [b"", b"x", b"Dear diary" * 1000, bytes(100_000)])
def test_of_what_is_no_database_nothing_is_made(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "memory.db").write_bytes(content)
    with pytest.raises(Damaged, match="No row"):
        salvage(tmp_path / "memory.db", tmp_path / "new.db")
    assert list(tmp_path.iterdir()) == [tmp_path / "memory.db"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_no_noise_makes_it_fail(sound: Path, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    content = bytearray(sound.read_bytes())
    for _ in range(400):
        content[dice.randrange(len(content))] = dice.randrange(256)
    (tmp_path / "memory.db").write_bytes(content)
    assert salvage(tmp_path / "memory.db", tmp_path / "new.db").rows["messages"] > 200


def test_a_file_that_is_there_is_never_replaced(sound: Path, tmp_path: Path) -> None:
    (tmp_path / "new.db").write_text("precious")
    with pytest.raises(InvalidInput, match="already"):
        salvage(sound, tmp_path / "new.db")
    assert (tmp_path / "new.db").read_text() == "precious"


KILLED = """
import sys
from pathlib import Path
from holdfast.store import salvage
insert, left = salvage.insert, [100]
def slow(*given):
    left[0] -= 1
    if not left[0]:
        print("ready", flush=True)
        input()
    return insert(*given)
salvage.insert = slow
salvage.salvage(Path(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_killed_in_the_middle_it_begins_anew(sound: Path, tmp_path: Path) -> None:
    for _ in range(2):
        program = start(KILLED, sound, tmp_path / "new.db")
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        os.kill(program.pid, signal.SIGKILL)
        program.communicate()
        assert not (tmp_path / "new.db").exists()
    assert salvage(sound, tmp_path / "new.db").rows["messages"] == 602
    assert list(tmp_path.iterdir()) == [tmp_path / "new.db"]
