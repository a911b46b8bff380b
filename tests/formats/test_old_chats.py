"""Old chats are moved to files: nothing is erased that a file does not bring back."""

from __future__ import annotations

import hashlib
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast import Erasure, Memory, Message
from holdfast_cli.formats.importing import import_paths
from holdfast_cli.formats.old_chats import OldChat, find_old_chats, move_old_chat
from programs import start

OLD, BEFORE = datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC)


def tell(memory: Memory, name: str, at: datetime | None = OLD) -> None:
    memory.chat(name).append(
        [
            Message("user", f"{name}: one said so", at=at),
            Message("assistant", f"{name}: another said so", at=at),
        ]
    )


def move_all(
    memory: Memory, folder: Path, *, archived: bool = False, everyone: bool = False
) -> list[OldChat]:
    found = find_old_chats(memory, BEFORE, archived=archived, everyone=everyone)
    return [move_old_chat(memory, old, folder) for old in found]


def test_a_file_brings_back_what_was_erased(memory: Memory, tmp_path: Path) -> None:
    for name in ("trip", "../../etc/passwd", "x" * 200, "ü.", "now"):
        tell(memory, name, None if name == "now" else OLD)
    said = {chat.id: memory.chat(chat.id).history() for chat in memory.chats()}
    moved = move_all(memory, tmp_path / "old")
    assert {old.chat.id for old in moved} == set(said) - {"now"}
    assert [chat.id for chat in memory.chats()] == ["now"]
    assert memory.recall("trip said so", chat="trip") == []
    files = sorted((tmp_path / "old").rglob("*.jsonl"))
    assert len(files) == len(moved)
    assert sorted(Path(old.file) for old in moved) == files
    with Memory(":memory:") as restored:
        for old in moved:
            path = Path(old.file)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            assert path.with_suffix(".sha256").read_text() == f"{digest}  {path.name}\n"
            assert old.receipt
            assert old.receipt.counts["messages"] == 2
            import_paths(restored, path)
            back = restored.chat(old.chat.id).history()
            assert [(one.role, one.content, one.at) for one in back] == [
                (one.role, one.content, one.at) for one in said[old.chat.id]
            ]
    assert move_all(memory, tmp_path / "old") == []
    tell(memory, "trip")
    assert [Path(old.file).name for old in move_all(memory, tmp_path / "old")] == ["trip.2.jsonl"], (
        "none is overwritten"
    )


def test_what_is_to_be_kept_stays(memory: Memory, tmp_path: Path) -> None:
    for name in ("pinned", "constraint", "branches", "plain"):
        tell(memory, name)
    memory.pin(memory.remember("Ada likes boats", chat="pinned"))
    memory.remember("Never book on Mondays", "constraint", chat="constraint", by="user")
    memory.chat("branches").rewind(to=1)
    memory.chat("branches").append(Message("assistant", "another answer", at=OLD))
    why = {old.chat.id: old.why for old in move_all(memory, tmp_path)}
    assert why.pop("plain") == ""
    assert "pinned" in why.pop("pinned")
    assert "constraint" in why.pop("constraint")
    assert why == {"branches": "it has several branches"}
    assert {chat.id for chat in memory.chats()} == {"pinned", "constraint", "branches"}


def test_the_chats_of_all_users_and_those_that_are_archived(memory: Memory, tmp_path: Path) -> None:
    tell(memory, "kept")
    tell(memory, "own")
    memory.chat("own").archive()
    bob = memory.scoped(user="bob", project="boat")
    tell(bob, "own")
    bob.chat("own").archive()
    assert [old.chat.id for old in find_old_chats(memory, BEFORE, archived=True)] == ["own"]
    moved = move_all(memory, tmp_path, archived=True, everyone=True)
    assert len({old.file for old in moved}) == len(moved) == 2
    assert bob.chat("own").history() == memory.chat("own").history() == []
    assert len(memory.chat("kept").history()) == 2


def test_a_chat_that_a_file_cannot_hold_stays(quick: Memory, tmp_path: Path) -> None:
    quick.chat("secret").append(Message("user", "It is <private>7</private>.", at=OLD))
    (old,) = move_all(quick, tmp_path)
    assert old.why == "its file does not give the same chat again"
    assert len(quick.chat("secret").history()) == 1


def test_what_is_said_meanwhile_stays(quick: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tell(quick, "trip")
    erase = Memory.erase

    def erase_late(memory: Memory, **options: Any) -> Erasure:
        memory.chat("trip").append(role="user", content="One more thing")
        return erase(memory, **options)

    monkeypatch.setattr(Memory, "erase", erase_late)
    move_all(quick, tmp_path)
    assert [message.content for message in quick.chat("trip").history()] == ["One more thing"]


KILLED = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from holdfast import Memory
from holdfast_cli.formats.old_chats import find_old_chats, move_old_chat
memory = Memory(sys.argv[1], user="ada")
Memory.erase = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
for old in find_old_chats(memory, datetime(2021, 1, 1, tzinfo=UTC)):
    move_old_chat(memory, old, Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_a_process_that_is_killed_before_the_erasure_leaves_both(tmp_path: Path) -> None:
    location, folder = tmp_path / "agent.db", tmp_path / "old"
    with Memory(location, user="ada") as memory:
        tell(memory, "trip")
    with start(KILLED, location, folder) as process:
        assert process.wait() == -signal.SIGKILL
    files = list(folder.rglob("*.jsonl"))
    with Memory(location, user="ada") as memory:
        assert len(memory.chat("trip").history()) == 2
        (old,) = move_all(memory, folder)
        assert ([Path(old.file)], old.why) == (files, "")
        assert memory.chat("trip").history() == []
