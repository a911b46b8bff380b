"""Projects of a user: what is written to one is found in no other, what is the user's in each."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast import InvalidInput, Memory, Scope
from holdfast.types import scope_of
from tables import each

NAMES = st.text(st.sampled_from("ab/%25F2:pt é"), min_size=1, max_size=5).filter(str.strip)
OPTIONAL = st.one_of(st.just(""), NAMES)
SCOPES = st.one_of(
    st.builds(Scope, OPTIONAL, OPTIONAL, project=OPTIONAL),
    st.builds(lambda tenant, team: Scope(tenant, team=team), OPTIONAL, NAMES),
)


@given(SCOPES, SCOPES)
@example(Scope("a", "b", project="c"), Scope("a", "b/c"))
@example(Scope("a", "", project="b"), Scope("a", "", team="b"))
@example(Scope("a", "", project="/b"), Scope("a", "", team="b"))
def test_two_spaces_are_written_differently(one: Scope, other: Scope) -> None:
    assert (one.space == other.space) == (one == other)
    assert scope_of(one.space) == one


@given(SCOPES, OPTIONAL)
def test_a_reference_names_the_space_that_it_was_made_of(scope: Scope, user: str) -> None:
    own = Scope(scope.tenant, user)
    if scope.user or scope.team or not scope.project or not user:
        assert own.named(own.reference(scope.space)).space == scope.space


@each(
    "wrong",
    ["", "shop", "project:", "team:", "user:", "team:a/b", "user:a/team:b", "user:a/project:", "user:a/b",
     "user:a/project:b/c", "tenant:x", "project:a/project:b", "User", "user:\n", 7, None, b"user"],
)  # fmt: skip
def test_what_is_no_reference_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidInput):
        Memory(":memory:", user="ada", reads=[wrong])  # type: ignore[list-item]


@each(
    "options",
    [
        {"reads": "shop"},
        {"reads": None},
        {"reads": ["tenant", *(f"team:{n}" for n in range(32))]},
        {"project": "shop", "team": "core"},
    ],
)
def test_a_handle_reads_few_spaces_and_writes_to_one(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Memory(":memory:", **options)


def test_one_recall_covers_the_project_the_user_and_the_tenant(memory: Memory) -> None:
    ada = memory.scoped(user="ada")
    shop = ada.scoped(project="shop")
    memory.scoped(user="").remember("All deployments happen on Tuesday")
    ada.remember("Ada announces deployments in the channel")
    shop.remember("Deployments of the shop need two reviews")
    found = {hit.space: hit for hit in shop.recall("deployments")}
    assert found.keys() == {"project:shop", "user", "tenant"}
    assert sum(found["user"].why.values()) == pytest.approx(1)
    assert found["project:shop"].why["nearness"] == pytest.approx(0.05)
    assert found["user"].why["nearness"] < 0.05
    assert [hit.space for hit in ada.recall("deployments")] == ["user", "tenant"]
    assert all("nearness" not in hit.why for hit in ada.recall("deployments"))


def test_what_two_spaces_know_is_found_once_in_the_nearest(memory: Memory) -> None:
    ada = memory.scoped(user="ada")
    shop = ada.scoped(project="shop")
    for handle in (memory.scoped(user=""), ada, shop):
        handle.remember("Deployments need two reviews")
    ada.remember("Deployments are announced")
    assert [(hit.space, hit.text) for hit in shop.recall("deployments", limit=2)] == [
        ("project:shop", "Deployments need two reviews"),
        ("user", "Deployments are announced"),
    ]


def test_the_constraints_of_a_person_follow_into_each_project(memory: Memory) -> None:
    ada = memory.scoped(user="ada")
    ada.remember("Never commit on Fridays", kind="constraint", by="user")
    ada.remember("Ada likes short answers", kind="profile")
    shop = ada.scoped(project="shop")
    shop.remember("Never drop tables of the shop", kind="constraint", by="user")
    shop.chat("monday").append(role="user", content="hello")
    text = shop.chat("monday").prompt(2_000).system
    assert "\n- Never drop tables of the shop" in text, "what is its own has no label"
    assert "- [the user] Never commit on Fridays" in text
    assert "[the user] Ada likes short answers" in text
    assert "shop" not in ada.scoped(project="site").chat("monday").prompt(2_000).system
    assert "[" not in ada.chat("monday").prompt(2_000).system
    ada.remember("Never drop a table", kind="constraint", by="user")
    assert shop.chat("monday").prompt(2_000).system == text, "it stays as it began"


def test_the_same_chat_in_two_spaces_is_two_chats(memory: Memory) -> None:
    ada = memory.scoped(user="ada")
    shop = ada.scoped(project="shop")
    ada.chat("monday").append(role="user", content="A marathon in Berlin")
    shop.chat("monday").append(role="user", content="A marathon of meetings")
    assert [hit.space for hit in shop.recall("marathon", chat="monday")] == ["project:shop"]
    both = shop.recall("marathon")
    assert {hit.space for hit in both} == {"project:shop", "user"}
    for hit in both:
        explained = shop.explain("marathon", hit)
        assert (explained.hit.space, explained.hit.text) == (hit.space, hit.text)
        assert explained.found
    shop.chat("tuesday").append(role="user", content="Which marathon?")
    block = "".join(str(one["content"]) for one in shop.chat("tuesday").prompt(2_000, "marathon").messages)
    assert ", the user, chat monday]" in block
    assert ", chat monday]" in block.replace(", the user, chat monday]", "")
    assert "project shop" not in block


def test_another_user_begins_without_project_and_reads(memory: Memory) -> None:
    ada = memory.scoped(user="ada", project="shop", reads=["team:core"])
    assert ada.scoped(agent="coach").scope == Scope("", "ada", "coach", project="shop", reads=("team:core",))
    assert ada.scoped(project="").scope == Scope("", "ada", reads=("team:core",))
    assert memory.scoped(project="x").scoped(user="bob").scope == Scope("", "bob")
