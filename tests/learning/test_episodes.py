"""Episodes: one for a chat, and which of them are kept."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Denied, Job, Memory, Message, ToolCall
from holdfast.learning.episode_text import LONGEST
from holdfast.learning.session import episode
from holdfast.llm.llm_request import Unreadable
from holdfast.settings import Learning
from holdfast.store import jobs
from holdfast.store.jobs import LeaseLost
from learning_episodes import (
    KEY,
    MONDAY,
    ORDER,
    TOPICS,
    context_of,
    episodes,
    fetched,
    learn,
    mark,
    session,
    texts,
    told,
    unit_of,
)
from soak import cases

# One episode for a session


def test_a_session_becomes_one_episode(memory: Memory) -> None:
    memory.chat("a").append(session(TOPICS[0]))
    outcome = learn(memory, "a")
    (episode,) = episodes(memory)
    assert outcome.records == (episode,)
    assert outcome.note == "written"
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
    assert mark(memory, "a") == 5


def test_a_short_session_has_none(memory: Memory) -> None:
    memory.chat("a").append(session(TOPICS[0])[:3])
    unit = unit_of(context_of(memory, model="m"), "a")
    assert unit.request is None
    assert unit.apply(None).note == "too short: 2 turns, 3 needed"
    assert episodes(memory) == []
    assert mark(memory, "a") == 3


def test_an_unknown_session_has_none_and_leaves_no_mark(memory: Memory) -> None:
    assert learn(memory, "nobody").records == ()
    assert mark(memory, "nobody") == 0


def test_a_session_that_was_erased_has_none(memory: Memory) -> None:
    memory.chat("a").append(session(TOPICS[0]))
    memory.erase(chat="a", messages=(1, 5))
    assert learn(memory, "a").records == ()
    assert mark(memory, "a") == 5


def test_a_session_that_is_told_twice_is_written_once(memory: Memory) -> None:
    memory.chat("a").append(session(TOPICS[0]))
    learn(memory, "a")
    before = memory.version()
    assert learn(memory, "a").note == "nothing new"
    assert memory.version() == before


def test_what_says_the_same_is_no_new_version(memory: Memory) -> None:
    chat = memory.chat("a")
    chat.append(session(TOPICS[0]))
    learn(memory, "a", told("The client retries."))
    before = memory.version()
    chat.append(role="user", content="Thank you very much for all of that.")
    assert learn(memory, "a", told("The client retries.")).note == "nothing new"
    assert memory.version() == before
    assert mark(memory, "a") == 6


def test_an_episode_belongs_to_the_agent_of_the_session(memory: Memory) -> None:
    coder = memory.scoped(agent="coder")
    coder.chat("a").append(session(TOPICS[0]))
    (episode,) = learn(coder, "a").records
    assert episode.agent == "coder"
    assert episodes(memory.scoped(agent="other")) == []


def test_nothing_is_stored_by_who_has_lost_the_job(memory: Memory) -> None:
    memory.chat("a").append(session(TOPICS[0]))
    database, space = memory._runtime.database, memory.scope.space
    with database.writing() as tx:
        jobs.add(tx, space, "episode", now=0, chat="a")
    held = jobs.claim(database, space, jobs.Claim(now=0, lease=1, kinds=["episode"]))
    assert jobs.claim(database, space, jobs.Claim(now=2, lease=9, kinds=["episode"]))
    with pytest.raises(LeaseLost):
        unit_of(replace(context_of(memory), held=held), "a").apply(None)
    assert (episodes(memory), mark(memory, "a")) == ([], 0)


def test_one_undo_takes_all_of_it_back(memory: Memory) -> None:
    for n, chat in enumerate("ab"):
        memory.chat(chat).append(session(TOPICS[0], n))
        learn(memory, chat)
    assert [one.chat for one in episodes(memory)] == ["b"]
    memory.undo()
    assert [one.chat for one in episodes(memory)] == ["a"]


def test_many_can_be_stored_at_once(memory: Memory) -> None:
    for n, topic in enumerate(TOPICS):
        memory.chat(str(n)).append(session(topic, n))
    units = [unit_of(context_of(memory, Learning(episodes=3)), str(n)) for n in range(len(TOPICS))]
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda unit: unit.apply(None), units))
    assert sorted(one.chat for one in episodes(memory)) == ["2", "3", "4"]
    assert [mark(memory, str(n)) for n in range(len(TOPICS))] == [5] * len(TOPICS)


# In the words of a model


def test_a_model_tells_it(memory: Memory) -> None:
    memory.chat("a").append(session(TOPICS[0]))
    unit = unit_of(context_of(memory, model="m"), "a")
    assert unit.request is not None
    assert TOPICS[0] in unit.request.prompt
    assert (unit.request.purpose, unit.request.version) == ("episode", "session v1")
    (episode,) = unit.apply(told("Retries were added to the payment client.", outcome="They work.")).records
    assert episode.text == (
        "Outcome: They work. Retries were added to the payment client. Files: src/shop/client.py."
    )
    assert (episode.meta["learned"], episode.meta["model"]) == ("session v1", "m")
    assert episode.meta["outcome"] == "They work."


def test_an_answer_that_cannot_be_read_stores_nothing(memory: Memory) -> None:
    memory.chat("a").append(session(TOPICS[0]))
    with pytest.raises(Unreadable):
        learn(memory, "a", "I would rather not say.")
    assert (episodes(memory), mark(memory, "a")) == ([], 0)


def test_a_model_reads_the_newest_messages(memory: Memory) -> None:
    memory.chat("a").append([Message("user", f"Sentence <{n}> of a session.") for n in range(201)])
    unit = unit_of(context_of(memory, model="m"), "a")
    assert unit.request is not None
    shown = unit.request.prompt.partition("<conversation>")[2]
    assert [f"Sentence &lt;{n}&gt;" in shown for n in (0, 1, 200)] == [False, True, True]


def test_a_model_reads_so_many_tokens_at_most(memory: Memory) -> None:
    long = [Message("user", f"Sentence {n} of a long session. " * 20) for n in range(100)]
    memory.chat("a").append(long)
    context = context_of(memory, Learning(tokens=1_000), model="m")
    job = Job("episode:a", "episode", (), MONDAY, chat="a")
    prompts = [unit.request.prompt for unit in episode(replace(context, jobs=[job])) if unit.request]
    assert len(prompts) > 5
    assert all(context.count_tokens(prompt) < 2_500 for prompt in prompts)
    assert "Sentence 99" in prompts[-1]


def test_a_long_answer_is_cut(memory: Memory) -> None:
    memory.chat("a").append(session(TOPICS[0]))
    (episode,) = learn(memory, "a", told("Ünïcödé wörds änd möre öf them. " * 100)).records
    assert len(episode.text) <= LONGEST


# Secrets and orders


def test_credentials_are_cut_out(memory: Memory) -> None:
    memory.chat("a").append(session(TOPICS[0]))
    answer = told(
        f"The client retries. The key is {KEY}.", decisions=[f"Use {KEY}."], outcome=f"It is {KEY}."
    )
    (episode,) = learn(memory, "a", answer).records
    assert KEY not in f"{episode.text} {episode.meta}"
    assert episode.trust == "trusted"


def test_credentials_of_the_session_are_cut_out(memory: Memory) -> None:
    use = Message("assistant", calls=(ToolCall("c1", "Read", {"path": f"src/{KEY}/client.py"}),))
    memory.chat("a").append(
        session(TOPICS[0], 0, use, Message("assistant", f"The key {KEY} works now, as it should."))
    )
    (episode,) = learn(memory, "a").records
    assert KEY not in f"{episode.text} {episode.meta}"


def test_a_tool_whose_name_is_an_order_gives_none(memory: Memory) -> None:
    call = Message("assistant", calls=(ToolCall("c1", f"web {ORDER}", {}),))
    memory.chat("a").append(session(TOPICS[0], 0, call))
    (own,) = learn(memory, "a").records
    assert (own.trust, "evil.example" in f"{own.text} {own.meta}") == ("trusted", False)


def test_orders_that_a_model_repeats_are_not_recalled(memory: Memory) -> None:
    memory.chat("a").append(session(TOPICS[0]))
    learn(memory, "a", told(f"The client retries. {ORDER}", decisions=[ORDER], outcome=ORDER))
    assert all("evil.example" not in f"{one.text} {one.meta}" for one in episodes(memory))


def test_decisions_of_untrusted_sources_wait_with_their_episode(memory: Memory) -> None:
    memory.chat("a").append(session(TOPICS[1], 0, *fetched()))
    own, whole = learn(
        memory, "a", told("The plan was drawn.", decisions=["Mara sits by the harbour."])
    ).records
    assert "by the harbour" in whole.text
    assert whole.trust == "quarantined"
    assert memory.recall("harbour", kinds=["episode"]) == []
    memory.quarantine.release(whole.id, by="user")
    assert [hit.id for hit in memory.recall("harbour", kinds=["episode"])] == [own.id]


# Untrusted sources


def test_an_episode_of_a_session_with_untrusted_sources_is_found_and_waits_only_as_a_whole(
    memory: Memory,
) -> None:
    later = Message("assistant", "The page says that the payment client needs a jitter of two seconds now.")
    memory.chat("a").append(session(TOPICS[0], 0, *fetched(), later))
    own, whole = learn(memory, "a").records
    assert list(memory.quarantine) == [whole]
    assert (whole.trust, whole.flags, whole.meta["untrusted"]) == (
        "quarantined",
        ("untrusted",),
        ["web_fetch"],
    )
    assert ("jitter" in whole.text, "jitter" in own.text) == (True, False)
    assert (own.trust, own.flags, own.meta["untrusted"], own.at) == ("trusted", (), [], whole.at)
    assert [hit.id for hit in memory.recall("payment client", kinds=["episode"])] == [own.id]
    released = memory.quarantine.release(whole.id, by="user")
    assert (released.id, released.trust) == (own.id, "released")
    assert episodes(memory) == [released]
    assert [hit.id for hit in memory.recall("jitter", kinds=["episode"])] == [own.id]
    memory.undo(by="user")
    assert texts(episodes(memory)) == [own.text]
    assert texts(list(memory.quarantine)) == [whole.text]


def test_nothing_waits_that_says_no_more_than_what_is_found(memory: Memory) -> None:
    memory.chat("a").append(session(TOPICS[0], 0, *fetched()))
    (own,) = learn(memory, "a").records
    assert (own.trust, list(memory.quarantine)) == ("trusted", [])


def test_which_sources_are_untrusted_can_be_said(memory: Memory) -> None:
    memory.chat("a").append(session(TOPICS[0], 0, *fetched()))
    assert learn(memory, "a", None, Learning(untrusted=("other",))).records[0].trust == "trusted"


@pytest.mark.slow
def test_one_that_is_written_again_stays_in_quarantine_and_is_one(memory: Memory) -> None:
    chat = memory.chat("a")
    chat.append(session(TOPICS[0], 0, *fetched()))
    own, first = learn(memory, "a", told("Retries were added.")).records
    chat.append(role="user", content="Now add a limit as well, please.")
    newer, second = learn(memory, "a", told("Retries and a limit were added.")).records
    assert (newer.id, second.id) == (own.id, first.id)
    assert list(memory.quarantine) == [second]
    assert episodes(memory) == [newer]


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
    assert texts(episodes(memory)) == ["Retries and two limits were added. Files: src/shop/client.py."]
    assert list(memory.quarantine) == []


def test_a_released_one_stays_so_until_there_is_another_untrusted_source(memory: Memory) -> None:
    chat = memory.chat("a")
    chat.append(session(TOPICS[0], 0, *fetched()))
    first, whole = learn(memory, "a", told("Retries were added.")).records
    memory.quarantine.release(whole.id, by="user")
    chat.append(role="user", content="Now add a limit as well, please.")
    (second,) = learn(memory, "a", told("Retries and a limit were added.")).records
    assert (second.id, second.trust) == (first.id, "released")
    chat.append(fetched("c2"))
    (third,) = learn(memory, "a", told("Retries, a limit and a page were added.")).records
    assert third.trust == "quarantined"
    assert episodes(memory) == [second]


def test_a_result_that_comes_after_the_release_is_untrusted_as_well(memory: Memory) -> None:
    chat = memory.chat("a")
    call, result = fetched("late")
    chat.append(session(TOPICS[0], 0, *fetched(), call))
    _, whole = learn(memory, "a", told("Retries were added.")).records
    memory.quarantine.release(whole.id, by="user")
    chat.append([result])
    (second,) = learn(memory, "a", told("Retries and a limit were added.")).records
    assert second.trust == "quarantined"


def test_what_is_no_longer_untrusted_leaves_quarantine_empty(memory: Memory) -> None:
    chat = memory.chat("a")
    chat.append(session(TOPICS[0]))
    learn(memory, "a", told("Retries were added."))
    chat.append(fetched())
    learn(memory, "a", told("Retries and a limit were added."))
    chat.append(role="user", content="Now add a limit as well, please.")
    learn(memory, "a", told("Retries and two limits were added."), Learning(untrusted=()))
    assert list(memory.quarantine) == []
    assert texts(episodes(memory)) == ["Retries and two limits were added. Files: src/shop/client.py."]


@pytest.mark.parametrize(("chat", "left"), [("b", ["a"]), (None, []), ("unknown", ["a", "b"])])
def test_what_waits_is_released_session_by_session_or_all_at_once(
    memory: Memory, chat: str | None, left: list[str]
) -> None:
    for n, name in enumerate("ab"):
        memory.chat(name).append(session(TOPICS[n], n, *fetched()))
        learn(memory, name, told(f"The page of {name} says so."))
    with pytest.raises(Denied):
        memory.quarantine.release_all(by="agent")
    released = memory.quarantine.release_all(chat=chat, by="user")
    assert [one.chat for one in memory.quarantine] == left
    assert [one.trust for one in released] == ["released"] * (2 - len(left))
    assert len(episodes(memory)) == 2
    if released:
        assert [one.by for one in memory.changes(limit=1)] == ["user"]
        memory.undo(by="user")
        assert [one.chat for one in memory.quarantine] == ["a", "b"]


# What others wrote or took back


def test_what_the_user_wrote_is_left_alone(memory: Memory) -> None:
    memory.chat("a").append(session(TOPICS[0]))
    own = memory.remember("We had a good day with the client.", "episode", chat="a", by="user")
    assert learn(memory, "a").note == "the user wrote it"
    assert episodes(memory) == [own]
    assert mark(memory, "a") == 5


def test_what_was_taken_back_is_not_written_again(memory: Memory) -> None:
    chat = memory.chat("a")
    chat.append(session(TOPICS[0]))
    (episode,) = learn(memory, "a").records
    memory.retract(episode.id, by="user")
    chat.append(session(TOPICS[1]))
    assert learn(memory, "a").note == "it was taken back"
    assert episodes(memory) == []


def test_what_was_discarded_is_not_written_again(memory: Memory) -> None:
    chat = memory.chat("a")
    chat.append(session(TOPICS[0], 0, *fetched()))
    own, whole = learn(memory, "a", told("The page says so.")).records
    memory.quarantine.discard(whole.id, by="user")
    chat.append(session(TOPICS[1]))
    (newer,) = learn(memory, "a", told("The page says more.")).records
    assert newer.id == own.id
    assert list(memory.quarantine) == []


def test_what_was_taken_back_beside_what_waits_is_not_written_again(memory: Memory) -> None:
    chat = memory.chat("a")
    chat.append(session(TOPICS[0], 0, *fetched()))
    own, _ = learn(memory, "a", told("The page says so.")).records
    memory.retract(own.id, by="user")
    chat.append(session(TOPICS[1]))
    assert learn(memory, "a").note == "it was taken back"
    assert episodes(memory) == []


# Near-duplicates


def test_of_two_that_say_the_same_the_newer_stays(memory: Memory) -> None:
    for n, chat in enumerate("ab"):
        memory.chat(chat).append(session(TOPICS[0], n))
        outcome = learn(memory, chat)
    assert [one.chat for one in episodes(memory)] == ["b"]
    assert [(one.chat, one.why) for one in outcome.records] == [
        ("b", ""),
        ("a", "a newer session says the same"),
    ]


def test_it_is_the_session_that_is_newer(memory: Memory) -> None:
    for chat, day in (("late", 1), ("early", 0)):
        memory.chat(chat).append(session(TOPICS[0], day))
        learn(memory, chat)
    assert [one.chat for one in episodes(memory)] == ["late"]


def test_a_second_time_changes_nothing(memory: Memory) -> None:
    for n, chat in enumerate("abc"):
        memory.chat(chat).append(session(TOPICS[n // 2], n))
        learn(memory, chat, None, Learning(episodes=1))
    before = memory.version()
    for chat in "abc":
        learn(memory, chat, None, Learning(episodes=1))
    assert memory.version() == before


def test_one_that_goes_on_is_there_again(memory: Memory) -> None:
    for n, chat in enumerate("ab"):
        memory.chat(chat).append(session(TOPICS[0], n))
        learn(memory, chat)
    memory.chat("a").append(session(TOPICS[1], 5))
    (first, *_) = learn(memory, "a").records
    assert first.chat == "a"
    assert "a" in [one.chat for one in episodes(memory)]


def test_other_agents_have_their_own(memory: Memory) -> None:
    for agent in ("one", "two"):
        own = memory.scoped(agent=agent)
        own.chat(f"chat of {agent}").append(session(TOPICS[0]))
        learn(own, f"chat of {agent}")
    assert len(episodes(memory)) == 2


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
    assert "old" in [one.chat for one in episodes(memory)]
    assert "new" in [one.chat for one in (*episodes(memory), *list(memory.quarantine))]


def test_what_differs_only_late_is_no_duplicate(memory: Memory) -> None:
    beginning = "The shop was worked on for a while. " * 3
    for n, end in enumerate(
        ("Custard tarts were baked from Portuguese recipes.", "Irrigation leaks were sealed.")
    ):
        memory.chat(end[:5]).append(session(TOPICS[0], n))
        learn(memory, end[:5], told(beginning + end))
    assert len(episodes(memory)) == 2


# How many are kept, and for how long


def test_the_oldest_go_when_there_are_too_many(memory: Memory) -> None:
    for n in (2, 0, 3, 1, 4):
        memory.chat(str(n)).append(session(TOPICS[n], n))
        outcome = learn(memory, str(n), None, Learning(episodes=3))
        assert len(episodes(memory)) <= 3
    assert sorted(one.chat for one in episodes(memory)) == ["2", "3", "4"]
    assert outcome.records[-1].why == "there are as many newer ones as are kept"
    gone = memory.recall("seating plan for the wedding", kinds=["episode"])
    assert not {one.chat for one in gone} & {"0", "1"}


def test_those_in_quarantine_displace_no_others(memory: Memory) -> None:
    memory.chat("0").append(session(TOPICS[0]))
    learn(memory, "0", None, Learning(episodes=2))
    for n in (1, 2):
        memory.chat(str(n)).append(session(TOPICS[n], n, *fetched()))
        learn(memory, str(n), told(f"The page of {n} says so."), Learning(episodes=2))
    assert [one.chat for one in episodes(memory)] == ["1", "2"]
    assert [one.chat for one in list(memory.quarantine)] == ["1", "2"]


def test_what_is_retracted_can_be_had_again(memory: Memory) -> None:
    for n in range(2):
        memory.chat(str(n)).append(session(TOPICS[n], n))
        learn(memory, str(n), None, Learning(episodes=1))
    (gone,) = [change for change in memory.changes(kind="episode") if change.action == "retract"]
    memory.rollback(gone.id, gone.version - 2)
    assert len(episodes(memory)) == 2


@pytest.mark.slow
@settings(max_examples=cases(10, 60))
@given(order=st.permutations(range(5)), most=st.integers(1, 5))
def test_the_newest_are_kept_in_whatever_order_they_come(order: list[int], most: int) -> None:
    with Memory(":memory:") as memory:
        for n in order:
            memory.chat(str(n)).append(session(TOPICS[n], n))
            learn(memory, str(n), None, Learning(episodes=most))
        assert sorted(one.chat for one in episodes(memory)) == [str(n) for n in range(5 - most, 5)]
        assert memory.verify().ok
