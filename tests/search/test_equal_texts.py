"""Texts that say the same are one hit, with their number; the question itself gives way to its answer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Memory
from holdfast.text.analyze import hash_same
from recall_corpora import START, Said, found, tell
from soak import cases
from tables import each

pytest_plugins = ["recall_fixtures"]

SAME = [
    "The harbour is closed.",
    "the harbour is closed",
    "Hello, the HARBOUR is closed!!",
    "Thanks! The harbour is closed",
]
REPEATED = [Said(f"chat{n}", text, minutes=n) for n, text in enumerate(SAME)]


def test_equal_texts_are_one_hit_with_their_number(space: Memory) -> None:
    tell(space, [*REPEATED, Said("other", "The harbour has a crane.")])
    (same,) = [hit for hit in space.recall("harbour closed") if "closed" in hit.text]
    assert (same.times, same.last) == (4, START + timedelta(minutes=3))
    (other,) = space.recall("crane")
    assert (other.times, other.last) == (1, None)


@each(
    ("one", "other"),
    [
        ("The harbour is closed.", "The harbour is closed?"),
        ("The harbour is closed.", "The harbour was closed."),
        ("harbour closed 1", "harbour closed 2"),
        ("harbour -> closed\n```\na = 1\n```", "harbour -> closed\n```\na = 2\n```"),
    ],
)
def test_what_says_something_else_is_another_hit(spaces: Iterator[Memory], one: str, other: str) -> None:
    space = next(spaces)
    tell(space, [Said("a", one), Said("b", other)])
    assert sorted(found(space.recall("harbour"))) == sorted([one, other])


@each(
    ("filters", "chat", "times"),
    [
        ({}, "chat3", 4),
        ({"chat": "chat1"}, "chat1", 1),
        ({"roles": ["assistant"]}, "chat2", 2),
        ({"until": START + timedelta(minutes=1)}, "chat0", 1),
        ({"since": START + timedelta(minutes=1), "until": START + timedelta(minutes=3)}, "chat2", 2),
        ({"where": {"n": {"$lt": 2}}}, "chat1", 2),
    ],
)
def test_a_copy_that_a_filter_excludes_gives_way_and_does_not_count(
    spaces: Iterator[Memory], filters: dict[str, Any], chat: str, times: int
) -> None:
    space = next(spaces)
    for n, role in enumerate(("user", "assistant", "assistant", "user")):
        message = {"role": role, "content": "lantern", "at": START + timedelta(minutes=n), "meta": {"n": n}}
        space.chat(f"chat{n}").append(message)
    assert [(hit.chat, hit.times) for hit in space.recall("lantern", **filters)] == [(chat, times)]


def test_the_copies_of_another_agent_or_user_are_not_counted(space: Memory) -> None:
    coach, chef, bob = space.scoped(agent="coach"), space.scoped(agent="chef"), space.scoped(user="bob")
    for n, one in enumerate((coach, chef, chef, bob)):
        one.chat(f"chat{n}").append(role="user", content="the harbour")
    seen = {one: [hit.times for hit in one.recall("harbour")] for one in (coach, chef, bob, space)}
    assert list(seen.values()) == [[1], [2], [1], [3]]


def test_an_erased_copy_is_not_counted(space: Memory) -> None:
    tell(space, REPEATED)
    assert space.recall("harbour")[0].times == 4
    space.erase(chat="chat3")
    assert [(hit.chat, hit.times) for hit in space.recall("harbour", chat="chat2")] == [("chat2", 1)]
    assert space.recall("harbour")[0].times == 3


def test_a_question_that_was_asked_before_gives_way_to_its_answer(space: Memory) -> None:
    question = "Who owns the houseboat?"
    tell(space, [said for n in range(12) for said in (Said(f"q{n}", question), Said(f"q{n}", f"Hm {n}."))])
    tell(space, [Said("answer", "The houseboat is owned by Ines Vidal.")])
    hits = space.recall(question, limit=3)
    assert hits[0].chat == "answer"
    assert [hit.times for hit in space.recall(question) if hit.text == question] == [12]


def test_a_prompt_does_not_recall_its_own_question_of_any_chat(space: Memory) -> None:
    for n in range(3):
        space.chat(f"q{n}").append(role="user", content="Who owns the houseboat?")
    space.chat("answer").append(role="user", content="The houseboat is owned by Ines Vidal.")
    chat = space.chat("now")
    chat.append(role="user", content="who owns the HOUSEBOAT?")
    assert found(chat.prompt(3_000, "who owns the HOUSEBOAT?").hits) == [
        "The houseboat is owned by Ines Vidal."
    ]


def test_a_prompt_says_how_often_a_text_was_said(quick: Memory) -> None:
    tell(quick, REPEATED)
    shown = str(quick.chat("now").prompt(3_000, "Is the harbour open?").messages)
    assert shown.lower().count("the harbour is closed") == 1
    assert "(said 4 times, last on 2022-07-01)" in shown


def test_a_copy_is_explained_by_what_it_is_and_not_as_one_without_words(quick: Memory) -> None:
    tell(quick, REPEATED)
    for place in range(4):
        assert "no word of the query" not in str(quick.explain("harbour", f"chat{place}#1"))


TEXTS = st.lists(
    st.sampled_from(["berlin", "tokyo", "please", "Berlin!", "coffee?", "…", "🍕"]), min_size=1, max_size=3
)


@pytest.mark.slow
@settings(max_examples=cases(40, 400))
@given(
    said=st.lists(st.tuples(st.sampled_from("abc"), TEXTS.map(" ".join)), min_size=1, max_size=25),
    query=st.sampled_from(
        ["berlin", "berlin tokyo coffee", "Where in Tokyo is the coffee?", "coffee berlin?"]
    ),
    limit=st.integers(0, 8),
    more=st.integers(0, 30),
)
def test_hits_are_distinct_sorted_and_begin_alike(
    spaces: Iterator[Memory], said: list[tuple[str, str]], query: str, limit: int, more: int
) -> None:
    space = next(spaces)
    tell(space, [Said(chat, text) for chat, text in said])
    hits = space.recall(query, limit=limit)
    every = space.recall(query, limit=limit + more)
    for some, most in ((hits, limit), (every, limit + more)):
        assert len(some) <= most
        assert len({hash_same(hit.text) for hit in some}) == len(some)
        assert [hit.score for hit in some] == sorted((hit.score for hit in some), reverse=True)
    assert every[: len(hits)] == hits
    for hit in every:
        assert hit.times == sum(hash_same(text) == hash_same(hit.text) for _, text in said)
