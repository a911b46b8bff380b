"""Acting for other users: a handle of one user does so only when it was opened for that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from holdfast import Denied, InvalidInput, Memory, acting_as

FOREIGN: dict[str, Callable[[Memory], object]] = {
    "scope to another user": lambda memory: memory.scoped(user="bob"),
    "scope to what all share": lambda memory: memory.scoped(user=""),
    "scope to another tenant": lambda memory: memory.scoped(tenant="acme"),
    "list another's chats": lambda memory: memory.chats(user="bob"),
    "list what all share": lambda memory: memory.chats(user=""),
    "erase another user": lambda memory: memory.erase(user="bob"),
    "work for everyone": lambda memory: memory.learning.work(everyone=True),
    "estimate for everyone": lambda memory: memory.learning.work(everyone=True, dry_run=True),
    "name all users": lambda memory: memory.grants.users(),
}
HANDLES: dict[str, Callable[[Memory], Memory]] = {
    "itself": lambda memory: memory.scoped(user="ada"),
    "for an agent of it": lambda memory: memory.scoped(user="ada").scoped(agent="coach"),
    "for the same user": lambda memory: memory.scoped(user="ada").scoped(user="ada"),
}


@pytest.mark.parametrize("handle", HANDLES)
@pytest.mark.parametrize("act", FOREIGN)
def test_a_handle_of_one_user_does_not_act_for_another(location: str, act: str, handle: str) -> None:
    with Memory(location) as everybody:
        everybody.scoped(user="bob").chat("secret").append(role="user", content="The code is 4711.")
        with pytest.raises(Denied) as denied:
            FOREIGN[act](HANDLES[handle](everybody))
        assert "'ada'" in denied.value.what
        assert "admin=True" in denied.value.todo
        assert len(everybody.chats(user="bob")) == 1


@pytest.mark.parametrize("act", FOREIGN)
def test_one_that_was_opened_for_it_does(location: str, act: str) -> None:
    with Memory(location, user="ada", admin=True) as memory:
        memory.scoped(user="bob").chat("secret").append(role="user", content="The code is 4711.")
        FOREIGN[act](memory)
        FOREIGN[act](memory.scoped(user="eve").scoped(agent="coach")) if act != "erase another user" else None


def test_a_user_erases_lists_and_works_for_itself(location: str) -> None:
    with Memory(location, user="ada") as memory:
        chat = memory.chat("monday")
        chat.append(role="user", content="The code is 4711.")
        assert [info.id for info in memory.chats(user="ada")] == ["monday"]
        memory.learning.work()
        memory.erase(user="ada")
        assert memory.chats() == []


def test_users_are_those_of_the_tenant_of_whom_something_is_stored(location: str) -> None:
    with Memory(location) as memory:
        assert memory.grants.users() == []
        memory.scoped(user="bob").chat("monday").append(role="user", content="hello")
        memory.scoped(user="a/d%a").remember("Runs on Tuesdays.")
        memory.scoped(user="eve").scratchpad["week"] = "1"
        memory.scoped(user="reads only").recall("anything")
        memory.scoped(tenant="acme", user="mallory").chat("monday").append(role="user", content="hello")
        assert memory.grants.users() == memory.scoped(agent="coach").grants.users() == ["a/d%a", "bob", "eve"]
        assert memory.scoped(tenant="acme").grants.users() == ["mallory"]
        memory.remember("The office is in Berlin.")
        memory.erase(user="bob")
        assert memory.grants.users() == ["", "a/d%a", "eve"]


async def _awaited(memory: Memory) -> None:
    with pytest.raises(Denied):
        await memory.aio.chats(user="bob")
    with pytest.raises(Denied):
        await memory.aio.erase(user="bob")
    with pytest.raises(Denied):
        await memory.aio.learning.work(everyone=True)
    with pytest.raises(Denied):
        memory.aio.scoped(user="bob")


def test_awaited_it_is_the_same() -> None:
    with Memory(":memory:", user="ada") as memory:
        asyncio.run(_awaited(memory))


def test_a_handle_without_a_user_may_scope_to_any_whoever_acts() -> None:
    with Memory(":memory:") as memory, acting_as(user="ada"):
        assert memory.scoped(user="bob").scope.user == "bob"
        assert memory.chats(user="bob") == []


@pytest.mark.parametrize("admin", [None, 1, "yes"])
def test_what_is_neither_true_nor_false_is_refused(admin: object) -> None:
    with pytest.raises(InvalidInput, match="admin"):
        Memory(":memory:", admin=admin)  # type: ignore[arg-type]


# Undo


def test_a_bare_undo_leaves_a_constraint_and_names_what_it_needs(memory: Memory) -> None:
    memory.remember("Never plan runs on Mondays", "constraint", by="user")
    with pytest.raises(Denied, match="user") as denied:
        memory.undo()
    assert "by='user'" in denied.value.todo
    with acting_as(source="agent"), pytest.raises(Denied):
        memory.undo()
    assert len(memory.records(kind="constraint")) == 1
    memory.undo(by="user")
    assert memory.records(kind="constraint") == []


def test_who_acts_for_the_user_may_undo_a_constraint(quick: Memory) -> None:
    with acting_as(source="user"):
        quick.remember("Never plan runs on Mondays", "constraint")
        quick.undo()
    assert quick.records(kind="constraint") == []


def test_a_bare_undo_takes_back_what_an_agent_may_change(memory: Memory) -> None:
    memory.remember("Never plan runs on Mondays", "constraint", by="user")
    memory.remember("The shop opens at nine")
    assert [record.text for record in memory.undo()] == ["The shop opens at nine"]
    assert len(memory.records(kind="constraint")) == 1
