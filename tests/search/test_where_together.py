"""Filters on metadata through tools and beside writers."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping

import pytest

from holdfast import Memory

DE = {"lang": "de"}


def tell(memory: Memory, count: int = 300, chat: str = "a", first: int = 0) -> None:
    memory.chat(chat, meta={"customer": "acme"}).append(
        [
            {"role": "user", "content": f"invoice {n} {chat}", "meta": {"lang": ("de", "en")[n % 2]}}
            for n in range(first, first + count)
        ]
    )


def count(memory: Memory, where: Mapping[str, object]) -> int:
    return len(memory.recall("invoice", where=where, limit=10_000))


def test_the_tool_takes_a_filter_as_text(memory: Memory) -> None:
    tell(memory, 40)
    (recall,) = memory.tools("monday", allow=["recall"])
    where = json.dumps(DE)
    page = recall({"query": "invoice", "where": where, "limit": 15})
    assert page.ok
    more = recall({"query": "invoice", "where": where, "limit": 15, "cursor": page.data["cursor"]})
    hits = [*page.data["hits"], *more.data["hits"]]  # type: ignore[misc]
    assert {hit["text"] for hit in hits} == {f"invoice {n} a" for n in range(0, 40, 2)}
    for wrong in ("{", "[1]", '{"lang": {"$regex": "d"}}'):
        failed = recall({"query": "invoice", "where": wrong})
        assert not failed.ok
    # A cursor belongs to its filter.
    assert not recall({"query": "invoice", "where": '{"lang": "en"}', "cursor": page.data["cursor"]}).ok
    assert recall({"query": "invoice", "where": ""}).ok


def test_a_model_asks_for_many_values_and_not_for_many_conditions(memory: Memory) -> None:
    tell(memory, 4)
    (recall,) = memory.tools("monday", allow=["recall"])
    values = ["de", *(f"language {n}" for n in range(900))]
    page = recall({"query": "invoice", "where": json.dumps({"lang": {"$in": values}})})
    assert len(page.data["hits"]) == 2  # type: ignore[arg-type]
    for where in ({"$or": [{"lang": one} for one in values[:300]]}, {f"key{n}": 1 for n in range(300)}):
        refused = recall({"query": "invoice", "where": json.dumps(where)})
        assert not refused.ok
        assert "$in" in refused.text


@pytest.mark.slow
def test_writers_and_readers_at_once(shared_location: str) -> None:
    """Each reader finds all that was acknowledged before it asked."""
    errors: list[BaseException] = []
    done = threading.Event()
    with Memory(shared_location, user="ada") as memory:
        tell(memory, 600, "first")

        def read() -> None:
            with Memory(shared_location, user="ada") as other:
                while not done.is_set():
                    stored = other.chat("second").stats().messages
                    assert count(other, DE) >= 300 + stored // 2
                    assert len(other.chats(where={"customer": "acme"})) >= 1

        def run() -> None:
            try:
                read()
            except BaseException as error:  # noqa: BLE001 # told by the test
                errors.append(error)

        readers = [threading.Thread(target=run) for _ in range(3)]
        for reader in readers:
            reader.start()
        for n in range(12):
            tell(memory, 50, "second", 50 * n)
            memory.chat("second").rename(meta={"turn": n})
        done.set()
        for reader in readers:
            reader.join()
        assert errors == []
        assert count(memory, DE) == 600
        assert memory.verify().problems == ()
