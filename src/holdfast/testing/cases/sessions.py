"""sessions, review: which chats there are, what is kept of them, and what a reviewer reads."""

from __future__ import annotations

from datetime import timedelta

from holdfast.testing.case import (
    Whole,
    case,
    contents,
    expect,
    minute,
    refuses,
    said,
    same,
    seqs,
    tell,
    tool_use,
)
from holdfast.testing.cases.compacting import LENGTH, compacted
from holdfast.types import Message


def _three(memory: Whole) -> None:
    """Fill three chats; the one that began first was the last to go on."""
    memory.chat("one").append([Message("user", "one", at=minute(1))])
    memory.chat("two").append([Message("user", "two", at=minute(2))])
    memory.chat("three").append([Message("user", "three", at=minute(3))])
    memory.chat("one").append([Message("assistant", "one goes on", at=minute(9))])


@case("sessions")
def chats_are_listed_the_newest_first(memory: Whole) -> None:
    """Expect them in the order of their newest messages, not of when they began."""
    same(memory.chats(), [], "There are no chats at first.")
    memory.chat("nothing was said here").stats()
    _three(memory)
    found = memory.chats()
    same(
        [one.id for one in found],
        ["one", "three", "two"],
        "`chats` lists the chat with the newest message first.",
    )
    same([one.messages for one in found], [2, 1, 1], "`chats` counts the messages of each chat.")
    same(
        (found[0].oldest, found[0].newest),
        (minute(1), minute(9)),
        "`chats` gives the times of their messages.",
    )


@case("sessions")
def a_list_of_chats_has_pages(memory: Whole) -> None:
    """Expect pages by offset and limit."""
    _three(memory)
    same([one.id for one in memory.chats(limit=2)], ["one", "three"], "`chats(limit=2)` lists the first two.")
    same(
        [one.id for one in memory.chats(offset=1, limit=1)], ["three"], "`offset` leaves out the first chats."
    )
    same(memory.chats(offset=3), [], "Beyond the last chat, there are none.")


@case("sessions")
def archived_chats_are_listed_when_asked_for(memory: Whole) -> None:
    """Expect them to be put away, not gone."""
    _three(memory)
    memory.chat("three").archive()
    same([one.id for one in memory.chats()], ["one", "two"], "`chats` leaves out those that were archived.")
    same(
        [one.id for one in memory.chats(archived=True)], ["three"], "`chats(archived=True)` lists only these."
    )
    same(
        [one.id for one in memory.chats(archived=None)],
        ["one", "three", "two"],
        "`chats(archived=None)` lists both.",
    )
    expect(memory.chats(archived=True)[0].archived, "A chat in a list says that it is archived.")
    same(
        [one.id for one in memory.chats(offset=1)],
        ["two"],
        "`offset` counts the chats that are asked for only.",
    )
    same(
        [one.id for one in memory.chats(archived=True, limit=1)],
        ["three"],
        "`limit` counts the chats that are asked for only.",
    )
    same(contents(memory.chat("three").history()), ["three"], "An archived chat can still be read.")
    memory.chat("three").archive(archived=False)
    same(
        [one.id for one in memory.chats()],
        ["one", "three", "two"],
        "`archive(archived=False)` takes a chat back.",
    )


@case("sessions")
def a_chat_can_be_named(memory: Whole) -> None:
    """Expect that it can be named again."""
    tell(memory.chat("c"), 2)
    for title in ("Cranes", "Cranes and ships"):
        memory.chat("c").rename(title)
        same(memory.chats()[0].title, title, "`rename` gives a chat its title.")


@case("sessions")
def what_is_not_there_cannot_be_named(memory: Whole) -> None:
    """Expect a chat that nothing was said in to be refused, and not to come into being by that."""
    refuses(
        lambda: memory.chat("unknown").rename("Cranes"), "`rename` refuses a chat that nothing was said in."
    )
    refuses(lambda: memory.chat("unknown").archive(), "`archive` refuses a chat that nothing was said in.")
    same(memory.chats(archived=None), [], "What is refused makes no chat.")


@case("sessions")
def a_history_is_every_word(memory: Whole) -> None:
    """Expect all of it, oldest first, and none of a chat that nothing was said in."""
    stored = [*tell(memory.chat("c"), 30), *memory.chat("c").append(tool_use(1, "a", "b"))]
    same(memory.chat("c").history(), stored, "`history` gives what `append` returned, oldest first.")
    same(memory.chat("unknown").history(), [], "A chat that nothing was said in has no history.")


@case("sessions")
def a_history_has_pages(memory: Whole) -> None:
    """Expect the newest page first, and the way back from it; or pages from the beginning on."""
    chat = memory.chat("c")
    tell(chat, 9)
    same(seqs(chat.history(3)), [7, 8, 9], "`history(3)` gives the newest three messages.")
    same(seqs(chat.history(3, before=7)), [4, 5, 6], "`before` gives those before a number.")
    same(seqs(chat.history(3, after=0)), [1, 2, 3], "`after` gives the first ones after a number.")
    same(seqs(chat.history(after=7)), [8, 9], "Without a limit, `after` gives all after a number.")


# review


@case("review")
def a_review_shows_what_was_said(memory: Whole) -> None:
    """Expect a text, and "" for a chat that nothing was said in."""
    tell(memory.chat("c"), 3)
    text = memory.chat("c").review()
    places = [text.find(f"Crane{n} lifts") for n in (1, 2, 3)]
    expect(min(places) >= 0 and places == sorted(places), "`review` shows what was said, oldest first.")
    same(memory.chat("unknown").review(), "", '`review` of a chat that nothing was said in is "".')


@case("review")
def a_review_shows_what_is_new(memory: Whole) -> None:
    """Expect what was said after a time, without the message of that moment."""
    tell(memory.chat("c"), 6)
    text = memory.chat("c").review(minute(4))
    expect(
        "Crane5 lifts" in text and "Crane6 lifts" in text,
        "`review(since)` shows what was said after that time.",
    )
    expect(
        "Crane4 lifts" not in text, "`review(since)` does not show what was said at that time, or before it."
    )
    same(memory.chat("c").review(minute(6)), "", '`review` is "" where nothing was said since.')
    same(memory.chat("c").review(minute(6) + timedelta(days=9)), "", "A time to come is no error.")


@case("review")
def the_limit_of_a_review_holds(memory: Whole) -> None:
    """Expect the newest messages to be shown."""
    tell(memory.chat("c"), 6)
    text = memory.chat("c").review(limit=2)
    expect(
        "Crane5 lifts" in text and "Crane6 lifts" in text, "`review(limit=2)` shows the newest two messages."
    )
    expect("Crane4 lifts" not in text, "`review(limit=2)` shows no more than two messages.")


@case("review", "compact")
def a_review_shows_summaries_of_what_was_before(memory: Whole) -> None:
    """Expect them, so that what is new can be understood."""
    chat, window = compacted(memory)
    chat.append([said(LENGTH + 1)])
    text = chat.review(minute(LENGTH))
    expect(f"Crane{LENGTH + 1} lifts" in text, "`review(since)` shows what was said after that time.")
    expect(
        window.summaries[-1].id in text,
        "`review(since)` shows the summaries of what was said before, by their id.",
    )
