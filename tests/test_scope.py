"""Whose memory it is: nothing of one space is ever seen from another."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from holdfast import Closed, InvalidInput, Memory, Scope
from holdfast.providers.null import NullMemory
from soak import cases
from tables import each

PARTS = st.text(st.sampled_from("ab/%25F2 é'\"\\;-_.:"), max_size=5).filter(
    lambda part: not part or part.strip()
)
SPACES = st.tuples(PARTS, PARTS)
TRICKY = [
    (("a/b", "c"), ("a", "b/c")),
    (("a", "b"), ("b", "a")),
    (("a", ""), ("", "a")),
    (("", ""), ("a", "")),
    (("a%2Fb", ""), ("a/b", "")),
    (("a/b", ""), ("a", "b")),
    (("%", "2F"), ("%2F", "")),
    (("a%", "b"), ("a%25", "b")),
    (("Ada", ""), ("ada", "")),
    (("ada", ""), ("ada ", "")),
    (("é", ""), ("e\u0301", "")),
    (("ß", ""), ("ss", "")),
    (("a_b", ""), ("axb", "")),
    (("a%b", ""), ("axb", "")),
    (("ﬁ", ""), ("fi", "")),
    (("' OR '1'='1", ""), ("x", "")),
    (("1", ""), ("01", "")),
    (("a\u200bb", ""), ("ab", "")),
]


@given(SPACES, SPACES)
@example(("a/b", "c"), ("a", "b/c"))
@example(("a%2F", "c"), ("a/", "c"))
def test_two_spaces_are_written_differently(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (Scope(*one).space == Scope(*other).space) == (one == other)


def test_the_agent_is_no_part_of_the_space() -> None:
    assert Scope("acme", "ada", "coach").space == Scope("acme", "ada", "cook").space


def test_the_shared_space_of_a_tenant_has_no_user() -> None:
    assert Scope("acme", "ada", "coach").shared == Scope("acme", "", "coach")


@each("part", ["tenant", "user", "agent"])
@each(
    "value",
    [None, 7, b"ada", " ", "\t", "a\nb", "a\x00b", "a\x7fb", "\ud800", "x" * 513, "é" * 257, "/" * 171],
)
def test_a_part_that_is_no_name_is_refused(part: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=part):
        Scope(**{part: value})


@each(
    "value",
    ["", "x" * 512, "é" * 256, "/" * 170, "a b", "日本", "👩‍👩‍👧‍👦", "-", "'; DROP TABLE messages; --"],
)
def test_every_other_text_is_a_name(value: str) -> None:
    assert Scope(value, value, value).user == value


def test_names_that_are_as_long_as_can_be_fit_the_keys(memory: Memory) -> None:
    # Random characters, because a database may compress what repeats.
    longest = ["".join(chr(0x4E00 + n * 7919 * (part + 1) % 20_000) for n in range(170)) for part in range(5)]
    scoped = memory.scoped(tenant=longest[0], user=longest[1], agent=longest[2])
    message = {"role": "user", "content": "hello", "id": longest[3]}
    assert scoped.chat(longest[4]).append(message) == scoped.chat(longest[4]).history()[0]


@pytest.mark.parametrize(("one", "other"), TRICKY)
def test_a_chat_is_not_seen_from_another_space(
    memory: Memory, one: tuple[str, str], other: tuple[str, str]
) -> None:
    mine = memory.scoped(tenant=one[0], user=one[1])
    others = memory.scoped(tenant=other[0], user=other[1])
    mine.chat("monday").append(role="user", content="mine")
    assert (
        others.chat("monday").history(),
        others.chats(archived=None),
        others.chat("monday").stats().messages,
    ) == ([], [], 0)


@settings(max_examples=cases(10, 75), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(SPACES, st.integers(1, 3), min_size=2, max_size=5))
def test_each_space_has_its_own_chats(memory: Memory, lengths: dict[tuple[str, str], int]) -> None:
    before = {
        space: memory.scoped(tenant=space[0], user=space[1]).chat("monday").stats().messages
        for space in lengths
    }
    for (tenant, user), length in lengths.items():
        for _ in range(length):
            memory.scoped(tenant=tenant, user=user).chat("monday").append(
                role="user", content=f"of {tenant} and {user}"
            )
    for (tenant, user), length in lengths.items():
        history = memory.scoped(tenant=tenant, user=user).chat("monday").history(length)
        assert {message.content for message in history} == {f"of {tenant} and {user}"}
        assert history[-1].seq == before[tenant, user] + length


def test_the_same_message_id_in_two_spaces_is_two_messages(memory: Memory) -> None:
    for user in ("ada", "bob"):
        memory.scoped(user=user).chat("monday").append(role="user", content=f"by {user}", id="m1")
    assert memory.scoped(user="bob").chat("monday").history()[0].content == "by bob"


def test_the_same_message_id_in_two_chats_is_two_messages(memory: Memory) -> None:
    for chat in ("monday", "tuesday"):
        memory.chat(chat).append(role="user", content=chat, id="m1")
    assert memory.chat("tuesday").history()[0].content == "tuesday"


def test_a_call_in_one_chat_is_not_answered_in_another(memory: Memory) -> None:
    memory.chat("monday").append(
        {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "f"}}]}
    )
    assert (
        memory.chat("tuesday").append({"role": "tool", "tool_call_id": "c1", "content": "42"}).answers == ()
    )


def test_a_call_of_one_user_is_not_answered_by_another(memory: Memory) -> None:
    memory.chat("monday").append(
        {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "f"}}]}
    )
    answer = {"role": "tool", "tool_call_id": "c1", "content": "42"}
    assert memory.scoped(user="bob").chat("monday").append(answer).answers == ()


def test_renaming_and_archiving_touch_one_space_only(memory: Memory) -> None:
    for user in ("ada", "bob"):
        memory.scoped(user=user).chat("monday").append(role="user", content="hello")
    memory.chat("monday").rename("mine")
    memory.chat("monday").archive()
    assert [(info.title, info.archived) for info in memory.chats(user="bob")] == [("hello", False)]


def test_another_users_chats_are_listed_on_request(memory: Memory) -> None:
    memory.scoped(user="bob").chat("monday").append(role="user", content="hello")
    assert [(info.id, info.user) for info in memory.chats(user="bob")] == [("monday", "bob")]


def test_what_is_recalled_stays_within_the_space(memory: Memory) -> None:
    memory.chat("monday").append(role="user", content="the Berlin marathon")
    assert memory.scoped(user="bob").recall("Berlin marathon") == []


def test_what_a_tenant_shares_is_recalled_by_its_users(memory: Memory) -> None:
    memory.scoped(user="").chat("news").append(role="user", content="the Berlin marathon")
    assert [hit.chat for hit in memory.recall("Berlin marathon")] == ["news"]


def test_what_a_tenant_shares_is_not_recalled_by_another_tenant(memory: Memory) -> None:
    memory.scoped(user="").chat("news").append(role="user", content="the Berlin marathon")
    assert memory.scoped(tenant="acme").recall("Berlin marathon") == []


def test_a_handle_keeps_what_is_not_given_anew(memory: Memory) -> None:
    scoped = memory.scoped(tenant="acme", agent="coach").scoped(agent="cook")
    assert scoped.scope == Scope("acme", "ada", "cook")


def test_a_handle_can_give_up_its_agent(memory: Memory) -> None:
    assert memory.scoped(agent="coach").scoped(agent="").scope == Scope("", "ada", "")


def test_a_handle_for_a_bad_scope_cannot_be_made(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="user"):
        memory.scoped(user="a\nb")


def test_a_memory_for_a_bad_scope_makes_no_file(tmp_path: Any) -> None:
    with pytest.raises(InvalidInput, match="tenant"):
        Memory(tmp_path / "memory.db", tenant=" ")
    assert list(tmp_path.iterdir()) == []


def test_closing_one_handle_closes_all(memory: Memory) -> None:
    other = memory.scoped(user="bob")
    memory.close()
    with pytest.raises(Closed):
        other.chat("monday").history()


class Named(Memory):
    """A class of one's own, with an attribute of its own."""

    label = "none"

    def greeting(self) -> str:
        return f"{self.label} of {self.scope.user}"


def test_a_handle_of_a_class_of_ones_own_is_of_that_class() -> None:
    with Named(":memory:") as memory:
        memory.label = "the book"
        bob = memory.scoped(user="bob").scoped(agent="coach")
        assert bob.greeting() == "the book of bob"
        assert (bob.scope.agent, memory.scope.user) == ("coach", "")
        assert bob.chat("monday") == memory.scoped(user="bob").chat("monday")
        bob.remember("Ada runs")
        assert memory.records() == []

    class Nothing(NullMemory):
        pass

    assert isinstance(Nothing().scoped(user="bob"), Nothing)


def test_what_a_class_of_ones_own_does_is_awaited() -> None:
    class Shouting(Memory):
        def version(self) -> int:
            return -super().version()

    with Shouting(":memory:") as memory:
        memory.remember("A runner.", "profile")
        assert asyncio.run(memory.aio.version()) == -1
