"""Filters on metadata in recall: what is read once and kept, and what makes it be read again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast import Damaged, InvalidInput, Memory
from tables import each

DE = {"lang": "de"}


def tell(memory: Memory, count: int = 300, chat: str = "a") -> None:
    memory.chat(chat).append(
        [
            {"role": "user", "content": f"invoice {n} {chat}", "meta": {"lang": ("de", "en")[n % 2], "n": n}}
            for n in range(count)
        ]
    )


def test_the_values_of_a_key_are_read_once(location: str) -> None:
    with Memory(location, user="ada") as memory:
        tell(memory)
        record = memory.remember("The invoice is late", meta=DE)
        memory.chat("a").rename(meta={"customer": "acme"})
        assert len(memory.recall("invoice", where={**DE, "customer": "acme"}, limit=1_000)) == 150
        # Whoever reads the metadata of these cannot overlook it.
        with memory._runtime.database.writing() as tx:
            tx.all("UPDATE messages SET meta = '{' WHERE space = :space AND meta LIKE '%en%'", space="/ada")
            tx.all("UPDATE sessions SET meta = '{' WHERE space = :space", space="/ada")
        tell(memory, 10, "b")
        assert len(memory.recall("invoice", where={"lang": {"$lt": "en"}}, limit=1_000)) == 156
        assert [hit.id for hit in memory.recall("late", where=DE, sources=["record"])] == [record.id]
        assert len(memory.recall("invoice", where={"customer": {"$ne": "acme"}}, limit=1_000)) == 11
        with pytest.raises(Damaged):
            memory.recall("invoice", where={"n": 3})
        with pytest.raises(Damaged):
            memory.chats(where=DE)


def test_what_another_process_stores_counts(reopen: Callable[[], Memory]) -> None:
    one, other = reopen(), reopen()
    tell(one)
    where = {"$or": [DE, {"customer": "acme"}]}
    assert len(one.recall("invoice", where=where, limit=1_000)) == 150
    tell(other, 10, "b")
    assert len(one.recall("invoice", where=where, limit=1_000)) == 155
    other.chat("b").rename(meta={"customer": "acme"})
    assert len(one.recall("invoice", where=where, limit=1_000)) == 160
    other.erase(chat="a", messages=(1, 10))
    assert len(one.recall("invoice", where=where, limit=1_000)) == 155
    assert len(one.recall("invoice", where=DE, chat="a", limit=2)) == 2
    other.erase(chat="a")
    assert len(one.recall("invoice", where=where, limit=1_000)) == 10


def test_many_keys_are_asked_for_at_once_and_in_turn(quick: Memory) -> None:
    meta = {f"key{n}": n for n in range(100)}
    quick.chat("a").append([{"role": "user", "content": "the invoice", "meta": meta}])
    for _ in range(2):
        assert len(quick.recall("invoice", where=meta)) == 1
        assert all(len(quick.recall("invoice", where={key: n})) == 1 for key, n in meta.items())
    assert quick.recall("invoice", where={**meta, "key99": 98}) == []


def test_metadata_of_chats_counts_for_messages_without_the_key(memory: Memory) -> None:
    memory.chat("a", meta={"customer": "acme"}).append(
        [
            {"role": "user", "content": "the first invoice"},
            {"role": "user", "content": "the second invoice", "meta": {"customer": "other"}},
        ]
    )
    memory.chat("b").append(role="user", content="the third invoice")
    where = {"customer": "acme"}
    assert [hit.seq for hit in memory.recall("invoice", where=where)] == [1]
    assert [one.id for one in memory.chats(where=where)] == ["a"]
    memory.chat("b").rename(meta=where)
    assert {hit.chat for hit in memory.recall("invoice", where=where)} == {"a", "b"}
    memory.chat("c").append(role="user", content="the fourth invoice")
    assert [one.id for one in memory.chats(where=where, limit=1, offset=1)] == ["a"]
    memory.chat("a").rename(meta={"customer": None})
    assert {hit.chat for hit in memory.recall("invoice", where=where)} == {"b"}


def test_summaries_have_no_metadata(memory: Memory) -> None:
    chat = memory.chat("a", meta={"customer": "acme"})
    chat.append([{"role": "user", "content": f"The invoice {n} of the garden is late."} for n in range(40)])
    chat.compact(full=True, budget=400)
    hits = memory.recall("invoice garden", where={"customer": "acme"}, limit=100)
    assert {hit.source for hit in hits} == {"message"}
    with pytest.raises(InvalidInput, match="summaries have no metadata"):
        memory.recall("invoice", where={"customer": "acme"}, sources=["summary"])


def test_explain_names_the_clause(memory: Memory) -> None:
    memory.chat("a").append([{"role": "user", "content": "the invoice", "meta": {"lang": "de", "stars": 3}}])
    record = memory.remember("The invoice is late", meta={"stars": 9})
    where = {"lang": "de", "stars": {"$gte": 4}}
    assert memory.explain("invoice", "a#1", where=where).excluded == ("where: stars >= 4",)
    assert memory.explain("invoice", record.id, where=where).excluded == ('where: lang = "de"',)
    assert memory.explain("invoice", "a#1", where={"lang": "de"}).rank == 1


def test_records_are_retracted_by_their_metadata(memory: Memory) -> None:
    for n in range(3):
        memory.remember(f"The invoice {n} is late", meta={"n": n}, merge=False)
    gone = memory.retract_all(where={"n": {"$gte": 1}})
    assert [one.meta["n"] for one in gone] == [1, 2]
    assert [one.meta["n"] for one in memory.records()] == [0]
    with pytest.raises(InvalidInput, match="No condition"):
        memory.retract_all(where={})


@each("key", ["x'); DROP TABLE messages; --", ":space", "%", "a\\b", '"'])
def test_keys_and_values_are_bound(memory: Memory, key: str) -> None:
    said = [{"role": "user", "content": f"invoice {n}", "meta": {key: key}} for n in range(260)]
    memory.chat(key).append(said)
    assert len(memory.recall("invoice", where={key: key}, limit=300)) == 260
    assert memory.recall("invoice", where={key: {"$gt": key}}) == []


def test_values_that_a_database_cannot_hold_as_text(location: str) -> None:
    values = ["a\0b", "\ud800", "x" * 9_000, 2**70, -0.0, 10**300]
    with Memory(location, user="ada") as memory:
        chat = memory.chat("a")
        for value in values:
            chat.append(
                [{"role": "user", "content": f"invoice {n}", "meta": {"v": value}} for n in range(60)]
            )
        for value in values:
            assert len(memory.recall("invoice", where={"v": value}, limit=400)) == 60
