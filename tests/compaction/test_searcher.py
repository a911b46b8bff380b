"""Search within a session, and recall of summaries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import compaction_chats
import pytest
from compaction_chats import START, Scribe, in_turn, minute, policy, tell, words

from holdfast import Chat, Hit, InvalidInput, Memory, Message
from holdfast.prompt.window import SummaryBuffer
from tables import each

QUERIES = ("crane7", "Which box is on pier3?", "quokka", "lifts", "harbour quokka crane12", "1 March 2025")


chat = compaction_chats.chat


def summarised(
    chat: Chat, answer: str = "The quokka of the harbour master escaped from cranes, boxes and piers twice."
) -> None:
    tell(chat, 40)
    chat.compact(full=True, llm=Scribe(in_turn(answer, "More boxes were moved.")), policy=policy())


def texts(hits: list[Hit]) -> list[str]:
    return [hit.text for hit in hits]


def matching(hits: list[Hit]) -> list[str]:
    """Return the texts of the hits that have a word of the query themselves."""
    return [hit.text for hit in hits if hit.why.words]


def test_the_scope_chooses_what_is_found(memory: Memory) -> None:
    chat = memory.chat("c")
    summarised(chat)
    chat.append(Message("user", "Where is the quokka now?", at=minute(90)))
    assert {hit.source for hit in chat.search("quokka")} == {"message", "summary"}
    assert {hit.source for hit in chat.search("quokka", "both")} == {"message", "summary"}
    assert {hit.source for hit in chat.search("quokka", "messages")} == {"message"}
    assert {hit.source for hit in chat.search("quokka", "summaries")} == {"summary"}
    assert all(hit.text and hit.chat == "c" for hit in chat.search("quokka"))


@pytest.mark.slow
@each("limit", [0, 1, 2, 5, 20])
def test_the_limit_is_for_all_scopes_together(limit: int) -> None:
    chat = Memory(":memory:", user="ada").chat("c")
    tell(chat, 100)
    chat.compact(full=True, policy=policy(2_000))
    scopes: list[Literal["messages", "summaries", "both"]] = ["messages", "summaries", "both"]
    for scope in scopes:
        found = chat.search("lifts", scope, limit)
        assert len(found) <= limit
        if scope != "summaries":
            assert len(found) == limit
    whole = chat.search("lifts", limit=1_000)
    assert [hit.id for hit in chat.search("lifts", limit=limit)] == [hit.id for hit in whole][:limit]
    assert [hit.score for hit in whole] == sorted((hit.score for hit in whole), reverse=True)


def test_twenty_hits_are_the_default(chat: Chat) -> None:
    tell(chat, 60)
    assert len(chat.search("lifts")) == 20


@each(
    ("arguments", "what"),
    [
        *(
            (["quokka", scope], "Use one of messages, summaries, both")
            for scope in ("", "message", "Both", "all", None)
        ),
        *((["x", "both", limit], None) for limit in (-1, 1.5, "5", None)),
        ([5], "must be text"),
    ],
)
def test_what_is_no_search_is_refused(quick: Memory, arguments: list[Any], what: str | None) -> None:
    with pytest.raises(InvalidInput, match=what):
        quick.chat("c").search(*arguments)


def test_a_query_without_words_finds_nothing_and_case_does_not_matter(memory: Memory) -> None:
    chat = memory.chat("c")
    summarised(chat)
    for query in ("%", "_", "%%", "", "  ", "!?", "*", '"', "😀", "'"):
        assert chat.search(query) == []
    chat.append(Message("user", "QuoKKa!"))
    for query in ("QUOKKA", "quokka", "Quokka", "qUoKkA"):
        assert {hit.source for hit in chat.search(query)} == {"message", "summary"}


def test_all_characters_of_a_query_are_plain_text(memory: Memory) -> None:
    chat = memory.chat("c")
    chat.append(
        [Message("user", "alpha beta"), Message("user", "file_name is set"), Message("user", "filexname")]
    )
    chat.append([Message("user", "a discount of 100%"), Message("user", "1000 boxes")])
    assert matching(chat.search("al%ta")) == []
    assert matching(chat.search("alph_")) == []
    assert matching(chat.search("file_name")) == ["file_name is set"]
    assert matching(chat.search("100%")) == ["a discount of 100%"]
    for query in (
        "alpha OR filexname",
        'alpha"',
        "alpha*",
        "alpha AND NOT beta",
        "(alpha",
        "alpha'); DROP TABLE x",
    ):
        assert matching(chat.search(query))[0] in ("alpha beta", "filexname")


def test_an_unknown_chat_has_no_hits(memory: Memory) -> None:
    summarised(memory.chat("c"))
    assert memory.chat("unknown").search("quokka") == []
    assert memory.scoped(user="eve").chat("c").search("quokka") == []


def test_only_this_chat_is_searched(memory: Memory) -> None:
    one, other = memory.chat("one"), memory.chat("other")
    summarised(one)
    tell(other, 40)
    other.compact(full=True, llm=Scribe("A wombat moved boxes."), policy=policy())
    assert one.search("wombat") == []
    assert {hit.chat for hit in one.search("lifts", limit=100)} == {"one"}
    assert {hit.chat for hit in memory.recall("lifts quokka wombat", limit=100)} == {"one", "other"}


IDENTIFIERS = [
    "ERR_4312",
    "src/a/b.py",
    "C0FFEE-42",
    "v2.31.4",
    "user@example.org",
    "10.0.3.17",
    "getUserById",
]


@each("identifier", IDENTIFIERS)
def test_exact_identifiers_are_found_in_messages_and_summaries(identifier: str) -> None:
    chat = Memory(":memory:", user="ada").chat("c")
    tell(chat, 4)
    chat.append(Message("user", f"It stopped with {identifier} again.", at=minute(5)))
    others = [f"It stopped with {other} again." for other in IDENTIFIERS if other != identifier]
    chat.append([Message("user", other, at=minute(6)) for other in others])
    tell(chat, 40, first=20)
    chat.compact(
        full=True,
        llm=Scribe(in_turn("Nothing.", f"Cranes lift {identifier}.", "More boxes.")),
        policy=policy(),
    )
    assert chat.search(identifier, "messages")[0].seq == 5
    assert chat.search(identifier, "summaries")[0].text == f"Cranes lift {identifier}."


def test_every_hit_has_what_was_searched_for(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 20)
    chat.append(Message("user", "It stopped with ERR_4312 again.", at=minute(21)))
    tell(chat, 20, first=22)
    chat.compact(
        full=True, llm=Scribe(in_turn("Cranes lift boxes: ERR_4312.", "More boxes.")), policy=policy()
    )
    for limit in (2, 20):
        hits = chat.search("ERR_4312", limit=limit)
        assert {hit.source for hit in hits} == {"message", "summary"}
        assert all("ERR_4312" in hit.text for hit in hits), texts(hits)


# Snippets


@each("place", [0, 1_000, 4_000, 9_900])
def test_a_snippet_is_short_and_around_the_match(place: int) -> None:
    memory = Memory(":memory:", user="ada")
    chat = memory.chat("c")
    filler = "Cranes lift boxes all day long. " * 400
    text = f"{filler[:place]} The quokka sleeps. {filler[place:]}".strip()
    chat.append(Message("user", text))
    (hit,) = chat.search("quokka")
    assert "quokka" in hit.text
    assert 400 <= len(hit.text) <= 502
    assert hit.text.strip("…") in text
    assert hit.text.startswith("…") is (place > 500)
    (whole,) = memory.recall("quokka")
    assert whole.text == text


@each(
    ("before", "word", "query"),
    [
        ("İstanbul ", "ERR_4312", "ERR_4312"),
        ("İ ", "quokka", "QUOKKA"),
        ("boxes ", "café", "cafe"),
        ("boxes ", "running", "run"),
        ("boxes ", "Straße", "strasse"),
        ("箱 ", "東京タワー", "東京タワー"),
        ("boxes ", "src/a/b.py", "src/a/b.py"),
        ("boxes ", "quokkas", "quokka"),
    ],
)
def test_a_snippet_is_around_a_match_in_any_form(before: str, word: str, query: str) -> None:
    chat = Memory(":memory:", user="ada").chat("c")
    chat.append(Message("user", f"{before * 1_500}and {word} here. {before * 1_500}"))
    (hit,) = chat.search(query)
    assert word in hit.text
    assert len(hit.text) <= 502


def test_a_summary_is_cut_to_a_snippet_as_well(chat: Chat) -> None:
    tell(chat, 200)
    answer = f"{'Cranes lift boxes. ' * 60}The quokka escaped. {'Cranes lift boxes. ' * 20}".strip()
    chat.compact(full=True, llm=Scribe(answer), policy=policy(8_000, leaf_source=4_000))
    hit = chat.search("quokka", "summaries")[0]
    assert "quokka" in hit.text
    assert len(hit.text) <= 502
    assert chat.describe(hit.id).summary.text == answer


# Summaries in recall


def test_a_summary_is_found_by_its_own_words_and_leads_to_the_messages(memory: Memory) -> None:
    chat = memory.chat("c")
    summarised(chat)
    leaf = chat.tree()[0]
    for hits in (
        memory.recall("quokka"),
        memory.recall("quokka", sources=("summary",)),
        chat.search("quokka"),
    ):
        hit = hits[0]
        assert (hit.source, hit.id, hit.chat) == ("summary", leaf.id, "c")
        assert (hit.seq, hit.last_seq) == (leaf.first, leaf.last)
        assert hit.text == leaf.text
        assert hit.at == leaf.until
        assert "quokka" in hit.why.words
        opened = chat.expand(hit.id)
        assert [message.seq for message in opened.messages] == list(range(hit.seq, hit.last_seq + 1))


def test_recall_covers_all_sources_by_default(memory: Memory) -> None:
    chat = memory.chat("c")
    summarised(chat)
    chat.append(Message("user", "The quokka is back.", at=minute(80)))
    memory.remember("The quokka is called Bob.")
    assert {hit.source for hit in memory.recall("quokka")} == {"message", "summary", "record"}
    assert {hit.source for hit in memory.recall("quokka", sources=("message", "record"))} == {
        "message",
        "record",
    }
    assert {hit.source for hit in memory.recall("quokka", roles=("user",))} == {"message"}
    assert {hit.source for hit in memory.recall("quokka", kinds=("fact",))} == {"record"}
    assert {hit.source for hit in memory.recall("quokka", chat="c")} == {"message", "summary"}


def test_summaries_of_a_time_are_found(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 60)
    chat.compact(full=True, llm=Scribe("Quokkas moved boxes."), policy=policy(2_000))
    found = memory.recall("quokka", sources=("summary",), limit=100)
    ends = sorted(hit.at for hit in found)
    assert len(ends) > 3
    middle = ends[len(ends) // 2]
    by_id = {one.id: one for one in chat.tree()}
    earlier = memory.recall("quokka", sources=("summary",), until=middle, limit=100)
    later = memory.recall("quokka", sources=("summary",), since=middle, limit=100)
    assert {hit.id for hit in earlier} == {one.id for one in by_id.values() if one.until < middle}
    assert {hit.id for hit in later} == {one.id for one in by_id.values() if one.since >= middle}
    assert earlier
    assert later


@pytest.mark.slow
def test_condensed_summaries_are_found(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 120)
    scribe = Scribe(
        lambda prompt: "A wombat moved boxes." if "<summaries>" in prompt.splitlines() else "Boxes."
    )
    chat.compact(full=True, llm=scribe, policy=policy(600, fan_in=(3, 2)))
    hits = memory.recall("wombat", sources=("summary",), limit=100)
    assert {hit.id for hit in hits} == {one.id for one in chat.tree() if one.depth}
    for hit in hits:
        assert chat.expand(hit.id).children


def test_a_view_of_the_past_shows_no_summaries(memory: Memory) -> None:
    chat = memory.chat("c")
    memory.remember("Ada lives in Porto.")
    version = memory.version()
    summarised(chat)
    memory.remember("Ada keeps bees.")
    assert memory.recall("quokka", sources=("summary",))
    for view in (memory.at(version), memory.at(memory.version()), memory.at(START + timedelta(days=400))):
        assert [hit for hit in view.recall("quokka Porto") if hit.source == "summary"] == []
        assert view.recall("quokka", sources=("summary",)) == []


def test_a_summary_that_grew_is_found_as_it_is_now(memory: Memory) -> None:
    chat = memory.chat("c")
    scribe = Scribe(
        in_turn(
            "Cranes, a quokka.",
            "Cranes, a quokka and a wombat.",
            "Cranes, a wombat alone.",
            "Cranes, a numbat alone.",
        )
    )
    first = 1
    while len(scribe.prompts) < 4:
        tell(chat, 10, first=first)
        first += 10
        chat.compact(llm=scribe, policy=SummaryBuffer(1_000))
    (now,) = chat.window(policy=SummaryBuffer(1_000)).summaries
    found = {
        hit.id: hit.text for hit in memory.recall("quokka wombat numbat", sources=("summary",), limit=100)
    }
    assert found[now.id] == now.text
    assert set(found.values()) <= {one.text for one in chat.tree()}
    assert memory.verify().ok


def test_a_rebuild_changes_no_hit_to_the_last_bit(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 120)
    scribe = Scribe(lambda prompt: f"{prompt[-200:-100]} The quokka number {len(prompt)} escaped.")
    chat.compact(full=True, llm=scribe, policy=policy(600, fan_in=(3, 2)))
    memory.remember("The quokka is called Bob.")

    def ask() -> list[list[Hit]]:
        return [
            memory.recall(query, sources=sources, limit=50)
            for query in QUERIES
            for sources in (None, ("summary",), ("message",))
        ]

    before, why = ask(), repr(ask())
    assert sum(hit.source == "summary" for hits in before for hit in hits) > 20
    memory.verify(repair=True)
    assert ask() == before
    assert repr(ask()) == why
    assert memory.verify().ok


def test_another_process_finds_the_same(reopen: Callable[[], Memory]) -> None:
    one = reopen()
    summarised(one.chat("c"))
    hits = one.recall("quokka lifts", limit=50)
    other = reopen()
    assert other.recall("quokka lifts", limit=50) == hits
    tell(one.chat("c"), 40, first=41)
    one.chat("c").compact(full=True, llm=Scribe("A wombat moved boxes."), policy=policy())
    assert other.recall("wombat", sources=("summary",)) == one.recall("wombat", sources=("summary",)) != []


@pytest.mark.slow
def test_all_databases_find_the_same_summaries_with_the_same_scores(
    tmp_path: Path, postgres_url: str
) -> None:
    results = []
    for location in (":memory:", str(tmp_path / "memory.db"), postgres_url):
        with Memory(location, user="ada", clock=lambda: START) as memory:
            chat = memory.chat("c")
            tell(chat, 120)
            chat.compact(
                full=True,
                llm=Scribe(lambda p: f"Cranes: quokka {len(p)} escaped."),
                policy=policy(600, fan_in=(3, 2)),
            )
            results.append(
                [
                    (hit.source, hit.text, hit.score, hit.seq, hit.last_seq)
                    for query in QUERIES
                    for hit in memory.recall(query, limit=50)
                ]
            )
    assert results[0] == results[1] == results[2]
    assert any(source == "summary" for source, *_ in results[0])


def test_what_recall_puts_into_a_prompt_is_not_in_its_summaries_twice(chat: Chat) -> None:
    summarised(chat)
    prompt = chat.prompt(2_000, "Where did crane3 lift box3?")
    assert prompt.window.summaries
    assert {hit.source for hit in prompt.hits} <= {"message", "record"}
    assert any(hit.text == words(3, 50) for hit in prompt.hits)


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
    assert {hit.text for hit in memory.recall("zebra")} == {
        "My zebra is purple.",
        "The shared zebra is orange.",
    }
