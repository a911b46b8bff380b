"""The way back from a summary to the words, describe and expand; and whose a summary is."""

from __future__ import annotations

import pytest
from compaction_chats import depths, policy, tell

from holdfast import Chat, InvalidInput, Memory
from tables import each

DEEP = policy(600, fan_in=(3, 2))


def compacted(memory: Memory) -> Chat:
    chat = memory.chat("c")
    tell(chat, 80)
    chat.compact(full=True, policy=DEEP)
    assert max(depths(chat)) >= 1
    return chat


# Whose a summary is: nobody finds it by its id but those who see its chat


def sees(memory: Memory, chat: Chat, name: str) -> bool:
    """Say whether a handle finds all summaries of a chat; if not all, it must find none."""
    found = set()
    for one in chat.tree():
        for call in (memory.chat(name).describe, memory.chat(name).expand):
            try:
                assert call(one.id) == getattr(chat, call.__name__)(one.id)
            except InvalidInput:
                found.add(False)
            else:
                found.add(True)
    assert len(found) == 1
    return found == {True}


ADA = {"tenant": "acme", "user": "ada"}
CODER = {"agent": "coder"}
SHARED = {"tenant": "acme", "user": ""}


@pytest.mark.slow
@each(
    ("owner", "reader", "name", "seen"),
    [
        (ADA, ADA, "c", True),
        (ADA, ADA, "another", True),
        *((ADA, {"tenant": "acme", "user": user}, "c", False) for user in ("bob", "Ada", "", "ada ")),
        *((ADA, {"tenant": tenant, "user": "ada"}, "c", False) for tenant in ("", "other")),
        *((SHARED, {"tenant": "acme", "user": user}, "c", True) for user in ("ada", "bob")),
        (SHARED, {"tenant": "", "user": "ada"}, "c", False),
        (SHARED, {"tenant": "other", "user": ""}, "c", False),
        (ADA | CODER, ADA | CODER, "c", True),
        (ADA | CODER, ADA, "c", True),  # a handle without an agent sees all
        (ADA | CODER, ADA | {"agent": "writer"}, "d", False),
        (ADA, ADA | {"agent": "writer"}, "d", False),
        (SHARED | CODER, ADA | CODER, "c", True),
        (SHARED | CODER, ADA | {"agent": "writer"}, "c", False),
        (SHARED | CODER, ADA, "c", True),
    ],
)
def test_who_sees_a_summary(owner: dict[str, str], reader: dict[str, str], name: str, seen: bool) -> None:
    with Memory(":memory:", user="root", admin=True) as memory:
        handle = memory.scoped(**reader)
        chat = compacted(memory.scoped(**owner))
        beside = compacted(memory.scoped(tenant="acme", user="eve"))
        before = beside.tree(), beside.stats(), beside.window(10**6)
        assert sees(handle, chat, name) is seen
        assert not sees(handle, beside, name)
        if (owner["tenant"], owner["user"]) != (reader["tenant"], reader["user"]):
            assert handle.chat("c").tree() == []
            assert handle.chat("c").compact(full=True, policy=DEEP).noop
            assert handle.chat("c").review() == ""
        memory.scoped(**owner).erase(chat="c")
        assert chat.tree() == []
        assert (beside.tree(), beside.stats(), beside.window(10**6)) == before
