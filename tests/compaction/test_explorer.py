"""The way back from a summary to the words: describe and expand."""

from __future__ import annotations

import compaction_chats
import pytest
from compaction_chats import Scribe, leaves, minute, policy, seqs, tell, words

from holdfast import InvalidInput, Memory, Message, Summary, ToolCall
from holdfast.chat import Chat
from tables import each

DEEP = policy(600, fan_in=(3, 2))


chat = compaction_chats.chat


def deep(chat: Chat, messages: int = 120) -> list[Summary]:
    tell(chat, messages)
    chat.compact(full=True, policy=DEEP)
    tree = chat.tree()
    assert max(one.depth for one in tree) >= 2
    return tree


def read(chat: Chat, identity: str, cap: int) -> list[Message]:
    """Read all messages behind a summary, in steps of at most `cap` tokens."""
    found: list[Message] = []
    cursor: str | None = None
    while True:
        step = chat.expand(identity, cap, cursor=cursor)
        items = len(step.messages) + len(step.children)
        tokens = sum(one.tokens for one in step.messages) + sum(one.tokens for one in step.children)
        assert items == 1 or (items and tokens <= cap)
        assert step.truncated is (step.cursor is not None)
        found += step.messages
        for child in step.children:
            found += read(chat, child.id, cap)
        cursor = step.cursor
        if cursor is None:
            return found


def test_a_leaf_gives_the_original_messages_in_their_order(memory: Memory) -> None:
    chat = memory.chat("c")
    deep(chat)
    history = chat.history()
    for leaf in leaves(chat):
        opened = chat.expand(leaf.id)
        assert list(opened.messages) == history[leaf.first - 1 : leaf.last]
        assert opened.children == ()
        assert opened.summary == leaf
        assert (opened.truncated, opened.cursor) == (False, None)


def test_a_condensed_summary_gives_what_it_was_made_of(memory: Memory) -> None:
    chat = memory.chat("c")
    tree = deep(chat)
    for node in tree:
        if node.depth:
            opened = chat.expand(node.id)
            assert opened.messages == ()
            assert list(opened.children) == [one for one in tree if one.parent == node.id]
            assert {child.depth for child in opened.children} == {node.depth - 1}
            assert (opened.children[0].first, opened.children[-1].last) == (node.first, node.last)


def test_the_descriptions_lead_to_every_message(memory: Memory) -> None:
    chat = memory.chat("c")
    deep(chat)
    window = chat.window(600)
    reached: list[Message] = []
    todo = [one.id for one in window.summaries]
    while todo:
        described = chat.describe(todo.pop(0))
        if described.children:
            todo = [*described.children, *todo]
        else:
            reached += chat.expand(described.summary.id, 10**9).messages
    assert [*reached, *window.messages] == chat.history()


@pytest.mark.parametrize("cap", [0, 1, 50, 120, 4_000])
def test_a_walk_in_small_steps_reaches_every_message_once(chat: Chat, cap: int) -> None:
    deep(chat)
    window = chat.window(600)
    reached = [message for one in window.summaries for message in read(chat, one.id, cap)]
    assert [*reached, *window.messages] == chat.history()


def test_a_walk_on_every_database(memory: Memory) -> None:
    chat = memory.chat("c")
    deep(chat, 80)
    window = chat.window(600)
    reached = [message for one in window.summaries for message in read(chat, one.id, 60)]
    assert [*reached, *window.messages] == chat.history()


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
    assert opened.messages[0].tokens == 9_000
    assert seqs(opened.messages) == [1]
    assert opened.truncated is (leaf.last > 1)
    assert opened.messages == chat.expand(leaf.id, 0).messages


def test_a_description_names_what_contains_a_summary_and_what_it_was_made_of(chat: Chat) -> None:
    tree = {one.id: one for one in deep(chat)}
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
    assert max(len(chat.describe(one).parents) for one in tree) >= 2


def test_tool_use_comes_back_with_its_calls(chat: Chat) -> None:
    tell(chat, 2)
    chat.append(
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "a",
                        "type": "function",
                        "function": {"name": "read", "arguments": '{"path": "x"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": words(4, 300)},
        ]
    )
    tell(chat, 30, first=5)
    chat.compact(full=True, policy=policy(600, leaf_source=20_000))
    opened = chat.expand(leaves(chat)[0].id, 10**9)
    assert list(opened.messages)[:4] == chat.history()[:4]
    assert opened.messages[2].calls == (ToolCall("a", "read", {"path": "x"}),)
    assert opened.messages[3].answers == ("a",)
    assert opened.messages[2].raw == chat.history()[2].raw


@pytest.mark.parametrize("identity", ["sum_0000000000000000", "x", "%", "sum_", "' OR 1=1 --"])
def test_an_unknown_id_is_refused(memory: Memory, identity: str) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    chat.compact(full=True, policy=policy())
    for ask in (chat.describe, chat.expand):
        with pytest.raises(InvalidInput, match="There is no summary") as caught:
            ask(identity)
        assert "window().summaries" in str(caught.value)


@pytest.mark.parametrize("identity", ["", " ", "a\0b", 5, None])
def test_what_is_no_id_is_refused(chat: Chat, identity: str) -> None:
    for ask in (chat.describe, chat.expand):
        with pytest.raises(InvalidInput):
            ask(identity)


def test_the_id_of_a_message_is_no_id_of_a_summary(chat: Chat) -> None:
    (message,) = tell(chat, 1)
    with pytest.raises(InvalidInput, match="There is no summary"):
        chat.expand(message.id)


@pytest.mark.slow
@each("cursor", ["", "x", "-1", "0", "1.5", "999999", "9" * 30, "١", "²", " 2", "2 ", "1e1", "sum_1", 2])
def test_a_cursor_that_is_none_is_refused(chat: Chat, cursor: str) -> None:
    tell(chat, 40)
    chat.compact(full=True, policy=policy())
    leaf = leaves(chat)[0]
    with pytest.raises(InvalidInput):
        chat.expand(leaf.id, cursor=cursor)


def test_the_cursor_of_another_summary_is_refused(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    chat.compact(full=True, llm=Scribe(), policy=policy(1_500))
    one, two = leaves(chat)[:2]
    cursor = chat.expand(one.id, 60).cursor
    assert cursor is not None
    with pytest.raises(InvalidInput, match="no cursor of summary"):
        chat.expand(two.id, cursor=cursor)


@pytest.mark.parametrize("cap", [-1, 1.5, "4000", None, True])
def test_a_cap_that_is_no_number_is_refused(chat: Chat, cap: int) -> None:
    tell(chat, 40)
    chat.compact(full=True, policy=policy())
    with pytest.raises(InvalidInput):
        chat.expand(leaves(chat)[0].id, cap)


def test_nobody_opens_the_summaries_of_others(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 40)
    chat.compact(full=True, policy=policy())
    identity = chat.tree()[0].id
    assert memory.chat("another").expand(identity).messages == chat.expand(identity).messages
    others = (
        memory.scoped(user="eve"),
        memory.scoped(tenant="acme"),
        memory.scoped(user=""),
        memory.scoped(tenant="acme", user="eve"),
    )
    for other in others:
        for ask in (other.chat("c").describe, other.chat("c").expand):
            with pytest.raises(InvalidInput, match="There is no summary"):
                ask(identity)
        assert other.chat("c").tree() == []


def test_an_agent_opens_only_its_own(memory: Memory) -> None:
    smith = memory.scoped(agent="smith").chat("c")
    tell(smith, 40)
    smith.compact(full=True, policy=policy())
    identity = smith.tree()[0].id
    assert smith.expand(identity).messages
    assert memory.chat("c").expand(identity).messages
    with pytest.raises(InvalidInput, match="There is no summary"):
        memory.scoped(agent="jones").chat("d").expand(identity)


def test_what_the_tenant_shares_can_be_opened(memory: Memory) -> None:
    shared = memory.scoped(user="").chat("shared")
    tell(shared, 120)
    shared.compact(full=True, policy=DEEP)
    for one in shared.tree():
        assert memory.chat("mine").expand(one.id) == shared.expand(one.id)
        assert memory.chat("mine").describe(one.id) == shared.describe(one.id)


def test_a_summary_stays_the_same_when_it_becomes_part_of_another(chat: Chat) -> None:
    tell(chat, 40)
    chat.compact(full=True, llm=Scribe(), policy=policy(1_500))
    before = chat.expand(leaves(chat)[0].id)
    tell(chat, 100, first=41)
    chat.compact(full=True, policy=DEEP)
    after = chat.expand(before.summary.id)
    assert after.summary.parent
    assert (after.messages, after.summary.text) == (before.messages, before.summary.text)


def test_a_tree_lists_leaves_first_and_each_level_in_order(memory: Memory) -> None:
    chat = memory.chat("c")
    tree = deep(chat)
    assert tree == sorted(tree, key=lambda one: (one.depth, one.first))
    assert memory.chat("unknown").tree() == []
