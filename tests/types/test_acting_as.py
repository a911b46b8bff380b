"""Who acts: context variables for code that has no handle, and handles and chats that do not follow them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from holdfast import InvalidInput, Memory, Scope, acting_as
from tables import each


@pytest.fixture
def unbound(location: str) -> Iterator[Memory]:
    """Open a memory without a user or an agent of its own."""
    with Memory(location) as opened:
        yield opened


@pytest.fixture
def quick() -> Iterator[Memory]:
    """Open such a memory where no database matters."""
    with Memory(":memory:") as opened:
        yield opened


def texts(memory: Memory) -> list[str]:
    return [record.text for record in memory.records()]


# A block


def test_a_handle_without_a_user_acts_for_the_one_that_is_named(unbound: Memory) -> None:
    with acting_as(user="ada", agent="coach", chat="monday", source="tool"):
        record = unbound.remember("it rains", "finding")
        assert unbound.scope == Scope("", "ada", "coach")
        assert texts(unbound) == ["it rains"]
        assert [hit.id for hit in unbound.recall("rains")] == [record.id]
    assert (record.agent, record.chat, record.by) == ("coach", "monday", "tool")
    assert unbound.scoped(user="ada").get(record.id) == record
    assert unbound.scope == Scope()
    with pytest.raises(KeyError), acting_as(user="bob"):
        raise KeyError
    assert unbound.scope == Scope()
    chat = unbound.chat("news")
    with acting_as(user="ada"):
        chat.append(role="system", content="the office is closed")
        assert unbound.chats() == []
    assert [info.id for info in unbound.chats()] == ["news"]


def test_blocks_nest_and_keep_what_they_do_not_name(quick: Memory) -> None:
    with acting_as(user="ada", agent="coach", chat="monday", source="user"):
        with acting_as(agent="chef"), acting_as(chat="tuesday"):
            record = quick.remember("it rains", "finding")
            assert quick.scope == Scope("", "ada", "chef")
            assert (record.agent, record.chat, record.by) == ("chef", "tuesday", "user")
        with acting_as(user="bob", source="reflect"):
            assert quick.scope == Scope("", "bob", "coach")
            assert quick.remember("it snows", "finding").by == "reflect"
        assert quick.scope == Scope("", "ada", "coach")
        assert quick.remember("it hails", "finding").chat == "monday"
    assert texts(quick.scoped(user="ada")) == ["it rains", "it hails"]
    assert texts(quick.scoped(user="bob")) == ["it snows"]


def test_an_argument_goes_before_who_acts(quick: Memory) -> None:
    with acting_as(user="ada", agent="coach", chat="monday", source="tool"):
        record = quick.remember("it rains", "finding", by="user", chat="tuesday")
        assert (record.by, record.chat) == ("user", "tuesday")
        assert quick.chat("tuesday").remember("it snows", "finding").chat == "tuesday"
        with acting_as(user="", agent=""):
            assert quick.scope == Scope(), "a name can be taken back"


@each(
    "wrong",
    [
        {"user": 5},
        {"user": " "},
        {"user": "/" * 171},
        {"agent": b"coach"},
        {"chat": ""},
        {"chat": 5},
        {"source": "god"},
        {"source": ["user"]},
    ],
)
def test_who_cannot_act_is_refused_at_the_block(quick: Memory, wrong: dict[str, Any]) -> None:
    with acting_as(user="ada", chat="monday"):
        with pytest.raises(InvalidInput), acting_as(**wrong):
            pytest.fail("the block was entered")
        assert quick.scope.user == "ada"


# Who does not follow


def test_a_handle_with_its_own_user_is_not_redirected(memory: Memory) -> None:
    with acting_as(user="bob", source="user"):
        memory.remember("it rains", "finding")
        memory.scratchpad["key"] = "value"
        memory.chat("monday").append(role="user", content="does it rain?")
        assert memory.scope.user == "ada"
        assert len(memory.recall("rain")) == 2
    assert texts(memory) == ["it rains"]
    assert dict(memory.scratchpad) == {"key": "value"}
    bob = memory.scoped(user="bob")
    assert (bob.records(), bob.chats(), dict(bob.scratchpad), bob.version()) == ([], [], {}, 0)


def test_a_handle_with_its_own_agent_follows_the_user_only(quick: Memory) -> None:
    with acting_as(user="ada", agent="coach"):
        assert quick.scoped(agent="chef").scope == Scope("", "ada", "chef")
        assert quick.scoped(user="bob").scope == Scope("", "bob", "coach")
        assert quick.scoped(user="bob", agent="chef").scope == Scope("", "bob", "chef")
        assert quick.scoped(tenant="acme").scope == Scope("acme", "ada", "coach")


def test_a_chat_stays_with_the_user_it_was_opened_for(unbound: Memory) -> None:
    with acting_as(user="ada", agent="coach"):
        chat, pad, view = unbound.chat("monday"), unbound.scratchpad, unbound.at(0)
        with acting_as(user="bob", agent="chef"):
            chat.append(role="user", content="does it rain?")
            record = chat.remember("it rains", "finding")
            chat.scratchpad["key"] = "value"
            assert (record.agent, record.chat) == ("coach", "monday")
            assert "does it rain?" in str(chat.prompt().window.messages)
            with chat.run() as run:
                run.remember("it pours")
                assert "it pours" in chat.prompt().system
            assert unbound.chat("monday").history() == []
            pad["key"] = "value"
            assert (dict(unbound.scratchpad), view.scope.user) == ({}, "ada")
    chat.append(role="assistant", content="it does")
    assert len(chat.history()) == 2
    assert [info.agent for info in unbound.chats(user="ada")] == ["coach"]
    assert texts(unbound.scoped(user="ada")) == ["it rains"]
    assert texts(unbound.scoped(user="bob")) == []
    assert dict(unbound.scoped(user="ada").scratchpad) == {"key": "value"}


def test_a_chat_without_an_id_is_the_one_that_acts(quick: Memory) -> None:
    with acting_as(user="ada", chat="monday"):
        chat = quick.chat()
        note = quick.remember("the door is red", "note")
        assert (chat.id, [one.id for one in chat.notes()]) == ("monday", [note.id])
        with acting_as(chat="tuesday"):
            assert (quick.chat().id, quick.chat("friday").id, chat.id) == ("tuesday", "friday", "monday")


# Threads and tasks


def test_threads_act_each_for_its_own(unbound: Memory) -> None:
    together = threading.Barrier(4)

    def work(user: str) -> list[str]:
        with acting_as(user=user, agent=f"agent of {user}"):
            together.wait()
            for n in range(5):
                unbound.remember(f"{user} {n}", "finding")
            together.wait()
            assert unbound.scope == Scope("", user, f"agent of {user}")
            return texts(unbound)

    users = ["ada", "bob", "eve", "zoe"]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, users)) == [[f"{user} {n}" for n in range(5)] for user in users]
