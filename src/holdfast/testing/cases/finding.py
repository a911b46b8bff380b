"""search, recall: what was said and what is known is found, all of it that was asked for and nothing else."""

from __future__ import annotations

from itertools import pairwise

from holdfast.testing.case import Whole, case, expect, minute, refuses, same, tell
from holdfast.testing.cases.compacting import compacted
from holdfast.types import Message


@case("search")
def what_was_appended_is_found(memory: Whole) -> None:
    """Expect it to be found at once, with its place."""
    chat = memory.chat("c")
    chat.append(
        [Message("user", "Good morning."), Message("user", "This message speaks of a quokka.", at=minute(2))]
    )
    hits = chat.search("message")
    same(len(hits), 1, "`search` finds a word of a message that was appended.")
    hit = hits[0]
    same(hit.source, "message", "A hit says that it is a message.")
    expect("quokka" in hit.text, "A hit shows the text around what was found.")
    same((hit.chat, hit.seq, hit.role, hit.at), ("c", 2, "user", minute(2)), "A hit says where it stands.")


@case("search")
def case_does_not_matter(memory: Whole) -> None:
    """Expect that whoever asks in capitals finds as much."""
    memory.chat("c").append([Message("user", "The QuoKKa sleeps.")])
    for query in ("quokka", "QUOKKA", "Quokka"):
        same(len(memory.chat("c").search(query)), 1, "`search` finds words whatever their case.")


@case("search")
def nothing_is_a_wildcard(memory: Whole) -> None:
    """Expect every character of a query to be plain text."""
    chat = memory.chat("c")
    lines = ("alpha beta", "file_name is set", "filexname is set", "a discount of 100%", "1000 boxes")
    chat.append([Message("user", text) for text in lines])
    for query, wanted in (
        ("al%ta", []),
        ("alph_", []),
        ("file_name", ["file_name is set"]),
        ("100%", ["a discount of 100%"]),
        ("alph.*", []),
        ("zebra", []),
    ):
        same(
            [lines[hit.seq - 1] for hit in chat.search(query)],
            wanted,
            f"`search` takes {query!r} as plain text: nothing in it is a wildcard.",
        )


@case("search")
def a_query_may_hold_any_character(memory: Whole) -> None:
    """Expect quotes, brackets and what is an operator elsewhere to be text like any other, and half of it no error."""
    chat = memory.chat("c")
    lines = ('she said "quokka" (twice)', "it's *here*", "C:\\path: 5 [m]", "this AND that OR NOT")
    chat.append([Message("user", text) for text in lines])
    for seq, line in enumerate(lines, 1):
        expect(seq in [hit.seq for hit in chat.search(line)], f"`search` finds {line!r} by its own words.")
    for query in ('"', "quokka AND", "NEAR(", "[a-z", "*", "-here", "path:"):
        chat.search(query)


@case("search")
def the_limit_of_a_search_holds(memory: Whole) -> None:
    """Expect so many hits and no more, and no fewer without need."""
    chat = memory.chat("c")
    tell(chat, 12)
    for limit in (0, 1, 5, 12):
        same(
            len(chat.search("lifts", "messages", limit)),
            limit,
            "`search` gives as many hits as there are, up to the limit.",
        )
        same(
            len(chat.search("lifts", "both", limit)),
            limit,
            "The limit is for messages and summaries together.",
        )
    same(len(chat.search("lifts", limit=50)), 12, "`search` gives no hit twice.")


@case("search", "compact")
def the_limit_is_for_all_scopes_together(memory: Whole) -> None:
    """Expect summaries not to come on top of it."""
    chat, _ = compacted(memory)
    for limit in (1, 3, 20):
        same(
            len(chat.search("lifts", "both", limit)),
            limit,
            "The limit is for messages and summaries together.",
        )


@case("search", "compact")
def the_scope_chooses_what_is_found(memory: Whole) -> None:
    """Expect messages, summaries, or both."""
    chat, window = compacted(memory)
    words = [word for word in window.summaries[0].text.split() if word.isalpha() and len(word) > 4]
    expect(words, "A summary has words.")
    word = words[0]
    expect(
        {hit.source for hit in chat.search(word, "summaries", 500)} == {"summary"},
        'With the scope "summaries", `search` finds words of summaries, and nothing else.',
    )
    expect(
        {hit.source for hit in chat.search(word, "messages", 500)} <= {"message"},
        'With the scope "messages", `search` finds messages only.',
    )
    same(
        len(chat.search(word, "summaries", 1)), 1, "The limit of a search counts the hits of its scope only."
    )
    expect(
        "summary" in {hit.source for hit in chat.search(word, "both", 500)},
        'The scope "both" has summaries, too.',
    )
    expect(
        "message" in {hit.source for hit in chat.search("crane1", "both", 500)},
        'The scope "both" has messages, too.',
    )


@case("search")
def an_unknown_chat_has_no_hits(memory: Whole) -> None:
    """Expect that nothing is found where nothing was said, and that this is no error."""
    tell(memory.chat("c"), 3)
    same(
        memory.chat("unknown").search("crane1"),
        [],
        "`search` in a chat that nothing was said in finds nothing.",
    )


@case("search")
def only_this_chat_is_searched(memory: Whole) -> None:
    """Expect that what was said elsewhere is left to `recall`."""
    memory.chat("one").append([Message("user", "the quokka sleeps")])
    memory.chat("other").append([Message("user", "the wombat digs")])
    same(memory.chat("one").search("wombat"), [], "`search` finds nothing of another chat.")


@case("search")
def an_unknown_scope_is_refused(memory: Whole) -> None:
    """Expect an error, not an empty answer."""
    tell(memory.chat("c"), 1)
    search = memory.chat("c").search
    refuses(lambda: search("crane1", "nowhere"), "`search` refuses a scope that there is not.")  # type: ignore[arg-type]  # that is the point


# recall


@case("recall")
def all_chats_are_recalled_from(memory: Whole) -> None:
    """Expect the best hit first, at once, with the chat that it stands in."""
    memory.chat("one").append([Message("user", "The quokka sleeps in the harbour.", at=minute(1))])
    memory.chat("other").append([Message("user", "Lunch is at noon.", at=minute(2))])
    hits = memory.recall("Where does the quokka sleep?")
    expect(
        hits and (hits[0].chat, hits[0].seq) == ("one", 1),
        "`recall` finds what answers a question, in any chat.",
    )
    same(hits[0].text, "The quokka sleeps in the harbour.", "A hit of `recall` shows the text.")


@case("recall")
def a_question_may_hold_any_character(memory: Whole) -> None:
    """Expect quotes, brackets and what is an operator elsewhere to be text like any other."""
    tell(memory.chat("one"), 3)
    memory.chat("other").append([Message("user", "The quokka sleeps in the harbour.")])
    for query in (
        'Where does the "quokka" (that one) sleep?',
        "quokka AND",
        "quokka's NEAR(",
        "-quokka: ^[*",
        "quokka %_\\",
    ):
        hits = memory.recall(query)
        expect(hits and hits[0].chat == "other", f"`recall` takes every character of {query!r} as text.")


@case("recall")
def scores_tell_the_order(memory: Whole) -> None:
    """Expect them to be from 1 to 0, falling."""
    chat = memory.chat("c")
    chat.append(
        [Message("user", "The quokka sleeps in the harbour."), Message("user", "The harbour is closed.")]
    )
    chat.append(
        [Message("user", "A quokka of the harbour was seen asleep."), Message("user", "Lunch is at noon.")]
    )
    hits = memory.recall("quokka harbour")
    expect(len(hits) >= 2, "`recall` finds each message that has words of the question.")
    expect(all(0 <= hit.score <= 1 for hit in hits), "The score of a hit is from 0 to 1.")
    expect(all(one.score >= two.score for one, two in pairwise(hits)), "`recall` gives the best hit first.")


@case("recall")
def the_limit_of_a_recall_holds(memory: Whole) -> None:
    """Expect at most so many hits, and no fewer without need."""
    tell(memory.chat("c"), 12)
    for limit in (1, 5, 10):
        same(
            len(memory.recall("Which crane lifts a box?", limit=limit)), limit, "`recall` keeps to its limit."
        )


@case("recall")
def an_empty_memory_recalls_nothing(memory: Whole) -> None:
    """Expect that this is no error."""
    same(memory.recall("quokka"), [], "`recall` of an empty memory finds nothing.")


@case("recall", "records")
def what_is_known_is_recalled(memory: Whole) -> None:
    """Expect it to be found, and no longer when it was taken back."""
    record = memory.remember("The quokka sleeps in the harbour.", by="user")
    hits = memory.recall("quokka")
    same(
        [(hit.source, hit.id) for hit in hits], [("record", record.id)], "`recall` finds what was remembered."
    )
    memory.retract(record.id, by="user")
    same(memory.recall("quokka"), [], "`recall` does not find what was taken back.")


@case("recall", "records")
def what_was_replaced_is_recalled_as_it_is(memory: Whole) -> None:
    """Expect the new text to be found, and the old one not to be."""
    record = memory.remember("The quokka sleeps in the harbour.", by="user")
    memory.replace(record.id, "The wombat digs in the garden.", by="user")
    expect(
        not any("quokka" in hit.text for hit in memory.recall("quokka")),
        "`recall` does not find a text that was replaced.",
    )
    same(
        [hit.text for hit in memory.recall("wombat")],
        ["The wombat digs in the garden."],
        "`recall` finds the new text.",
    )
