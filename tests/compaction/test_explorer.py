"""The way back from a summary to the words, describe and expand; and whose a summary is."""

from __future__ import annotations

from typing import Any

import compaction_chats
import pytest
from compaction_chats import Scribe, depths, leaves, minute, policy, seqs, tell, words
from tree_checks import check_tree

from holdfast import Chat, InvalidInput, Memory, Message
from tables import each

DEEP = policy(600, fan_in=(3, 2))

chat = compaction_chats.chat


def compacted(memory: Memory, name: str = "c", messages: int = 80) -> Chat:
    chat = memory.chat(name)
    tell(chat, messages)
    chat.compact(full=True, policy=DEEP)
    assert max(depths(chat)) >= 1
    return chat


def test_a_description_names_what_contains_a_summary_and_what_it_was_made_of(memory: Memory) -> None:
    chat = compacted(memory, messages=120)
    tree = {one.id: one for one in chat.tree()}
    for one in tree.values():
        described = chat.describe(one.id)
        assert described.summary == one
        assert described.children == tuple(part.id for part in tree.values() if part.parent == one.id)
        above: list[str] = []
        parent = one.parent
        while parent:
            above.append(parent)
            parent = tree[parent].parent
        assert described.parents == tuple(above)
        opened = chat.expand(one.id, 10**9)
        assert (opened.summary, opened.truncated, opened.cursor) == (one, False, None)
        assert tuple(part.id for part in opened.children) == described.children
    assert max(len(chat.describe(one).parents) for one in tree) >= 2
    check_tree(chat)  # and a walk in small steps reaches every message once


def test_a_cap_cuts_and_says_so(chat: Chat) -> None:
    tell(chat, 40)
    chat.compact(full=True, policy=policy(1_000, leaf_source=200))
    leaf = leaves(chat)[0]
    assert (leaf.first, leaf.last) == (1, 4)
    exactly = chat.expand(leaf.id, 200)
    assert (seqs(exactly.messages), exactly.truncated, exactly.cursor) == ([1, 2, 3, 4], False, None)
    cut = chat.expand(leaf.id, 199)
    assert (seqs(cut.messages), cut.truncated) == ([1, 2, 3], True)
    rest = chat.expand(leaf.id, 199, cursor=cut.cursor)
    assert (seqs(rest.messages), rest.truncated, rest.cursor) == ([4], False, None)


def test_one_item_is_given_even_if_it_is_larger_than_the_cap(memory: Memory) -> None:
    chat = memory.chat("c")
    chat.append(Message("user", words(1, 9_000), at=minute(1)))
    tell(chat, 6, first=2)
    chat.compact(full=True, policy=policy(1_000))
    leaf = leaves(chat)[0]
    opened = chat.expand(leaf.id)
    assert [message.tokens for message in opened.messages] == [9_000]
    assert opened.truncated is (leaf.last > 1)
    assert opened.messages == chat.expand(leaf.id, 0).messages


@each(
    ("what", "options"),
    [
        *(
            ("", {"cursor": cursor})
            for cursor in ["", "x", "-1", "0", "1.5", "1.0", "999999", "9" * 30, "10000"]
        ),
        *(("", {"cursor": cursor}) for cursor in ["١", "１", "²", " 2", "2 ", "1e1", "sum_1", 2]),
        *(("", {"max_tokens": cap}) for cap in [-1, 1.5, "4000", None, True]),
        *(("", {"id": identity}) for identity in ["", " ", "a\0b", "\x00", 5, None]),
        *(
            ("There is no summary .*window\\(\\).summaries", {"id": identity})
            for identity in ["sum_0000000000000000", "x", "%", "sum_", "' OR 1=1 --"]
        ),
    ],
)
def test_what_is_wrong_is_refused(quick: Memory, what: str, options: dict[str, Any]) -> None:
    chat = quick.chat("c")
    if not chat.tree():
        tell(chat, 40)
        chat.compact(full=True, policy=policy())
    for one in chat.tree()[:: len(chat.tree()) - 1]:
        with pytest.raises(InvalidInput, match=what or None):
            chat.expand(**{"id": one.id} | options)
    if "id" in options:
        with pytest.raises(InvalidInput, match=what or None):
            chat.describe(**options)


def test_the_cursor_of_another_summary_and_the_id_of_a_message_are_refused(chat: Chat) -> None:
    tell(chat, 40)
    chat.compact(full=True, llm=Scribe(), policy=policy(1_500))
    one, two = leaves(chat)[:2]
    cursor = chat.expand(one.id, 60).cursor
    assert cursor is not None
    with pytest.raises(InvalidInput, match="no cursor of summary"):
        chat.expand(two.id, cursor=cursor)
    with pytest.raises(InvalidInput, match="There is no summary"):
        chat.expand(chat.history()[0].id)


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
