"""Episodes: one for a chat, and which of them are kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from told_episodes import KEY, MONDAY, ORDER, TOPICS, episodes, episodic, fetched, learn, session, told

from holdfast import Memory, Message, ToolCall
from learning_scripts import texts
from soak import cases

LATER = Message("assistant", "The page says that the payment client needs a jitter of two seconds now.")


@pytest.fixture
def memory(location: str) -> Iterator[Memory]:
    with episodic(location) as opened:
        yield opened


def chats(memory: Memory) -> list[str]:
    return [one.chat for one in episodes(memory)]


# One episode for a session


def test_a_session_becomes_one_episode(memory: Memory) -> None:
    memory.chat("a").append(session(TOPICS[0]))
    outcome = learn(memory, "a")
    (episode,) = episodes(memory)
    assert outcome.records == (episode,)
    assert (episode.chat, episode.messages, episode.by, episode.trust) == ("a", (1, 5), "reflect", "trusted")
    assert "src/shop/client.py" in episode.text
    assert episode.meta == {
        "learned": "rules",
        "turns": 3,
        "files": ["src/shop/client.py"],
        "decisions": episode.meta["decisions"],
        "outcome": episode.meta["outcome"],
        "untrusted": [],
        "ended": "2026-03-02T09:04:00+00:00",
    }
    before = memory.version()
    learn(memory, "a")
    assert memory.version() == before


def test_a_short_session_or_an_erased_one_has_none(memory: Memory) -> None:
    memory.chat("a").append(session(TOPICS[0])[:3])
    result = learn(memory, "a", told("The client retries."))
    assert (result.calls, result.notes) == (0, ("episode:a: too short: 2 turns, 3 needed",))
    memory.chat("b").append(session(TOPICS[0]))
    memory.chat("b").end()
    memory.erase(chat="b", messages=(1, 5))
    memory.learning.work()
    assert episodes(memory) == []


# Secrets and orders


def test_credentials_are_cut_out(memory: Memory) -> None:
    use = Message("assistant", calls=(ToolCall("c1", "Read", {"path": f"src/{KEY}/client.py"}),))
    said = Message("assistant", f"The key {KEY} works now, as it should.")
    memory.chat("a").append(session(TOPICS[0], 0, use, said))
    answer = told(
        f"The client retries. The key is {KEY}.", decisions=[f"Use {KEY}."], outcome=f"It is {KEY}."
    )
    for reply in (None, answer):
        (episode,) = learn(memory, "a", reply).records
        assert KEY not in f"{episode.text} {episode.meta}"
        assert episode.trust == "trusted"


def test_orders_that_a_model_repeats_or_a_tool_is_named_by_are_not_recalled(memory: Memory) -> None:
    call = Message("assistant", calls=(ToolCall("c1", f"web {ORDER}", {}),))
    memory.chat("a").append(session(TOPICS[0], 0, call))
    for reply in (None, told(f"The client retries. {ORDER}", decisions=[ORDER], outcome=ORDER)):
        learn(memory, "a", reply)
        (own,) = episodes(memory)
        assert (own.trust, "evil.example" in f"{own.text} {own.meta}") == ("trusted", False)


# Untrusted sources


def test_an_episode_of_a_session_with_untrusted_sources_is_found_and_waits_only_as_a_whole(
    memory: Memory,
) -> None:
    memory.chat("a").append(session(TOPICS[0], 0, *fetched(), LATER))
    own, whole = learn(memory, "a").records
    assert list(memory.quarantine) == [whole]
    assert (whole.trust, whole.flags) == ("quarantined", ("untrusted",))
    assert whole.meta["untrusted"] == ["web_fetch"]
    assert ("jitter" in whole.text, "jitter" in own.text) == (True, False)
    assert (own.trust, own.flags, own.meta["untrusted"], own.at) == ("trusted", (), [], whole.at)
    assert own.at is not None
    assert own.at.date() == MONDAY.date()
    assert [hit.id for hit in memory.recall("payment client", kinds=["episode"])] == [own.id]
    assert [one.id for one in memory.learning.episodes("payment client jitter")] == [own.id]
    released = memory.quarantine.release(whole.id, by="user")
    assert (released.id, released.trust) == (own.id, "released")
    assert episodes(memory) == [released]
    assert [hit.id for hit in memory.recall("jitter", kinds=["episode"])] == [own.id]
    memory.undo(by="user")
    assert texts(memory, "episode") == [own.text]
    assert [one.text for one in memory.quarantine] == [whole.text]


def test_what_cannot_come_from_the_untrusted_source_is_written_beside_what_waits(memory: Memory) -> None:
    chat = memory.chat("a")
    chat.append(session(TOPICS[0]))
    (first,) = learn(memory, "a", told("Retries were added.")).records
    chat.append(fetched())
    for number, summary in (
        ("three", "Retries and a limit were added."),
        ("four", "Retries and two limits were added."),
    ):
        chat.append(role="user", content=f"Now add a limit of {number} as well, please.")
        own, aside = learn(memory, "a", told(summary)).records
        assert (own.id, aside.replaces) == (first.id, first.id)
        assert episodes(memory) == [own]
        assert f"limit of {number}" in own.text
        assert list(memory.quarantine) == [aside]
    released = memory.quarantine.release(aside.id, by="user")
    assert released.id == first.id
    assert texts(memory, "episode") == ["Retries and two limits were added. Files: src/shop/client.py."]
    assert list(memory.quarantine) == []


def test_a_released_one_stays_so_until_there_is_another_untrusted_source(memory: Memory) -> None:
    chat = memory.chat("a")
    call, result = fetched("late")
    chat.append(session(TOPICS[0], 0, *fetched(), call))
    first, whole = learn(memory, "a", told("Retries were added.")).records
    memory.quarantine.release(whole.id, by="user")
    chat.append(role="user", content="Now add a limit as well, please.")
    (second,) = learn(memory, "a", told("Retries and a limit were added.")).records
    assert (second.id, second.trust) == (first.id, "released")
    chat.append([result])
    (third,) = learn(memory, "a", told("Retries, a limit and a page were added.")).records
    assert third.trust == "quarantined"
    assert episodes(memory) == [second]


# What others wrote or took back


def test_what_the_user_wrote_is_left_alone(memory: Memory) -> None:
    memory.chat("a").append(session(TOPICS[0]))
    own = memory.remember("We had a good day with the client.", "episode", chat="a", by="user")
    assert learn(memory, "a").notes == ("episode:a: the user wrote it",)
    assert episodes(memory) == [own]


@pytest.mark.parametrize("waits", [False, True])
def test_what_was_taken_back_is_not_written_again(memory: Memory, *, waits: bool) -> None:
    memory.chat("a").append(session(TOPICS[0], 0, *(fetched() if waits else [])))
    own, *_ = learn(memory, "a", told("The page says so.")).records
    memory.retract(own.id, by="user")
    memory.chat("a").append(session(TOPICS[1]))
    assert learn(memory, "a").notes == ("episode:a: it was taken back",)
    assert episodes(memory) == []


def test_what_was_discarded_is_not_written_again(memory: Memory) -> None:
    memory.chat("a").append(session(TOPICS[0], 0, *fetched()))
    own, whole = learn(memory, "a", told("The page says so.")).records
    memory.quarantine.discard(whole.id, by="user")
    memory.chat("a").append(session(TOPICS[1]))
    (newer,) = learn(memory, "a", told("The page says more.")).records
    assert newer.id == own.id
    assert list(memory.quarantine) == []


# Near-duplicates


@pytest.mark.parametrize("order", [("early", "late"), ("late", "early")])
def test_of_two_that_say_the_same_that_of_the_newer_session_stays(
    memory: Memory, order: tuple[str, ...]
) -> None:
    for chat in order:
        memory.chat(chat).append(session(TOPICS[0], int(chat == "late")))
        outcome = learn(memory, chat)
    assert chats(memory) == ["late"]
    assert ("early", "a newer session says the same") in [(one.chat, one.why) for one in outcome.records]
    if order[1] == "late":
        memory.undo()
        assert chats(memory) == ["early"], "one undo takes all of it back"


@pytest.mark.parametrize("trusted", ["user", "released", "trusted"])
def test_one_that_is_more_trusted_stays(memory: Memory, trusted: str) -> None:
    text = "Exponential retries were added to the payment client of the shop."
    memory.chat("old").append(session(TOPICS[0], 0, *(fetched() if trusted == "released" else [])))
    if trusted == "user":
        memory.remember(text, "episode", chat="old", by="user", meta={"ended": MONDAY.isoformat()})
    else:
        *_, old = learn(memory, "old", told(text)).records
    if trusted == "released":
        memory.quarantine.release(old.id, by="user")
    memory.chat("new").append(session(TOPICS[0], 1, *(fetched() if trusted == "trusted" else [])))
    learn(memory, "new", told(text))
    assert "old" in chats(memory)
    assert "new" in [one.chat for one in (*episodes(memory), *list(memory.quarantine))]


# How many are kept, and for how long


def test_those_in_quarantine_displace_no_others(location: str) -> None:
    with episodic(location, episodes=2) as memory:
        for n in (0, 1, 2):
            memory.chat(str(n)).append(session(TOPICS[n], n, *(fetched() if n else [])))
            learn(memory, str(n), told(f"The page of {n} says so."))
        assert chats(memory) == [one.chat for one in memory.quarantine] == ["1", "2"]


@pytest.mark.slow
@settings(max_examples=cases(10, 60))
@given(order=st.permutations(range(5)), most=st.integers(1, 5))
def test_the_newest_are_kept_in_whatever_order_they_come(order: list[int], most: int) -> None:
    with episodic(episodes=most) as memory:
        for n in order:
            memory.chat(str(n)).append(session(TOPICS[n], n))
            learn(memory, str(n))
        assert sorted(chats(memory)) == [str(n) for n in range(5 - most, 5)]
        assert memory.verify().ok
