"""Chats: append, append the same again, read back and count; calls of tools and their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat_messages import NO_COUNTS, NOON, contents, say, seqs
from holdfast import ChatStats, Conflict, InvalidInput, Memory, Message, ToolCall
from soak import cases
from tables import each

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


@each("thing", ["", "hello", b"", b"hello", 0, 7, False, {"role", "user"}, iter(()), object()])
def test_what_is_no_message_cannot_be_appended(thing: Any) -> None:
    with Memory(":memory:") as memory, pytest.raises(InvalidInput):
        memory.chat("monday").append(thing)


def test_an_append_without_anything_says_what_to_pass() -> None:
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match="role="):
        memory.chat("monday").append()


@each("field", [{"role": "user"}, {"id": "m1"}, {"meta": {"a": 1}}, {"at": NOON}])
def test_fields_beside_a_message_are_refused_and_not_dropped(field: dict[str, Any]) -> None:
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match="beside"):
        memory.chat("monday").append({"role": "user", "content": "hello"}, **field)


@each("name", ["", "  ", "a\nb", "a\x00", "\ud800", "x" * 513, 7, b"monday"])
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


@settings(max_examples=cases(10, 120), suppress_health_check=[HealthCheck.function_scoped_fixture])
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


@each("argument", ["limit", "before", "after"])
@each("value", NO_COUNTS)
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
