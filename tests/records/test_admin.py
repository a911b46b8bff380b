"""Acting for other users: a handle of one user does so only when it was opened for that."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from holdfast import Denied, Memory, acting_as
from record_lists import fresh
from tables import each

FOREIGN: dict[str, Callable[[Memory], object]] = {
    "scope to another user": lambda memory: memory.scoped(user="bob"),
    "scope to what all share": lambda memory: memory.scoped(user=""),
    "scope to another tenant": lambda memory: memory.scoped(tenant="acme"),
    "list another's chats": lambda memory: memory.chats(user="bob"),
    "erase another user": lambda memory: memory.erase(user="bob"),
    "work for everyone": lambda memory: memory.learning.work(everyone=True),
    "estimate for everyone": lambda memory: memory.learning.work(everyone=True, dry_run=True),
    "name all users": lambda memory: memory.grants.users(),
}


HANDLES: list[Callable[[Memory], Memory]] = [
    lambda memory: memory.scoped(user="ada"),
    lambda memory: memory.scoped(user="ada").scoped(agent="coach"),
]


def test_a_handle_of_one_user_does_not_act_for_another(app: Memory) -> None:
    app.scoped(user="bob").chat("secret").append(role="user", content="The code is 4711.")
    for act, handle in product(FOREIGN.values(), HANDLES):
        with pytest.raises(Denied) as denied:
            act(handle(app))
        assert "'ada'" in denied.value.what
        assert "admin=True" in denied.value.todo
        assert len(app.chats(user="bob")) == 1


@each("act", FOREIGN)
def test_one_that_was_opened_for_it_does(act: str) -> None:
    memory = fresh()
    memory.scoped(user="bob").chat("secret").append(role="user", content="The code is 4711.")
    FOREIGN[act](memory)
    FOREIGN[act](memory.scoped(user="eve").scoped(agent="coach")) if act != "erase another user" else None


def test_a_user_erases_lists_and_works_for_itself() -> None:
    with Memory(":memory:", user="ada") as memory:
        memory.chat("monday").append(role="user", content="The code is 4711.")
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


def test_a_handle_without_a_user_may_scope_to_any_whoever_acts() -> None:
    with Memory(":memory:") as memory, acting_as(user="ada"):
        assert memory.scoped(user="bob").scope.user == "bob"
        assert memory.chats(user="bob") == []
