"""The table of values under declared keys: when it is made, what it saves, and that erasure reaches it."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Damaged, InvalidInput, Memory
from holdfast.store.database import Value
from holdfast.store.meta_values import ADD
from tables import each

SECRET = "ZANZIBAR-7731"
DE = {"lang": "de"}


def tell(memory: Memory, count: int = 300, chat: str = "a") -> None:
    memory.chat(chat).append(
        [
            {"role": "user", "content": f"invoice {n}", "meta": {"lang": ("de", "en")[n % 2], "n": n}}
            for n in range(count)
        ]
    )


def on_disk(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


def noted(memory: Memory) -> int:
    return memory.verify().checked["metadata values"]


def test_an_append_writes_nothing_and_the_first_filter_notes_all(location: str) -> None:
    with Memory(location, user="ada", index_meta=["lang"]) as memory:
        tell(memory)
        assert noted(memory) == 0
        memory.recall("invoice")
        assert noted(memory) == 0
        assert len(memory.recall("invoice", where=DE, limit=1_000)) == 150
        assert noted(memory) == 300
        tell(memory, 10, "b")
        assert len(memory.recall("invoice", where=DE, limit=1_000)) == 155
        assert noted(memory) == 300  # a few are looked at one by one


def test_a_key_that_is_declared_later_is_caught_up(shared_location: str) -> None:
    with Memory(shared_location, user="ada") as memory:
        tell(memory)
        assert len(memory.recall("invoice", where={"n": {"$lt": 10}}, limit=100)) == 10
        assert noted(memory) == 0
    with Memory(shared_location, user="ada", index_meta=["n"]) as memory:
        assert len(memory.recall("invoice", where={"n": {"$lt": 10}}, limit=100)) == 10
        assert noted(memory) == 300
    # Whoever does not declare it uses it as well.
    with Memory(shared_location, user="ada") as memory:
        assert len(memory.recall("invoice", where={"n": {"$lt": 10}}, limit=100)) == 10


def test_each_space_has_values_of_its_own(location: str) -> None:
    with Memory(location, admin=True, index_meta=["lang"]) as memory:
        ada, eve, shared = (memory.scoped(user=user) for user in ("ada", "eve", ""))
        tell(ada)
        tell(eve, 300, "b")
        shared.remember("An invoice for all", meta=DE)
        found = ada.recall("invoice", where=DE, limit=1_000)
        assert {hit.chat for hit in found} == {"a", ""}
        assert (noted(ada), noted(eve)) == (300, 0)


def test_what_is_erased_stands_in_no_table(location: str) -> None:
    with Memory(location, user="ada", index_meta=["code"]) as memory:
        for n in range(300):
            memory.chat("a").append(
                [{"role": "user", "content": f"invoice {n}", "meta": {"code": f"{SECRET}-{n}"}}]
            )
        memory.chat("a").rename(meta={"code": SECRET})
        record = memory.remember("The invoice is late", meta={"code": SECRET})
        for where in ({"code": SECRET}, {"code": f"{SECRET}-7"}):
            assert memory.recall("invoice", where=where)
            memory.chats(where=where)
        memory.erase(record=record.id)
        memory.erase(chat="a")
        assert noted(memory) == 0
        rows = memory._runtime.database.all(
            "SELECT key, encoded FROM meta_values WHERE space = :space", space="/ada"
        )
        assert rows == []
        assert memory.recall("invoice", where={"code": {"$exists": True}}) == []
        assert memory.verify().problems == ()


def test_what_is_erased_stands_nowhere_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, user="ada", index_meta=["code"]) as memory:
        tell(memory, 300, "b")
        memory.chat("a", meta={"code": SECRET}).append(
            [{"role": "user", "content": "invoice", "meta": {"code": f"{SECRET}-1"}}]
        )
        assert memory.recall("invoice", where={"code": f"{SECRET}-1"})
        assert SECRET.encode() in on_disk(tmp_path)
        memory.erase(chat="a")
        assert SECRET.encode() not in on_disk(tmp_path)


def test_some_messages_are_erased_and_the_rest_is_found(location: str) -> None:
    with Memory(location, user="ada", index_meta=["lang"]) as memory:
        tell(memory)
        assert len(memory.recall("invoice", where=DE, limit=1_000)) == 150
        memory.erase(chat="a", messages=(1, 10))
        assert len(memory.recall("invoice", where=DE, limit=1_000)) == 145
        assert memory.verify().problems == ()


def test_verify_proves_the_values_and_repairs_them(location: str) -> None:
    with Memory(location, user="ada", index_meta=["lang"]) as memory:
        tell(memory)
        memory.recall("invoice", where=DE)
        with memory._runtime.database.writing() as tx:
            tx.all("DELETE FROM meta_values WHERE space = :space AND number = 7", space="/ada")
        (problem,) = memory.verify().problems
        assert "'lang' of messages" in problem
        assert memory.verify(repair=True).problems == ()
        assert len(memory.recall("invoice", where=DE, limit=1_000)) == 150


def test_values_of_a_key_that_nothing_is_known_of_are_named(quick: Memory) -> None:
    tell(quick, 3)
    row: dict[str, Value] = {
        "space": "/ada",
        "source": "message",
        "key": "lang",
        "encoded": b"\5de",
        "number": 1,
        "chat": "",
    }
    with quick._runtime.database.writing() as tx:
        tx.many(ADD, [row])
    assert "'lang' of messages" in quick.verify().problems[0]


def test_a_database_that_cannot_be_written_is_read_row_by_row(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, user="ada") as memory:
        tell(memory)
        memory.recall("invoice")
    with Memory(path, user="ada", index_meta=["lang"]) as memory:
        memory._runtime.database._writer.execute("PRAGMA query_only = ON")  # type: ignore[attr-defined]
        assert len(memory.recall("invoice", where=DE, limit=1_000)) == 150
        assert noted(memory) == 0


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


def test_filters_go_together_and_come_before_the_limit(memory: Memory) -> None:
    tell(memory, 40)
    memory.remember("The invoice is paid", kind="fact", meta=DE, tags=["x"])
    memory.remember("The invoice is lost", kind="fact", meta=DE)
    assert len(memory.recall("invoice", where={"n": {"$gte": 38}}, limit=2)) == 2
    assert [hit.text for hit in memory.recall("invoice", where=DE, tags=["x"])] == ["The invoice is paid"]
    assert memory.recall("invoice", where=DE, chat="b") == []
    assert len(memory.recall("invoice", where=DE, roles=["user"], limit=100)) == 20
    assert len(memory.recall("invoice", where=DE, per_kind=1)) == 1


def test_records_are_retracted_by_their_metadata(memory: Memory) -> None:
    for n in range(3):
        memory.remember(f"The invoice {n} is late", meta={"n": n}, merge=False)
    gone = memory.retract_all(where={"n": {"$gte": 1}})
    assert [one.meta["n"] for one in gone] == [1, 2]
    assert [one.meta["n"] for one in memory.records()] == [0]
    with pytest.raises(InvalidInput, match="No condition"):
        memory.retract_all(where={})


@each("keys", ["lang", [1], ["$lang"], ["a\0"], [f"k{n}" for n in range(40)]])
def test_what_cannot_be_declared(keys: list[str]) -> None:
    with pytest.raises(InvalidInput, match="index_meta"):
        Memory(":memory:", index_meta=keys)


@pytest.mark.parametrize("key", ["x'); DROP TABLE messages; --", ":space", "%", "a\\b", '"', "ключ", "a b"])
def test_keys_and_values_are_bound(location: str, key: str) -> None:
    with Memory(location, user="ada", index_meta=[key]) as memory:
        memory.chat("a").append(
            [{"role": "user", "content": "invoice", "meta": {key: key}} for _ in range(260)]
        )
        assert len(memory.recall("invoice", where={key: key}, limit=300)) == 260
        assert memory.recall("invoice", where={key: {"$gt": key}}) == []
        assert noted(memory) == 260


def test_values_that_a_database_cannot_hold_as_text(location: str) -> None:
    values = ["a\0b", "\ud800", "x" * 9_000, 2**70, -0.0, 10**300]
    with Memory(location, user="ada", index_meta=["v"]) as memory:
        chat = memory.chat("a")
        for value in values:
            chat.append([{"role": "user", "content": "invoice", "meta": {"v": value}} for _ in range(60)])
        for value in values:
            assert len(memory.recall("invoice", where={"v": value}, limit=400)) == 60
        assert noted(memory) == 360


def test_rows_that_a_declared_key_rules_out_are_not_read(shared_location: str) -> None:
    with Memory(shared_location, user="ada", index_meta=["lang"]) as memory:
        tell(memory)
        memory.remember("The invoice is late", meta=DE)
        memory.chat("a").rename(meta={"lang": "en"})
        memory.recall("invoice", where=DE)
        memory.chats(where=DE)
        # Whoever reads the metadata of these cannot overlook it.
        with memory._runtime.database.writing() as tx:
            tx.all("UPDATE messages SET meta = '{' WHERE space = :space AND meta LIKE '%en%'", space="/ada")
            tx.all("UPDATE sessions SET meta = '{' WHERE space = :space", space="/ada")
    with Memory(shared_location, user="ada") as memory:
        assert len(memory.recall("invoice", where=DE, limit=1_000)) == 151
        assert memory.chats(where=DE) == []
        with pytest.raises(Damaged):
            memory.recall("invoice", where={"n": 3})
        with pytest.raises(Damaged):
            memory.chats(where={"n": 3})
