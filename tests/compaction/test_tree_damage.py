"""`verify` proves the tree: it is quiet about a whole one, and finds each kind of damage."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from compaction_chats import buffer, lossless
from tree_checks import check_tree

from holdfast import Damaged, Memory, Message
from tables import each

ALIVE = 2**62
OF_CHAT = f"SELECT number FROM summaries WHERE chat = 'monday' AND ended = {ALIVE}"
LEAF = f"({OF_CHAT} AND depth = 0 ORDER BY first LIMIT 1 OFFSET 2)"
NODE = f"({OF_CHAT} AND depth = 1 ORDER BY first LIMIT 1)"
TOP = f"({OF_CHAT} AND parent = '' ORDER BY depth DESC, first LIMIT 1)"
LAST = f"({OF_CHAT} AND parent = '' ORDER BY first DESC LIMIT 1)"
GROWN = f"chat = 'tuesday' AND depth = 1 AND ended < {ALIVE}"
ROWS = {"leaf": LEAF, "node": NODE, "last": LAST}

DAMAGES = {
    **{
        f"{what} of {row}": f"UPDATE summaries SET {change} WHERE number = {number}"
        for row, number in ROWS.items()
        for what, change in {
            "gap after": "last = last - 1",
            "overlap after": "last = last + 1",
            "nothing covered": "last = first - 1",
            "another depth": "depth = 7",
            "one message more": "messages = messages + 1",
            "other tokens": "source_tokens = source_tokens - 1",
            "an earlier time": "since = since - 1",
            "a later time": "until = until + 1",
            "no time of the calendar": f"until = {ALIVE}",
            "a parent that is not there": "parent = 'sum_0000000000000000'",
            "itself as parent": "parent = id",
            "another chat": "chat = 'tuesday'",
            "a chat that is not there": "chat = 'friday'",
        }.items()
    },
    **{f"no {row}": f"DELETE FROM summaries WHERE number = {number}" for row, number in ROWS.items()},
    "a child that is of the frontier": f"UPDATE summaries SET parent = '' WHERE number = {LEAF}",
    "a child of another": f"UPDATE summaries SET parent = (SELECT id FROM summaries WHERE number = {TOP}) "
    f"WHERE number = {LEAF}",
    "a frontier that is a child": f"UPDATE summaries SET parent = (SELECT id FROM summaries WHERE number = "
    f"{NODE}) WHERE number = {LAST}",
    "a cost of the frontier": f"UPDATE summaries SET tokens = tokens + 1 WHERE number = {LAST}",
    "twice": f"UPDATE summaries SET ended = {ALIVE} WHERE {GROWN}",
    "not any more": f"UPDATE summaries SET ended = 1 WHERE chat = 'tuesday' AND parent = '' AND ended = "
    f"{ALIVE}",
    "no leaves": "DELETE FROM summaries WHERE chat = 'monday' AND depth = 0",
    "no session": "DELETE FROM sessions WHERE chat = 'monday'",
    "no message": "DELETE FROM messages WHERE chat = 'monday' AND seq = 3",
    **{
        f"{column} {change}": f"UPDATE sessions SET {column} = {column} {change} WHERE chat = 'monday'"
        for column in ("covered", "covered_messages", "covered_tokens", "summary_tokens")
        for change in ("+ 1", "* 0")
    },
    "a session without a tree": "UPDATE sessions SET covered = 1 WHERE chat = 'wednesday'",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a tree of three levels, a summary that has grown, and a session without any."""
    file = tmp_path_factory.mktemp("whole") / "memory.db"
    with Memory(file, user="ada") as memory:
        chat = memory.chat("monday")
        for n in range(120):
            chat.append(role="user", content=f"{n}: the tulips bloom in the garden of Ada. " * 3)
        chat.compact(
            full=True, policy=lossless(500, leaf_source=300, fan_in=(3, 2), leaf_target=40, tail=0.2)
        )
        for n in range(9):
            chat.append(role="user", content=f"{n}: the roses bloom in the garden of Ada. " * 3)
        chat.compact(full=True, policy=lossless(500, leaf_source=300, fan_in=(9, 9), pressed=9, tail=0.2))
        cumulative = memory.chat("tuesday")
        for _ in range(4):
            cumulative.append([Message("user", f"{n}: the daisies bloom. " * 9) for n in range(20)])
            cumulative.compact(full=True, policy=buffer(500))
        memory.chat("wednesday").append(role="user", content="hello")
        depths = [one.depth for one in chat.tree()]
        assert max(depths) >= 2
        assert len([one for one in chat.tree() if not one.parent]) >= 2
        assert memory.verify().problems == ()
        assert memory.verify().checked["summaries"] == len(chat.tree()) + len(cumulative.tree())
        check_tree(chat)
    return file


@pytest.mark.slow
@each("sql", DAMAGES.values())
def test_damage_is_found(whole: Path, tmp_path: Path, sql: str) -> None:
    file = tmp_path / f"{abs(hash(sql))}.db"
    shutil.copy(whole, file)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        assert connection.execute(sql).rowcount > 0, "the damage was not done"
    with Memory(file, user="ada") as memory:
        assert [one for one in memory.verify().problems if "another checksum" not in one], sql
    file.unlink()


def test_damage_is_named_by_references_that_can_be_asked_for(whole: Path, tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    shutil.copy(whole, file)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for damage in ("no message", "covered + 1"):
            connection.execute(DAMAGES[damage])
    with Memory(file, user="ada") as memory:
        problems = "\n".join(memory.verify().problems)
        (leaf,) = (
            one for one in memory.chat("monday").tree() if not one.depth and one.first <= 3 <= one.last
        )
        covered = max(one.last for one in memory.chat("monday").tree())
    assert "message monday#3 is missing" in problems
    assert f"{leaf.id} counts other messages than monday#{leaf.first}-{leaf.last}" in problems
    assert f"do not cover each message up to monday#{covered + 1} once" in problems


@pytest.mark.parametrize(
    "sql", ["UPDATE messages SET calls = '{' WHERE seq > 100", "UPDATE summaries SET since = 'soon'"]
)
def test_what_cannot_be_read_is_told_as_damage(whole: Path, tmp_path: Path, sql: str) -> None:
    file = tmp_path / "memory.db"
    shutil.copy(whole, file)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(sql)
    with Memory(file, user="ada") as memory:
        assert not memory.verify().ok
        for call in (memory.chat("monday").compact, memory.chat("monday").needs_compaction):
            with pytest.raises(Damaged):
                call(budget=100)
