"""search, recall: what was said and what is known is found, as much as asked for and nothing else."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from holdfast.testing.case import QUOKKA, FullProvider, case, expect, fill, filled, minute, refuses, same, say
from holdfast.testing.cases.summaries import compacted

WOMBAT = "The wombat digs in the garden."


@case("search")
def an_appended_message_is_found(memory: FullProvider) -> None:
    """`search` finds a message once it is appended; the hit has its text, chat, `seq`, role and time."""
    chat = memory.chat("c")
    say(chat, "Good morning.", "This message speaks of a quokka.")
    hits = chat.search("message")
    same([(hit.source, hit.chat, hit.seq, hit.role) for hit in hits], [("message", "c", 2, "user")])
    same(hits[0].at, minute(2), "`at`")
    expect("quokka" in hits[0].text, f"`text` is {hits[0].text!r}.")


@case("search")
def search_ignores_case(memory: FullProvider) -> None:
    """`search` finds words whatever their case."""
    say(memory.chat("c"), "The QuoKKa sleeps.")
    for query in ("quokka", "QUOKKA", "Quokka"):
        same(len(memory.chat("c").search(query)), 1, f"Hits of {query!r}")


@case("search")
def search_has_no_wildcards(memory: FullProvider) -> None:
    """`search` takes every character of a query as plain text."""
    chat = memory.chat("c")
    lines = ("alpha beta", "file_name is set", "filexname is set", "a discount of 100%", "1000 boxes")
    say(chat, *lines)
    for query, wanted in {"file_name": lines[1], "100%": lines[3]}.items():
        same([lines[hit.seq - 1] for hit in chat.search(query)], [wanted], f"Hits of {query!r}")
    for query in ("al%ta", "alph_", "alph.*", "zebra"):
        same(chat.search(query), [], f"Hits of {query!r}")


@case("search")
def search_has_no_operators(memory: FullProvider) -> None:
    """`search` finds a text by its own words, quotes and brackets included, and no query is an error."""
    chat = memory.chat("c")
    lines = ('she said "quokka" (twice)', "it's *here*", "C:\\path: 5 [m]", "this AND that OR NOT")
    say(chat, *lines)
    for seq, line in enumerate(lines, 1):
        expect(seq in [hit.seq for hit in chat.search(line)], f"{line!r} is not found.")
    for query in ('"', "quokka AND", "NEAR(", "[a-z", "*", "-here", "path:"):
        chat.search(query)


@case("search")
def search_returns_as_many_hits_as_asked_for(memory: FullProvider) -> None:
    """`search` returns as many hits as there are, up to the limit, and no hit twice."""
    chat = filled(memory, 12)
    for limit in (0, 1, 5, 12):
        same(len(chat.search("lifts", "messages", limit)), limit, "Hits in messages")
        same(len(chat.search("lifts", "both", limit)), limit, "Hits in both")
    same(len(chat.search("lifts", limit=50)), 12, "All hits")


@case("search", "compact")
def the_limit_is_for_messages_and_summaries_together(memory: FullProvider) -> None:
    """The limit of a search counts messages and summaries together."""
    chat, _ = compacted(memory)
    for limit in (1, 3, 20):
        same(len(chat.search("lifts", "both", limit)), limit, "Hits")


@case("search", "compact")
def the_scope_selects_messages_or_summaries(memory: FullProvider) -> None:
    """`search` finds messages, summaries, or both, and the limit counts the hits of the scope only."""
    chat, window = compacted(memory)
    words = [word for word in window.summaries[0].text.split() if word.isalpha() and len(word) > 4]
    expect(words, "A summary has no words.")

    def sources(query: str, scope: Any) -> set[str]:
        return {hit.source for hit in chat.search(query, scope, 500)}

    same(sources(words[0], "summaries"), {"summary"}, "Scope `summaries`")
    expect(sources(words[0], "messages") <= {"message"}, "The scope `messages` finds a summary.")
    same(len(chat.search(words[0], "summaries", 1)), 1, "Hits in summaries, with a limit of 1")
    expect("summary" in sources(words[0], "both"), "The scope `both` finds no summary.")
    expect("message" in sources("crane1", "both"), "The scope `both` finds no message.")


@case("search")
def an_unknown_chat_has_no_hits(memory: FullProvider) -> None:
    """`search` in a chat without messages finds nothing, which is no error."""
    fill(memory.chat("c"), 3)
    same(memory.chat("unknown").search("crane1"), [])


@case("search")
def search_is_of_one_chat(memory: FullProvider) -> None:
    """`search` finds nothing of another chat."""
    say(memory.chat("one"), QUOKKA)
    say(memory.chat("other"), WOMBAT)
    same(memory.chat("one").search("wombat"), [])


@case("search")
def an_unknown_scope_is_refused(memory: FullProvider) -> None:
    """`search` refuses an unknown scope."""
    fill(memory.chat("c"), 1)
    unknown: Any = "nowhere"
    refuses(memory.chat("c").search, "crane1", unknown)


# recall


@case("recall")
def recall_covers_all_chats(memory: FullProvider) -> None:
    """`recall` finds what answers a question in any chat, best first, with its text, chat and `seq`."""
    say(memory.chat("one"), QUOKKA)
    say(memory.chat("other"), "Lunch is at noon.")
    hits = memory.recall("Where does the quokka sleep?")
    same([(hit.chat, hit.seq, hit.text) for hit in hits[:1]], [("one", 1, QUOKKA)])


@case("recall")
def recall_has_no_operators(memory: FullProvider) -> None:
    """`recall` takes every character of a query as text."""
    fill(memory.chat("one"), 3)
    say(memory.chat("other"), QUOKKA)
    odd = ("quokka AND", "quokka's NEAR(", "-quokka: ^[*", "quokka %_\\")
    for query in ('Where does the "quokka" (that one) sleep?', *odd):
        same([hit.chat for hit in memory.recall(query)][:1], ["other"], f"The best hit of {query!r}")


@case("recall")
def scores_fall(memory: FullProvider) -> None:
    """`recall` finds the messages that share words with the query; scores fall, and are from 1 to 0."""
    chat = memory.chat("c")
    say(
        chat,
        QUOKKA,
        "The harbour is closed.",
        "A quokka of the harbour was seen asleep.",
        "Lunch is at noon.",
    )
    scores = [hit.score for hit in memory.recall("quokka harbour")]
    expect(len(scores) >= 2, f"There are {len(scores)} hits.")
    expect(all(0 <= score <= 1 for score in scores), f"The scores are {scores}.")
    expect(all(high >= low for high, low in pairwise(scores)), f"The scores are {scores}.")


@case("recall")
def recall_returns_as_many_hits_as_asked_for(memory: FullProvider) -> None:
    """`recall` returns as many hits as there are, up to the limit."""
    fill(memory.chat("c"), 12)
    for limit in (1, 5, 10):
        same(len(memory.recall("Which crane lifts a box?", limit=limit)), limit, "Hits")


@case("recall")
def an_empty_memory_recalls_nothing(memory: FullProvider) -> None:
    """`recall` of an empty memory finds nothing, which is no error."""
    same(memory.recall("quokka"), [])


@case("recall", "records")
def recall_finds_records(memory: FullProvider) -> None:
    """`recall` finds a record, and not after it was retracted."""
    record = memory.remember(QUOKKA, by="user")
    same([(hit.source, hit.id) for hit in memory.recall("quokka")], [("record", record.id)])
    memory.retract(record.id, by="user")
    same(memory.recall("quokka"), [], "Hits after `retract`")


@case("recall", "records")
def recall_finds_the_newest_text_of_a_record(memory: FullProvider) -> None:
    """`recall` finds the new text of a record that was replaced, and not the old one."""
    record = memory.remember(QUOKKA, by="user")
    memory.replace(record.id, WOMBAT, by="user")
    expect(not any("quokka" in hit.text for hit in memory.recall("quokka")), "The old text is found.")
    same([hit.text for hit in memory.recall("wombat")], [WOMBAT])
