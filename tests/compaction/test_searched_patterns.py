"""Searching one chat with a regular expression, within a time, in an order."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from holdfast import Hit, InvalidInput, Memory
from tables import each

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


def fill(memory: Memory, count: int = 6) -> None:
    memory.chat("monday").append(
        [
            {"role": "user", "content": f"Deploy {n} failed with ORA-{n:05}", "at": NOON + timedelta(hours=n)}
            for n in range(1, count + 1)
        ]
    )
    memory.chat("tuesday").append(role="user", content="ORA-99999 is elsewhere")


def seqs(hits: list[Hit]) -> list[int]:
    return [hit.seq for hit in hits]


def test_a_regular_expression_finds_messages_newest_first(memory: Memory) -> None:
    fill(memory)
    hits = memory.chat("monday").search(r"ORA-0000[2-4]\b", regex=True)
    assert seqs(hits) == [4, 3, 2]
    assert (hits[0].source, hits[0].text, hits[0].chat) == (
        "message",
        "Deploy 4 failed with ORA-00004",
        "monday",
    )
    assert (hits[0].score, str(hits[0].why)) == (1.0, "pattern 100%")
    assert memory.chat("monday").search("ora-00001", regex=True) == []
    assert seqs(memory.chat("monday").search("(?i)ora-00001", regex=True)) == [1]
    assert memory.chat("never").search("a", regex=True) == []


def test_an_order_and_a_limit(memory: Memory) -> None:
    fill(memory, 600)  # more than is read at once
    chat = memory.chat("monday")
    assert seqs(chat.search("ORA", regex=True, sort="oldest", limit=2)) == [1, 2]
    assert seqs(chat.search("ORA", regex=True, sort="newest", limit=2)) == [600, 599]
    assert seqs(chat.search("ORA-00001", regex=True)) == [1]
    assert seqs(chat.search("ORA-00600", regex=True, sort="oldest")) == [600]
    assert chat.search("ORA", regex=True, limit=0) == []


@pytest.mark.parametrize("regex", [True, False])
def test_only_what_was_said_within_a_time(memory: Memory, *, regex: bool) -> None:
    fill(memory)
    chat = memory.chat("monday")
    since, before = NOON + timedelta(hours=2), NOON + timedelta(hours=5)
    assert seqs(chat.search("Deploy", regex=regex, since=since, sort="oldest")) == [2, 3, 4, 5, 6]
    assert seqs(chat.search("Deploy", regex=regex, before=before, sort="newest")) == [4, 3, 2, 1]
    assert sorted(seqs(chat.search("Deploy", regex=regex, since=since, before=before))) == [2, 3, 4]
    naive = since.replace(tzinfo=None)
    assert sorted(seqs(chat.search("Deploy", regex=regex, since=naive, before=before))) == [2, 3, 4]


def test_summaries_are_looked_through_as_well(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append([{"role": "user", "content": f"The quokka has number {n}. " * 12} for n in range(30)])
    chat.compact(full=True, budget=600)
    assert {hit.source for hit in chat.search("quokk[a]", regex=True, limit=99)} == {"message", "summary"}
    (*_, found) = chat.search("quokk[a]", "summaries", regex=True)
    assert found.id in {summary.id for summary in chat.tree()}
    assert {hit.source for hit in chat.search("quokk[a]", "messages", regex=True)} == {"message"}


def test_a_long_text_is_cut_around_the_match(memory: Memory) -> None:
    memory.chat("monday").append(role="user", content="before " * 500 + "ORA-00942 " + "after " * 500)
    (hit,) = memory.chat("monday").search(r"ORA-\d+ ", regex=True)
    assert "ORA-00942" in hit.text
    assert len(hit.text) <= 502
    assert hit.text.startswith("…")
    assert hit.text.endswith("…")


def test_what_is_masked_is_not_found_out(memory: Memory) -> None:
    memory.chat("monday").append(role="user", content=f"My key is {KEY}, keep it.")
    chat = memory.chat("monday")
    assert chat.search("sk-proj-abc", regex=True) == []
    (hit,) = chat.search("My key", regex=True)
    assert KEY not in hit.text
    assert KEY in chat.search("sk-proj-abc", regex=True, secrets="show")[0].text


def test_what_could_never_end_ends(memory: Memory) -> None:
    memory.chat("monday").append(role="user", content="a" * 20_000)
    assert memory.chat("monday").search("(a+)+b", regex=True) == []


@each(
    "wrong",
    [
        {"query": "(", "regex": True},
        {"query": "(?=a)", "regex": True},
        {"query": "a", "regex": "yes"},
        {"query": "a", "regex": True, "sort": "relevance"},
        {"query": "a", "sort": "best"},
        {"query": "a", "since": "yesterday"},
        {"query": "a", "before": 3},
        {"query": 3, "regex": True},
    ],
)
def test_what_is_no_search_is_refused(quick: Memory, wrong: dict[str, object]) -> None:
    fill(quick)
    with pytest.raises(InvalidInput):
        quick.chat("monday").search(**wrong)  # type: ignore[arg-type]  # the wrong types are the case


def test_an_awaited_chat_searches_as_well() -> None:
    async def main() -> None:
        async with Memory(":memory:", user="ada").aio as memory:
            await memory.chat("monday").append(role="user", content="ORA-00942")
            assert seqs(await memory.chat("monday").search(r"ORA-\d+", regex=True, sort="oldest")) == [1]

    asyncio.run(main())
