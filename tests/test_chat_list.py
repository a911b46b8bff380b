"""Titles of chats, and the list of them: its order, pages, agents and archive."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from chat_messages import NO_COUNTS, NOON, contents, say
from holdfast import InvalidInput, Memory, Message
from tables import each

# Titles


def title(memory: Memory) -> str:
    return memory.chats()[0].title


def test_the_title_is_the_beginning_of_the_first_user_message(memory: Memory) -> None:
    memory.chat("monday").append(
        [Message("system", "Be kind."), Message("user", "Plan my week"), Message("user", "no")]
    )
    assert title(memory) == "Plan my week"


def test_the_title_is_one_line(memory: Memory) -> None:
    say(memory.chat("monday"), "\n  Plan\t my   week \nwith runs")
    assert title(memory) == "Plan my week"


def test_a_long_title_is_cut_at_a_word(memory: Memory) -> None:
    say(memory.chat("monday"), "marathon " * 30)
    assert title(memory) == "marathon " * 7 + "marathon…"


def test_a_long_title_without_spaces_is_cut_anywhere(memory: Memory) -> None:
    say(memory.chat("monday"), "日" * 300)
    assert title(memory) == "日" * 79 + "…"


def test_a_chat_without_user_messages_has_no_title(memory: Memory) -> None:
    memory.chat("monday").append(role="assistant", content="hello")
    assert title(memory) == ""


def test_the_first_user_message_may_come_later(memory: Memory) -> None:
    memory.chat("monday").append(role="system", content="Be kind.")
    say(memory.chat("monday"), "Plan my week")
    assert title(memory) == "Plan my week"


def test_later_messages_do_not_change_the_title(memory: Memory) -> None:
    say(memory.chat("monday"), "Plan my week")
    say(memory.chat("monday"), "Something else")
    assert title(memory) == "Plan my week"


def test_a_chat_can_be_renamed(memory: Memory) -> None:
    say(memory.chat("monday"), "Plan my week")
    memory.chat("monday").rename("Training '26 / 100%")
    assert title(memory) == "Training '26 / 100%"


def test_a_name_stays_when_messages_follow(memory: Memory) -> None:
    memory.chat("monday").append(role="system", content="Be kind.")
    memory.chat("monday").rename("Training")
    say(memory.chat("monday"), "Plan my week")
    assert title(memory) == "Training"


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\x00b", "\ud800", None, 7, "x" * 10_000])
def test_a_name_that_is_none_is_refused(memory: Memory, name: Any) -> None:
    say(memory.chat("monday"), "Plan my week")
    with pytest.raises(InvalidInput, match="title"):
        memory.chat("monday").rename(name)
    assert title(memory) == "Plan my week"


def test_a_long_name_is_cut(memory: Memory) -> None:
    say(memory.chat("monday"), "Plan my week")
    memory.chat("monday").rename("日" * 500)
    assert title(memory) == "日" * 199 + "…"


def test_a_chat_that_nobody_wrote_to_cannot_be_renamed(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="no chat 'monday'"):
        memory.chat("monday").rename("Training")
    assert memory.chats() == []


# The list of chats


def ids(memory: Memory, **options: Any) -> list[str]:
    return [info.id for info in memory.chats(**options)]


@pytest.fixture
def week(memory: Memory) -> Memory:
    """Four chats, one of each day, written in another order than that of their times."""
    days = {"wednesday": 3, "monday": 1, "thursday": 4, "tuesday": 2}
    for chat, day in days.items():
        memory.scoped(agent="coach" if day % 2 else "cook").chat(chat).append(
            role="user", content=f"on {chat}", at=NOON + timedelta(day)
        )
    return memory


def test_the_chat_with_the_newest_message_comes_first(week: Memory) -> None:
    assert ids(week) == ["thursday", "wednesday", "tuesday", "monday"]


def test_a_new_message_brings_a_chat_to_the_front(week: Memory) -> None:
    week.chat("monday").append(role="user", content="again", at=NOON + timedelta(9))
    assert ids(week)[0] == "monday"


def test_an_old_message_does_not_move_a_chat(week: Memory) -> None:
    week.chat("monday").append(role="user", content="again", at=NOON)
    assert ids(week)[-1] == "monday"


def test_of_chats_of_the_same_time_the_one_begun_last_comes_first(memory: Memory) -> None:
    for chat in "cabed":
        memory.chat(chat).append(role="user", content="hello", at=NOON)
    memory.chat("c").append(role="user", content="again", at=NOON)
    assert ids(memory) == ["d", "e", "b", "a", "c"]


def test_a_chat_is_described(week: Memory) -> None:
    info = week.chats(limit=1)[0]
    assert (info.title, info.agent, info.user, info.archived, info.messages, info.oldest, info.newest) == (
        "on thursday",
        "cook",
        "ada",
        False,
        1,
        NOON + timedelta(4),
        NOON + timedelta(4),
    )
    assert info.tokens == week.chat("thursday").stats().stored_tokens


@pytest.mark.parametrize(
    ("limit", "offset", "expected"),
    [
        (None, 0, "thursday wednesday tuesday monday"),
        (2, 0, "thursday wednesday"),
        (2, 1, "wednesday tuesday"),
        (2, 3, "monday"),
        (2, 4, ""),
        (0, 0, ""),
        (None, 2, "tuesday monday"),
        (10**30, 10**30, ""),
        (10**30, 0, "thursday wednesday tuesday monday"),
    ],
)
def test_the_list_is_paged(week: Memory, limit: int | None, offset: int, expected: str) -> None:
    assert ids(week, limit=limit, offset=offset) == expected.split()


@each("argument", ["limit", "offset"])
@each("value", NO_COUNTS)
def test_the_list_needs_whole_numbers(argument: str, value: Any) -> None:
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match=argument):
        memory.chats(**{argument: value})


def test_the_list_can_be_of_one_agent(week: Memory) -> None:
    assert ids(week, agent="coach") == ["wednesday", "monday"]


def test_a_handle_of_an_agent_lists_its_chats(week: Memory) -> None:
    assert ids(week.scoped(agent="cook")) == ["thursday", "tuesday"]


def test_a_handle_of_an_agent_lists_all_on_request(week: Memory) -> None:
    assert len(ids(week.scoped(agent="cook"), agent="")) == 4


def test_an_agent_without_chats_lists_none(week: Memory) -> None:
    assert ids(week, agent="nobody") == []


def test_a_chat_belongs_to_the_agent_that_began_it(week: Memory) -> None:
    week.scoped(agent="cook").chat("monday").append(role="user", content="hello")
    assert "monday" in ids(week, agent="coach")


def test_another_agent_reads_the_same_chat(week: Memory) -> None:
    assert contents(week.scoped(agent="cook").chat("monday").history()) == ["on monday"]


def test_an_archived_chat_leaves_the_list(week: Memory) -> None:
    week.chat("tuesday").archive()
    assert ids(week) == ["thursday", "wednesday", "monday"]


def test_archived_chats_are_listed_on_request(week: Memory) -> None:
    week.chat("tuesday").archive()
    assert ids(week, archived=True) == ["tuesday"]


def test_all_chats_are_listed_on_request(week: Memory) -> None:
    week.chat("tuesday").archive()
    assert ids(week, archived=None) == ["thursday", "wednesday", "tuesday", "monday"]


def test_an_archived_chat_can_be_brought_back(week: Memory) -> None:
    week.chat("tuesday").archive()
    week.chat("tuesday").archive(archived=False)
    assert len(ids(week)) == 4


def test_archiving_twice_is_archiving_once(week: Memory) -> None:
    for _ in range(2):
        week.chat("tuesday").archive()
    assert ids(week, archived=True) == ["tuesday"]


def test_an_archived_chat_can_be_read(week: Memory) -> None:
    week.chat("tuesday").archive()
    assert contents(week.chat("tuesday").history()) == ["on tuesday"]


def test_an_archived_chat_can_be_written_to_and_stays_archived(week: Memory) -> None:
    week.chat("tuesday").archive()
    say(week.chat("tuesday"), "hello")
    assert ids(week, archived=True) == ["tuesday"]


def test_a_chat_that_nobody_wrote_to_cannot_be_archived(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="no chat 'monday'"):
        memory.chat("monday").archive()


@pytest.mark.parametrize("value", ["no", 1, 0, 1.0])
def test_archived_is_true_or_false(week: Memory, value: Any) -> None:
    with pytest.raises(InvalidInput, match="archived"):
        week.chat("monday").archive(archived=value)
    with pytest.raises(InvalidInput, match="archived"):
        week.chats(archived=value)


def test_the_list_survives_opening_again(reopen: Callable[[], Memory]) -> None:
    first = reopen()
    say(first.chat("monday"), "Plan my week")
    first.chat("monday").archive()
    first.close()
    assert [(info.id, info.title, info.archived) for info in reopen().chats(archived=None)] == [
        ("monday", "Plan my week", True)
    ]


WRAPPED = [
    (
        "<command-name>/clear</command-name>\n  <command-message>clear</command-message>\n"
        "<command-args></command-args>"
    ),
    "<local-command-stdout>Set model to x</local-command-stdout>",
    (
        "Caveat: The messages below were generated by the user while running local commands. "
        "DO NOT respond to these messages."
    ),
    "<local-command-caveat>Caveat: The messages below</local-command-caveat>",
    "<bash-input>ls</bash-input>",
]


@pytest.mark.parametrize("together", [True, False])
def test_a_title_is_the_first_real_request(memory: Memory, together: bool) -> None:
    chat = memory.chat("monday")
    said = [{"role": "user", "content": text} for text in (*WRAPPED, "Plan the marathon", "And the trip")]
    for batch in [said] if together else [[one] for one in said]:
        chat.append(batch)
    assert [info.title for info in memory.chats()] == ["Plan the marathon"]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (f"{WRAPPED[0]}\nPlan the marathon", "Plan the marathon"),
        ("<system-reminder>Be kind</system-reminder> Plan it", "Plan it"),
        ("What does <command-name>x</command-name> do?", "What does <command-name>x</command-name> do?"),
        ("<command-name>not closed", "<command-name>not closed"),
        ("<command-name>" * 100_000, "<command-name>"),
        (WRAPPED[0], ""),
    ],
    ids=["before", "reminder", "within", "open", "long", "alone"],
)
def test_a_title_leaves_out_what_a_program_wrote_before(quick: Memory, text: str, title: str) -> None:
    quick.chat("monday").append(role="user", content=text)
    assert [info.title[: len(title) or 80] for info in quick.chats()] == [title]
