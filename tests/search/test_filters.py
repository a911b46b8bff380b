from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from holdfast import Memory
from holdfast.errors import InvalidInput
from holdfast.search import weights
from holdfast.search.calibration import BY_WORDS
from holdfast.types import Role
from recall_corpora import QUERIES, START, Said, conversations, found, tell
from soak import cases
from tables import each

pytest_plugins = ["recall_fixtures"]

GARDEN = [
    Said("a", "the garden of the user", "user", minutes=0),
    Said("a", "the garden of the assistant", "assistant", minutes=1),
    Said("b", "the garden of another chat", "user", minutes=2),
]


# One filter at a time


def test_a_time_may_be_of_any_zone_and_text(space: Memory) -> None:
    tell(space, GARDEN)
    at = START + timedelta(minutes=2)
    elsewhere = at.astimezone(timezone(timedelta(hours=-7)))
    for since in (at, elsewhere, at.replace(tzinfo=None), at.isoformat(), f"{at:%Y-%m-%dT%H:%M:%SZ}"):
        assert found(space.recall("garden", since=since)) == ["the garden of another chat"]
    day = START.date()
    assert len(space.recall("garden", since=f"{day}", until=f"{day}")) == 3
    assert space.recall("garden", until=f"{day - timedelta(days=1)}") == []
    assert space.recall("garden", since=f"{day + timedelta(days=1)}") == []
    assert len(space.recall("garden", since=datetime.min, until=datetime.max)) == 3  # noqa: DTZ901 - no zone is UTC


def test_a_version_may_be_named_by_a_time_in_text(space: Memory) -> None:
    space.remember("The garden has roses.")
    assert space.at("9999-01-01").version() == 1
    assert space.at("1999-01-01T12:00:00+02:00").version() == 0
    with pytest.raises(InvalidInput):
        space.at("once")


def test_ten_hits_are_the_default(space: Memory) -> None:
    tell(space, [Said("a", f"the garden {n}") for n in range(15)])
    assert len(space.recall("garden")) == 10
    assert len(space.recall("garden", limit=2**100)) == 15
    assert space.recall("garden", min_score=1) == []
    assert space.recall("garden", roles=[]) == []


@each(
    "wrong",
    [
        {"limit": -1},
        {"limit": True},
        {"limit": "3"},
        {"min_score": -0.1},
        {"min_score": 1.1},
        {"min_score": float("nan")},
        {"min_score": None},
        {"roles": "usr"},
        {"roles": ["nobody"]},
        {"since": "yesterday"},
        {"until": "2023-13-01"},
        {"since": START.date()},
        {"until": 1_700_000_000},
        {"chat": ""},
        {"chat": 5},
        {"chat": "a\x00"},
    ],
)
def test_a_filter_of_a_wrong_kind_is_refused(quick: Memory, wrong: dict[str, Any]) -> None:
    tell(quick, GARDEN)
    with pytest.raises(InvalidInput):
        quick.recall("garden", **wrong)


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
# The first stands near one that borrows words, and has none to lend.
@example(
    said=[Said("a", text, "user", None, n) for n, text in enumerate(["berlin", "berlin", "berlin", "piano"])],
    query="my piano, Bob?",
    chat=None,
    roles=None,
    since=0,
    until=1,
    min_score=0.0,
    limit=1000,
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


def test_an_agent_finds_its_own_chats_and_nobody_in_particular_those_of_all(space: Memory) -> None:
    for agent in ("coach", "chef", ""):
        space.scoped(agent=agent).chat(f"of{agent}").append(role="user", content=f"the garden {agent}")
    assert found(space.scoped(agent="coach").recall("garden")) == ["the garden coach"]
    assert len(space.recall("garden")) == 3


# Users and tenants


def test_names_with_slashes_are_not_mixed_up(space: Memory) -> None:
    pairs = [
        ("a/b", "c"),
        ("a", "b/c"),
        ("a%2Fb", "c"),
        ("a", "b%2Fc"),
        ("a/b/c", "x"),
        ("", "Ada"),
        ("", "ada "),
    ]
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
    for tenant in ("", "evil", "acme2"):
        assert space.scoped(tenant=tenant, user="ada").recall("garden") == []
    tell(space, GARDEN)
    assert found(space.scoped(user="").recall("garden")) == ["No shoes in the garden"]


# Other states of a chat


def test_a_chat_is_found_in_every_state_and_a_refused_append_in_none(space: Memory) -> None:
    assert space.recall("garden") == []
    tell(space, GARDEN)
    space.chat("b").archive()
    space.chat("b").rename("something else")
    with pytest.raises(InvalidInput):
        space.chat("a").append([{"role": "user", "content": "the hidden garden"}, {"role": "nobody"}])
    assert len(space.recall("garden")) == 3
    assert space.verify().ok
