from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast import Explanation, InvalidInput, Memory, Message
from holdfast.text.analyze import hash_same
from holdfast.text.prose import split
from recall_corpora import QUERIES, START, Said, conversations, tell
from soak import cases
from tables import each

pytest_plugins = ["recall_fixtures"]

RACE = [
    Said("monday", "I train for the Berlin marathon", "user", minutes=0),
    Said("monday", "Which month is it in?", "assistant", minutes=1),
    Said("monday", "In September", "user", minutes=2),
    Said("tuesday", "The marathon in Berlin is sold out, is there a hotel?", "user", minutes=600),
    Said("tuesday", "A cup of tea", "assistant", minutes=10_000),
]


def places(explanation: Explanation) -> dict[str, tuple[tuple[str, ...], int]]:
    return {one.word: (one.places, one.documents) for one in explanation.words}


# Against the recall itself


# Fifteen messages in one block, of which one has a word of the query.
BESIDE = [
    Said("a", text, "user", minutes=0)
    for text in [*["berlin"] * 3, "berlin berlin berlin", "berlin", "berlin", "Ёлка", *["berlin"] * 8]
]


@pytest.mark.slow
@settings(max_examples=cases(15, 180))
@example(BESIDE, "strasse cafe ёлка", None, None, 0)
@given(
    said=conversations(),
    query=st.sampled_from(QUERIES),
    roles=st.none() | st.lists(st.sampled_from(["user", "assistant", "tool"]), min_size=1, max_size=2),
    chat=st.none() | st.sampled_from("abc"),
    limit=st.integers(0, 12),
)
def test_rank_and_score_are_those_of_the_recall(
    spaces: Iterator[Memory], said: list[Said], query: str, roles: Any, chat: str | None, limit: int
) -> None:
    memory = next(spaces)
    tell(memory, said)
    for number in range(4):
        memory.remember(f"{said[number % len(said)].text[:500]} garden {number}", "finding")
    filters = {"roles": roles, "chat": chat}
    hits = memory.recall(query, limit=100_000, **filters)
    for rank, hit in enumerate(hits, 1):
        explained = memory.explain(query, hit, limit=limit, **filters)
        assert (explained.rank, explained.hit, explained.excluded) == (rank, hit, ())
        assert explained.found == (rank <= limit)
        assert explained.outranked_by == tuple(hits[: rank - 1][:5])
        assert explained.last_score == (hits[:limit][-1].score if hits[:limit] else None)
        assert {one.word for one in explained.words if "text" in one.places} <= set(hit.why.words)
    others = {(hit.chat, hit.seq) for hit in hits if hit.source == "message"}
    # Of equal texts one is the hit.
    told = {hash_same(*split(hit.role or "", hit.text)) for hit in hits if hit.source == "message"}
    for one in "abc":
        for message in memory.chat(one).history():
            same = hash_same(*split(message.role, message.content or ""))
            if (one, message.seq) not in others and same not in told:
                explained = memory.explain(query, f"{one}#{message.seq}", limit=limit, **filters)
                assert (explained.rank, explained.found, explained.hit.score) == (None, False, 0.0)
                assert explained.excluded or explained.lacks == tuple(w.word for w in explained.words)


# Words


def test_each_word_is_where_it_stands(space: Memory) -> None:
    tell(space, RACE)
    explained = space.explain("In which month is the Berlin marathon, and the dentist?", "monday#2")
    assert places(explained) == {
        "month": (("text",), 1),
        "berlin": (("neighbours",), 2),
        "marathon": (("neighbours",), 2),
        "dentist": ((), 0),
    }
    assert explained.lacks == ("dentist",)


def test_a_related_word_and_output_are_named(space: Memory) -> None:
    tell(space, RACE)
    space.chat("wednesday").append(role="assistant", content="All is well.\n```\nkettle\n```")
    assert places(space.explain("beverage", "tuesday#2")) == {"beverage": (("related",), 0)}
    (word,) = space.explain("kettle", "wednesday#1").words
    assert (word.places, word.documents) == (("output",), 1)


def test_an_earlier_version_is_explained_as_of_then(space: Memory) -> None:
    tell(space.scoped(agent="coder"), RACE[3:])
    own = space.scoped(agent="planner")
    tell(own, RACE[:1])
    own.remember("A zebra", "finding")
    version = own.version()
    own.remember("The Berlin zoo", "finding")
    own.chat("later").append(role="user", content="berlin", at=START + timedelta(days=90_000))
    assert places(own.explain("berlin", "monday#1")) == {"berlin": (("text",), 3)}
    then = own.at(version)
    (hit,) = then.recall("berlin", sources=["message", "record"], since=START, until="2023-01-01")
    assert then.explain("berlin", hit).hit.seq == 1
    assert places(then.explain("berlin", hit)) == {"berlin": (("text",), 1)}
    with pytest.raises(InvalidInput, match="not found in this scope"):
        then.explain("berlin", "later#1")


# Filters


@each(
    ("name", "value"),
    [
        ("chat", "tuesday"),
        ("roles", ["assistant"]),
        ("since", START + timedelta(minutes=1)),
        ("until", START),
        ("sources", ["record"]),
        ("kinds", ["fact"]),
        ("tags", ["run"]),
        ("min_score", 1.0),
    ],
)
def test_the_filter_that_excludes_a_message_is_named(spaces: Iterator[Memory], name: str, value: Any) -> None:
    space = next(spaces)
    tell(space, RACE)
    space.remember("User lives in Berlin", tags=["run"])
    filters: dict[str, Any] = {name: value}
    explained = space.explain("month berlin", "monday#1", **filters)
    assert (explained.excluded, explained.found) == ((name,), False)


def test_what_a_score_excludes_keeps_its_rank_and_several_filters_are_named(space: Memory) -> None:
    tell(space, RACE)
    first, *_, last = space.recall("berlin marathon")
    explained = space.explain("berlin marathon", last, min_score=first.score)
    assert explained.excluded == ("min_score",)
    assert (explained.rank, explained.found, explained.last_score) == (4, False, first.score)
    explained = space.explain("berlin", "monday#1", roles=["tool"], chat="b", since="2150-01-01")
    assert explained.excluded == ("chat", "roles", "since")


@each(
    ("name", "value"),
    [
        ("chat", "tuesday"),
        ("roles", ["user"]),
        ("kinds", ["lesson"]),
        ("tags", ["other"]),
        ("since", "2150-01-01"),
        ("until", START),
        ("valid_at", "2020-01-01"),
        ("sources", ["message", "summary"]),
    ],
)
def test_the_filter_that_excludes_a_record_is_named(spaces: Iterator[Memory], name: str, value: Any) -> None:
    space = next(spaces)
    tell(space, RACE)
    record = space.remember("Hotels in Berlin are full", "finding", tags=["run"], since="2024-01-01")
    assert space.explain("berlin hotels", record.id).found
    filters: dict[str, Any] = {name: value}
    assert space.explain("berlin hotels", record.id, **filters).excluded == (name,)


def test_a_retracted_and_a_replaced_record_are_named(space: Memory) -> None:
    kept = space.remember("Berlin is far", "finding")
    space.retract(kept.id)
    explained = space.explain("berlin", kept.id)
    assert (explained.excluded, explained.hit.text, explained.words) == (("retracted",), "Berlin is far", ())
    record = space.remember("User lives in Berlin")
    space.replace(record.id, "User lives in Lisbon")
    explained = space.explain("berlin", record.id)
    assert (explained.hit.text, explained.rank, explained.lacks) == (
        "User lives in Lisbon",
        None,
        ("berlin",),
    )


def test_a_summary_is_explained(space: Memory) -> None:
    chat = space.chat("long")
    chat.append([Message("user", f"Step {n}: the Berlin marathon, kilometre {n}. " * 20) for n in range(30)])
    chat.compact(full=True, budget=1_000)
    (hit, *_) = space.recall("marathon", sources=["summary"])
    explained = space.explain("marathon", hit.id, sources=["summary"])
    assert (explained.rank, explained.hit) == (1, hit)
    assert space.explain("marathon", hit.id, sources=["message"]).excluded == ("sources",)
    assert space.explain("marathon", hit, sources=["summary"], until=START).excluded == ("until",)
    assert space.explain("marathon", hit, sources=["summary"], chat="other").excluded == ("chat",)


# What is hidden


def refusal(memory: Memory, reference: str) -> str:
    with pytest.raises(InvalidInput) as caught:
        memory.explain("berlin marathon", reference)
    return str(caught.value).replace(reference, "…")


def test_what_is_hidden_is_as_what_does_not_exist(space: Memory) -> None:
    bob = space.scoped(user="bob")
    coder, planner = space.scoped(agent="coder"), space.scoped(agent="planner")
    hidden = []
    for owner in (bob, coder):
        chat = owner.chat(f"of-{owner.scope.user}-{owner.scope.agent}")
        chat.append([Message("user", f"{n}. the Berlin marathon. " * 40) for n in range(30)])
        summaries = chat.compact(full=True, budget=1_000).summaries
        record = owner.remember("Berlin has a marathon", "finding")
        note = chat.remember("Berlin", "note")
        hidden += [f"{chat.id}#1", summaries[0].id, record.id, note.id]
    absent = refusal(planner, "nowhere#1")
    assert {refusal(planner, one) for one in hidden} == {absent}
    odd = ("rec_1", "#1", "1", "nowhere#1-2", f"nowhere#{10**30}", "%#1")
    assert {refusal(planner, one) for one in odd} == {absent}
    assert coder.explain("berlin", hidden[4]).rank is not None
    with coder.chat("monday").run() as run:
        assert refusal(coder, run.remember("Berlin").id) == absent


def test_credentials_are_masked(space: Memory) -> None:
    secret = "AKIAQ3EGRGB2M4XPIX5T"
    space.chat("a").append(role="user", content=f"The key of the server is {secret}, berlin")
    space.chat("b").append(role="user", content="server")
    assert secret not in repr(space.explain("server key", "a#1"))
    assert secret not in repr(space.explain("berlin server", "b#1"))
    assert secret in space.explain("server key", "a#1", secrets="show").hit.text


# As text


def test_it_prints_as_a_few_lines(space: Memory) -> None:
    tell(space, RACE)
    (first,) = space.recall("Berlin marathon hotel", limit=1)
    explained = space.explain("Berlin marathon hotel", "monday#1", limit=1)
    lines = str(explained).splitlines()
    assert lines.pop(1).startswith(f"Score {explained.hit.score:.2f}: ")
    assert lines == [
        "monday#1 is hit 2, not among the first 1.",
        "It has: berlin (in 2 documents), marathon (in 2 documents).",
        "It lacks: hotel (in 1 document).",
        f"1. {first.score:.2f}  tuesday#1  {first.text}",
        f"The last of the first 1 hits has {first.score:.2f}.",
    ]
    assert "no hit, because of: roles." in str(space.explain("berlin", "monday#1", roles=["tool"]))
    assert "no hit: it has no word of the query." in str(space.explain("dentist", "monday#1"))
