"""The words of erased messages are in no summary, row or byte; what covers earlier messages only stays."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from compaction_chats import buffer, lossless
from tree_checks import Policy, check_tree, covered_by, frontier_of

from database_bytes import stored_bytes as stored
from holdfast import Chat, Memory, Message, Summary

TREE = lossless(600, leaf_source=300, fan_in=(2, 2), tail=0.1, previous=2, calls=1000)
MODELS: dict[str, Callable[[str], str] | None] = {
    "none": None,
    "says all again": lambda prompt: " ".join([*dict.fromkeys(re.findall(r"zq\d+qz", prompt))][-15:]),
    "says all again at length": lambda prompt: prompt,
}


def word(number: int) -> str:
    return f"zq{number:04}qz"


def talk(chat: Chat, start: int, count: int, length: int = 6) -> None:
    text = "The garden blooms. "
    chat.append([Message("user", f"{word(n)} {text * length}") for n in range(start, start + count)])


def words_in(content: bytes | str) -> set[str]:
    text = content if isinstance(content, bytes) else content.encode()
    return {found.decode() for found in re.findall(rb"zq\d{4}qz", text)}


def without_parent(tree: list[Summary]) -> set[tuple[object, ...]]:
    return {
        (one.id, one.depth, one.first, one.last, one.text, one.tokens, one.messages, one.at) for one in tree
    }


@pytest.fixture
def ada(shared_location: str) -> Iterator[Memory]:
    with Memory(shared_location, user="ada", admin=True) as memory:
        yield memory


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "model"), [*((TREE, model) for model in MODELS), (buffer(600), "says all again")]
)
def test_erased_words_are_in_no_summary_and_in_no_byte(
    ada: Memory, shared_location: str, policy: Policy, model: str
) -> None:
    chat = ada.chat("monday")
    for part in range(3):
        talk(chat, part * 40 + 1, 40)
        chat.compact(full=True, policy=policy, llm=MODELS[model])
    chat.search(word(33))
    ada.recall(word(33))
    before = chat.tree()
    assert words_in(stored(shared_location)) == {word(n) for n in range(1, 121)}
    receipt = ada.erase(chat="monday", messages=(60, 70))
    after = chat.tree()
    gone = {word(n) for n in range(60, 71)}
    assert not words_in(stored(shared_location)) & gone
    assert not words_in(" ".join(one.text for one in after)) & gone
    stays = [one for one in before if one.last < 60]
    assert without_parent(after) >= without_parent(stays)
    assert receipt.counts["messages"] == 11
    assert receipt.counts["summaries"] >= len(before) - len(stays) > 0
    assert covered_by(chat) == max((one.last for one in after), default=0) < 60
    check_tree(chat)
    assert all(hit.seq != 65 for hit in chat.search(word(65)))
    again = chat.compact(full=True, policy=policy, llm=MODELS[model])
    assert covered_by(chat) > 70, again.why
    check_tree(chat)
    assert not words_in(stored(shared_location)) & gone


def test_a_cumulative_summary_is_again_what_it_was_before(memory: Memory) -> None:
    chat = memory.chat("monday")
    policy = buffer(600)
    states = []
    for part in range(5):
        talk(chat, part * 25 + 1, 25)
        chat.compact(full=True, policy=policy)
        states.append((without_parent(chat.tree()), frontier_of(chat.tree())[0], chat.stats().summarised))
    identities = {state[1].id for state in states[1:]}
    assert len(identities) == 1, "it has grown under one id"
    for earlier, later in zip(states[-2::-1], states[:0:-1], strict=True):
        first = earlier[1].last + 1
        assert covered_by(chat) == later[1].last
        memory.erase(chat="monday", messages=first)
        assert without_parent(chat.tree()) == earlier[0]
        assert frontier_of(chat.tree()) == [earlier[1]]
        assert chat.stats().summarised == earlier[2]
        check_tree(chat)
    memory.erase(chat="monday", messages=1)
    assert chat.tree() == []
    chat.compact(full=True, policy=policy)
    assert len(frontier_of(chat.tree())) == 1
    check_tree(chat)


@pytest.mark.slow
@pytest.mark.parametrize("erased", [0, 1])
def test_a_cumulative_summary_that_took_in_several_at_once_gives_all_of_them_back(
    memory: Memory, erased: int
) -> None:
    """After an import, or a long pause, it takes in more than one leaf; of these only some were erased."""
    chat = memory.chat("monday")
    policy = buffer()
    for _ in range(2):
        talk(chat, 1, 40)
        chat.compact(full=True, policy=policy)
    grown = frontier_of(chat.tree())[0]
    chat.append([Message("user", "The daisies bloom. " * 2_500) for _ in range(10)])
    talk(chat, 1, 30)
    chat.compact(full=True, policy=policy)
    taken = [one for one in chat.tree() if not one.depth and one.first > grown.last]
    assert len(taken) >= 3
    memory.erase(chat="monday", messages=taken[erased].last)
    check_tree(chat)
    again = chat.compact(full=True, policy=policy)
    assert len(frontier_of(chat.tree())) == 1, again.why
    check_tree(chat)
