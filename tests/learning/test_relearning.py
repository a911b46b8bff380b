"""Relearning: what was erased or taken back meanwhile does not come back; an outage ends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Learning, Memory, Message, ToolCall
from learning_scripts import Answer, Clock, Model, finds, framed, hold, learned
from soak import cases

pytestmark = pytest.mark.usefixtures("clock")

PORT, OTHER_PORT = "The shop runs on port 8080.", "The shop runs on port 9090."
REDIS, REDIS_SAID_LONGER = "The sessions are in Redis.", "The sessions of the shop are kept in Redis."
TILL, ROOF = "The till is made of oak.", "The roof leaks when it rains."
TEXTS = (PORT, REDIS, TILL, ROOF)
SHORT, THOROUGH = "The sessions were moved.", "The sessions were moved to PostgreSQL, and all 42 tests pass."


def finding(*texts: str, kind: str = "finding") -> Model:
    """Make a model that finds some texts in every session."""
    return Model({"observe": finds(*texts, kind=kind)})


def extract(memory: Memory, *texts: str, chat: str = "shop") -> None:
    """Hold a session, and learn some findings from it."""
    hold(memory, chat).extract(llm=finding(*texts))


def texts(memory: Memory) -> list[str]:
    return [record.text for record in learned(memory)]


# What is erased meanwhile


ERASURES: dict[str, Callable[[Memory], object]] = {
    "the chat": lambda memory: memory.erase(chat="shop"),
    "some messages": lambda memory: memory.erase(chat="shop", messages=(1, 2)),
    "all": lambda memory: memory.erase(user="ada"),
}


@pytest.mark.parametrize("erase", ERASURES.values(), ids=ERASURES.keys())
def test_what_is_erased_while_a_model_reads_does_not_come_back(
    memory: Memory, erase: Callable[[Memory], object]
) -> None:
    extract(memory, PORT)

    def meanwhile(prompt: str) -> object:
        erase(memory)
        return finds(TILL)(prompt)

    result = memory.learning.relearn(llm=Model({"observe": meanwhile}))
    assert list(result.failed) == ["shop"]
    assert "erased" in result.failed["shop"]
    assert (result.added, result.removed, texts(memory)) == ((), (), [])
    assert memory.verify().problems == ()


# What somebody decided


def retract(memory: Memory) -> None:
    memory.retract(learned(memory)[0].id, by="user")


def change(memory: Memory) -> None:
    memory.replace(learned(memory)[0].id, ROOF, by="user")


def change_as_agent(memory: Memory) -> None:
    memory.replace(learned(memory)[0].id, ROOF)


@pytest.mark.parametrize(
    ("decide", "before", "now", "kind"),
    [
        (retract, PORT, PORT, "finding"),
        (change, PORT, PORT, "finding"),
        (change_as_agent, PORT, OTHER_PORT, "finding"),
        (retract, REDIS, REDIS_SAID_LONGER, "finding"),
        (change, PORT, PORT, "insight"),
    ],
    ids=["same", "changed", "update", "unsure", "another kind"],
)
def test_what_somebody_took_back_or_changed_does_not_come_back(
    quick: Memory, decide: Callable[[Memory], None], before: str, now: str, kind: str
) -> None:
    extract(quick, before, TILL)
    decide(quick)
    left, version = texts(quick), quick.version()
    for dry_run in (True, False):
        result = quick.learning.relearn(
            llm=Model({"observe": both(finds(now, kind=kind), finds(TILL))}), dry_run=dry_run
        )
        assert (result.added, result.removed, result.kept) == ((), (), 1)
    assert (texts(quick), quick.version()) == (left, version)


def both(one: Answer, other: Answer) -> Answer:
    """Answer with what two answers find."""

    def answer(prompt: str) -> object:
        found: Any = one(prompt)
        more: Any = other(prompt)
        return {kind: found[kind] + more[kind] for kind in found}

    return answer


def test_what_came_from_outside_is_not_trusted_in_a_later_part_either() -> None:
    """The assistant repeats it so much later that a model reads that by itself."""
    policy = Learning(tokens=100)
    with Memory(":memory:", user="ada", clock=Clock(), learning=policy) as memory:
        extract(memory, PORT)
        memory.chat("shop").append(
            [
                Message("user", "Look up what the shops around here do, please. " * 3),
                Message(
                    "assistant", "", calls=(ToolCall("1", "web_fetch", {"url": "https://shops.example"}),)
                ),
                Message("tool", "Their page tells of oak, of rain and of roofs. " * 8, call_id="1"),
                Message("assistant", f"Their page says much. {TILL} That is what it says of the tills."),
            ]
        )

        def answer(prompt: str) -> object:
            found = (TILL, (10, 10), TILL) if TILL in framed(prompt, "conversation") else PORT
            return finds(found)(prompt)

        model = Model({"observe": answer})
        memory.learning.relearn(llm=model)
        (later,) = (prompt for prompt in model.asked("observe") if TILL in prompt)
        assert "Their page tells" not in later
        assert (texts(memory), [record.text for record in list(memory.quarantine)]) == ([PORT], [TILL])


@pytest.mark.slow
@settings(max_examples=cases(10, 90))
@given(st.lists(st.lists(st.sampled_from(TEXTS), unique=True), min_size=1, max_size=4), st.integers(0, 3))
def test_what_is_known_is_what_was_found_last_but_for_what_was_taken_back(
    found: list[list[str]], place: int
) -> None:
    with Memory(":memory:", user="ada", clock=Clock()) as memory:
        extract(memory, *TEXTS)
        gone = learned(memory)[place]
        memory.retract(gone.id, by="user")
        for some in found:
            there = bool(texts(memory))
            memory.learning.relearn(llm=finding(*some))
            assert set(texts(memory)) == (set(some) - {gone.text} if there else set())
        assert memory.verify().problems == ()


# What fails


def test_a_session_that_fails_does_not_keep_the_others_from_it(quick: Memory) -> None:
    for chat, text in (("garden", PORT), ("shop", TILL)):
        extract(quick, text, chat=chat)
    answers = iter(("rubbish", "rubbish", finds(TILL)("")))
    result = quick.learning.relearn(llm=Model({"observe": lambda _: next(answers)}))
    assert list(result.failed) == ["garden"]
    assert "twice" in result.failed["garden"]
    assert (result.chats, result.kept) == (("shop",), 1)


# Episodes


def telling(summary: str) -> Model:
    """Make a model that tells a session in some words."""
    told = {"summary": summary, "files": [], "decisions": [], "outcome": ""}
    return Model({"episode": lambda _: told})


def episode(memory: Memory) -> str:
    (one,) = memory.records(kind="episode")
    return one.text


def test_an_episode_is_told_again_shown_as_a_diff_adopted_and_dropped(memory: Memory) -> None:
    hold(memory).end()
    memory.learning.work(llm=telling(SHORT))
    before, version = episode(memory), memory.version()
    assert SHORT in before
    shown = memory.learning.relearn("episodes", llm=telling(THOROUGH), prompt="v2", dry_run=True)
    assert (shown.prompt, shown.applied, memory.version()) == ("session v2", False, version)
    old, new = shown.diff.splitlines()[1:]
    assert shown.diff.splitlines()[0] == "shop"
    assert old == f"- episode: {before}"
    assert new == f"+ episode: {before.replace(SHORT, THOROUGH)}"
    assert memory.learning.relearn("episodes", llm=telling(THOROUGH), prompt="v2").added == shown.added
    assert THOROUGH in episode(memory)
    again = memory.learning.relearn("episodes", llm=telling(THOROUGH), prompt="v2")
    assert (again.added, again.removed, again.kept, again.diff) == ((), (), 1, "")
    memory.undo(by="user")
    assert episode(memory) == before
    assert memory.verify().ok


def test_what_is_erased_while_a_model_reads_is_not_told(memory: Memory) -> None:
    hold(memory).end()
    memory.learning.work(llm=telling(SHORT))

    def meanwhile(prompt: str) -> object:
        memory.erase(chat="shop")
        return telling(THOROUGH).answers["episode"](prompt)

    result = memory.learning.relearn("episodes", llm=Model({"episode": meanwhile}))
    assert "erased" in result.failed["shop"]
    assert memory.records(kind="episode") == []
    assert memory.verify().ok
