"""Whose a summary is: nobody finds it by its id but those who see its chat."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from tree_logs import check_words, frontier_of

from holdfast import InvalidInput, Memory, Message
from holdfast.chat import Chat
from holdfast.prompt.window import Compaction, Lossless

POLICY = Lossless(600, Compaction(leaf_source=300, fan_in=(2, 2), tail=0.1))


def compacted(memory: Memory, name: str = "monday") -> Chat:
    chat = memory.chat(name)
    chat.append(
        [Message("user", f"{n}: The tulips in the garden of Ada bloom in April. ") for n in range(80)]
    )
    chat.compact(full=True, policy=POLICY)
    assert max(one.depth for one in chat.tree()) >= 1
    return chat


def sees(memory: Memory, chat: Chat, name: str = "monday") -> bool:
    """Say whether a handle finds all summaries of a chat; if not all, it must find none."""
    found = set()
    for one in chat.tree():
        for call in (memory.chat(name).describe, memory.chat(name).expand):
            try:
                assert call(one.id).summary == one
            except InvalidInput:
                found.add(False)
            else:
                found.add(True)
    assert len(found) == 1
    return found == {True}


@pytest.mark.parametrize(
    ("tenant", "user"), [("", "bob"), ("", "Ada"), ("", ""), ("other", "ada"), ("other", ""), ("", "ada ")]
)
def test_summaries_of_another_user_or_tenant_are_not_found(memory: Memory, tenant: str, user: str) -> None:
    chat = compacted(memory)
    other = memory.scoped(tenant=tenant, user=user)
    assert sees(memory, chat)
    assert sees(memory, chat, "tuesday"), "another chat of the same user"
    assert not sees(other, chat)
    assert other.chat("monday").tree() == []
    assert other.chat("monday").compact(full=True, policy=POLICY).noop


def test_what_the_tenant_shares_is_seen_by_its_users_and_by_no_other(memory: Memory) -> None:
    shared = memory.scoped(tenant="acme", user="")
    chat = compacted(shared)
    for user in ("ada", "bob"):
        handle = shared.scoped(user=user)
        assert sees(handle, chat)
        for one in frontier_of(chat.tree()):
            assert handle.chat("monday").describe(one.id).summary == one
    assert not sees(memory, chat)
    assert not sees(memory.scoped(tenant="other"), chat)


def test_a_handle_of_an_agent_sees_its_own_chats_only(memory: Memory) -> None:
    coder, writer = memory.scoped(agent="coder"), memory.scoped(agent="writer")
    chat = compacted(coder)
    nobodys = compacted(memory, "tuesday")
    assert sees(coder, chat)
    assert sees(memory, chat), "a handle without an agent sees all"
    assert not sees(writer, chat, "wednesday")
    assert not sees(writer, nobodys, "wednesday")
    check_words(chat, chat.history())


def test_a_handle_of_an_agent_sees_its_own_shared_chats_only(memory: Memory) -> None:
    shared = memory.scoped(tenant="acme", user="", agent="coder")
    chat = compacted(shared)
    assert sees(shared.scoped(user="ada"), chat)
    assert not sees(shared.scoped(user="ada", agent="writer"), chat)
    assert sees(shared.scoped(user="ada", agent=""), chat)


def test_the_same_id_of_a_chat_is_another_chat_for_another_user(memory: Memory) -> None:
    chats = [compacted(memory.scoped(user=user)) for user in ("ada", "bob")]
    trees = [{one.id for one in chat.tree()} for chat in chats]
    assert not trees[0] & trees[1]
    memory.scoped(user="bob").erase(chat="monday")
    assert {one.id for one in chats[0].tree()} == trees[0]
    assert chats[1].tree() == []
    assert memory.verify().ok


def test_describe_places_a_summary(memory: Memory) -> None:
    chat = compacted(memory)
    by_id = {one.id: one for one in chat.tree()}
    for one in by_id.values():
        said = chat.describe(one.id)
        assert said.summary == one
        assert list(said.children) == [
            n.id for n in sorted(by_id.values(), key=lambda n: n.first) if n.parent == one.id
        ]
        above = []
        parent = one.parent
        while parent:
            above.append(parent)
            parent = by_id[parent].parent
        assert list(said.parents) == above


def test_a_cursor_of_nothing_is_refused(memory: Memory) -> None:
    chat = compacted(memory)
    cursors = ["", "x", "0", "-1", "1.0", "１", "9" * 30, " 1", "10000"]
    for one, cursor in product(chat.tree(), cursors):
        with pytest.raises(InvalidInput):
            chat.expand(one.id, cursor=cursor)


def test_an_id_of_nothing_is_refused(memory: Memory) -> None:
    chat = compacted(memory)
    identities = ["", "sum_", "sum_0000000000000000", "' OR 1 = 1 --", "%", "\x00"]
    calls: list[Callable[[str], object]] = [chat.describe, chat.expand]
    for call, identity in product(calls, identities):
        with pytest.raises(InvalidInput):
            call(identity)
