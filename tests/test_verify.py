"""`verify` finds each kind of damage, in the log and in the index, and finds none where there is none."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from every_space import fill_every_space, handles
from holdfast import Damaged, Memory
from holdfast.search import index, segment
from holdfast.store import log
from holdfast.types import ToolCall
from holdfast_cli.formats.everything import export_everything
from holdfast_cli.formats.export import export_chats, export_chats_as
from index_damage import Damage, damage, flipped, forged, in_row, longer, remove
from recall_corpora import Said, forget, tell

pytest_plugins = ["recall_fixtures"]

SAID = [Said(f"chat{n // 4 % 2}", f"word{n} berlin", minutes=n) for n in range(40)]


@pytest.fixture
def indexed(space: Memory, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """Store two chats, one with tool calls, and an index of several segments."""
    monkeypatch.setattr(index, "FREEZE", 8)
    monkeypatch.setattr(index, "WORTH_STORING", 8)
    monkeypatch.setattr(index, "LARGEST", 16)
    for start in range(0, len(SAID), 8):
        tell(space, SAID[start : start + 8])
        space.recall("berlin")
    chat = space.chat("tools")
    chat.append(role="assistant", calls=[ToolCall("c1", "read", {"path": "a.py"}), ToolCall("c2", "list")])
    chat.append(role="tool", content="done", call_id="c1", meta={"ok": True})
    chat.append({"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "x"}]})
    space.recall("berlin")
    return space


def sql(statement: str) -> Damage:
    return lambda tx, space: tx.all(statement, space=space)


# What is sound


def test_a_sound_memory_is_sound_and_says_what_was_checked(indexed: Memory) -> None:
    before = [(hit.id, hit.score) for hit in indexed.recall("berlin", limit=100)]
    verified = indexed.verify()
    assert verified.problems == ()
    told = ("sessions", "messages", "tool results", "indexed messages")
    assert [verified.checked[name] for name in told] == [3, 43, 2, 40]
    assert verified.checked["index segments"] >= 3
    assert indexed.verify() == verified
    assert [(hit.id, hit.score) for hit in indexed.recall("berlin", limit=100)] == before
    empty = indexed.scoped(user="nobody").verify()
    assert (empty.ok, set(empty.checked.values())) == (True, {0})


def test_a_call_without_a_result_is_counted_and_one_after_its_result_is_a_problem(space: Memory) -> None:
    chat = space.chat("tools")
    chat.append(role="assistant", calls=[ToolCall("c1", "read"), ToolCall("c2", "list")])
    chat.append(role="tool", content="done", call_id="c1")
    assert (space.verify().problems, space.verify().checked["unanswered calls"]) == ((), 1)
    chat.append(role="tool", content="too early", call_id="c3")
    chat.append(role="tool", content="of a chat that was cut", call_id="c4")
    chat.append(role="assistant", calls=[ToolCall("c3", "read")])
    chat.append(role="assistant", calls=[ToolCall("c4", "read")])
    chat.append(role="tool", content="again", call_id="c4")
    verified = space.verify()
    assert verified.checked["unanswered calls"] == 2
    assert verified.problems == (
        "message tools#3 is the result of a call that a later message makes: no window shows either",
    )


def test_a_user_is_checked_with_all_projects_and_a_project_alone(
    space: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "FREEZE", 2)
    monkeypatch.setattr(index, "WORTH_STORING", 2)
    shop = space.scoped(project="shop")
    for one in (space, shop, space.scoped(project="blog")):
        tell(one, SAID[:3])
    space.recall("berlin")
    assert (space.verify().problems, space.verify().checked["messages"]) == ((), 9)
    damage(shop, sql("UPDATE messages SET content = 'forged' WHERE space = :space AND seq = 1"))
    (problem,) = space.verify().problems
    assert problem.startswith("project 'shop': message ")
    assert shop.verify().checked["messages"] == 3
    assert not shop.verify().ok
    assert space.scoped(project="blog").verify().ok
    shop.recall("berlin")
    damage(shop, in_row(0, flipped(-1)))
    assert len(space.verify().problems) == 2
    assert len(space.verify(repair=True).problems) == 1


def test_damage_is_found_in_every_kind_of_space() -> None:
    with Memory(":memory:") as app:
        fill_every_space(app)
        for name, memory in handles(app).items():
            assert memory.verify().problems == (), name
            damage(memory, sql("UPDATE pads SET value = 'forged' WHERE space = :space"))
            assert not memory.verify().ok, name
            damage(memory, sql("UPDATE pads SET value = name WHERE space = :space"))


# What is wrong with the log

# A statement without its condition; the chat, and the number of a message where it is about one.
LOG: Mapping[str, tuple[str, str, int, str]] = {
    "the first message": ("DELETE FROM messages", "chat0", 1, "message chat0#1 is missing"),
    "a message": ("DELETE FROM messages", "chat0", 7, "message chat0#7 is missing"),
    "the last message": ("DELETE FROM messages", "chat0", 20, "its log has 19"),
    "all messages of a chat": ("DELETE FROM messages", "chat0", 0, "its log has 0"),
    "a session": ("DELETE FROM sessions", "chat0", 0, "its sessions have 23"),
    "a wrong length": ("UPDATE sessions SET length = length + 1", "chat0", 0, "says 21 messages"),
    "wrong tokens": ("UPDATE sessions SET tokens = tokens - 1", "chat0", 0, "tokens"),
    "tokens of a message": ("UPDATE messages SET tokens = tokens + 5", "chat0", 3, "tokens"),
    "wrong times": ("UPDATE sessions SET newest = newest + 1", "chat0", 0, "other times"),
    "a time out of range": (
        "UPDATE messages SET at = 9000000000000000000",
        "chat0",
        3,
        "Message chat0#3 cannot be read",
    ),
    "a number of a document": (
        "UPDATE messages SET doc = 1000",
        "chat0",
        3,
        "numbered from 44 to 999 of 1000",
    ),
    **{
        f"no {column}: {value}": (
            f"UPDATE messages SET {column} = '{value}'",
            "tools",
            seq,
            f"Message tools#{seq} cannot be read",
        )
        for column, value, seq in [
            ("calls", "[[", 1),
            ("calls", "[1]", 1),
            ("raw", "{", 3),
            ("meta", "x", 2),
            ("answers", "x", 2),
        ]
    },
    "an answer to no call": (
        "UPDATE messages SET answers = '[\"c9\"]'",
        "tools",
        2,
        "message tools#2 answers a call that no earlier message made",
    ),
}


def test_a_session_longer_than_a_page_is_read_to_its_end(
    space: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "_PAGE", 5)
    tell(space, [Said("a", f"word{n}") for n in range(15)])
    assert space.verify().ok
    assert space.verify().checked["messages"] == 15
    damage(space, sql("DELETE FROM messages WHERE space = :space AND seq = 12"))
    assert "message a#12 is missing" in " ".join(space.verify().problems)


@pytest.mark.parametrize(("change", "chat", "seq", "problem"), LOG.values(), ids=LOG.keys())
def test_damage_of_the_log_is_named(indexed: Memory, change: str, chat: str, seq: int, problem: str) -> None:
    of_message = f" AND seq = {seq}" if seq else ""
    damage(indexed, sql(f"{change} WHERE space = :space AND chat = '{chat}'{of_message}"))
    verified = indexed.verify()
    assert not verified.ok
    assert problem in "\n".join(verified.problems)


# What is wrong with receipts


@pytest.mark.parametrize("column", ["docs", "versions"])
def test_a_receipt_that_cannot_be_read_is_named_and_proves_nothing(space: Memory, column: str) -> None:
    tell(space, SAID[:6])
    space.remember("Lives in Kiel")
    for _ in range(2):
        record = space.remember("Has a secret")
        space.erase(record=record.id)
    first, second = (change.id for change in space.changes(kind="erasure"))
    for wrong in ("[[", "5", "[1]", '{"a": 1}', '[["a", "b"]]', "[[1, 2, 3]]", "[[1.5, 2]]", "[[true, 2]]"):
        update = f"UPDATE erasures SET {column} = '{wrong}' WHERE space = :space AND id = '{first}'"
        damage(space, sql(update))
        named = [one for one in space.verify().problems if "cannot be read" in one]
        assert len(named) == 1
        assert first in named[0]
        assert second not in named[0]


JSON_COLUMNS = {
    "records": ("tags", "meta", "sources", "flags", "wordings"),
    "messages": ("raw", "calls", "answers", "meta", "shown"),
    "sessions": ("meta",),
}
OTHER_JSON = ("{", "7", '"text"', "null", "[7]", "[[7]]", '[{"a": 7}]', '[["a", "b", 7, {}, []]]')


@pytest.mark.parametrize(
    "change",
    [
        "erasures SET counts = '['",
        "erasures SET at = 9000000000000000000",
        "receipts SET hits = '{'",
        "summaries SET at = 9000000000000000000",
        "grants SET at = 9000000000000000000",
        "snapshots SET others = '[1]'",
    ],
)
def test_whoever_reads_what_cannot_be_read_is_told_that_it_is_damaged(space: Memory, change: str) -> None:
    chat = space.chat("a")
    chat.append(role="user", content="Where do I live?")
    chat.remember("Lives in Kiel", messages=1)
    chat.prompt(500, "Kiel")
    chat.append(role="assistant", content="In Kiel.")
    space.erase(record=space.remember("Has a secret").id)
    space.grants.add("user", to="user:bob")
    chat.append([{"role": "user", "content": f"Walk {n} led along the harbour."} for n in range(20)])
    chat.compact(full=True, budget=60)
    damage(space, sql(f"UPDATE {change} WHERE space = :space"))
    told = 0
    for ask in (
        space.changes,
        lambda: list(space.grants),
        lambda: chat.prompt(500),
        chat.receipts,
        space.records,
        lambda: space.erase(chat="a"),
    ):
        try:
            ask()
        except Damaged:
            told += 1
    assert told


@pytest.mark.parametrize(
    ("table", "column"), [(one, name) for one, names in JSON_COLUMNS.items() for name in names]
)
def test_json_of_another_kind_is_told_as_damage_by_whoever_reads_it(
    space: Memory, table: str, column: str
) -> None:
    chat = space.chat("a", meta={"topic": "homes"})
    chat.append(role="user", content="Where do I live?")
    space.remember("Lives in Kiel", tags=["home"], meta={"n": 1}, chat="a")
    reads: dict[str, Callable[[], object]] = {
        "records": space.records,
        "quarantine": lambda: list(space.quarantine),
        "changes": space.changes,
        "recall": lambda: space.recall("Where in Kiel?", tags=["home"]),
        "history": chat.history,
        "window": chat.window,
        "prompt": lambda: chat.prompt(500, "Kiel"),
        "review": chat.review,
        "chats": space.chats,
        "export": lambda: export_chats(space, StringIO()),
        "another format": lambda: export_chats_as(space, StringIO(), "openai"),
        "all rows": lambda: export_everything(space, StringIO()),
    }
    for value in OTHER_JSON:
        damage(space, sql(f"UPDATE {table} SET {column} = '{value}' WHERE space = :space"))
        told = []
        for name, read in reads.items():
            try:
                read()
            except Damaged as error:
                told.append((name, error.what))
        assert any("Version" in what or "Message a#1" in what or "chat" in what for _, what in told), value
        assert space.verify().problems, value


# What is wrong with the index


def rewritten(name: str, change: Callable[[Any], Any]) -> Damage:
    """Change a column of the first segment, and give it the right checksum."""
    return in_row(0, forged(lambda one: replace(one, **{name: change(getattr(one, name))})))


DIFFERS = "messages 1 to 16 differs from the log: repair the index"
INDEX: Mapping[str, tuple[Damage, str]] = {
    "a changed byte": (in_row(0, flipped(-1)), "messages 1 to 16 has a wrong checksum"),
    "no body": (
        in_row(0, lambda row: row._replace(body=b"", checksum=segment.checksum(b""))),
        "is damaged: it does not begin as a segment does",
    ),
    "offsets": (rewritten("offsets", lambda of: of[::-1].copy()), "is damaged"),
    "a missing segment": (remove(1), "no segment for the messages from 17"),
    "a missing first segment": (remove(0), "no segment for the messages from 1"),
    "a segment that ends before it begins": (
        in_row(1, lambda row: row._replace(last=row.first - 5)),
        "covers other documents than it says",
    ),
    "documents that do not exist": (
        in_row(-1, lambda row: forged(longer)(row)._replace(last=row.last + 1000)),
        "differs from the log",
    ),
    "other frequencies": (rewritten("frequencies", lambda of: of + np.uint8(1)), DIFFERS),
    "other chats": (rewritten("chats", lambda of: tuple(reversed(of))), DIFFERS),
    "a changed message": (
        sql("UPDATE messages SET content = 'other' WHERE space = :space AND chat = 'chat0' AND seq = 2"),
        DIFFERS,
    ),
}


@pytest.mark.parametrize(("change", "problem"), INDEX.values(), ids=INDEX.keys())
def test_damage_of_the_index_is_named_and_repaired(indexed: Memory, change: Damage, problem: str) -> None:
    damage(indexed, change)
    verified = indexed.verify()
    assert not verified.ok
    assert problem in "\n".join(verified.problems)
    forget(indexed)
    indexed.verify(repair=True)
    assert not [one for one in indexed.verify().problems if "index" in one]


def test_an_index_of_another_version_is_no_damage(indexed: Memory) -> None:
    damage(indexed, sql("UPDATE segments SET version = version + 1 WHERE space = :space"))
    assert indexed.verify().ok


def test_a_watermark_beyond_the_messages_is_found(tmp_path: Path) -> None:
    location = tmp_path / "memory.db"
    with Memory(location) as memory:
        memory.chat("a").append(
            role="user", content="We decided to keep the old names of all our tables in Kiel."
        )
        memory.chat("a").end()
        memory.learning.work()
        assert memory.verify().ok
        assert memory.verify().checked["watermarks"] == 2
    with closing(sqlite3.connect(location, isolation_level=None)) as connection:
        connection.execute("UPDATE watermarks SET seq = 7 WHERE kind = 'observe:rules'")
    with Memory(location) as memory:
        (problem,) = memory.verify().problems
        assert "'observe:rules' has looked at 7 messages" in problem
