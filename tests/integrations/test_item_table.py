"""What adapters keep that is no message: bytes under keys, the same on both databases."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Conflict, Memory
from holdfast.port.items import Items
from index_damage import damage
from learning_scripts import Clock


def keys(
    table: Items,
    *,
    prefix: str = "",
    after: str | None = None,
    descending: bool = False,
    limit: int | None = None,
) -> list[str]:
    found = table.scan(prefix=prefix, after=after, descending=descending, limit=limit)
    return [item.key for item in found]


def test_items_are_read_by_key_by_prefix_and_after_a_key(memory: Memory) -> None:
    table = Items(memory, "blobs")
    table.put({key: key.encode() for key in ("a/2", "a/10", "b/1", "Ä", "a\U0001f600", "a")})
    assert keys(table) == ["a", "a/10", "a/2", "a\U0001f600", "b/1", "Ä"]
    assert keys(table, prefix="a/") == ["a/10", "a/2"]
    assert keys(table, prefix="a", descending=True, limit=2) == ["a\U0001f600", "a/2"]
    assert keys(table, after="a/10", limit=2) == ["a/2", "a\U0001f600"]
    assert keys(table, prefix="a/", after="a/10") == ["a/2"]
    assert {key: item.data for key, item in table.get_many(["Ä", "none"]).items()} == {"Ä": "Ä".encode()}
    assert table.get("b") is None


@pytest.mark.slow
@given(st.dictionaries(st.text(st.characters(), max_size=4), st.binary(max_size=4), max_size=8))
def test_any_text_is_a_key(data: dict[str, bytes]) -> None:
    with Memory(":memory:", user="ada") as memory:
        table = Items(memory, "blobs")
        table.put(data)
        assert {item.key: item.data for item in table.scan()} == data
        assert keys(table) == sorted(data)
        for key in data:
            assert keys(table, prefix=key) == sorted(one for one in data if one.startswith(key))
        assert memory.verify().ok


def test_an_item_is_replaced_only_at_the_revision_that_was_read(memory: Memory) -> None:
    table = Items(memory, "blobs")
    assert table.replace("k", b"1", 0) == 1
    assert table.replace("k", b"2", 1) == 2
    for revision in (0, 1, 3):
        with pytest.raises(Conflict, match="'k' was written by somebody else"):
            table.replace("k", b"3", revision)
    table.put({"k": b"4"})
    assert (found := table.get("k")) is not None
    assert (found.data, found.revision) == (b"4", 3)


def test_what_has_expired_is_not_there(memory: Memory, clock: Clock) -> None:
    table = Items(memory, "blobs")
    table.put({"soon": b"1", "later": b"2"}, expires=table.now + 60_000_000)
    table.put({"later": b"2", "never": b"3"})
    clock.now += timedelta(seconds=59)
    assert keys(table) == ["later", "never", "soon"]
    clock.now += timedelta(seconds=1)
    assert keys(table) == ["later", "never"]
    assert table.get("soon") is None
    assert table.replace("soon", b"4", 0) == 1
    table.put({"gone": b"5"}, "chat", expires=table.now)
    assert table.sweep() == [("blobs", "gone")]
    assert keys(table) == ["later", "never", "soon"]


def test_items_are_erased_with_their_chat_and_with_the_user(memory: Memory) -> None:
    table = Items(memory, "blobs")
    table.put({"k": b"of the chat"}, "trip")
    table.put({"k": b"of the user"})
    memory.erase(chat="trip")
    assert not table.scan("trip")
    assert table.get("k") is not None
    memory.erase(user="ada")
    assert not table.scan()
    assert memory.verify().ok


def test_a_changed_item_is_noticed(memory: Memory) -> None:
    Items(memory, "blobs").put({"k": b"true"})
    damage(
        memory,
        lambda tx, space: tx.all(
            "UPDATE items SET data = :data WHERE space = :space", data=b"false", space=space
        ),
    )
    assert any("an item of 'blobs', b'k'" in problem for problem in memory.verify().problems)
