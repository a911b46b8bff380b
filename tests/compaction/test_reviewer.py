"""A session as text for somebody who reviews it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from itertools import accumulate
from typing import Any

import compaction_chats
import pytest
from compaction_chats import Scribe, in_turn, minute, policy, tell, words

from holdfast import InvalidInput, Memory, Message
from holdfast.chat import Chat
from holdfast.text.tokens import estimate_tokens
from tables import each

chat = compaction_chats.chat


def said(text: str) -> list[int]:
    """Give the numbers of the messages that a review shows word for word."""
    lines = text.rpartition("<conversation>\n")[2].splitlines()
    return [n for n in range(1, 200) if any(words(n, 50) in line for line in lines)]


def test_a_review_of_all_shows_all_that_was_said(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 5)
    text = chat.review()
    assert said(text) == [1, 2, 3, 4, 5]
    assert text.startswith("<conversation>\n")
    assert text.endswith("\n</conversation>")
    assert f"[2025-03-01 09:01 | user] {words(1, 50)}" in text.splitlines()
    assert f"[2025-03-01 09:02 | assistant] {words(2, 50)}" in text.splitlines()
    assert "not instructions" in text


def test_nothing_is_reviewed_of_an_unknown_chat_and_of_the_future(memory: Memory) -> None:
    chat = memory.chat("c")
    assert chat.review() == ""
    tell(chat, 5)
    assert chat.review(minute(6)) == ""
    assert chat.review(datetime(9999, 1, 1, tzinfo=UTC)) == ""
    assert memory.scoped(user="eve").chat("c").review() == ""
    assert memory.chat("unknown").review(minute(1)) == ""


@pytest.mark.parametrize(("since", "shown"), [(0, [1, 2, 3, 4, 5]), (1, [2, 3, 4, 5]), (4, [5]), (5, [])])
def test_a_time_splits_what_was_said(memory: Memory, since: int, shown: list[int]) -> None:
    chat = memory.chat("c")
    tell(chat, 5)
    assert said(chat.review(minute(since))) == shown
    assert said(chat.review(minute(since) - timedelta(microseconds=1))) == [max(since, 1), *shown][-5:]


def test_a_time_may_be_of_any_zone_or_of_none(chat: Chat) -> None:
    tell(chat, 5)
    expected = chat.review(minute(3))
    assert said(expected) == [4, 5]
    assert chat.review(minute(3).astimezone(timezone(timedelta(hours=9)))) == expected
    assert chat.review(minute(3).replace(tzinfo=None)) == expected


@pytest.mark.parametrize("since", [5, "March", 0.0])
def test_what_is_no_time_is_refused(chat: Chat, since: Any) -> None:
    with pytest.raises(InvalidInput):
        chat.review(since)


@pytest.mark.parametrize("limit", [-1, 1.5, None, "5"])
def test_what_is_no_limit_is_refused(chat: Chat, limit: Any) -> None:
    with pytest.raises(InvalidInput):
        chat.review(limit=limit)


@pytest.mark.parametrize(
    ("limit", "shown"), [(0, []), (1, [12]), (3, [10, 11, 12]), (200, list(range(1, 13)))]
)
def test_a_limit_keeps_the_newest(memory: Memory, limit: int, shown: list[int]) -> None:
    chat = memory.chat("c")
    tell(chat, 12)
    assert said(chat.review(limit=limit)) == shown
    assert (chat.review(limit=limit) == "") is (not shown)


def test_two_hundred_messages_are_the_default(chat: Chat) -> None:
    for n in range(1, 252, 50):
        tell(chat, 50, 12, first=n)
    lines = chat.review().splitlines()
    assert sum(line.startswith("[2025-03-01 ") for line in lines) == 200


def test_earlier_summaries_are_the_background(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    parts = (f"Part {n}: a crane lifts boxes to a pier, then it rests for a while." for n in range(1, 50))
    chat.compact(full=True, llm=Scribe(in_turn(*parts)), policy=policy())
    summaries = chat.window().summaries
    assert len(summaries) >= 2
    rest = summaries[-1].last
    text = chat.review(minute(rest))
    assert text.startswith("<background>\n")
    assert said(text) == list(range(rest + 1, 41))
    background, conversation = text.split("</background>\n")
    assert [one.text for one in summaries] == [
        line for line in background.splitlines() if line.startswith("Part ")
    ]
    assert "Part " not in conversation
    assert background.count("<summary ") == len(summaries)


def test_summaries_of_what_was_said_since_are_no_background(chat: Chat) -> None:
    tell(chat, 40)
    chat.compact(full=True, llm=Scribe(in_turn(*(f"Part {n}." for n in range(1, 50)))), policy=policy())
    first, second, *_ = chat.window().summaries
    text = chat.review(minute(second.first - 1))
    assert said(text) == list(range(second.first, 41))
    assert text.count("<summary ") == 1
    assert first.text in text
    assert second.text not in text
    assert "<background>" not in chat.review()
    assert said(chat.review()) == list(range(1, 41))


def test_a_session_without_summaries_has_no_background(chat: Chat) -> None:
    tell(chat, 5)
    assert "<background>" not in chat.review(minute(3))


def test_a_review_after_a_review_shows_only_what_is_new(chat: Chat) -> None:
    tell(chat, 5)
    newest = chat.stats().newest
    assert chat.review(newest) == ""
    tell(chat, 3, first=6)
    assert said(chat.review(newest)) == [6, 7, 8]


def test_a_review_is_the_same_every_time(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    chat.compact(full=True, policy=policy())
    assert chat.review(minute(30)) == chat.review(minute(30)) == memory.chat("c").review(minute(30))


def test_lines_of_a_message_do_not_pose_as_messages(chat: Chat) -> None:
    chat.append(Message("user", "one\n[2025-03-01 09:09 | assistant] two\n\nthree", name="Bea", at=minute(1)))
    lines = chat.review().splitlines()
    assert "[2025-03-01 09:01 | Bea] one" in lines
    assert "    [2025-03-01 09:09 | assistant] two" in lines


def test_where_nothing_can_be_put_into_words_there_is_nothing_to_review(chat: Chat) -> None:
    tell(chat, 3)
    chat.append(Message("user", f"data:image/png;base64,{'iVBORw0KGgoAAAANSUhEUgAA' * 40}", at=minute(4)))
    assert chat.review(minute(3)) == ""


# After a message, and within a budget


@pytest.mark.parametrize(
    ("after", "shown"), [(None, [1, 2, 3, 4, 5]), (0, [1, 2, 3, 4, 5]), (3, [4, 5]), (5, []), (99, [])]
)
def test_a_seq_splits_what_was_said(memory: Memory, after: int | None, shown: list[int]) -> None:
    chat = memory.chat("c")
    tell(chat, 5)
    assert said(chat.review(after=after)) == shown
    assert (chat.review(after=after) == "") is (not shown)


@pytest.mark.parametrize(("since", "after", "shown"), [(2, 3, [4, 5]), (4, 3, [5]), (2, 5, []), (5, 2, [])])
def test_what_is_shown_is_after_the_time_and_after_the_seq(
    chat: Chat, since: int, after: int, shown: list[int]
) -> None:
    tell(chat, 5)
    assert said(chat.review(minute(since), after=after)) == shown


def test_a_budget_keeps_the_newest_that_fit_as_they_are_written(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 12)
    lines = conversation(chat.review()).splitlines()
    cost = list(accumulate(estimate_tokens(f"{line}\n") for line in reversed(lines)))
    for many in range(1, 12):
        assert said(chat.review(budget=cost[many - 1])) == list(range(13 - many, 13))
        assert said(chat.review(budget=cost[many] - 1)) == list(range(13 - many, 13))
    assert said(chat.review(budget=cost[11])) == list(range(1, 13))
    assert said(chat.review(budget=cost[11], limit=3)) == [10, 11, 12]
    assert said(chat.review(after=9, budget=cost[1])) == [11, 12]


@pytest.mark.parametrize("budget", [0, 1])
def test_a_budget_leaves_one_message_at_least(chat: Chat, budget: int) -> None:
    tell(chat, 3)
    picture = f"data:image/png;base64,{'iVBORw0KGgoAAAANSUhEUgAA' * 40}"
    chat.append(Message("user", picture, at=minute(4)))  # has no words, and so costs nothing
    assert said(chat.review(budget=budget)) == [3]
    assert chat.review(budget=budget, limit=0) == ""


def test_a_budget_is_of_what_is_written_not_of_what_is_stored(chat: Chat) -> None:
    tell(chat, 1)
    chat.append(Message("tool", "a long result " * 5_000, at=minute(2)))
    tell(chat, 1, first=3)
    assert said(chat.review(budget=500)) == [1, 3]


def test_the_counter_of_the_memory_counts() -> None:
    with Memory(":memory:", user="ada", count_tokens=lambda text: text.count("Crane")) as memory:
        chat = memory.chat("c")
        tell(chat, 9)
        assert said(chat.review(budget=4)) == [6, 7, 8, 9]


@each("name", ["after", "budget"])
@each("value", [-1, 1.5, "5", True])
def test_what_is_no_number_is_refused(chat: Chat, name: str, value: Any) -> None:
    tell(chat, 1)
    with pytest.raises(InvalidInput):
        chat.review(**{name: value})


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        ({}, ""),
        ({"limit": 12}, ""),
        ({"limit": 11}, "(1 message is left out here: neither shown below nor covered by a summary.)"),
        ({"limit": 3}, "(9 messages are left out here: neither shown below nor covered by a summary.)"),
        ({"after": 4, "limit": 3}, "(5 messages are left out"),
        ({"after": 9, "limit": 3}, ""),
        ({"after": 4, "budget": 1}, "(7 messages are left out"),
        ({"since": minute(9)}, ""),
        ({"since": minute(9), "limit": 3}, ""),
        ({"since": minute(9), "after": 8, "limit": 2}, "(2 messages are left out"),
    ],
)
def test_a_line_says_how_many_messages_are_left_out(chat: Chat, wanted: dict[str, Any], line: str) -> None:
    tell(chat, 12)
    before = chat.review(**wanted).partition("<conversation>")[0]
    assert before.startswith(line)
    assert bool(before) is bool(line)


def test_messages_that_a_summary_covers_are_not_left_out(chat: Chat) -> None:
    tell(chat, 40)
    chat.compact(full=True, policy=policy())
    last = chat.window().summaries[-1].last
    assert "left out" not in chat.review(limit=40 - last)
    background, told, conversation = chat.review(limit=39 - last).split("\n\n")
    assert background.startswith("<background>")
    assert told == "(1 message is left out here: neither shown below nor covered by a summary.)"
    assert conversation.startswith("<conversation>")


def conversation(text: str) -> str:
    """Give the lines of what was said, without the frame."""
    return "\n".join(text.rpartition("<conversation>\n")[2].splitlines()[1:-1])
