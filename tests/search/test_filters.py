from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import Memory
from holdfast.errors import InvalidInput
from holdfast.search import weights
from holdfast.search.calibration import BY_WORDS
from holdfast.types import Role
from recall_corpora import QUERIES, START, Said, conversations, found, tell
from soak import cases

pytest_plugins = ["recall_fixtures"]

GARDEN = [
    Said("a", "the garden of the user", "user", minutes=0),
    Said("a", "the garden of the assistant", "assistant", minutes=1),
    Said("b", "the garden of another chat", "user", minutes=2),
]


# One filter at a time


def test_a_chat_limits_the_hits_to_itself(space: Memory) -> None:
    tell(space, GARDEN)
    assert found(space.recall("garden", chat="b")) == ["the garden of another chat"]


def test_an_unknown_chat_has_no_hits(space: Memory) -> None:
    tell(space, GARDEN)
    assert space.recall("garden", chat="c") == []


def test_roles_limit_the_hits(space: Memory) -> None:
    tell(space, GARDEN)
    assert found(space.recall("garden", roles=["assistant"])) == ["the garden of the assistant"]


def test_no_roles_have_no_hits(space: Memory) -> None:
    tell(space, GARDEN)
    assert space.recall("garden", roles=[]) == []


def test_since_is_inclusive_and_until_is_not(space: Memory) -> None:
    tell(space, GARDEN)
    at = START + timedelta(minutes=1)
    assert found(space.recall("garden", since=at, until=at + timedelta(microseconds=1))) == [
        "the garden of the assistant"
    ]
    assert space.recall("garden", since=at, until=at) == []


def test_a_time_in_another_zone_is_the_same_time(space: Memory) -> None:
    tell(space, GARDEN)
    at = (START + timedelta(minutes=2)).astimezone(timezone(timedelta(hours=-7)))
    assert found(space.recall("garden", since=at)) == ["the garden of another chat"]


def test_a_time_without_a_zone_is_utc(space: Memory) -> None:
    tell(space, GARDEN)
    at = (START + timedelta(minutes=2)).replace(tzinfo=None)
    assert found(space.recall("garden", since=at)) == ["the garden of another chat"]


def test_a_time_may_be_text(space: Memory) -> None:
    tell(space, GARDEN)
    at = START + timedelta(minutes=2)
    assert found(space.recall("garden", since=at.isoformat())) == ["the garden of another chat"]
    assert found(space.recall("garden", since=f"{at:%Y-%m-%dT%H:%M:%SZ}")) == ["the garden of another chat"]
    day = START.date()
    assert len(space.recall("garden", since=f"{day}", until=f"{day}")) == 3
    assert space.recall("garden", until=f"{day - timedelta(days=1)}") == []
    assert space.recall("garden", since=f"{day + timedelta(days=1)}") == []


def test_a_version_may_be_named_by_a_time_in_text(space: Memory) -> None:
    space.remember("The garden has roses.")
    assert space.at("9999-01-01").version() == 1
    assert space.at("1999-01-01T12:00:00+02:00").version() == 0
    with pytest.raises(InvalidInput):
        space.at("once")


def test_the_ends_of_the_calendar_are_times(space: Memory) -> None:
    tell(space, GARDEN)
    assert len(space.recall("garden", since=datetime.min, until=datetime.max)) == 3  # noqa: DTZ901 - no zone is UTC


def test_a_limit_of_0_has_no_hits(space: Memory) -> None:
    tell(space, GARDEN)
    assert space.recall("garden", limit=0) == []


def test_a_huge_limit_has_all_hits(space: Memory) -> None:
    tell(space, GARDEN)
    assert len(space.recall("garden", limit=2**100)) == 3


def test_ten_hits_are_the_default(space: Memory) -> None:
    tell(space, [Said("a", f"the garden {n}") for n in range(15)])
    assert len(space.recall("garden")) == 10


def test_a_minimal_score_of_1_leaves_what_is_perfect(space: Memory) -> None:
    tell(space, GARDEN)
    assert space.recall("garden", min_score=1) == []


@pytest.mark.slow
def test_the_score_of_a_hit_as_minimal_score_keeps_it(spaces: Iterator[Memory]) -> None:
    space = next(spaces)
    tell(space, [Said(f"chat{n}", f"berlin {'coffee ' * (n % 7)}{n} http header garden") for n in range(60)])
    for query in QUERIES:
        scores = [hit.score for hit in space.recall(query, limit=1000)]
        for score in scores:
            kept = space.recall(query, limit=1000, min_score=score)
            assert [hit.score for hit in kept] == [other for other in scores if other >= score]


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": -1},
        {"limit": True},
        {"limit": 2.5},
        {"limit": None},
        {"limit": "3"},
        {"min_score": -0.1},
        {"min_score": 1.1},
        {"min_score": float("nan")},
        {"min_score": "high"},
        {"min_score": None},
        {"roles": "usr"},
        {"roles": ["nobody"]},
        {"roles": [None]},
        {"roles": 5},
        {"roles": [["user"]]},
        {"since": "yesterday"},
        {"until": "2023-13-01"},
        {"since": START.date()},
        {"until": 1_700_000_000},
        {"chat": ""},
        {"chat": 5},
        {"chat": "a\x00"},
    ],
    ids=str,
)
def test_a_filter_of_a_wrong_kind_is_refused(space: Memory, wrong: dict[str, Any]) -> None:
    tell(space, GARDEN)
    with pytest.raises(InvalidInput):
        space.recall("garden", **wrong)


# All filters together, against filtering by hand


@pytest.fixture
def unraised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave later messages where they are: what raises one may be filtered out itself."""
    monkeypatch.setattr(weights, "WEIGHTS", weights.WEIGHTS._replace(later=0.0))


@pytest.mark.slow
@pytest.mark.usefixtures("unraised")
@settings(max_examples=cases(37, 450), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    said=conversations(),
    query=st.sampled_from(QUERIES),
    chat=st.none() | st.sampled_from("abc"),
    roles=st.none() | st.lists(st.sampled_from(["user", "assistant", "tool"]), max_size=2),
    since=st.none() | st.integers(0, 20_000),
    until=st.none() | st.integers(0, 20_000),
    min_score=st.just(0.0) | st.floats(0, 0.5),
    limit=st.integers(0, 12) | st.just(1000),
)
def test_filters_leave_of_the_full_ranking_what_passes_them(
    spaces: Iterator[Memory],
    said: list[Said],
    query: str,
    chat: str | None,
    roles: list[Role] | None,
    since: int | None,
    until: int | None,
    min_score: float,
    limit: int,
) -> None:
    memory = next(spaces)
    # Of equal texts only the best is a hit, which may be one that is filtered out.
    tell(memory, [one._replace(text=f"{one.text} {number}") for number, one in enumerate(said)])
    after = None if since is None else START + timedelta(minutes=since)
    before = None if until is None else START + timedelta(minutes=until)
    every = memory.recall(query, limit=1000)
    scores = BY_WORDS["message"].scores(np.array([hit.score for hit in every])).tolist()
    expected = [
        (hit, score)
        for hit, score in zip(every, scores, strict=True)
        if chat in (None, hit.chat)
        and (roles is None or hit.role in roles)
        and (after is None or hit.at >= after)
        and (before is None or hit.at < before)
    ]
    recall = partial(memory.recall, query, chat=chat, roles=roles, since=after, until=before)
    got = recall(limit=1000)
    assert [replace(hit, score=0) for hit in got] == [replace(hit, score=0) for hit, _ in expected]
    assert [dict(hit.why) for hit in got] == [dict(hit.why) for hit, _ in expected]
    # A hit is the likelier, the less there is beside it; what it was before that is the same.
    before_that = BY_WORDS["message"].scores(np.array([hit.score for hit in got]))
    assert before_that == pytest.approx([score for _, score in expected])
    assert recall(limit=limit, min_score=min_score) == [hit for hit in got if hit.score >= min_score][:limit]


# Agents


def test_an_agent_finds_only_its_own_chats(space: Memory) -> None:
    for agent in ("coach", "chef"):
        space.scoped(agent=agent).chat(agent).append(role="user", content=f"the garden of the {agent}")
    assert found(space.scoped(agent="coach").recall("garden")) == ["the garden of the coach"]


def test_without_an_agent_the_chats_of_all_are_found(space: Memory) -> None:
    for agent in ("coach", "chef", ""):
        space.scoped(agent=agent).chat(f"of{agent}").append(role="user", content=f"the garden {agent}")
    assert len(space.recall("garden")) == 3


# Users and tenants


@pytest.mark.parametrize(
    ("tenant", "user"),
    [
        ("", "bob"),
        ("acme", "ada"),
        ("", "Ada"),
        ("", "ada "),
        ("", "ada/"),
        ("ada", ""),
        ("", "/ada"),
        ("", "%"),
    ],
)
def test_nothing_of_another_user_is_found(space: Memory, tenant: str, user: str) -> None:
    tell(space, GARDEN)
    assert space.scoped(tenant=tenant, user=user).recall("garden") == []


def test_names_with_slashes_are_not_mixed_up(space: Memory) -> None:
    pairs = [("a/b", "c"), ("a", "b/c"), ("a%2Fb", "c"), ("a", "b%2Fc"), ("a/b/c", "")]
    for tenant, user in pairs:
        space.scoped(tenant=tenant, user=user).chat("x").append(
            role="user", content=f"garden {tenant} {user}"
        )
    for tenant, user in pairs:
        hits = space.scoped(tenant=tenant, user=user).recall("garden")
        assert found(hits) == [f"garden {tenant} {user}"]


def test_what_a_tenant_shares_is_found_by_its_users(space: Memory) -> None:
    space.scoped(user="").chat("rules").append(role="system", content="No shoes in the garden")
    for user in ("ada", "bob"):
        hits = space.scoped(user=user).recall("garden")
        assert found(hits) == ["No shoes in the garden"]


def test_what_a_tenant_shares_is_not_found_by_another_tenant(space: Memory) -> None:
    space.scoped(user="").chat("rules").append(role="system", content="No shoes in the garden")
    for tenant in ("", "evil", "acme2"):
        assert space.scoped(tenant=tenant, user="ada").recall("garden") == []


def test_what_a_user_says_is_not_found_in_what_the_tenant_shares(space: Memory) -> None:
    tell(space, GARDEN)
    assert space.scoped(user="").recall("garden") == []


def test_own_and_shared_messages_are_ranked_together(space: Memory) -> None:
    space.scoped(user="").chat("rules").append(role="system", content="Water the plants in the garden")
    tell(space, [Said("a", "the garden"), Said("b", "a plant from the garden")])
    hits = space.recall("water the plants in the garden")
    assert hits[0].text == "Water the plants in the garden"
    assert len(hits) == 3
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_the_same_chat_and_seq_in_both_spaces_are_two_hits(space: Memory) -> None:
    space.scoped(user="").chat("a").append(role="user", content="the shared garden")
    space.chat("a").append(role="user", content="my own garden")
    assert sorted(found(space.recall("garden"))) == ["my own garden", "the shared garden"]


def test_a_handle_on_what_is_shared_finds_each_message_once(space: Memory) -> None:
    shared = space.scoped(user="")
    tell(shared, GARDEN)
    assert len(shared.recall("garden")) == 3


# Other states of a chat


def test_an_archived_chat_is_still_found(space: Memory) -> None:
    tell(space, GARDEN)
    space.chat("b").archive()
    assert len(space.recall("garden")) == 3


def test_a_renamed_chat_is_still_found(space: Memory) -> None:
    tell(space, GARDEN)
    space.chat("b").rename("something else")
    assert len(space.recall("garden")) == 3


def test_a_message_that_was_sent_twice_under_one_id_is_found_once(space: Memory) -> None:
    for _ in range(2):
        space.chat("a").append(role="user", content="the garden", id="m1")
    assert len(space.recall("garden")) == 1


def test_an_empty_space_has_no_hits(space: Memory) -> None:
    assert space.recall("garden") == []


def test_a_refused_append_leaves_nothing_to_be_found(space: Memory) -> None:
    tell(space, GARDEN)
    with pytest.raises(InvalidInput):
        space.chat("a").append([{"role": "user", "content": "the hidden garden"}, {"role": "nobody"}])
    assert len(space.recall("garden")) == 3
    assert space.verify().ok
