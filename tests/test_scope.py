"""Whose memory it is: nothing of one space is ever seen from another."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import InvalidInput, Memory, Scope
from holdfast.providers.null import NullMemory
from tables import each

TRICKY = [
    (("a/b", "c"), ("a", "b/c")),
    (("a", ""), ("", "a")),
    (("a%2Fb", ""), ("a/b", "")),
    (("a%", "b"), ("a%25", "b")),
    (("Ada", ""), ("ada", "")),
    (("é", ""), ("e\u0301", "")),
    (("ß", ""), ("ss", "")),
    (("a_b", ""), ("axb", "")),
    (("a%b", ""), ("axb", "")),
    (("a\u200bb", ""), ("ab", "")),
]


def test_the_agent_is_no_part_of_the_space_nor_the_user_of_what_all_share() -> None:
    assert Scope("acme", "ada", "coach").space == Scope("acme", "ada", "cook").space
    assert Scope("acme", "ada", "coach").shared == Scope("acme", "", "coach")


@each("part", ["tenant", "user", "agent"])
@each(
    "value",
    [None, 7, b"ada", " ", "\t", "a\nb", "a\x00b", "a\x7fb", "\ud800", "x" * 513, "é" * 257, "/" * 171],
)
def test_a_part_that_is_no_name_is_refused(part: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=part):
        Scope(**{part: value})


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


def test_what_a_tenant_shares_is_recalled_by_its_users_only(memory: Memory) -> None:
    memory.chat("monday").append(role="user", content="the Berlin marathon of Ada")
    memory.scoped(user="").chat("news").append(role="user", content="the Berlin marathon")
    assert {hit.chat for hit in memory.recall("Berlin marathon")} == {"news", "monday"}
    assert [hit.chat for hit in memory.scoped(user="bob").recall("Berlin marathon")] == ["news"]
    assert memory.scoped(tenant="acme").recall("Berlin marathon") == []


def test_a_memory_for_a_bad_scope_makes_no_file(tmp_path: Any) -> None:
    with pytest.raises(InvalidInput, match="tenant"):
        Memory(tmp_path / "memory.db", tenant=" ")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidInput, match="user"), Memory(":memory:") as memory:
        memory.scoped(user="a\nb")


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
