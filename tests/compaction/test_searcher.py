"""Search within a chat, by words and by regular expressions, and recall of summaries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from compaction_chats import START, Scribe, buffer, in_turn, policy, seqs, tell

from holdfast import Chat, InvalidInput, Memory, Message
from tables import each

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


def summarised(
    chat: Chat, answer: str = "The quokka of the harbour master escaped from cranes, boxes and piers twice."
) -> None:
    tell(chat, 40)
    chat.compact(full=True, llm=Scribe(in_turn(answer, "More boxes were moved.")), policy=policy())


def deployed(chat: Chat, count: int = 6) -> None:
    chat.append(
        [
            Message("user", f"Deploy {n} failed with ORA-{n:05}", at=NOON + timedelta(hours=n))
            for n in range(1, count + 1)
        ]
    )


# By words


@each(
    ("options", "what"),
    [
        *(({"scope": no}, "Use one of messages, summaries, both") for no in ("", "message", "Both", None)),
        ({"query": "(", "regex": True}, None),
        ({"regex": True, "sort": "relevance"}, None),
        ({"sort": "best"}, None),
    ],
)
def test_what_is_no_search_is_refused(quick: Memory, options: dict[str, Any], what: str | None) -> None:
    deployed(quick.chat("c"))
    with pytest.raises(InvalidInput, match=what):
        quick.chat("c").search(**({"query": "a"} | options))


@each(
    ("before", "word", "query"),
    [
        ("boxes ", "quokka", "quokka"),
        ("İ ", "quokka", "QUOKKA"),
        ("boxes ", "café", "cafe"),
        ("boxes ", "Straße", "strasse"),
        ("箱 ", "東京タワー", "東京タワー"),
    ],
)
def test_a_snippet_is_short_and_around_a_match_in_any_form(before: str, word: str, query: str) -> None:
    memory = Memory(":memory:", user="ada")
    chat = memory.chat("c")
    text = f"{before * 1_500}and {word} here. {'boxes ' * 1_500}".strip()
    chat.append(Message("user", text))
    (hit,) = chat.search(query)
    assert word in hit.text
    assert 300 <= len(hit.text) <= 502
    assert hit.text.strip("…") in text
    assert hit.text.startswith("…") is bool(before)
    (found,) = chat.search(f"{word}[ ]", regex=True)
    assert word in found.text
    assert (len(found.text) <= 502, found.text.startswith("…")) == (True, bool(before))
    assert memory.recall(query)[0].text == text


# By regular expressions


def test_a_regular_expression_finds_messages_in_an_order_up_to_a_limit(memory: Memory) -> None:
    chat = memory.chat("monday")
    deployed(chat, 600)  # more than is read at once
    memory.chat("tuesday").append(role="user", content="ORA-99999 is elsewhere")
    hits = chat.search(r"ORA-0000[2-4]\b", regex=True)
    assert seqs(hits) == [4, 3, 2]
    assert (hits[0].source, hits[0].text, hits[0].chat) == (
        "message",
        "Deploy 4 failed with ORA-00004",
        "monday",
    )
    assert (hits[0].score, str(hits[0].why)) == (1.0, "pattern 100%")
    assert chat.search("ora-00001", regex=True) == chat.search("ORA-9", regex=True) == []
    assert seqs(chat.search("(?i)ora-00001", regex=True)) == [1]
    assert seqs(chat.search("ORA", regex=True, sort="oldest", limit=2)) == [1, 2]
    assert seqs(chat.search("ORA", regex=True, sort="newest", limit=2)) == [600, 599]
    assert chat.search("ORA", regex=True, limit=0) == memory.chat("never").search("a", regex=True) == []


@pytest.mark.parametrize("regex", [True, False])
def test_only_what_was_said_within_a_time(memory: Memory, *, regex: bool) -> None:
    chat = memory.chat("monday")
    deployed(chat)
    since, before = NOON + timedelta(hours=2), NOON + timedelta(hours=5)
    assert seqs(chat.search("Deploy", regex=regex, since=since, sort="oldest")) == [2, 3, 4, 5, 6]
    assert seqs(chat.search("Deploy", regex=regex, before=before, sort="newest")) == [4, 3, 2, 1]
    naive = since.replace(tzinfo=None)
    assert sorted(seqs(chat.search("Deploy", regex=regex, since=naive, before=before))) == [2, 3, 4]


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


# Summaries in recall


def test_a_summary_is_found_by_its_own_words_and_leads_to_the_messages(memory: Memory) -> None:
    chat = memory.chat("c")
    summarised(chat)
    leaf = chat.tree()[0]
    for hit, *_ in (
        memory.recall("quokka"),
        memory.recall("quokka", sources=("summary",)),
        chat.search("quokka"),
    ):
        assert (hit.source, hit.id, hit.chat) == ("summary", leaf.id, "c")
        assert (hit.seq, hit.last_seq) == (leaf.first, leaf.last)
        assert (hit.text, hit.at) == (leaf.text, leaf.until)
        assert "quokka" in hit.why.words
        assert seqs(chat.expand(hit.id).messages) == list(range(hit.seq, hit.last_seq + 1))


def test_a_view_of_the_past_shows_no_summaries(memory: Memory) -> None:
    memory.remember("Ada lives in Porto.")
    version = memory.version()
    summarised(memory.chat("c"))
    memory.remember("Ada keeps bees.")
    assert memory.recall("quokka", sources=("summary",))
    for view in (memory.at(version), memory.at(memory.version()), memory.at(START + timedelta(days=400))):
        assert [hit for hit in view.recall("quokka Porto") if hit.source == "summary"] == []
        assert view.recall("quokka", sources=("summary",)) == []


def test_a_summary_that_grew_is_found_as_it_is_now(memory: Memory) -> None:
    chat = memory.chat("c")
    animals = ("a quokka", "a quokka and a wombat", "a wombat alone", "a numbat alone")
    scribe = Scribe(in_turn(*(f"Cranes, {animal}." for animal in animals)))
    while len(scribe.prompts) < 4:
        tell(chat, 10, first=1 + len(chat.history()))
        chat.compact(llm=scribe, policy=buffer())
    (now,) = chat.window(policy=buffer()).summaries
    hits = memory.recall("quokka wombat numbat", sources=("summary",), limit=100)
    found = {hit.id: hit.text for hit in hits}
    assert found[now.id] == now.text
    assert set(found.values()) <= {one.text for one in chat.tree()}
    assert memory.verify().ok


def test_recall_of_an_agent_has_the_summaries_of_its_own_chats_only(memory: Memory) -> None:
    for agent in ("", "a", "b"):
        chat = memory.scoped(agent=agent).chat(f"chat-{agent}")
        tell(chat, 40)
        chat.compact(full=True, llm=lambda _: "Cranes lift a zebra.", policy=policy())
    for agent, seen in (("b", {"chat-b"}), ("", {"chat-", "chat-a", "chat-b"})):
        hits = memory.scoped(agent=agent).recall("zebra", sources=["summary"], limit=100)
        assert {hit.chat for hit in hits} == seen


def test_a_search_is_of_this_chat_and_not_of_the_shared_one_of_the_same_name(memory: Memory) -> None:
    memory.scoped(user="").chat("c").append(role="user", content="The shared zebra is orange.")
    memory.chat("c").append(role="user", content="My zebra is purple.")
    assert [hit.text for hit in memory.chat("c").search("zebra")] == ["My zebra is purple."]
    found = {hit.text for hit in memory.recall("zebra")}
    assert found == {"My zebra is purple.", "The shared zebra is orange."}
    assert memory.scoped(user="eve").chat("c").search("zebra") == []
