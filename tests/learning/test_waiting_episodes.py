"""An episode that waits as a whole: who finds it, and what becomes of it when its chat goes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast import Hits, InvalidInput, Memory, Message
from learning_episodes import MONDAY, TOPICS, episodes, fetched, learn, session

LATER = "The page says that the payment client needs a jitter of two seconds now."


@pytest.fixture
def waiting(memory: Memory) -> Memory:
    """Give a memory with an episode that waits as a whole beside one without the words of the page."""
    memory.chat("a").append(session(TOPICS[0], 0, *fetched(), Message("assistant", LATER)))
    assert len(learn(memory, "a").records) == 2
    return memory


def found(memory: Memory, query: str = "payment client jitter") -> Hits:
    return memory.recall(query, trust="untrusted")


def test_the_whole_is_found_where_it_is_asked_for_and_in_no_prompt(waiting: Memory) -> None:
    (own,), (whole,) = episodes(waiting), list(waiting.quarantine)
    (hit,) = found(waiting)
    assert (hit.id, hit.chat, hit.kind, hit.flags) == (
        whole.id, "a", "episode", ("untrusted", "quarantined"),
    )  # fmt: skip
    assert [one.id for one in waiting.recall("payment client jitter", kinds=["episode"])] == [own.id]
    assert [one.id for one in waiting.learning.episodes("payment client jitter")] == [own.id]
    prompt = waiting.chat("b").prompt(budget=4_000, query="payment client jitter")
    assert "jitter" not in prompt.system
    assert whole.id not in [one.id for one in prompt.hits]


def test_both_are_dated_by_the_session(waiting: Memory) -> None:
    day = {one.at.date() for one in (*episodes(waiting), *waiting.quarantine) if one.at}
    assert day == {MONDAY.date()}
    assert found(waiting)[0].at.date() == MONDAY.date()
    assert waiting.recall("payment client", trust="untrusted", until=MONDAY + timedelta(days=1))
    assert not waiting.recall("payment client", trust="untrusted", since=MONDAY + timedelta(days=1))


def test_a_release_puts_it_in_the_place_of_the_other(waiting: Memory) -> None:
    (own,), (hit,) = episodes(waiting), found(waiting)
    waiting.quarantine.release(hit.id, by="user")
    assert found(waiting) == []
    assert [one.id for one in waiting.recall("jitter", kinds=["episode"])] == [own.id]


def test_it_goes_with_its_chat(waiting: Memory) -> None:
    (hit,) = found(waiting)
    waiting.erase(chat="a", by="user")
    assert found(waiting) == []
    assert list(waiting.quarantine) == episodes(waiting) == []
    with pytest.raises(InvalidInput):
        waiting.explain("jitter", hit.id, trust="untrusted")
    assert waiting.verify().ok
