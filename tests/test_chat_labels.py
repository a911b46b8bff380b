"""What is said of a chat beside its messages: when it was created, its channel, its metadata."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import pytest

from holdfast import ChatInfo, InvalidInput, Memory
from holdfast_cli.formats.everything import export_everything
from holdfast_cli.formats.export import export_chats
from holdfast_cli.formats.importing import import_paths
from tables import each

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def info(memory: Memory, chat: str) -> ChatInfo:
    found = memory.chat(chat).stats().info
    assert found is not None
    return found


def test_a_chat_is_created_when_its_first_message_is_stored(location: str) -> None:
    times = iter(datetime(2026, 3, day, tzinfo=UTC) for day in range(1, 9))
    with Memory(location, user="ada", clock=lambda: next(times)) as memory:
        memory.chat("monday").append(
            role="user", content="said long ago", at=datetime(2020, 1, 1, tzinfo=UTC)
        )
        memory.chat("monday").append(role="user", content="and now")
        found = info(memory, "monday")
        assert (found.created, found.oldest.year) == (datetime(2026, 3, 1, tzinfo=UTC), 2020)


def test_opening_stores_nothing_and_the_next_message_says_it_once(memory: Memory) -> None:
    new = memory.chat("monday", channel="telegram", meta={"mood": "good"})
    with pytest.raises(InvalidInput):
        new.append({"role": "nobody", "content": "x"})
    new.append([])
    assert (memory.chats(), new.stats().info) == ([], None)
    new.append(role="user", content="hello", id="m1")
    assert (info(memory, "monday").channel, info(memory, "monday").meta) == ("telegram", {"mood": "good"})
    memory.chat("monday", channel="email").append(role="user", content="hello", id="m1")
    new.append(role="user", content="hello again")
    assert info(memory, "monday").channel == "email"


def test_metadata_is_merged_by_key_and_none_takes_away(memory: Memory) -> None:
    meta: dict[str, object] = {"a": 1, "b": {"x": 1}, "gone": None}
    chat = memory.chat("monday", channel="telegram", meta=meta)
    meta["a"] = "what is given is copied"
    chat.append(role="user", content="one")
    assert info(memory, "monday").meta == {"a": 1, "b": {"x": 1}}
    chat.rename(meta={"b": {"y": 2}, "a": None, "c": False})
    assert (info(memory, "monday").channel, info(memory, "monday").meta) == (
        "telegram",
        {"b": {"y": 2}, "c": False},
    )
    chat.rename(channel="")
    assert (info(memory, "monday").channel, info(memory, "monday").meta) == ("", {"b": {"y": 2}, "c": False})


def test_chats_of_one_channel(memory: Memory) -> None:
    for chat, channel in (("a", "telegram"), ("b", "email"), ("c", None), ("d", "telegram")):
        memory.chat(chat, channel=channel).append(role="user", content="hello")
    assert [one.id for one in memory.chats(channel="telegram")] == ["d", "a"]
    assert [one.id for one in memory.chats(channel="telegram", limit=1, offset=1)] == ["a"]
    assert [one.id for one in memory.chats(channel="")] == ["c"]
    assert memory.chats(channel="tele%") == []
    memory.chat("d").archive()
    assert [one.id for one in memory.chats(channel="telegram")] == ["a"]
    assert memory.scoped(user="bob", tenant="acme").chats(channel="telegram") == []


@each("meta", [[], "x", 3, {"a": {1}}, {"a": NOON}, {1: "x"}, {"a": (1,)}])
def test_metadata_is_a_json_object(quick: Memory, meta: object) -> None:
    with pytest.raises(InvalidInput):
        quick.chat("monday", meta=meta)  # type: ignore[arg-type]  # the wrong type is the case
    quick.chat("monday").append(role="user", content="one")
    with pytest.raises(InvalidInput):
        quick.chat("monday").rename(meta=meta)  # type: ignore[arg-type]  # as above
    assert info(quick, "monday").meta == {}


@each("channel", [" ", "a\nb", 3, "x" * 513, "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"])
def test_a_channel_is_a_name_that_may_be_shown(quick: Memory, channel: str) -> None:
    with pytest.raises(InvalidInput):
        quick.chat("monday", channel=channel)


def test_labels_survive_other_changes_and_are_erased_with_the_chat(location: str) -> None:
    with Memory(location, user="ada") as memory:
        chat = memory.chat("monday", channel="quokka-line", meta={"note": "wombat-secret"})
        chat.append([{"role": "user", "content": text} for text in ("one", "two")])
        chat.rename("Another")
        chat.archive()
        memory.erase(chat="monday", messages=(1, 1))
        assert info(memory, "monday").meta == {"note": "wombat-secret"}
        assert memory.verify().ok
        memory.erase(chat="monday")
        assert memory.chat("monday").stats().info is None
        memory.chat("monday").append(role="user", content="anew")
        assert (info(memory, "monday").channel, info(memory, "monday").meta) == ("", {})
    for path in Path(location).parent.glob("*") if "://" not in location and location != ":memory:" else ():
        assert b"wombat" not in path.read_bytes()
        assert b"quokka" not in path.read_bytes()


@pytest.mark.parametrize("export", [export_chats, export_everything])
def test_labels_come_back_from_an_export(
    memory: Memory, tmp_path: Path, export: Callable[[Memory, TextIO], object]
) -> None:
    memory.chat("monday", channel="telegram", meta={"a": [1]}).append(
        [{"role": "user", "content": "hello"}, {"role": "user", "content": "again"}]
    )
    path = tmp_path / "out.jsonl"
    with path.open("w", encoding="ascii") as stream:
        export(memory, stream)
    with Memory(":memory:", user="ada") as copy:
        import_paths(copy, path)
        assert copy.chat("monday").stats().info == memory.chat("monday").stats().info
        assert copy.verify().ok
