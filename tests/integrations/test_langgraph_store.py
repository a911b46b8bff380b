"""The store of LangGraph in a memory: what its makers' tests do not say, on all databases."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import IndexConfig, InvalidNamespaceError, Op, PutOp, SearchItem, SearchOp

from embedders import Letters, aletters, letters
from holdfast import Damaged, InvalidInput, Memory, ModelFailed
from holdfast.integrations.langgraph import HoldfastStore
from learning_scripts import Clock
from tables import each

HERE = ("users", "ada")


def keys(found: Iterable[SearchItem]) -> list[str]:
    return [item.key for item in found]


def ranked(found: Iterable[SearchItem]) -> list[str]:
    return [item.key for item in found if item.score is not None]


def fill(store: HoldfastStore) -> None:
    store.put(HERE, "tea", {"text": "Ada drinks green tea in the mornings.", "n": 1})
    store.put(HERE, "run", {"text": "She ran a marathon in Berlin.", "n": 2, "tags": ["sport"]})
    store.put(HERE, "car", {"text": "Her car is red.", "n": 3, "owner": {"name": "Ada", "age": 36}})


def test_filters_compare_as_json_does(memory: Memory) -> None:
    store = HoldfastStore(memory)
    fill(store)
    store.put(HERE, "flag", {"n": True, "a.b": 1, "name": "Zoë"})
    for wanted, expected in (
        ({"n": 1}, ["tea"]),
        ({"n": True}, ["flag"]),
        ({"n": {"$gt": 1, "$lte": 3}}, ["car", "run"]),
        ({"n": {"$ne": 1}, "tags": None}, ["flag", "car"]),
        ({"tags": ["sport"]}, ["run"]),
        ({"owner": {"name": "Ada"}}, ["car"]),
        ({"owner.age": {"$gte": 36}}, ["car"]),
        ({"a.b": 1}, ["flag"]),
        ({"name": {"$gt": "Y"}}, ["flag"]),
        ({"name": {"$gt": 1}}, []),
    ):
        assert keys(store.search(HERE, filter=wanted)) == expected, wanted
    assert keys(store.search(HERE, query="tea marathon", filter={"n": {"$gt": 1}})) == ["run", "car"]
    for wrong in ({"n": {"$near": 1}}, {"n": {"$gt": 1, "x": 2}}, {"o": {"p": {"$no": 1}}}):
        with pytest.raises(InvalidInput, match="no operator of a filter"):
            store.search(HERE, filter=wrong)


@each(
    "wrong",
    [
        PutOp(HERE, "k", {"v": {1, 2}}),
        PutOp(HERE, "k", {"v": 1}, index=[1]),  # type: ignore[list-item]
        PutOp(HERE, "k" * 3_000, {"v": 1}),
        PutOp(HERE, 1, {"v": 1}),  # type: ignore[arg-type]
        SearchOp(HERE, limit=-1),
        "no operation",
    ],
)
def test_a_batch_with_one_wrong_operation_writes_nothing(quick: Memory, wrong: Op) -> None:
    store = HoldfastStore(quick)
    with pytest.raises((InvalidInput, InvalidNamespaceError)):
        store.batch([PutOp(HERE, "valid", {"v": 1}), wrong])
    assert not store.search(())
    assert not store.list_namespaces()


labels = st.text(st.characters(blacklist_characters=".\0"), min_size=1, max_size=3)
namespaces = st.lists(labels, min_size=1, max_size=3).map(tuple)
places = st.tuples(namespaces, st.text(max_size=3))


@pytest.mark.slow
@given(st.lists(st.tuples(places, st.none() | st.integers()), max_size=12), st.lists(labels, max_size=2))
def test_it_is_a_dict_of_namespaces_and_keys(
    writes: list[tuple[tuple[tuple[str, ...], str], int | None]], prefix: list[str]
) -> None:
    with Memory(":memory:", user="ada") as memory:
        store, other = HoldfastStore(memory), HoldfastStore(memory)
        model: dict[tuple[tuple[str, ...], str], int] = {}
        for n, (place, value) in enumerate(writes):
            # Of two stores each takes over what it writes itself, and reads what the other one wrote.
            store.search(())
            namespace, key = place
            writer = (store, other)[n % 2]
            writer.batch([PutOp(namespace, key, None if value is None else {"v": value})])
            model.pop(place, None)
            if value is not None:
                model[place] = value
        below = [(place, value) for place, value in model.items() if place[0][: len(prefix)] == tuple(prefix)]
        for one in (store, other, HoldfastStore(memory)):
            found = one.search(tuple(prefix), limit=100)
            assert {((*item.namespace,), item.key): item.value["v"] for item in found} == dict(below)
            assert one.list_namespaces(prefix=tuple(prefix)) == sorted({place[0] for place, _ in below}) or (
                "*" in prefix
            )
        assert all(store.get(*place).value == {"v": value} for place, value in model.items())  # type: ignore[union-attr]
        assert memory.verify().ok


def test_what_has_expired_is_not_there_and_reading_renews_it(memory: Memory, clock: Clock) -> None:
    store = HoldfastStore(memory, ttl={"default_ttl": 10})
    store.put(HERE, "read", {"text": "tea"})
    store.put(HERE, "found", {"text": "marathon"})
    store.put(("left",), "left", {"text": "car"})
    store.put(HERE, "stays", {"text": "dog"}, ttl=None)
    reader = HoldfastStore(memory)
    assert len(reader.search((), refresh_ttl=False)) == 4
    clock.now += timedelta(minutes=6)
    assert store.get(HERE, "read") is not None
    assert keys(store.search(HERE, query="marathon", limit=1)) == ["found"]
    assert store.get(("left",), "left", refresh_ttl=False) is not None
    assert store.list_namespaces() == [("left",), HERE]
    clock.now += timedelta(minutes=6)
    assert sorted(keys(store.search((), refresh_ttl=False))) == ["found", "read", "stays"]
    assert sorted(keys(reader.search((), refresh_ttl=False))) == ["found", "read", "stays"]
    assert store.get(("left",), "left") is None
    assert store.list_namespaces() == [HERE]
    assert store.sweep_ttl() == 1
    assert store.list_namespaces() == [HERE]
    clock.now += timedelta(minutes=6)
    assert keys(reader.search(())) == ["stays"]
    assert store.sweep_ttl() == 2
    store.put(("left",), "k", {"text": "back"})
    assert ranked(store.search((), query="back")) == ["k"]
    assert memory.verify().ok


def test_the_sweeper_deletes_until_it_is_stopped_or_the_memory_is_closed(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "memory.db", user="ada")
    store = HoldfastStore(memory, ttl={"sweep_interval_minutes": 1})
    swept = store.start_ttl_sweeper(1e-4)
    assert store.start_ttl_sweeper() is swept
    assert store.stop_ttl_sweeper()
    assert swept.result() is None
    again = store.start_ttl_sweeper()
    assert again.cancel()
    assert store.stop_ttl_sweeper()
    with pytest.raises(InvalidInput, match="sweep_interval_minutes"):
        store.start_ttl_sweeper(-1)
    last = store.start_ttl_sweeper(1e-4)
    memory.close()
    assert last.result(timeout=60) is None


@pytest.mark.parametrize("embed", [letters, aletters, Letters()])
def test_any_embedder_ranks_by_meaning(location: str, embed: object) -> None:
    with Memory(location, user="ada") as memory:
        config = cast("IndexConfig", {"embed": embed, "fields": ["a", "b"]})
        store = HoldfastStore(memory, index=config)
        store.put(HERE, "z", {"a": "zzzz", "b": "yyyy"})
        store.put(HERE, "y", {"a": "yyyy", "c": "zzzz"})
        store.put(HERE, "none", {"a": "zzzz"}, index=False)
        store.put(HERE, "empty", {"c": "zzzz"})
        found = store.search(HERE, query="zzzz")
        assert keys(found) == ["z", "y", "empty", "none"]
        assert [round(item.score, 3) if item.score else None for item in found[::2]] == [1.0, None]

        async def awaited() -> list[SearchItem]:
            await store.aput(HERE, "z", {"a": "x"})
            return await store.asearch(HERE, query="zzzz")

        assert [(item.key, item.score) for item in asyncio.run(awaited())][2:] == [
            ("empty", None),
            ("none", None),
        ]
        fresh = HoldfastStore(memory, index=config)
        assert keys(fresh.search(HERE, query="yyyy"))[:1] == ["y"]
        assert ranked(HoldfastStore(memory).search(HERE, query="yyyy")) == ["y"]


def test_an_embedder_that_fails_stores_nothing(quick: Memory) -> None:
    def fails(texts: Sequence[str]) -> list[list[float]]:
        raise OSError

    store = HoldfastStore(quick, index={"embed": fails, "dims": 26})
    with pytest.raises(ModelFailed):
        store.put(HERE, "k", {"text": "tea"})
    assert store.get(HERE, "k") is None
    other = HoldfastStore(quick, index={"embed": letters, "dims": 25})
    with pytest.raises(ModelFailed, match="vectors of 26 numbers, not of 25"):
        other.put(HERE, "k", {"text": "tea"})


def test_vectors_go_with_their_items(memory: Memory) -> None:
    store = HoldfastStore(memory, index={"embed": letters})
    store.put(HERE, "k", {"text": "zzzz"})
    HoldfastStore(memory).put(HERE, "k", {"text": "aaaa"})
    assert ranked(store.search(HERE, query="zzzz")) == []
    store.put(HERE, "k", {"text": "zzzz"})
    assert ranked(store.search(HERE, query="zzzz")) == ["k"]
    store.delete(HERE, "k")
    assert store.search(HERE, query="zzzz") == store.list_namespaces() == []


def test_a_damaged_item_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with Memory(path, user="ada") as memory:
        HoldfastStore(memory).put(HERE, "k", {"v": 1})
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE items SET data = CAST('[1' AS BLOB) WHERE CAST(key AS TEXT) LIKE 'i%'")
    with Memory(path, user="ada") as memory:
        with pytest.raises(Damaged, match="item of the LangGraph store cannot be read"):
            HoldfastStore(memory).get(HERE, "k")
        assert not memory.verify().ok


def test_items_are_apart_from_all_that_is_recalled_and_erased_with_the_user(memory: Memory) -> None:
    store = HoldfastStore(memory)
    fill(store)
    chat = memory.chat("trip")
    chat.append({"role": "user", "content": "What do I drink?"})
    assert not [hit for hit in memory.recall("green tea marathon car") if "tea" in str(hit)]
    assert "green tea" not in str(chat.prompt(budget=2_000).messages)
    assert not memory.records()
    memory.erase(user="ada")
    assert store.get(HERE, "tea") is None
    assert store.search(()) == []
    assert memory.verify().ok
