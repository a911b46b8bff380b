"""Sessions: append, read back, list; alone and from many threads and processes at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from threading import Barrier, Event
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import Chat, ChatStats, Conflict, InvalidInput, Memory, Message, ToolCall
from programs import run_together

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NO_COUNTS = [-1, True, False, 1.5, "3", -(10**30), float("nan")]


def contents(messages: Iterable[Message]) -> list[str]:
    return [message.content for message in messages]


def seqs(messages: Iterable[Message]) -> list[int]:
    return [message.seq for message in messages]


def say(chat: Chat, *words: str) -> list[Message]:
    return chat.append([Message("user", word) for word in words])


# Append


def test_an_appended_message_is_returned_as_it_is_stored(memory: Memory) -> None:
    stored = memory.chat("monday").append(role="user", content="hello", name="ada", meta={"mood": "good"})
    assert (stored.seq, stored.role, stored.content, stored.name, stored.meta) == (
        1,
        "user",
        "hello",
        "ada",
        {"mood": "good"},
    )


def test_one_message_given_alone_is_returned_alone(memory: Memory) -> None:
    assert isinstance(memory.chat("monday").append(Message("user", "hello")), Message)


def test_one_message_given_in_a_list_is_returned_in_a_list(memory: Memory) -> None:
    assert isinstance(memory.chat("monday").append([Message("user", "hello")]), list)


def test_a_list_may_mix_messages_and_dicts(memory: Memory) -> None:
    stored = memory.chat("monday").append([Message("user", "one"), {"role": "assistant", "content": "two"}])
    assert contents(stored) == ["one", "two"]


def test_any_sequence_can_be_appended(memory: Memory) -> None:
    assert seqs(memory.chat("monday").append((Message("user", "one"), Message("user", "two")))) == [1, 2]


@pytest.mark.parametrize("nothing", [[], ()])
def test_appending_nothing_does_nothing(memory: Memory, nothing: Sequence[Message]) -> None:
    assert (memory.chat("monday").append(nothing), memory.chats()) == ([], [])


def test_messages_are_numbered_from_one_across_appends(memory: Memory) -> None:
    chat = memory.chat("monday")
    assert seqs([*say(chat, "a"), *say(chat, "b", "c"), *say(chat, "d")]) == [1, 2, 3, 4]


def test_the_order_of_the_appends_is_the_order_of_the_log(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append(role="user", content="later", at=NOON)
    chat.append(role="user", content="earlier", at=NOON - timedelta(days=1))
    assert contents(chat.history()) == ["later", "earlier"]


def test_two_handles_are_one_chat(memory: Memory) -> None:
    say(memory.chat("monday"), "a")
    say(memory.chat("monday"), "b")
    assert contents(memory.chat("monday").history()) == ["a", "b"]


def test_a_thousand_messages_are_one_append(memory: Memory) -> None:
    words = [f"word {n}" for n in range(1000)]
    say(memory.chat("monday"), *words)
    assert contents(memory.chat("monday").history()) == words


def test_each_message_gets_an_id_of_its_own(memory: Memory) -> None:
    assert len({message.id for message in say(memory.chat("monday"), *"abcdef")}) == 6


def test_ids_that_are_made_sort_in_the_order_of_the_appends(memory: Memory) -> None:
    ids = [message.id for message in say(memory.chat("monday"), *"abcdef")]
    assert ids == sorted(ids)


@pytest.mark.parametrize(
    "bad",
    [
        {"role": "wizard", "content": "hello"},
        {"role": "user", "content": ""},
        {"role": "user", "content": "hello", "x": {1, 2}},
        {"role": "user", "content": "hello", "id": "x" * 600},
        "hello",
        None,
    ],
)
def test_a_bad_message_among_good_ones_stores_none(memory: Memory, bad: Any) -> None:
    say(memory.chat("monday"), "before")
    with pytest.raises(InvalidInput):
        memory.chat("monday").append([Message("user", "one"), bad, Message("user", "two")])
    assert contents(memory.chat("monday").history()) == ["before"]


def test_a_conflict_among_good_messages_stores_none(memory: Memory) -> None:
    memory.chat("monday").append(role="user", content="before", id="m1")
    with pytest.raises(Conflict):
        memory.chat("monday").append([Message("user", "new"), Message("user", "other", id="m1")])
    assert memory.chat("monday").stats().messages == 1


def test_after_a_refused_append_the_numbers_go_on_without_a_gap(memory: Memory) -> None:
    memory.chat("monday").append(role="user", content="before", id="m1")
    with pytest.raises(Conflict):
        memory.chat("monday").append([Message("user", "new"), Message("user", "other", id="m1")])
    assert memory.chat("monday").append(role="user", content="after").seq == 2
    assert memory.verify().problems == ()


@pytest.mark.parametrize(
    "thing", ["", "hello", b"", b"hello", 0, 7, False, {"role", "user"}, iter(()), object()]
)
def test_what_is_no_message_cannot_be_appended(thing: Any) -> None:
    with Memory(":memory:") as memory, pytest.raises(InvalidInput):
        memory.chat("monday").append(thing)


def test_an_append_without_anything_says_what_to_pass() -> None:
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match="role="):
        memory.chat("monday").append()


@pytest.mark.parametrize("field", [{"role": "user"}, {"id": "m1"}, {"meta": {"a": 1}}, {"at": NOON}])
def test_fields_beside_a_message_are_refused_and_not_dropped(field: dict[str, Any]) -> None:
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match="beside"):
        memory.chat("monday").append({"role": "user", "content": "hello"}, **field)


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x00", "\ud800", "x" * 513, 7, b"monday"])
def test_a_chat_needs_a_name(name: Any) -> None:
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match="id of a chat"):
        memory.chat(name)


@pytest.mark.parametrize(
    "name", ["'; DROP TABLE messages; --", "%", "_", "a/b", "..", "日本", "😀", "x" * 512, " a "]
)
def test_a_chat_may_have_any_name(memory: Memory, name: str) -> None:
    say(memory.chat(name), "hello")
    assert [info.id for info in memory.chats()] == [name]


@pytest.mark.parametrize("words", ["100% of it", "%s %(x)s :name", "a_b", "'\"`;--", "\\", "{}", "$1 ?"])
def test_words_that_mean_something_to_a_database_are_words(memory: Memory, words: str) -> None:
    say(memory.chat("monday"), words)
    assert contents(memory.chat("monday").history()) == [words]


# The same message again


def test_the_same_message_again_is_one_message(memory: Memory) -> None:
    first = memory.chat("monday").append(role="user", content="hello", id="m1", at=NOON)
    again = memory.chat("monday").append(role="user", content="hello", id="m1")
    assert (again, memory.chat("monday").history()) == (first, [first])


def test_the_same_message_again_counts_once(memory: Memory) -> None:
    for _ in range(3):
        memory.chat("monday").append(role="user", content="hello", id="m1")
    assert memory.chat("monday").stats().messages == 1
    assert memory.verify().problems == ()


def test_the_same_payload_with_its_keys_in_another_order_is_the_same(memory: Memory) -> None:
    memory.chat("monday").append({"role": "user", "content": "hello", "id": "m1", "x": {"a": 1, "b": 2}})
    again = memory.chat("monday").append(
        {"x": {"b": 2, "a": 1}, "id": "m1", "content": "hello", "role": "user"}
    )
    assert again.seq == 1


def test_the_same_payload_with_nan_is_the_same(memory: Memory) -> None:
    for _ in range(2):
        message = memory.chat("monday").append(
            {"role": "user", "content": "hello", "id": "m1", "x": float("nan")}
        )
    assert message.seq == 1


@pytest.mark.parametrize(
    "other",
    [
        Message("user", "bye", id="m1"),
        Message("system", "hello", id="m1"),
        Message("user", "hello", id="m1", name="bob"),
        Message("user", "hello", id="m1", raw={"x": 1}),
        Message("assistant", "hello", id="m1", calls=(ToolCall("c1", "find"),)),
    ],
)
def test_another_message_under_the_same_id_is_a_conflict(memory: Memory, other: Message) -> None:
    memory.chat("monday").append(role="user", content="hello", id="m1")
    with pytest.raises(Conflict, match="m1"):
        memory.chat("monday").append(other)


def test_other_arguments_under_the_same_id_are_a_conflict(memory: Memory) -> None:
    def call(number: int) -> Message:
        return Message("assistant", id="m1", calls=(ToolCall("c1", "find", {"n": number}),))

    memory.chat("monday").append(call(1))
    with pytest.raises(Conflict):
        memory.chat("monday").append(call(2))


def test_after_a_conflict_the_first_message_stands(memory: Memory) -> None:
    memory.chat("monday").append(role="user", content="hello", id="m1")
    with pytest.raises(Conflict):
        memory.chat("monday").append(role="user", content="bye", id="m1")
    assert contents(memory.chat("monday").history()) == ["hello"]


def test_the_same_message_twice_in_a_list_is_one_message(memory: Memory) -> None:
    twins = [
        Message("user", "hello", id="m1", at=NOON),
        Message("user", "hello", id="m1", at=NOON + timedelta(1)),
    ]
    stored = memory.chat("monday").append(twins)
    assert stored == memory.chat("monday").history() * 2


def test_two_messages_with_one_id_in_a_list_are_a_conflict(memory: Memory) -> None:
    with pytest.raises(Conflict):
        memory.chat("monday").append([Message("user", "hello", id="m1"), Message("user", "bye", id="m1")])
    assert memory.chats() == []


def test_old_and_new_messages_in_a_list_come_back_in_its_order(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append([Message("user", word, id=word) for word in "ab"])
    stored = chat.append([Message("user", word, id=word) for word in "cbda"])
    assert [(message.content, message.seq) for message in stored] == [("c", 3), ("b", 2), ("d", 4), ("a", 1)]
    assert memory.verify().problems == ()


def test_a_message_can_be_appended_again_under_the_id_that_was_made_for_it(memory: Memory) -> None:
    stored = memory.chat("monday").append(role="user", content="hello")
    assert memory.chat("monday").append(stored) == stored


def test_another_message_under_the_id_that_was_made_for_one_is_a_conflict(memory: Memory) -> None:
    stored = say(memory.chat("monday"), "a", "b", "c")
    with pytest.raises(Conflict):
        memory.chat("monday").append(replace(stored[1], content="other"))


def test_messages_keep_their_ids_in_another_chat(memory: Memory) -> None:
    stored = say(memory.chat("monday"), "a", "b", "c")
    copies = memory.chat("tuesday").append(stored)
    assert memory.chat("tuesday").append(stored) == copies
    assert [(m.id, m.content) for m in copies] == [(m.id, m.content) for m in stored]
    assert memory.verify().problems == ()


def test_an_id_like_those_that_are_made_is_the_message_s_own(memory: Memory) -> None:
    say(memory.chat("monday"), "a")
    stored = memory.chat("monday").append(role="user", content="b", id="00000000000100000000")
    assert memory.chat("monday").append(stored) == stored
    assert memory.chat("monday").stats().messages == 2


def test_messages_of_many_chats_keep_the_ids_that_were_made(memory: Memory) -> None:
    stored = [memory.chat(chat).append(role="user", content=chat) for chat in "abcabc"]
    assert [memory.chat(message.content).append(message) for message in stored] == stored


def test_a_thousand_messages_again_add_nothing(memory: Memory) -> None:
    messages = [Message("user", "hello", id=f"m{n}") for n in range(1000)]
    first = memory.chat("monday").append(messages)
    assert memory.chat("monday").append(messages) == first


# History


def test_a_chat_that_nobody_wrote_to_has_no_history(memory: Memory) -> None:
    assert memory.chat("monday").history() == []


def test_reading_a_chat_does_not_make_it(memory: Memory) -> None:
    memory.chat("monday").history()
    memory.chat("monday").stats()
    memory.chat("monday").window()
    assert memory.chats(archived=None) == []


def test_a_limit_gives_the_latest_in_the_order_of_the_log(memory: Memory) -> None:
    say(memory.chat("monday"), *"abcde")
    assert contents(memory.chat("monday").history(2)) == ["d", "e"]


def test_before_pages_back(memory: Memory) -> None:
    say(memory.chat("monday"), *"abcde")
    assert contents(memory.chat("monday").history(2, before=4)) == ["b", "c"]


def test_after_pages_on(memory: Memory) -> None:
    say(memory.chat("monday"), *"abcde")
    assert contents(memory.chat("monday").history(2, after=1)) == ["b", "c"]


def test_after_zero_reads_from_the_beginning(memory: Memory) -> None:
    say(memory.chat("monday"), *"abcde")
    assert contents(memory.chat("monday").history(2, after=0)) == ["a", "b"]


BOUNDS = st.none() | st.integers(0, 12) | st.sampled_from([2**31, 2**62, 2**63, 10**30])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=BOUNDS, before=BOUNDS, after=BOUNDS)
def test_any_page_is_a_part_of_the_whole(
    memory: Memory, limit: int | None, before: int | None, after: int | None
) -> None:
    chat = memory.chat("monday")
    if not chat.stats().messages:
        say(chat, *"abcdefghij")
    between = [
        seq for seq in range(1, 11) if (after is None or seq > after) and (before is None or seq < before)
    ]
    if limit is not None:
        oldest_first = after is not None and before is None
        between = between[:limit] if oldest_first else between[max(0, len(between) - limit) :]
    assert seqs(chat.history(limit, before=before, after=after)) == between


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_all_pages_back_are_the_history(memory: Memory, size: int) -> None:
    chat = memory.chat("monday")
    say(chat, *map(str, range(20)))
    pages: list[Message] = []
    while page := chat.history(size, before=pages[0].seq if pages else None):
        pages = page + pages
    assert pages == chat.history()


@pytest.mark.parametrize("argument", ["limit", "before", "after"])
@pytest.mark.parametrize("value", NO_COUNTS)
def test_a_page_needs_whole_numbers(argument: str, value: Any) -> None:
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match=argument):
        memory.chat("monday").history(**{argument: value})


# Stats


def test_a_chat_that_nobody_wrote_to_has_empty_stats(memory: Memory) -> None:
    assert memory.chat("monday").stats() == ChatStats(0, 0, 0, None, None)


def test_stats_count_messages_and_tokens(memory: Memory) -> None:
    stored = say(memory.chat("monday"), "a", "x" * 400)
    stats = memory.chat("monday").stats()
    assert (stats.messages, stats.stored_tokens, stats.context_tokens) == (
        2,
        *[sum(m.tokens for m in stored)] * 2,
    )


def test_oldest_and_newest_are_by_time_and_not_by_order(memory: Memory) -> None:
    days = [NOON + timedelta(days) for days in (2, 0, -3, 1)]
    memory.chat("monday").append([Message("user", "hello", at=day) for day in days[:2]])
    memory.chat("monday").append([Message("user", "hello", at=day) for day in days[2:]])
    stats = memory.chat("monday").stats()
    assert (stats.oldest, stats.newest) == (NOON - timedelta(3), NOON + timedelta(2))


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


@pytest.mark.parametrize("argument", ["limit", "offset"])
@pytest.mark.parametrize("value", NO_COUNTS)
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


# Tool calls and their results


def call(*identities: str) -> Message:
    return Message("assistant", calls=tuple(ToolCall(identity, "find") for identity in identities))


def answer(identity: str) -> Message:
    return Message("tool", "42", call_id=identity)


def test_a_result_answers_the_call_before_it(memory: Memory) -> None:
    memory.chat("monday").append(call("c1"))
    assert memory.chat("monday").append(answer("c1")).answers == ("c1",)


def test_a_result_answers_a_call_of_the_same_append(memory: Memory) -> None:
    assert memory.chat("monday").append([call("c1"), answer("c1")])[1].answers == ("c1",)


def test_a_result_answers_a_call_far_back(memory: Memory) -> None:
    memory.chat("monday").append(call("c1"))
    say(memory.chat("monday"), *map(str, range(500)))
    assert memory.chat("monday").append(answer("c1")).answers == ("c1",)


def test_a_result_without_a_call_answers_nothing_and_is_kept(memory: Memory) -> None:
    stored = memory.chat("monday").append(answer("c1"))
    assert (stored.answers, stored.call_id, stored.content) == ((), "c1", "42")


def test_a_result_before_its_call_answers_nothing(memory: Memory) -> None:
    assert memory.chat("monday").append([answer("c1"), call("c1")])[0].answers == ()


def test_each_of_parallel_calls_is_answered(memory: Memory) -> None:
    stored = memory.chat("monday").append([call("c1", "c2"), answer("c2"), answer("c1")])
    assert [message.answers for message in stored] == [(), ("c2",), ("c1",)]


def test_an_id_that_is_used_again_is_answered_again(memory: Memory) -> None:
    stored = memory.chat("monday").append([call("c1"), answer("c1"), call("c1"), answer("c1")])
    assert [message.answers for message in stored] == [(), ("c1",), (), ("c1",)]


def test_one_message_answers_those_calls_that_are_there(memory: Memory) -> None:
    blocks = [{"type": "tool_result", "tool_use_id": f"c{n}", "content": str(n)} for n in range(3)]
    stored = memory.chat("monday").append([call("c2", "c0"), {"role": "user", "content": blocks}])
    assert stored[1].answers == ("c0", "c2")


def test_the_resolved_answers_are_stored(reopen: Callable[[], Memory]) -> None:
    reopen().chat("monday").append([call("c1"), answer("c1"), answer("c9")])
    assert [message.answers for message in reopen().chat("monday").history()] == [(), ("c1",), ()]


def test_a_message_without_a_call_cannot_claim_to_answer_one(memory: Memory) -> None:
    claim = Message("tool", "42", answers=("c1", "c2"))
    assert memory.chat("monday").append(claim).answers == ()


# Without repetition, because a database may compress what repeats.
LONG = "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(5000))


@pytest.mark.parametrize("identity", ["x" * 10_000, LONG, "toolu_'\"%_\\", "a b", "\n"])
def test_the_id_of_a_call_may_be_anything(memory: Memory, identity: str) -> None:
    stored = memory.chat("monday").append([call(identity), answer(identity), answer(identity[:-1] or "-")])
    assert [message.answers for message in stored] == [(), (identity,), ()]


def test_a_call_appended_again_is_answered_once(memory: Memory) -> None:
    made = Message("assistant", id="m1", calls=(ToolCall("c1", "find"),))
    stored = memory.chat("monday").append([made, made, answer("c1")])
    assert stored[2].answers == ("c1",)
    assert memory.verify().problems == ()


# Many threads

THREADS = 8
EACH = 12


def together(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Run the same work in threads that begin at the same moment."""
    barrier = Barrier(count)

    def begin(number: int) -> Any:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))


def test_threads_append_to_one_chat_without_loss_or_gap(memory: Memory) -> None:
    def work(thread: int) -> list[int]:
        return [memory.chat("monday").append(role="user", content=f"{thread} {n}").seq for n in range(EACH)]

    numbers = together(THREADS, work)
    assert sorted(chain.from_iterable(numbers)) == list(range(1, THREADS * EACH + 1))
    assert memory.verify().problems == ()


def test_each_thread_finds_its_messages_in_its_order(memory: Memory) -> None:
    def work(thread: int) -> None:
        for n in range(EACH):
            memory.chat("monday").append(role="user", content=f"{thread} {n}")

    together(THREADS, work)
    history = contents(memory.chat("monday").history())
    for thread in range(THREADS):
        assert [c for c in history if c.startswith(f"{thread} ")] == [f"{thread} {n}" for n in range(EACH)]


def test_a_list_stays_together_among_threads(memory: Memory) -> None:
    def work(thread: int) -> None:
        for _ in range(3):
            memory.chat("monday").append([Message("user", f"{thread} {n}") for n in range(5)])

    together(THREADS, work)
    history = contents(memory.chat("monday").history())
    lists = [history[start : start + 5] for start in range(0, len(history), 5)]
    assert all(part == [f"{part[0][0]} {n}" for n in range(5)] for part in lists)


def test_threads_append_to_many_chats(memory: Memory) -> None:
    def work(thread: int) -> None:
        for n in range(EACH):
            memory.chat(f"chat {thread}").append(role="user", content=str(n))

    together(THREADS, work)
    assert {info.messages for info in memory.chats()} == {EACH}
    assert memory.verify().problems == ()


def test_threads_append_to_many_spaces(memory: Memory) -> None:
    def work(thread: int) -> bool:
        mine = memory.scoped(user=f"user {thread}")
        for n in range(EACH):
            mine.chat("monday").append(role="user", content=str(n))
        return seqs(mine.chat("monday").history()) == list(range(1, EACH + 1)) and mine.verify().ok

    assert all(together(THREADS, work))


def test_the_same_messages_from_many_threads_are_stored_once(memory: Memory) -> None:
    def work(_: int) -> list[Message]:
        return memory.chat("monday").append([Message("user", f"m{n}", id=f"m{n}") for n in range(EACH)])

    results = together(THREADS, work)
    assert all(result == memory.chat("monday").history() for result in results)
    assert memory.verify().problems == ()


def test_of_different_messages_with_one_id_one_is_stored(memory: Memory) -> None:
    def work(thread: int) -> str:
        try:
            return memory.chat("monday").append(role="user", content=f"by {thread}", id="m1").content
        except Conflict:
            return ""

    won = [content for content in together(THREADS, work) if content]
    assert won == contents(memory.chat("monday").history())


def test_readers_see_whole_appends_while_writers_write(memory: Memory) -> None:
    done = Event()

    def read() -> int:
        seen = 0
        while not done.is_set():
            numbers = seqs(memory.chat("monday").history())
            assert numbers == list(range(1, len(numbers) + 1))
            assert len(numbers) % 3 == 0
            assert len(numbers) >= seen
            seen = len(numbers)
        return seen

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        try:
            together(4, lambda _: [say(memory.chat("monday"), *"abc") for _ in range(EACH)])
        finally:
            done.set()
        assert all(reader.result() <= 4 * 3 * EACH for reader in readers)


def test_a_thread_reads_what_it_has_written(memory: Memory) -> None:
    def work(thread: int) -> bool:
        chat = memory.chat("monday")
        return all(
            chat.append(role="user", content=f"{thread} {n}") in chat.history(100) for n in range(EACH)
        )

    assert all(together(4, work))


def test_what_one_thread_appended_another_finds(memory: Memory) -> None:
    with ThreadPoolExecutor(1) as other:
        for n in range(EACH):
            say(memory.chat("monday"), str(n))
            assert other.submit(memory.chat("monday").stats).result().messages == n + 1


# Many processes

APPEND = """
import sys
from holdfast import Conflict, Memory, Message
location, name, count = sys.argv[1:]
with Memory(location, user="ada") as memory:
    print("ready", flush=True)
    input()
    for n in range(int(count)):
        memory.chat("monday").append([Message("user", f"{name} {n}"), Message("user", f"{name} {n} again")])
        memory.chat("shared").append(role="user", content=f"key {n}", id=f"key {n}")
        memory.chat(f"chat of {name}").append(role="user", content=f"own {n}")
"""


@pytest.fixture
def written_by_processes(shared_location: str, reopen: Callable[[], Memory]) -> Memory:
    """Three processes that wrote to one chat, and to one of their own, at the same time."""
    run_together(APPEND, [(shared_location, name, EACH) for name in "abc"])
    return reopen()


@pytest.mark.slow
def test_processes_append_to_one_database_without_loss(written_by_processes: Memory) -> None:
    memory = written_by_processes
    history = memory.chat("monday").history()
    assert seqs(history) == list(range(1, 3 * 2 * EACH + 1))
    assert {m.content for m in history} == {
        f"{p} {n}{s}" for p in "abc" for n in range(EACH) for s in ("", " again")
    }
    assert contents(memory.chat("shared").history()) == [f"key {n}" for n in range(EACH)]
    assert memory.chat("chat of b").stats().messages == EACH
    assert memory.verify().problems == ()


def test_the_same_id_with_other_meta_is_a_conflict(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append(role="user", content="hello", id="one", meta={"channel": "mail"})
    assert chat.append(role="user", content="hello", id="one", meta={"channel": "mail"}).seq == 1
    with pytest.raises(Conflict):
        chat.append(role="user", content="hello", id="one", meta={"channel": "phone"})


def test_a_number_in_a_dict_is_an_id(memory: Memory) -> None:
    chat = memory.chat("monday")
    for _ in range(2):
        chat.append({"role": "user", "content": "hello", "id": 7})
    assert [message.id for message in chat.history()] == ["7"]


WRAPPED = [
    "<command-name>/clear</command-name>\n  <command-message>clear</command-message>\n<command-args></command-args>",
    "<local-command-stdout>Set model to x</local-command-stdout>",
    "Caveat: The messages below were generated by the user while running local commands. DO NOT respond to these messages.",
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
