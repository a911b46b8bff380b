"""sessions, timeline, review: which chats there are, what is stored of them, and what a reviewer reads."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from holdfast.testing.case import (
    FullProvider,
    case,
    contents,
    expect,
    fill,
    filled,
    minute,
    refuses,
    same,
    sample,
    seqs,
    tool_use,
)
from holdfast.testing.cases.summaries import LENGTH, compacted
from holdfast.types import Message


def _fill_three(memory: FullProvider) -> None:
    """Fill three chats; the first has the newest message."""
    for n, id_ in ((1, "one"), (2, "two"), (3, "three"), (9, "one")):
        memory.chat(id_).append([Message("user", f"{id_} at {n}", at=minute(n))])


def _ids(memory: FullProvider, **options: Any) -> list[str]:
    return [chat.id for chat in memory.chats(**options)]


@case("sessions")
def chats_are_listed_newest_first(memory: FullProvider) -> None:
    """`chats` lists chats by their newest messages, with the number of messages and their times."""
    same(memory.chats(), [], "Chats at first")
    memory.chat("empty").stats()
    _fill_three(memory)
    chats = memory.chats()
    same([(chat.id, chat.messages) for chat in chats], [("one", 2), ("three", 1), ("two", 1)])
    same((chats[0].oldest, chats[0].newest), (minute(1), minute(9)), "`oldest`, `newest`")


@case("sessions")
def chats_have_pages(memory: FullProvider) -> None:
    """`limit` and `offset` select a page of the chats."""
    _fill_three(memory)
    same(_ids(memory, limit=2), ["one", "three"], "`limit=2`")
    same(_ids(memory, offset=1, limit=1), ["three"], "`offset=1, limit=1`")
    same(_ids(memory, offset=3), [], "`offset=3`")


@case("sessions")
def archived_chats_are_listed_separately(memory: FullProvider) -> None:
    """`chats` has archived chats only where asked for them, on pages too; they can be read and restored."""
    _fill_three(memory)
    memory.chat("three").archive()
    same(_ids(memory), ["one", "two"], "`chats()`")
    same(_ids(memory, archived=True), ["three"], "`archived=True`")
    same(_ids(memory, archived=None), ["one", "three", "two"], "`archived=None`")
    expect(memory.chats(archived=True)[0].archived, "`archived` of the chat is False.")
    same(_ids(memory, offset=1), ["two"], "`offset=1`")
    same(_ids(memory, archived=True, limit=1), ["three"], "`archived=True, limit=1`")
    same(contents(memory.chat("three").history()), ["three at 3"], "`history`")
    memory.chat("three").archive(archived=False)
    same(_ids(memory), ["one", "three", "two"], "`chats()` after `archive(archived=False)`")


@case("sessions")
def a_chat_can_be_renamed(memory: FullProvider) -> None:
    """`rename` sets the title of a chat, again and again."""
    fill(memory.chat("c"), 2)
    for title in ("Cranes", "Cranes and ships"):
        memory.chat("c").rename(title)
        same(memory.chats()[0].title, title)


@case("sessions")
def an_empty_chat_cannot_be_renamed(memory: FullProvider) -> None:
    """`rename` and `archive` refuse a chat without messages, and make none."""
    refuses(memory.chat("unknown").rename, "Cranes")
    refuses(memory.chat("unknown").archive)
    same(memory.chats(archived=None), [])


@case("sessions")
def a_history_has_every_message(memory: FullProvider) -> None:
    """`history` returns what `append` returned, oldest first, and nothing of a chat without messages."""
    stored = [*fill(memory.chat("c"), 30), *memory.chat("c").append(tool_use(1, "a", "b"))]
    same(memory.chat("c").history(), stored)
    same(memory.chat("unknown").history(), [], "`history` of a chat without messages")


@case("sessions")
def a_history_has_pages(memory: FullProvider) -> None:
    """A limit of `history` takes the newest messages, or the first ones where `after` is given."""
    chat = filled(memory, 9)
    same(seqs(chat.history(3)), [7, 8, 9], "`history(3)`")
    same(seqs(chat.history(3, before=7)), [4, 5, 6], "`history(3, before=7)`")
    same(seqs(chat.history(3, after=0)), [1, 2, 3], "`history(3, after=0)`")
    same(seqs(chat.history(after=7)), [8, 9], "`history(after=7)`")


# timeline


@case("timeline")
def a_timeline_has_the_chats_of_each_day(memory: FullProvider) -> None:
    """`timeline` names the chats that went on, by day, with the messages of that day, within a period."""
    day = timedelta(days=1)
    for chat, at in (("one", minute(1)), ("two", minute(2)), ("one", minute(3) + 2 * day)):
        memory.chat(chat).append([Message("user", f"{chat} at {at}", at=at)])
    found = [(chat.chat, chat.first, chat.messages) for day in memory.timeline() for chat in day.chats]
    same(found, [("one", 1, 1), ("two", 1, 1), ("one", 2, 1)], "`timeline()`")
    same(len(memory.timeline()), 2, "The number of days")
    later = memory.timeline(minute(2), minute(2) + day)
    same([chat.chat for day in later for chat in day.chats], ["two"], "Since a time, until before another")
    same(list(memory.timeline(minute(4), minute(5))), [], "Where nothing was said")


@case("timeline")
def a_timeline_has_pages(memory: FullProvider) -> None:
    """The cursor of a page of `timeline` leads to the next one, and the last page has none."""
    _fill_three(memory)
    pages: list[list[str]] = []
    cursor: str | None = None
    while not pages or cursor:
        page = memory.timeline(limit=1, cursor=cursor)
        pages.append([chat.chat for day in page for chat in day.chats])
        cursor = page.cursor if len(pages) < 9 else None
    same([page for page in pages if page], [["one"], ["two"], ["three"]])


# review


def _shown_messages(text: str) -> list[int]:
    """Return which messages of the sample conversation a text shows, in its order."""
    places = {n: text.find(f"Crane{n} lifts") for n in range(1, 7)}
    return sorted((n for n, place in places.items() if place >= 0), key=lambda n: places[n])


@case("review")
def a_review_shows_the_messages(memory: FullProvider) -> None:
    """`review` shows what was said, oldest first, and nothing of a chat without messages."""
    fill(memory.chat("c"), 3)
    same(_shown_messages(memory.chat("c").review()), [1, 2, 3])
    same(memory.chat("unknown").review(), "", "`review` of a chat without messages")


@case("review")
def a_review_shows_what_is_new(memory: FullProvider) -> None:
    """`review(since)` shows the messages after a time, not those at that time; "" where there are none."""
    chat = filled(memory, 6)
    same(_shown_messages(chat.review(minute(4))), [5, 6])
    same(chat.review(minute(6)), "", "`review` since the newest message")
    same(chat.review(minute(6) + timedelta(days=9)), "", "`review` since a later time")


@case("review")
def a_review_has_a_limit(memory: FullProvider) -> None:
    """`review(limit=2)` shows the newest two messages."""
    fill(memory.chat("c"), 6)
    same(_shown_messages(memory.chat("c").review(limit=2)), [5, 6])


@case("review", "compact")
def a_review_shows_summaries_of_what_was_before(memory: FullProvider) -> None:
    """`review(since)` shows the messages after a time, and the summaries of those before by their ids."""
    chat, window = compacted(memory)
    chat.append([sample(LENGTH + 1)])
    text = chat.review(minute(LENGTH))
    expect(f"Crane{LENGTH + 1} lifts" in text, "The new message is missing.")
    expect(window.summaries[-1].id in text, "The id of the newest summary is missing.")
